"""What can be wrong with what is set about chats, one clause for each mistake."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from perdure.model.chat import PLATFORMS, KeyRules, ResetMode, ResetPolicy
from perdure.model.config import ChatKeysConfig, ChatsConfig

#: A word of delivery targets: back to where a message came from. No platform can be called so.
ORIGIN = "origin"

_PLATFORM = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_CENTURY = 36525
_HOURS, _MINUTES = _CENTURY * 24, _CENTURY * 24 * 60


def platform_name(text: str) -> str | None:
    """Return a name a platform may have, as it is kept; None when it cannot have it.

    It becomes a part of keys and of delivery targets, so it holds nothing that means something there.
    """
    plain = text.strip().lower()
    return plain if text.isascii() and _PLATFORM.fullmatch(plain) and plain != ORIGIN else None


def mistakes_in_policy(policy: ResetPolicy, platforms: Collection[str] | None = None) -> Iterator[str]:
    """Yield a clause for each mistake, which begins with the name of the field; `platforms` are those there are."""
    if policy.mode not in tuple(ResetMode):
        yield f"mode is {policy.mode!r}, and must be {_or(ResetMode)}"
    if type(policy.at_hour) is not int or not 0 <= policy.at_hour <= 23:
        yield f"at_hour is {policy.at_hour!r}, and must be from 0 to 23"
    if not 1 <= policy.idle_minutes <= _MINUTES:
        yield f"idle_minutes is {policy.idle_minutes!r}, and must be from 1 to {_MINUTES} (100 years)"
    if not 0 < policy.job_max_age_hours <= _HOURS:
        yield f"job_max_age_hours is {policy.job_max_age_hours!r}, and must be above 0 and at most {_HOURS} (100 years)"
    if platforms is not None:
        for name in policy.notify_exclude_platforms:
            if name not in platforms:
                yield f"notify_exclude_platforms has {name!r}, which is no platform"


def mistakes_in_chats(chats: ChatsConfig) -> Iterator[str]:
    """Yield a clause for each mistake, which begins with the name of the field. That the zone exists is not looked at."""
    for name in chats.platforms:
        if platform_name(name) != name:
            yield f"platforms has {name!r}, which cannot be the name of a platform (small letters, digits, '_', '-', '.')"
    yield from (f"keys.{each}" for each in _mistakes_in_keys(chats.keys))
    platforms = PLATFORMS | frozenset(chats.platforms)
    yield from (f"reset.{each}" for each in mistakes_in_policy(chats.reset, platforms))
    for kind, policy in chats.reset_by_type.items():
        yield from (f"reset_by_type.{_named(kind)}.{each}" for each in mistakes_in_policy(policy, platforms))
    for platform, policy in chats.reset_by_platform.items():
        if platform not in platforms:
            yield f"reset_by_platform has {platform!r}, which is no platform; others are named in chats.platforms"
        yield from (f"reset_by_platform.{_named(platform)}.{each}" for each in mistakes_in_policy(policy, platforms))
    if not 0 <= chats.prune_days <= _CENTURY:
        yield "prune_days must be from 0 to 100 years"
    if not 0 <= chats.keep_days <= _CENTURY:
        yield "keep_days must be from 0 to 100 years"


def _mistakes_in_keys(keys: ChatKeysConfig) -> Iterator[str]:
    if keys.rules not in tuple(KeyRules):
        yield f"rules is {keys.rules!r}, and must be {_or(KeyRules)}"
    if len(keys.profile) > 200 or not keys.profile.isprintable():
        yield "profile must be a name of at most 200 characters on one line"


def _named(key: str) -> str:
    return key if key.isprintable() and " " not in key else repr(key)


def _or(words: type[ResetMode] | type[KeyRules]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}"
