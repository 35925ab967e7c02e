"""Claude Code's transcripts: JSON lines, some of them huge, the last of them perhaps cut off.

One answer of the model is spread over several lines that repeat its id and its usage, so usage is never summed.
Sub-agents write their own files; a line marked `isSidechain` belongs to one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from os.path import join

from perdure.agents import _records
from perdure.agents._calls import Call, all_of, detail_of, details_of, is_recent, names_of
from perdure.agents._json import count, mapping, text
from perdure.agents._records import Record
from perdure.ports import HostView

_HEAD = 1 << 13
#: Requests kept for replay: up to 150 KB a line, and nothing in them for us.
_BULK = b'"api-request'
#: Beginnings of user's lines that the program wrote in the user's place.
_NOT_TYPED = (
    "<local-command-",
    "<command-",
    "<bash-",
    "<task-notification",
    "<system-reminder",
    "Caveat: ",
    "[Request interrupted by user",
)
_SYNTHETIC = "<synthetic>"


def newest_first(path: str, host: HostView) -> Iterator[Record]:
    """Yield the records of a transcript from its end."""
    return _records.newest_first(path, host, bulk=_BULK)


def is_prompted(path: str, host: HostView) -> bool:
    """Return whether there is something to resume: a file with a title alone cannot be resumed."""
    if (host.size(path) or 0) >= _records.FIRST_WINDOW:
        return True  # titles and modes alone never grow that long
    return any(record.get("type") in ("user", "assistant") for record in newest_first(path, host))


def is_closed(path: str, host: HostView) -> bool:
    """Return whether its last writer has left the conversation: the costs are written on leaving."""
    return next((r.get("type") == "cost-state" for r in newest_first(path, host)), False)


def started_in(path: str, host: HostView) -> str | None:
    """Return where the conversation was started."""
    first = _first_turn(path, host)
    return text(first.get("cwd")) if first else last_in(path, host)


def origin(path: str, host: HostView) -> tuple[datetime | None, str | None]:
    """Return when the conversation began, and the one it was branched from.

    A branch begins with copies of what was said before, which keep their times and name where they are from.
    """
    first = _first_turn(path, host)
    if first is None:
        return None, None
    parent = text(mapping(first.get("forkedFrom")).get("sessionId"))
    return (time_of(first), None) if parent is None else (host.created_at(path), parent)


def _first_turn(path: str, host: HostView) -> Record | None:
    """The first line that says where it was written, which is rarely far in."""
    for limit in (_HEAD, _records.FIRST_WINDOW):
        for record in _records.oldest_first(path, host, limit, bulk=_BULK):
            if text(record.get("cwd")):
                return record
    return None


def last_in(path: str, host: HostView) -> str | None:
    """Return where the conversation was last."""
    return next((cwd for record in newest_first(path, host) if (cwd := text(record.get("cwd")))), None)


def prompt_text(record: Record) -> str | None:
    """Return what a person typed, None for everything else that is written as a user's line."""
    if record.get("type") != "user" or record.get("isMeta") or record.get("isSidechain"):
        return None
    if record.get("isCompactSummary") or "toolUseResult" in record:
        return None
    if mapping(record.get("origin")).get("kind", "human") != "human":
        return None
    content = mapping(record.get("message")).get("content")
    said = content if isinstance(content, str) else _joined(content, "text")
    return None if not said or said.lstrip().startswith(_NOT_TYPED) else said


def answer(record: Record) -> Record | None:
    """Return the model's message in a line of the main conversation, None when the program wrote it itself."""
    if record.get("type") != "assistant" or record.get("isSidechain") or record.get("isApiErrorMessage"):
        return None
    message = mapping(record.get("message"))
    return None if message.get("model") == _SYNTHETIC else message


def tokens(message: Record) -> int:
    """Return what a message and all before it take up in the context, 0 when it does not say."""
    usage = mapping(message.get("usage"))
    kinds = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return sum(count(usage.get(kind)) for kind in kinds)


def time_of(record: Record) -> datetime | None:
    """Return when a record was made."""
    at = record.get("timestamp")
    return _records.moment(at) if isinstance(at, str) else None


