"""What a goose screen says, judged by region.

Goose draws from the top down and keeps nothing in place. Before each prompt it prints a gauge of the context in use;
below the last gauge stands the prompt, and below that whatever came of it. A dialog ends in a corner. So the end of the
screen decides, and what is above the last gauge only says how the last turn ended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from perdure.agents._screens import drawn, judge
from perdure.model.agent import ScreenRule
from perdure.model.screen import Screen, ScreenReading

_GAUGE = re.compile(r"  (?:[━╌]{20} \d+% \S+/\S+|context usage unavailable \(context limit is 0\))")
_COST = re.compile(r"Cost: \$[\d.]+ USD \(")
#: What stands in the prompt until something is typed.
_HINT = re.compile(
    r" ?(?:Enter to send · Ctrl\+\S+ newline"
    r"|Interrupted, what should goose work on instead\?"
    r"|Press Ctrl\+C again to exit, or type new instructions to continue)"
)
_TOOK = re.compile(r"  ⏱ [\d.hms ]+")
_GAP = re.compile(r" \S  (?=\S)")
#: What it begins as it starts, nobody has asked for.
_SPINNER = re.compile(r"[◒◐◓◑]  (?!starting \d+ extensions: )\S")
_LONGEST_QUESTION = 6
_RETRY = "Please retry if you think this is a transient or recoverable error"

_RULES = (
    ScreenRule(
        id="attention.approval",
        region="dialog",
        match=r"do you allow\?|Do you allow this tool call\?|Approve this action\?",
        state="attention",
        reason="permission",
    ),
    ScreenRule(id="attention.credits", region="dialog", match=r"top-up URL", state="attention", reason="limit"),
    ScreenRule(id="attention.question", region="dialog", match=r"\S", state="attention", reason="question"),
    ScreenRule(id="busy.spinner", region="spinner", match=r"\S", state="busy"),
    ScreenRule(id="error.request", region="ended", match=r"^Ran into this error: ", state="error"),
    ScreenRule(
        id="attention.limit",
        region="ended",
        match=r"^Please check your account with your provider to add more credits",
        state="attention",
        reason="limit",
    ),
    ScreenRule(id="idle.prompt", region="hint", match=r"\S", state="idle"),
    # Sent, it would look the same until the spinner turns, which is at once.
    ScreenRule(id="idle.typed", region="typed", match=r"\S", state="idle", confidence=0.7),
    ScreenRule(id="busy.tool", region="turn", match=r"^  ▸ \S", state="busy"),
    ScreenRule(id="busy.turn", region="answer", match=r"\S", state="busy", confidence=0.8),
)


def read_screen(agent: str, screen: Screen) -> ScreenReading | None:
    """Return what the screen says, None when it cannot tell."""
    return judge(agent, _RULES, screen, _regions(drawn(screen)))


def _regions(lines: Sequence[str]) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {"dialog": _dialog(lines), "spinner": _spinner(lines)}
    gauge = max((at for at, line in enumerate(lines) if _GAUGE.fullmatch(line)), default=None)
    if gauge is None:
        # What the tools did fills the screen.
        header = _tool_header(lines)
        return {**found, "turn": lines[header:] if header is not None else ()}
    below = list(lines[gauge + 1 :])
    if below and _COST.match(below[0]):
        below = below[1:]
    prompt = list(takewhile(bool, below))
    turn = [line for line in below[len(prompt) :] if line]
    if prompt and _HINT.fullmatch("".join(prompt)):
        # More below the hint is a picture of a screen that somebody wrote.
        return {**found, "hint": prompt, "ended": _ended(lines[:gauge])} if not turn else found
    if turn:
        widest = max(map(len, lines))
        return {**found, "turn": turn, "answer": turn if _is_one_paragraph(prompt, widest) else ()}
    return {**found, "typed": prompt, "ended": _ended(lines[:gauge]) if prompt else ()}


def _dialog(lines: Sequence[str]) -> Sequence[str]:
    """The question at the end of the screen; one that was answered has another mark."""
    if not lines or not lines[-1].startswith("└"):
        return ()
    top = max((at for at, line in enumerate(lines) if line.startswith("◆  ")), default=None)
    if top is None:
        return ()
    question = list(takewhile(lambda line: not line.startswith("│"), lines[top:]))
    answers = lines[top + len(question) : -1]
    if len(question) > _LONGEST_QUESTION or not answers or not all(line.startswith("│") for line in answers):
        return ()
    return ["".join(question)]


def _spinner(lines: Sequence[str]) -> Sequence[str]:
    """The spinner at the end of the screen; one that is not there any more may have been left further up."""
    last = lines[-1:]
    if last and not _SPINNER.match(last[0]) and len(lines) > 1 and not last[0].startswith(" "):
        # In a narrow pane its hint goes on in the next line.
        joined = lines[-2] + last[0]
        return [joined] if _SPINNER.match(joined) and joined.endswith("(Ctrl+C to interrupt)") else ()
    return last if last and _SPINNER.match(last[0]) else ()


def _is_one_paragraph(prompt: Sequence[str], widest: int) -> bool:
    """Whether what was typed can only be this, so that what follows was not typed with it.

    While there is one line, goose draws a gap after its first letter, where the hint's colour ended. One that goes on
    in the next line is drawn anew, like every prompt of several paragraphs; but it is as wide as the pane.
    """
    if not prompt:
        return False
    return bool(_GAP.match(prompt[0])) or (len(prompt) > 1 and len(prompt[0]) >= widest - 2)


def _tool_header(lines: Sequence[str]) -> int | None:
    marks = [
        at for at, line in enumerate(lines) if line.startswith("  ▸ ") and at and lines[at - 1].startswith("  ────")
    ]
    return marks[-1] if marks else None


def _ended(lines: Sequence[str]) -> Sequence[str]:
    """The first line of what the last turn ended with."""
    rest = list(lines)
    while rest and (not rest[-1] or _TOOK.fullmatch(rest[-1])):
        rest.pop()
    last = _last_paragraph(rest)
    if last and " ".join(last).replace("  ", " ").startswith(_RETRY[:40]):
        rest = rest[: len(rest) - len(last)]
        while rest and not rest[-1]:
            rest.pop()
        last = _last_paragraph(rest)
        return last[:1]
    # Without that sentence it is an answer that speaks of errors.
    return () if last and last[0].startswith("Ran into this error: ") else last[:1]


def _last_paragraph(lines: Sequence[str]) -> list[str]:
    return list(reversed(list(takewhile(bool, reversed(lines)))))
