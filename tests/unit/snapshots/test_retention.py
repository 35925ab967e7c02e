from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.config import RetentionConfig
from perdure.model.snapshot import CAPTURED, SnapshotSummary
from perdure.snapshots.retention import before_drop, doomed
from tests.builders import NOON, a_server

DEFAULT = RetentionConfig()
BERLIN = ZoneInfo("Europe/Berlin")


def a_summary(
    id: str,
    hours: float = 0,
    *,
    panes: int = 10,
    agents: int = 0,
    server: str = "default",
    origin: str = CAPTURED,
    lasted: float = 0,
) -> SnapshotSummary:
    """A snapshot last seen some hours before noon."""
    seen = NOON - timedelta(hours=hours)
    return SnapshotSummary(
        id=id,
        server=a_server(server),
        origin=origin,
        taken_at=seen - timedelta(hours=lasted),
        last_seen_at=seen,
        sessions=1,
        windows=1,
        panes=panes,
        agents=agents,
    )


def survivors(
    snapshots: Sequence[SnapshotSummary],
    now: datetime = NOON,
    policy: RetentionConfig = DEFAULT,
    zone: tzinfo = UTC,
) -> list[SnapshotSummary]:
    gone = doomed(snapshots, now, policy, zone)
    assert len(set(gone)) == len(gone)
    assert set(gone) <= {each.id for each in snapshots}
    return [each for each in snapshots if each.id not in gone]


HISTORIES = st.lists(
    st.builds(
        lambda minutes, panes, agents, server, origin: (minutes / 60, panes, agents, server, origin),
        st.one_of(st.integers(-120, 60 * 24 * 2), st.integers(0, 60 * 24 * 200)),
        st.sampled_from([0, 1, 2, 3, 4, 5, 9, 10, 40]),
        st.sampled_from([0, 0, 2, 4, 10]),
        st.sampled_from(["default", "work"]),
        st.sampled_from([CAPTURED, CAPTURED, CAPTURED, "import"]),
    ),
    max_size=40,
).map(
    lambda rows: [
        a_summary(f"{place:04x}", hours, panes=panes, agents=agents, server=server, origin=origin)
        for place, (hours, panes, agents, server, origin) in enumerate(rows)
    ]
)
POLICIES = st.builds(
    RetentionConfig,
    everything_hours=st.sampled_from([0, 1, 24, 24 * 36525]),
    hourly_days=st.sampled_from([0, 1, 7, 36525]),
    daily_days=st.sampled_from([0, 1, 90, 36525]),
)
ZONES = st.sampled_from([UTC, BERLIN, ZoneInfo("Asia/Kolkata"), ZoneInfo("Pacific/Apia")])


def lineages(snapshots: Sequence[SnapshotSummary]) -> list[list[SnapshotSummary]]:
    """Captured snapshots by server, oldest first."""
    servers = {each.server.key for each in snapshots}
    captured = [each for each in snapshots if each.origin == CAPTURED]
    return [
        sorted(
            (each for each in captured if each.server.key == key), key=lambda each: (each.last_seen_at, each.taken_at)
        )
        for key in sorted(servers)
    ]


@given(HISTORIES, POLICIES, ZONES)
def test_the_last_of_a_server_is_never_doomed(
    history: list[SnapshotSummary], policy: RetentionConfig, zone: tzinfo
) -> None:
    kept = {each.id for each in survivors(history, policy=policy, zone=zone)}
    for lineage in lineages(history):
        assert not lineage or lineage[-1].id in kept
    assert {each.id for each in history if each.origin != CAPTURED} <= kept


@given(HISTORIES, POLICIES, ZONES)
def test_nor_is_the_last_before_a_sharp_drop_however_often_it_is_asked(
    history: list[SnapshotSummary], policy: RetentionConfig, zone: tzinfo
) -> None:
    precious = {each.id for lineage in lineages(history) for each in before_drop(lineage)}
    now = NOON
    for _ in range(3):
        history = survivors(history, now, policy, zone)
        assert precious <= {each.id for each in history}
        now += timedelta(days=40)


@given(HISTORIES, POLICIES, ZONES)
def test_asking_again_dooms_nothing_more(history: list[SnapshotSummary], policy: RetentionConfig, zone: tzinfo) -> None:
    kept = survivors(history, policy=policy, zone=zone)
    assert survivors(kept, policy=policy, zone=zone) == kept


