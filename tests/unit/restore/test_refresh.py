from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents import Roster
from perdure.agents.generic import Generic
from perdure.host.processes import Entry, ProcessTable
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.plan import Action, Plan, Step
from perdure.model.process import Process
from perdure.model.snapshot import Snapshot
from perdure.ports import HostView, Sighting
from perdure.restore.refresh import Newer, believed, newer, own_word, refreshed, renewed, told
from tests.builders import NOON, a_capture, a_pane, a_process, a_server, a_snapshot, an_identity, at, keeping
from tests.unit.agents.hosts import DirectoryHost

replace = msgspec.structs.replace

SAVED = at(60)
BOOT = at(-100_000)


def a_claim(conversation: str | None, evidence: Evidence = Evidence.GUESS, **changes: object) -> Identity:
    return replace(an_identity(conversation=conversation, evidence=evidence, certain=False), **changes)


REGISTERED = a_claim("new", Evidence.REGISTRY, certain=True)
HOOKED = a_claim("new", Evidence.HOOK, certain=True, written_at=at(70))


# -- one agent ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [REGISTERED, HOOKED])
@pytest.mark.parametrize("saved", [an_identity(conversation="old"), a_claim("old"), a_claim(None), a_claim("new")])
def test_its_own_certain_word_is_newer_than_the_snapshot(saved: Identity, own: Identity) -> None:
    assert refreshed(saved, [own], None, SAVED) == replace(own, written_at=None)


@pytest.mark.parametrize(
    "claim",
    [
        replace(HOOKED, written_at=at(50)),
        replace(HOOKED, written_at=SAVED),
        replace(HOOKED, certain=False),
        replace(REGISTERED, certain=False),
        *(replace(REGISTERED, evidence=each) for each in Evidence if each not in (Evidence.REGISTRY, Evidence.HOOK)),
    ],
)
def test_nothing_else_replaces_what_was_saved(claim: Identity) -> None:
    for saved in (an_identity(conversation="old", prompted=True), a_claim("old", prompted=True)):
        assert refreshed(saved, [claim], None, SAVED) is None


def test_what_comes_behind_a_better_claim_is_not_its_word() -> None:
    assert own_word([a_claim("guess"), REGISTERED], SAVED) is None


def test_what_was_said_since_is_resumed() -> None:
    saved = an_identity(conversation="one", prompted=False, taken=True)
    spoken = a_claim("one", prompted=True, home="/home/dev/tree")
    now = refreshed(saved, [a_claim("two", prompted=True), spoken], None, SAVED)
    assert now == replace(saved, prompted=True, taken=False, home="/home/dev/tree")
    assert refreshed(saved, [], AgentDetails(task="first words"), SAVED) == replace(saved, prompted=True, taken=False)
    assert refreshed(saved, [a_claim("two", prompted=True)], AgentDetails(transcript="/t"), SAVED) is None


def test_an_id_that_got_a_file_since_cannot_be_had_again() -> None:
    saved = an_identity(conversation="one", prompted=False)
    assert refreshed(saved, [a_claim("one", prompted=False, taken=True)], None, SAVED) == replace(saved, taken=True)
    assert refreshed(saved, [a_claim("one", prompted=False)], None, SAVED) is None


def test_where_none_was_known_there_is_a_guess() -> None:
    claim = a_claim("new", Evidence.OPEN_FILE, certain=True)
    assert refreshed(a_claim(None), [a_claim(None), claim], None, SAVED) == replace(claim, certain=False)
    assert refreshed(a_claim(None), [a_claim(None)], None, SAVED) is None


CONVERSATIONS = st.sampled_from([None, "a", "b", "c"])
IDENTITIES = st.builds(
    a_claim,
    CONVERSATIONS,
    st.sampled_from(Evidence),
    certain=st.booleans(),
    prompted=st.sampled_from([None, True, False]),
    taken=st.booleans(),
    written_at=st.sampled_from([None, at(50), SAVED, at(70)]),
)
DESCRIBED = st.sampled_from([None, AgentDetails(), AgentDetails(transcript="/t", task="words")])


@given(IDENTITIES, st.lists(IDENTITIES, max_size=4), DESCRIBED)
def test_nothing_becomes_certain_but_by_the_snapshot_or_its_own_word(
    saved: Identity, claims: list[Identity], described: AgentDetails | None
) -> None:
    now = refreshed(saved, claims, described, SAVED)
    if now is None or not now.certain:
        return
    by_snapshot = saved.certain and now.conversation == saved.conversation
    by_itself = any(
        claim.certain
        and claim.conversation == now.conversation
        and (claim.evidence is Evidence.REGISTRY or (claim.evidence is Evidence.HOOK and claim.written_at == at(70)))
        for claim in claims[:1]
    )
    assert by_snapshot or by_itself


