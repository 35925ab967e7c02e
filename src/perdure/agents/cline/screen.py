"""What a Cline screen says, judged by region.

At the bottom is a footer, above it the input box between two rules or, in its place, what Cline wants to know; above
that the conversation, a block for each prompt, answer and tool. A block that is still going on has a wheel for its mark.
Menus lie over all of this, in the middle of the screen. Before the first prompt the box is in the middle itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from perdure.agents._screens import judge
from perdure.model.agent import ScreenRule
from perdure.model.screen import Screen, ScreenReading

_RULE = re.compile(r"\s*─{20,}")
_FOOTER = re.compile(r".*[○●] Plan [○●] Act\b")
_SCROLLBAR = re.compile(r"\s+[█▀▄]$")
#: What a block begins with: a prompt, something done, something that failed, or a wheel; the rest of it is indented.
_BLOCK = re.compile(r" (?:[❯*x⠀-⣿] |── ✻ )")  # noqa: RUF001
_PROMPT = "❯"  # noqa: RUF001
_QUESTIONS = (" Cline needs permission", " Cline is asking a question")
#: Stands in the middle of the screen until something was said.
_GREETING = re.compile(r" {5,}What can I do for you\?")
#: A row of the picture above that, which tells that nobody has said anything that could be taken for a menu.
_PICTURE = re.compile(r"\s+[@*.][@*. ]*@{3}[@*. ]*")
#: How a menu says how to leave it, which is the last thing it says.
_LEAVE = re.compile(r"(?:\bEsc(?:/Enter)?(?: to)? (?:close|cancel|go back)|\bany other key to close)$")
#: What of the box may be seen to the left of a menu that lies over it.
_BESIDE = re.compile(rf"^(?:─+|{_PROMPT})(?= )")
#: Words together; what is further apart may be the conversation and a menu.
_WORDS = re.compile(r"\S+(?: \S+)*")
_WIDEST_MENU = 80
#: A menu that begins further left than this leaves no block's mark in sight.
_WIDEST_MARK = 5
#: A menu is in the middle as nearly as its padding lets it be.
_OFF_CENTRE = 2

#: What is below everything while there is nobody to talk to yet.
_WELCOME = "↑/↓ navigate, Enter to select, Ctrl+C to exit"

_RULES = (
    ScreenRule(
        id="attention.login",
        region="welcome",
        match=r"^ +Connect a model provider to get started\.$",
        state="attention",
        reason="login",
    ),
    ScreenRule(id="viewer.menu", region="menu", match=r"\S"),
    ScreenRule(
        id="attention.approval",
        region="question",
        match=rf"^{_QUESTIONS[0]}$",
        state="attention",
        reason="permission",
    ),
    ScreenRule(
        id="attention.question", region="question", match=rf"^{_QUESTIONS[1]}$", state="attention", reason="question"
    ),
    ScreenRule(id="busy.wheel", region="block", match=r"^ [⠀-⣿] ", state="busy"),
    # An answer that begins with these words looks the same.
    ScreenRule(id="error.block", region="block", match=r"^ \* Error: ", state="error", confidence=0.7),
    ScreenRule(id="idle.block", region="block", match=r"\S", state="idle"),
    ScreenRule(id="idle.home", region="home", match=r"\S", state="idle"),
)


def read_screen(agent: str, screen: Screen) -> ScreenReading | None:
    """Return what the screen says, None when it cannot tell."""
    rows = [_SCROLLBAR.sub("", row.rstrip()) for row in screen.lines]
    while rows and not rows[-1]:
        rows.pop()
    return judge(agent, _RULES, screen, _regions(rows))


def _regions(rows: Sequence[str]) -> dict[str, Sequence[str]]:
    menu = _menu(rows)
    if menu:
        return {"menu": (menu,)}
    if rows and rows[-1].strip() == _WELCOME:
        return {"welcome": rows}
    footer = max((at for at, row in enumerate(rows) if _FOOTER.match(row)), default=0)
    above = [row for row in rows[:footer] if row]
    rules = [at for at, row in enumerate(above) if _RULE.fullmatch(row)]
    if len(rules) > 1 and rules[-1] == len(above) - 1 and above[rules[-2] + 1].lstrip().startswith(_PROMPT):
        said = above[: rules[-2]]
        return {"home": [row for row in said if _GREETING.fullmatch(row)], "block": _last_block(said)}
    return {"question": [row for row in above if row in _QUESTIONS][-1:]}


def _last_block(said: Sequence[str]) -> Sequence[str]:
    """The row the last block begins with; none when a long answer has pushed it out of sight."""
    return next(([row] for row in reversed(said) if _BLOCK.match(row)), ())


def _menu(rows: Sequence[str]) -> str | None:
    """The last words of a menu that lies over the screen, None when there is no menu.

    Anybody can write such words; but a menu is in the middle: its head is as far from the top as its end from the bottom.
    """
    home = any(_PICTURE.fullmatch(row) for row in rows)
    leftmost = (max(map(len, rows), default=0) - _WIDEST_MENU) // 2
    rows = [_BESIDE.sub(lambda found: " " * len(found[0]), row) for row in rows]
    for at in range(len(rows) - 1, 0, -1):
        for words in _WORDS.finditer(rows[at]):
            left = words.start()
            if left < leftmost and not home:
                continue
            wrapped = rows[at - 1][left:].rstrip(" ─") if rows[at - 1][:left].endswith(" ") else ""
            if not _LEAVE.search(words[0]) and not _LEAVE.search(f"{wrapped} {words[0]}"):
                continue
            heads = range(len(rows) - 1 - at - _OFF_CENTRE, len(rows) - at + _OFF_CENTRE)
            if home or any(0 < head < at and _is_menu(rows[head - 1 : at], left) for head in heads):
                return words[0]
    return None


def _is_menu(rows: Sequence[str], left: int) -> bool:
    """Whether, below a first row that is empty there, something begins in this column that hides what is behind it."""
    above, head = rows[:2]
    begins = head[left - 1 : left] == " " and bool(head[left : left + 1].strip())
    hides = left >= _WIDEST_MARK or not any(_BLOCK.match(row) for row in rows)
    return begins and hides and not above[left - 1 : left + 9].strip()
