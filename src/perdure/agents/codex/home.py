"""Where Codex keeps its threads, and which of them a process has loaded.

A thread is a conversation. From the moment it is loaded its owner holds `thread-writer-locks/<id>.lock` open, and from
the first prompt on its rollout too. The owner is the program in the pane when it runs without a daemon, else the
daemon, which many panes share. A lock that nobody holds is left over from a killed owner, so its existence says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from os.path import basename, dirname, join

from msgspec import Struct

from perdure.agents._homes import every_home, home_of, profile_of
from perdure.agents._json import decode_object, mapping, text
from perdure.agents._records import Record
from perdure.model.process import Process
from perdure.ports import HostView

_VARIABLE, _USUAL = "CODEX_HOME", ".codex"
_LOCK, _ROLLOUT, _PACKED = ".lock", ".jsonl", ".jsonl.zst"
#: The first line carries the whole instructions to the model: 20 KB of them, more with a user's own.
_HEAD = 1 << 20
#: As far as a thread's files may be dated before or after its id, which is in UTC, by a clock on the wall.
_DAYS = (0, -1, 1)


class Loaded(Struct, frozen=True, kw_only=True):
    """A thread some process has loaded."""

    id: str
    #: When that was. Going back to a thread in the program loads it anew.
    loaded_at: datetime | None
    #: None while nothing was ever said in it.
    rollout: str | None


def codex_home(process: Process, host: HostView) -> str:
    """Return the directory this process keeps its settings and threads in."""
    return home_of(process, _VARIABLE, _USUAL, host)


def profile(process: Process, host: HostView) -> str | None:
    """Return the name of a home that is not the usual one. Its `--profile` is none: all of them share the threads."""
    return profile_of(process, _VARIABLE, _USUAL, host)


def homes(host: HostView) -> Iterator[str]:
    """Yield the homes below the user's, the usual one first."""
    return every_home(_USUAL, host)


def loaded_by(pid: int, host: HostView) -> list[Loaded] | None:
    """Return the threads a process has loaded, None when we may not know what it holds open."""
    paths = host.open_files(pid)
    if not paths:
        return None
    rollouts = {thread: path for path in paths if (thread := thread_of(path))}
    locks = {basename(path).removesuffix(_LOCK): path for path in paths if _is_lock(path)}
    return [
        Loaded(id=thread, loaded_at=host.modified_at(path), rollout=rollouts.get(thread))
        for thread, path in sorted(locks.items())
    ]


def _is_lock(path: str) -> bool:
    name = basename(path)
    return name.endswith(_LOCK) and not name.startswith(".") and basename(dirname(path)) == "thread-writer-locks"


def daemon_of(home: str, host: HostView) -> int | None:
    """Return the process of this home's daemon; a stale file names one that has none of its threads loaded."""
    entry = decode_object(host.read(join(home, "app-server-daemon", "daemon.pid"))) or {}
    pid = entry.get("pid")
    return pid if isinstance(pid, int) and not isinstance(pid, bool) and pid > 0 else None


def thread_of(path: str) -> str | None:
    """Return the thread a rollout belongs to, by its name; None for any other file."""
    name = basename(path)
    stem = name.removesuffix(_PACKED) if name.endswith(_PACKED) else name.removesuffix(_ROLLOUT)
    return stem[-36:] if name.startswith("rollout-") and stem != name and len(stem) > 36 else None


def made_at(thread: str) -> datetime | None:
    """Return when a thread was made, which its id tells; None when it does not."""
    try:
        return datetime.fromtimestamp(int(thread.replace("-", "")[:12], 16) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def find_rollout(home: str, thread: str, host: HostView) -> str | None:
    """Return the thread's file: by the day it was made, or among the archived ones."""
    made = made_at(thread)
    days = [made.date() + timedelta(days=by) for by in _DAYS] if made and 1 < made.year < 9999 else []
    for directory in (*(_day(home, each) for each in days), join(home, "archived_sessions")):
        for name in host.names(directory):
            if thread_of(name) == thread:
                return join(directory, name)
    return None


def _day(home: str, day: date) -> str:
    return join(home, "sessions", f"{day.year:04}", f"{day.month:02}", f"{day.day:02}")


def header(path: str, host: HostView) -> Record:
    """Return what a rollout says of its thread in its first line; empty when that cannot be read."""
    line = (host.read(path, limit=_HEAD) or b"").partition(b"\n")[0]
    record = decode_object(line) or {}
    return mapping(record.get("payload")) if record.get("type") == "session_meta" else {}


def is_sub_agent(meta: Record) -> bool:
    """Return whether a thread was begun by another one, not by a person."""
    source = meta.get("source")
    return isinstance(source, dict) or meta.get("thread_source") == "subagent" or bool(meta.get("parent_thread_id"))


def root_of(thread: str, meta: Record) -> str:
    """Return the thread a person talks to: a sub-agent's header names it as the session's."""
    return (
        (text(meta.get("session_id")) or text(meta.get("parent_thread_id")) or thread) if is_sub_agent(meta) else thread
    )


def state_database(process: Process | None, home: str, host: HostView) -> str | None:
    """Return the database of all threads. Its name carries the number of its schema, which grows."""
    directory = (process.environ.get("CODEX_SQLITE_HOME") if process else None) or home
    numbered = [
        (int(number), name)
        for name in host.names(directory)
        if (number := name.removeprefix("state_").removesuffix(".sqlite")).isdecimal()
        and name == f"state_{number}.sqlite"
    ]
    return join(directory, max(numbered)[1]) if numbered else None
