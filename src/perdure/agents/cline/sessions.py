"""Where Cline keeps its sessions, and what ties a process to the one it shows.

A session's own file has a process's number, but that is the number of whoever runs it: the hub that all panes share,
once there is one, or a process that is long gone. The log, which all share too, says of every process which session it
began or went on with, under its own number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from os.path import basename, dirname, isabs, join
from typing import Any

from msgspec import Struct, json

from perdure.agents._calls import Call, all_of, detail_of, details_of, is_recent, names_of
from perdure.agents._json import count, decode_object, mapping, text
from perdure.agents._records import FIRST_WINDOW, LAST_WINDOW, Record, moment, newest_first, turn
from perdure.model.process import Process
from perdure.ports import HostView

USUAL_SESSIONS = ".cline/data/sessions"
ID = r"\d{10,}_[0-9A-Za-z]+"

_MESSAGES = ".messages.json"
_MOST_READ = 1 << 26
_STARTED, _STOPPED = "session.started", "session.stopped"
#: Clocks are read twice, and the kernel counts a process's start in hundredths.
_SLACK = timedelta(seconds=2)
#: A prompt is wrapped like this; the same within a tool's output has its quotes escaped once more.
_PROMPT = rb'"text":\s*"<user_input mode=\\"[^"\\]*\\">'
_END = b"</user_input>"
_METRICS = rb'"metrics":\s*(\{[^{}]*\})'
#: What the program adds to a prompt.
_ADDED = r"</?user_input\b[^>]*>|<mode_notice>.*?</mode_notice>\s*"


class Session(Struct, frozen=True, kw_only=True):
    """What a session's own file says."""

    id: str
    pid: int | None = None
    started_at: datetime | None = None
    #: running, pending (a question is open), idle; completed, failed and the like once it was left.
    status: str | None = None
    cwd: str | None = None
    provider: str | None = None
    model: str | None = None
    branch: str | None = None
    title: str | None = None
    prompt: str | None = None
    parent: str | None = None
    version: str | None = None
    compaction: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether some process is in it, or was when that was killed."""
        return self.status in ("running", "pending", "idle")


class Entered(Struct, frozen=True, kw_only=True):
    """The last the log tells of a process."""

    session: str
    at: datetime
    #: It was left again.
    stopped: bool
    #: Sessions other processes went to later.
    others: frozenset[str]


def data_home(process: Process, options: Mapping[str, str], host: HostView) -> str:
    """Return the directory a process keeps its data in; `options` are those of its command line."""
    environ, cwd = process.environ, process.cwd or host.home
    chosen = options.get("--data-dir") or environ.get("CLINE_DATA_DIR")
    if chosen:
        return chosen if isabs(chosen) else join(cwd, chosen)
    own = options.get("--config") or environ.get("CLINE_DIR")
    home = (own if isabs(own) else join(cwd, own)) if own else join(environ.get("HOME") or host.home, ".cline")
    return join(home, "data")


def sessions_home(process: Process, options: Mapping[str, str], host: HostView) -> str:
    """Return the directory of a process's sessions."""
    chosen = process.environ.get("CLINE_SESSION_DATA_DIR")
    if chosen and "--data-dir" not in options:
        return chosen if isabs(chosen) else join(process.cwd or host.home, chosen)
    return join(data_home(process, options, host), "sessions")


def profile(home: str, host: HostView) -> str | None:
    """Return the name of a place for sessions that is not the usual one."""
    if host.physical(home) == host.physical(join(host.home, USUAL_SESSIONS)):
        return None
    parts = [part for part in home.split("/") if part not in ("", "sessions", "data")]
    return parts[-1] if parts else home


def find(home: str, id: str, host: HostView) -> Session | None:
    """Return a session by its id, None when nothing was ever said in it."""
    raw = decode_object(host.read(join(home, id, f"{id}.json")))
    if raw is None:
        return None
    metadata, pid = mapping(raw.get("metadata")), raw.get("pid")
    return Session(
        id=id,
        pid=pid if isinstance(pid, int) else None,
        started_at=moment(raw.get("started_at")),
        status=text(raw.get("status")),
        cwd=text(raw.get("cwd")),
        provider=text(raw.get("provider")),
        model=text(raw.get("model")),
        branch=text(mapping(metadata.get("git")).get("branch")),
        title=text(metadata.get("title")),
        prompt=_typed(text(raw.get("prompt"))),
        parent=text(mapping(metadata.get("fork")).get("forkedFromSessionId")),
        version=text(mapping(metadata.get("sessionHistoryOrigin")).get("version")),
        compaction=text(raw.get("compaction_path")),
    )


def began_at(id: str) -> datetime | None:
    """Return when a session began, which its id tells."""
    number = id.partition("_")[0]
    return moment(int(number)) if number.isascii() and number.isdigit() and len(number) < 16 else None


def log_path(process: Process, data: str, host: HostView) -> str:
    """Return the log a process writes, with all others."""
    held = (path for path in host.open_files(process.pid) if basename(path) == "cline.log")
    return next(held, None) or process.environ.get("CLINE_LOG_PATH") or join(data, "logs", "cline.log")


