from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.snapshot import CAPTURED, SnapshotSummary
from perdure.snapshots.drop import last_good
from perdure.snapshots.retention import falls
from tests.builders import NOON
from tests.unit.snapshots.test_retention import a_summary

#: A state's panes, and how many of them have an agent.
Sizes = tuple[int, int]


def a_lineage(*sizes: Sizes, age: float = 1, pause: float = 0.1) -> list[SnapshotSummary]:
    """Snapshots named 0, 1, …, some hours apart; the last was seen `age` hours ago."""
    last = len(sizes) - 1
    return [
        a_summary(str(place), age + (last - place) * pause, panes=panes, agents=agents)
        for place, (panes, agents) in enumerate(sizes)
    ]


def chosen(lineage: list[SnapshotSummary]) -> tuple[str, str | None]:
    """The id that is taken, and the id it is taken instead of."""
    found = last_good(lineage, NOON)
    assert found is not None
    return found.snapshot.id, None if found.instead_of is None else found.instead_of.id


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        pytest.param([(38, 9)], "0", id="all there is"),
        pytest.param([(38, 9), (1, 0)], "0", id="a crash"),
        pytest.param([(38, 9), (1, 0), (2, 1), (5, 2)], "0", id="a crash, and a little work since"),
        pytest.param([(38, 9), (1, 0), (19, 0)], "0", id="half is not more than half"),
        pytest.param([(38, 9), (1, 0), (20, 8)], "2", id="it came back"),
        pytest.param([(38, 9), (1, 0), (20, 8), (12, 8)], "3", id="it came back, and was left little by little"),
        pytest.param([(38, 9), (1, 0), (18, 2), (1, 0)], "0", id="the second crash is not the big one"),
        pytest.param([(10, 0), (9, 0), (7, 0), (4, 0), (3, 0)], "4", id="little by little"),
        pytest.param([(3, 3), (1, 0)], "1", id="not worth noticing"),
        pytest.param([(1, 0), (38, 9)], "1", id="a rise"),
        pytest.param([(10, 8), (10, 0)], "0", id="agents were killed in living panes"),
        pytest.param([(10, 8), (11, 0)], "0", id="and somebody opened a pane to see why"),
        pytest.param([(10, 8), (10, 0), (10, 5)], "2", id="the agents came back"),
        pytest.param([(10, 4), (30, 0)], "1", id="more was made since than was lost"),
        pytest.param([(38, 0), (2, 2)], "0", id="agents since a crash"),
    ],
)
def test_what_a_restore_takes(sizes: list[Sizes], taken: str) -> None:
    latest = str(len(sizes) - 1)
    lineage = a_lineage(*sizes)
    assert chosen(lineage) == (taken, None if taken == latest else latest)
    assert chosen(lineage[::-1]) == chosen(lineage)


def test_a_fall_counts_for_two_days_from_when_it_was_first_seen() -> None:
    big = a_summary("big", 100, panes=38)
    for hours, taken in ((47.9, "big"), (48.1, "small")):
        # However lately the small state was seen again.
        assert chosen([big, a_summary("small", 0, panes=1, lasted=hours)])[0] == taken


def test_a_clock_that_was_behind_makes_no_fall_old() -> None:
    assert chosen([a_summary("big", 1, panes=38), a_summary("small", -5, panes=1)]) == ("big", "small")


def test_what_was_not_captured_is_nothing_to_go_by() -> None:
    imported = a_summary("import", 2, panes=38, origin="import")
    assert last_good([], NOON) is None
    assert last_good([imported], NOON) is None
    assert chosen([imported, a_summary("now", 1, panes=1)]) == ("now", None)


LINEAGES = st.lists(
    st.tuples(
        st.integers(-60, 60 * 24 * 4),
        st.sampled_from([0, 1, 2, 3, 4, 5, 9, 10, 40]),
        st.sampled_from([0, 1, 2, 4, 10]),
        st.sampled_from([CAPTURED, CAPTURED, CAPTURED, "import"]),
    ),
    max_size=12,
).map(
    lambda rows: [
        a_summary(str(place), minutes / 60, panes=panes, agents=min(agents, panes), origin=origin)
        for place, (minutes, panes, agents, origin) in enumerate(rows)
    ]
)


def captured(lineage: list[SnapshotSummary]) -> list[SnapshotSummary]:
    """What was captured, oldest first."""
    mine = [each for each in lineage if each.origin == CAPTURED]
    return sorted(mine, key=lambda each: (each.last_seen_at, each.taken_at))


@given(LINEAGES)
def test_nothing_smaller_than_the_latest_is_ever_taken(lineage: list[SnapshotSummary]) -> None:
    found = last_good(lineage, NOON)
    if found is None:
        assert captured(lineage) == []
        return
    latest = found.instead_of or found.snapshot
    assert latest == captured(lineage)[-1]
    assert found.snapshot.panes + found.snapshot.agents >= latest.panes + latest.agents
    assert found.snapshot.panes >= latest.panes or found.snapshot.agents >= max(4, 2 * latest.agents)
    assert (found.snapshot == latest) == (found.instead_of is None)


@given(LINEAGES)
def test_imports_never_count(lineage: list[SnapshotSummary]) -> None:
    assert last_good(lineage, NOON) == last_good(captured(lineage), NOON)


@given(LINEAGES)
def test_without_a_fall_it_is_the_latest(lineage: list[SnapshotSummary]) -> None:
    mine = captured(lineage)
    fallen = [*falls(mine, lambda each: each.panes), *falls(mine, lambda each: each.agents)]
    found = last_good(lineage, NOON)
    if found is not None and found.instead_of is not None:
        assert found.snapshot in [before for before, _ in fallen]
    steady = [each for each in mine if each.panes in (9, 10) and each.agents == mine[0].agents]
    held = last_good(steady, NOON)
    assert held is None or (held.snapshot, held.instead_of) == (steady[-1], None)


@given(LINEAGES)
def test_in_two_days_everything_is_how_people_work_now(lineage: list[SnapshotSummary]) -> None:
    found = last_good(lineage, NOON + timedelta(hours=50))
    assert found is None or found.instead_of is None
