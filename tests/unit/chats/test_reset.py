from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, tzinfo
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.chats.reset import last_boundary, next_boundary, next_expiry, policy_for, stale, zone_of
from perdure.errors import UsageError
from perdure.model.chat import Chat, CloseReason, ResetMode, ResetPolicy, Source
from perdure.model.config import ChatsConfig, Config

BERLIN = ZoneInfo("Europe/Berlin")
#: Hours skipped and repeated at all times of the day, half hours, two hours, minutes past midnight, a whole day.
ODD_ZONES = (
    "UTC Europe/Berlin America/New_York America/Sao_Paulo America/Havana America/St_Johns Antarctica/Troll Asia/Tehran "
    "Atlantic/Azores Australia/Lord_Howe Pacific/Apia Pacific/Kwajalein Africa/Casablanca Asia/Gaza America/Scoresbysund"
).split()
ZONES = st.sampled_from([ZoneInfo(name) for name in ODD_ZONES])
HOURS = st.integers(0, 23)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.integers(15 * 365 * 24 * 60, 75 * 365 * 24 * 60).map(lambda minutes: EPOCH + timedelta(minutes=minutes))
TICK = timedelta(microseconds=1)
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


@st.composite
def switches(draw: st.DrawFn) -> tuple[ZoneInfo, datetime]:
    """A zone and a moment near which its clocks are changed, if there is one in the weeks around."""
    zone, moment = draw(ZONES), draw(MOMENTS)
    for _ in range(200):
        later = moment + timedelta(days=1)
        if moment.astimezone(zone).utcoffset() != later.astimezone(zone).utcoffset():
            break
        moment = later
    return zone, moment + timedelta(minutes=draw(st.integers(-24 * 60, 48 * 60)))


PLACES = st.one_of(st.tuples(ZONES, MOMENTS), switches())


def chat(touched_at: datetime = NOW, **fields: Any) -> Chat:
    source = Source(platform="telegram", chat_id="1")
    return Chat(id="c", key="k", source=source, opened_at=touched_at, touched_at=touched_at, **fields)


def idle(minutes: int = 60, **fields: Any) -> ResetPolicy:
    return ResetPolicy(mode=ResetMode.IDLE, idle_minutes=minutes, **fields)


def daily(at_hour: int = 4) -> ResetPolicy:
    return ResetPolicy(mode=ResetMode.DAILY, at_hour=at_hour)


def test_without_a_policy_nothing_is_ever_stale() -> None:
    assert stale(chat(), ResetPolicy(), NOW + timedelta(days=10000), UTC) is None
    assert next_expiry(chat(), ResetPolicy(), UTC) is None


def test_the_end_of_the_idle_time_still_counts() -> None:
    assert stale(chat(), idle(60), NOW + timedelta(minutes=60), UTC) is None
    assert stale(chat(), idle(60), NOW + timedelta(minutes=60) + TICK, UTC) is CloseReason.IDLE


@pytest.mark.parametrize(
    ("touched", "now", "expected"),
    [
        ("2026-03-10 03:59:59", "2026-03-10 04:00:00", CloseReason.DAILY),
        ("2026-03-10 04:00:00", "2026-03-10 04:00:00", None),
        ("2026-03-10 04:00:00", "2026-03-11 03:59:59", None),
        ("2026-03-10 04:00:00", "2026-03-11 04:00:00", CloseReason.DAILY),
        ("2026-03-09 12:00:00", "2026-03-10 03:59:59", None),
        ("2026-03-09 03:59:59", "2026-03-10 03:59:59", CloseReason.DAILY),
    ],
)
def test_a_day_begins_at_its_hour(touched: str, now: str, expected: CloseReason | None) -> None:
    times = [datetime.fromisoformat(each).replace(tzinfo=BERLIN) for each in (touched, now)]
    assert stale(chat(times[0]), daily(4), times[1], BERLIN) is expected


