from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import cast

import msgspec
import pytest

from perdure.agents import Roster
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.process import Command, Process
from perdure.model.screen import Screen, ScreenReading
from perdure.model.server import Server
from perdure.model.snapshot import Capture, Snapshot
from perdure.ports import HostView, Sighting
from perdure.snapshots.identify import identify
from tests.builders import a_capture, a_pane, a_process, a_server, a_snapshot, a_topology, at, some_details

#: No adapter here reads a file.
HOST = cast(HostView, None)


class Known:
    """An adapter that knows, by the number of the process, what there is to know; or fails."""

    name = "some"
    programs = frozenset({"some"})
    same_directory = False
    environment: frozenset[str] = frozenset()
    signs: tuple[str, ...] = ()

    def __init__(self, identities: Mapping[int, Sequence[Identity] | Exception]) -> None:
        self.identities = identities
        self.described: list[str | None] = []

    def score(self, process: Process) -> float:
        return 1.0 if process.pid in self.identities else 0.0

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        found = self.identities[sighting.process.pid]
        if isinstance(found, Exception):
            raise found
        return found

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        self.described.append(identity.conversation)
        return AgentDetails(title=identity.conversation)

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        return None

    def resume(self, identity: Identity, launched: Command) -> Command | None:
        return None


def claim(conversation: str | None, evidence: Evidence | None = Evidence.REGISTRY, *, certain: bool = True) -> Identity:
    return Identity(
        agent="some",
        conversation=conversation,
        evidence=evidence if conversation else None,
        certain=certain and conversation is not None,
        because=(f"{conversation} by {evidence}",),
    )


def guess(conversation: str) -> Identity:
    return claim(conversation, Evidence.GUESS, certain=False)


UNKNOWN = claim(None)


def capture_of(*pids: int, server: Server | None = None, started: Mapping[int, float] | None = None) -> Capture:
    """Panes with a shell and below it a process with this number."""
    panes = [a_pane(number, pid=9000 + pid) for number, pid in enumerate(pids)]
    topology = a_topology(panes)
    details = some_details(topology)
    with_trees = {}
    for pane, pid in zip(panes, pids, strict=True):
        shell = a_process(pane.pid, foreground=False)
        program = a_process(
            pid, ppid=shell.pid, argv=("some", "--fast"), cwd="/work", started_at=at((started or {}).get(pid, pid))
        )
        with_trees[pane.id] = msgspec.structs.replace(details.panes[pane.id], processes=(shell, program))
    return a_capture(panes, server=server, details=msgspec.structs.replace(details, panes=with_trees))


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    adapter = Known({})
    monkeypatch.setattr("perdure.agents._registry._built_in", lambda: Roster({}, [adapter]))
    return adapter


def nothing_before(server: Server) -> Snapshot | None:
    return None


def held(captures: Sequence[Capture]) -> list[str | None]:
    """The conversation of every pane, None where there is none."""
    panes = [pane for capture in captures for pane in capture.topology.panes]
    return [pane.identity.conversation if pane.identity else None for pane in panes]


def because(capture: Capture, pane: str) -> str:
    return " ".join(capture.details.panes[pane].because)


def test_an_agent_and_its_conversation(known: Known) -> None:
    known.identities = {11: [claim("A"), UNKNOWN]}
    (found,) = identify([capture_of(11, 12)], HOST, nothing_before)
    agent, plain = found.topology.panes
    assert agent.identity == msgspec.structs.replace(claim("A"), because=())
    assert agent.program == Command(argv=("some", "--fast"), cwd="/work")
    assert plain.identity is None
    assert plain.program == Command(argv=("some", "--fast"), cwd="/work")
    assert found.details.panes["%0"].agent == AgentDetails(title="A")
    assert "A by" in because(found, "%0")
    assert found.details.panes["%1"].agent is None


def both_ways(captures: Sequence[Capture]) -> list[list[str | None]]:
    return [held(identify(captures, HOST, nothing_before)), held(identify(captures[::-1], HOST, nothing_before))[::-1]]


