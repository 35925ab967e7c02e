"""`python -I -S foreman.py DIRECTORY SECONDS STAMP`: starts the supervisors of the jobs in a directory.

A supervisor has to be there at once and has to be small, and an interpreter is neither: it takes as long to start as
many a command to run, and twice the memory. So one process is kept ready, and every supervisor is forked off it. It is started by
the first who needs it (`hiring`), goes into a session of its own, and leaves when nobody has asked for
`SECONDS`. No job depends on it: when it is killed its supervisors live on, and the next order starts another.

    hire ID STAMP\\n

asks for a job whose order lies in the directory. The answer is the supervisor's (`supervisor.look_after`), or `other` when
the one who asks is of another version of this program, STAMP: then this one leaves, too.

Only the standard library, and as little of it as possible: what is imported here every supervisor has in its memory.
"""

from __future__ import annotations

import _signal as signal
import fcntl
import os
import select
import sys

if __name__ == "__main__":
    # Started by its path, isolated: the program itself is not to be found otherwise. Last, so that it hides nothing.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from perdure.jobs.answering import admit, answer, listen
from perdure.jobs.supervisor import look_after

_SOCKET, _LOCK = b"foreman", b"foreman.lock"
#: How long whoever connects may take to say what they want, in milliseconds.
_PATIENCE = 2000
#: How often it is looked whether the directory is still there, in seconds.
_LOOK = 20.0
_LINE = 400


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
    """Who forks a supervisor for each order of a directory."""

    def __init__(self, directory: bytes, stamp: bytes, lock: int) -> None:
        self._directory, self._stamp, self._lock = directory, stamp, lock
        self._listener = listen(_SOCKET)
        self._own = os.stat(_SOCKET).st_ino
        self._path = os.path.join(directory, _SOCKET)
        with open("/proc/sys/kernel/random/boot_id", "rb", 0) as file:
            self._boot = file.read().strip()

    def run(self, idle: float) -> None:
        """Start supervisors until nobody has asked for `idle` seconds, or nobody can any more."""
        poll = select.poll()
        poll.register(self._listener.fileno(), select.POLLIN)
        quiet = 0.0
        while quiet < idle and self._is_reachable():
            step = min(_LOOK, idle - quiet)
            if not poll.poll(step * 1000):
                quiet += step
                continue
            quiet = 0.0
            connection = admit(self._listener)
            if connection >= 0 and not self._serve(connection):
                break
        if self._is_reachable():
            os.unlink(self._path)

    def _is_reachable(self) -> bool:
        try:
            return os.stat(self._path).st_ino == self._own
        except OSError:
            return False

    def _serve(self, connection: int) -> bool:
        """Do what is asked for; say whether to go on."""
        words = _request(connection)
        if len(words) != 3 or words[0] != b"hire" or b"/" in words[1] or words[1].startswith(b"."):
            answer(connection, b"no request")
            return True
        if words[2] != self._stamp:
            answer(connection, b"other")
            return False
        try:
            pid = os.fork()
        except OSError as error:
            answer(connection, b"failed %d" % (error.errno or 0))
            return True
        if pid == 0:
            self._become_supervisor(words[1], connection)
        os.close(connection)
        return True

    def _become_supervisor(self, id: bytes, connection: int) -> None:
        try:
            # With it the lock would outlive the foreman.
            os.close(self._lock)
            self._listener.close()
            look_after(os.path.join(self._directory, id), id, self._boot, connection)
        finally:
            os._exit(0)


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


def _let_go() -> None:
    """Hold on to nothing of whoever started us."""
    os.chdir("/")
    nothing = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for handle in range(3):
        os.dup2(nothing, handle)
    os.close(nothing)


if __name__ == "__main__":
    main(os.fsencode(sys.argv[1]), float(sys.argv[2]), os.fsencode(sys.argv[3]))
