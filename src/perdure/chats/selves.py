"""As whom somebody is known: by other ids of the same person, and where a place is told with more or less of its name."""

from __future__ import annotations

from itertools import product

from msgspec.structs import replace

from perdure.chats.key import key_of
from perdure.chats.whatsapp import Aliases
from perdure.model.chat import PLATFORMS, KeyRules, Source
from perdure.model.chat_owner import WHATSAPP, participant_of
from perdure.model.config import ChatKeysConfig
from perdure.ports import ChatStore


def key_within(store: ChatStore, source: Source, keys: ChatKeysConfig, aliases: Aliases) -> str:
    """Return the key of a conversation as `key_of` does, and another one where that is held by a chat of another scope.

    Known platforms' ids are as good as unique, and gateways do not always tell the scope: so it is no part of the key.
    Where two guilds or workspaces do have the same id, the one that came first has that key, and the other its own.
    """
    key = key_of(source, keys, aliases)
    if not source.scope_id or source.platform not in PLATFORMS or keys.rules != KeyRules.ISOLATED:
        return key
    scoped = key_of(source, keys, aliases, scoped=True)
    if store.open_chat(scoped) is not None or store.last_closed(scoped) is not None:
        return scoped
    holder = store.open_chat(key) or store.last_closed(key)
    return scoped if holder is not None and is_elsewhere(holder.source, source) else key


def is_elsewhere(one: Source, other: Source) -> bool:
    """Whether both say in which scope they are, and it is not the same."""
    return bool(one.scope_id and other.scope_id and one.scope_id != other.scope_id)


def scope_of(store: ChatStore, source: Source, key: str) -> str | None:
    """Return the scope a message came from; where it is not told, that of the conversation it belongs to."""
    if source.scope_id or source.platform not in PLATFORMS:
        return source.scope_id
    there = store.open_chat(key) or store.last_closed(key)
    return None if there is None else there.source.scope_id


def canonical(source: Source, aliases: Aliases) -> Source:
    """Return a source that says as `user_id_alt` by which one id its person is known, where that is not said already."""
    person = participant_of(source)
    if source.platform != WHATSAPP or person is None:
        return source
    known_as = aliases.canonical(person)
    return source if known_as == person else replace(source, user_id_alt=known_as)


def selves_of(source: Source, aliases: Aliases) -> tuple[Source, ...]:
    """Return a source as its person and its place may have been told before: all of them are the same.

    A LID that nobody has matched is only itself. A place on a known platform is the same one where its scope was not told.
    """
    scopes = {source.scope_id, source.scope_id if source.platform not in PLATFORMS else None}
    chats: tuple[str, ...] = (source.chat_id,)
    people: tuple[str | None, ...] = (participant_of(source),)
    if source.platform == WHATSAPP:
        chats = aliases.every(source.chat_id) if source.chat_type == "dm" and source.chat_id else chats
        people = aliases.every(people[0]) if people[0] is not None else people
    return tuple(
        replace(source, scope_id=scope, chat_id=chat, user_id=person, user_id_alt=None)
        for scope, chat, person in product(sorted(scopes, key=lambda scope: scope or "", reverse=True), chats, people)
    )