def test_idle_is_the_reason_when_there_are_two() -> None:
    both = ResetPolicy(mode=ResetMode.BOTH, idle_minutes=60)
    assert stale(chat(), both, NOW + timedelta(days=2), UTC) is CloseReason.IDLE
    at_four = datetime(2026, 3, 11, 4, tzinfo=UTC)
    assert stale(chat(at_four - timedelta(minutes=5)), both, at_four, UTC) is CloseReason.DAILY


def test_a_closed_chat_is_not_closed_again() -> None:
    closed = chat(closed_at=NOW, close_reason=CloseReason.ASKED)
    assert stale(closed, idle(1), NOW + timedelta(days=1), UTC) is None
    assert next_expiry(closed, idle(1), UTC) is None


def test_a_clock_that_went_back_closes_nothing() -> None:
    both = ResetPolicy(mode=ResetMode.BOTH, idle_minutes=1)
    assert stale(chat(NOW + timedelta(days=3)), both, NOW, UTC) is None


def test_a_time_without_a_zone_is_no_moment() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        stale(chat(), idle(), datetime(2026, 3, 10), UTC)  # noqa: DTZ001


def test_running_jobs_keep_a_chat_unless_they_are_too_old() -> None:
    asked: list[tuple[str, timedelta]] = []

    def running_for(hours: float, key: str, oldest: timedelta) -> bool:
        asked.append((key, oldest))
        return timedelta(hours=hours) <= oldest

    def judge(hours: float) -> CloseReason | None:
        policy = idle(60, job_max_age_hours=2.5)
        return stale(chat(), policy, NOW + timedelta(days=1), UTC, lambda key, age: running_for(hours, key, age))

    assert judge(2.5) is None
    assert judge(2.6) is CloseReason.IDLE
    assert asked == [("k", timedelta(hours=2.5))] * 2


def test_a_check_that_fails_counts_as_a_running_job() -> None:
    def fails(key: str, oldest: timedelta) -> bool:
        raise OSError("no answer")

    assert stale(chat(), idle(60), NOW + timedelta(days=1), UTC, fails) is None


def test_nobody_is_asked_about_a_fresh_chat() -> None:
    def never(key: str, oldest: timedelta) -> bool:
        raise AssertionError

    assert stale(chat(), idle(60), NOW, UTC, never) is None


# The days on which clocks are changed.


def local(zone: tzinfo, text: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).astimezone(UTC)


@pytest.mark.parametrize(
    ("zone", "at_hour", "around", "expected"),
    [
        # Berlin, 2026-03-29: 02:00 is 03:00.
        ("Europe/Berlin", 2, "2026-03-29T12:00", "2026-03-29T01:00:00+00:00"),
        ("Europe/Berlin", 3, "2026-03-29T12:00", "2026-03-29T01:00:00+00:00"),
        ("Europe/Berlin", 1, "2026-03-29T12:00", "2026-03-29T00:00:00+00:00"),
        ("Europe/Berlin", 4, "2026-03-29T12:00", "2026-03-29T02:00:00+00:00"),
        # Berlin, 2026-10-25: 03:00 is 02:00 again.
        ("Europe/Berlin", 2, "2026-10-25T12:00", "2026-10-25T00:00:00+00:00"),
        ("Europe/Berlin", 3, "2026-10-25T12:00", "2026-10-25T02:00:00+00:00"),
        # Troll, 2026-03-29: 01:00 is 03:00, and 02:00 is in between.
        ("Antarctica/Troll", 2, "2026-03-29T12:00", "2026-03-29T01:00:00+00:00"),
        # São Paulo, 2018-11-04: midnight is one o'clock.
        ("America/Sao_Paulo", 0, "2018-11-04T12:00", "2018-11-04T03:00:00+00:00"),
        # Lord Howe, 2026-10-04: 02:00 is 02:30.
        ("Australia/Lord_Howe", 2, "2026-10-04T12:00", "2026-10-03T15:30:00+00:00"),
        # St John's, 2010-11-07: a minute past midnight it was the day before again.
        ("America/St_Johns", 0, "2010-11-07T12:00", "2010-11-07T02:30:00+00:00"),
    ],
)
def test_where_a_day_begins_when_clocks_are_changed(zone: str, at_hour: int, around: str, expected: str) -> None:
    info = ZoneInfo(zone)
    assert last_boundary(local(info, around), at_hour, info) == datetime.fromisoformat(expected)


