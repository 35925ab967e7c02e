"""What a Claude Code screen says, judged by region.

From the bottom up: the footer, the input box between two edges, and above that the conversation, whose last line at
the left edge says what goes on. A dialog takes the place of box and footer, a panel comes up over them. The program
itself writes at the left edge; whatever a person, a model or a tool wrote is indented. So a phrase quoted in an
answer, a prompt or the scrollback decides nothing.
"""

# ruff: noqa: RUF001
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from perdure.agents._screens import judge, visible
from perdure.agents.claude.screen_rules import FINISHED, RULES
from perdure.model.screen import Screen, ScreenReading

_RULE = re.compile(r"─{8,}")
#: The box's upper edge may bear the conversation's name, which leaves little of it when the pane is narrow.
_EDGE = re.compile(r"(?:─| \S).*─")
_NAMED_EDGE = re.compile(r"(?:─+ | )\S.* ─")
#: Set between old and new messages in a conversation that was scrolled, and no edge of anything.
_DIVIDER = re.compile(r"─+ \d+ new messages? ─+")
#: A panel's upper edge, which is where passing notices are shown too.
_PANEL = re.compile(r"▔{3,}.*|(?:▔| \S).* ▔")
#: Stands over the end of a conversation that was scrolled up: what is above the box is not its end.
_SCROLLED = re.compile(r".*(?:Jump to bottom|\d+ new messages?) \(\S+\) ↓")
_MODE = re.compile(r"\s*(?:-- [A-Z -]+ -- ?)?(?:⏵⏵ |⏸ |\? for |esc to interrupt)")
_VIM = re.compile(r"\s*-- [A-Z]")
_AGENT = re.compile(r"[❯ ] [●◯] ")
#: What stands in the box while nothing is typed.
_PLACEHOLDER = re.compile(r'(?:Try "|Press (?:up|Enter) to |Message @).*')
#: Says nothing: at rest it would tell of its shortcuts, unless the user's own status line keeps it from telling anything.
_BARE = re.compile(r"\s*⏸ manual mode on(?: · ←.*)?")
#: What the footer shows after its "esc to interrupt", were there one.
_LATER_HINT = re.compile(r" · (?:←|ctrl\+t|↓ to|\d+ shells?\b.*↓ to)")
_SHORTCUTS = re.compile(r"(?:^\s*| · )\? (?:for shortcuts|[for shtcu]*…)")
#: The sign the program begins with, with one blank before it at most: in an answer there were two.
_BANNER = re.compile(r" ?▐▛█{2,}")
_OPENERS = ("● ", "❯ ", "!")
_PROMPT_SIGNS = ("❯", "!")
_NOTICE = "  ⎿  "

#: So many lines a prompt may be long, and a dialog high.
_MOST_TYPED = 80
_MOST_HINT = 3
#: " · e…": what "esc to interrupt" needs at least to be hinted at in the footer.
_LEAST_ROOM = 6

Regions = Mapping[str, Sequence[str]]


class _Box(Struct):
    """The input box: what is typed into it, what stands above and below."""

    above: Sequence[str]
    typed: str
    footer: Sequence[str]
    width: int


def read_screen(screen: Screen) -> ScreenReading | None:
    """Return what the screen says, None when it cannot tell."""
    # It keeps some of its blanks from being broken, and which ones is of no interest here.
    return judge("claude", RULES, screen, _regions([line.replace("\xa0", " ") for line in visible(screen)]))


def _regions(lines: Sequence[str]) -> Regions:
    """Take the screen apart; see the rules for what each part may say."""
    # Below a dialog the box's upper edge may be left standing.
    if lines and _NAMED_EDGE.fullmatch(lines[-1]):
        lines = lines[:-1]
    panels = [at for at, line in enumerate(lines) if _PANEL.fullmatch(line)]
    rules = [at for at, line in enumerate(lines) if _RULE.fullmatch(line)]
    if panels and (not rules or panels[-1] > rules[-1]):
        return _panel(lines[panels[-1] + 1 :])
    box = _find_box(lines, rules[-1]) if rules else None
    if box is not None:
        return _box(box)
    while rules and rules[-1] == len(lines) - 1:
        lines = lines[: rules.pop()]
    return _dialog(lines, rules)


def _panel(lines: Sequence[str]) -> Regions:
    """A panel's first line is its title. A plan too long for it leaves the part below its last rule."""
    inner = [at for at, line in enumerate(lines) if line.lstrip().startswith("───")]
    last = inner[-1] + 1 if inner else 0
    head = [line for line in lines[:3] if not line.lstrip().startswith("───")][:1]
    return {"panel": lines, "panel's head": [*head, *lines[last : last + 1]]}


