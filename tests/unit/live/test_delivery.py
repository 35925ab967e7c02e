from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.live.delivery import accepts, merged, told, unstored
from perdure.model.thought import Delivery, Rest, Thought, ThoughtSource, ThoughtState
from tests.builders import NOON, at
from tests.unit.live.timeline import a_run


def d(stream: str | None = None, seq: int = 0) -> Delivery:
    return Delivery(stream=stream, seq=seq)


def t(text: str | None, delivery: Delivery, **more: object) -> Thought:
    return Thought(at=NOON, text=text, delivery=delivery, source=ThoughtSource.DERIVED, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "incoming", "taken"),
    [
        (d(), d(), True),
        (d(), d("a", 5), True),
        (d("a", 5), d("a", 6), True),
        (d("a", 5), d("a", 5), False),
        (d("a", 5), d("a", 4), False),
        (d("a", 5), d("b", 1), True),
        (d("a", 5), d("b", 2), False),
        (d("b", 1), d("a", 6), False),
        (d("a", 5), d(), False),
        (d("a", 5), d("a"), False),
        (d("a", 5), d(None, 1), True),
    ],
)
def test_an_older_thought_never_replaces_a_newer(before: Delivery, incoming: Delivery, taken: bool) -> None:
    assert accepts(before, incoming) == taken


def test_the_change_of_the_objective_is_kept_until_the_next() -> None:
    before = t("reading", d("a", 1), objective_changed_at=NOON)
    kept = merged(before, t("writing", d("a", 2)))
    assert (kept.text, kept.objective_changed_at) == ("writing", NOON)
    assert merged(kept, t("testing", d("a", 3), objective_changed_at=at(9))).objective_changed_at == at(9)


def test_what_comes_too_late_changes_nothing() -> None:
    before = t("writing", d("a", 2))
    assert merged(before, t("reading", d("a", 1))) is before


@pytest.mark.parametrize("nothing", ["sleeping", "Sleeping.", " sleeping "])
def test_sleeping_is_no_thought(nothing: str) -> None:
    kept = merged(t("writing", d("a", 1)), t(nothing, d("a", 2)))
    assert (kept.text, kept.source, kept.delivery) == ("writing", ThoughtSource.CARRIED, d("a", 2))
    assert merged(None, t(nothing, d("a", 1))).text is None


def test_a_thought_that_was_not_stored_is_marked_and_may_come_again() -> None:
    before, incoming = t("reading", d("a", 1)), t("writing", d("a", 2))
    shown = unstored(before, incoming)
    assert (shown.text, shown.unstored, shown.delivery) == ("writing", True, d("a", 1))
    assert accepts(shown.delivery, incoming.delivery)
    assert unstored(None, incoming).delivery == d()


@given(st.lists(st.integers(1, 30), min_size=1))
def test_in_whatever_order_they_arrive_the_newest_of_a_stream_stays(order: list[int]) -> None:
    kept: Thought | None = None
    for seq in order:
        kept = merged(kept, t(str(seq), d("a", seq)))
    assert kept is not None
    assert kept.text == str(max(order))


def test_a_screen_that_is_another_is_no_news_of_an_objective() -> None:
    """As long as no transcript tells, an objective is known by what the screen shows."""
    run = a_run()
    first = t(None, d("a", 1), fingerprint="one", objective_changed_at=NOON, rest=Rest.ACTIVE)
    event = told(run, first, None, NOON)
    assert event is not None
    assert event.data["objective_changed"] is False
    other = t(None, d("a", 2), fingerprint="two", objective_changed_at=at(9))
    assert told(run, other, first, at(9)) is None
    for changes in ({"text": "waiting"}, {"rest": Rest.DROWSY}, {"state": ThoughtState.SLEEPING}):
        assert told(run, msgspec.structs.replace(other, **changes), first, at(9)) is not None


@pytest.mark.parametrize("change", [{"objective": "mend it"}, {"source": ThoughtSource.MODEL}])
def test_an_objective_that_is_another_is(change: dict[str, object]) -> None:
    before = msgspec.structs.replace(t("mending", d("a", 1), objective_changed_at=NOON), **change)
    event = told(a_run(), msgspec.structs.replace(before, objective_changed_at=at(9)), before, at(9))
    assert event is not None
    assert event.data["objective_changed"] is True
