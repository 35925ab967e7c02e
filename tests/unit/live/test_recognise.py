from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from perdure.live.recognise import Found, Recognised, found_in, next_name, recognise
from perdure.model.identity import Evidence, Identity
from perdure.model.run import Place, Program, Run, Status, number_of, run_id
from perdure.model.server import ServerProcess
from perdure.model.topology import Details, Link, PaneDetails
from perdure.tmux.wrap import Start, command
from tests.builders import a_capture, a_pane, a_process, a_server, a_topology, an_identity, at
from tests.unit.live.timeline import a_run

SERVER, OTHER = a_server(), a_server("other")
#: The same socket before and after a restart of tmux.
BEFORE = ServerProcess(pid=300, started_at=at(-3600), version="3.4")
AFTER = ServerProcess(pid=900, started_at=at(0), version="3.5")


def a_place(session: str = "work", window: int = 1, pane: int = 0) -> Place:
    return Place(session=session, window=window, pane=pane)


def there(pane: str = "%1", place: Place | None = None, conversation: str | None = None, **changes: Any) -> Found:
    """A pane of the server as it is now; in a conversation, or a shell."""
    identity = an_identity(conversation=conversation) if conversation else None
    found = Found(server=SERVER, process=AFTER, pane=pane, place=place or a_place(), identity=identity)
    return structs.replace(found, **changes)


def known(id: str = "r1", place: Place | None = None, conversation: str | None = None, **changes: Any) -> Run:
    """A run as it was before tmux was restarted."""
    identity = an_identity(conversation=conversation) if conversation else None
    run = a_run(id=id, server=SERVER, process=BEFORE, pane="%1", place=place or a_place(), identity=identity)
    return structs.replace(run, **changes)


def over(run: Run, seconds: float = -10) -> Run:
    return structs.replace(run, ended_at=at(seconds))


def ids(result: Recognised) -> list[str | None]:
    return [run.id if run else None for _, run in result.panes]


def gone(result: Recognised) -> list[str]:
    return [run.id for run in result.gone]


ELSEWHERE = a_place("elsewhere", 7, 2)
#: An agent that does not say yet in which conversation it is.
STARTING = an_identity(conversation=None, evidence=None, certain=False)
GUESSED = an_identity(conversation="c1", evidence=Evidence.GUESS, certain=False)


# -- by the pane itself -----------------------------------------------------------------------------------------------


def test_a_pane_of_the_same_server_process_is_the_same_run_wherever_it_was_moved() -> None:
    """A pane is known by its id, never by a session's name, which shows whatever pane is active."""
    run = known(process=AFTER)
    assert ids(recognise([there(place=ELSEWHERE, conversation="another")], [run], [SERVER.key])) == ["r1"]


def test_a_pane_with_the_same_number_on_another_socket_is_another() -> None:
    """The socket is part of who somebody is."""
    result = recognise([there(server=OTHER)], [known(process=AFTER)], [SERVER.key, OTHER.key])
    assert (ids(result), gone(result)) == ([None], ["r1"])


def test_a_pane_number_that_a_new_server_gives_again_is_another() -> None:
    result = recognise([there(place=ELSEWHERE)], [known()], [SERVER.key])
    assert (ids(result), gone(result)) == ([None], ["r1"])


def test_whoever_was_taken_for_dead_comes_back_in_the_same_pane() -> None:
    """A server that did not answer was given up, and is there after all."""
    assert ids(recognise([there(place=ELSEWHERE)], [over(known(process=AFTER))], [SERVER.key])) == ["r1"]


def test_of_two_runs_of_one_pane_the_living_one_is_it_and_the_other_is_gone() -> None:
    runs = [known("r1", process=AFTER), known("r2", process=AFTER, status=Status(since=at(50)))]
    result = recognise([there()], runs, [SERVER.key])
    assert (ids(result), gone(result)) == (["r2"], ["r1"])
    assert ids(recognise([there()], [over(runs[1]), runs[0]], [SERVER.key])) == ["r1"]


