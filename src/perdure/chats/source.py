"""Where messages come from: platforms, the plain form sources are kept in, and a description for people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from perdure.errors import UsageError
from perdure.model.chat import LOCAL, PLATFORMS, Source
from perdure.model.chat_check import platform_name

#: What both generations write, null or not.
_ALWAYS = ("chat_id", "chat_name", "chat_type", "user_id", "user_name", "thread_id", "chat_topic")
#: What the later one adds where there is something to say.
_LATER_IDS = ("user_id_alt", "chat_id_alt", "parent_chat_id", "message_id")
_LATER_TEXTS = ("profile", "auto_thread_initial_name")
_IDS = frozenset({"user_id", "thread_id", *_LATER_IDS, "scope_id", "guild_id", "profile"})
#: The same thing under two names; the first wins.
_SCOPES = ("scope_id", "guild_id")

_registered: dict[str, bool] = {}


def register_platform(name: str, *, personal_ids: bool = False) -> str:
    """Admit a platform besides the known ones, for this process; return its name as it is kept.

    `personal_ids`: its ids are people's (telephone numbers, say) and no answer needs them spelt out, so a prompt may hide
    them. Ids of its chats count as unique within their scope only. Registering a name again changes that one answer.
    """
    plain = platform_name(name)
    if plain is None:
        raise UsageError(
            f"{_short(name)} cannot be the name of a platform: "
            "letters, digits, '_', '-' and '.', at most 64, and not 'origin'."
        )
    if plain not in PLATFORMS:
        _registered[plain] = personal_ids
    return plain


def admit_platforms(names: Iterable[str]) -> None:
    """Admit the platforms that are set in the configuration. What a gateway has said of one of them stays."""
    for name in names:
        if name not in _registered:
            register_platform(name)


def platforms() -> frozenset[str]:
    """Return the names of all platforms, the registered ones among them."""
    return PLATFORMS | _registered.keys()


def has_personal_ids(platform: str) -> bool:
    """Whether a registered platform's ids are people's."""
    return _registered.get(platform, False)


def platform_from(name: object) -> str:
    """Return a platform's name as it is kept, however it was spelt; a name that is none is a mistake."""
    plain = name.strip().lower() if isinstance(name, str) and name.isascii() else ""
    if plain in PLATFORMS or plain in _registered:
        return plain
    raise UsageError(f"There is no platform {_short(name)}{_meant(plain)}.")


def known_platform(name: str) -> str:
    """Return the name of a platform as it is kept. Raises `UsageError`, which names all there are, for any other."""
    if name in PLATFORMS or name in _registered:
        return name
    known = ", ".join(sorted(platforms()))
    raise UsageError(f"There is no platform {_short(name)}{_meant(str(name))}. There are: {known}.")


def source_from(mapping: Mapping[str, Any]) -> Source:
    """Return the source a mapping of either generation tells of; what is not known there is passed over.

    What has to be proved anew (`is_bot`, `role_authorized`, that it was relayed) is never believed from a mapping.
    """
    given: object = mapping
    if not isinstance(given, Mapping):
        raise UsageError(f"The source of a message is no mapping: {_short(given)}.")
    for name in ("platform", "chat_id"):
        if mapping.get(name) is None:
            raise UsageError(f"The source of a message has no {name}.")
    texts = {name: _text(mapping, name) for name in (*_ALWAYS, *_LATER_IDS, *_LATER_TEXTS)}
    chat_type = texts.pop("chat_type")
    if chat_type == "":
        raise UsageError("The source of a message has an empty chat_type.")
    return Source(
        platform=platform_from(mapping["platform"]),
        chat_id=texts.pop("chat_id") or "",
        chat_type="dm" if chat_type is None else chat_type,
        scope_id=next((found for name in _SCOPES if (found := _text(mapping, name))), None),
        auto_thread_created=mapping.get("auto_thread_created") is True,
        **texts,  # type: ignore[arg-type]  # every one of them is a text or None
    )


def source_dict(source: Source) -> dict[str, Any]:
    """Return a source as plain data, with the keys both generations read.

    The eight of the earlier one are always there. Nothing is written that has to be proved anew.
    """
    plain: dict[str, Any] = {"platform": source.platform}
    plain |= {name: getattr(source, name) for name in _ALWAYS}
    later = {name: getattr(source, name) for name in (*_LATER_IDS, *_LATER_TEXTS, "auto_thread_created")}
    later |= dict.fromkeys(_SCOPES, source.scope_id)
    return plain | {name: value for name, value in later.items() if value}


def local_cli() -> Source:
    """Return the source of whoever sits at this machine's terminal."""
    return Source(platform=LOCAL, chat_id="cli", chat_name="CLI terminal")


def description(source: Source, shown: Callable[[str], str] = str) -> str:
    """Return in a few words where that is. `shown` is given every name and id first, as they are whatever people chose."""
    if source.platform == LOCAL:
        return "CLI terminal"
    place = source.chat_name or source.chat_id
    if source.chat_type == "dm":
        person = source.user_name or source.user_id
        first = f"DM with {shown(person) if person else 'user'}"
    elif source.chat_type in ("group", "channel"):
        first = f"{source.chat_type}: {shown(place)}"
    else:
        first = shown(place)
    return f"{first}, thread: {shown(source.thread_id)}" if source.thread_id else first


def _text(mapping: Mapping[str, Any], name: str) -> str | None:
    value = mapping.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and (name in _IDS or name == "chat_id"):
        # Some platforms count their chats and people.
        return str(value)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"The source of a message has a {name} that is no text: {_short(value)}.")
    if value is None or value.isascii() or not re.search("[\ud800-\udfff]", value):
        return value
    if name in _IDS or name == "chat_id":
        # Put right, it would be another id.
        raise UsageError(f"The source of a message has a {name} that is no text: {_short(value)}.")
    return re.sub("[\ud800-\udfff]", "\ufffd", value)


def _short(value: object) -> str:
    shown = ascii(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _meant(plain: str) -> str:
    from difflib import get_close_matches  # only for those who mistyped

    near = get_close_matches(plain, sorted(platforms()), n=1) if 0 < len(plain) <= 64 else []
    return f"; {near[0]} may be meant" if near else ""
