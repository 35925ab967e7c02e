"""What a Hermes screen says, judged by region.

At the bottom stands the prompt between two rules as wide as the screen (one, above it, on a narrow screen), and a sign before
it says in what state Hermes is. Above the upper rule is the status line, and above that, in a frame, whatever it asks.
Completions come below. The terminal interface (`--tui`) has no rules: its last lines are a status line and the prompt, and a
question stands in the prompt's place.
"""

# ruff: noqa: RUF001

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from perdure.agents._screens import judge
from perdure.model.agent import TITLE, ScreenRule
from perdure.model.screen import Screen, ScreenReading

_RULE = re.compile(r"─{20,}")
_STATUS = re.compile(r" ⚕ \S")
#: What stands before the prompt, alone or with the arrow of whatever skin is chosen.
_SIGN = re.compile(r"(?:⚕|⚠|\?|✎|🔐|🔑|🎤|[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏])(?= |$)|(?:[\w.-]{1,64} )?(?:\S )?[❯›»→⚔Ψ◉✦](?= |$)")
#: Where somebody's words or a command begin.
_ASKED = re.compile(r"● |⚙️? {1,2}/")
_FAILED = re.compile(r"❌ ")
_ANSWERED = re.compile(r"╭─ ⚕ ")
_PICKER = re.compile(r"╭─ ⚙ ")
_TUI_STATUS = re.compile(r" ─ (?P<state>\S.*?) │ ")
_TUI_PROMPT = re.compile(r" (?:\S{1,64} )?❯(?: |$)")
_TUI_FAILED = re.compile(r" ┊ {2}(?:HTTP \d{3}: |API call failed after )")
_TUI_KEYS = re.compile(r"↑/↓ select · Enter confirm · ")

RULES = (
    ScreenRule(
        id="attention.hooks",
        region="last",
        match=r"^Allow this hook to run\? \[y/N\]:",
        state="attention",
        reason="permission",
    ),
    ScreenRule(
        id="attention.login", region="last", match=r"^Run setup now\? \[Y/n\]", state="attention", reason="login"
    ),
    ScreenRule(id="attention.sudo", region="sign", match="🔐", state="attention", reason="permission"),
    ScreenRule(id="attention.secret", region="sign", match="🔑", state="attention", reason="question"),
    ScreenRule(id="attention.confirm", region="confirm", match="", state="attention", reason="question"),
    ScreenRule(id="attention.approval", region="sign", match="⚠", state="attention", reason="permission"),
    ScreenRule(id="attention.question", region="sign", match=r"[?✎]", state="attention", reason="question"),
    ScreenRule(id="busy.sign", region="sign", match="[⚕⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", state="busy"),
    ScreenRule(id="viewer.picker", region="picker", match=""),
    ScreenRule(id="busy.background", region="status", match=r" [│·] [▶⛓] \d", state="busy", confidence=0.8),
    ScreenRule(id="error.turn", region="failed", match="", state="error"),
    ScreenRule(id="idle.sign", region="sign", match=".", state="idle"),
    ScreenRule(
        id="attention.tui-approval",
        region="tui-frame",
        match=r"^⚠ approval required",
        state="attention",
        reason="permission",
    ),
    ScreenRule(id="attention.tui-question", region="tui-keys", match="", state="attention", reason="question"),
    ScreenRule(id="viewer.tui", region="tui-panel", match=r"· q close\b"),
    ScreenRule(id="idle.tui", region="tui-status", match=r"^ready$", state="idle"),
    ScreenRule(id="busy.tui", region="tui-status", match=r"…", state="busy"),
    # Its other signs say less than the screen: a question of its own and a failed turn look like rest.
    ScreenRule(id="busy.title", region=TITLE, match=r"^⏳[\ufe0e\ufe0f]? ", state="busy"),
)


class _Prompt(Struct, frozen=True, kw_only=True):
    """The prompt's sign, and what stands above the rule before it."""

    sign: str
    above: Sequence[str]


def read_screen(agent: str, screen: Screen) -> ScreenReading | None:
    """Return what the screen says, None when it cannot tell."""
    lines = [line.rstrip() for line in screen.lines]
    while lines and not lines[-1]:
        lines.pop()
    prompt = _find_prompt(lines)
    return judge(agent, RULES, screen, _regions(prompt) if prompt is not None else _tui(lines))


def _find_prompt(lines: Sequence[str]) -> _Prompt | None:
    ends = [at for at, line in enumerate(lines) if _RULE.fullmatch(line)][-2:]
    for at in reversed(ends):
        inside = [line for line in lines[at + 1 : at + 3] if not line.startswith(" [📎")]
        match = _SIGN.match(inside[0]) if inside else None
        if match is not None:
            below = lines[ends[-1] + 1 :] if at != ends[-1] else ()
            # Completions are indented; anything else down there is a shell's, and Hermes has ended.
            ended = any(line and not line.startswith(" ") for line in below)
            return None if ended else _Prompt(sign=match[0], above=lines[:at])
    return None


def _regions(prompt: _Prompt) -> dict[str, Sequence[str]]:
    above = list(prompt.above)
    status = above.pop() if above and _STATUS.match(above[-1]) else ""
    hints = [line.strip() for line in above[-2:]]
    return {
        "sign": (prompt.sign,),
        "status": (status,),
        "confirm": [line for line in hints if "⚠" in prompt.sign and line.startswith("type 1/2/3, or ")],
        "picker": () if status else _frame(above, _PICKER),
        "failed": _failed(above),
    }


def _frame(above: Sequence[str], title: re.Pattern[str]) -> Sequence[str]:
    """The title of a frame that is the last thing above the prompt."""
    said = [line for line in above if line]
    if not said or not said[-1].startswith("╰"):
        return ()
    top = next((line for line in reversed(said) if line.startswith("╭")), "")
    return (top,) if title.match(top) else ()


def _failed(above: Sequence[str]) -> Sequence[str]:
    """What says that the last turn failed, unless an answer came after all. Answers are indented, so no text of theirs."""
    found: list[str] = []
    for line in above:
        if _ASKED.match(line) or _ANSWERED.match(line):
            found.clear()
        elif _FAILED.match(line):
            found.append(line)
    return found[-1:]


def _tui(lines: Sequence[str]) -> dict[str, Sequence[str]]:
    """The terminal interface: its status line is the last but one, or the last when a question hides the prompt."""
    if len(lines) > 1 and lines[-1].startswith(" ╚═"):
        return {"tui-panel": lines[-2:-1]}
    places = [at for at, line in enumerate(lines[-12:], max(len(lines) - 12, 0)) if _TUI_STATUS.match(line)]
    if not places:
        return {}
    at = places[-1]
    status = _TUI_STATUS.match(lines[at])
    assert status is not None
    if at + 1 < len(lines) and _TUI_PROMPT.match(lines[at + 1]):
        said = next((line for line in reversed(lines[:at]) if line.startswith((" ┊  ", " ❯ "))), "")
        # An error is given for an answer, and an answer may read like an error.
        return {} if _TUI_FAILED.match(said) and status["state"] == "ready" else {"tui-status": (status["state"],)}
    asked = [line.strip(" ║") for line in lines[max(at - 30, 0) : at]]
    while asked and not asked[-1].strip("╚═╝ "):
        asked.pop()
    keys = " ".join(asked[-2:])
    if not _TUI_KEYS.search(keys):
        return {}
    frame = [line for line in asked if line.startswith("⚠")]
    return {"tui-frame": frame[-1:], "tui-keys": (keys,)}
