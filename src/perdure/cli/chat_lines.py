"""What was said in a chat, as people get to see it: nothing in it can move a cursor or pass for a line of ours. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from perdure.chats.shown import turn_row
from perdure.cli.render import local, printable
from perdure.model.chat import Turn

#: Before every line that somebody else wrote; no line of ours begins so.
_MARGIN = "    "
#: How much is shown of what is not text: calls of tools, pictures.
_ENOUGH = 400


def turn_lines(turn: Turn) -> Iterator[str]:
    """Yield a turn for people, line by line."""
    tool = f" {turn.tool_name}" if turn.tool_name else ""
    model = f"  {turn.model}" if turn.model else ""
    back = "  (taken back)" if turn.hidden else ""
    yield printable(f"[{turn.position}] {turn.role}{tool}  {local(turn.at)}{model}{back}")
    for text in _said(turn):
        yield from (_MARGIN + printable(line.expandtabs(4)) for line in text.replace("\r\n", "\n").split("\n"))


def _said(turn: Turn) -> Iterator[str]:
    shown: Any = msgspec.to_builtins(turn_row(turn))
    content = shown["content"]
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            yield text
        elif part is not None:
            yield _short(part)
    for call in shown["tool_calls"]:
        yield f"calls {_called(call)}"
    for attachment in shown["attachments"]:
        yield f"attached {_short(attachment)}"


def _called(call: object) -> str:
    """A call of a tool, in whichever of the usual forms it was kept."""
    form = call.get("function", call) if isinstance(call, Mapping) else call
    if not isinstance(form, Mapping) or not isinstance(form.get("name"), str):
        return _short(call)
    given = next((form[name] for name in ("arguments", "input", "args") if name in form), None)
    return f"{form['name']} {'' if given is None else _short(given)}".rstrip()


def _short(value: object) -> str:
    # Not msgspec: half of a character, which JSON can say, is shown like everything else that cannot be printed.
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _ENOUGH else f"{text[:_ENOUGH]}… ({len(text)} characters)"