# -- by the conversation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_over", [True, False])
def test_a_conversation_takes_its_id_along(is_over: bool) -> None:
    """Ids survive restarts of perdure, of tmux and of the machine."""
    run = known(conversation="c1")
    found = there("%9", ELSEWHERE, "c1", server=OTHER)
    result = recognise([found], [over(run) if is_over else run], [SERVER.key, OTHER.key])
    assert (ids(result), gone(result)) == (["r1"], [])


def test_a_conversation_counts_before_a_place() -> None:
    runs = [known("r1", a_place(), "c1"), known("r2", ELSEWHERE, "c2")]
    found = [there("%1", a_place(), "c2"), there("%2", ELSEWHERE, "c1")]
    assert ids(recognise(found, runs, [SERVER.key])) == ["r2", "r1"]


@pytest.mark.parametrize(
    "doubt",
    [{"evidence": Evidence.GUESS, "certain": False}, {"evidence": Evidence.ARGV, "certain": False}],
)
def test_a_guess_gives_no_id(doubt: dict[str, Any]) -> None:
    """Several agents share a directory: only evidence of the pane's own process says who is who."""
    guess = an_identity(conversation="c1", **doubt)
    sure = an_identity(conversation="c1")
    for found, before in ((guess, sure), (sure, guess)):
        run = over(known(identity=before))
        assert ids(recognise([there(place=ELSEWHERE, identity=found)], [run], [SERVER.key])) == [None]


@pytest.mark.parametrize("another", [an_identity("other", "c1"), an_identity(conversation="c1", profile="work")])
def test_the_same_conversation_of_another_agent_or_profile_is_another(another: Identity) -> None:
    run = over(known(conversation="c1"))
    assert ids(recognise([there(place=ELSEWHERE, identity=another)], [run], [SERVER.key])) == [None]


def test_a_shell_for_which_a_conversation_turns_out_to_be_kept_is_the_run_that_was_in_it() -> None:
    """A restore says so a moment after the pane is there: until then it is a shell like any other."""
    kept = there(identity=an_identity(conversation="c1", evidence=Evidence.KEPT))
    was, shell = over(known("r1", conversation="c1")), known("r2", process=AFTER)
    result = recognise([kept], [was, shell], [SERVER.key], young={"r2"})
    assert (ids(result), gone(result)) == (["r1"], ["r2"])
    # One that somebody has worked in by then, or has run an agent in, stays who it is.
    assert ids(recognise([kept], [was, shell], [SERVER.key])) == ["r2"]
    # As does one that would become nobody, or somebody who is elsewhere.
    assert ids(recognise([kept], [shell], [SERVER.key], young={"r2"})) == ["r2"]
    there_is = known("r1", process=AFTER, pane="%2", conversation="c1")
    both = [kept, there("%2", ELSEWHERE, "c1")]
    assert ids(recognise(both, [there_is, shell], [SERVER.key], young={"r2"})) == ["r2", "r1"]
    living = there("%1", conversation="c1")
    assert ids(recognise([living], [was, shell], [SERVER.key], young={"r2"})) == ["r2"]


def test_nobody_takes_the_id_of_whoever_is_still_there() -> None:
    run = known(conversation="c1", process=AFTER)
    found = [there("%2", ELSEWHERE, "c1"), there("%1", conversation="c1")]
    assert ids(recognise(found, [run], [SERVER.key])) == [None, "r1"]


def test_of_two_that_say_to_be_in_it_the_one_that_can_show_it_best_is() -> None:
    kept = an_identity(conversation="c1", evidence=Evidence.KEPT)
    found = [there("%1", identity=kept), there("%2", ELSEWHERE, "c1")]
    assert ids(recognise(found, [over(known(conversation="c1", place=a_place("x")))], [SERVER.key])) == [None, "r1"]


def test_of_several_that_were_in_it_the_latest_is_it() -> None:
    runs = [over(known(f"r{n}", a_place("x", n), "c1"), seconds) for n, seconds in ((1, -50), (2, -5), (3, -500))]
    assert ids(recognise([there(conversation="c1")], runs, [SERVER.key])) == ["r2"]
    together = [over(known(f"r{n}", a_place("x", n), "c1")) for n in (9, 10, 2)]
    for some in (together, together[::-1]):
        assert ids(recognise([there(conversation="c1")], some, [SERVER.key])) == ["r10"]


