"""What an opencode screen says, judged by region.

At the bottom stands the input box, closed by a line of half blocks, and below it the footer: a row of eight squares and how
to interrupt while it works, else the directory. A question takes the place of both, a block behind a bar down to the last
line. Lists and help lie in the middle over everything. Above is the conversation, where any text may stand. A sidebar, where
there is one, begins behind the box. `--mini` has no box: one line at the bottom says everything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from perdure.agents._screens import judge
from perdure.model.agent import ScreenRule
from perdure.model.screen import Screen, ScreenReading

_BAR = "┃"
_FLOOR = re.compile(r" *╹▀{8,}")
_OVERLAY = re.compile(r"[A-Z][^┃▀│]{0,60}? {2,}esc(?:/enter)?")
#: The width of the sidebar and the margins beside the box: what is right of a box that does not reach the edge.
_BESIDE = (2, 44)
#: The line under an answer: who gave it and, once it is whole, how long that took.
_SIGNED = re.compile(r" {5}▣ {2}\S")
_WHOLE = re.compile(r" · (?:interrupted|(?:\d+(?:\.\d+)?(?:ms|s|m|h|d) ?)+)$")
#: What blocks behind a bar begin with when they show a tool at work; anything else there is a prompt or an error.
_TOOL = re.compile(r"[$#←→✱%⚙◇~│+*]|[⠀-⣿] ")
_MOST_FOOTER = 8
#: So many blanks in a row are no part of a text.
_GAP = 20
#: The block below a sub-agent's conversation has at most so many lines.
_LOW = 5

_SQUARES = r"[■⬝]{8}|\[⋯\]"

RULES = (
    ScreenRule(id="viewer.dialog", region="overlay", match=r""),
    ScreenRule(id="viewer.diff", region="diff", match=r""),
    ScreenRule(id="viewer.subagent", region="dialog-low", match=r"\bParent\b.*\bPrev\b.*\bNext\b"),
    ScreenRule(
        id="attention.question", region="dialog-hint", match=r"\besc dismiss\b", state="attention", reason="question"
    ),
    ScreenRule(
        id="attention.approval",
        region="dialog",
        match=r"^△ (?:Permission required|Always allow|Reject permission)\b",
        state="attention",
        reason="permission",
    ),
    ScreenRule(id="busy.footer", region="footer", match=rf"^ *(?:{_SQUARES})(?: |$)", state="busy"),
    ScreenRule(id="error.block", region="failed", match=r"", state="error", confidence=0.8),
    ScreenRule(id="idle.footer", region="footer-at-rest", match=r"", state="idle"),
    ScreenRule(id="busy.mini", region="mini", match=rf"^ [A-Z][\w -]*? +(?:{_SQUARES}) esc\b", state="busy"),
    ScreenRule(id="idle.mini", region="mini-at-rest", match=r"", state="idle"),
    ScreenRule(id="attention.mini-approval", region="mini-approval", match=r"", state="attention", reason="permission"),
    ScreenRule(
        id="attention.mini-question",
        region="mini",
        match=r"^ .*enter \w+ +esc dismiss$",
        state="attention",
        reason="question",
    ),
    ScreenRule(id="viewer.mini", region="mini", match=r"^▀{20,}$"),
)


class _Box(Struct, frozen=True, kw_only=True):
    """The input box: its columns, what stands above it and below."""

    left: int
    right: int
    above: Sequence[str]
    footer: Sequence[str]

    @property
    def widths(self) -> set[int]:
        """How wide the screen may be: a box in the middle of the first page, or one that reaches the edge or the sidebar."""
        return {self.left + self.right, *(self.right + beside for beside in _BESIDE)}


def read_screen(agent: str, screen: Screen) -> ScreenReading | None:
    """Return what the screen says, None when it cannot tell."""
    lines = [line.rstrip() for line in screen.lines]
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        return None
    return judge(agent, RULES, screen, _regions(lines))


def _regions(lines: Sequence[str]) -> dict[str, Sequence[str]]:
    if lines[-1].lstrip().startswith(_BAR):
        return _dialog(lines)
    if lines[0].startswith(" Diff ") and set("".join(lines[1:2])) == {"─"}:
        return {"diff": lines[:1]}
    box = _find_box(lines)
    if box is None:
        return _mini(lines)
    regions: dict[str, Sequence[str]] = {"overlay": _overlay(lines, box), "footer": box.footer[:1]}
    # A conversation that does not fill the screen begins on it.
    failed = _failed(box.above, whole=not any(line.strip() for line in box.above[-2:]))
    if failed is None:
        return regions
    return {**regions, "failed": failed, "footer-at-rest": box.footer[:1]}


def _find_box(lines: Sequence[str]) -> _Box | None:
    floors = [at for at, line in enumerate(lines) if _FLOOR.match(line)]
    if not floors:
        return None
    at = floors[-1]
    match = _FLOOR.match(lines[at])
    assert match is not None
    left, right = lines[at].index("╹"), match.end()
    top = at
    while top and lines[top - 1][left : left + 1] == _BAR:
        top -= 1
    below = lines[at + 1 :]
    footer = [line[left:right].rstrip() for line in below[: below.index("") if "" in below else None]]
    # On the first page the directory and the version stand far below.
    if not footer or len(footer) > _MOST_FOOTER or len([line for line in below if line]) > _MOST_FOOTER:
        return None
    return _Box(left=left, right=right, above=[line[:right].rstrip() for line in lines[:top]], footer=footer)


def _overlay(lines: Sequence[str], box: _Box) -> Sequence[str]:
    """The title of a list or of help: it begins as far from the left as the word for leaving ends from the right."""
    for line in lines:
        for word in re.finditer(r" esc(?:/enter)?(?= {2}|$)", line):
            for begin in (width - word.end() for width in box.widths):
                if begin >= 2 and not line[begin - 2 : begin].strip() and _OVERLAY.fullmatch(line[begin : word.end()]):
                    return (line[begin : word.end()],)
    return ()


def _dialog(lines: Sequence[str]) -> dict[str, Sequence[str]]:
    """The block at the very bottom: all it says, and its last line, which says what keys do."""
    said: list[str] = []
    for line in reversed(lines):
        left, bar, inside = line.partition(_BAR)
        if left.strip() or not bar:
            break
        # What begins far to the right is a sidebar's, and what comes after a wide gap too.
        words = re.split(f" {{{_GAP},}}", inside.strip())
        if inside.strip() and not inside.startswith(" " * _GAP):
            said.append(words[0])
    if not said:
        return {}
    low = " ".join(line.partition(_BAR)[2].strip() for line in lines[-_LOW:])
    return {"dialog": said[::-1], "dialog-hint": said[:1], "dialog-low": (low,) if len(said) < _LOW else ()}


def _failed(above: Sequence[str], *, whole: bool) -> Sequence[str] | None:
    """The first line of an error that ended the last turn, () when there is none, None when that cannot be told.

    An error stands behind a bar, as prompts and some tools do, between the answer and the line that signs it. The only
    other thing there is a prompt whose answer was interrupted while it was tried again.
    """
    lines = list(above)
    _drop_blank(lines)
    if not lines or not _SIGNED.match(lines[-1]) or _WHOLE.search(lines[-1]):
        return ()
    lines.pop()
    _drop_blank(lines)
    run: list[str] = []
    while lines and lines[-1].startswith(f"  {_BAR}"):
        run.insert(0, lines.pop()[3:].strip())
    # Between two blocks that touch there is an empty line of each.
    blocks = [block.split("\n") for block in "\n".join(run).split("\n\n\n")]
    said = [line for line in blocks[-1] if line]
    if not said or _TOOL.match(said[0]):
        return ()
    if len(blocks) > 1:
        return said[:1]
    _drop_blank(lines)
    if not lines:
        return () if whole else None
    return () if _SIGNED.match(lines[-1]) else said[:1]


def _drop_blank(lines: list[str]) -> None:
    while lines and not lines[-1].strip():
        lines.pop()


def _mini(lines: Sequence[str]) -> dict[str, Sequence[str]]:
    """The small interface, which the prompt and the answers scroll past."""
    last = lines[-1]
    regions: dict[str, Sequence[str]] = {"mini": (last,)}
    asked = any(re.match(r" {2}△ Permission required\b", line) for line in lines[-30:])
    if asked and re.search(r"enter confirm +esc reject$", last):
        regions["mini-approval"] = (last,)
    signs = [at for at, line in enumerate(lines) if re.match(r"▣ \S|▀▀▀▀$", line)]
    named = re.fullmatch(r" [A-Z][A-Z0-9_-]*(?: {3,}.*\bctrl\+p cmd)?", last)
    # What is typed stands above that line, without a mark, and so does an error.
    between = [line for line in lines[signs[-1] + 1 : -1] if line.strip()] if signs else [""]
    if named and all(line.startswith("Ask anything...") for line in between):
        regions["mini-at-rest"] = (last,)
    return regions