def _dialog(lines: Sequence[str], rules: Sequence[int]) -> Regions:
    """A dialog fills the bottom: its hint comes last, perhaps wrapped. A low pane cuts off its upper edge."""
    below = lines[rules[-1] + 1 :] if rules else lines
    hint = " ".join(line.strip() for line in below[-_MOST_HINT:])
    # A question's last answer is set off by a rule of its own.
    whole = lines[rules[-2] + 1 :] if len(rules) > 1 else below
    return {"dialog": below, "question": whole, "hint": [hint]}


def _find_box(lines: Sequence[str], bottom: int) -> _Box | None:
    """The box ends at the last rule, and begins at its prompt sign, right below its upper edge."""
    for at in range(bottom - 1, max(-1, bottom - 1 - _MOST_TYPED), -1):
        line = lines[at]
        if line.startswith(_PROMPT_SIGNS):
            edge = lines[at - 1] if at else ""
            if not _EDGE.fullmatch(edge) or _DIVIDER.fullmatch(edge):
                return None
            typed = " ".join([line[1:].strip(), *(each.strip() for each in lines[at + 1 : bottom])])
            return _Box(above=lines[: at - 1], typed=typed, footer=lines[bottom + 1 :], width=len(lines[bottom]))
        if not line.startswith("  "):
            return None
    return None


def _box(box: _Box) -> Regions:
    modes = [at for at, line in enumerate(box.footer) if _MODE.match(line)]
    mode = box.footer[modes[-1]] if modes else ""
    scrolled = any(_SCROLLED.fullmatch(line) for line in box.above[-2:])
    above: Sequence[str] = () if scrolled else box.above
    status = _status(above)
    regions: dict[str, Sequence[str]] = {
        "footer": [mode] if mode else (),
        "box's foot": box.footer,
        "notices": box.footer[: modes[-1]] if modes else (),
        "agents": [line for line in box.footer if _AGENT.match(line)],
        "status": [status],
    }
    proofs = dict(_proofs(box, mode, modes, above, status))
    # What was said last counts only once the agent is known to have come to rest.
    return {**regions, "last word": _last_word(above), **proofs} if proofs else regions


def _proofs(
    box: _Box, mode: str, modes: Sequence[int], above: Sequence[str], status: str
) -> Iterator[tuple[str, Sequence[str]]]:
    """Everything that shows that no turn is running."""
    if FINISHED.match(status):
        yield "status of a turn that is over", [status]
    if _SHORTCUTS.search(mode):
        yield "footer of an agent at rest", [mode]
    elif _hides_nothing(box, mode, modes):
        yield "footer without a way to interrupt", [mode]
    banner = [line for line in above if _BANNER.match(line)][:1]
    if banner and not any(line.startswith(_OPENERS) for line in above):
        yield "screen without a prompt", banner
    ended = _ended(above)
    if ended:
        yield "outcome of the last prompt", [ended]


def _hides_nothing(box: _Box, mode: str, modes: Sequence[int]) -> bool:
    """Whether the footer would show how to interrupt a turn, were there one.

    It does not while something is typed, where a status line of the user's own or vim's modes take its place, and
    where there is no room for it.
    """
    if not mode or modes[-1] > 0 or _VIM.match(mode) or _BARE.fullmatch(mode):
        return False
    if box.typed and not _PLACEHOLDER.fullmatch(box.typed):
        return False
    return bool(_LATER_HINT.search(mode)) or (not mode.endswith("…") and box.width - len(mode) >= _LEAST_ROOM)


def _status(above: Sequence[str]) -> str:
    """The line that says what goes on: the last at the left edge. A recap may come after it."""
    return next((line for line in reversed(above) if not line.startswith((" ", "※"))), "")


def _last_word(above: Sequence[str]) -> Sequence[str]:
    """The first line of what was said last, or the program's own remark on the last prompt."""
    for at in range(len(above) - 1, -1, -1):
        line = above[at]
        if line.startswith(_NOTICE):
            opener = _opener(above[:at])
            return () if opener.startswith("!") or _is_command(opener) else [line.removeprefix(_NOTICE)]
        if line.startswith(_OPENERS):
            return [line.removeprefix("● ")] if line.startswith("● ") else ()
    return ()


def _ended(above: Sequence[str]) -> str:
    """A command's output, or the remark that a turn was interrupted: after either nothing goes on."""
    edge = next((at for at in range(len(above) - 1, -1, -1) if not above[at].startswith(" ")), len(above))
    notices = [line for line in above[edge + 1 :] if line.startswith(_NOTICE)]
    if notices and notices[-1].startswith(f"{_NOTICE}Interrupted"):
        return notices[-1]
    # Only what comes right below the command is its output; a prompt by that name may have tools run.
    return notices[0] if notices and _is_command(above[edge]) and above[edge + 1] == notices[0] else ""


def _opener(lines: Sequence[str]) -> str:
    return next((line for line in reversed(lines) if line.startswith(_OPENERS)), "")


def _is_command(opener: str) -> bool:
    return opener[:1] == _PROMPT_SIGNS[0] and opener[2:3] == "/"
