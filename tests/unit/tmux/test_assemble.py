from __future__ import annotations

import pytest

from perdure.tmux.assemble import calm_title


@pytest.mark.parametrize(
    ("title", "calm"),
    [
        ("⠐ Fix the parser", "Fix the parser"),
        ("⠂ ⠐ Fix the parser", "Fix the parser"),
        ("✳ Fix the parser", "Fix the parser"),
        ("✻Fix the parser", "Fix the parser"),
        ("◐ build", "build"),
        ("⠐", ""),
        ("- a list", "- a list"),
        ("* starred", "* starred"),
        ("Fix ✳ the parser", "Fix ✳ the parser"),
        (" ✳ indented", " ✳ indented"),
        ("日本語", "日本語"),
        ("", ""),
    ],
)
def test_only_a_spinner_before_the_title_is_left_out(title: str, calm: str) -> None:
    assert calm_title(title) == calm
