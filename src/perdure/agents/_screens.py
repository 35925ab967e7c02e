"""Judging a screen by rules that say where a text has to stand: what a person or a model wrote decides nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from perdure.model.agent import BOTTOM, LAST, TITLE, ScreenRule
from perdure.model.screen import Screen, ScreenReading, State

Regions = Mapping[str, Sequence[str]]
#: How a region is called in a sentence, when not by its own name.
_CALLED = {LAST: "last line"}


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def visible(screen: Screen) -> list[str]:
    """Return the lines that are not empty, without what trails in them."""
    return [line for each in screen.lines if (line := each.rstrip())]


def drawn(screen: Screen) -> list[str]:
    """Return the lines down to the last that is not empty, without what trails in them. Empty ones between them stay."""
    lines = [line.rstrip() for line in screen.lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def judge(
    agent: str, rules: Sequence[ScreenRule], screen: Screen, regions: Regions | None = None
) -> ScreenReading | None:
    """Return what the first fitting rule says, None when none fits.

    `regions` are the parts of the screen that only the agent's own adapter can tell apart, beside the title, the
    last line and the bottom, which are always there. A region that is not on this screen fits no rule.
    """
    lines = visible(screen)
    passed: list[str] = []
    for rule in rules:
        region = _region(rule, screen, lines, regions or {})
        name, place = f"{agent}.{rule.id}", _CALLED.get(rule.region, rule.region)
        found = _found(rule, region)
        if found is None:
            passed.append(f"{name}: nothing in the {place} says so")
            continue
        return ScreenReading(
            rule=name,
            state=State(rule.state) if rule.state else None,
            reason=rule.reason or None,
            frozen=not rule.state,
            confidence=rule.confidence,
            because=(*passed, f"{name}: the {place} says {found!r}"),
        )
    return None


def _region(rule: ScreenRule, screen: Screen, lines: Sequence[str], regions: Regions) -> Sequence[str]:
    if rule.region == TITLE:
        return (screen.title,)
    if rule.region == LAST:
        return lines[-1:]
    if rule.region == BOTTOM:
        return lines[-rule.lines :]
    return regions.get(rule.region, ())


def _found(rule: ScreenRule, region: Sequence[str]) -> str | None:
    """The line that fits, None when there is none or one that must not be there."""
    if rule.unless and any(_pattern(rule.unless).search(line) for line in region):
        return None
    return next((line.strip() for line in region if _pattern(rule.match).search(line)), None)
