"""A chat as Markdown, in which nobody can speak in another's name."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from perdure.chats.markdown import markdown_of
from perdure.model.chat import Chat, CloseReason, Source, Tokens, Turn
from tests.builders import at

SOURCE = Source(platform="telegram", chat_id="99", user_name="Ann")
CHAT = Chat(id="c1", key="k", source=SOURCE, opened_at=at(0), touched_at=at(5))
HOSTILE = st.lists(
    st.sampled_from(
        ["## 2. assistant, now", "```", "````", "`", "\n", "\r", "\u2028", "</pre><h2>", "===", "~~~", "    ", "a"]
    )
).map("".join)


def outside(text: str) -> list[str]:
    """The lines that mean something in Markdown: those in no fence. Only an end of a line that counts there is one."""
    lines, fence = [], ""
    for line in re.split("\r\n|\n|\r", text):
        run = re.match(" {0,3}(`{3,}|~{3,})", line)
        if fence:
            if run and run[1].startswith(fence) and not line.strip(" `"):
                fence = ""
        elif run:
            fence = run[1]
        else:
            lines.append(line)
    assert not fence
    return lines


def markdown(chat: Chat, *turns: Turn) -> str:
    return "\n".join(markdown_of(chat, turns))


def test_a_chat_is_readable() -> None:
    chat = Chat(
        id="c1",
        key="k",
        source=SOURCE,
        opened_at=at(0),
        touched_at=at(5),
        closed_at=at(6),
        close_reason=CloseReason.IDLE,
        title="The roof",
        tokens=Tokens(input=1, output=2),
    )
    turns = (
        Turn(position=1, role="user", content="Slate or tiles?\n\n```\nx\n```", at=at(1)),
        Turn(position=2, role="assistant", content="", at=at(2), tool_calls=({"name": "look"},), hidden=True),
        Turn(position=3, role="tool", content={"ok": True}, tool_name="look", at=at(3)),
    )
    assert markdown(chat, *turns).splitlines() == [
        '# `"The roof"`',
        "",
        '- id: `"c1"`',
        '- where: telegram, `"DM with Ann"`',
        f"- begun: {at(0).isoformat(' ', 'seconds')}",
        f"- last used: {at(5).isoformat(' ', 'seconds')}",
        f"- closed: {at(6).isoformat(' ', 'seconds')}, idle",
        "- tokens: 1 in, 2 out",
        "",
        f"## 1. user, {at(1).isoformat(' ', 'seconds')}",
        "",
        "````text",
        "Slate or tiles?",
        "",
        "```",
        "x",
        "```",
        "````",
        "",
        f"## 2. assistant, {at(2).isoformat(' ', 'seconds')}, taken back",
        "",
        "Calls:",
        "",
        "```json",
        "[",
        "  {",
        '    "name": "look"',
        "  }",
        "]",
        "```",
        "",
        f'## 3. tool `"look"`, {at(3).isoformat(" ", "seconds")}',
        "",
        "```json",
        "{",
        '  "ok": true',
        "}",
        "```",
    ]


@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
def test_nobody_can_fake_a_heading(content: str, role: str, title: str, name: str) -> None:
    chat = Chat(
        id=name, key="k", source=Source(platform="telegram", chat_id=name, user_name=name), title=title,
        opened_at=at(0), touched_at=at(0), follows=name, model=name,
    )  # fmt: skip
    turns = [
        Turn(position=1, role=role, content=content, at=at(1), tool_name=name),
        Turn(
            position=2, role="user", content=[content], at=at(1), tool_calls=(content,), attachments=({name: content},)
        ),
    ]
    lines = outside(markdown(chat, *turns))
    assert sum(line.startswith("#") for line in lines) == 3
    assert not any(set(line) <= set("=- ") and line.strip() for line in lines)
    assert not any("<" in re.sub("`[^`]*`", "", line) for line in lines)


def test_a_terminal_is_left_alone() -> None:
    text = markdown(CHAT, Turn(position=1, role="user", content="a\x1b[2Jb\u202ec\ud800\td", at=at(1)))
    assert "a\\u{1b}[2Jb\\u{202e}c\\u{d800}\td" in text
