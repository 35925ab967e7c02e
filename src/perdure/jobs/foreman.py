"""`python -I -S foreman.py DIRECTORY SECONDS STAMP`: starts the supervisors of the jobs in a directory.

A supervisor has to be there at once and has to be small, and an interpreter is neither: it takes as long to start as
many a command to run, and twice the memory. So one process is kept, and every supervisor is forked off it, always one
before there is an order, which it then takes by itself. The foreman is started by the first who needs it (`hiring`),
goes into a session of its own, and leaves when nobody has asked for `SECONDS`. No job depends on it: when it is killed
its supervisors live on, and the next order starts another.

    hire ID STAMP\\n

asks for a job whose order lies in the directory. The answer is the supervisor's (`supervisor.look_after`), or `other` when
the one who asks is of another version of this program, STAMP: then this one leaves, too.

Only the standard library, and as little of it as possible: what is imported here every supervisor has in its memory.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys

if __name__ == "__main__":
    # Started by its path, isolated: the program itself is not to be found otherwise. Last, so that it hides nothing.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from perdure.jobs.answering import admit, answer, listen
from perdure.jobs.kin import adopt_orphans
from perdure.jobs.launching import Hand
from perdure.jobs.plain import signal
from perdure.jobs.slimming import spare_ranges
from perdure.jobs.supervisor import Post, look_after

_SOCKET, _LOCK = b"foreman", b"foreman.lock"
#: How long whoever connects may take to say what they want, in milliseconds.
_PATIENCE = 2000
#: How often it is looked whether the directory is still there, in seconds.
_LOOK = 20.0
_LINE = 400
#: How long to wait when there are too many processes, in milliseconds.
_RESPITE = 200
#: What somebody who stands by may have to say other than that they have an order.
_LEAVE = b"l"


def main(directory: bytes, idle: float, stamp: bytes) -> None:
    """Say `ready` or `held` to whoever started us, and start supervisors until nobody asks any more."""
    os.umask(0o077)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if number != signal.SIGPIPE and number != signal.SIGXFSZ:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    # Whoever ends is gone at once, and is no business of ours.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.chdir(directory)
    lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.write(1, b"held\n")
        return
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    try:
        foreman = Foreman(directory, stamp, lock)
        os.write(1, b"ready\n")
    except BrokenPipeError:
        # Whoever started us is gone; others may come.
        pass
    except OSError as error:
        os.write(1, b"failed %d\n" % (error.errno or 0))
        return
    _let_go()
    foreman.run(idle)


class Foreman:
    """Who keeps somebody ready for the next order of a directory."""

    def __init__(self, directory: bytes, stamp: bytes, lock: int) -> None:
        self._directory, self._stamp, self._lock = directory, stamp, lock
        self._listener = listen(_SOCKET)
        self._own = os.stat(_SOCKET).st_ino
        self._path = os.path.join(directory, _SOCKET)
        with open("/proc/sys/kernel/random/boot_id", "rb", 0) as file:
            self._boot = file.read().strip()
        # What it takes is loaded here, once for all of them; and what a supervisor leaves behind that was killed has
        # somebody to reap it.
        adopt_orphans()
        self._spare = spare_ranges()
        # By the one we are told what became of who stood by, by the end of the other that one is told of ours.
        self._told, self._tell = os.pipe()
        self._life, self._alive = os.pipe()

    def run(self, idle: float) -> None:
        """See to it that somebody stands by, until nobody has asked for `idle` seconds, or nobody can any more."""
        quiet = 0.0
        while quiet < idle and self._is_reachable():
            try:
                pid = os.fork()
            except OSError:
                # There are too many processes now; whoever asks meanwhile has to wait.
                _pause(_RESPITE)
                continue
            if pid == 0:
                self._stand_by()
            said, quiet = self._await(pid, idle, quiet)
            if said == _LEAVE:
                break
        if self._is_reachable():
            os.unlink(self._path)

    def _await(self, pid: int, idle: float, quiet: float) -> tuple[bytes, float]:
        """Return what who stands by has to say, and for how long nobody has asked; nothing when it was ended."""
        poll = select.poll()
        poll.register(self._told, select.POLLIN)
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            return b"", quiet
        poll.register(handle, select.POLLIN)
        try:
            while quiet < idle and self._is_reachable():
                step = min(_LOOK, idle - quiet)
                there = dict(poll.poll(step * 1000))
                if self._told in there:
                    return os.read(self._told, 1), 0.0
                if there:
                    return b"", quiet
                quiet += step
        finally:
            os.close(handle)
        return _LEAVE, quiet

    def _is_reachable(self) -> bool:
        try:
            return os.stat(self._path).st_ino == self._own
        except OSError:
            return False

    def _stand_by(self) -> None:
        """In a child: take the next order, and look after that job; leave without one when the foreman does. Never returns."""
        try:
            os.setsid()
            # With the lock it would be held when the foreman is gone.
            for handle in (self._lock, self._told, self._alive):
                os.close(handle)
            listener = self._listener.fileno()
            hand = Hand(self._directory, [listener, self._tell, self._life])
            post = Post(self._boot, hand, self._tell, self._spare)
            poll = select.poll()
            for handle in (listener, self._life):
                poll.register(handle, select.POLLIN)
            while self._life not in dict(poll.poll()):
                connection = admit(self._listener)
                if connection >= 0 and self._serve(connection, post):
                    break
        finally:
            os._exit(0)

    def _serve(self, connection: int, post: Post) -> bool:
        """Do what is asked for; say whether that was all we can do."""
        words = _request(connection)
        if len(words) != 3 or words[0] != b"hire" or b"/" in words[1] or words[1].startswith(b"."):
            answer(connection, b"no request")
            return False
        if words[2] != self._stamp:
            os.write(self._tell, _LEAVE)
            answer(connection, b"other")
            return True
        self._listener.close()
        os.close(self._life)
        look_after(os.path.join(self._directory, words[1]), words[1], connection, post)
        return True


def _request(connection: int) -> list[bytes]:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    raw = b""
    try:
        while b"\n" not in raw and len(raw) < _LINE and poll.poll(_PATIENCE):
            part = os.read(connection, _LINE)
            if not part:
                break
            raw += part
    except OSError:
        return []
    return raw.split() if raw.endswith(b"\n") else []


def _pause(milliseconds: int) -> None:
    select.poll().poll(milliseconds)


def _let_go() -> None:
    """Hold on to nothing of whoever started us."""
    os.chdir("/")
    nothing = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for handle in range(3):
        os.dup2(nothing, handle)
    os.close(nothing)


if __name__ == "__main__":
    main(os.fsencode(sys.argv[1]), float(sys.argv[2]), os.fsencode(sys.argv[3]))
