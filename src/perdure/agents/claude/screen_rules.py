"""What the parts of a Claude Code screen say; `claude/screen` takes the screen apart."""

# ruff: noqa: RUF001
from __future__ import annotations

import re

from perdure.model.agent import TITLE, ScreenRule

_STAR = r"^[·✢✳✶✻✽*] "
#: A turn that is over: in the past tense, with its duration.
FINISHED = re.compile(_STAR + r"\S+ for (?:\d+[dhms] ?)+(?:·|$)")

#: The program's own words for a conversation that waits for an allowance, not for an answer.
_LIMIT = (
    r"^(?:You've (?:hit|reached) your\b|You're out of (?:usage credits|extra usage)|Your org is out of usage"
    r"|Your seat type doesn't include|Your usage allocation has been disabled|Your group's usage limit"
    r"|(?:\S+ ){1,5}requires usage credits|Credit balance too low|Claude usage limit reached|Usage limit reached ·"
    r"|Automatic continue cancelled ·|Context limit reached)"
)
#: ... and for a turn that failed.
_ERROR = (
    r"^(?:API Error\b|(?:.* · )?Please run /login\b|There's an issue with the selected model|Not logged in ·"
    r"|Authentication (?:required|error) ·|Invalid (?:API key|auth token|ANTHROPIC_CUSTOM_HEADERS|request header)\b.* ·"
    r"|Your ANTHROPIC_API_KEY belongs to|Your organization has disabled|OAuth token revoked|Login expired ·"
    r"|Login reached its time limit|Failed to authenticate\b|Could not refresh your login"
    r"|Anthropic profile login expired|Prompt is too long|Request too large|Request timed out"
    r"|We are experiencing high demand)"
)
#: What the program asks before it may do something.
_CONSENT = (
    r"^ {0,2}(?:Do you want to \S|Do you trust \S|Quick safety check\b|WARNING: .*Bypass Permissions mode"
    r"|New MCP servers? found|Exit plan mode\?|Ready to code\?|Would you like to proceed\?|Run a dynamic workflow\?"
    r"|Allow external |Auto mode can't check actions in this session$)"
)
_PLAN = r"^ +(?:Exit plan mode\?|Ready to code\?|Claude has written up a plan\b)"
#: A hint for somebody who looks at something, and need not answer.
_LEAVE = r"\bEsc(?:/\w+)* to (?:cancel|close|clear|exit|go back)\b"

RULES = (
    # Viewers: what goes on behind them is not to be seen. One of them says that somebody is waited for.
    ScreenRule(id="viewer.agents", region=TITLE, match=r"(?:^|· )claude agents$"),
    ScreenRule(id="viewer.agents", region="box's foot", match=r"^ +enter to (?:return|open) · "),
    ScreenRule(
        id="attention.waiting", region="hint", match=r"^.{0,4}dialog waiting · ", state="attention", confidence=0.8
    ),
    ScreenRule(id="viewer.transcript", region="hint", match=r"^(?:\S+ \S+ · )?Showing detailed transcript\b"),
    ScreenRule(id="viewer.transcript", region="dialog", match=r"^ +↑↓ j/k +scroll"),
    ScreenRule(id="viewer.agent", region="agents", match=r"^[❯ ] ◯ main$"),
    # Panels: some come up by themselves and want an answer.
    ScreenRule(
        id="attention.plan", region="panel's head", match=_PLAN, state="attention", reason="permission", confidence=0.95
    ),
    ScreenRule(
        id="attention.limit.options",
        region="panel",
        match=r"^ +(?:❯ )?\d+\. Stop and wait for limit to reset$",
        state="attention",
        reason="limit",
    ),
    ScreenRule(
        id="attention.resume",
        region="panel",
        match=r"^ +(?:❯ )?\d+\. Resume from summary\b",
        state="attention",
        reason="question",
        confidence=0.8,
    ),
    ScreenRule(id="viewer.panel", region="panel", match=r""),
    # Dialogs.
    ScreenRule(
        id="attention.question",
        region="hint",
        match=r"Enter to select · .*Esc to cancel$",
        state="attention",
        reason="question",
        confidence=0.95,
    ),
    ScreenRule(
        id="attention.approval",
        region="hint",
        match=r"(?:^|\s)Esc to cancel · Tab to amend\b",
        state="attention",
        reason="permission",
        confidence=0.95,
    ),
    ScreenRule(id="attention.consent", region="dialog", match=_CONSENT, state="attention", reason="permission"),
    ScreenRule(
        id="attention.question",
        region="question",
        match=r"^(?:←  | )[☐☒] |^Ready to submit your answers\?$",
        state="attention",
        reason="question",
    ),
    ScreenRule(
        id="attention.dialog",
        region="hint",
        match=r"\bEnter to confirm · Esc to (?:cancel|exit)$",
        state="attention",
        reason="question",
        confidence=0.6,
    ),
    ScreenRule(
        id="attention.login.method",
        region="dialog",
        match=r"^ {0,2}Select login method:$",
        state="attention",
        reason="login",
    ),
    ScreenRule(id="viewer.dialog", region="hint", match=_LEAVE, confidence=0.8),
    # The box: a turn is running ...
    ScreenRule(
        id="busy.footer",
        region="footer",
        match=r"(?:^\s*|· )(?:esc to interrupt\b|e[esctoinrup ]*…$)",
        state="busy",
        confidence=0.95,
    ),
    ScreenRule(
        id="busy.status",
        region="status",
        match=_STAR + r"(?:[^…]*…|Waiting for \d+ .* to finish\b|.* · (?:[Rr]etrying\b|will retry in |next try in ))",
        state="busy",
    ),
    # Where nothing is to move, the spinner is a dot like an answer's; only the time it counts tells them apart.
    ScreenRule(
        id="busy.status.still",
        region="status",
        match=r"^● \S[^…]{0,60}… \((?:\d+[dhms] ?)+(?:·|\)$)",
        state="busy",
        confidence=0.8,
    ),
    ScreenRule(
        id="busy.agents",
        region="agents",
        match=r"^[❯ ] ◯ .* \d+s(?: · [↑↓] \S+ tokens)?$",
        state="busy",
        confidence=0.8,
    ),
    # Older versions turn a wheel in the title while busy, and only then.
    ScreenRule(id="busy.title", region=TITLE, match=r"^[⠀-⣿] ", state="busy"),
    # ... or none is, because nobody is logged in, which is said at the right edge,
    ScreenRule(
        id="attention.login",
        region="box's foot",
        match=r"(?:^| ) {2,}Not logged in · Run /login$",
        state="attention",
        reason="login",
    ),
    # ... or the last word says how it ended.
    ScreenRule(
        id="attention.limit.notice",
        region="notices",
        match=r"^ +⚠ Usage limit reached\b",
        state="attention",
        reason="limit",
    ),
    ScreenRule(
        id="attention.limit", region="last word", match=_LIMIT, state="attention", reason="limit", confidence=0.85
    ),
    ScreenRule(id="error.turn", region="last word", match=_ERROR, state="error", confidence=0.85),
    ScreenRule(id="idle.finished", region="status of a turn that is over", match=r"", state="idle", confidence=0.95),
    ScreenRule(id="idle.footer", region="footer of an agent at rest", match=r"", state="idle", confidence=0.95),
    ScreenRule(id="idle.fresh", region="screen without a prompt", match=r"", state="idle"),
    ScreenRule(id="idle.ended", region="outcome of the last prompt", match=r"", state="idle", confidence=0.85),
    ScreenRule(id="idle.box", region="footer without a way to interrupt", match=r"", state="idle", confidence=0.8),
)
