"""Gemini CLI's transcripts: JSON lines that add messages, replace them, and patch what was there before.

A line with an `id` is a message; the last one with that id counts. `$set` patches the header, and with `messages` it
replaces every message: after a request was cancelled by the very same ones under new ids, after a compression by a
summary. `$rewindTo` takes messages back. Resumed within the minute it was begun in, a transcript has its header and an
almost empty list of messages once more in its middle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from os.path import basename, dirname, join

from perdure.agents import _records
from perdure.agents._calls import Call, detail_of, details_of, failed_by, is_recent, names_of
from perdure.agents._json import count, decode_object, mapping, text
from perdure.agents._kin import answered, called, calls_in, parts_of, said
from perdure.agents._records import Record, moment, turn
from perdure.ports import HostView

#: Beginnings of user's messages that the program wrote in the user's place.
_INJECTED = ("<session_context>", "<hook_context>")
#: What gemini does not count as a conversation.
_COMMANDS = ("/", "?")
_HEAD = 1 << 13
#: How long after `$set` was written its messages may be dated when they are copies made at that moment.
_COPIED_WITHIN = 1.0


def header(path: str, host: HostView) -> Record | None:
    """Return the first line when it is the header; a transcript that another process cleaned up has lost it."""
    data = host.read(path, limit=_HEAD) or b""
    if path.endswith(".json"):
        data = host.read(path) or b""
        found = decode_object(data)
    else:
        found = decode_object(data.partition(b"\n")[0])
    return found if found is not None and text(found.get("sessionId")) else None


def records(path: str, host: HostView) -> Iterator[Record]:
    """Yield the lines in order; an old transcript is one document, and its messages come as if they were lines."""
    if not path.endswith(".json"):
        yield from _records.every_record(path, host)
        return
    document = decode_object(host.read(path, limit=1 << 26)) or {}
    yield {key: value for key, value in document.items() if key != "messages"}
    yield from _messages(document)


def prompt_of(message: Record) -> str | None:
    """Return what a person typed, None for everything else. Copies have it in one message with what was injected."""
    if message.get("type") != "user":
        return None
    parts = parts_of(message.get("displayContent")) if message.get("displayContent") else _parts(message)
    typed = said(part for part in parts if not _is_injected(text(part.get("text")) or ""))
    return typed if typed.strip() else None


def _parts(message: Record) -> list[Record]:
    return parts_of(message.get("content"))


def _is_injected(words: str) -> bool:
    return words.lstrip().startswith(_INJECTED)


def tokens(message: Record) -> int:
    """Return what a message and all before it take up in the context, 0 when it does not say."""
    return count(mapping(message.get("tokens")).get("total"))


def is_prompted(path: str, host: HostView) -> bool:
    """Return whether gemini itself would find anything in it to resume: a first prompt that failed is taken back."""
    if (host.size(path) or 0) >= _records.FIRST_WINDOW:
        return True  # nothing was said only in files far shorter
    return _has_something(records(path, host))


def is_whole(data: bytes) -> bool:
    """Return whether gemini would resume from a file of this content: with its header, and something said in it."""
    document = decode_object(data)  # an old transcript, or one that has nothing but its header
    if document is not None:
        return text(document.get("sessionId")) is not None and _has_something([document])
    head = decode_object(data.partition(b"\n")[0])
    if head is None or text(head.get("sessionId")) is None:
        return False
    return len(data) >= _records.FIRST_WINDOW or _has_something(_records.records_in(data))


def _has_something(lines: Iterable[Record]) -> bool:
    resumable: dict[str, bool] = {}
    for record in lines:
        patch = mapping(record.get("$set"))
        if isinstance(patch.get("messages"), list):
            resumable = {}
        if rewound := text(record.get("$rewindTo")):
            ids = list(resumable)
            resumable = {id: resumable[id] for id in (ids[: ids.index(rewound)] if rewound in ids else [])}
        for message in _added(record, patch):
            resumable[str(message["id"])] = _is_resumable(message)
    return any(resumable.values())


def _is_resumable(message: Record) -> bool:
    words = said(_parts(message)).strip()
    if message.get("type") == "gemini":
        return bool(words or message.get("toolCalls") or message.get("thoughts"))
    return message.get("type") == "user" and bool(words) and not words.startswith((*_INJECTED, *_COMMANDS))


def _added(record: Record, patch: Record) -> list[Record]:
    """The messages a line brings, whatever way it brings them."""
    if text(record.get("id")) is not None:
        return [record]
    return _messages(patch) or _messages(record)


def _messages(holder: Record) -> list[Record]:
    messages = holder.get("messages")
    return (
        [each for each in messages if isinstance(each, dict) and text(each.get("id"))]
        if isinstance(messages, list)
        else []
    )


class Latest:
    """The newest of each thing, filled from the end of a transcript backwards."""

    def __init__(self, path: str, host: HostView) -> None:
        self.task: str | None = None
        self.title: str | None = None
        self.model: str | None = None
        self.used: int | None = None
        self.at: datetime | None = None
        self._copies: set[str] = set()
        for record in (
            _records.newest_first(path, host) if not path.endswith(".json") else reversed([*records(path, host)])
        ):
            self._take(record)
            if None not in (self.task, self.model, self.used, self.at):
                break

    def _take(self, record: Record) -> None:
        patch = mapping(record.get("$set"))
        self.title = self.title or text(patch.get("summary")) or text(record.get("summary"))
        self.at = self.at or moment(text(patch.get("lastUpdated"))) or moment(text(record.get("timestamp")))
        self._notice_copies(patch)
        for message in reversed(_added(record, patch)):
            if message["id"] in self._copies:
                continue
            self.task = self.task or prompt_of(message)
            if message.get("type") == "gemini" and tokens(message):
                self.used = self.used or tokens(message)
                self.model = self.model or text(message.get("model"))

    def _notice_copies(self, patch: Record) -> None:
        """After a cancelled request everything but that request is written again: the last of it was not asked last."""
        written = moment(text(patch.get("lastUpdated")))
        for message in _messages(patch) if written else []:
            at = moment(text(message.get("timestamp")))
            if written and at and 0 <= (written - at).total_seconds() < _COPIED_WITHIN:
                self._copies.add(str(message["id"]))


class _Conversation:
    """The messages of a transcript, each once, as somebody would tell it who had watched.

    What was compressed, what failed and what was cancelled is in it; what was taken back is not.
    """

    def __init__(self, lines: Iterable[Record]) -> None:
        #: By the id each was first written with.
        self.messages: dict[str, Record] = {}
        #: Under which of these a message is that was written again under another id.
        self._alias: dict[str, str] = {}
        for record in lines:
            patch = mapping(record.get("$set"))
            if rewound := text(record.get("$rewindTo")):
                self._rewind(self._alias.get(rewound, rewound))
            elif _messages(patch):
                self._replace(_messages(patch))
            else:
                for message in _added(record, {}):
                    self._add(message)

    def _add(self, message: Record) -> None:
        id = str(message["id"])
        id = self._alias.get(id, id)
        # What the last one leaves out stays as it was: a copy has no tokens.
        given = {key: value for key, value in message.items() if value}
        self.messages[id] = {**self.messages.get(id, {}), **given}

    def _rewind(self, id: str) -> None:
        ids = list(self.messages)
        # One that is not there takes everything back.
        kept = ids[: ids.index(id)] if id in self.messages else []
        self.messages = {each: self.messages[each] for each in kept}

    def _replace(self, messages: list[Record]) -> None:
        waiting: dict[object, list[str]] = {}
        for id, each in self.messages.items():
            waiting.setdefault(_gist(each), []).append(id)
        copies = {message["id"] for message in messages}
        matched: set[str] = set()
        new: list[Record] = []
        for message in messages:
            same = waiting.get(_gist(message))
            if same:
                self._alias[message["id"]] = same[0]
                matched.add(same.pop(0))
            else:
                new.append(message)
        # One that is among these but known by an earlier one of the same words is that one, written again.
        self.messages = {id: each for id, each in self.messages.items() if id in matched or id not in copies}
        for message in new:
            self._add(message)


def _gist(message: Record) -> object:
    """What a message says, by which it is known again under another id."""
    parts = _parts(message)
    calls = message.get("toolCalls") if isinstance(message.get("toolCalls"), list) else []
    ids = {text(call.get("id")) for call in calls or [] if isinstance(call, dict)}
    ids |= {id for id, _ in called(parts)} | {id for id, _, _ in answered(parts)}
    words = prompt_of(message) or "" if message.get("type") == "user" else said(parts)
    # A copy keeps blanks that the first one has lost.
    return (message.get("type"), " ".join(words.split()), frozenset(ids))


def turns(path: str, host: HostView) -> Iterator[dict[str, object]]:
    """Yield the conversation's turns, then those of its sub-agents, each with the sub-agent's id in `agent`."""
    yield from _turns(path, host, None)
    if is_recent(host):
        return
    conversation = text((header(path, host) or {}).get("sessionId"))
    if conversation is None or "/" in conversation:
        return
    below = join(dirname(path), conversation)
    for name in sorted(host.names(below)):
        if name.endswith(".jsonl"):
            yield from _turns(join(below, name), host, basename(name).removesuffix(".jsonl"))


def _turns(path: str, host: HostView, agent: str | None) -> Iterator[dict[str, object]]:
    messages = _Conversation(records(path, host)).messages.values()
    answers = {id for each in messages if each.get("type") == "user" for id, _, _ in answered(_parts(each))}
    calls: dict[str, Call] = {}
    for message in messages:
        for each in _told(message, answers, calls):
            yield {**each, "time": moment(text(message.get("timestamp"))), "agent": agent}


def _told(message: Record, answers: set[str], calls: dict[str, Call]) -> Iterator[dict[str, object]]:
    """The turns one message comes to. `answers` are the calls whose answer has its own message; `calls` remembers them."""
    kind, parts = message.get("type"), _parts(message)
    if kind == "user":
        for id, name, output in answered(parts):
            yield turn("tool", output, tool=name, detail=calls.get(id, ("", None))[1], failed=failed_by(output))
        if (typed := prompt_of(message)) is not None:
            yield turn("user", typed)
    elif kind == "gemini":
        kept = [call for call in message.get("toolCalls") or [] if isinstance(call, dict)]
        made = [(text(call.get("id")) or "", _call(call)) for call in kept] or calls_in(parts)
        calls.update(made)
        used = [call for _, call in made]
        if said(parts) or used:
            spent = tokens(message) or None
            yield turn("assistant", said(parts), tool=names_of(used), detail=details_of(used), tokens=spent)
        for call in kept:
            for id, name, output in answered(parts_of(call.get("result"))):
                if id not in answers:
                    yield turn("tool", output, tool=name, detail=_call(call)[1], failed=_failed(call, output))
    elif kind in ("info", "warning", "error") and said(parts):
        yield turn("system", said(parts))


def _call(call: Record) -> Call:
    return text(call.get("name")) or "?", detail_of(call.get("args"))


def _failed(call: Record, output: str) -> bool | None:
    """Whether a call came to nothing. Only an exit code other than 0 is written down."""
    if call.get("status") != "success":
        return True
    told = failed_by(output)
    background = bool(mapping(call.get("args")).get("is_background"))
    return told if told is not None or background else False
