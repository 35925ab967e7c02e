"""Qwen Code's transcripts: JSON lines, each naming the one it follows.

Two processes in one conversation, or a rewind, give a line two followers. What is resumed, and told here, is the branch
the last line ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from perdure.agents import _records
from perdure.agents._calls import Call, details_of, failed_by, names_of
from perdure.agents._json import count, mapping, text
from perdure.agents._kin import answered, calls_in, parts_of, said
from perdure.agents._records import Record, moment, turn
from perdure.ports import HostView

_HEAD = 1 << 14


def first_line(path: str, host: HostView) -> Record:
    """Return the first line that can be read, an empty one when none can."""
    return next(_records.oldest_first(path, host, _HEAD), {})


def prompt_of(record: Record) -> str | None:
    """Return what a person typed, None for everything else; notices and schedules are written as a user's lines too."""
    if record.get("type") != "user" or record.get("subtype"):
        return None
    return said(parts_of(mapping(record.get("message")).get("parts"))) or None


class Latest:
    """The newest of each thing, filled from the end of a transcript backwards."""

    def __init__(self, path: str, host: HostView) -> None:
        self.task: str | None = None
        self.title: str | None = None
        self.model: str | None = None
        self.branch: str | None = None
        self.version: str | None = None
        self.parent: str | None = None
        self.served_by: str | None = None
        self.used: int | None = None
        self.limit: int | None = None
        self.at: datetime | None = None
        for record in _records.newest_first(path, host):
            self._take(record)
            if None not in (self.task, self.model, self.used, self.served_by):
                break

    def _take(self, record: Record) -> None:
        payload = mapping(record.get("systemPayload"))
        event = mapping(payload.get("uiEvent"))
        self.at = self.at or moment(text(record.get("timestamp")))
        self.version = self.version or text(record.get("version"))
        self.branch = self.branch or text(record.get("gitBranch"))
        self.title = self.title or text(payload.get("customTitle"))
        self.parent = self.parent or text(mapping(record.get("forkedFrom")).get("sessionId"))
        # A sub-agent may be answered by somebody else.
        self.served_by = self.served_by or (None if event.get("subagent_name") else text(event.get("auth_type")))
        self.task = self.task or prompt_of(record)
        if record.get("type") == "assistant":
            self.model = self.model or text(record.get("model"))
            self.limit = self.limit or count(record.get("contextWindowSize")) or None
            self.used = self.used or _tokens(record)
        elif record.get("subtype") == "chat_compression":
            self.used = self.used or count(mapping(payload.get("info")).get("newTokenCount")) or None


def _tokens(record: Record) -> int | None:
    return count(mapping(record.get("usageMetadata")).get("totalTokenCount")) or None


def turns(path: str, host: HostView) -> Iterator[dict[str, object]]:
    """Yield the turns of the branch the last line ends."""
    tools: dict[str, Call] = {}
    for record in _branch([each for each in _records.every_record(path, host) if text(each.get("uuid"))]):
        yield from _told(record, tools)


def _branch(records: list[Record]) -> list[Record]:
    """The lines from the first one on that lead to the last. Where a line is missing, what stood before it goes on."""
    by_id: dict[str, list[int]] = {}
    for place, record in enumerate(records):
        by_id.setdefault(record["uuid"], []).append(place)
    found: list[Record] = []
    seen: set[str] = set()
    last = len(records) - 1
    while last >= 0 and records[last]["uuid"] not in seen:
        seen.add(records[last]["uuid"])
        # A message may be written in several lines of one id.
        places = by_id[records[last]["uuid"]]
        found.extend(records[place] for place in reversed(places))
        above = text(records[places[0]].get("parentUuid"))
        if above is None:
            break
        last = by_id[above][-1] if above in by_id else places[0] - 1
    return found[::-1]


def _told(record: Record, tools: dict[str, Call]) -> Iterator[dict[str, object]]:
    """The turns one line comes to; `tools` remembers the calls."""
    kind, parts = record.get("type"), parts_of(mapping(record.get("message")).get("parts"))
    time = moment(text(record.get("timestamp")))
    if kind == "tool_result":
        for id, name, output in answered(parts):
            failed = _failed(record, output)
            yield turn("tool", output, tool=name, detail=tools.get(id, ("", None))[1], failed=failed, time=time)
    elif kind == "assistant":
        tools.update(calls_in(parts))
        calls = [call for _, call in calls_in(parts)]
        if said(parts) or calls:
            names, details = names_of(calls), details_of(calls)
            yield turn("assistant", said(parts), tool=names, detail=details, tokens=_tokens(record), time=time)
    elif kind == "user" and said(parts):
        yield turn("user" if prompt_of(record) else "system", said(parts), time=time)
    elif kind == "system" and (words := _noted(record)):
        yield turn("system", words, time=time)


def _failed(record: Record, output: str) -> bool | None:
    # A command that failed is a success of the tool that ran it.
    return mapping(record.get("toolCallResult")).get("status") in ("error", "cancelled") or failed_by(output)


def _noted(record: Record) -> str | None:
    """What the program itself has to tell: commands, failures, and that it summed up what was said."""
    payload = mapping(record.get("systemPayload"))
    if record.get("subtype") == "slash_command" and payload.get("phase") == "invocation":
        return text(payload.get("rawCommand"))
    if record.get("subtype") == "chat_compression":
        history = payload.get("compressedHistory")
        first = mapping(history[0]) if isinstance(history, list) and history else {}
        return said(parts_of(first.get("parts"))) or None
    event = mapping(payload.get("uiEvent"))
    return text(event.get("error_message")) if event.get("event.name") == "qwen-code.api_error" else None
