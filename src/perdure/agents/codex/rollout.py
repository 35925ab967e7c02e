"""Codex's rollouts: JSON lines of `{"timestamp", "type", "payload"}`, the last of them perhaps cut off.

What went to and came from the model are `response_item`s; `event_msg`s say the same again for the screen, and what
became of each turn. A forked thread's file begins where it was forked: what came before is in its parent's.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from os.path import dirname

from msgspec import Struct

from perdure.agents import _records
from perdure.agents._calls import Call, detail_of, failed_by, is_recent
from perdure.agents._json import count, decode_object, mapping, text
from perdure.agents._records import Record, moment
from perdure.agents.codex.home import find_rollout, header, homes
from perdure.ports import HostView

#: Beginnings of what the program says to the model in the user's place, in versions that do not mark it.
_NOT_TYPED = ("<", "# AGENTS.md instructions")
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "mcp_tool_call", "web_search_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_STARTED, _OVER = "task_started", frozenset({"task_complete", "turn_aborted"})
#: Forks of forks that are followed to where they began.
_DEEPEST = 16

Turn = dict[str, object]


def is_packed(path: str) -> bool:
    """Return whether a rollout is compressed, so that only its name tells anything."""
    return path.endswith(".zst")


def payload_of(record: Record, kind: str) -> Record:
    """Return what a record of this kind says, empty for one of another."""
    return mapping(record.get("payload")) if record.get("type") == kind else {}


def last_in(path: str, host: HostView) -> str | None:
    """Return where a thread last worked, or began."""
    for record in _records.newest_first(path, host):
        if cwd := text(payload_of(record, "turn_context").get("cwd")):
            return cwd
    return text(header(path, host).get("cwd"))


class LastTurn(Struct, frozen=True, kw_only=True):
    """How far the last turn of a thread has come."""

    #: What the record is called that tells.
    event: str
    at: datetime | None
    #: It has begun and not ended.
    running: bool
    failed: bool


def last_turn(path: str, host: HostView) -> LastTurn | None:
    """Return what is written of a thread's last turn, None when there was none."""
    for record in _records.newest_first(path, host):
        payload = payload_of(record, "event_msg")
        event = text(payload.get("type"))
        if event is not None and (event == _STARTED or event in _OVER):
            return LastTurn(event=event, at=_time(record), running=event == _STARTED, failed=bool(payload.get("error")))
    return None


def is_mid_turn(path: str, host: HostView) -> bool:
    """Return whether the last turn of a thread has begun and not ended."""
    turn = last_turn(path, host)
    return turn is not None and turn.running


def prompt_text(item: Record) -> str | None:
    """Return what a person typed, None for everything else that is said to the model in the user's role."""
    if item.get("type") != "message" or item.get("role") != "user":
        return None
    said = _joined(item.get("content"))
    kinds = mapping(item.get("internal_chat_message_metadata_passthrough")).get("content_item_kinds")
    if isinstance(kinds, list):
        return said if any(isinstance(kind, str) and kind.startswith("user.") for kind in kinds) else None
    return None if said is None or said.lstrip().startswith(_NOT_TYPED) else said


def ancestors(meta: Record, home: str, host: HostView) -> Iterator[tuple[str, str | None, int | None]]:
    """Yield the threads a thread was forked from, nearest first: id, file, and how many bytes of it are history."""
    for _ in range(_DEEPEST):
        base = mapping(meta.get("history_base"))
        parent = text(base.get("thread_id")) or text(meta.get("forked_from_id"))
        if parent is None:
            return
        path = find_rollout(home, parent, host)
        yield parent, path, count(base.get("end_byte_offset")) or None
        if path is None or is_packed(path):
            return
        meta = header(path, host)


def turns(path: str, host: HostView) -> Iterator[Turn]:
    """Yield the turns of a thread, those it took over from the threads it was forked from first, then its sub-agents'."""
    if is_recent(host):
        yield from _turns(_records_of(path, host, None), None, [])
        return
    meta, home = header(path, host), _home_of(path)
    # Older versions copied the history into the fork: only one that says where its history ends is without it.
    if meta.get("history_base"):
        for _, parent, end in reversed(list(ancestors(meta, home, host))):
            if parent is not None and not is_packed(parent):
                yield from _turns(_records_of(parent, host, end), None, [])
    spawned: list[str] = []
    yield from _turns(_records_of(path, host, None), None, spawned)
    for agent in spawned:
        below = find_rollout(home, agent, host)
        if below is not None and not is_packed(below):
            yield from _turns(_records_of(below, host, None), agent, [])


