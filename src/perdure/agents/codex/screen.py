"""What a Codex screen says, judged by region.

From the bottom up: the footer, the composer after its prompt sign, what is queued, the status line, and above that the
conversation, where any text at all may stand. A dialog, menu or viewer takes the place of composer and footer and ends
in a line of keys.

While an answer streams there is no status line, and only the wheel in the title tells. Who has animations turned off has
no wheel. So an answer that does not end in how long it took says nothing, and everything else above the composer that
is no status line says that nothing goes on.
"""

# ruff: noqa: RUF001

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from perdure.agents._screens import judge
from perdure.model.agent import TITLE, ScreenRule
from perdure.model.screen import Screen, ScreenReading

_PROMPT = re.compile(r"[›!](?: |$)")
_CHOICE = re.compile(r" {0,2}› (?:\d+\. |\[[ x]\] )")
_STATUS = re.compile(r"(?:[•◦·] )?[^\s›■•◦].*\((?:\d+h )?(?:\d+m )?\d+s • .+ to interrupt\)")
#: What stands between the status line and the composer: what is queued, the list of commands, and what covers more.
_BETWEEN = re.compile(r"• (?:Queued |Messages to be )|[›↑↓]? ? ?/\w|[↑↓]$")
_COVER = re.compile(r"  (?:Keyboard shortcuts|Mentions)$")
#: A reminder at the right edge, above the composer.
_REMINDER = re.compile(r"\s{8,}⚠ ")
_SCROLLED = re.compile(r"\s{2,}(?:New activity · )?↓ Back to bottom")
_FINISHED = re.compile(r"  Worked for (?:<1s|(?:\d+[hms] ?)+)(?: •|$)")
_BANNER = re.compile(r"\s+>_ OpenAI Codex \(v")
#: What it says of itself where an answer of the model could stand.
_NOTICE = re.compile(
    r"• (?:Model changed|Fork created|Conversation reverted|Thread (?:forked|renamed)|Context compacted|Permissions|Unrecognized command|Usage: )"
)
#: What it says about a command of its own, which has nothing to do with the turn.
_ASIDE = re.compile(r"■ (?:Conversation interrupted|'/|Usage: |Sign in |Managed worktrees |Unrecognized command)")

#: The key a menu or viewer is left by, and what the program calls that.
_LEAVE = r"(?:esc|q|\^c) (?:back|close|cancel|exit|quit|skip|save/close|use session|dismiss(?: & close)?)"
_NO_LIMIT = r"hit your usage limit|usage limit reached|[Qq]uota exceeded|out of credits|spend cap|credit limit"
_FAILED = (
    r'\{"?error|unexpected status|exceeded retry limit|stream disconnected|error sending request|request timed out'
    r"|We.re currently experiencing high|Codex (?:ran out of room|is currently experiencing)|Selected model is at capacity"
    r"|internal error|Your access token could not|To use Codex with your ChatGPT plan|turn aborted|Incomplete response"
    r"|Missing environment variable|timeout waiting|Conversation .*not found"
)

_MENU = re.compile(rf"(?:^| · ){_LEAVE}(?: ·|$)| to cancel\b|^thread$")
_MOST_FOOTER = 4

_RULES = (
    ScreenRule(
        id="attention.approval",
        region="keys",
        match=r"^Press .+ to confirm or .+ to cancel\b",
        state="attention",
        reason="permission",
    ),
    ScreenRule(
        id="attention.question",
        region="keys",
        match=r"\b\S+ to submit (?:answer|all)\b|\bto navigate questions\b|^Press .+ to confirm or .+ to go back$",
        state="attention",
        reason="question",
    ),
    ScreenRule(
        id="attention.form",
        region="keys",
        match=r"\bto submit\b.*\bto cancel$",
        state="attention",
        reason="question",
    ),
    ScreenRule(
        id="attention.locked", region="keys", match=r"^r retry\s+f fork\b", state="attention", reason="question"
    ),
    ScreenRule(
        id="attention.plan", region="heading", match=r"^Implement this plan\?$", state="attention", reason="permission"
    ),
    ScreenRule(
        id="attention.trust",
        region="heading",
        match=r"^Hooks? needs? review$|^Do you trust the |^You are (?:running Codex )?in |^Trust ",
        state="attention",
        reason="permission",
    ),
    ScreenRule(
        id="attention.limit",
        region="heading",
        match=r"^Approaching rate limits|^Usage limit reached|^You.ve reached your workspace|^Your workspace is out of",
        state="attention",
        reason="limit",
    ),
    ScreenRule(
        id="attention.start",
        region="heading",
        match=r"^Working directory · |\bUpdate available\b|^Background server ",
        state="attention",
        reason="question",
    ),
    ScreenRule(id="attention.login", region="heading", match=r"^Sign in with ", state="attention", reason="login"),
    ScreenRule(
        id="attention.login.method",
        region="keys",
        match=r"^Press enter to continue$",
        state="attention",
        reason="login",
    ),
    ScreenRule(id="viewer.center", region="keys", match=r"^\? help\s+esc back\b"),
    ScreenRule(id="viewer.picker", region="keys", match=r"^enter (?:resume|fork)\s{2,}|^\^o com.*↑/↓ browse$"),
    ScreenRule(
        id="viewer.menu",
        region="keys",
        match=rf"(?:^| · ){_LEAVE}(?: ·|$)",
    ),
    ScreenRule(id="busy.status", region="status", match=r"", state="busy"),
    ScreenRule(id="busy.footer", region="footer", match=r"^\S+ to queue message\b", state="busy"),
    ScreenRule(
        id="attention.title", region=TITLE, match=r"(?:^|\| )\[ [!.] \] Action Required(?: \||$)", state="attention"
    ),
    ScreenRule(id="busy.title", region=TITLE, match=r"(?:^|\s)[⠁-⣿](?:\s|$)|\| (?:Working|Thinking)$", state="busy"),
    ScreenRule(id="attention.usage", region="end", match=rf"^■ .*(?:{_NO_LIMIT})", state="attention", reason="limit"),
    ScreenRule(id="error.turn", region="end", match=rf"^■ (?:{_FAILED})", state="error"),
    ScreenRule(id="error.answer", region="answer", match=r"^■ ", unless=_ASIDE.pattern, state="error", confidence=0.7),
    ScreenRule(id="idle.finished", region="finished", match=r"", state="idle"),
    ScreenRule(id="idle.scrolled", region="scrolled", match=r"", state="idle", confidence=0.6),
)