@pytest.mark.parametrize("place", [a_place(), ELSEWHERE])
@pytest.mark.parametrize("is_over", [True, False])
def test_what_a_restore_starts_in_a_conversation_is_its_run_before_it_has_shown_itself(
    place: Place, is_over: bool
) -> None:
    """Some agents take longer to be in sight than anybody waits for them to say where they are."""
    run = known(conversation="c1")
    found = there("%7", place, identity=GUESSED, restored=True, resumed=True)
    assert ids(recognise([found], [over(run) if is_over else run], [SERVER.key])) == ["r1"]
    another = there("%7", place, identity=structs.replace(GUESSED, conversation="c2"), restored=True, resumed=True)
    assert ids(recognise([another], [run], [SERVER.key])) == [None]
    # Whoever is in it for certain comes before.
    both = [found, there("%8", a_place("x"), "c1")]
    assert ids(recognise(both, [run], [SERVER.key])) == [None, "r1"]


# -- by the place -----------------------------------------------------------------------------------------------------


def test_a_place_takes_its_id_back_after_a_restart() -> None:
    """The same session name in the list of those that were there takes its id back."""
    assert ids(recognise([there("%7")], [over(known())], [SERVER.key])) == ["r1"]
    assert ids(recognise([there("%7")], [known()], [SERVER.key])) == ["r1"]
    silent = known(identity=STARTING)
    for found in (there("%7", restored=True), there("%7", identity=STARTING), there("%7", conversation="c1")):
        assert ids(recognise([found], [silent], [SERVER.key])) == ["r1"]


def test_another_agent_in_the_place_of_one_of_an_unknown_conversation_is_somebody_new() -> None:
    another = there("%7", identity=structs.replace(STARTING, agent="other"))
    assert ids(recognise([another], [over(known(identity=STARTING))], [SERVER.key])) == [None]


def test_a_shell_in_the_place_of_an_agent_that_fell_is_something_new_and_leaves_it_its_id() -> None:
    fallen = over(known(conversation="c1"))
    assert ids(recognise([there("%7")], [fallen], [SERVER.key])) == [None]
    both = [there("%7"), there("%8", ELSEWHERE, "c1")]
    assert ids(recognise(both, [fallen], [SERVER.key])) == [None, "r1"]


def test_a_place_makes_no_conversation_into_another() -> None:
    result = recognise([there("%7", conversation="c2")], [known(conversation="c1")], [SERVER.key])
    assert (ids(result), gone(result)) == ([None], ["r1"])


@pytest.mark.parametrize(
    "found", [there("%7", identity=STARTING), there("%7", identity=GUESSED), there("%7", restored=True)]
)
@pytest.mark.parametrize("is_over", [True, False])
def test_a_conversation_leaves_its_id_to_nobody_who_does_not_say_yet_to_be_in_it(found: Found, is_over: bool) -> None:
    run = known(conversation="c1")
    result = recognise([found], [over(run) if is_over else run], [SERVER.key])
    assert (ids(result), result.unsaid) == ([None], (found,))


@pytest.mark.parametrize(
    "found",
    [
        there("%7"),
        there("%7", conversation="c2"),
        there("%7", identity=structs.replace(STARTING, agent="other")),
        there("%7", ELSEWHERE, identity=STARTING),
        there("%7", identity=STARTING, server=OTHER),
        there("%7", identity=STARTING, process=BEFORE),
    ],
)
def test_who_is_certainly_another_need_not_say_anything(found: Found) -> None:
    result = recognise([found], [over(known(conversation="c1"))], [SERVER.key, OTHER.key])
    assert (ids(result), result.unsaid) == ([None], ())


def test_what_was_only_guessed_comes_back_to_its_place_with_the_same_guess_alone() -> None:
    guessed = over(known(identity=GUESSED))
    assert ids(recognise([there("%7", identity=GUESSED)], [guessed], [SERVER.key])) == ["r1"]
    assert ids(recognise([there("%7", conversation="c1")], [guessed], [SERVER.key])) == ["r1"]
    assert ids(recognise([there("%7", conversation="c2")], [guessed], [SERVER.key])) == [None]
    result = recognise([there("%7", identity=STARTING)], [guessed], [SERVER.key])
    assert (ids(result), len(result.unsaid)) == ([None], 1)


