"""What was known of an agent's process before, as evidence for now."""

from __future__ import annotations

import msgspec
import pytest

from perdure.model.identity import Evidence, Identity
from perdure.model.process import Process
from perdure.model.snapshot import Snapshot
from perdure.snapshots.remember import certain_before, key_of, remembered
from tests.builders import a_capture, a_pane, a_process, a_snapshot, an_identity

SHELL = a_process(10, argv=("bash",))
AGENT = a_process(11, ppid=10, argv=("agent", "--fast"), exe="/bin/agent")


def saved(identity: Identity, *, agent: Process = AGENT) -> Snapshot:
    """A snapshot of one pane: a shell and, below it, an agent."""
    capture = a_capture([a_pane(0, identity=identity)])
    pane = msgspec.structs.replace(capture.details.panes["%0"], processes=(SHELL, AGENT), agent_pid=agent.pid)
    details = msgspec.structs.replace(capture.details, panes={"%0": pane})
    return a_snapshot(msgspec.structs.replace(capture, details=details))


def a_guess(conversation: str) -> Identity:
    return an_identity(conversation=conversation, evidence=Evidence.GUESS, certain=False)


def test_only_the_agents_own_process_is_remembered() -> None:
    assert certain_before(saved(an_identity(conversation="A"))).keys() == {key_of(AGENT)}


def test_nothing_is_remembered_of_what_was_not_certain() -> None:
    assert certain_before(saved(a_guess("A"))) == {}
    assert certain_before(saved(an_identity(conversation=None))) == {}
    assert certain_before(None) == {}


@pytest.mark.parametrize(
    "change",
    [{"pid": 12}, {"start_ticks": 1}, {"argv": ("agent",)}, {"exe": "/bin/other"}],
    ids=["another number", "the number given out anew", "exec with other arguments", "exec of something else"],
)
def test_another_process_is_another_process(change: dict[str, object]) -> None:
    other = msgspec.structs.replace(AGENT, **change)
    assert key_of(other) not in certain_before(saved(an_identity(conversation="A")))


def test_it_stays_certain_while_nothing_speaks_against_it() -> None:
    found = remembered(an_identity(conversation="A"), [an_identity(conversation=None, evidence=None)], set())
    assert (found.conversation, found.evidence, found.certain) == ("A", Evidence.REMEMBERED, True)


def test_the_command_line_is_older_than_the_memory() -> None:
    argv = an_identity(conversation="first", evidence=Evidence.ARGV)
    assert remembered(an_identity(conversation="A"), [argv], set()).certain


def test_what_was_written_since_makes_it_doubtful() -> None:
    found = remembered(an_identity(conversation="A"), [a_guess("B"), a_guess("A"), a_guess("old")], set())
    assert not found.certain
    assert "B was written to since" in found.because


def test_what_was_written_before_it_or_by_another_pane_does_not() -> None:
    assert remembered(an_identity(conversation="A"), [a_guess("B"), a_guess("A"), a_guess("old")], {"B"}).certain
    assert remembered(an_identity(conversation="A"), [a_guess("A"), a_guess("old")], set()).certain
