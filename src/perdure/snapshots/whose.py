"""Whose screen it is, told by what hardly any other agent draws. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct

from perdure.model.agent import IN_TITLE
from perdure.model.screen import Screen
from perdure.ports import AgentAdapter


class Told(Struct, frozen=True, kw_only=True):
    """Whose screen it is by its signs. With `because` and no `agent` they contradict each other; with neither, there are none."""

    agent: AgentAdapter | None = None
    because: tuple[str, ...] = ()


def whose(screen: Screen, known: Sequence[AgentAdapter]) -> Told:
    """Return whose screen it is: the agent that title and lowest sign are of, or either when the other is missing.

    Of the signs on the screen only those in the lowest line with any count: what stands above may be quoted, or left by
    an agent that ran in the pane before. A title may be left behind too, so where the two contradict each other nobody
    is told.
    """
    titled = _found(_signs(known, in_title=True), screen.title)
    line = next((found for text in reversed(screen.lines) if (found := _found(_signs(known), text.rstrip()))), {})
    because = (
        *(f"{name}: the title says {text!r}" for name, text in titled.items()),
        *(f"{name}: {text!r} is the lowest sign of an agent" for name, text in line.items()),
    )
    left = titled.keys() & line.keys() if titled and line else titled.keys() | line.keys()
    if len(left) != 1:
        return Told(because=because)
    return Told(agent=next(adapter for adapter in known if adapter.name in left), because=because)


def _signs(known: Sequence[AgentAdapter], *, in_title: bool = False) -> Iterator[tuple[str, re.Pattern[str]]]:
    for adapter in known:
        for sign in adapter.signs:
            if sign.startswith(IN_TITLE) == in_title:
                yield adapter.name, _pattern(sign.removeprefix(IN_TITLE))


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _found(signs: Iterator[tuple[str, re.Pattern[str]]], text: str) -> Mapping[str, str]:
    """The agents that have a sign in this text, each with what it is."""
    found: dict[str, str] = {}
    for name, pattern in signs:
        if name not in found and (match := pattern.search(text)):
            found[name] = match[0].strip()
    return found
