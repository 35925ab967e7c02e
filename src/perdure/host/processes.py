"""The process table, read once a save.

Linux is read straight from /proc: two system calls a process, a few milliseconds for a busy machine. Elsewhere
psutil does it (`portable_processes`). Reading is lazy where it is dear: one cheap line for every process, the
arguments, directory and environment only for those that live in a pane.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache

from msgspec import Struct

from perdure.model.process import Process
from perdure.model.secrets import is_secret_name, is_secret_value
from perdure.model.text import decode

_ENVIRON_LIMIT = 1 << 20
#: How often the words of a process are asked for that has none for a moment.
_PATIENCE = 20


class Entry(Struct, frozen=True):
    """A line of the process table."""

    pid: int
    ppid: int
    pgid: int
    #: Controlling terminal as the kernel numbers it, 0 for none.
    tty: int
    #: Foreground process group of that terminal, -1 for none.
    tpgid: int
    start_ticks: int
    comm: str


#: Tells by its name, program and arguments which variables of a process are worth keeping.
Names = Callable[[str, str | None, tuple[str, ...]], frozenset[str]]
#: Tells the same, and by whether it is in the foreground, which variables are kept although they may be secrets.
Replayed = Callable[[str, str | None, tuple[str, ...], bool], frozenset[str]]


def nothing_replayed(comm: str, exe: str | None, argv: tuple[str, ...], foreground: bool) -> frozenset[str]:
    """Return that no secret of any process is kept."""
    return frozenset()


class ProcessTable:
    """Every process of the machine at one moment; details are read when a tree is asked for."""

    def __init__(
        self, entries: Iterable[Entry], *, boot: float, names: Names, replayed: Replayed | None = None
    ) -> None:
        self._entries = {entry.pid: entry for entry in entries}
        self._children: dict[int, list[int]] = {}
        for entry in self._entries.values():
            self._children.setdefault(entry.ppid, []).append(entry.pid)
        self._boot = boot
        self._read: dict[int, Process] = {}
        self._names = names
        self._replayed = replayed or nothing_replayed

    def tree(self, root: int, tty: str) -> tuple[Process, ...]:
        """Return the process a pane was started with and all below it, parents first.

        Empty when there is no such process, or when it does not sit on the pane's terminal: then the pid is
        another's, from before or from another pid namespace, and nothing of it may be believed.
        """
        entry = self._entries.get(root) or read_entry(root)
        if entry is None or not _on_terminal(entry, tty):
            return ()
        return tuple(self._process(each) for each in (entry, *self._below([root])))

    def _below(self, roots: Iterable[int]) -> Iterator[Entry]:
        queue = list(roots)
        # The table is not read in one instant: with a number given out anew meanwhile, it may run in a circle.
        seen = set(queue)
        for pid in queue:
            for child in self._children.get(pid, ()):
                if child not in seen:
                    seen.add(child)
                    queue.append(child)
                    yield self._entries[child]

    def entry(self, pid: int) -> Entry | None:
        """Return a process's line as it was when the table was read, None when it was not to be seen."""
        return self._entries.get(pid)

    def foreground(self, pid: int) -> int | None:
        """Return the process group in the foreground of a process's terminal, None where it has none, or is not there."""
        entry = self._entries.get(pid)
        return entry.tpgid if entry is not None and entry.tpgid > 0 else None

    @property
    def booted_at(self) -> datetime:
        """When the machine was started, to the second: no process of an earlier boot has done anything since."""
        return datetime.fromtimestamp(self._boot, UTC)

    def of_user(self, uid: int) -> Iterator[Process]:
        """Yield every process of a user, as far as it still runs."""
        for entry in self._entries.values():
            if _owner(entry.pid) == uid:
                yield self._process(entry)

    def prefetch(self) -> None:
        """Read the details of whatever lives below a tmux server, for a caller that has to wait for tmux anyway."""
        servers = [entry.pid for entry in self._entries.values() if entry.comm == "tmux: server"]
        for entry in self._below(servers):
            self._process(entry)

    def _process(self, entry: Entry) -> Process:
        if entry.pid not in self._read:
            self._read[entry.pid] = self._details(entry)
        return self._read[entry.pid]

    def _details(self, entry: Entry) -> Process:
        where = f"/proc/{entry.pid}/"
        exe, argv = _link(where + "exe"), _argv(where + "cmdline")
        for _ in range(_PATIENCE if exe is not None and not argv else 0):
            # It is becoming another program at this very moment; a thread of the kernel, or a dead one, has no exe.
            time.sleep(0.001)
            exe, argv = _link(where + "exe"), _argv(where + "cmdline")
            if argv or exe is None:
                break
        foreground = entry.pgid == entry.tpgid
        cwd = _link(where + "cwd")
        environ = _environ(
            where + "environ",
            self._names(entry.comm, exe, argv),
            self._replayed(entry.comm, exe, argv, foreground),
        )
        if exe is not None and (cwd is None or not environ) and _link(where + "exe") is None:
            # It began to end while it was read. What was read of it is not all there was.
            exe, argv, cwd, environ = None, (), None, {}
        return Process(
            pid=entry.pid,
            ppid=entry.ppid,
            start_ticks=entry.start_ticks,
            started_at=datetime.fromtimestamp(self._boot + entry.start_ticks / _TICKS, UTC),
            pgid=entry.pgid,
            foreground=foreground,
            comm=entry.comm,
            exe=exe,
            argv=argv,
            cwd=cwd,
            environ=environ,
        )


_TICKS = os.sysconf("SC_CLK_TCK")