@given(IDENTITIES, st.lists(IDENTITIES, max_size=4), DESCRIBED)
def test_a_known_conversation_is_left_only_by_its_own_word(
    saved: Identity, claims: list[Identity], described: AgentDetails | None
) -> None:
    now = refreshed(saved, claims, described, SAVED)
    if now is not None and saved.conversation is not None and now.conversation != saved.conversation:
        assert claims[0].evidence in (Evidence.REGISTRY, Evidence.HOOK)
        assert claims[0].certain


# -- whose word it is -----------------------------------------------------------------------------------------------


def a_table(*entries: tuple[int, int], boot: datetime = BOOT) -> ProcessTable:
    lines = [Entry(pid, 1, pid, 0, -1, ticks, "some") for pid, ticks in entries]
    return ProcessTable(lines, boot=boot.timestamp(), names=keeping())


def test_a_number_that_is_anothers_by_now_says_nothing() -> None:
    process = a_process(4000)
    claims = [REGISTERED, HOOKED, a_claim("x", Evidence.OPEN_FILE, certain=True), a_claim("y")]
    assert believed(claims, process, a_table((4000, process.start_ticks + 1))) == (a_claim("y"),)
    assert believed(claims, process, a_table((4000, process.start_ticks))) == tuple(claims)
    assert believed(claims, process, a_table()) == tuple(claims)


def test_what_was_written_since_the_machine_started_is_of_no_process_from_before() -> None:
    booted = at(65)
    guesses = [a_claim("before", written_at=at(64)), a_claim("after", written_at=at(66))]
    claims = [REGISTERED, HOOKED, *guesses]
    assert believed(claims, a_process(), a_table(boot=booted)) == (REGISTERED, guesses[0])
    assert believed(claims, a_process(started_at=at(66)), a_table(boot=booted)) == tuple(claims)


# -- all agents of a snapshot ---------------------------------------------------------------------------------------


class Some(Generic):
    """An agent that claims what a test tells it to, by the number of the process."""

    name = "some"
    programs = frozenset({"some"})

    def __init__(self, claims: Mapping[int, Sequence[Identity]]) -> None:
        self._claims = claims

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        assert sighting.title == ""
        return [*self._claims[sighting.process.pid], a_claim(None)]

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        return AgentDetails(task=f"of {identity.conversation}", transcript=f"/home/dev/{identity.conversation}")


class Written(DirectoryHost):
    """Files in which something stands, but for one."""

    def size(self, path: str) -> int | None:
        return None if path.endswith("gone") else 5


def saved_with(*identities: Identity) -> Snapshot:
    """A snapshot with an agent in each pane, of the numbers 4000, 4001, …"""
    capture = a_capture([a_pane(number, identity=each) for number, each in enumerate(identities)], seconds=60)
    panes = {
        id: replace(each, agent_pid=each.processes[0].pid, agent=AgentDetails(task="saved"))
        for id, each in capture.details.panes.items()
    }
    return a_snapshot(replace(capture, details=replace(capture.details, panes=panes)))


def now_in(
    snapshot: Snapshot,
    *claims: Sequence[Identity],
    held: Sequence[str] = (),
    alive: Sequence[tuple[int, int]] = (),
    settled: Sequence[tuple[int, int]] = (),
) -> dict[str, Newer]:
    adapter = Some({4000 + number: each for number, each in enumerate(claims)})
    others = [("some", None, each) for each in held]
    roster = Roster({}, [adapter])
    return newer(snapshot, roster, Written("/nowhere"), a_table(), held=others, alive=alive, settled=settled)


def conversations(found: Mapping[str, Newer]) -> dict[str, tuple[str | None, bool]]:
    return {pane: (each.identity.conversation, each.identity.certain) for pane, each in found.items()}


def test_who_went_on_has_it_and_who_had_it_before_is_doubtful() -> None:
    snapshot = saved_with(an_identity(conversation="a"), an_identity(conversation="b"))
    found = now_in(snapshot, [], [replace(REGISTERED, conversation="a")])
    assert conversations(found) == {"%0": ("a", False), "%1": ("a", True)}
    assert found["%0"].why == "pane %1 went on to a after the last save"
    assert found["%1"].why == "it went on to a after the last save, from b"
    both = now_in(snapshot, [replace(REGISTERED, conversation="b")], [replace(REGISTERED, conversation="a")])
    assert conversations(both) == {"%0": ("b", True), "%1": ("a", True)}


def test_guesses_are_never_what_another_has() -> None:
    nobody, somebody = a_claim(None), an_identity(conversation="a")
    guesses = [a_claim("a"), a_claim("b"), a_claim("c")]
    assert conversations(now_in(saved_with(nobody, somebody), guesses, []))["%0"] == ("b", False)
    assert conversations(now_in(saved_with(nobody, somebody), guesses, [], held=["b"]))["%0"] == ("c", False)
    went = now_in(saved_with(nobody, somebody), guesses, [replace(REGISTERED, conversation="b")])
    assert conversations(went)["%0"] == ("c", False)


