"""What Copilot says it is doing: the events of the conversation in sight, and its hooks.

A conversation that was left may still be at work and end a turn; the log tells which one is in sight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from os.path import join
from typing import Any

from perdure.agents._json import mapping, text
from perdure.agents._records import Record, moment, newest_first
from perdure.agents._told import BUSY, FAILED, IDLE, PERMISSION, SILENT, Sign, by_hooks, by_registry, common_sign
from perdure.agents.copilot import files
from perdure.model.observation import Reading
from perdure.model.process import Process
from perdure.ports import HostView

_ASKED, _ANSWERED = "permission.requested", "permission.completed"
_BEGUN, _OVER, _RAN = "assistant.turn_start", "assistant.turn_end", "tool.execution_complete"
_SIGNS = {
    "user.message": BUSY,
    _BEGUN: BUSY,
    "assistant.message": BUSY,
    "tool.execution_start": BUSY,
    _RAN: BUSY,
    _ANSWERED: BUSY,
    _OVER: IDLE,
    "abort": IDLE,
    "session.error": FAILED,
    "session.start": IDLE,
    "session.resume": IDLE,
    "session.shutdown": SILENT,
}


def told(agent: str, chain: Sequence[Process], home: str, logs: str, host: HostView) -> list[Reading]:
    """Return what its events and its hooks say. `chain` are the processes it has started itself anew as."""
    conversation = in_sight(chain, logs, host)
    readings = by_hooks(agent, chain, host, lambda record: _sign(record, conversation))
    if conversation is None:
        return readings
    path = join(files.folder(home, conversation), files.EVENTS)
    last = _last(newest_first(path, host), chain[-1].started_at)
    return [*(by_registry(*last) if last else ()), *readings]


def in_sight(chain: Sequence[Process], logs: str, host: HostView) -> str | None:
    """Return the conversation the pane shows by the log, None when that does not tell."""
    named = (files.in_sight(process, logs, host) for process in chain)
    return next((found[0] for found in named if found is not None and found[1]), None)


def _sign(record: Mapping[str, Any], conversation: str | None) -> Sign | None:
    named = text(record.get("session_id")) or text(record.get("sessionId"))
    if None not in (named, conversation) and named != conversation:
        return None
    # It says that a conversation has begun with the first prompt in it.
    return BUSY if record.get("hook_event_name") == "SessionStart" else common_sign(record)


def _last(newest: Iterator[Record], since: datetime) -> tuple[Sign, datetime, str] | None:
    """What the newest events come to: sign, time and the event that decides."""
    answered: set[str] = set()
    found: tuple[Sign, datetime, str] | None = None
    for record in newest:
        kind, at = text(record.get("type")) or "", moment(record.get("timestamp"))
        if at is None:
            continue
        if at < since:
            break
        request = text(mapping(record.get("data")).get("requestId")) or ""
        if kind == _ASKED and request not in answered:
            # A person is asked, also when it is a sub-agent that wants to know.
            return PERMISSION, at, kind
        if kind == _ANSWERED:
            answered.add(request)
        if record.get("agentId") or kind not in _SIGNS:
            continue
        found = found or (_SIGNS[kind], at, kind)
        if kind == _RAN and found[2] == _OVER:
            # What a tool said goes to the model, in a turn that begins at once.
            found = BUSY, found[1], found[2]
        if kind in (_BEGUN, "user.message", "session.start", "session.resume"):
            break
    return found
