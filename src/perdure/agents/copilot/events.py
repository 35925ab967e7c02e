"""Copilot's conversations: one JSON line an event, sub-agents' among them with an `agentId`.

Going back in a conversation takes lines away again, and forking it copies them, so a file is all there is to read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from os.path import basename, dirname

from msgspec import Struct

from perdure.agents._calls import Call, detail_of, details_of, names_of
from perdure.agents._json import count, decode_object, mapping, one_line, text
from perdure.agents._records import Record, every_record, moment, newest_first, oldest_first, turn
from perdure.model.agent import UUID
from perdure.model.identity import AgentDetails
from perdure.ports import HostView

_HEAD = 1 << 12
#: How far back the line about a fork is looked for; it is anywhere, and this is done on every save.
_RECENT = 1 << 20
_FORK = b'"fork"'


class _Latest(Struct):
    """The newest of each thing, filled from the end of the file backwards."""

    used: int | None = None
    limit: int | None = None
    model: str | None = None
    task: str | None = None
    branch: str | None = None
    at: object = None

    @property
    def complete(self) -> bool:
        return None not in (self.used, self.limit, self.model, self.task)


def describe(path: str, host: HostView) -> AgentDetails:
    """Return what the events of a conversation say."""
    latest = _Latest()
    for record in newest_first(path, host):
        _take(latest, record)
        if latest.complete:
            break
    first = next(iter(oldest_first(path, host, _HEAD)), {})
    return AgentDetails(
        task=one_line(latest.task),
        model=one_line(latest.model),
        branch=one_line(latest.branch),
        parent=_parent(path, host),
        version=one_line(text(mapping(first.get("data")).get("copilotVersion"))),
        context_used=latest.used,
        context_limit=latest.limit,
        last_activity_at=moment(latest.at),
    )


def _take(latest: _Latest, record: Record) -> None:
    kind, data = record.get("type"), mapping(record.get("data"))
    latest.at = latest.at or (record.get("timestamp") if moment(record.get("timestamp")) else None)
    if record.get("agentId"):
        return
    if kind == "session.usage_record":
        _take_usage(latest, mapping(data.get("usage")))
    elif kind == "session.compaction_complete":
        latest.used = latest.used or count(data.get("postCompactionTokens")) or None
    elif kind == "session.model_change":
        latest.model = latest.model or text(data.get("newModel"))
    elif kind == "user.message":
        latest.task = latest.task or _typed(data)
    elif kind in ("session.start", "session.resume", "session.context_changed"):
        latest.branch = latest.branch or text(mapping(data.get("context")).get("branch"))


def _take_usage(latest: _Latest, usage: Record) -> None:
    latest.used = latest.used or (count(usage.get("inputTokens")) + count(usage.get("outputTokens"))) or None
    latest.limit = latest.limit or count(usage.get("maxPromptTokens")) or None
    latest.model = latest.model or text(usage.get("model"))


def _typed(data: Record) -> str | None:
    """What a person typed; what the program or another agent says in a person's place has a source."""
    return text(data.get("content")) if data.get("source") in (None, "user") else None


def _parent(path: str, host: HostView) -> str | None:
    """The conversation this one was forked from: `Forked from "name" (id) as "name" (id).`

    The other one has a line of its own, of what it was forked into.
    """
    for line in (host.read(path, limit=_RECENT, tail=True) or b"").split(b"\n"):
        if _FORK not in line:
            continue
        message = text(mapping((decode_object(line) or {}).get("data")).get("message")) or ""
        named = re.findall(rf"\(({UUID})\)", message)
        if message.startswith("Forked from") and named[1:] and named[-1] == basename(dirname(path)):
            return str(named[-2])
    return None


def turns(path: str, host: HostView) -> Iterator[dict[str, object]]:
    """Yield the turns in order, a sub-agent's with its id."""
    tools: dict[str, Call] = {}
    spent: dict[str | None, int] = {}
    for record in every_record(path, host):
        data, agent = mapping(record.get("data")), text(record.get("agentId"))
        if record.get("type") == "session.usage_record":
            usage = mapping(data.get("usage"))
            spent[agent] = count(usage.get("inputTokens")) + count(usage.get("outputTokens"))
            continue
        said = _said(text(record.get("type")) or "", data, tools)
        if said is None:
            continue
        tokens = spent.pop(agent, 0) if said["role"] == "assistant" else 0
        yield {**said, "tokens": tokens or None, "time": moment(record.get("timestamp")), "agent": agent}


def _said(kind: str, data: Record, tools: dict[str, Call]) -> dict[str, object] | None:
    """The turn an event comes to; `tools` remembers the calls."""
    if kind == "user.message":
        return turn("user", text(data.get("content"))) if text(data.get("content")) else None
    if kind == "assistant.message":
        used, words = _called(data, tools), text(data.get("content"))
        if not (words or used):
            return None
        return turn("assistant", words, tool=names_of(used), detail=details_of(used), final=not used)
    if kind == "tool.execution_complete":
        outcome = text(mapping(data.get("result")).get("content")) or text(mapping(data.get("error")).get("message"))
        name, detail = tools.get(text(data.get("toolCallId")) or "", ("?", None))
        return turn("tool", outcome, tool=name, detail=detail, failed=_failed(data))
    if kind == "session.error" and text(data.get("message")):
        return turn("system", text(data.get("message")))
    if kind == "session.compaction_complete" and text(data.get("summaryContent")):
        return turn("system", text(data.get("summaryContent")))
    if kind in ("tool.execution_start", "tool.user_requested") and text(data.get("toolName")):
        tools[text(data.get("toolCallId")) or ""] = (str(data["toolName"]), detail_of(data.get("arguments")))
    return None


def _failed(data: Record) -> bool | None:
    """A command that failed is a success of the tool that ran it; one that goes on has no exit code."""
    code = mapping(data.get("shellExecution")).get("exitCode", 0 if "shellExecution" not in data else None)
    if data.get("success") is not True:
        return True
    return code != 0 if isinstance(code, int) else None


def _called(data: Record, tools: dict[str, Call]) -> list[Call]:
    requests = data.get("toolRequests")
    calls = []
    for request in requests if isinstance(requests, list) else ():
        name = text(mapping(request).get("name"))
        if name:
            calls.append((name, detail_of(mapping(request).get("arguments"))))
            tools[text(mapping(request).get("toolCallId")) or ""] = calls[-1]
    return calls
