"""Where Copilot keeps its conversations, and how a process is tied to the one it shows.

A process can have several conversations open, and goes from one to the other without closing any. Each that was written
to is locked by a file held open. Which of them is in sight stands in the log alone, at once and for every way of getting
there; the log is called after the moment the process began it and after its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from os.path import basename, dirname, isabs, join

from msgspec import Struct

from perdure.agents._json import decode_object, mapping, text
from perdure.agents._records import moment
from perdure.model.process import Process
from perdure.ports import HostView

EVENTS, WORKSPACE = "events.jsonl", "workspace.yaml"
USUAL_HOME = ".copilot"

_STATE = "session-state"
_IN_SIGHT = b"egistering foreground session: "
_ENTERED = b"Registering"
#: A conversation may have been in sight for days, and its line is that far up in the log.
_FIRST_WINDOW, _MOST_LOG = 1 << 16, 1 << 24
#: Clocks are read twice, and the kernel counts a process's start in hundredths.
_SLACK = timedelta(seconds=2)


class Workspace(Struct, frozen=True, kw_only=True):
    """What `workspace.yaml` says of a conversation."""

    name: str | None = None
    cwd: str | None = None
    branch: str | None = None
    created_at: str | None = None


def config_home(process: Process, chosen: str | None, host: HostView) -> str:
    """Return the directory a process keeps everything in; `chosen` is what its command line says."""
    own = chosen or process.environ.get("COPILOT_HOME")
    if own:
        return own if isabs(own) else join(process.cwd or host.home, own)
    return join(process.environ.get("HOME") or host.home, USUAL_HOME)


def profile(home: str, host: HostView) -> str | None:
    """Return the name of a home that is not the usual one."""
    usual = host.physical(join(host.home, USUAL_HOME))
    return None if host.physical(home) == usual else basename(home.rstrip("/"))


def folder(home: str, conversation: str) -> str:
    """Return the directory of a conversation."""
    return join(home, _STATE, conversation)


def conversations(home: str, host: HostView) -> Sequence[str]:
    """Return the names of the directories conversations are in."""
    return host.names(join(home, _STATE))


def held(process: Process, host: HostView) -> list[str]:
    """Return the conversations a process has locked: each by a file of its number that it holds open."""
    lock = f"inuse.{process.pid}.hold"
    paths = [dirname(path) for path in host.open_files(process.pid) if basename(path) == lock]
    return list(dict.fromkeys(basename(path) for path in paths if basename(dirname(path)) == _STATE))


def is_locked(home: str, conversation: str, host: HostView) -> bool:
    """Return whether any process has locked a conversation."""
    return any(name.startswith("inuse.") and name.endswith(".lock") for name in host.names(folder(home, conversation)))


def opened_since(process: Process, home: str, host: HostView) -> list[str] | None:
    """Return the conversations that some process, perhaps this one, has opened since this one began.

    None: there is a list of them that cannot be read.
    """
    raw = host.read(join(home, "open-sessions-state.json"))
    entries = decode_object(raw) if raw else {}
    if entries is None:
        return None
    found = []
    for conversation, entry in entries.items():
        opened = moment(mapping(entry).get("openedAt"))
        if opened is None or opened >= process.started_at - _SLACK:
            found.append(conversation)
    return found


def in_sight(process: Process, logs: str, host: HostView) -> tuple[str, bool] | None:
    """Return the conversation the log of a process names last, and whether it is there still; None when none is named."""
    path = log(process, logs, host)
    window = _FIRST_WINDOW
    while path is not None:
        data = host.read(path, limit=window, tail=True) or b""
        found = _last_named(data)
        if found is not None or len(data) < window or window >= _MOST_LOG:
            return found
        window *= 4
    return None


def log(process: Process, logs: str, host: HostView) -> str | None:
    """Return the log of this very process: one it holds open, or one of its number that was begun after it."""
    end = f"-{process.pid}.log"
    paths = [path for path in host.open_files(process.pid) if path.endswith(end)]
    paths = paths or [join(logs, name) for name in host.names(logs) if name.endswith(end)]
    since = [(begun, path) for path in paths if (begun := _begun(path)) and begun >= process.started_at - _SLACK]
    return max(since)[1] if since else None


def _begun(path: str) -> datetime | None:
    kind, _, rest = basename(path).partition("-")
    number = rest.partition("-")[0]
    return moment(int(number)) if kind == "process" and number.isascii() and number.isdigit() else None


def _last_named(data: bytes) -> tuple[str, bool] | None:
    at = len(data)
    while (at := data.rfind(_IN_SIGHT, 0, at)) >= 0:
        line = data[data.rfind(b"\n", 0, at) + 1 :].partition(b"\n")
        words = line[0].split(b" ")
        # Six words and a line's end: the phrase may be quoted in a longer line, and the last one be half written.
        if line[1] and len(words) == 6 and words[1] == b"[INFO]" and moment(words[0].decode("ascii", "replace")):
            return words[5].decode("ascii", "replace"), words[2] == _ENTERED
    return None


def written_at(home: str, conversation: str, host: HostView) -> datetime | None:
    """Return when a conversation was last written to."""
    place = folder(home, conversation)
    return host.modified_at(join(place, EVENTS)) or host.modified_at(join(place, WORKSPACE))


def workspace(home: str, conversation: str, host: HostView) -> Workspace:
    """Return what is written about a conversation."""
    raw = host.read(join(folder(home, conversation), WORKSPACE), limit=1 << 16) or b""
    values = _flat_yaml(raw.decode("utf-8", "replace"))
    return Workspace(
        name=text(values.get("name")),
        cwd=text(values.get("cwd")),
        branch=text(values.get("branch")),
        created_at=text(values.get("created_at")),
    )


def _flat_yaml(document: str) -> dict[str, str]:
    """Return the values of a mapping without levels, whose texts are plain, quoted, or a block of indented lines."""
    values: dict[str, str] = {}
    key = ""
    block: list[str] = []
    for line in document.split("\n"):
        if key and (line.startswith("  ") or not line):
            block.append(line[2:])
            values[key] = "\n".join(block).strip()
            continue
        key = ""
        name, colon, value = line.partition(":")
        if not colon or not name or name[0] in " #":
            continue
        value = value.strip()
        if value[:1] in ("|", ">"):
            key, block = name, []
        values[name] = _scalar(value) if not key else ""
    return values


def _scalar(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        decoded = decode_object(b'{"":' + value.encode("utf-8", "replace") + b"}")
        return text((decoded or {}).get("")) or value[1:-1]
    return value
