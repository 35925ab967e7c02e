"""Starting a job's command: its terminal or pipes, its session, its directory, and what went wrong with that.

Only the standard library, and as little of it as possible: supervisors run this by the hundred (see `foreman`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import termios

from perdure.jobs.kin import MARK, read_line
from perdure.jobs.orders import Sheet, read
from perdure.jobs.plain import signal

#: What may go wrong, as it is written down.
TERMINAL, DIRECTORY, PROGRAM, DISK = b"terminal", b"directory", b"program", b"disk"
_PATH = b"/usr/local/bin:/usr/bin:/bin"
#: What Python ignores, and what a supervisor does or hears; a command must not.
_CHANGED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)


class Hand:
    """A process that waits to become a command: made beforehand, so that nobody has to wait for it.

    It is nothing yet but in a session of its own, and ends when we do.
    """

    __slots__ = ("_go", "_ours", "_trouble", "pid", "started")

    def __init__(self, directory: bytes, theirs: list[int]) -> None:
        """Make one that will find the order below `directory`, and lets go of what is only `theirs` who make it."""
        pipes = [os.pipe() for _ in range(5)]
        (wait, self._go), (self._trouble, trouble), (stdin, to_it), (out, from_it), (err, error) = pipes
        self._ours = (to_it, out, err)
        self.pid = os.fork()
        if self.pid == 0:
            for handle in (*theirs, *self._ours, self._go, self._trouble):
                os.close(handle)
            _wait_and_become(directory, (stdin, from_it, error), wait, trouble)
        for handle in (wait, trouble, stdin, from_it, error):
            os.close(handle)
        line = read_line(self.pid)
        #: In ticks since boot.
        self.started = line.started if line else 0

    def take(self, sheet: Sheet) -> Streams:
        """Return our ends of what the command will read and write. Raises OSError; ChildProcessError: it was ended."""
        if not self.started or os.waitpid(self.pid, os.WNOHANG)[0]:
            raise ChildProcessError
        if not sheet.rows:
            for ours in self._ours:
                os.set_blocking(ours, False)
            return Streams(*self._ours, -1)
        for ours in self._ours:
            os.close(ours)
        master, slave = os.openpty()
        set_size(slave, sheet.rows, sheet.columns)
        os.set_blocking(master, False)
        return Streams(master, master, -1, slave)

    def go(self, id: bytes, streams: Streams) -> None:
        """Let it become the command of a job."""
        terminal = os.fsencode(os.ttyname(streams.slave)) if streams.slave >= 0 else b""
        try:
            os.write(self._go, id + b"\0" + terminal)
        except BrokenPipeError:
            # Somebody was quicker to end it.
            pass
        os.close(self._go)

    def trouble(self) -> tuple[bytes, int] | None:
        """Return when the command runs: None, or what could not be done, and the error's number."""
        told = os.read(self._trouble, 100)
        os.close(self._trouble)
        if not told:
            return None
        what, _, number = told.partition(b" ")
        return what, int(number)


class Streams:
    """Our ends of what a command reads and writes.

    For a terminal, `stdin` and `out` are one and both streams, `err` is -1, and `slave` is our own hold on it.
    """

    __slots__ = ("err", "out", "slave", "stdin")

    def __init__(self, stdin: int, out: int, err: int, slave: int) -> None:
        self.stdin, self.out, self.err, self.slave = stdin, out, err, slave


def set_size(terminal: int, rows: int, columns: int) -> None:
    """Give a terminal its size. Raises OSError."""
    size = b"".join(min(number, 65535).to_bytes(2, sys.byteorder) for number in (rows, columns, 0, 0))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)


def code_of(number: int) -> int:
    """Return the code a shell gives a command that could not be started, by the error's number."""
    return 127 if number in (errno.ENOENT, errno.ENOTDIR) else 126


def _wait_and_become(directory: bytes, streams: tuple[int, int, int], wait: int, trouble: int) -> None:
    """In the child: wait to be told of a job, and become its command, or tell what could not be done. Never returns."""
    what = TERMINAL
    try:
        for number in _CHANGED:
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        # Once beforehand, so that nobody waits for memory to be copied.
        read(directory)
        told = os.read(wait, 1000)
        if not told:
            os._exit(125)
        id, _, terminal = told.partition(b"\0")
        sheet = read(os.path.join(directory, id))
        if sheet is None:
            raise OSError(errno.EIO, "")
        if terminal:
            # The first a session opens is the one that rules it.
            streams = (os.open(terminal, os.O_RDWR),) * 3
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
        os.umask(sheet.umask)
        what = DIRECTORY
        os.chdir(sheet.cwd)
        what = PROGRAM
        _execute(sheet.argv, {**sheet.env, MARK: id})
    except OSError as error:
        os.write(trouble, b"%s %d" % (what, error.errno or 0))
    finally:
        os._exit(127)


def _execute(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """Become a program, looked for as the command's own PATH says. Raises OSError: what is there but may not be run first."""
    name = argv[0]
    folders = [b""] if b"/" in name else env.get(b"PATH", _PATH).split(b":")
    refused = OSError(errno.ENOENT, "")
    for folder in folders:
        try:
            os.execve(os.path.join(folder, name), argv, env)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                refused = error
    raise refused
