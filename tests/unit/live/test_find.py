"""Which run a target means: one, or none, and never a guess."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from perdure.errors import AmbiguousRun, RunNotFound
from perdure.live.find import find_run
from perdure.model.run import Place
from tests.builders import NOON, a_server
from tests.unit.live.events import a_run

HERE = [
    a_run("r1", session="work"),
    a_run("r2", session="work", window=1),
    a_run("r3", session="work", window=1, pane=1),
    a_run("r4", session="play", place=Place(session="play", window=0, pane=0, window_name="v1.0")),
    a_run("r5", session="gone", ended_at=NOON),
    a_run("r6", session="b\\\\s"),
]


@pytest.mark.parametrize(
    ("target", "id"),
    [
        ("r1", "r1"),
        ("b\\s", "r6"),
        ("=b\\\\s", "r6"),
        ("%2", "r2"),
        ("work:0", "r1"),
        ("work:0.0", "r1"),
        ("work:1.1", "r3"),
        ("work:1.%3", "r3"),
        ("play", "r4"),
        ("play:", "r4"),
        ("play:v1.0", "r4"),
        ("play:v1.0.0", "r4"),
        ("r5", "r5"),
    ],
)
def test_a_run_is_found(target: str, id: str) -> None:
    assert find_run(HERE, target).id == id


@pytest.mark.parametrize("target", ["", "r", "r9", "R1", "wor", "work:2", "work:0.1", "gone", "%5", "%9", "pla", ":0"])
def test_what_is_not_exactly_there_is_not_found(target: str) -> None:
    with pytest.raises(RunNotFound) as raised:
        find_run(HERE, target)
    assert raised.value.exit_code == 3


@pytest.mark.parametrize(
    ("target", "ids"), [("work", ["r1", "r2", "r3"]), ("work:1", ["r2", "r3"]), ("work:main", ["r1", "r2", "r3"])]
)
def test_what_means_several_is_refused_with_all_of_them(target: str, ids: list[str]) -> None:
    with pytest.raises(AmbiguousRun) as raised:
        find_run(HERE, target)
    assert raised.value.data == {"candidates": ids}
    assert all(id in raised.value.message for id in ids)


def test_a_window_that_is_not_there_is_no_pane_of_that_number() -> None:
    with pytest.raises(RunNotFound):
        find_run([a_run("r1", session="b", window=0, pane=1)], "b:1")


def test_the_same_name_on_two_servers_is_ambiguous() -> None:
    there = a_run("r6", session="play", server=a_server("other"))
    with pytest.raises(AmbiguousRun, match="tmux-1000/other"):
        find_run([*HERE, there], "play")


def test_a_session_that_is_called_like_a_run_is_ambiguous_without_what_tells_the_two_apart() -> None:
    runs = [*HERE, a_run("r7", session="r1")]
    with pytest.raises(AmbiguousRun) as raised:
        find_run(runs, "r1")
    assert raised.value.data == {"candidates": ["r1", "r7"]}
    assert "say '%1' for the run, 'r1:' for the session" in raised.value.message
    assert [find_run(runs, each).id for each in ("%1", "=r1", "r1:")] == ["r1", "r7", "r7"]
    # Another server may have such a pane, too.
    with pytest.raises(AmbiguousRun, match=r"say '%1' with --socket \S+ for the run, 'r1:' for the session"):
        find_run([*runs, structs.replace(a_run("r8", session="more", server=a_server("other")), pane="%1")], "r1")
    # Also of the run that is in it: the session may be more than that one pane.
    with pytest.raises(AmbiguousRun, match="say '%1' for the run"):
        find_run([*HERE[1:], a_run("r1", session="r1")], "r1")
    # Who is gone has no pane to be named by.
    with pytest.raises(AmbiguousRun, match="say 'r5:' for the session"):
        find_run([*HERE, a_run("r7", session="r5")], "r5")


def test_a_session_that_is_called_like_a_pane_is_ambiguous_without_what_tells_the_two_apart() -> None:
    runs = [*HERE, a_run("r7", session="%1")]
    with pytest.raises(AmbiguousRun) as raised:
        find_run(runs, "%1")
    assert raised.value.data == {"candidates": ["r1", "r7"]}
    assert "say 'work:0.0' for the pane, '%1:' for the session" in raised.value.message
    assert [find_run(runs, each).id for each in ("work:0.0", "=%1", "%1:")] == ["r1", "r7", "r7"]
    with pytest.raises(RunNotFound):
        find_run(HERE, "=%1")


def test_a_name_behind_an_equals_sign_that_is_a_session_with_and_without_it_is_neither() -> None:
    runs = [*HERE, a_run("r7", session="=work"), a_run("r8", session="r1"), a_run("r9", session="=r1")]
    for target, ids in (("=work:0", ["r7", "r1"]), ("=work:0.0", ["r7", "r1"]), ("=r1", ["r9", "r8"])):
        with pytest.raises(AmbiguousRun) as raised:
            find_run(runs, target)
        assert raised.value.data == {"candidates": ids}
    assert "say '==r1:' for '=r1', 'r1:' for 'r1'." in raised.value.message
    assert [find_run(runs, each).id for each in ("r1:", "==r1:", "==r1", "work:0", "==work:0")] == [
        "r8",
        "r9",
        "r9",
        "r1",
        "r7",
    ]
    # What a run is refused for has a way that is not refused in its turn.
    with pytest.raises(AmbiguousRun, match="'r1:' for the session"):
        find_run(runs, "r1")
    # It means what only one of them has.
    assert find_run(runs, "=work:1.1").id == "r3"


def test_a_session_that_no_name_tells_from_others_is_named_by_an_id() -> None:
    runs = [a_run(f"r{number}", session=name) for number, name in enumerate(("x", "=x", "==x"))]
    with pytest.raises(AmbiguousRun, match=r"say the id of a pane for '=x', 'x:' for 'x'\.$"):
        find_run(runs, "=x")
    assert [find_run(runs, each).id for each in ("x", "%1", "===x")] == ["r0", "r1", "r2"]


def test_the_two_sessions_of_a_name_may_be_on_two_servers() -> None:
    with pytest.raises(AmbiguousRun, match="tmux-1000/other"):
        find_run([*HERE, a_run("r7", session="=play", server=a_server("other"))], "=play")


def test_a_name_with_backslashes_that_is_two_sessions_is_neither() -> None:
    runs = [a_run("r1", session="b\\\\s"), a_run("r2", session="b\\\\\\\\s")]
    with pytest.raises(AmbiguousRun) as raised:
        find_run(runs, "b\\\\s")
    assert r"say 'b\s:' for 'b\\s', 'b\\\\s:' for 'b\\\\s'" in raised.value.message
    assert [find_run(runs, each).id for each in (r"b\s:", r"b\\\\s:")] == ["r1", "r2"]


def test_a_window_that_is_called_like_the_number_of_another_is_ambiguous() -> None:
    named = a_run("r7", session="work", place=Place(session="work", window=5, pane=0, window_name="0"))
    with pytest.raises(AmbiguousRun) as raised:
        find_run([*HERE, named], "work:0")
    assert raised.value.data == {"candidates": ["r1", "r7"]}


NAMES = st.text(alphabet="ab.1r%= ", min_size=1, max_size=4)


@given(places=st.lists(st.tuples(NAMES, st.integers(0, 2), NAMES, st.integers(0, 2)), max_size=6), target=NAMES)
def test_what_is_found_is_what_was_named(places: list[tuple[str, int, str, int]], target: str) -> None:
    runs = [
        msgspec.structs.replace(
            a_run(f"r{number}"), place=Place(session=session, window=window, pane=pane, window_name=name)
        )
        for number, (session, window, name, pane) in enumerate(places)
    ]
    sessions = {run.place.session for run in runs}
    for run in runs:
        if run.pane not in sessions:
            assert find_run(runs, run.pane) is run
        alike = [each for each in runs if each.place.target in (run.place.target, run.place.target.removeprefix("="))]
        if len(alike) == 1 and not any(each.place.window_name.endswith(f".{each.place.pane}") for each in runs):
            assert find_run(runs, run.place.target) is run
    try:
        found = find_run(runs, target)
    except (RunNotFound, AmbiguousRun):
        return
    assert target in (found.id, found.pane, found.place.session, f"={found.place.session}")
    assert sum(session in (target, target.removeprefix("=")) for session in sessions) < 2
