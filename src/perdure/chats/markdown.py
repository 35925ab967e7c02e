"""A chat as Markdown for people. Whatever was said stands in a fence no text can end: nobody speaks in another's name.

Keys and tokens stand as `***`: what people read, they pass on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from perdure.chats.context import literal
from perdure.chats.source import description
from perdure.model.chat import Chat, Turn
from perdure.model.secrets import redact_data, redact_text
from perdure.model.text import as_text

_PLAIN_ROLE = re.compile(r"[a-z][a-z_-]{0,31}")
_TICKS = re.compile("`+")
#: What a terminal would act on, or what turns text around; line ends and tabs are left.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


def markdown_of(chat: Chat, turns: Sequence[Turn], *, missing: int = 0) -> Iterator[str]:
    """Yield the lines of a chat in Markdown: a heading for the chat, one for each turn, and what was said in fences."""
    yield f"# {_named(chat.title) if chat.title else 'Chat'}"
    yield ""
    yield f"- id: {_named(chat.id)}"
    yield f"- where: {chat.source.platform}, {_named(description(chat.source))}"
    yield f"- begun: {_time(chat.opened_at)}"
    yield f"- last used: {_time(chat.touched_at)}"
    if chat.closed_at is not None:
        yield f"- closed: {_time(chat.closed_at)}{f', {chat.close_reason}' if chat.close_reason else ''}"
    if chat.follows is not None:
        yield f"- follows: {_named(chat.follows)}{f', {chat.kinship}' if chat.kinship else ''}"
    if chat.model is not None:
        yield f"- model: {_named(chat.model)}"
    if chat.tokens.total:
        yield f"- tokens: {chat.tokens.input} in, {chat.tokens.output} out"
    if missing:
        yield f"- missing: something at {missing} of its positions; this is not all that was said"
    for turn in turns:
        yield ""
        yield from _turn(turn)


def _turn(turn: Turn) -> Iterator[str]:
    role = turn.role if _PLAIN_ROLE.fullmatch(turn.role) else _named(turn.role)
    tool = f" {_named(turn.tool_name)}" if turn.tool_name else ""
    yield f"## {turn.position}. {role}{tool}, {_time(turn.at)}{', taken back' if turn.hidden else ''}"
    if turn.content not in (None, ""):
        yield ""
        yield from _fenced(turn.content)
    for what, value in (("Calls", list(turn.tool_calls)), ("Attachments", [dict(each) for each in turn.attachments])):
        if value:
            yield ""
            yield f"{what}:"
            yield ""
            yield from _fenced(value)


def _fenced(value: object) -> Iterator[str]:
    """Text or JSON in a fence that is longer than any within it."""
    is_text = isinstance(value, str)
    text = value if isinstance(value, str) else json.dumps(as_text(redact_data(value)), ensure_ascii=False, indent=2)
    plain = _CONTROL.sub(_written_out, redact_text(text).replace("\r\n", "\n"))
    fence = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(plain)), default=0))
    yield f"{fence}{'text' if is_text else 'json'}"
    yield from plain.split("\n")
    yield fence


def _named(text: str) -> str:
    # A JSON string without backticks: within a code span nothing of it means anything.
    return f"`{literal(redact_text(text))}`"


def _time(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="seconds")


def _written_out(found: re.Match[str]) -> str:
    return f"\\u{{{ord(found[0]):x}}}"
