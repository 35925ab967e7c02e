"""Command lines as yargs reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents._options import Grammar, kept
from perdure.agents._yargs import declared, plain

LINES = declared("-y, --yolo", "--approval-mode <mode>", "-r, --resume [session]", "--accept-risk", "--dirs [dirs...]")
WORDS = [
    "-y",
    "--yolo",
    "--no-yolo",
    "true",
    "false",
    "--resume",
    "-r=x",
    "--acceptRisk",
    "--yolo=false",
    "--",
    "x",
    "-",
]


def test_every_option_is_declared_in_all_its_spellings() -> None:
    assert LINES == (
        "-y, --yolo",
        "--no-yolo",
        "--approvalMode, --approval-mode <mode>",
        "-r, --resume [session]",
        "--acceptRisk, --accept-risk",
        "--no-acceptRisk, --no-accept-risk",
        "--dirs [dirs...]",
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--yolo", "true"], ["--yolo"]),
        (["--yolo", "false"], ["--no-yolo"]),
        (["-y=false"], ["--no-yolo"]),
        (["--yolo=true", "prompt"], ["--yolo", "prompt"]),
        (["--acceptRisk", "false"], ["--no-accept-risk"]),
        (["--no-yolo", "false"], ["--no-yolo", "false"]),
        (["-r=abc"], ["-r", "abc"]),
        (["--approval-mode", "true"], ["--approval-mode", "true"]),
        (["--approval-mode=yolo"], ["--approval-mode=yolo"]),
        (["--", "--yolo", "false"], ["--", "--yolo", "false"]),
    ],
)
def test_a_flag_has_one_spelling_for_each_thing_it_says(words: list[str], expected: list[str]) -> None:
    assert plain(LINES, words) == expected


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=8))
def test_what_is_kept_is_kept_again(words: list[str]) -> None:
    grammar = Grammar("\n".join(LINES))
    once = kept(grammar, plain(LINES, words), ())
    assert kept(grammar, plain(LINES, once), ()) == once
