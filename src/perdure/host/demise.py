"""Why a tmux server died, as far as that can be known by somebody who is not its parent.

Its socket tells nothing: tmux 3.3a leaves it where it is however it ends. What tells something is how the process ended
(`host.exits`), and how many processes the kernel has killed for want of memory.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Self

from msgspec import Struct

from perdure.host.exits import Exit, how_ended
from perdure.host.kernel import read_told
from perdure.model.run import Program
from perdure.model.text import decode, encode

_PROC, _CGROUPS = "/proc", "/sys/fs/cgroup"
_UNIFIED = re.compile(rb"^0::(/.*)$", re.MULTILINE)
_OF_OLD = re.compile(rb"^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(/.*)$", re.MULTILINE)
_KILLS = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)
#: Signals a program sends itself by mistake.
_CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP})


class DemiseKind(StrEnum):
    """What a server died of."""

    #: It ended by itself: it was told to, or had nothing left to do.
    EXITED = "exited"
    SIGNAL = "signal"
    #: Killed for want of memory; probable at best, since the kernel counts its victims and does not name them.
    OOM = "oom"
    #: It ended with the machine.
    REBOOT = "reboot"
    UNKNOWN = "unknown"


class Demise(Struct, frozen=True, kw_only=True):
    """What is known of a server's end. `detail` is plain JSON: the facts the sentence rests on."""

    kind: DemiseKind
    sentence: str
    detail: Mapping[str, int | str]


class _Count(Struct, frozen=True):
    """How many processes of a cgroup were killed for want of memory."""

    path: str
    #: Another cgroup may later have the name.
    inode: int
    kills: int


class Vigil(Struct, frozen=True, kw_only=True):
    """What was so while a server lived. Counters tell only what changed since: take it anew every now and then."""

    pid: int
    start_ticks: int
    boot_id: str
    #: Of its cgroup, and of those around it, nearest first.
    cgroups: tuple[_Count, ...] = ()
    #: Of the whole machine, None where it is not told.
    machine: int | None = None

    @classmethod
    def of(cls, program: Program, *, proc: str = _PROC, cgroups: str = _CGROUPS) -> Self:
        """Return what is so now, of a server that lives. A few small files are read; nothing raises."""
        told = read_told(f"{proc}/{program.pid}/cgroup")
        return cls(
            pid=program.pid,
            start_ticks=program.start_ticks,
            boot_id=_boot_id(proc),
            cgroups=tuple(_counts(told, cgroups)),
            machine=_kills(f"{proc}/vmstat"),
        )


def cause(vigil: Vigil, exit: Exit | None = None, *, proc: str = _PROC) -> Demise:
    """Return what a server died of, now that it is dead; `exit` is what `Exits` told of it.

    Without it a server that nobody has reaped is still asked. Never claims more than is known: most often that is how
    it ended, and not who or what made it.
    """
    boot_id = _boot_id(proc)
    if vigil.boot_id and boot_id and vigil.boot_id != boot_id:
        return Demise(kind=DemiseKind.REBOOT, sentence="The machine was started anew since.", detail={})
    if exit is None or exit == Exit():
        exit = how_ended(vigil.pid, vigil.start_ticks)
    kills, among = _killed_since(vigil, proc)
    detail: dict[str, int | str] = {"memory_kills": kills, "among": among} if among else {}
    if exit.signal is not None:
        return _by_signal(exit.signal, kills, among, detail)
    if exit.status is not None:
        return _by_itself(exit.status, kills, among, detail)
    if kills and among != _ON_MACHINE:
        sentence = f"The tmux server is gone, probably for want of memory: {_victims(kills, among)}."
        return Demise(kind=DemiseKind.OOM, sentence=sentence, detail=detail)
    sentence = "The tmux server is gone; how it ended cannot be known here"
    sentence += f". {_victims(kills, among, capital=True)} meanwhile." if kills else "."
    return Demise(kind=DemiseKind.UNKNOWN, sentence=sentence, detail=detail)