def test_the_hour_that_comes_twice_begins_one_day_only() -> None:
    first, second = local(BERLIN, "2026-10-25T02:30"), local(BERLIN, "2026-10-25T02:30", fold=1)
    assert second - first == timedelta(hours=1)
    assert stale(chat(first), daily(2), second, BERLIN) is None
    assert stale(chat(local(BERLIN, "2026-10-25T01:59")), daily(2), first, BERLIN) is CloseReason.DAILY


def test_the_hour_that_does_not_exist_begins_the_day_nevertheless() -> None:
    before, after = local(BERLIN, "2026-03-29T01:59:59"), local(BERLIN, "2026-03-29T03:00")
    assert after - before == timedelta(seconds=1)
    assert stale(chat(before), daily(2), after, BERLIN) is CloseReason.DAILY
    assert stale(chat(after), daily(2), after + timedelta(hours=22, minutes=59), BERLIN) is None
    assert stale(chat(after), daily(2), after + timedelta(hours=23), BERLIN) is CloseReason.DAILY


def test_idle_time_passes_at_the_same_pace_when_clocks_are_changed() -> None:
    touched = datetime(2026, 3, 29, 1, 30, tzinfo=BERLIN)
    assert stale(chat(touched), idle(60), datetime(2026, 3, 29, 3, 30, tzinfo=BERLIN), BERLIN) is None
    assert stale(chat(touched), idle(60), datetime(2026, 3, 29, 3, 31, tzinfo=BERLIN), BERLIN) is CloseReason.IDLE


@given(PLACES, HOURS)
def test_a_moment_lies_between_two_boundaries(place: tuple[ZoneInfo, datetime], at_hour: int) -> None:
    zone, moment = place
    last, following = last_boundary(moment, at_hour, zone), next_boundary(moment, at_hour, zone)
    assert last <= moment < following
    assert next_boundary(last, at_hour, zone) == following
    assert last_boundary(following - TICK, at_hour, zone) == last
    assert last_boundary(following, at_hour, zone) == following


@given(PLACES, HOURS, st.integers(0, 72 * 60))
def test_a_later_moment_never_belongs_to_an_earlier_day(
    place: tuple[ZoneInfo, datetime], at_hour: int, minutes: int
) -> None:
    zone, moment = place
    later = moment + timedelta(minutes=minutes)
    assert last_boundary(moment, at_hour, zone) <= last_boundary(later, at_hour, zone)


@given(PLACES, HOURS)
@example((ZoneInfo("Pacific/Apia"), datetime(2011, 12, 31, tzinfo=UTC)), 4)
@example((ZoneInfo("America/Scoresbysund"), datetime(2026, 3, 29, 1, tzinfo=UTC)), 23)
def test_every_local_day_has_one_boundary(place: tuple[ZoneInfo, datetime], at_hour: int) -> None:
    """Told by looking at the clock on the wall every minute, in a way that has nothing to do with how it is computed."""
    zone, moment = place
    start = moment.replace(second=0, microsecond=0) - timedelta(hours=30)
    today = start.astimezone(zone).date()
    wanted = [datetime.combine(today + timedelta(days=days), time(at_hour)) for days in (1, 2, 3)]
    begun: list[datetime] = []
    for minute in range(96 * 60):
        at = start + timedelta(minutes=minute)
        wall = at.astimezone(zone).replace(tzinfo=None)
        while wanted and wall >= wanted[0]:
            begun.append(at)
            del wanted[0]
    assert len(begun) >= 2
    for at in begun:
        assert last_boundary(at, at_hour, zone) == at
        assert last_boundary(at - TICK, at_hour, zone) < at
    for one, other in pairwise(sorted(set(begun))):
        assert next_boundary(one, at_hour, zone) == other


