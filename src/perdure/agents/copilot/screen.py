"""What a Copilot screen says, judged by region.

From the top down: the tabs, the conversation, the input box between two rules, and the footer. A dialog takes the place
of box and footer, a viewer that of everything. The sidebar, when it is open, stands to the left of all of it. Box and
footer are always at the bottom of a screen that shows the conversation, so what is above them decides nothing but how
the last turn ended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from perdure.agents._screens import judge, visible
from perdure.model.agent import ScreenRule
from perdure.model.screen import Screen, ScreenReading

_RULE = re.compile(r"─{16,}")
_SIDEBAR = re.compile(r"\s*←\s+\+\s*[│┃]")
_BORDER = re.compile(r"[│┃]")
_SCROLLBAR = re.compile(r"\s+┃$")
_TABS = re.compile(r"\s*\[?Current\]?\s+\[?Sessions\]?\s")
#: What a block of the conversation begins with; its other lines are indented further.
_BLOCK = re.compile(r" [●○◎◉✗✓!$❯] ")  # noqa: RUF001
_PROMPTS = ("❯", "!")  # noqa: RUF001
#: What it loads as it starts, nobody has asked for.
_BUSY = r"^ [●○◎◉◌] (?!Loading:)\S"
_IDLE = (
    r"^ (?:← open sidebar · )?(?:Interactive|Plan|Autopilot|Shell)\b"
    r"|/ commands| · (?:Manual Approval|Allow All)\b|^ ctrl\+c again to exit|^ ← use\b|^ → focus timeline"
)
_LEAVE = r"\besc (?:to )?(?:close|cancel|exit|back)\b"
_MOST_FOOTER = 4

_RULES = (
    ScreenRule(id="viewer.tab", region="tabs", match=r"\[(?!Current\])"),
    ScreenRule(
        id="attention.limit", region="dialog", match=r"^You've been rate limited\b", state="attention", reason="limit"
    ),
    ScreenRule(
        id="attention.approval",
        region="dialog",
        match=r"^(?:Do you (?:want to|trust) |Plan Ready for Review$)",
        state="attention",
        reason="permission",
    ),
    ScreenRule(id="attention.in-use", region="dialog", match=r"^Session in use$", state="attention", reason="question"),
    ScreenRule(
        id="attention.question",
        region="form",
        match=r"^ Copilot needs information\.",
        state="attention",
        reason="question",
    ),
    ScreenRule(
        id="attention.login.account",
        region="bottom's head",
        match=r"^ What account do you want to log into\?$",
        state="attention",
        reason="login",
    ),
    ScreenRule(id="viewer.panel", region="dialog", match=r"\S"),
    ScreenRule(id="viewer.form", region="form", match=r"(?i)" + _LEAVE),
    ScreenRule(id="viewer.help", region="footer", match=r"^ any key close help"),
    ScreenRule(id="viewer.help", region="help", match=r"^ ctrl\+c.2 +exit\b"),
    ScreenRule(id="busy.footer", region="footer", match=_BUSY, state="busy"),
    # At the left edge, where nothing of the conversation ever begins.
    ScreenRule(
        id="attention.login",
        region="notice",
        match=r"^Please use /login to sign in\b",
        state="attention",
        reason="login",
    ),
    ScreenRule(id="error.turn", region="ended", match=r"^ ✗ ", state="error"),
    ScreenRule(id="idle.footer", region="footer", match=_IDLE, state="idle"),
    ScreenRule(id="viewer.hint", region="hint", match=rf"(?i){_LEAVE}|^ tab switch tabs$"),
)


def read_screen(agent: str, screen: Screen) -> ScreenReading | None:
    """Return what the screen says, None when it cannot tell."""
    return judge(agent, _RULES, screen, _regions(_beside_sidebar(visible(screen))))


def _beside_sidebar(lines: Sequence[str]) -> list[str]:
    """The lines without the sidebar, and without the bar that shows how far the conversation is scrolled."""
    if lines and _SIDEBAR.match(lines[0]):
        lines = [_BORDER.split(line, maxsplit=1)[-1] for line in lines]
    return [text for line in lines if (text := _SCROLLBAR.sub("", line).rstrip())]


def _regions(lines: Sequence[str]) -> dict[str, Sequence[str]]:
    tabs = lines[:1] if lines and _TABS.match(lines[0]) else ()
    rules = [at for at, line in enumerate(lines) if _RULE.fullmatch(line)]
    if len(rules) > 1 and lines[rules[-2] + 1].startswith(_PROMPTS) and 0 < len(lines) - 1 - rules[-1] <= _MOST_FOOTER:
        footer = lines[rules[-1] + 1 :]
        idle = re.search(_IDLE, footer[0]) and not re.match(_BUSY, footer[0])
        above = lines[: rules[-2]]
        return {"tabs": tabs, "footer": footer[:1], "notice": above[-2:], "ended": _ended(above) if idle else ()}
    panel = _panel(lines)
    if panel:
        return {"tabs": tabs, "dialog": panel}
    if any(line == _PROMPTS[0] for line in lines[-2:]):
        # On a small screen the help pushes the end of the box out of sight.
        return {"tabs": tabs, "help": lines}
    if len(rules) > 1 and rules[-1] == len(lines) - 1:
        return {"tabs": tabs, "form": lines[rules[-2] + 1 : rules[-1]]}
    # A hint may be broken into several lines.
    hint = [" ".join(map(str.strip, lines[-3:])), *lines[-1:]]
    return {"tabs": tabs, "bottom's head": lines[-_MOST_FOOTER:-1], "hint": hint}


def _ended(above: Sequence[str]) -> Sequence[str]:
    """The line the last block of the conversation begins with."""
    return next(([line] for line in reversed(above) if _BLOCK.match(line)), ())


def _panel(lines: Sequence[str]) -> list[str]:
    """What a framed dialog at the end of the screen says itself: a command or a file it shows is in a frame of its own."""
    if not lines or not re.fullmatch(r"╰─+╯", lines[-1]):
        return []
    inside = []
    for line in reversed(lines[:-1]):
        if not line.startswith("│"):
            break
        said = line[1:].rstrip("│").strip()
        if said and said[0] not in "│╭╰─":
            inside.append(said)
    return inside[::-1]
