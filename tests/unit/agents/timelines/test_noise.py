"""Clocks, spinners, emoji and a pane that changes its size make nobody busy who is at rest, and nobody rest who is busy."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from perdure.model.screen import Screen
from tests.contract.agents.test_every_screen import RECORDED, shown
from tests.unit.agents.hosts import process
from tests.unit.agents.timelines.player import RecordingHost, Shown, Stage

AGENTS = sorted({label.agent for _, label in RECORDED})
#: Frames that agents turn, each as long as any other of its kind.
WHEELS = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "·✢✳✶✻✽", "◐◓◑◒", "◜◠◝◞◡◟")
#: What may stand in any conversation.
CHATTER = "  🎉 done 👩‍💻 ✅ ⏳ ⠋ ✻ 12:59 PM"


@pytest.fixture
def host(tmp_path: object) -> RecordingHost:
    return RecordingHost(str(tmp_path))


def screens(agent: str, state: str) -> list[Screen]:
    return [shown(path, label) for path, label in RECORDED if (label.agent, label.state) == (agent, state)]


def a_minute_later(line: str) -> str:
    return re.sub(r"\b(\d{1,2}):(\d\d)\b", lambda found: f"{found[1]}:{(int(found[2]) + 1) % 60:02}", line)


def turned(line: str) -> str:
    """Return the line one frame on, when it begins with a wheel."""
    begun = len(line) - len(line.lstrip())
    first = line[begun : begun + 1]
    for wheel in WHEELS:
        first = first.translate(str.maketrans(wheel, wheel[1:] + wheel[0]))
    return line[:begun] + first + line[begun + 1 :]


def disturbed(screen: Screen) -> Iterator[tuple[str, ...]]:
    """Yield what else the same agent may show at the same moment."""
    lines = screen.lines
    width = max(map(len, lines), default=0)
    yield tuple(map(a_minute_later, lines))
    yield (CHATTER, *lines)
    # Narrower: tmux wraps what a program wrote, or cuts it off where a program has the whole screen for itself.
    yield tuple(part for line in lines for part in (line[: width * 2 // 3], line[width * 2 // 3 :]) if part or not line)
    yield tuple(line[: max(width - 5, 30)] for line in lines)
    # Lower: what is above goes.
    yield lines[3:]
    # Being drawn anew.
    yield ("",) * len(lines)


@pytest.mark.parametrize("agent", AGENTS)
def test_nothing_makes_an_agent_busy_that_is_at_rest(agent: str, host: RecordingHost) -> None:
    every = screens(agent, "idle")
    assert every
    steps, seconds = list[Shown](), 0.0
    for screen in every:
        for lines in (*disturbed(screen), screen.lines):
            seconds += 0.3
            steps.append(Shown(seconds, "", Screen(lines=lines, title=screen.title)))
    found = Stage(agent, process(agent), host).play(steps)
    assert [each.word for each in found] == ["idle"]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_wheel_that_turns_is_the_same_state(agent: str, host: RecordingHost) -> None:
    every = screens(agent, "busy")
    steps, seconds = list[Shown](), 0.0
    for screen in every:
        seconds += 0.5
        steps.append(Shown(seconds, "", screen))
        lines, title = tuple(map(turned, screen.lines)), turned(screen.title)
        steps.append(Shown(seconds + 0.2, "", Screen(lines=lines, title=title)))
    stage = Stage(agent, process(agent), host)
    assert [each.word for each in stage.play(steps)] == ["busy"]
