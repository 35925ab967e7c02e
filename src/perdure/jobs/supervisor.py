"""What looks after one job: it starts the command, keeps what it prints, and writes down how it ended.

One process a job, forked by the foreman, in a session of its own: it lives on when everybody else is gone. Everything
others need to know is in the job's directory (`place`), where it works.

Only the standard library, and as little of it as possible: it runs by the hundred (see `foreman`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import termios
import time

from perdure.jobs import kin, launching
from perdure.jobs.answering import Request, admit, answer, listen
from perdure.jobs.ending import ENDED, code_of, has_text, remove, reserve, write_for_good
from perdure.jobs.keeping import Keeper
from perdure.jobs.orders import Sheet, pack, read, unpack
from perdure.jobs.plain import signal
from perdure.jobs.slimming import forget

#: As much is read at once, and as much by one who prints a lot.
_LITTLE, _MUCH = 1 << 16, 1 << 20
#: So many full reads in a row, and it prints a lot.
_FLOOD = 16
#: The most that may wait to be read by the job.
_UNREAD = 1 << 20
#: How long what is left in the pipes is read when the job has ended and somebody else still writes, in seconds.
_DRAIN = 1.0
#: How long a job is given when it is us who are told to end.
_GRACE = 5.0
#: How often it is looked whether everything has ended: while it may do so by itself, and when it may not.
_LOOK, _LOOK_AGAIN = 0.1, 0.02
#: How long a job is waited for that may print something at once, in seconds.
_MOMENT = 0.003
#: When to believe that something cannot be ended.
_HOPELESS = 5.0


class Post:
    """What can be made ready before there is a job: the process that becomes its command, and who we are."""

    __slots__ = ("_relieve", "boot", "hand", "has_all", "spare", "started")

    def __init__(self, boot: bytes, hand: launching.Hand, relieve: int, spare: list[tuple[int, int]]) -> None:
        """`relieve` is where somebody is told that we are no longer ready; `spare` is memory to be given back."""
        self.boot, self.hand, self.spare, self._relieve = boot, hand, spare, relieve
        own = kin.read_line(os.getpid())
        self.started = own.started if own else 0
        self.has_all = kin.adopt_orphans()
        _rehearse()

    def leave(self) -> None:
        """Say that somebody else has to be ready."""
        if self._relieve >= 0:
            try:
                os.write(self._relieve, b"t")
            except OSError:
                # Whoever kept us ready was ended. The job is ours all the same.
                pass
            os.close(self._relieve)
            self._relieve = -1


def look_after(directory: bytes, id: bytes, caller: int, post: Post) -> None:
    """Take up the job whose order lies in the directory, tell `caller` so, and return when nothing of it is left.

    Says `taken` when somebody else has it or had it, `order` when there is none, `again` when somebody else has to be
    asked, `failed` and a number when the system did not let it be started; then nothing was started, and we have let go of it.
    `ended` otherwise, or `began` with the numbers and starts of ours and its process: it may have removed what is
    written down of that by now.
    """
    try:
        held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.fchdir(held)
    except OSError as error:
        answer(caller, b"failed %d" % (error.errno or 0))
        return
    supervisor, why_not = _taken_up(held, id, post)
    if supervisor is None:
        os.close(held)
        answer(caller, why_not)
        return
    supervisor.settle()
    answer(caller, supervisor.told() if supervisor.succeed() else b"ended")
    # First what it prints, if it prints at once: whoever comes to be ready would share the processor with it, and what
    # is given back has to be found again.
    supervisor.attend_for(_MOMENT)
    post.leave()
    forget(post.spare)
    supervisor.run()


def _taken_up(held: int, id: bytes, post: Post) -> tuple[Supervisor | None, bytes]:
    """Let the job in the present directory begin, as far as it is ours to; or say why not."""
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return None, b"taken"
    if has_text(b"began.json") or has_text(ENDED):
        return None, b"taken"
    sheet = read(b".")
    if sheet is None:
        return None, b"order"
    try:
        supervisor = Supervisor(sheet, id, post)
        supervisor.begin()
    except ChildProcessError:
        return None, b"again"
    except OSError as error:
        return None, b"failed %d" % (error.errno or 0)
    return supervisor, b""


class Supervisor:
    """One job, from its order to its end."""

    def __init__(self, sheet: Sheet, id: bytes, post: Post) -> None:
        """Get ready what it takes to begin. Raises OSError; nothing has begun then."""
        self._id, self._post, self._hand = id, post, post.hand
        self._leader = (self._hand.pid, self._hand.started)
        self._ends = self._hand.take(sheet)
        self._streams = {each for each in (self._ends.out, self._ends.err) if each >= 0}
        self._keeper = Keeper(sheet.cap)
        self._bell = _bell()
        self._reserve = self._door = -1
        self._poll = select.poll()
        self._requests: dict[int, Request] = {}
        self._buffer = bytearray()
        self._full = 0
        self._unread = bytearray()
        self._closing = self._closed = False
        self._is_fresh_line = True
        self._status: int | None = None
        self._is_over = False
        # Who waits for the end of a kill, how many processes there were, and when the next step is due.
        self._killers: list[int] = []
        self._found = 0
        self._killed_by = b""
        self._look_at = self._end_at = 0.0

    def begin(self) -> None:
        """Write down that it has begun, and let it. Raises OSError: nothing may run that nobody could find again."""
        text = b'{"boot":"%s","supervisor":[%d,%d],"process":[%d,%d],"at":%.6f}\n' % (
            self._post.boot,
            os.getpid(),
            self._post.started,
            *self._leader,
            time.time(),
        )
        handle = os.open(b"began.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        # At once, so that nobody finds a part of it. An empty one is none: who made it was ended before anything began.
        if os.write(handle, text) != len(text):
            raise OSError(errno.ENOSPC, "")
        os.close(handle)
        self._hand.go(self._id, self._ends)

    def told(self) -> bytes:
        """Return what whoever ordered it is told."""
        return b"began %d %d %d %d" % (os.getpid(), self._post.started, *self._leader)

    def settle(self) -> None:
        """Get ready what only matters once it runs: room for its end, a door for those who have something to say."""
        try:
            self._reserve = reserve()
        except OSError:
            # There may be room when it is needed.
            pass
        try:
            self._listener = listen(b"ctl")
            self._door = self._listener.fileno()
            self._poll.register(self._door, select.POLLIN)
        except OSError:
            # It can still be ended, by those who find its processes.
            pass
        for handle in (self._bell, *self._streams):
            self._poll.register(handle, select.POLLIN)

    def succeed(self) -> bool:
        """Say whether the command could be run; its end is written down otherwise."""
        trouble = self._hand.trouble()
        if trouble is None:
            return True
        for stream in self._streams:
            self._poll.unregister(stream)
        self._streams.clear()
        self._write_end(launching.code_of(trouble[1]), *trouble)
        return False

    def attend_for(self, seconds: float) -> None:
        """Attend to the first that happens, if it happens so soon."""
        for handle, event in self._poll.poll(seconds * 1000):
            self._attend(handle, event)

    def run(self) -> None:
        """Look after the job until it has ended, and whatever it left behind too."""
        # It may have ended before anybody listened for that.
        self._reap()
        while not self._is_over or self._streams or self._killers or self._leaves_anybody():
            if self._is_over or self._status is None:
                for handle, event in self._poll.poll(self._timeout()):
                    self._attend(handle, event)
            if self._status is not None and not self._is_over:
                self._finish()
            if self._look_at and time.monotonic() >= self._look_at:
                self._go_on_killing()
        self._keeper.close()
        remove(b"ctl")

    def _timeout(self) -> float | None:
        return max(self._look_at - time.monotonic(), 0) * 1000 if self._look_at else None

    def _attend(self, handle: int, event: int) -> None:
        if handle == self._bell:
            self._hear()
        elif handle == self._door:
            connection = admit(self._listener)
            if connection >= 0:
                self._requests[connection] = Request()
                self._poll.register(connection, select.POLLIN)
        elif handle in self._requests:
            self._listen_to(handle)
        else:
            if event & select.POLLOUT or (handle == self._ends.stdin and handle not in self._streams):
                self._feed()
            if handle in self._streams and event & ~select.POLLOUT:
                self._take_in(handle)

    # What it prints

    def _take_in(self, stream: int) -> bool:
        """Keep what is there to be read, once; say whether there was something."""
        if not self._buffer:
            self._buffer = bytearray(_LITTLE)
        try:
            size = os.readv(stream, [self._buffer])
        except BlockingIOError:
            return False
        except OSError:
            # A terminal that nobody has open any more.
            size = 0
        if not size:
            self._leave(stream)
            return False
        self._keeper.keep(self._buffer, size, stream == self._ends.err)
        if size == len(self._buffer) == _LITTLE:
            self._widen(stream)
        else:
            self._full = 0
        return True

    def _widen(self, stream: int) -> None:
        """Let one who prints a lot print more at once: not everybody from the start, for a user may have only so much."""
        self._full += 1
        if self._full >= _FLOOD:
            self._buffer = bytearray(_MUCH)
            try:
                fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, _MUCH)
            except OSError:
                pass

    def _leave(self, stream: int) -> None:
        self._streams.discard(stream)
        self._poll.unregister(stream)
        if stream == self._ends.stdin:
            self._unread.clear()
            self._closed = True
        os.close(stream)

    # What it reads

    def _feed(self) -> bool:
        """Write what waits, as much as goes; say whether the job can still read."""
        try:
            while self._unread:
                del self._unread[: os.write(self._ends.stdin, self._unread)]
        except BlockingIOError:
            pass
        except OSError:
            self._close_stdin_now()
        if not self._unread and self._closing and not self._closed:
            self._close_stdin_now()
        self._watch_stdin()
        return not self._closed

    def _watch_stdin(self) -> None:
        """Be told when the job reads again, but only while something waits."""
        handle = self._ends.stdin
        out = select.POLLOUT if self._unread else 0
        if handle in self._streams:
            self._poll.register(handle, select.POLLIN | out)
        elif out:
            self._poll.register(handle, out)
        elif not self._closed:
            self._forget(handle)

    def _close_stdin_now(self) -> None:
        self._unread.clear()
        if self._closed:
            return
        self._closed = True
        handle = self._ends.stdin
        if handle not in self._streams:
            self._forget(handle)
            os.close(handle)

    def _forget(self, handle: int) -> None:
        try:
            self._poll.unregister(handle)
        except KeyError:
            pass

    def _end_of_file(self) -> bytes:
        """What means the end to whoever reads from the terminal: twice behind a line that is not ended."""
        try:
            sign = termios.tcgetattr(self._ends.out)[6][termios.VEOF]
        except (termios.error, OSError):
            sign = b"\x04"
        return bytes(sign) * (1 if self._is_fresh_line else 2)

    # What is asked for

    def _listen_to(self, connection: int) -> None:
        try:
            part = os.read(connection, 65536)
            asked = self._requests[connection].take(part) if part else None
        except BlockingIOError:
            return
        except (OSError, ValueError):
            part, asked = b"", None
        if part and asked is None:
            return
        del self._requests[connection]
        self._poll.unregister(connection)
        if asked is None:
            os.close(connection)
            return
        try:
            said = self._do(asked[0], asked[1], connection)
        except (ValueError, IndexError, OverflowError):
            said = b"no request"
        if said:
            answer(connection, said)

    def _do(self, words: list[bytes], data: bytes, connection: int) -> bytes:
        """Do what is asked for and return what to say; nothing yet to who waits for an end."""
        if words[0] == b"kill":
            self._begin_to_kill(float(words[1]), b"request")
            self._killers.append(connection)
            return b""
        if self._status is not None:
            return b"no over"
        if words[0] == b"standing":
            return b"ok %d %d %d" % (self._keeper.printed, self._keeper.dropped, len(self._unread))
        if words[0] == b"resize":
            return self._resize(int(words[1]), int(words[2]))
        if words[0] == b"close":
            return self._close_stdin()
        return self._write(data) if words[0] == b"write" else b"no request"

    def _resize(self, rows: int, columns: int) -> bytes:
        if self._ends.slave < 0:
            return b"no terminal"
        try:
            launching.set_size(self._ends.out, rows, columns)
        except OSError:
            return b"no size"
        return b"ok"

    def _write(self, data: bytes) -> bytes:
        if self._closed or self._closing:
            return b"no stdin"
        taken = data[: max(_UNREAD - len(self._unread), 0)]
        self._unread += taken
        if taken:
            self._is_fresh_line = taken.endswith((b"\n", b"\r"))
        return b"ok %d" % len(taken) if self._feed() else b"no stdin"

    def _close_stdin(self) -> bytes:
        if self._closed or self._closing:
            return b"ok"
        self._closing = True
        if self._ends.slave >= 0:
            self._unread += self._end_of_file()
        self._feed()
        return b"ok"

    # How it ends

    def _hear(self) -> None:
        """A child ended, or we are told to."""
        told = os.read(self._bell, 4096)
        if signal.SIGTERM in told:
            self._begin_to_kill(_GRACE, b"signal")
        self._reap()
        if self._look_at:
            self._look_at = time.monotonic()

    def _reap(self) -> None:
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                if pid == self._hand.pid:
                    self._status = status
        except ChildProcessError:
            pass

    def _begin_to_kill(self, grace: float, by: bytes) -> None:
        now = time.monotonic()
        if self._status is None and not self._killed_by:
            self._killed_by = by
        if self._look_at:
            self._end_at = min(self._end_at, now + grace)
            return
        there = self._members()
        self._found = len(there)
        kin.ask_to_end(there)
        self._end_at = now + max(grace, 0)
        self._look_at = now

    def _go_on_killing(self) -> None:
        now = time.monotonic()
        left = self._members()
        if left and now < self._end_at + _HOPELESS:
            if now >= self._end_at:
                kin.end(left)
            self._look_at = now + _LOOK_AGAIN if now >= self._end_at else min(now + _LOOK, self._end_at)
            return
        if self._status is None and not left:
            # Dead, but not reaped yet: the signal that says so is on its way.
            self._look_at = now + _LOOK_AGAIN
            return
        self._look_at = 0.0
        for connection in self._killers:
            answer(connection, b"ok %d %d" % (self._found, len(left)))
        self._killers.clear()

    def _members(self) -> list[tuple[int, int]]:
        leader = self._leader if self._status is None else None
        return kin.members(self._id, supervisor=os.getpid(), leader=leader, by_mark=not self._post.has_all)

    def _finish(self) -> None:
        """Write down how it ended, with all it had printed by then; whoever still writes goes on being kept."""
        if self._ends.slave >= 0:
            # Held by us so that a job may close its terminal and open it again; now its last user is to be noticed.
            os.close(self._ends.slave)
            self._ends.slave = -1
        until = time.monotonic() + _DRAIN
        for stream in sorted(self._streams):
            while self._take_in(stream) and time.monotonic() < until:
                pass
        self._close_stdin_now()
        self._write_end(code_of(self._status or 0), b"", 0)

    def _leaves_anybody(self) -> bool:
        """Say whether processes of the job go on though it has ended."""
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return bool(self._members())

    def _write_end(self, code: int, trouble: bytes, number: int) -> None:
        self._is_over = True
        status = self._status
        sign = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else 0
        left = len(self._members()) if status is not None and self._leaves_anybody() else 0
        text = (
            b'{"exit_code":%d,"signal":%d,"killed_by":"%s","at":%.6f,"trouble":"%s","errno":%d,'
            b'"printed":%d,"dropped":%d,"left":%d}'
        ) % (
            code,
            sign,
            self._killed_by,
            time.time(),
            trouble,
            number,
            self._keeper.printed,
            self._keeper.dropped,
            left,
        )
        try:
            write_for_good(self._reserve, text)
        except OSError:
            # The disk is broken. Who is asked for says that it is lost, and that is so.
            pass


def _rehearse() -> None:
    """Do once what is done first with a job: what it takes is ours then, and nobody waits for it to be copied."""
    unpack(pack(Sheet(boot=b"-", umask=0, cap=0, rows=0, columns=0, cwd=b"-", argv=[b"-"], env={b"A": b"b"})))
    read(b"/nowhere")
    has_text(b"/nowhere")
    Keeper(0)
    select.poll()


def _bell() -> int:
    """Return a descriptor at which the numbers of signals arrive."""
    bell, rope = os.pipe()
    for end in (bell, rope):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(rope, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda number, frame: None)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    return bell
