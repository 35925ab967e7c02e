"""What an aider screen says, judged by region.

Aider draws from the top down. It rules a line across the pane before each prompt; between them may stand the files in
the chat. What was typed has the prompt before each of its lines, and what came of it follows after an empty line. So the
part below the last rule decides, and the part between the last two says how the last turn ended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from perdure.agents._screens import drawn, judge
from perdure.model.agent import ScreenRule
from perdure.model.screen import Screen, ScreenReading

_RULE = re.compile(r"─{20,}")
#: `> `, `ask> `, `multi> `, `diff multi> `.
_PROMPT = re.compile(r"((?:[a-z][a-z-]*)?(?: ?multi)?>)(?: |$)")
_SPINNER = re.compile(r"(?=.{0,9}[█#])[ ░█=#]{10} \S")
_QUESTION = re.compile(r"(.*\S) \(Y\)es/\(N\)o(?:/\(A\)ll)?(?:/\(S\)kip all)?(?:/\(D\)on't ask again)? \[\w+\]:")
_TURN_ENDED = re.compile(r"Tokens: \S+ sent,")
_LIMIT = re.compile(r"Model \S+ has hit a token limit!|Your estimated chat context of [\d,]+ tokens exceeds the ")
#: A spinner may have left some of itself before it.
_ERROR = re.compile(r"[ ░█]*litellm\.\w+: ")
_BANNER = re.compile(r"Aider v\d")
_LONGEST_QUESTION = 4

_RULES = (
    ScreenRule(
        id="attention.approval",
        region="question",
        match=r"(?:Run shell commands?|Create new file|Edit the files|Add file to the chat)\?|^Allow edits to file ",
        state="attention",
        reason="permission",
    ),
    ScreenRule(id="attention.limit", region="question limit", match=r"\S", state="attention", reason="limit"),
    ScreenRule(id="attention.question", region="question", match=r"\S", state="attention", reason="question"),
    ScreenRule(id="busy.spinner", region="spinner", match=r"\S", state="busy"),
    ScreenRule(id="attention.tokens", region="limit", match=r"\S", state="attention", reason="limit"),
    ScreenRule(id="error.request", region="error", match=r"\S", state="error"),
    ScreenRule(id="idle.prompt", region="prompt", match=r"\S", state="idle"),
    ScreenRule(id="idle.menu", region="menu", match=r"\S", state="idle", confidence=0.8),
    # Sent, it would look the same until the spinner turns, which is soon.
    ScreenRule(id="idle.typed", region="typed", match=r"\S", state="idle", confidence=0.7),
    ScreenRule(id="busy.turn", region="turn", match=r"\S", state="busy", confidence=0.8),
)


class _Prompt(Struct):
    """A prompt: what is above it since the one before, its lines, what is below them."""

    before: Sequence[str]
    typed: Sequence[str]
    below: Sequence[str]

    @property
    def empty(self) -> bool:
        return len(self.typed) == 1 and self.typed[0].endswith(">") and " " not in self.typed[0].replace(" multi>", "")

    @property
    def command(self) -> bool:
        """A command that runs may show nothing but its own words."""
        return self.typed[0].partition("> ")[2].startswith(("/", "!"))


def read_screen(agent: str, screen: Screen) -> ScreenReading | None:
    """Return what the screen says, None when it cannot tell."""
    return judge(agent, _RULES, screen, _regions(drawn(screen)))


def _regions(lines: Sequence[str]) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {"spinner": [line for line in lines[-1:] if _SPINNER.match(line)]}
    prompt = _find_prompt(lines)
    if prompt is None:
        question = _question(lines)
        return {**found, "question": question, "question limit": question if _limits(lines) else ()}
    below = [line for line in prompt.below if line]
    if not below:
        ended = {"limit": _limits(prompt.before), "error": _errors(prompt.before)}
        return {**found, **ended, "prompt" if prompt.empty else "typed": () if prompt.command else prompt.typed}
    if prompt.below[0]:
        # Right below the prompt there is only the menu of what may complete it.
        return {**found, "menu": below if all(line.startswith(" ") for line in below) else ()}
    question = _question(prompt.below)
    if question and _asks(prompt, question[0]):
        return {**found, "question": question, "question limit": question if _limits(prompt.below) else ()}
    return {**found, "turn": below}


def _asks(prompt: _Prompt, question: str) -> bool:
    """Whether it is aider that asks: in an answer that is not at its end yet, anything may stand."""
    if prompt.command or question.startswith(("Add ", "Try to proceed ", "Open ")):
        return True
    return any(_TURN_ENDED.match(line) for line in prompt.below) or bool(_errors(prompt.below) or _limits(prompt.below))


def _find_prompt(lines: Sequence[str]) -> _Prompt | None:
    """The last prompt on the screen. Long ones push the rule above them away."""
    rules = _rules(lines)
    for place in range(len(rules) - 1, -1, -1):
        begin = rules[place] + 1
        found = _prompt_at(lines, begin)
        if found is not None:
            before = lines[rules[place - 1] + 1 if place else 0 : rules[place]]
            return _Prompt(before=before, typed=lines[found[0] : found[1]], below=lines[found[1] :])
        # An answer may hold a rule, and only after a start is there one without a prompt.
        if any(_BANNER.match(line) for line in lines[begin:]):
            return None
    found = _prompt_at(lines, 0) if lines and _PROMPT.match(lines[0]) and not rules else None
    return _Prompt(before=(), typed=lines[: found[1]], below=lines[found[1] :]) if found else None


def _rules(lines: Sequence[str]) -> list[int]:
    """Where the pane is ruled. A rule is as wide as the pane, unless that was made wider or narrower since."""
    widest = max(map(len, lines), default=0)
    rules = [at for at, line in enumerate(lines) if _RULE.fullmatch(line)]
    across = [at for at in rules if len(lines[at]) == widest]
    # What is left of a rule that was too wide stands below it.
    return [at + 1 if at + 1 in rules and at + 1 not in across else at for at in across] or rules


def _prompt_at(lines: Sequence[str], begin: int) -> tuple[int, int] | None:
    """Where the lines of a prompt begin and end that follows `begin`, with nothing but names of files in between."""
    for at in range(begin, len(lines)):
        if not lines[at] or _RULE.fullmatch(lines[at]):
            return None
        mark = _PROMPT.match(lines[at])
        if mark is not None:
            end = next(
                (end for end in range(at, len(lines)) if not f"{lines[end]} ".startswith(f"{mark[1]} ")), len(lines)
            )
            return at, end
    return None


def _question(lines: Sequence[str]) -> Sequence[str]:
    """The question that waits at the end of the screen, also when a narrow pane breaks it."""
    for count in range(1, min(_LONGEST_QUESTION, len(lines)) + 1):
        asked = _QUESTION.fullmatch("".join(lines[-count:]))
        if asked is not None:
            return [asked[1]]
        if not lines[-count]:
            break
    return ()


def _since_answered(said: Sequence[str]) -> Sequence[str]:
    """What was said after the last answer of the model was counted, for an answer may hold any words."""
    ends = [at for at, line in enumerate(said) if _TURN_ENDED.match(line)]
    return said[ends[-1] + 1 :] if ends else said


def _limits(said: Sequence[str]) -> Sequence[str]:
    return [line for line in _since_answered(said) if _LIMIT.match(line)]


def _errors(said: Sequence[str]) -> Sequence[str]:
    since = _since_answered(said)
    if any(line.startswith("^C") for line in since):
        return ()
    return [line for line in since if _ERROR.match(line)]