def read_processes(names: Names, replayed: Replayed | None = None) -> ProcessTable:
    """Read the process table.

    `names` tells of a process which environment variables are worth keeping, secrets aside; `replayed` which are kept
    whatever they look like.
    """
    if not sys.platform.startswith("linux"):
        from perdure.host.portable_processes import read_portably

        return read_portably(names, replayed)
    entries = (read_entry(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return ProcessTable((entry for entry in entries if entry), boot=_boot_time(), names=names, replayed=replayed)


def read_entry(pid: int) -> Entry | None:
    """Return one process's line, None when it is gone; one that only waits to be reaped is."""
    name, rest = _stat(pid)
    if not rest or _is_over(rest):
        return None
    return Entry(pid, int(rest[1]), int(rest[2]), int(rest[4]), int(rest[5]), int(rest[19]), decode(name))


def _stat(pid: int) -> tuple[bytes, list[bytes]]:
    """Return a process's name and what stands behind it in its line; no words when there is no such process."""
    line = _read(f"/proc/{pid}/stat", 4096)
    # The name stands in parentheses and may itself hold spaces and parentheses: the last one ends it.
    opened, closed = line.find(b"("), line.rfind(b")")
    rest = line[closed + 2 :].split()
    return (b"", []) if opened < 0 or closed < opened or len(rest) < 20 else (line[opened + 1 : closed], rest)


def _is_over(rest: Sequence[bytes]) -> bool:
    """Whether a process has ended. One whose first thread has, and another has not, goes on."""
    return rest[0] in (b"Z", b"X") and int(rest[17]) <= 1


def read_words(pid: int) -> tuple[str | None, tuple[str, ...]]:
    """Return a process's program and arguments, as far as they can be read."""
    return _link(f"/proc/{pid}/exe"), _argv(f"/proc/{pid}/cmdline")


def children_of(pid: int) -> list[int]:
    """Return the processes that a process of one thread has started and that are there, the oldest first, where the kernel tells."""
    return [int(word) for word in _read(f"/proc/{pid}/task/{pid}/children", 65536).split()]


def is_alive(pid: int, start_ticks: int) -> bool:
    """Say whether this very process still runs; one that only waits to be reaped does not."""
    if not sys.platform.startswith("linux"):
        from perdure.host.portable_processes import is_alive_portably

        return is_alive_portably(pid, start_ticks)
    _, rest = _stat(pid)
    return bool(rest) and not _is_over(rest) and int(rest[19]) == start_ticks


def is_stopped(pid: int) -> bool:
    """Say whether a process was stopped, and has not been told to go on; False where the kernel does not tell."""
    _, rest = _stat(pid)
    return bool(rest) and rest[0] in (b"T", b"t")


def is_inhabited(directory: str) -> bool:
    """Say whether a process that we may look at, and that is not us, works in a directory or below; False without /proc."""
    for name in filter(str.isdigit, _listed("/proc")):
        where = _link(f"/proc/{name}/cwd")
        if where is not None and f"{where}/".startswith(f"{directory}/") and int(name) != os.getpid():
            return True
    return False


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def _on_terminal(entry: Entry, tty: str) -> bool:
    name = tty.rpartition("/dev/pts/")[2]
    if not name.isdigit() or not entry.tty:
        return not name.isdigit()
    major, minor = (entry.tty >> 8) & 0xFFF, (entry.tty & 0xFF) | ((entry.tty >> 12) & 0xFFF00)
    return ((major - 136) << 8) + minor == int(name) if minor < 256 else minor == int(name)


def _owner(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def _boot_time() -> float:
    with open("/proc/stat", "rb") as file:
        return next((float(line.split()[1]) for line in file if line.startswith(b"btime ")), 0.0)


def _argv(path: str) -> tuple[str, ...]:
    raw = _read(path, _ENVIRON_LIMIT)
    return tuple(decode(word) for word in raw.removesuffix(b"\0").split(b"\0")) if raw else ()


@cache
def _wanted(names: frozenset[str], replayed: frozenset[str]) -> re.Pattern[bytes]:
    """Return the pattern of the variables to keep: one search is much faster than taking an environment apart."""
    kept = {name for name in names if not is_secret_name(name)} | replayed
    allowed = b"|".join(re.escape(os.fsencode(name)) for name in sorted(kept))
    return re.compile(rb"(?<![^\0])(%s)=([^\0]*)" % (allowed or rb"(?!)"))


def _environ(path: str, names: frozenset[str], replayed: frozenset[str]) -> Mapping[str, str]:
    found = _wanted(names, replayed).findall(_read(path, _ENVIRON_LIMIT))
    pairs = ((decode(name), decode(value)) for name, value in found)
    return {name: value for name, value in pairs if name in replayed or not is_secret_value(value)}


_DELETED = b" (deleted)"


def _link(path: str) -> str | None:
    """Return where a link of /proc leads, without the mark the kernel puts behind what was deleted.

    A directory that really is called that way exists under that name.
    """
    try:
        raw = os.readlink(os.fsencode(path))
    except OSError:
        return None
    return decode(raw.removesuffix(_DELETED) if raw.endswith(_DELETED) and not os.path.lexists(raw) else raw)


def _read(path: str, limit: int) -> bytes:
    """Read a file of /proc; b"" when the process ended or is not ours to read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while limit > 0 and (part := os.read(handle, min(limit, 65536))):
            parts.append(part)
            limit -= len(part)
            if len(part) < 4096:
                # /proc hands out whole pages; less than one is the end, and saves a call for each file.
                break
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(handle)
