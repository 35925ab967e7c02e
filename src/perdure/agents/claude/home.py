"""Where Claude Code keeps its files, and how it names them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from os.path import basename, isabs, join

from perdure.agents._json import decode_object
from perdure.agents.claude.argv import is_conversation
from perdure.model.process import Process
from perdure.ports import HostView

_SUFFIX = ".jsonl"
_LONGEST_SLUG = 200


def config_home(process: Process, host: HostView) -> str:
    """Return the directory this process keeps its settings, registry and transcripts in."""
    chosen = process.environ.get("CLAUDE_CONFIG_DIR")
    if chosen:
        return chosen if isabs(chosen) else join(process.cwd or host.home, chosen)
    return join(process.environ.get("HOME") or host.home, ".claude")


def profile(process: Process, host: HostView) -> str | None:
    """Return the name of a config directory that is not the usual one."""
    if not process.environ.get("CLAUDE_CONFIG_DIR"):
        return None
    home = config_home(process, host).rstrip("/")
    return None if host.physical(home) == host.physical(join(host.home, ".claude")) else basename(home)


def registry_path(process: Process, host: HostView) -> str:
    """Return where this process says that it lives, which conversation it is in and what it is doing."""
    return join(config_home(process, host), "sessions", f"{process.pid}.json")


def read_registry(process: Process, host: HostView) -> tuple[dict[str, object] | None, str]:
    """Return the live registry entry of this very process, and in words why it counts or does not."""
    raw = host.read(registry_path(process, host))
    if raw is None:
        return None, "no registry entry for this process"
    entry = decode_object(raw)
    if entry is None:
        return None, "the registry entry cannot be read"
    if entry.get("pid") != process.pid:
        return None, "the registry entry names another process"
    if "procStart" not in entry:
        return None, "the registry entry does not say when its process started"
    if str(entry["procStart"]) != str(process.start_ticks):
        return None, "the registry entry is of an earlier process with this pid"
    return entry, "the registry entry matches this process and its start time"


def job_conversation(home: str, job: str, host: HostView) -> str | None:
    """Return the conversation a background job is in now."""
    if not job.isalnum():  # it is a directory's name, and comes from a command line
        return None
    state = decode_object(host.read(join(home, "jobs", job, "state.json")) or b"") or {}
    found = (state.get(field) for field in ("resumeSessionId", "sessionId"))
    return next((each for each in found if isinstance(each, str) and is_conversation(each)), None)


def slug(path: str) -> str:
    """Return the name of the transcript directory for a physical path. Different paths may share one."""
    units = [unit for character in path for unit in _utf16(ord(character))]
    name = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    if len(name) <= _LONGEST_SLUG:
        return name
    digest = 0
    for unit in units:
        digest = (digest * 31 + unit) & 0xFFFFFFFF
    return f"{name[:_LONGEST_SLUG]}-{_base36(abs(digest - (1 << 32) if digest >> 31 else digest))}"


def _utf16(code: int) -> tuple[int, ...]:
    """By hand: Python would load the codec from files that whoever we look as may not be able to read."""
    if code < 0x10000:
        return (code,)
    return 0xD800 + (code - 0x10000 >> 10), 0xDC00 + (code & 0x3FF)


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
        if not number:
            return digits


def own_directory(home: str, cwd: str, host: HostView) -> str:
    """Return where conversations started in `cwd` are written."""
    return join(home, "projects", slug(host.physical(cwd)))


def transcripts_in(directory: str, host: HostView) -> list[tuple[datetime, str, str]]:
    """Return (last written, conversation, path) of a directory's transcripts, newest first."""
    found = []
    for name in host.names(directory):
        conversation = name.removesuffix(_SUFFIX)
        if name.endswith(_SUFFIX) and is_conversation(conversation):
            path = join(directory, name)
            written = host.modified_at(path)
            if written is not None:
                found.append((written, conversation, path))
    return sorted(found, reverse=True)


def find_transcript(home: str, conversation: str, cwd: str | None, host: HostView) -> str | None:
    """Return the conversation's file, wherever it is: resumed elsewhere it stays, a removed worktree moves it."""
    if cwd:
        likely = join(own_directory(home, cwd, host), conversation + _SUFFIX)
        if host.size(likely) is not None:
            return likely
    projects = join(home, "projects")
    paths = (join(projects, name, conversation + _SUFFIX) for name in host.names(projects))
    written = [(at, path) for path in paths if (at := host.modified_at(path)) is not None]
    return max(written)[1] if written else None


def homes(host: HostView) -> Iterator[str]:
    """Yield the config directories below the user's home, the usual one first."""
    yield join(host.home, ".claude")
    for name in sorted(host.names(host.home)):
        if name.startswith((".claude-", ".claude_")):
            yield join(host.home, name)
