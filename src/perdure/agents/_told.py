"""What agents say themselves about what they are doing, as readings.

Of the records that hooks leave, the newest decides: there is one of each event. Nobody tells when somebody has answered
or interrupted, so what a record says may be over; that is for others to hold against the screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from perdure.agents._json import decode_object, mapping, text
from perdure.agents._records import moment
from perdure.model.observation import Reading, Source
from perdure.model.process import Process
from perdure.model.run import Confidence, Reason, RunState
from perdure.ports import HostView


class Sign(Struct, frozen=True):
    """What an event or a field means for the conversation a person is in."""

    #: None: from then on it cannot tell.
    state: RunState | None
    reason: Reason | None = None


IDLE, BUSY, FAILED = Sign(RunState.IDLE), Sign(RunState.BUSY), Sign(RunState.ERROR)
PERMISSION, QUESTION = Sign(RunState.ATTENTION, Reason.PERMISSION), Sign(RunState.ATTENTION, Reason.QUESTION)
SILENT = Sign(None)

#: Says what a record means; None: nothing, so that what came before it still holds.
ReadSign = Callable[[Mapping[str, Any]], Sign | None]

#: Records this close together may have been written in another order than things happened: each by a shell of its own.
_TOGETHER = timedelta(milliseconds=50)
#: In this order things follow each other at once: a conversation ends and the next one begins, what was typed ahead is
#: sent as soon as a turn ends, a turn asks for something as soon as it begins.
_ORDER = (None, RunState.ERROR, RunState.IDLE, RunState.BUSY, RunState.ATTENTION)
#: Clocks are read twice.
_SLACK = timedelta(seconds=1)

#: Tools that are nothing but a question.
_QUESTIONS = frozenset({"AskUserQuestion", "ask_user_question", "ask_user"})
_NOTIFIED = {
    "permission_prompt": PERMISSION,
    "ToolPermission": PERMISSION,
    "elicitation_dialog": QUESTION,
    "elicitation_prompt": QUESTION,
    "question": QUESTION,
    "idle_prompt": IDLE,
}
_COMMON = {"UserPromptSubmit": BUSY, "SessionStart": IDLE, "Stop": IDLE, "SessionEnd": SILENT}


class _Said(Struct, frozen=True, kw_only=True):
    """What one record says."""

    sign: Sign
    event: str
    at: datetime
    #: The agent itself said when.
    dated: bool


def by_hooks(agent: str, processes: Iterable[Process], host: HostView, read: ReadSign) -> list[Reading]:
    """Return what the hooks of any of these processes say, which is at most one reading."""
    said = [each for process in processes for each in _records(agent, process, host, read)]
    # The first of equals: they come as the files have it, newest first.
    newest = max(said, key=lambda each: each.at, default=None)
    if newest is None:
        return []
    if not newest.dated:
        close = [each for each in said if newest.at - each.at <= _TOGETHER]
        newest = max(close, key=lambda each: (_ORDER.index(each.sign.state), each.at))
    return [_reading(Source.HOOK, newest.sign, newest.at, newest.event, Confidence.HIGH)]


def by_registry(sign: Sign, at: datetime, rule: str, *, complete: bool = False) -> list[Reading]:
    """Return what an agent keeps about itself as the one reading of it. `complete`: it tells all that can happen."""
    return [_reading(Source.REGISTRY, sign, at, rule, Confidence.HIGH if complete else Confidence.MEDIUM)]


def common_sign(record: Mapping[str, Any]) -> Sign | None:
    """Return what an event that is called as Claude Code calls it means."""
    event = record.get("hook_event_name")
    # A person is asked in this pane, whoever wants to know; what else a sub-agent does is not what the agent does.
    if event == "PermissionRequest":
        return QUESTION if record.get("tool_name") in _QUESTIONS else PERMISSION
    if event == "Notification":
        return notified(record)
    if record.get("agent_id") or (event == "SessionStart" and record.get("source") == "compact"):
        # Compacting goes on in the middle of a turn, or is over at once.
        return None
    return _COMMON.get(str(event))


def notified(record: Mapping[str, Any]) -> Sign | None:
    """Return what a notification means, by its type; None for one that is only for information."""
    kind = text(record.get("notification_type"))
    if kind is not None:
        asks = mapping(record.get("details")).get("type") in _QUESTIONS
        return QUESTION if asks else _NOTIFIED.get(kind)
    # Versions that do not say the type say it in words.
    said = text(record.get("message")) or ""
    if "your permission" in said:
        return PERMISSION
    return IDLE if "waiting for your input" in said else None


def _records(agent: str, process: Process, host: HostView, read: ReadSign) -> Iterable[_Said]:
    for written, raw in host.hooks(agent, process):
        record = decode_object(raw)
        # One that cannot be read: something has happened, and nobody knows what.
        sign = SILENT if record is None else read(record)
        if sign is not None and written >= process.started_at:
            stamp = moment(record.get("timestamp")) if record else None
            dated = stamp is not None and process.started_at <= stamp <= written + _SLACK
            event = text(record.get("hook_event_name")) if record else None
            yield _Said(sign=sign, event=event or "", at=stamp if dated and stamp else written, dated=dated)


def _reading(source: Source, sign: Sign, at: datetime, rule: str, confidence: Confidence) -> Reading:
    return Reading(source=source, at=at, state=sign.state, reason=sign.reason, rule=rule, confidence=confidence)
