"""What was known of an agent's process before, as evidence for now; and what is held by panes not looked at."""

from __future__ import annotations

from datetime import datetime

import msgspec
import pytest

from perdure.model.identity import Evidence, Identity
from perdure.model.process import Process
from perdure.model.snapshot import Snapshot
from perdure.snapshots.remember import Memory, held_elsewhere, is_sure, key_of, memories, remembered, stands_alone
from tests.builders import a_capture, a_pane, a_process, a_snapshot, an_identity, at

SHELL = a_process(10, argv=("bash",))
AGENT = a_process(11, ppid=10, argv=("agent", "--fast"), exe="/bin/agent")
BEFORE = Memory(identity=an_identity(conversation="A"), at=at(0))


def saved(identity: Identity, *, sure: Identity | None = None, agent: Process = AGENT) -> Snapshot:
    """A snapshot of one pane: a shell and, below it, an agent."""
    capture = a_capture([a_pane(0, identity=identity)])
    pane = msgspec.structs.replace(
        capture.details.panes["%0"],
        processes=(SHELL, AGENT),
        agent_pid=agent.pid,
        sure=sure,
        sure_at=at(0) if sure else None,
    )
    details = msgspec.structs.replace(capture.details, panes={"%0": pane})
    return a_snapshot(msgspec.structs.replace(capture, details=details))


def a_guess(conversation: str, written_at: datetime | None = None) -> Identity:
    return an_identity(conversation=conversation, evidence=Evidence.GUESS, certain=False, written_at=written_at)


def test_only_the_agents_own_process_is_remembered() -> None:
    sure = an_identity(conversation="A")
    assert memories(saved(sure, sure=sure)) == {key_of(AGENT): Memory(identity=sure, at=at(0))}


def test_a_doubtful_save_does_not_forget_what_was_certain_before_it() -> None:
    sure = an_identity(conversation="A")
    assert memories(saved(a_guess("B"), sure=sure))[key_of(AGENT)].identity == sure


def test_nothing_is_remembered_where_nothing_was_ever_certain() -> None:
    assert memories(saved(a_guess("A"))) == {}
    assert memories(None) == {}


@pytest.mark.parametrize(
    "change",
    [{"pid": 12}, {"start_ticks": 1}, {"argv": ("agent",)}, {"exe": "/bin/other"}],
    ids=["another number", "the number given out anew", "exec with other arguments", "exec of something else"],
)
def test_another_process_is_another_process(change: dict[str, object]) -> None:
    sure = an_identity(conversation="A")
    assert key_of(msgspec.structs.replace(AGENT, **change)) not in memories(saved(sure, sure=sure))


@pytest.mark.parametrize(
    ("evidence", "sure"),
    [
        (Evidence.LAUNCH, False),
        (Evidence.REGISTRY, True),
        (Evidence.HOOK, True),
        (Evidence.OPEN_FILE, True),
        (Evidence.TITLE, True),
        (Evidence.REMEMBERED, False),
        (Evidence.ARGV, False),
        (Evidence.GUESS, False),
    ],
)
def test_only_evidence_of_the_moment_is_worth_remembering(evidence: Evidence, sure: bool) -> None:
    assert is_sure(an_identity(evidence=evidence)) is sure
    assert not is_sure(an_identity(evidence=evidence, certain=False))


def judged(*now: Identity, held: frozenset[str] = frozenset()) -> Identity:
    found = remembered(BEFORE, now, held)
    assert found is not None
    return found


def test_it_stays_certain_while_nothing_speaks_against_it() -> None:
    found = judged(an_identity(conversation=None, evidence=None))
    assert (found.conversation, found.evidence, found.certain) == ("A", Evidence.REMEMBERED, True)


def test_the_command_line_is_older_than_the_memory() -> None:
    assert judged(an_identity(conversation="first", evidence=Evidence.ARGV)).certain


@pytest.mark.parametrize("written_at", [at(1), None])
def test_what_was_written_since_makes_it_doubtful(written_at: datetime | None) -> None:
    found = judged(a_guess("B", written_at), a_guess("A", at(2)))
    assert not found.certain
    assert "B was written to since" in found.because


def test_what_was_written_before_it_was_certain_does_not() -> None:
    assert judged(a_guess("B", at(-1)), a_guess("A", at(-5))).certain


def test_what_another_pane_holds_does_not() -> None:
    assert judged(a_guess("B", at(1)), held=frozenset({"B"})).certain


def test_what_may_have_been_left_is_not_certain_any_more() -> None:
    assert not judged(an_identity(conversation=None, evidence=None, perhaps_left=("A",))).certain
    assert judged(an_identity(conversation=None, evidence=None, perhaps_left=("other",))).certain


def test_what_was_left_is_not_remembered() -> None:
    assert remembered(BEFORE, [an_identity(conversation=None, evidence=None, left=("A",))], set()) is None
    assert judged(an_identity(conversation=None, evidence=None, left=("other",))).certain


def test_agents_elsewhere_hold_what_they_certainly_hold_while_they_run() -> None:
    sure = an_identity(conversation="A")
    (held,) = held_elsewhere([saved(sure)], lambda pid, ticks: (pid, ticks) == (AGENT.pid, AGENT.start_ticks))
    assert (held.identity, held.started_at) == (sure, AGENT.started_at)
    assert held_elsewhere([saved(sure)], lambda pid, ticks: False) == []
    assert held_elsewhere([saved(a_guess("A"))], lambda pid, ticks: True) == []


@pytest.mark.parametrize("evidence", list(Evidence))
def test_only_what_is_kept_at_this_moment_stands_without_a_look_at_the_others(evidence: Evidence) -> None:
    assert stands_alone(an_identity(evidence=evidence)) is (evidence in (Evidence.REGISTRY, Evidence.OPEN_FILE))
    assert not stands_alone(an_identity(evidence=evidence, certain=False))
