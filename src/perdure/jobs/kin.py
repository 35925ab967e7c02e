"""Which processes belong to a job, and ending them: never one that only has the number of one of them.

What a job starts may change its group, its session and its parent. It stays below the supervisor all the same, where
the kernel lets that one take in orphans; and everything that kept its environment can be told by the mark in it.

Only the standard library, and as little of it as possible: supervisors run this by the hundred (see `foreman`).
"""

from __future__ import annotations

import os

from perdure.jobs.plain import signal

#: What every process of a job has in its environment, unless it threw it away; the value is the job's id.
MARK = b"PERDURE_JOB"
#: What a foreman and its supervisors have in theirs.
FOREMAN = b"PERDURE_FOREMAN=1"
_FOREMAN_WORD = b"/foreman.py\0"
_MOST = 1 << 20
_STATE, _PARENT, _SESSION, _STARTED = 0, 1, 3, 19
_BECOME_SUBREAPER = 36


class Line:
    """A process that runs: its parent, its session and when it was started, in ticks."""

    __slots__ = ("parent", "session", "started")

    def __init__(self, parent: int, session: int, started: int) -> None:
        self.parent, self.session, self.started = parent, session, started


def read_line(pid: int) -> Line | None:
    """Return a process; None when there is none, or it only waits to be reaped."""
    fields = _read(b"/proc/%d/stat" % pid, 4096).rpartition(b")")[2].split()
    if len(fields) <= _STARTED or fields[_STATE] in (b"Z", b"X"):
        return None
    return Line(int(fields[_PARENT]), int(fields[_SESSION]), int(fields[_STARTED]))


def adopt_orphans() -> bool:
    """Let every process whose parent ends, and that we have started ourselves or through others, become our child."""
    try:
        # Not `ctypes`, which takes ten times the memory; and without either, the marks have to do.
        import _ctypes

        prctl = _ctypes.dlsym(_ctypes.dlopen("", 2), "prctl")
        return bool(_ctypes.call_function(prctl, (_BECOME_SUBREAPER, 1, 0, 0, 0)) == 0)
    except (ImportError, AttributeError, OSError, TypeError):
        return False


def members(
    id: bytes, *, supervisor: int | None, leader: tuple[int, int] | None, by_mark: bool
) -> list[tuple[int, int]]:
    """Return the processes of a job, each as its number and start, the oldest first.

    `supervisor` is our own number when we are that; `leader` is the job's own process, asked for by its start too.
    Looking for the mark is dear, and says nothing new to who adopts orphans.
    Other jobs that were started from within this one are theirs, and not among them.
    """
    lines = _table()
    roots = set() if supervisor is None else {supervisor}
    if leader is not None and leader[0] in lines and lines[leader[0]].started == leader[1]:
        roots.add(leader[0])
        # The session's number is nobody else's as long as its leader is there.
        roots.update(pid for pid, line in lines.items() if line.session == leader[0])
    if by_mark:
        uid, mark = os.geteuid(), MARK + b"=" + id
        roots.update(pid for pid in lines if _is_owned(pid, uid) and mark in environment(pid))
    children: dict[int, list[int]] = {}
    for pid, line in lines.items():
        children.setdefault(line.parent, []).append(pid)
    found = set(roots)
    queue = list(roots)
    for pid in queue:
        new = [child for child in children.get(pid, ()) if child not in found and not _is_foreman(child)]
        found.update(new)
        queue += new
    there = [(lines[pid].started, pid) for pid in found if pid not in (os.getpid(), supervisor) and pid in lines]
    # Parents first: they shall not see their children end, and do something about it.
    return [(pid, started) for started, pid in sorted(there)]


def tell(process: tuple[int, int], number: int) -> bool:
    """Send a signal to this very process; say whether it was there to get it."""
    pid, started = process
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # First the descriptor, then the question whose it is: then it cannot become another's any more.
        line = read_line(pid)
        if line is None or line.started != started:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def ask_to_end(processes: list[tuple[int, int]]) -> None:
    """Ask processes to end; those that were stopped are let go on, or they would not hear of it."""
    for number in (signal.SIGTERM, signal.SIGCONT):
        for process in processes:
            tell(process, number)


def end(processes: list[tuple[int, int]]) -> None:
    """End processes, whatever they think of it."""
    for process in processes:
        tell(process, signal.SIGKILL)


def environment(pid: int) -> list[bytes]:
    """Return the variables a process was started with; [] when they are not ours to read."""
    return _read(b"/proc/%d/environ" % pid, _MOST).split(b"\0")


def _is_foreman(pid: int) -> bool:
    # Its words too: anybody can say so in a variable, and would be out of reach.
    return FOREMAN in environment(pid) and _FOREMAN_WORD in _read(b"/proc/%d/cmdline" % pid, _MOST)


def _is_owned(pid: int, uid: int) -> bool:
    try:
        return os.stat(b"/proc/%d" % pid).st_uid == uid
    except OSError:
        return False


def _table() -> dict[int, Line]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            line = read_line(int(name))
            if line is not None:
                found[int(name)] = line
    return found


def _read(path: bytes, limit: int) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    raw = b""
    try:
        while len(raw) < limit:
            part = os.read(handle, 4096)
            raw += part
            # Whole pages are handed out; less than one is the end.
            if len(part) < 4096:
                break
    except OSError:
        pass
    finally:
        os.close(handle)
    return raw
