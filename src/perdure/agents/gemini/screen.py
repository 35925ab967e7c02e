"""What a Gemini CLI screen says, judged by region.

The title tells ready, working and asking apart, but says working while a dialog about a limit waits. At the bottom is
either the composer (a status row, a rule, the input and a footer) or, in its place, a dialog in a box. Above that is the
conversation: answers and prompts are indented there, so that what stands at the left edge is the program's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from perdure.agents._boxes import above, box_above, command_above, rows
from perdure.agents._screens import judge
from perdure.model.agent import ScreenRule
from perdure.model.screen import Screen, ScreenReading

_RULE = re.compile(r"─{20,}")
#: Where the terminal has many colours, the input has an edge of half blocks; so have the prompts that were sent.
_UPPER, _LOWER = re.compile(r"▄{20,}"), re.compile(r"▀{20,}")
_INPUT = re.compile(r" (?:[>!*]|\(r:\))(?: |$)")
_READY, _WORKING, _ASKING = "◇", ("✦", "⏲"), "✋"
#: What the program adds to the end of a turn.
_NOTES = ("\u2139 ", "⚠ ")
_LOWEST = 6

_LIMITS = (
    r"^(?:Usage limit reached for |We are currently experiencing high demand|It seems like you don't have access to"
    r'|Model ".*(?:is not available in region|was not found or is invalid))|^(?:● )?\d\. (?:Keep trying|Stop)$'
)
_APPROVALS = (
    r"^(?:Allow execution of |Apply this change\?|Do you want to (?:proceed|continue|allow)|To run \[)"
    r"|^(?:● )?\d\. No, suggest changes \(esc\)$"
)

_RULES = (
    ScreenRule(
        id="attention.question", region="dialog", match=r"^Answer Questions$", state="attention", reason="question"
    ),
    ScreenRule(id="attention.limit", region="dialog", match=_LIMITS, state="attention", reason="limit"),
    ScreenRule(
        id="attention.trust",
        region="dialog",
        match=r"^Do you trust the files in this folder\?",
        state="attention",
        reason="permission",
    ),
    ScreenRule(
        id="attention.plan",
        region="dialog",
        match=r"^Ready to start implementation\?",
        state="attention",
        reason="permission",
    ),
    ScreenRule(id="attention.approval", region="dialog", match=_APPROVALS, state="attention", reason="permission"),
    ScreenRule(
        id="attention.title", region="asking", match=r"\S", state="attention", reason="permission", confidence=0.8
    ),
    ScreenRule(id="viewer.command", region="opened", match=r"\S"),
    ScreenRule(
        id="attention.login",
        region="dialog",
        match=r"^How would you like to authenticate|^Enter Gemini API Key$",
        state="attention",
        reason="login",
    ),
    ScreenRule(
        id="viewer.dialog",
        region="dialog",
        match=r"Esc to (?:close|go back|cancel)|\(Use Enter to|\(Press E(?:sc|nter)",
    ),
    ScreenRule(id="viewer.sessions", region="browser", match=r"\S"),
    ScreenRule(
        id="attention.dialog",
        region="dialog",
        match=r"^● (?:1\. )?\S",
        state="attention",
        reason="question",
        confidence=0.7,
    ),
    ScreenRule(id="busy.status", region="status", match=r"^ ?[⠀-⣿] |\(esc to cancel, \d", state="busy"),
    ScreenRule(id="busy.title", region="working", match=r"\S", state="busy"),
    ScreenRule(id="error.request", region="ended", match=r"^✕ \[API Error", state="error"),
    ScreenRule(id="idle.title", region="ready", match=r"\S", state="idle"),
    ScreenRule(id="idle.input", region="input", match=r"\S", state="idle", confidence=0.8),
)


class _Composer(Struct):
    """The input and what belongs to it."""

    #: What goes on, "" when nothing does.
    status: str
    typed: str
    #: The conversation above.
    said: Sequence[str]


def read_screen(agent: str, screen: Screen) -> ScreenReading | None:
    """Return what the screen says, None when it cannot tell."""
    return judge(agent, _RULES, screen, _regions(rows(screen), screen.title))


def _regions(lines: Sequence[str], title: str) -> dict[str, Sequence[str]]:
    sign = title[:1]
    asking = [title] if sign == _ASKING else []
    box = box_above(lines, len(lines))
    if box is not None:
        top, inside = box
        return {"dialog": inside, "asking": asking, "opened": command_above(lines, top, " > ")}
    composer = _composer(lines)
    if composer is None:
        return {"asking": asking, "browser": _browser(lines), "working": [title] if sign in _WORKING else []}
    # The title is the truer one: before the first frame of a turn the row is still empty.
    return {
        "asking": asking,
        "status": [composer.status],
        "working": [title] if sign in _WORKING else [],
        "ended": [_ended(composer.said)],
        "ready": [title] if sign == _READY else [],
        "input": [composer.typed],
    }


def _composer(lines: Sequence[str]) -> _Composer | None:
    rule = max((at for at, line in enumerate(lines) if _RULE.fullmatch(line)), default=None)
    if rule is not None:
        typed = next((line for line in lines[rule + 1 :] if _INPUT.match(line)), None)
        if typed is not None:
            # Between the conversation and the status row is one for passing messages.
            return _Composer(status=above(lines, rule), typed=typed, said=lines[: max(rule - 2, 0)])
    return _bare_composer(lines)


def _bare_composer(lines: Sequence[str]) -> _Composer | None:
    """The composer with the details hidden: an input, and above it at most what goes on."""
    places = [at for at, line in enumerate(lines) if _INPUT.match(line)]
    if not places:
        return None
    at = places[-1]
    edge = _UPPER.fullmatch(above(lines, at)) is not None
    below = lines[at + 1 :]
    lower = next((place for place, line in enumerate(below) if _LOWER.fullmatch(line)), None)
    if edge and lower is not None:
        # A prompt that was sent looks the same, but what follows it is no list of suggestions.
        if any(line and not line.startswith(" ") for line in below[lower + 1 :]):
            return None
        return _Composer(status=above(lines, at - 1), typed=lines[at], said=lines[: max(at - 2, 0)])
    if len([line for line in below if line]) > _LOWEST or any(line and not line.startswith("   ") for line in below):
        return None
    return _Composer(status=above(lines, at - 1), typed=lines[at], said=lines[: max(at - 2, 0)])


def _ended(said: Sequence[str]) -> str:
    """The first line of what the last turn ended with, notes about it left out."""
    return next((line for line in reversed(said) if line and not line.startswith(("  ", *_NOTES))), "")


def _browser(lines: Sequence[str]) -> Sequence[str]:
    found = max((at for at, line in enumerate(lines) if line.startswith(" Chat Sessions (")), default=None)
    if found is None or not any(line.startswith(" Navigate: ") for line in lines[found : found + 3]):
        return []
    return [lines[found]]