def test_what_opens_in_the_place_of_an_agent_that_was_closed_is_something_new() -> None:
    """Whoever still knows the id of a conversation must not find a shell under it."""
    closed = over(known(conversation="c1", process=AFTER))
    assert ids(recognise([there("%7")], [closed], [SERVER.key])) == [None]


def test_a_shell_that_is_opened_again_under_its_name_takes_its_id_back() -> None:
    """Create, remove and create again: the name that comes back is the run that was there."""
    assert ids(recognise([there("%7")], [over(known(process=AFTER))], [SERVER.key])) == ["r1"]


def test_the_same_place_on_another_socket_is_another() -> None:
    assert ids(recognise([there(server=OTHER)], [over(known())], [SERVER.key, OTHER.key])) == [None]


def test_only_the_last_in_a_place_comes_back_to_it() -> None:
    runs = [over(known("r1"), -500), over(known("r2"), -5)]
    assert ids(recognise([there("%7"), there("%8", ELSEWHERE)], runs, [SERVER.key])) == ["r2", None]


# -- who is gone ------------------------------------------------------------------------------------------------------


def test_whoever_is_not_listed_any_more_is_gone() -> None:
    runs = [known("r1", process=AFTER), known("r2", ELSEWHERE, process=AFTER, pane="%2"), over(known("r3"))]
    assert gone(recognise([there()], runs, [SERVER.key])) == ["r2"]
    more = [known(f"r{n}", process=AFTER, status=Status(since=at(-n))) for n in (10, 9, 2)]
    assert gone(recognise([], more, [SERVER.key])) == ["r2", "r9", "r10"]


def test_a_server_without_any_pane_is_reliably_empty() -> None:
    """No server, or no session, is an answer: everyone of it is gone."""
    assert gone(recognise([], [known(), known("r2", server=OTHER)], [SERVER.key])) == ["r1"]


def test_a_listing_that_failed_ends_nobody() -> None:
    """What tmux did not say reliably attaches nothing, and removes nothing."""
    result = recognise([], [known(), known("r2", server=OTHER)], [])
    assert (result.panes, result.gone) == ((), ())


def test_a_listing_that_failed_gives_nobodys_id_away() -> None:
    """A socket that does not answer is not dead."""
    hidden = known(conversation="c1", server=OTHER)
    result = recognise([there(conversation="c1")], [hidden], [SERVER.key])
    assert (ids(result), gone(result)) == ([None], [])


# -- always -----------------------------------------------------------------------------------------------------------

SERVERS = [SERVER, OTHER]
EVIDENCE = st.sampled_from([Evidence.REGISTRY, Evidence.ARGV, Evidence.GUESS, Evidence.KEPT])
IDENTITIES = st.one_of(
    st.none(),
    st.builds(
        an_identity,
        st.just("some"),
        st.sampled_from(["c1", "c2", "c3", None]),
        evidence=EVIDENCE,
        certain=st.booleans(),
    ),
)
PLACES = st.builds(a_place, st.sampled_from(["0", "1"]), st.integers(0, 1), st.integers(0, 1))
PANES = st.sampled_from(["%1", "%2", "%10"])
PROCESSES = st.sampled_from([BEFORE, AFTER])
FOUND = st.lists(
    st.builds(
        Found,
        server=st.sampled_from(SERVERS),
        process=st.just(AFTER),
        pane=PANES,
        place=PLACES,
        identity=IDENTITIES,
    ),
    # A pane is there once, and so is a place.
    unique_by=(lambda each: (each.server.key, each.pane), lambda each: (each.server.key, each.place)),
    max_size=6,
)
RUNS = st.lists(
    st.builds(
        known,
        st.integers(1, 40).map(run_id),
        PLACES,
        server=st.sampled_from(SERVERS),
        process=st.one_of(st.none(), PROCESSES),
        pane=PANES,
        identity=IDENTITIES,
        ended_at=st.sampled_from([None, at(-5), at(-50)]),
    ),
    unique_by=lambda run: run.id,
    max_size=8,
)
LOOKED_AT = st.sets(st.sampled_from(SERVERS), max_size=2)