@pytest.mark.parametrize(
    ("strong", "weak"),
    [
        (claim("A", Evidence.ARGV), guess("A")),
        (claim("A", Evidence.TITLE), claim("A", Evidence.REGISTRY, certain=False)),
        (claim("A", Evidence.REGISTRY), claim("A", Evidence.ARGV)),
        (claim("A", Evidence.REGISTRY), claim("A", Evidence.LAUNCH)),
    ],
)
def test_a_conversation_is_held_by_the_strongest_evidence(known: Known, strong: Identity, weak: Identity) -> None:
    known.identities = {11: [strong, UNKNOWN], 12: [weak, guess("B"), UNKNOWN]}
    servers = [capture_of(11, server=a_server("one")), capture_of(12, server=a_server("two"))]
    assert both_ways(servers) == [["A", "B"], ["A", "B"]]
    _, loser = identify(servers, HOST, nothing_before)
    assert "A: held by pane %0 on /tmp/tmux-1000/one" in because(loser, "%0")


def test_among_equals_who_was_there_first_keeps_it(known: Known) -> None:
    known.identities = {11: [claim("A"), UNKNOWN], 12: [claim("A"), UNKNOWN]}
    captures = [capture_of(11, 12, started={11: 5, 12: 1})]
    assert held(identify(captures, HOST, nothing_before)) == [None, "A"]


def test_who_loses_everything_is_an_agent_of_unknown_conversation(known: Known) -> None:
    known.identities = {11: [claim("A")], 12: [guess("A")]}
    (found,) = identify([capture_of(11, 12)], HOST, nothing_before)
    identity = found.topology.panes[1].identity
    assert identity is not None
    assert (identity.agent, identity.conversation, identity.certain) == ("some", None, False)
    assert "held by pane %0" in because(found, "%1")


def test_who_is_pushed_out_pushes_out_a_weaker_one(known: Known) -> None:
    known.identities = {
        11: [claim("A", Evidence.REGISTRY), UNKNOWN],
        12: [claim("A", Evidence.HOOK), claim("B", Evidence.ARGV), UNKNOWN],
        13: [guess("B"), guess("C"), UNKNOWN],
    }
    for order in itertools.permutations((11, 12, 13)):
        found = dict(zip(order, held(identify([capture_of(*order)], HOST, nothing_before)), strict=True))
        assert found == {11: "A", 12: "B", 13: "C"}


def test_no_conversation_is_ever_held_twice(known: Known) -> None:
    names = "ABCD"
    known.identities = {
        pid: [
            *(
                claim(names[(pid * 7 + turn) % 4], list(Evidence)[(pid + turn) % 8], certain=pid % 3 > 0)
                for turn in range(3)
            ),
            UNKNOWN,
        ]
        for pid in range(11, 23)
    }
    conversations = [each for each in held(identify([capture_of(*range(11, 23))], HOST, nothing_before)) if each]
    assert sorted(conversations) == sorted(set(conversations))
    assert set(conversations) == set(names)