def test_what_was_written_before_the_last_save_is_not_offered() -> None:
    """It was known then, and that the agent was not in it as well: another has left it."""
    old, new = a_claim("a", written_at=SAVED), a_claim("b", written_at=at(70))
    for nobody in (a_claim(None), a_claim(None, prompted=False)):
        assert conversations(now_in(saved_with(nobody), [old])) == {"%0": (None, False)}
        found = now_in(saved_with(nobody), [old, new])["%0"]
        assert (found.identity.conversation, found.why) == ("b", "b was written to after the last save")


def test_two_that_nothing_is_known_of_get_two_or_none() -> None:
    snapshot = saved_with(a_claim(None), a_claim(None))
    assert conversations(now_in(snapshot, [a_claim("a"), a_claim("b")], [a_claim("a")])) == {
        "%0": ("b", False),
        "%1": ("a", False),
    }
    assert conversations(now_in(snapshot, [a_claim("a")], [a_claim("a")])) == {"%0": (None, False), "%1": (None, False)}


def test_a_lesser_claim_is_not_taken_for_a_word_because_it_is_offered_alone() -> None:
    best, lesser = (a_claim("a", Evidence.REGISTRY, certain=certain) for certain in (False, True))
    assert conversations(now_in(saved_with(a_claim(None)), [best, lesser])) == {"%0": ("a", False)}


def test_who_is_in_a_pane_now_is_not_looked_at_and_who_is_settled_stays() -> None:
    snapshot = saved_with(an_identity(conversation="a", prompted=False))
    number = (4000, a_process(4000).start_ticks)
    assert now_in(snapshot, [REGISTERED], alive=[number]) == {}
    stayed = now_in(snapshot, [REGISTERED, a_claim("a", prompted=True)], settled=[number])["%0"]
    assert stayed.identity == an_identity(conversation="a", prompted=True)


def test_an_adapter_that_breaks_leaves_the_snapshot_as_it_is() -> None:
    snapshot = saved_with(an_identity(conversation="gone"))
    assert renewed(snapshot, now_in(snapshot)) == snapshot


def test_what_was_said_of_one_conversation_is_not_said_of_another() -> None:
    snapshot = saved_with(an_identity(conversation="old"), an_identity(conversation="gone"))
    after = renewed(snapshot, now_in(snapshot, [REGISTERED], []))
    assert [pane.identity and pane.identity.conversation for pane in after.topology.panes] == ["new", "gone"]
    tasks = [each.agent and each.agent.task for each in after.details.panes.values()]
    assert tasks == ["of new", "saved"]
    unwritten = renewed(snapshot, {"%0": Newer(identity=REGISTERED)})
    assert unwritten.details.panes["%0"].agent is None


@given(
    st.lists(st.builds(a_claim, CONVERSATIONS, st.just(Evidence.REGISTRY), certain=st.booleans()), max_size=4),
    st.data(),
)
def test_no_conversation_is_guessed_twice_nor_taken_from_its_pane(saved: list[Identity], data: st.DataObject) -> None:
    claims = [data.draw(st.lists(IDENTITIES, max_size=3)) for _ in saved]
    found = now_in(saved_with(*saved), *claims)
    guessed = [
        each.identity.conversation
        for pane, each in found.items()
        if saved[int(pane[1:])].conversation is None and not each.identity.certain and each.identity.conversation
    ]
    assert len(guessed) == len(set(guessed))
    assert not set(guessed) & {each.conversation for each in saved}
    for pane, each in found.items():
        before, known = saved[int(pane[1:])], claims[int(pane[1:])]
        if each.identity.certain and not (before.certain and before.conversation == each.identity.conversation):
            assert own_word([claim for claim in known if claim.conversation is not None], SAVED) is not None


def test_the_plan_says_what_is_newer() -> None:
    step = Step(n=1, pane="%0", target="w:0.0", action=Action.RESUME, why="a word")
    kept = Step(n=2, pane="%1", target="w:0.1", action=Action.KEEP)
    plan = Plan(snapshot="s", server=a_server(), steps=(step, kept))
    newer_one = Newer(identity=REGISTERED, why="it went on")
    steps = told(plan, {"%0": newer_one, "%1": newer_one}).steps
    assert [each.why for each in steps] == ["a word; it went on", ""]


def test_the_moment_the_machine_was_started() -> None:
    assert a_table(boot=NOON.replace(microsecond=0)).booted_at == datetime(2026, 11, 15, 12, tzinfo=UTC)