def seen_of(found: list[Found], servers: set[Any]) -> list[Found]:
    return [each for each in found if each.server in servers]


@given(FOUND, RUNS, LOOKED_AT)
def test_no_id_is_on_two_panes_and_nobody_is_both_there_and_gone(
    found: list[Found], runs: list[Run], servers: set[Any]
) -> None:
    result = recognise(seen_of(found, servers), runs, [server.key for server in servers])
    assert [each for each, _ in result.panes] == seen_of(found, servers)
    used = [run.id for _, run in result.panes if run] + gone(result)
    assert len(used) == len(set(used))
    assert {run.id for _, run in result.panes if run} <= {run.id for run in runs}


@given(FOUND, RUNS, LOOKED_AT)
def test_a_failed_listing_ends_nobody_and_gives_no_living_id_away(
    found: list[Found], runs: list[Run], servers: set[Any]
) -> None:
    """What was not listed reliably is neither gone, nor taken by another."""
    result = recognise(seen_of(found, servers), runs, [server.key for server in servers])
    assert all(run.server in servers and not run.is_over for run in result.gone)
    for each, run in result.panes:
        if run is not None and not run.is_over and run.server not in servers:
            raise AssertionError(f"{each} took the id of one that nobody looked for")


@given(FOUND, RUNS)
def test_whoever_is_in_a_pane_keeps_it(found: list[Found], runs: list[Run]) -> None:
    result = recognise(found, runs, [server.key for server in SERVERS])
    for run in runs:
        own = [each for each in found if (each.server, each.process, each.pane) == (run.server, run.process, run.pane)]
        for each in own:
            [taken] = [taken for pane, taken in result.panes if pane == each]
            assert taken is not None
            assert (taken.server, taken.process, taken.pane) == (each.server, each.process, each.pane)


@given(FOUND, RUNS, LOOKED_AT, st.randoms(use_true_random=False))
def test_the_order_in_which_anything_comes_does_not_matter(
    found: list[Found], runs: list[Run], servers: set[Any], random: Any
) -> None:
    keys = [server.key for server in servers]
    seen = seen_of(found, servers)
    first = recognise(seen, runs, keys)
    shuffled, others = list(seen), list(runs)
    random.shuffle(shuffled)
    random.shuffle(others)
    second = recognise(shuffled, others, reversed(keys))
    assert sorted(first.panes, key=_by_pane) == sorted(second.panes, key=_by_pane)
    assert first.gone == second.gone


def _by_pane(pair: tuple[Found, Run | None]) -> tuple[str, str]:
    return (pair[0].server.key, pair[0].pane)


@given(FOUND, RUNS, LOOKED_AT)
def test_no_conversation_becomes_another(found: list[Found], runs: list[Run], servers: set[Any]) -> None:
    """Only the pane itself may have gone on to another conversation."""
    result = recognise(seen_of(found, servers), runs, [server.key for server in servers])
    for each, run in result.panes:
        if run is None or (run.server, run.process, run.pane) == (each.server, each.process, each.pane):
            continue
        was, is_ = run.identity, each.identity
        if was and is_ and was.certain and is_.certain and Evidence.GUESS not in (was.evidence, is_.evidence):
            assert not was.conversation or not is_.conversation or was.conversation == is_.conversation


# -- what is found ----------------------------------------------------------------------------------------------------


def test_panes_are_found_with_their_processes() -> None:
    panes = [a_pane(0, identity=an_identity()), a_pane(1), a_pane(2, identity=an_identity(evidence=Evidence.KEPT))]
    tree = (a_process(4000), a_process(4100, ppid=4000))
    details = {"%0": PaneDetails(processes=tree, agent_pid=4100), "%2": PaneDetails(agent_pid=4100, processes=tree)}
    capture = structs.replace(a_capture(), topology=a_topology(panes), details=Details(panes=details))
    agent, shell, kept = found_in(capture)
    assert agent.place == Place(session="work", window=capture.topology.links[0].index, pane=0, window_name="main")
    assert agent.first == Program(pid=4000, start_ticks=5000)
    assert agent.program == Program(pid=4100, start_ticks=5100)
    assert (agent.process, agent.server) == (capture.topology.process, capture.server)
    assert (shell.first, shell.program, shell.identity) == (None, None, None)
    # Nobody is in what is only kept for a pane.
    assert kept.program is None
    assert kept.identity is not None


