"""Starting a job's command: its terminal or pipes, its session, its directory, and what went wrong with that.

Only the standard library, and as little of it as possible: supervisors run this by the hundred (see `foreman`).
"""

from __future__ import annotations

import _signal as signal
import errno
import fcntl
import os
import sys
import termios

from perdure.jobs.kin import MARK
from perdure.jobs.orders import Sheet

#: What may go wrong, as it is written down.
TERMINAL, DIRECTORY, PROGRAM, DISK = b"terminal", b"directory", b"program", b"disk"
_PATH = b"/usr/local/bin:/usr/bin:/bin"
#: What Python ignores, and what a supervisor does or hears; a command must not.
_CHANGED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)


class Started:
    """A command that waits for `go`: our ends of what it reads and writes, and of the two pipes between us."""

    __slots__ = ("_go", "_trouble", "err", "out", "pid", "slave", "stdin")

    def __init__(self, stdin: int, out: int, err: int, slave: int) -> None:
        #: `out` is both streams for a terminal; then `err` is -1 and `slave` our own hold on it.
        self.stdin, self.out, self.err, self.slave = stdin, out, err, slave
        self.pid = self._go = self._trouble = -1

    def go(self) -> tuple[bytes, int] | None:
        """Let the command run, and return when it does: None, or what could not be done, and the error's number."""
        try:
            os.write(self._go, b"!")
        except BrokenPipeError:
            # Somebody was quicker to end it.
            pass
        os.close(self._go)
        told = os.read(self._trouble, 100)
        os.close(self._trouble)
        if not told:
            return None
        what, _, number = told.partition(b" ")
        return what, int(number)

    def between(self, go: int, trouble: int, pid: int) -> None:
        """Take our ends of the pipes."""
        self._go, self._trouble, self.pid = go, trouble, pid


def start(sheet: Sheet, id: bytes) -> Started:
    """Start a command that waits; nothing of it runs before `Started.go`, nor if we are gone before. Raises OSError."""
    if sheet.rows:
        master, slave = os.openpty()
        set_size(slave, sheet.rows, sheet.columns)
        started, theirs = Started(master, master, -1, slave), (slave, slave, slave)
    else:
        (stdin, to_it), (out, from_it), (err, error) = os.pipe(), os.pipe(), os.pipe()
        started, theirs = Started(to_it, out, err, -1), (stdin, from_it, error)
    wait, go = os.pipe()
    told, trouble = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go)
        _become(sheet, id, theirs, wait, trouble)
    os.close(wait)
    os.close(trouble)
    if not sheet.rows:
        for each in theirs:
            os.close(each)
    for ours in {started.stdin, started.out, started.err} - {-1}:
        os.set_blocking(ours, False)
    started.between(go, told, pid)
    return started


def set_size(terminal: int, rows: int, columns: int) -> None:
    """Give a terminal its size. Raises OSError."""
    size = b"".join(min(number, 65535).to_bytes(2, sys.byteorder) for number in (rows, columns, 0, 0))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)


def code_of(number: int) -> int:
    """Return the code a shell gives a command that could not be started, by the error's number."""
    return 127 if number in (errno.ENOENT, errno.ENOTDIR) else 126


def _become(sheet: Sheet, id: bytes, streams: tuple[int, int, int], wait: int, trouble: int) -> None:
    """In the child: become the command, or tell what could not be done. Never returns."""
    what = TERMINAL
    try:
        signal.set_wakeup_fd(-1)
        for number in _CHANGED:
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        if not os.read(wait, 1):
            os._exit(125)
        os.umask(sheet.umask)
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
        if sheet.rows:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
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