@given(HISTORIES, ZONES)
def test_everything_of_the_last_day_is_kept(history: list[SnapshotSummary], zone: tzinfo) -> None:
    kept = survivors(history, zone=zone)
    assert [each for each in history if each.last_seen_at >= NOON - timedelta(hours=24)] == [
        each for each in kept if each.last_seen_at >= NOON - timedelta(hours=24)
    ]


@given(HISTORIES, st.lists(st.integers(1, 72), max_size=5))
def test_asking_often_keeps_as_much_as_asking_once(history: list[SnapshotSummary], pauses: list[int]) -> None:
    """What is decided on the way must not cost an hour or a day its last snapshot."""
    end = NOON + timedelta(hours=sum(pauses))
    at_once = {each.id for each in survivors(history, end)}
    now = NOON
    for pause in pauses:
        history = survivors(history, now)
        now += timedelta(hours=pause)
    assert at_once <= {each.id for each in survivors(history, end)}


@given(HISTORIES)
def test_the_order_of_the_list_does_not_matter(history: list[SnapshotSummary]) -> None:
    distinct = {(each.last_seen_at, each.server.key): each for each in history}
    history = list(distinct.values())
    assert set(doomed(history, NOON, DEFAULT, UTC)) == set(doomed(history[::-1], NOON, DEFAULT, UTC))


def kept_ids(snapshots: Sequence[SnapshotSummary], policy: RetentionConfig = DEFAULT, zone: tzinfo = UTC) -> list[str]:
    return [each.id for each in survivors(snapshots, policy=policy, zone=zone)]


def test_then_one_an_hour_the_last_of_it() -> None:
    # 12:00 two days ago is the beginning of an hour; minutes count back from there.
    history = [a_summary(f"m{minutes}", 48 + minutes / 60) for minutes in (150, 95, 65, 50, 30, 1)]
    assert kept_ids([*history, a_summary("now")]) == ["m150", "m65", "m1", "now"]


def test_then_one_a_day_the_last_of_it() -> None:
    history = [a_summary(f"d{day}h{hour}", day * 24 + hour) for day in (30, 20) for hour in (11, 5, 1)]
    assert kept_ids([*history, a_summary("now")]) == ["d30h1", "d20h1", "now"]


def test_then_nothing() -> None:
    assert kept_ids([a_summary("old", 24 * 91), a_summary("edge", 24 * 89), a_summary("now")]) == ["edge", "now"]


def test_a_day_begins_where_people_live() -> None:
    """Noon UTC less 13.5 hours is 22:30 UTC the day before, which is already the next day in Berlin (23:30 is not)."""
    history = [a_summary("one", 24 * 20 + 14.0), a_summary("two", 24 * 20 + 12.5), a_summary("now")]
    assert kept_ids(history) == ["two", "now"]
    assert kept_ids(history, zone=BERLIN) == ["one", "two", "now"]


def test_the_hour_that_is_there_twice_is_two_hours() -> None:
    change = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # 02:30 in Berlin, and an hour later 02:30 again
    history = [
        a_summary("summer", (NOON - change).total_seconds() / 3600),
        a_summary("winter", (NOON - change).total_seconds() / 3600 - 1),
        a_summary("now"),
    ]
    policy = RetentionConfig(everything_hours=1, hourly_days=30, daily_days=30)
    assert kept_ids(history, policy, BERLIN) == ["summer", "winter", "now"]


@pytest.mark.parametrize(
    ("panes", "precious"),
    [
        ((10, 5), ["0"]),
        ((10, 6), []),
        ((4, 2), ["0"]),
        ((3, 0), []),
        ((10, 1, 10), ["0"]),
        ((10, 9, 8, 4), ["2"]),
        ((10, 10), []),
    ],
)
def test_what_a_sharp_drop_is(panes: tuple[int, ...], precious: list[str]) -> None:
    lineage = [a_summary(str(place), 100 - place, panes=count) for place, count in enumerate(panes)]
    assert [each.id for each in before_drop(lineage)] == precious


def test_the_big_state_before_a_crash_outlives_the_small_one_after_it() -> None:
    history = [a_summary("big", 24 * 100, panes=40), a_summary("small", 24 * 100 - 0.01, panes=1)]
    history += [a_summary("half", 24 * 100 - 0.02, panes=25), a_summary("now", panes=25)]
    once = survivors(history)
    assert "big" in {each.id for each in once}
    assert "big" in {each.id for each in survivors(once)}


def test_a_state_that_lasted_is_as_old_as_it_was_last_seen() -> None:
    assert kept_ids([a_summary("long", 1, lasted=24 * 200), a_summary("now")]) == ["long", "now"]