def test_what_has_started_an_agent_is_found_with_it() -> None:
    tree = (a_process(4000), a_process(4100, ppid=4000), a_process(4200, ppid=4100), a_process(4300, ppid=4200))
    details = {"%0": PaneDetails(processes=tree, agent_pid=4200)}
    pane = a_pane(0, identity=an_identity())
    capture = structs.replace(a_capture(), topology=a_topology([pane]), details=Details(panes=details))
    [found] = found_in(capture)
    assert found.launchers == (Program(pid=4100, start_ticks=5100),)


@pytest.mark.parametrize(
    ("start", "is_resumed"),
    [
        (Start(argv=("agent", "--resume", "c1")), True),
        (Start(argv=("agent", "--resume=c1")), True),
        (Start(argv=("agent",)), False),
        (Start(argv=("agent", "--resume", "c2")), False),
        (Start(argv=("agent", "--resume", "c1"), asks=True, is_guess=True), False),
    ],
)
def test_what_a_restore_has_started_is_found_with_whether_it_was_in_that_conversation(
    start: Start, is_resumed: bool
) -> None:
    """A conversation that is guessed from what is newest may be another's."""
    first = a_process(4000, argv=tuple(command(start)))
    details = {"%0": PaneDetails(processes=(first, a_process(4100, ppid=4000)), agent_pid=4100)}
    capture = structs.replace(
        a_capture(), topology=a_topology([a_pane(0, identity=GUESSED)]), details=Details(panes=details)
    )
    [found] = found_in(capture)
    assert (found.restored, found.resumed) == (True, is_resumed)


def test_a_pane_that_several_sessions_show_is_found_once_in_the_first_of_them() -> None:
    topology = a_topology([a_pane(0)])
    [session], [link] = topology.sessions, topology.links
    number = int(session.id[1:])
    first = structs.replace(session, id=f"${number + 2}", name="second")
    last = structs.replace(session, id=f"${number + 10}", name="third")
    links = [Link(session=last.id, window=link.window, index=0), Link(session=first.id, window=link.window, index=4)]
    shared = structs.replace(topology, sessions=(last, first, session), links=(*links, link))
    [found] = found_in(structs.replace(a_capture(), topology=shared))
    assert found.place.session == session.name
    [found] = found_in(structs.replace(a_capture(), topology=structs.replace(shared, links=tuple(links))))
    assert found.place.target == "second:4.0"


# -- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "following"),
    [
        ([], "0"),
        (["work"], "0"),
        (["0", "1"], "2"),
        (["7", "work", "3"], "8"),
        (["007"], "8"),
        (["-1", "1.5", "٣", "²", "1 "], "0"),
        (["999999999999999999", "1000000000000000000"], "1000000000000000001"),
    ],
)
def test_numbered_names_go_on_above_the_highest(names: list[str], following: str) -> None:
    """Names that are numbers raise the count above the highest in use."""
    assert next_name(names) == following


@given(st.lists(st.one_of(st.integers(0, 40).map(str), st.text(max_size=3), st.text("0123456789", max_size=30))))
def test_a_next_name_is_never_in_use(names: list[str]) -> None:
    assert next_name(names) not in names


@given(st.integers(0, 10**18 - 1))
def test_ids_are_numbers(number: int) -> None:
    """Ids are counted, and never given again: the number is read back from the id."""
    assert number_of(run_id(number)) == number


@pytest.mark.parametrize("id", ["", "r", "1", "r-1", "r1.5", "rr1", "r²", "r٣", "r 1", "r" + "1" * 19])
def test_what_is_no_id_has_no_number(id: str) -> None:
    assert number_of(id) is None