def turns(path: str, host: HostView) -> Iterator[dict[str, object]]:
    """Yield the main conversation's turns, then those of its sub-agents, each with the sub-agent's id in `agent`."""
    yield from _turns(path, host)
    if is_recent(host):
        return
    below = join(path.removesuffix(".jsonl"), "subagents")
    for name in sorted(host.names(below)):
        if name.startswith("agent-") and name.endswith(".jsonl"):
            yield from _turns(join(below, name), host)


def _turns(path: str, host: HostView) -> Iterator[dict[str, object]]:
    held: list[dict[str, object]] = []
    message: object = None
    tools: dict[str, Call] = {}
    for record in _records.every_record(path, host, bulk=_BULK):
        turn = _turn(record, tools)
        if turn is None:
            continue
        ident = mapping(record.get("message")).get("id") if record.get("type") == "assistant" else None
        if ident is not None and ident == message:
            for earlier in held:
                earlier["tokens"] = None
        elif turn["role"] != "tool":
            yield from held
            held, message = [], ident
        held.append(turn)
    yield from held


def _turn(record: Record, tools: dict[str, Call]) -> dict[str, object] | None:
    message = mapping(record.get("message"))
    role = _role(record, message)
    if role is None or record.get("isMeta"):
        return None
    content = message.get("content")
    said = content if isinstance(content, str) else _joined(content, "tool_result" if role == "tool" else "text")
    used = _calls(content, tools)
    if not (said or used):
        return None
    return _records.turn(
        role,
        said,
        tool=names_of(used),
        detail=details_of(used),
        failed=_failed(record, content) if role == "tool" else None,
        final=_is_final(message, used) if role == "assistant" else None,
        tokens=(tokens(message) if role == "assistant" else 0) or None,
        time=time_of(record),
        agent=text(record.get("agentId")) if record.get("isSidechain") else None,
    )


def _role(record: Record, message: Record) -> str | None:
    """Who speaks; what the program itself wrote in somebody's place is the system's."""
    kind = record.get("type")
    if kind == "assistant":
        own = message.get("model") == _SYNTHETIC or record.get("isApiErrorMessage")
        return "system" if own else "assistant"
    if kind != "user":
        return None
    if _blocks(message.get("content"), "tool_result"):
        return "tool"
    return "system" if prompt_text({**record, "isSidechain": False}) is None else "user"


def _calls(content: object, tools: dict[str, Call]) -> list[Call]:
    """The tools a line calls, or whose results it brings; `tools` remembers them by call."""
    for call in _blocks(content, "tool_use"):
        if (ident := text(call.get("id"))) and (name := text(call.get("name"))):
            tools[ident] = (name, detail_of(call.get("input")))
    calls = [text(call.get("id")) for call in _blocks(content, "tool_use")]
    results = [text(result.get("tool_use_id")) for result in _blocks(content, "tool_result")]
    return [tools.get(ident, ("?", None)) for ident in calls + results if ident]


def _failed(record: Record, content: object) -> bool | None:
    """A command that was sent to the background has come to nothing yet, nor has a sub-agent."""
    told = mapping(record.get("toolUseResult"))
    if told.get("backgroundTaskId") or told.get("isAsync") or told.get("interrupted"):
        return None
    return all_of(bool(result.get("is_error")) for result in _blocks(content, "tool_result"))


def _is_final(message: Record, used: list[Call]) -> bool | None:
    stopped = text(message.get("stop_reason"))
    return None if stopped is None else stopped == "end_turn" and not used


def _blocks(content: object, kind: str) -> list[Record]:
    blocks = content if isinstance(content, list) else ()
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == kind]


def _joined(content: object, kind: str) -> str | None:
    """The text of all blocks of one kind."""
    parts: list[str] = []
    for block in _blocks(content, kind):
        value = block.get("content" if kind == "tool_result" else "text")
        part = _joined(value, "text") if isinstance(value, list) else text(value)
        if part:
            parts.append(part)
    return "\n".join(parts) or None
