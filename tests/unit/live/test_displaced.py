from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.live.displaced import displaced_by, why_displaced
from perdure.model.process import Process
from perdure.tmux.wrap import Start, command
from tests.builders import a_process

SHELL = a_process(pid=10, ppid=1, pgid=10, comm="bash", argv=("-bash",))
AGENT = a_process(pid=20, ppid=10, pgid=20, comm="some", argv=("some",))
TOOL = a_process(pid=30, ppid=20, pgid=30, comm="vim", argv=("vim",))
EDITOR = a_process(pid=40, ppid=10, pgid=40, comm="vim", argv=("vim",))
OURS = a_process(pid=10, ppid=1, pgid=10, comm="sh", argv=command(Start(argv=("some",), name="some")))
BESIDE = a_process(pid=50, ppid=10, pgid=50, comm="bash", argv=("/bin/bash",))


@pytest.mark.parametrize(
    ("tree", "group", "holder"),
    [
        ((SHELL, AGENT), 20, None),
        ((SHELL, AGENT), 10, SHELL),
        # A tool of the agent's has it for the agent.
        ((SHELL, AGENT, TOOL), 30, None),
        ((SHELL, AGENT, EDITOR), 40, EDITOR),
        ((OURS, AGENT, BESIDE), 50, BESIDE),
        ((OURS, AGENT), 10, OURS),
        # Nobody of the pane, or nobody at all.
        ((SHELL, AGENT), 99, None),
        ((SHELL, AGENT), None, None),
    ],
)
def test_who_has_the_terminal(tree: tuple[Process, ...], group: int | None, holder: Process | None) -> None:
    assert displaced_by(tree, AGENT, (group, group)) == holder


@pytest.mark.parametrize(
    "argv", [("bash", "/home/dev/bin/some"), ("bash", "-c", "some"), ("node", "some.js"), ("script", "-q"), ()]
)
def test_what_has_started_an_agent_and_waits_for_it_may_have_it(argv: tuple[str, ...]) -> None:
    """A script that starts it, or a program that hands on what is typed."""
    launcher = a_process(pid=15, ppid=10, pgid=15, comm="it", argv=argv)
    agent = a_process(pid=20, ppid=15, pgid=20, comm="some", argv=("some",))
    assert displaced_by((SHELL, launcher, agent), agent, (15, 20)) is None
    assert displaced_by((SHELL, launcher, agent), agent, (10, 20)) == SHELL


def test_a_shell_without_jobs_shares_the_terminal_with_what_it_starts() -> None:
    agent = a_process(pid=20, ppid=10, pgid=10, comm="some", argv=("some",))
    assert displaced_by((SHELL, agent), agent, (10, 10)) is None


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6)), max_size=6), st.integers(1, 6))
def test_an_agent_in_the_foreground_is_never_displaced(rows: list[tuple[int, int, int]], group: int) -> None:
    """Also where the table was read while numbers were given out anew, and runs in a circle."""
    tree = tuple(a_process(pid=pid, ppid=ppid, pgid=pgid, argv=("-bash",)) for pid, ppid, pgid in rows)
    agent = a_process(pid=7, ppid=1, pgid=group, comm="some", argv=("some",))
    assert displaced_by((*tree, agent), agent, (group,)) is None


def test_what_would_hear_it_is_said() -> None:
    assert why_displaced((SHELL, AGENT), AGENT, SHELL, name="some", is_stopped=True) == (
        "some is stopped (Ctrl-Z), and the shell would run what is typed; `fg` brings it back"
    )
    assert why_displaced((OURS, AGENT, BESIDE), AGENT, BESIDE, name="some", is_stopped=True) == (
        "some is stopped (Ctrl-Z), and the shell would run what is typed; `exit` leaves that shell and brings it back"
    )
    assert why_displaced((SHELL, AGENT, EDITOR), AGENT, EDITOR, name="some", is_stopped=False) == (
        "some is in the background, and vim would get what is typed"
    )
