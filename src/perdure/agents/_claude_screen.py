"""What a Claude Code screen says, judged by region.

From the bottom up: the footer, the input box between two rules, the status line above the box, and above that the
conversation, where any text at all may stand. A dialog takes the place of box and footer. So only the bottom decides,
and a phrase quoted in an answer, a prompt or the scrollback does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from perdure.model.screen import Screen, ScreenReading, State

_RULE = re.compile(r"─{8,}")
_PANEL = re.compile(r"▔{8,}")
_PROMPT = "❯"  # noqa: RUF001
_CHOICE = re.compile(rf"\s*{_PROMPT} \d+\. ")
_BUSY_TITLE = re.compile(r"[⠀-⣿] ")
_MODES = re.compile(r"\s*(?:⏵⏵ |⏸ |\? for shortcuts)")
#: A spinner's first word ends in an ellipsis; a finished line is in the past tense and has none.
_SPINNER = re.compile(r"[·✢✳✶✻✽*] [^\s…]+…")
_RETRY = re.compile(r"[·✢✳✶✻✽*] .*(?:· Retrying in \d+\s?s · attempt \d+/\d+|· will retry in )")
_FINISHED = re.compile(r"[·✢✳✶✻✽*] \S+ for (?:\d+[hms] ?)+")
_ERROR = re.compile(r"● (?:API Error: |API Error \(|There's an issue with the selected model|Please run /login)")
_LIMIT = re.compile(r"● (?:You've hit your .*limit|Claude usage limit reached)")
_PERMISSION = re.compile(
    r"\s*(?:Do you want to [^?]+\?|Exit plan mode\?|Would you like to proceed\?|Quick safety check|.*Bypass Permissions mode)"
)
_HINT_APPROVAL = re.compile(r"Esc to cancel · Tab to amend(?: · ctrl\+e to explain)?$", re.IGNORECASE)
_HINT_QUESTION = re.compile(r"Enter to select · .*Esc to cancel$", re.IGNORECASE)
_HINT_DIALOG = re.compile(r"(?:Enter to confirm|Esc to (?:cancel|exit))(?: · .*)?$", re.IGNORECASE)
_VIEWER = re.compile(r"\s*Showing detailed transcript\b.*", re.IGNORECASE)

_MOST_FOOTER = 8


class _Box(Struct):
    """The input box: what is typed into it, what stands above and below."""

    above: Sequence[str]
    typed: str
    footer: Sequence[str]


def read_screen(screen: Screen) -> ScreenReading | None:
    """Return what the screen says, None when it cannot tell."""
    lines = [line.rstrip() for line in screen.lines]
    lines = [line for line in lines if line]
    reading = _covered(lines)
    if reading is not None:
        return reading
    box = _find_box(lines)
    reading = _read_box(box) if box is not None else _read_dialog(lines)
    # Older versions turn a braille wheel in the title while busy, and only then.
    if (reading is None or reading.state is State.IDLE) and _BUSY_TITLE.match(screen.title):
        return ScreenReading(rule="claude.busy.title", state=State.BUSY)
    return reading


def _covered(lines: Sequence[str]) -> ScreenReading | None:
    """A viewer or picker over the agent tells nothing about it."""
    if any(_VIEWER.fullmatch(line) for line in lines[-3:]):
        return ScreenReading(rule="claude.viewer.transcript", frozen=True)
    panels = [at for at, line in enumerate(lines) if _PANEL.match(line)]
    rules = [at for at, line in enumerate(lines) if _RULE.match(line)]
    if panels and (not rules or panels[-1] > rules[-1]):
        return ScreenReading(rule="claude.viewer.panel", frozen=True)
    return None


def _find_box(lines: Sequence[str]) -> _Box | None:
    rules = [at for at, line in enumerate(lines) if _RULE.match(line)]
    if len(rules) < 2:
        return None
    top, bottom = rules[-2], rules[-1]
    footer = lines[bottom + 1 :]
    inside = lines[top + 1 : bottom]
    if not inside or not inside[0].startswith((_PROMPT, "!")) or len(footer) > _MOST_FOOTER:
        return None
    # A chosen answer of a dialog begins like a prompt, but the prompt is never followed by its hint.
    if _CHOICE.match(inside[0]) and footer and _HINT_QUESTION.search(footer[-1]):
        return None
    return _Box(above=lines[:top], typed=_typed(inside), footer=footer)


def _typed(inside: Sequence[str]) -> str:
    first = inside[0][1:].strip()
    return "" if len(inside) == 1 and first.startswith('Try "') else " ".join([first, *inside[1:]]).strip()


def _read_box(box: _Box) -> ScreenReading | None:
    if any("esc to interrupt" in line.lower() for line in box.footer):
        return ScreenReading(rule="claude.busy.footer", state=State.BUSY)
    status = _status(box.above)
    if _SPINNER.match(status) or _RETRY.match(status):
        return ScreenReading(rule="claude.busy.status", state=State.BUSY)
    # Typed text hides the footer's "esc to interrupt", so then only a finished turn proves that it is idle.
    if not (_FINISHED.match(status) or (not box.typed and any(_MODES.match(line) for line in box.footer))):
        return None
    said = _last_block(box.above)
    if _LIMIT.match(said):
        return ScreenReading(rule="claude.attention.limit", state=State.ATTENTION, reason="limit")
    if _ERROR.match(said):
        return ScreenReading(rule="claude.error.api", state=State.ERROR)
    return ScreenReading(rule="claude.idle.box", state=State.IDLE)


def _status(above: Sequence[str]) -> str:
    """The line that says what goes on: the last one at the left edge; tips and right-aligned hints are indented."""
    return next((line for line in reversed(above) if not line.startswith(" ")), "")


def _last_block(above: Sequence[str]) -> str:
    """The first line of the last answer, "" when a prompt came after it."""
    edge = (line for line in reversed(above) if line.startswith(("● ", f"{_PROMPT} ")))
    last = next(edge, "")
    return last if last.startswith("● ") else ""


def _read_dialog(lines: Sequence[str]) -> ScreenReading | None:
    """A dialog ends with its hint; below that there is at most a rule."""
    lines = list(lines)
    while lines and _RULE.match(lines[-1]):
        lines.pop()
    if not any(_CHOICE.match(line) for line in lines[-30:]):
        return None
    hint = " ".join(line.strip() for line in lines[-2:])
    if _HINT_APPROVAL.search(hint):
        return ScreenReading(rule="claude.attention.approval", state=State.ATTENTION, reason="permission")
    if _HINT_QUESTION.search(hint):
        return ScreenReading(rule="claude.attention.question", state=State.ATTENTION, reason="question")
    if _HINT_DIALOG.search(hint) or _CHOICE.match(lines[-1]) or re.match(r"\s+\d+\. ", lines[-1]):
        return _read_other_dialog(lines)
    return None


def _read_other_dialog(lines: Sequence[str]) -> ScreenReading | None:
    chosen = max(at for at, line in enumerate(lines) if _CHOICE.match(line))
    if any(_PERMISSION.match(line) for line in lines[max(0, chosen - 20) : chosen]):
        return ScreenReading(rule="claude.attention.dialog", state=State.ATTENTION, reason="permission")
    return None
