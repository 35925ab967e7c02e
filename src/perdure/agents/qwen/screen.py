"""What a Qwen Code screen says, judged by region.

The title never changes. At the bottom is the composer: what goes on, and right below it the input between two rules; or,
while a tool waits for a person, a line that says so below the tool's box; or a dialog in a box. Above the composer
there is always an empty line. In the conversation a line may go on at the very left edge of the next, so that only
the two blanks before a mark tell whose a line is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from perdure.agents._boxes import box_above, command_above, rows
from perdure.agents._screens import judge
from perdure.model.agent import ScreenRule
from perdure.model.screen import Screen, ScreenReading

_RULE = re.compile(r"─{20,}")
_INPUT = (">", "!", "*", "(r:)")
#: How long it has been at work: `(1m 4s · ↓ 161 tokens · esc to cancel)`. In a narrow pane it goes on in the next line.
_TIMER = r"\((?:\d+h ?)?(?:\d+m ?)?\d+s ·"
#: How what goes on begins, unless all dots of its spinner are out.
_SPINNER = re.compile(r"  (?:[.⠀-⣿]|    \S)")
_FEEDBACK = re.compile(r"\s*● How is Qwen doing this session\?")
_WAITING = re.compile(r"  ⠏ \S")
#: The end of a dialog without a box, or of one whose right edge goes on in lines of its own.
_BOXLESS = re.compile(r"^─+[┘╯]$|^  \S.* · Esc to (?:cancel|close|go back)$")
#: At most so many lines are below the one that says a tool waits: agents at work.
_MOST_BELOW = 12
_MOST_FOOTER = 16

_RULES = (
    ScreenRule(
        id="attention.question",
        region="waiting",
        match=r"^\?  AskUserQuestion |^↑/↓: Navigate \|",
        state="attention",
        reason="question",
    ),
    ScreenRule(id="attention.approval", region="waiting", match=r"", state="attention", reason="permission"),
    ScreenRule(
        id="attention.trust",
        region="dialog",
        match=r"^Do you trust this folder\?",
        state="attention",
        reason="permission",
    ),
    ScreenRule(
        id="attention.dialog",
        region="dialog",
        match=r"^(?:Allow execution of|Do you want to (?:proceed|continue|allow))",
        state="attention",
        reason="permission",
    ),
    ScreenRule(id="viewer.command", region="opened", match=r"\S"),
    ScreenRule(
        id="attention.login",
        region="dialog",
        match=r"^Select Authentication Method$",
        state="attention",
        reason="login",
    ),
    ScreenRule(id="viewer.dialog", region="dialog", match=r""),
    ScreenRule(id="busy.timer", region="status", match=_TIMER, state="busy"),
    ScreenRule(id="error.request", region="ended", match=r"^  ✕ \[API Error", state="error"),
    ScreenRule(id="idle.input", region="input", match=r"\S", state="idle"),
)


def read_screen(agent: str, screen: Screen) -> ScreenReading | None:
    """Return what the screen says, None when it cannot tell."""
    return judge(agent, _RULES, screen, _regions(rows(screen)))


def _regions(lines: Sequence[str]) -> dict[str, Sequence[str]]:
    composer = _composer(lines)
    if composer is not None:
        top, bottom = composer
        status = _status(lines, top)
        if status is None:
            return {}
        idle = not status
        return {
            "status": status,
            "ended": [_ended(lines[:top])] if idle else [],
            "input": [lines[top + 1]] if idle and bottom else [],
        }
    waiting = max((at for at, line in enumerate(lines) if _WAITING.match(line)), default=None)
    if waiting is not None and len(lines) - waiting <= _MOST_BELOW:
        box = box_above(lines, waiting)
        return {"waiting": box[1]} if box is not None else {}
    box = box_above(lines, len(lines))
    if box is not None:
        return {"dialog": box[1], "opened": command_above(lines, box[0], "  > ")}
    return {"dialog": [lines[-1]]} if lines and _BOXLESS.search(lines[-1]) else {}


def _composer(lines: Sequence[str]) -> tuple[int, int] | None:
    """Where the two rules are that the input stands between."""
    rules = [at for at, line in enumerate(lines) if _RULE.fullmatch(line)]
    if len(rules) < 2 or len(lines) - rules[-1] > _MOST_FOOTER:
        return None
    top, bottom = rules[-2:]
    return (top, bottom) if bottom > top + 1 and lines[top + 1].startswith(_INPUT) else None


def _status(lines: Sequence[str], top: int) -> Sequence[str] | None:
    """What goes on; () for nothing, None when something stands there that cannot be told."""
    blocks = _blocks_above(lines, top)
    if not blocks or _FEEDBACK.match(blocks[0][0]):
        return ()
    for block in blocks:
        if _SPINNER.match(block[0]) and any(re.search(_TIMER, line) for line in block):
            return block
    return None


def _blocks_above(lines: Sequence[str], top: int) -> list[Sequence[str]]:
    """The block right above the input, and the one above that: messages in the queue come below what goes on."""
    found: list[Sequence[str]] = []
    end = top
    while len(found) < 2 and end > 0:
        begin = end
        while begin > 0 and lines[begin - 1]:
            begin -= 1
        if begin == end:
            break
        found.append(lines[begin:end])
        end = begin - 1
    return found


def _ended(said: Sequence[str]) -> str:
    """The first line of what the last turn ended with; boxes are what tools did, and a list of tasks."""
    marked = (line for line in reversed(said) if re.match(r"  [^\s│╭╰]", line))
    return next(marked, "")