class _Composer(Struct):
    """Where a prompt is typed: what stands above it and below."""

    above: Sequence[str]
    footer: Sequence[str]


def read_screen(agent: str, screen: Screen) -> ScreenReading | None:
    """Return what the screen says, None when it cannot tell."""
    lines = [line.rstrip() for line in screen.lines]
    while lines and not lines[-1]:
        lines.pop()
    return judge(agent, _RULES, screen, _regions(lines, screen.title))


def _regions(lines: Sequence[str], title: str) -> dict[str, Sequence[str]]:
    composer = _find_composer(lines)
    if composer is None:
        return {"keys": _keys(lines), "heading": _heading(lines)}
    footer = [line.strip() for line in composer.footer]
    regions: dict[str, Sequence[str]] = {"keys": footer, "footer": footer, "status": _status(composer.above)}
    scrolled = [line for line in composer.above if _SCROLLED.match(line)]
    if not scrolled:
        return regions | _end(_said(composer.above))
    # How it ends is out of sight. A title is there as soon as there is a conversation, and has a wheel while it works.
    return regions | {"scrolled": scrolled if title else []}


def _keys(lines: Sequence[str]) -> list[str]:
    """The line of keys a dialog ends in, which may need two or three lines."""
    groups = _groups(lines[-3:])
    last = [line.strip() for line in groups[-1]] if groups else []
    return [" ".join(last[-count:]) for count in range(1, len(last) + 1)]


def _heading(lines: Sequence[str]) -> list[str]:
    """What a dialog asks: the lines right above its choices."""
    chosen = next((at for at in range(len(lines) - 1, -1, -1) if _CHOICE.match(lines[at])), None)
    if chosen is None:
        return []
    groups = _groups(lines[:chosen])
    # The choices before the chosen one are in its group.
    if lines[chosen - 1] and groups:
        groups.pop()
    return [line.strip() for line in groups[-1]] if groups else []


def _groups(lines: Sequence[str]) -> list[list[str]]:
    """The lines, split where one is empty."""
    groups: list[list[str]] = [[]]
    for line in lines:
        if line:
            groups[-1].append(line)
        elif groups[-1]:
            groups.append([])
    return groups if groups[-1] else groups[:-1]


def _find_composer(lines: Sequence[str]) -> _Composer | None:
    """The last prompt at the left edge, when nothing but its own text and a footer is below it."""
    for at in range(len(lines) - 1, -1, -1):
        if _PROMPT.match(lines[at]):
            below = _groups(lines[at + 1 :]) if "" in lines[at + 1 :] else []
            if not below or len(below[-1]) > _MOST_FOOTER or _is_menu(lines[at:]):
                return None
            return _Composer(above=[line for line in lines[:at] if not _REMINDER.match(line)], footer=below[-1])
        if lines[at] and not lines[at].startswith(" "):
            return None
    return None


def _is_menu(lines: Sequence[str]) -> bool:
    return bool(_CHOICE.match(lines[0]) and _MENU.search(lines[-1].strip()))


def _status(above: Sequence[str]) -> list[str]:
    """The line that says what goes on, when nothing of the conversation is below it."""
    for line in reversed(above):
        if _STATUS.match(line):
            return [line]
        if _FINISHED.match(line) or (line and not line.startswith(" ") and not _BETWEEN.match(line)):
            return []
    return []


def _said(above: Sequence[str]) -> list[list[str]]:
    """The conversation in groups of lines, without what stands between it and the composer."""
    cover = next((at for at, line in enumerate(above) if _COVER.match(line)), len(above))
    groups = _groups(above[:cover])
    while groups and _BETWEEN.match(groups[-1][0]):
        groups.pop()
    return groups


def _end(groups: Sequence[Sequence[str]]) -> dict[str, Sequence[str]]:
    """How the conversation ends."""
    if not groups:
        return {}
    last = groups[-1]
    if last[0].startswith("■"):
        said = " ".join(last)
        asked = len(groups) > 1 and _PROMPT.match(groups[-2][0])
        return {"end": [said], "answer": [said] if asked else [], "finished": [said] if _ASIDE.match(said) else []}
    return {"finished": last[-1:] if _FINISHED.match(last[-1]) or _is_at_rest(groups) else []}


def _is_at_rest(groups: Sequence[Sequence[str]]) -> bool:
    """Whether what comes last is neither a prompt nor an answer, which may still be going on."""
    edge = [line for group in groups for line in group if not line.startswith(" ")]
    if not edge:
        return any(_BANNER.match(line) for group in groups for line in group)
    return not edge[-1].startswith(("•", "›", "!")) or _NOTICE.match(edge[-1]) is not None