def test_the_same_id_of_another_agent_is_another_conversation(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Known({12: [msgspec.structs.replace(claim("A"), agent="other")]})
    other.name = "other"
    known.identities = {11: [claim("A")]}
    monkeypatch.setattr("perdure.agents._registry._built_in", lambda: Roster({}, [known, other]))
    assert held(identify([capture_of(11, 12)], HOST, nothing_before)) == ["A", "A"]


def test_an_adapter_that_fails_costs_only_its_pane(known: Known, caplog: pytest.LogCaptureFixture) -> None:
    known.identities = {11: ValueError("broken"), 12: [claim("A"), UNKNOWN], 13: []}
    with caplog.at_level(logging.ERROR):
        (found,) = identify([capture_of(11, 12, 13)], HOST, nothing_before)
    assert held([found]) == [None, "A", None]
    assert [pane.identity.agent for pane in found.topology.panes if pane.identity] == ["some"] * 3
    assert "pane %0" in caplog.text


def test_a_description_that_fails_costs_only_itself(
    known: Known, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def describe(identity: Identity, process: Process, host: HostView) -> AgentDetails:
        raise ValueError("broken")

    known.identities = {11: [claim("A")]}
    monkeypatch.setattr(known, "describe", describe)
    with caplog.at_level(logging.ERROR):
        (found,) = identify([capture_of(11)], HOST, nothing_before)
    assert held([found]) == ["A"]
    assert found.details.panes["%0"].agent is None
    assert "could not be described" in caplog.text


def test_reasons_do_not_make_a_new_snapshot(known: Known) -> None:
    known.identities = {11: [claim("A")]}
    (one,) = identify([capture_of(11)], HOST, nothing_before)
    known.identities = {11: [msgspec.structs.replace(claim("A"), because=("something else",))]}
    (other,) = identify([capture_of(11)], HOST, nothing_before)
    assert one.topology == other.topology
    assert because(one, "%0") != because(other, "%0")


def before(known: Known, *pids: int) -> Snapshot:
    """The panes as they were last saved, when everything was certain."""
    known.identities = {pid: [claim(f"C{pid}")] for pid in pids}
    (capture,) = identify([capture_of(*pids)], HOST, nothing_before)
    return a_snapshot(capture)


@pytest.mark.parametrize("now", [claim("old", Evidence.ARGV), UNKNOWN])
def test_what_was_certain_of_the_same_process_still_is(known: Known, now: Identity) -> None:
    saved = before(known, 11)
    known.identities = {11: [now, UNKNOWN]}
    (found,) = identify([capture_of(11)], HOST, lambda server: saved)
    identity = found.topology.panes[0].identity
    assert identity is not None
    assert (identity.conversation, identity.evidence, identity.certain) == ("C11", Evidence.REMEMBERED, True)
    assert "last certainly known" in because(found, "%0")


@pytest.mark.parametrize(("left", "expected"), [((), ("A", Evidence.REMEMBERED, False)), (("A",), (None, None, False))])
def test_what_was_certain_does_not_go_without_a_trace(
    known: Known, left: tuple[str, ...], expected: tuple[object, ...]
) -> None:
    """Whichever evidence it was by, and however it went: only what the agent has left is gone."""
    known.identities = {11: [claim("A", Evidence.ARGV), UNKNOWN]}
    (capture,) = identify([capture_of(11)], HOST, nothing_before)
    saved = a_snapshot(capture)
    known.identities = {11: [msgspec.structs.replace(UNKNOWN, left=left)]}
    (found,) = identify([capture_of(11)], HOST, lambda server: saved)
    assert known_of(found) == expected


def test_what_is_certain_now_is_not_remembered_away(known: Known) -> None:
    saved = before(known, 11)
    known.identities = {11: [claim("new", Evidence.HOOK)]}
    assert held(identify([capture_of(11)], HOST, lambda server: saved)) == ["new"]


def test_a_process_with_the_same_number_is_not_the_same(known: Known) -> None:
    saved = before(known, 11)
    known.identities = {11: [claim("old", Evidence.ARGV)]}
    capture = capture_of(11)
    pane = capture.details.panes["%0"]
    newer = tuple(msgspec.structs.replace(each, start_ticks=each.start_ticks + 1) for each in pane.processes)
    details = msgspec.structs.replace(capture.details, panes={"%0": msgspec.structs.replace(pane, processes=newer)})
    assert held(identify([msgspec.structs.replace(capture, details=details)], HOST, lambda server: saved)) == ["old"]


def test_what_is_remembered_gives_way_to_what_is_seen(known: Known) -> None:
    saved = before(known, 11)
    known.identities = {11: [claim("old", Evidence.ARGV), UNKNOWN], 12: [claim("C11", Evidence.REGISTRY)]}
    assert held(identify([capture_of(11, 12)], HOST, lambda server: saved)) == ["old", "C11"]


def test_the_store_is_asked_only_when_something_is_not_certain(known: Known) -> None:
    asked: list[Server] = []
    known.identities = {11: [claim("A")], 12: [UNKNOWN], 13: [UNKNOWN]}

    def earlier(server: Server) -> Snapshot | None:
        asked.append(server)
        return None

    identify([capture_of(11)], HOST, earlier)
    assert asked == []
    identify([capture_of(12, 13)], HOST, earlier)
    assert len(asked) == 1


def test_nobody_there() -> None:
    assert identify([], HOST, nothing_before) == []


def test_the_reason_names_who_holds_it_in_the_end(known: Known) -> None:
    """Three want A: whoever held it for a moment while the claims were weighed is not named."""
    known.identities = {
        11: [claim("A", evidence=Evidence.GUESS, certain=False), UNKNOWN],
        12: [claim("A", evidence=Evidence.ARGV), UNKNOWN],
        13: [claim("A"), UNKNOWN],
    }
    (found,) = identify([capture_of(11, 12, 13)], HOST, nothing_before)
    holder = next(pane.id for pane in found.topology.panes if pane.identity and pane.identity.conversation)
    for pane in found.topology.panes:
        if pane.id != holder:
            assert f"A: held by pane {holder} on" in because(found, pane.id)


def known_of(found: Capture, pane: str = "%0") -> tuple[str | None, Evidence | None, bool]:
    (identity,) = (each.identity for each in found.topology.panes if each.id == pane)
    assert identity is not None
    return identity.conversation, identity.evidence, identity.certain


def test_a_title_speaks_against_a_memory_whoever_holds_what_it_names(known: Known) -> None:
    """Two panes can show one conversation; a title is the pane's own."""
    saved = before(known, 11, 12)
    known.identities = {
        11: [claim("C12", Evidence.TITLE, certain=False), UNKNOWN],
        12: [claim("C12"), UNKNOWN],
    }
    (found,) = identify([capture_of(11, 12)], HOST, lambda server: saved)
    assert known_of(found) == ("C11", Evidence.REMEMBERED, False)
    assert known_of(found, "%1") == ("C12", Evidence.REGISTRY, True)


def test_a_title_that_is_certain_stands_before_a_memory_it_makes_doubtful(known: Known) -> None:
    saved = before(known, 11)
    known.identities = {11: [claim("new", Evidence.TITLE), UNKNOWN]}
    (found,) = identify([capture_of(11)], HOST, lambda server: saved)
    assert known_of(found) == ("new", Evidence.TITLE, True)


def test_what_makes_a_hook_doubtful_makes_the_memory_so(known: Known) -> None:
    saved = before(known, 11)
    known.identities = {11: [claim("C11", Evidence.HOOK, certain=False), UNKNOWN]}
    (found,) = identify([capture_of(11)], HOST, lambda server: saved)
    assert known_of(found)[::2] == ("C11", False)


@pytest.mark.parametrize("evidence", [Evidence.HOOK, Evidence.ARGV])
def test_nobody_is_certain_of_the_past_where_two_are_in_one_conversation(known: Known, evidence: Evidence) -> None:
    known.identities = {
        11: [claim("X", evidence), UNKNOWN],
        12: [claim("X", Evidence.ARGV), UNKNOWN],
        13: [claim("Y", Evidence.ARGV), UNKNOWN],
    }
    (found,) = identify([capture_of(11, 12, 13)], HOST, nothing_before)
    assert known_of(found) == ("X", evidence, False)
    assert known_of(found, "%2") == ("Y", Evidence.ARGV, True)


def test_one_who_is_there_now_stays_certain_beside_one_who_says_so(known: Known) -> None:
    known.identities = {11: [claim("X", Evidence.ARGV), UNKNOWN], 12: [claim("X", Evidence.REGISTRY), UNKNOWN]}
    (found,) = identify([capture_of(11, 12)], HOST, nothing_before)
    assert known_of(found, "%1") == ("X", Evidence.REGISTRY, True)


def test_a_doubted_hook_stays_doubtful_until_there_is_a_newer_one(known: Known) -> None:
    known.identities = {11: [claim("X", Evidence.HOOK, certain=False), UNKNOWN]}
    (capture,) = identify([capture_of(11)], HOST, nothing_before)
    saved = a_snapshot(capture)
    older = msgspec.structs.replace(claim("X", Evidence.HOOK), written_at=saved.last_seen_at - timedelta(seconds=1))
    newer = msgspec.structs.replace(older, written_at=saved.last_seen_at + timedelta(seconds=1))
    for record, certain in ((older, False), (newer, True)):
        known.identities = {11: [record, UNKNOWN]}
        (found,) = identify([capture_of(11)], HOST, lambda server: saved)
        assert known_of(found) == ("X", Evidence.HOOK, certain)
