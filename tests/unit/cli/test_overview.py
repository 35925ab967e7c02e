"""Who is named first of those who wait, and in which words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from perdure.cli.overview import said_of, who_waits
from perdure.cli.rows import PaneRow, pane_rows
from perdure.cli.standing import Standings
from perdure.live.standing import Standing
from perdure.model.run import Reason, RunState
from tests.builders import NOON, a_capture, a_pane, an_identity, at


def rows(count: int) -> list[PaneRow]:
    panes = [a_pane(number, identity=an_identity()) for number in range(count)]
    capture = a_capture(panes, session="api")
    return list(pane_rows(capture.server, capture.topology, capture.details))


def standing(state: str, reason: str | None = None, since: datetime | None = None) -> Standing:
    return Standing(state=state, reason=reason, cause="screen:x", because="", confidence="high", since=since)


def stands(panes: Sequence[PaneRow], *how: Standing) -> Standings:
    return {(row.socket, row.pane_id): each for row, each in zip(panes, how, strict=True)}


def test_who_is_held_up_comes_first_and_of_those_who_has_waited_longest() -> None:
    panes = rows(6)
    found = who_waits(
        panes,
        stands(
            panes,
            standing("attention", "done", at(-600)),
            standing("busy"),
            standing("attention", "permission", at(-10)),
            standing("attention", "permission", at(-180)),
            standing("error", None, at(-1)),
            standing("attention", "permission"),
        ),
    )
    assert [each.target for each in found] == ["api:0.3", "api:0.2", "api:0.5", "api:0.4", "api:0.0"]
    assert said_of(found, NOON) == (
        "5 wait for you: api:0.3 permission 3 min, api:0.2 permission 10 s, api:0.5 permission, api:0.4 error 1 s,"
        " api:0.0 done 10 min"
    )
    assert said_of(found[:1], NOON) == "1 waits for you: api:0.3 permission 3 min"


def test_who_waits_on_several_servers_is_told_apart() -> None:
    def waits(*sockets: str) -> str:
        panes = [structs.replace(rows(1)[0], socket=socket) for socket in sockets]
        return said_of(who_waits(panes, stands(panes, *[standing("error")] * len(panes))), NOON)

    assert waits("/tmp/t/one", "/tmp/t/two") == "2 wait for you: api:0.0 on one error, api:0.0 on two error"
    assert waits("/tmp/t/one", "/tmp/u/one") == (
        "2 wait for you: api:0.0 on /tmp/t/one error, api:0.0 on /tmp/u/one error"
    )
    assert waits("/tmp/t/one", "/tmp/t/one") == "2 wait for you: api:0.0 error, api:0.0 error"


def test_a_crowd_is_counted_and_not_listed() -> None:
    panes = rows(9)
    found = who_waits(panes, stands(panes, *[standing("attention", "question")] * 9))
    assert said_of(found, NOON).startswith("9 wait for you: api:0.0 question, api:0.1 question, ")
    assert said_of(found, NOON).endswith(", and 3 more")


states = st.one_of(
    st.tuples(st.just(str(RunState.ATTENTION)), st.sampled_from([str(reason) for reason in Reason])),
    st.tuples(st.sampled_from([str(each) for each in RunState if each is not RunState.ATTENTION]), st.none()),
)
moments = st.one_of(st.none(), st.integers(-10_000, 0).map(at))


@given(st.lists(st.tuples(states, moments), max_size=8))
def test_everybody_who_needs_somebody_is_there_once(how: list[tuple[tuple[str, str | None], datetime | None]]) -> None:
    panes = rows(len(how))
    found = who_waits(panes, stands(panes, *(standing(*state, since) for state, since in how)))
    wanted = [row.pane_id for row, (state, _) in zip(panes, how, strict=True) if state[0] in ("attention", "error")]
    assert sorted(each.pane_id for each in found) == sorted(wanted)


@pytest.mark.parametrize("known", [True, False])
def test_who_is_busy_or_unknown_waits_for_nobody(known: bool) -> None:
    panes = rows(2)
    assert who_waits(panes, stands(panes, standing("busy"), standing("unknown")) if known else {}) == []