def while_unwatched(seen_at: datetime, booted_at: datetime) -> Demise:
    """Return what a server died of that was last seen then, and that nobody watched since. Little is known of that."""
    if seen_at < booted_at:
        return Demise(
            kind=DemiseKind.REBOOT, sentence="The machine was started anew since it was last seen.", detail={}
        )
    sentence = "The tmux server is gone; it ended while nobody watched, and how cannot be known."
    return Demise(kind=DemiseKind.UNKNOWN, sentence=sentence, detail={})


def _by_signal(number: int, kills: int, among: str, detail: dict[str, int | str]) -> Demise:
    name = _name(number)
    detail = {"signal": name, **detail}
    if number == signal.SIGKILL and kills:
        sentence = f"The tmux server was killed (SIGKILL), probably for want of memory: {_victims(kills, among)}."
        return Demise(kind=DemiseKind.OOM, sentence=sentence, detail=detail)
    verb = "crashed" if number in _CRASHES else "was killed"
    return Demise(kind=DemiseKind.SIGNAL, sentence=f"The tmux server {verb} ({name}).", detail=detail)


def _by_itself(status: int, kills: int, among: str, detail: dict[str, int | str]) -> Demise:
    # SIGTERM is among what makes tmux end in good order, with status 0.
    how = "in good order: it was told to, or its last session had ended" if not status else f"with exit status {status}"
    sentence = f"The tmux server ended by itself, {how}."
    if kills:
        # It may have been told to because of it: a service manager ends the whole of what lost a part.
        sentence += f" {_victims(kills, among, capital=True)} meanwhile."
    return Demise(kind=DemiseKind.EXITED, sentence=sentence, detail={"exit_status": status, **detail})


_IN_CGROUP, _AROUND, _ON_MACHINE = "cgroup", "outer cgroup", "machine"
_PLACES = {_IN_CGROUP: "in its cgroup", _AROUND: "in a cgroup around its own", _ON_MACHINE: "on this machine"}


def _victims(kills: int, among: str, *, capital: bool = False) -> str:
    the = "The" if capital else "the"
    processes = "a process" if kills == 1 else f"{kills} processes"
    return f"{the} kernel killed {processes} {_PLACES[among]} for want of memory"


def _killed_since(vigil: Vigil, proc: str) -> tuple[int, str]:
    """Return how many were killed since, and among whom: the nearest who can still be asked, "" when nobody can.

    A cgroup goes with its last process, and is counted in those around it.
    """
    for place, before in enumerate(vigil.cgroups):
        now = _count(before.path)
        if now is not None and now.inode == before.inode and now.kills >= before.kills:
            return now.kills - before.kills, _AROUND if place else _IN_CGROUP
    machine = _kills(f"{proc}/vmstat")
    if machine is not None and vigil.machine is not None and machine >= vigil.machine:
        return machine - vigil.machine, _ON_MACHINE
    return 0, ""


def _counts(told: bytes, cgroups: str) -> Iterator[_Count]:
    found, old = _UNIFIED.search(told), _OF_OLD.search(told)
    if old is not None:
        # The first version: each group counts for itself alone.
        paths = [f"{cgroups}/memory{_inside(old[1])}/memory.oom_control"]
    elif found is not None:
        inside = _inside(found[1])
        parts = inside.split("/")
        paths = [f"{cgroups}{'/'.join(parts[:count])}/memory.events" for count in range(len(parts), 0, -1)]
    else:
        paths = []
    yield from filter(None, map(_count, paths))


def _inside(path: bytes) -> str:
    """The group's path below where groups are mounted; the root for one that is outside of what we may see."""
    return "" if b"/.." in path else decode(path).rstrip("/")


def _count(path: str) -> _Count | None:
    kills = _kills(path)
    try:
        return None if kills is None else _Count(path, os.stat(os.path.dirname(encode(path))).st_ino, kills)
    except OSError:
        return None


def _kills(path: str) -> int | None:
    found = _KILLS.search(read_told(os.fsdecode(encode(path))))
    return int(found[1]) if found else None


def _boot_id(proc: str) -> str:
    return read_told(f"{proc}/sys/kernel/random/boot_id").decode("ascii", "replace").strip()


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
