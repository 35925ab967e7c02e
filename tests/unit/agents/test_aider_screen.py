"""What aider's screens say where a recording would be hard to get, and what must not decide."""

from __future__ import annotations

import pytest

from perdure.agents.aider import Aider
from perdure.model.screen import Screen

RULE = "─" * 80
ASK = "Run shell command? (Y)es/(N)o/(D)on't ask again [Yes]:"
TOKENS = "Tokens: 2.5k sent, 15 received. Cost: $0.01 message, $0.02 session."
ERROR = "litellm.BadRequestError: OpenAIException - no"
LIMIT = "Model openai/stub has hit a token limit!"
SPINNER = "  █░       Waiting for openai/stub"


def read(*lines: str) -> str | None:
    reading = Aider().read_screen(Screen(lines=lines))
    return reading.rule.removeprefix("aider.") if reading else None


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ((RULE, ">"), "idle.prompt"),
        ((RULE, "main.py  other.py", "diff multi>"), "idle.prompt"),
        ((RULE, "> half a thought"), "idle.typed"),
        (("x" * 60, "─" * 60, "─" * 20, ">"), "idle.prompt"),
        (("x" * 100, RULE, ">"), "idle.prompt"),
        ((RULE, "> half a", "> thought"), "idle.typed"),
        ((RULE, "> ma", " main.py  make.py"), "idle.menu"),
        ((RULE, "> hello", "", SPINNER), "busy.spinner"),
        ((RULE, "> hello", "", "an answer that begins"), "busy.turn"),
        ((RULE, "> hello", "", ERROR, "Retrying in 0.5 seconds..."), "busy.turn"),
        (("> a prompt so long that its", "> rule is gone", "", "an answer"), "busy.turn"),
        ((RULE, "> hello", "", "text", "", TOKENS, "", "ls", ASK), "attention.approval"),
        ((RULE, "> hello", "", "text", TOKENS, "x.py", "Create new file? (Y)es/(N)o [Yes]:"), "attention.approval"),
        (
            (RULE, "> /run ls", "", "x", "Add 0.1k tokens of command output to the chat? (Y)es/(N)o [Yes]:"),
            "attention.question",
        ),
        (
            (RULE, "> hello", "", LIMIT, "", "Open URL for more info? (Y)es/(N)o/(D)on't ask again [Yes]:"),
            "attention.limit",
        ),
        (
            (
                RULE,
                "> hello",
                "",
                "Your estimated chat context of 9,000 tokens exceeds the 8,000 token limit for x!",
                "Try to proceed anyway? (Y)es/(N)o [Yes]:",
            ),
            "attention.limit",
        ),
        (
            ("No git repo found, create one to track aider's changes (recommended)? (Y)es/(N)o [Yes]:",),
            "attention.question",
        ),
        ((RULE, "> hello", "", ERROR, "", RULE, ">"), "error.request"),
        ((RULE, "> hello", "", LIMIT, "", RULE, ">"), "attention.tokens"),
    ],
)
def test_a_screen_is_known_by_its_end(lines: tuple[str, ...], rule: str) -> None:
    assert read(*lines) == rule


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ((RULE, "> hello", "", ERROR, LIMIT, "", TOKENS, RULE, ">"), "idle.prompt"),
        ((RULE, "> hello", "", ERROR, "", "^C again to exit", RULE, ">"), "idle.prompt"),
        ((RULE, "> hello", "", ERROR, "", RULE, "> again", "", "fine", "", TOKENS, RULE, ">"), "idle.prompt"),
        ((RULE, f"> {ASK}"), "idle.typed"),
        ((RULE, "> what does it ask?", "", "It asks:", "", ASK), "busy.turn"),
        ((RULE, "> hello", "", "text", TOKENS, ASK + " y", "Running ls"), "busy.turn"),
        ((RULE, "> hello", "", "──────────", ">", "", "in an answer"), "busy.turn"),
        # A command may run and show nothing.
        ((RULE, "> /run sleep 60"), None),
        ((RULE, "> !make"), None),
        # Between a start and the first prompt.
        ((RULE, "> /exit", "", "$ aider", RULE, "Aider v0.86.2", "Model: x with whole edit format"), None),
        (("any text at all",), None),
        ((), None),
    ],
)
def test_words_somebody_wrote_do_not_decide(lines: tuple[str, ...], rule: str | None) -> None:
    assert read(*lines) == rule