@given(PLACES, HOURS, ZONES)
def test_it_does_not_matter_in_which_zone_a_moment_is_told(
    place: tuple[ZoneInfo, datetime], at_hour: int, other: ZoneInfo
) -> None:
    zone, moment = place
    elsewhere = moment.astimezone(other)
    assert last_boundary(elsewhere, at_hour, zone) == last_boundary(moment, at_hour, zone)
    assert next_boundary(elsewhere, at_hour, zone) == next_boundary(moment, at_hour, zone)


POLICIES = st.builds(
    ResetPolicy,
    mode=st.sampled_from(list(ResetMode)),
    at_hour=HOURS,
    idle_minutes=st.one_of(st.integers(1, 3000), st.integers(1, 52_596_000)),
)
SPANS = st.one_of(
    st.timedeltas(timedelta(0), timedelta(days=5)), st.timedeltas(timedelta(days=-2), timedelta(days=40000))
)


@given(PLACES, POLICIES, SPANS)
def test_a_chat_is_stale_from_its_expiry_on_and_never_before(
    place: tuple[ZoneInfo, datetime], policy: ResetPolicy, span: timedelta
) -> None:
    zone, touched = place
    held = chat(touched)
    expiry = next_expiry(held, policy, zone)
    assert (stale(held, policy, touched + span, zone) is not None) == (expiry is not None and touched + span >= expiry)
    if expiry is not None:
        assert stale(held, policy, expiry - TICK, zone) is None
        assert stale(held, policy, expiry, zone) is not None


@given(PLACES, POLICIES, SPANS)
def test_both_is_idle_or_daily_and_nothing_else(
    place: tuple[ZoneInfo, datetime], policy: ResetPolicy, span: timedelta
) -> None:
    zone, touched = place

    def by(mode: ResetMode) -> CloseReason | None:
        return stale(chat(touched), msgspec.structs.replace(policy, mode=mode), touched + span, zone)

    assert by(ResetMode.BOTH) is (by(ResetMode.IDLE) or by(ResetMode.DAILY))


# Which policy it is.


def test_a_platform_comes_before_a_type_and_a_type_before_the_default() -> None:
    config = ChatsConfig(reset=idle(1), reset_by_type={"group": idle(2)}, reset_by_platform={"slack": daily(5)})
    assert policy_for(config, "telegram", "dm") == idle(1)
    assert policy_for(config, "telegram", "group") == idle(2)
    # Whole: nothing of the other policies is in it.
    assert policy_for(config, "slack", "group") == policy_for(config, "slack", "dm") == daily(5)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (ResetPolicy(mode="weekly"), "mode is 'weekly', and must be none, idle, daily or both"),  # type: ignore[arg-type]
        (ResetPolicy(at_hour=24), "at_hour is 24"),
        (ResetPolicy(at_hour=-1), "at_hour is -1"),
        (ResetPolicy(idle_minutes=0), "idle_minutes is 0"),
        (ResetPolicy(idle_minutes=-5), "idle_minutes is -5"),
        (ResetPolicy(job_max_age_hours=0), "job_max_age_hours is 0"),
        (ResetPolicy(job_max_age_hours=float("nan")), "job_max_age_hours is nan"),
    ],
)
def test_a_policy_that_is_wrong_is_said_to_be_wherever_it_stands(policy: ResetPolicy, said: str) -> None:
    for config in (
        ChatsConfig(reset=policy),
        ChatsConfig(reset_by_type={"dm": policy}),
        ChatsConfig(reset_by_platform={"telegram": policy}),
    ):
        with pytest.raises(UsageError, match=rf"The reset policy for telegram \(dm\) is wrong: {said}"):
            policy_for(config, "telegram", "dm")


def test_the_zone_of_chats_is_that_of_everything_unless_they_have_one() -> None:
    assert zone_of(Config()) is UTC
    assert zone_of(Config(zone="Asia/Tokyo")) == ZoneInfo("Asia/Tokyo")
    assert zone_of(Config(zone="Asia/Tokyo", chats=ChatsConfig(zone="Europe/Berlin"))) == BERLIN