def turns_of(conversation: str, host: HostView) -> Iterator[Turn]:
    """Yield the turns of a thread, looked for in the usual places."""
    for home in homes(host):
        path = find_rollout(home, conversation, host)
        if path is not None:
            if not is_packed(path):
                yield from turns(path, host)
            return


def _home_of(path: str) -> str:
    """The home a rollout is in, four levels above it, or one when it is archived."""
    above = dirname(path)
    return dirname(above) if above.endswith("/archived_sessions") else dirname(dirname(dirname(dirname(above))))


def _records_of(path: str, host: HostView, end: int | None) -> Iterator[Record]:
    if end is None:
        yield from _records.every_record(path, host)
    else:
        yield from _records.oldest_first(path, host, end)


def _turns(records: Iterator[Record], agent: str | None, spawned: list[str]) -> Iterator[Turn]:
    """Yield turns, an answer once its tokens are known; note in `spawned` which sub-agents were begun."""
    held: list[Turn] = []
    tools: dict[str, Call] = {}
    for record in records:
        usage = payload_of(record, "token_usage_record").get("usage")
        if usage is not None:
            _count(held, usage)
            continue
        _end(held, payload_of(record, "event_msg"))
        turn = _turn(record, tools, agent, spawned)
        if turn is not None:
            if turn["role"] != "tool":
                yield from held
                held = []
            held.append(turn)
    yield from held


def _count(held: list[Turn], usage: object) -> None:
    """Give the last answer the tokens that its request is said to have taken."""
    answer = next((turn for turn in reversed(held) if turn["role"] == "assistant"), None)
    if answer is not None:
        answer["tokens"] = count(mapping(usage).get("total_tokens")) or None


def _end(held: list[Turn], event: Record) -> None:
    """Say of the last answer whether it was the last of its turn, where only the turn's end says so."""
    last = held[-1] if held else None
    if last is not None and last["role"] == "assistant" and last["tool"] is None and event.get("type") in _OVER:
        last["final"] = event.get("type") == "task_complete" and not event.get("error")


def _turn(record: Record, tools: dict[str, Call], agent: str | None, spawned: list[str]) -> Turn | None:
    time = _time(record)
    item = payload_of(record, "response_item")
    kind = item.get("type")
    if kind == "message":
        role = text(item.get("role"))
        said = _joined(item.get("content")) if role == "assistant" else prompt_text(item)
        if said is None and (skill := _skill(item)):
            return _records.turn("system", skill, time=time, agent=agent)
        phase = text(item.get("phase"))
        final = None if phase is None else phase == "final_answer"
        return _records.turn(role or "user", said, time=time, agent=agent, final=final) if said else None
    if kind in _CALLS:
        name = text(item.get("name")) or str(kind).removesuffix("_call")
        given = next((item[key] for key in ("arguments", "input", "action") if item.get(key)), None)
        tools[text(item.get("call_id")) or ""] = (name, detail_of(given))
        return _records.turn("assistant", None, tool=name, detail=detail_of(given), time=time, agent=agent)
    if kind in _RESULTS:
        name, detail = tools.get(text(item.get("call_id")) or "", ("?", None))
        said = _output(item.get("output"))
        if name == "spawn_agent" and (begun := text((decode_object(said.encode()) or {}).get("agent_id"))):
            spawned.append(begun)
        failed = failed_by(said, above=True)
        return _records.turn("tool", said, tool=name, detail=detail, failed=failed, time=time, agent=agent)
    said = _told(record)
    return _records.turn("system", said, time=time, agent=agent) if said else None


def _skill(item: Record) -> str | None:
    """A skill that a person asked for by name: what it says is put before the model in the person's place."""
    said = _joined(item.get("content")) if item.get("role") == "user" else None
    return said if said is not None and said.startswith("<skill>") else None


def _told(record: Record) -> str | None:
    """What the program itself has to say: the summary that took the place of what came before, or why a turn failed."""
    if summary := text(payload_of(record, "compacted").get("message")):
        return summary
    event = payload_of(record, "event_msg")
    return text(mapping(event.get("error")).get("message")) if event.get("type") == "task_complete" else None


def _time(record: Record) -> datetime | None:
    at = record.get("timestamp")
    return moment(at) if isinstance(at, str) else None


def _joined(content: object) -> str | None:
    blocks = content if isinstance(content, list) else ()
    parts = [text(block.get("text")) for block in blocks if isinstance(block, dict)]
    return "\n".join(part for part in parts if part) or None


def _output(output: object) -> str:
    if isinstance(output, str):
        return output
    return _joined(output) or text(mapping(output).get("content")) or ""
