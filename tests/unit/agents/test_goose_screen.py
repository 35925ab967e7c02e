"""What goose's screens say where a recording would be hard to get, and what must not decide."""

from __future__ import annotations

import pytest

from perdure.agents.goose import Goose
from perdure.model.screen import Screen

GAUGE = "  ━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ 3% 4k/128k"
HINT = " Enter to send · Ctrl+J newline"
SPINNER = "◐  Assembling algorithm arrays...  (Ctrl+C to interrupt)"
DIALOG = (
    "◆  Goose would like to call the above tool, do you allow?\n│  ● Allow (Allow the tool call once)\n│  ○ Deny\n└"
)
ERROR = (
    "Ran into this error: Rate limit exceeded.\n\nPlease retry if you think this is a transient or recoverable error."
)


def read(*lines: str) -> str | None:
    reading = Goose().read_screen(Screen(lines=tuple("\n".join(lines).split("\n"))))
    return reading.rule.removeprefix("goose.") if reading else None


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ((GAUGE, HINT), "idle.prompt"),
        ((SPINNER, GAUGE, HINT), "idle.prompt"),
        ((GAUGE, " h  ello", "", SPINNER), "busy.spinner"),
        ((GAUGE, " h  ello", "", "◐  Assembling algorithm", "arrays...  (Ctrl+C to interrupt)"), "busy.spinner"),
        ((GAUGE, " h  ello", "", DIALOG), "attention.approval"),
        ((GAUGE, " h  ello", "", "◆  Open the top-up URL in your browser?", "│  ● Yes", "└"), "attention.credits"),
        ((DIALOG.replace("◆", "◇"), GAUGE, HINT), "idle.prompt"),
        ((GAUGE, " h  ello", "", "an answer that begins"), "busy.turn"),
        ((GAUGE, " h  ello", "", "  ────────", "  ▸ shell", "    command: sleep 5"), "busy.tool"),
        (("  ────────", "  ▸ shell", "    command: make", "", "    " + "x" * 50), "busy.tool"),
        ((GAUGE, " h  ello", "", ERROR, "  ⏱ 7.41s", GAUGE, HINT), "error.request"),
        ((ERROR, "  ⏱ 7.41s", GAUGE, " n  ext try"), "error.request"),
        (("  context usage unavailable (context limit is 0)", HINT), "idle.prompt"),
    ],
)
def test_a_screen_is_known_by_its_end(lines: tuple[str, ...], rule: str) -> None:
    assert read(*lines) == rule


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        # What is quoted in an answer, in what was typed or further up.
        ((GAUGE, " h  ello", "", ERROR, "", "So much for errors.", "  ⏱ 1s", GAUGE, HINT), "idle.prompt"),
        ((GAUGE, " h  ello", "", "Ran into this error: it says", "  ⏱ 1s", GAUGE, HINT), "idle.prompt"),
        ((ERROR, "  ⏱ 1s", GAUGE, " o  nce more", "", "fine now", "  ⏱ 1s", GAUGE, HINT), "idle.prompt"),
        ((GAUGE, " h  ello", "", DIALOG, "", "is what it asked", "  ⏱ 1s", GAUGE, HINT), "idle.prompt"),
        ((GAUGE, " h  ello", "", DIALOG, "is what it asks"), "busy.turn"),
        ((GAUGE, " w  hat is (Ctrl+C to interrupt)"), "idle.typed"),
        ((GAUGE, HINT, "", "was on the screen I saw"), None),
        ((GAUGE, " one paragraph", "", "and another"), None),
        (("any text at all", "without a gauge"), None),
        ((), None),
    ],
)
def test_words_somebody_wrote_do_not_decide(lines: tuple[str, ...], rule: str | None) -> None:
    assert read(*lines) == rule