def entered(process: Process, data: str, host: HostView) -> Entered | None:
    """Return what the log tells last of a process, None when it tells nothing."""
    others: set[str] = set()
    for record in newest_first(log_path(process, data, host), host, only=b'"session.st'):
        event, at = record.get("event"), moment(record.get("time"))
        session = text(mapping(record.get("properties")).get("sessionId"))
        if event not in (_STARTED, _STOPPED) or session is None or at is None:
            continue
        if at < process.started_at - _SLACK:
            return None
        if record.get("pid") == process.pid:
            return Entered(session=session, at=at, stopped=event == _STOPPED, others=frozenset(others))
        others.add(session)
    return None


# -- what was said ------------------------------------------------------------------------------------------------


def messages_path(home: str, id: str) -> str:
    """Return the file a session's messages are in."""
    return join(home, id, id + _MESSAGES)


def last_prompt(path: str, host: HostView) -> str | None:
    """Return what a person said last, as far as it was written: that is done when the answer is complete."""
    found = _last(path, _PROMPT, host)
    if found is None:
        return None
    data, match = found
    end = data.find(_END, match.end())
    said = _decoded(b'"' + data[match.end() : end] + b'"') if end >= 0 else None
    return _typed(text(said))


def context_used(path: str, host: HostView) -> int | None:
    """Return the tokens of the last request and its answer; what came out of a cache is counted with the request."""
    found = _last(path, _METRICS, host)
    metrics = decode_object(found[1][1]) if found else None
    return (count(metrics.get("inputTokens")) + count(metrics.get("outputTokens")) or None) if metrics else None


def _last(path: str, pattern: bytes, host: HostView) -> tuple[bytes, re.Match[bytes]] | None:
    """The end of a file that is one document, and the last place in it a pattern fits."""
    window = FIRST_WINDOW
    while True:
        data = host.read(path, limit=window, tail=True) or b""
        found = list(re.finditer(pattern, data))
        if found:
            return data, found[-1]
        if len(data) < window or window >= LAST_WINDOW:
            return None
        window *= 4


def _decoded(raw: bytes) -> Any:
    try:
        return json.decode(raw)
    except ValueError:
        return None


def _typed(said: str | None) -> str | None:
    return text(re.sub(_ADDED, "", said, flags=re.DOTALL).strip()) if said else None


def has_messages(path: str, host: HostView) -> bool:
    """Return whether a file has messages, or may have: it cannot be read as one of these."""
    found = decode_object(host.read(path, limit=_MOST_READ))
    return found is None or found.get("messages", []) != []


def turns(path: str, host: HostView) -> Iterator[dict[str, object]]:
    """Yield the turns in order, then those of its sub-agents, each with its id."""
    yield from _turns(path, None, host)
    if is_recent(host):
        return
    for name in sorted(host.names(dirname(path))):
        if name.startswith("agent_") and name.endswith(_MESSAGES):
            yield from _turns(join(dirname(path), name), name.removesuffix(_MESSAGES), host)


def _turns(path: str, agent: str | None, host: HostView) -> Iterator[dict[str, object]]:
    messages = (decode_object(host.read(path, limit=_MOST_READ)) or {}).get("messages")
    tools: dict[str, Call] = {}
    for message in messages if isinstance(messages, list) else ():
        yield from _said(mapping(message), agent, tools)


def _said(message: Record, agent: str | None, tools: dict[str, Call]) -> Iterator[dict[str, object]]:
    role, content, at = message.get("role"), message.get("content"), moment(message.get("ts"))
    blocks = [mapping(block) for block in content] if isinstance(content, list) else [{"type": "text", "text": content}]
    if role not in ("user", "assistant"):
        return
    said = "\n".join(part for block in blocks if block.get("type") == "text" and (part := text(block.get("text"))))
    called = [_call(block, tools) for block in blocks if block.get("type") == "tool_use"]
    metrics = mapping(message.get("metrics"))
    tokens = count(metrics.get("inputTokens")) + count(metrics.get("outputTokens"))
    own = _typed(said) if role == "user" else said
    if own or called:
        names, details = names_of(called), details_of(called)
        yield turn(str(role), own, tool=names, detail=details, tokens=tokens or None, time=at, agent=agent)
    for block in blocks:
        if block.get("type") == "tool_result":
            detail = tools.get(text(block.get("tool_use_id")) or "", ("", None))[1]
            result, name, failed = _result(block.get("content")), text(block.get("name")), _failed(block)
            yield turn("tool", result, tool=name, detail=detail, failed=failed, time=at, agent=agent)


def _call(block: Record, tools: dict[str, Call]) -> Call:
    call = (text(block.get("name")) or "?", detail_of(block.get("input")))
    tools[text(block.get("id")) or ""] = call
    return call


def _failed(block: Record) -> bool | None:
    """An answer is a list of what became of each thing that was asked for."""
    if block.get("is_error"):
        return True
    parts = [mapping(part) for part in block["content"]] if isinstance(block.get("content"), list) else []
    return all_of(None if not isinstance(part.get("success"), bool) else not part["success"] for part in parts)


def _result(content: object) -> str | None:
    if isinstance(content, list):
        return "\n".join(part for block in content if (part := text(mapping(block).get("text")))) or _encoded(content)
    return text(content) if isinstance(content, str) else (_encoded(content) if content else None)


def _encoded(content: object) -> str:
    return json.encode(content).decode("utf-8", "replace")
