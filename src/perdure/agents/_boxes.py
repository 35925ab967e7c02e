"""Screens of programs that draw with Ink: what waits for a person stands in a box at the bottom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from perdure.model.screen import Screen


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    return (
        re.compile(r" {0,3}[╰└]─+[╯┘]"),
        re.compile(r" {0,3}│(.*)│"),
        # What else may stand below a dialog.
        re.compile(r"\s*Press [Cc]trl[+-]\S+ (?:again )?to "),
    )


def rows(screen: Screen) -> list[str]:
    """Return the lines without what trails in them, and without the empty ones at the end."""
    lines = [line.rstrip() for line in screen.lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def box_above(lines: Sequence[str], end: int) -> tuple[int, list[str]] | None:
    """Return where the box that ends in the last line before `end` begins, and what is in it; None when none does."""
    bottom, side, hint = _patterns()
    at = end - 1
    while at >= 0 and (not lines[at] or hint.match(lines[at])):
        at -= 1
    if at < 0 or not bottom.fullmatch(lines[at]):
        return None
    inside: list[str] = []
    top = at
    while top > 0 and (match := side.fullmatch(lines[top - 1])):
        inside.append(match[1].strip())
        top -= 1
    return max(top - 1, 0), inside[::-1]


def above(lines: Sequence[str], at: int) -> str:
    """Return the line above one, "" at the top."""
    return lines[at - 1] if at > 0 else ""


def command_above(lines: Sequence[str], top: int, prompt: str) -> list[str]:
    """Return the command that opened what begins at `top`, when it stands right above it after the prompt's mark."""
    line = next((line for line in reversed(lines[:top]) if line.strip("▀ ")), "")
    return [line] if line.startswith(f"{prompt}/") else []
