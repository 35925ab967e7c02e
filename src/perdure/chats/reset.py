"""When a chat has gone stale and the next message begins another.

A day of chats begins at the first moment at which the clock on the wall, in the configured zone, shows the hour or later. Where
that hour is skipped when the clocks go forward, the day begins as they do; where it comes twice, it begins with the first. So
every day has one beginning, and a later moment never belongs to an earlier day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from perdure.errors import UsageError
from perdure.model.chat import Chat, CloseReason, ResetMode, ResetPolicy
from perdure.model.chat_check import mistakes_in_policy
from perdure.model.config import ChatsConfig, Config

#: Whether jobs of a key are running that are not older than that.
JobCheck = Callable[[str, timedelta], bool]

_IDLE = (ResetMode.IDLE, ResetMode.BOTH)
_DAILY = (ResetMode.DAILY, ResetMode.BOTH)
_TICK = datetime.resolution
_SECOND = timedelta(seconds=1)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
#: A time of use that is further ahead is none: the clock was wrong.
AHEAD = timedelta(days=1)


def zone_of(config: Config) -> tzinfo:
    """Return the zone in which chats have their days. Raises `UsageError` when there is none of that name."""
    name = config.chats.zone or config.zone
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # dear to import

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        # What leads elsewhere, a directory, and a name nobody knows.
        raise UsageError(f"There is no time zone {ascii(name)[:80]}.") from None


def policy_for(config: ChatsConfig, platform: str, chat_type: str) -> ResetPolicy:
    """Return the policy of the platform, else of the type of chat, else the default: a whole one, never a mixture."""
    chosen = config.reset_by_platform.get(platform) or config.reset_by_type.get(chat_type) or config.reset
    wrong = next(mistakes_in_policy(chosen), None)
    if wrong:
        raise UsageError(f"The reset policy for {platform} ({chat_type}) is wrong: {wrong}.")
    return chosen


def stale(
    chat: Chat, policy: ResetPolicy, now: datetime, zone: tzinfo, has_jobs: JobCheck | None = None
) -> CloseReason | None:
    """Return why the chat is not to be gone on with; None while it is, and for one that is closed.

    It is kept at the very end of its idle time, and when it was last used at the very beginning of a day. While jobs of
    its key run it is kept, unless they are older than the policy allows; a check that fails counts as a running job.
    """
    reason = _by_time(chat, policy, _instant(now), zone)
    if reason is None or has_jobs is None:
        return reason
    try:
        busy = has_jobs(chat.key, timedelta(hours=policy.job_max_age_hours))
    except Exception:
        busy = True
    return None if busy else reason


def next_expiry(chat: Chat, policy: ResetPolicy, zone: tzinfo) -> datetime | None:
    """Return the first moment at which the chat is stale if nobody uses it and no job keeps it; None for never."""
    if not chat.is_open:
        return None
    touched, idle = _instant(chat.touched_at), timedelta(minutes=policy.idle_minutes) + _TICK
    ends = []
    if policy.mode in _IDLE and touched <= _LAST - idle:
        ends.append(touched + idle)
    if policy.mode in _DAILY:
        ends.append(next_boundary(touched, policy.at_hour, zone))
    return min(ends, default=None)


def last_boundary(now: datetime, at_hour: int, zone: tzinfo) -> datetime:
    """Return when the day of chats began that `now` is in."""
    now = _instant(now)
    # Tomorrow too: where clocks are set back just after midnight, it has begun before today is over.
    return next((begun for begun in _boundaries(now, range(1, -4, -1), at_hour, zone) if begun <= now), _FIRST)


def next_boundary(now: datetime, at_hour: int, zone: tzinfo) -> datetime:
    """Return when the next day of chats begins after `now`."""
    now = _instant(now)
    return next((begun for begun in _boundaries(now, range(-1, 4), at_hour, zone) if begun > now), _LAST)


def _by_time(chat: Chat, policy: ResetPolicy, now: datetime, zone: tzinfo) -> CloseReason | None:
    if not chat.is_open:
        return None
    # In UTC: in a zone with summer time Python adds to what the clock on the wall shows.
    touched = _instant(chat.touched_at)
    # What has passed, and not when it will have: that may be behind the last day there is.
    if policy.mode in _IDLE and now - touched > timedelta(minutes=policy.idle_minutes):
        return CloseReason.IDLE
    if policy.mode in _DAILY and touched < last_boundary(now, policy.at_hour, zone):
        return CloseReason.DAILY
    return None


def _boundaries(now: datetime, days: range, at_hour: int, zone: tzinfo) -> Iterator[datetime]:
    """Yield the beginnings of days, counted from the one it is; those of later days are never earlier."""
    for each in days:
        # There is a first day and a last one.
        with suppress(OverflowError):
            yield _beginning(now.astimezone(zone).date() + timedelta(days=each), at_hour, zone)


def _beginning(day: date, at_hour: int, zone: tzinfo) -> datetime:
    """Return the first moment at which it is that hour of that day, or later."""
    wall = datetime.combine(day, time(at_hour))
    late = _moment(wall, 0, zone)
    if _wall(late, zone) == wall:
        return late
    # Skipped. Somewhere between these two the clocks went forward; before that it was earlier than `wall`, after it later.
    early = _moment(wall, 1, zone)
    while late - early > _SECOND:
        middle = early + ((late - early) // 2 // _SECOND) * _SECOND
        if _wall(middle, zone) >= wall:
            late = middle
        else:
            early = middle
    return late


def _moment(wall: datetime, fold: int, zone: tzinfo) -> datetime:
    return wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)


def _wall(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _instant(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError("a time without a zone is no moment")
    return at.astimezone(UTC)
