"""As whom somebody is known: by other ids of the same person, and where a place is told with more or less of its name."""

from __future__ import annotations

from itertools import product

from msgspec.structs import replace

from perdure import errors
from perdure.chats.key import DM, key_of
from perdure.chats.whatsapp import Aliases
from perdure.model.chat import PLATFORMS, Chat, KeyRules, Source
from perdure.model.chat_owner import WHATSAPP, participant_of
from perdure.model.config import ChatKeysConfig
from perdure.ports import ChatStore


def key_within(store: ChatStore, source: Source, keys: ChatKeysConfig, aliases: Aliases) -> str:
    """Return the key of a conversation as `key_of` does, and another one where that is held by another's chat.

    Known platforms' ids are as good as unique, and gateways do not always tell the scope, nor who writes a direct
    message, nor that it is none: so neither is a part of the key. Where two guilds or workspaces do have the same id, or
    two people the same chat of direct messages, whoever came first has that key, and the other one of their own.
    """
    key = key_of(source, keys, aliases)
    if keys.rules != KeyRules.ISOLATED:
        return key
    scopes = (True, False) if source.scope_id and source.platform in PLATFORMS else (False,)
    people = (True, False) if source.chat_type == DM else (False,)
    if len(scopes) == len(people) == 1:
        return key
    there = store.open_chat(key)
    if there is not None and _is_surely_ours(there.source, source):
        return key

    def holder(*, scoped: bool, personal: bool) -> Source | None:
        key = key_of(source, keys, aliases, scoped=scoped, personal=personal)
        chat = last_known(store, key)
        return None if chat is None else chat.source

    # What was begun under a key of one's own goes on there, whatever has become of the other.
    for scoped, personal in product(scopes, people):
        if scoped or personal:
            held = holder(scoped=scoped, personal=personal)
            if held is not None and not is_anothers(held, source, aliases):
                return key_of(source, keys, aliases, scoped=scoped, personal=personal)
    scoped = personal = False
    while (held := holder(scoped=scoped, personal=personal)) is not None and is_anothers(held, source, aliases):
        # A person is told more often than a scope.
        if not personal and _is_another_person(held, source, aliases):
            personal = True
        elif not scoped and is_elsewhere(held, source):
            scoped = True
        else:
            break
    return key_of(source, keys, aliases, scoped=scoped, personal=personal)


def last_known(store: ChatStore, key: str) -> Chat | None:
    """Return by which chat it is known whose a conversation is: the open one, else the one closed last that can be read.

    Raises `ChatDamaged` for an open one that cannot be read. A closed one costs only itself.
    """
    there = store.open_chat(key)
    if there is not None:
        return there
    try:
        return store.last_closed(key)
    except errors.ChatDamaged:
        # Lists leave it out.
        return next(iter(store.list_chats(key=key, is_open=False)), None)


def is_told(source: Source) -> bool:
    """Whether it is told who wrote."""
    return bool(source.user_id or source.user_id_alt)


def _people_of(source: Source) -> set[str]:
    """Return every id of who wrote a direct message, as told; else its chat's, which on many platforms is a person's."""
    return {id for id in (source.user_id, source.user_id_alt) if id} or {source.chat_id}


def is_anothers(there: Source, source: Source, aliases: Aliases) -> bool:
    """Whether what was begun there is not for whoever wrote: of another scope, or of another's direct messages.

    A scope that is not told is no other one. A sender who is not told is somebody else than everybody who is, unless
    the chat itself has their id: nobody else could be let in without letting in everybody.
    """
    return is_elsewhere(there, source) or _is_another_person(there, source, aliases)


def _is_another_person(there: Source, source: Source, aliases: Aliases) -> bool:
    if source.chat_type != DM:
        return False
    one, other = _people_of(there), _people_of(source)
    if source.platform != WHATSAPP and _have_other_lasting_ids(there, source):
        return True
    if source.platform == WHATSAPP:
        one, other = ({id for each in ids for id in aliases.every(each)} for ids in (one, other))
    return one.isdisjoint(other)


def _is_surely_ours(there: Source, source: Source) -> bool:
    is_same_scope = not source.scope_id or source.platform not in PLATFORMS or there.scope_id == source.scope_id
    return is_same_scope and (
        source.chat_type != DM
        or not (_people_of(there).isdisjoint(_people_of(source)) or _have_other_lasting_ids(there, source))
    )


def _have_other_lasting_ids(one: Source, other: Source) -> bool:
    """Whether both say by which id their person is known for good, and it is not the same: a number may be another's by now."""
    return bool(one.user_id_alt and other.user_id_alt and one.user_id_alt != other.user_id_alt)


def is_elsewhere(one: Source, other: Source) -> bool:
    """Whether both say in which scope they are, and it is not the same."""
    return bool(one.scope_id and other.scope_id and one.scope_id != other.scope_id)


def canonical(source: Source, aliases: Aliases) -> Source:
    """Return a source that says as `user_id_alt` by which one id its person is known, where that is not said already."""
    person = participant_of(source)
    if source.platform != WHATSAPP or person is None:
        return source
    known_as = aliases.canonical(person)
    return source if known_as == person else replace(source, user_id_alt=known_as)


def selves_of(source: Source, aliases: Aliases, there: Source | None = None) -> tuple[Source, ...]:
    """Return a source as its person and its place may have been told before: all of them are the same.

    A LID that nobody has matched is only itself. A place on a known platform is the same one where its scope was not told.
    Whatever a message does not tell of its scope, or of the lasting id of who wrote it, is as its conversation has it
    (`there`).
    """
    is_known = source.platform in PLATFORMS
    if is_known and not source.scope_id and there is not None:
        source = replace(source, scope_id=there.scope_id)
    scopes = sorted(
        {source.scope_id, None if is_known else source.scope_id}, key=lambda scope: scope or "", reverse=True
    )
    selves = _people(source, aliases)
    if there is not None and _is_known_as(there, source, aliases):
        place = source.chat_id or there.chat_id
        selves += (replace(source, chat_id=place, user_id=there.user_id_alt),)
    return tuple(replace(each, scope_id=scope) for scope, each in product(scopes, selves))


def _is_known_as(there: Source, source: Source, aliases: Aliases) -> bool:
    """Whether the conversation tells the lasting id of who wrote, and the message does not."""
    is_needed = source.chat_type == DM and is_told(source) and not source.user_id_alt
    return is_needed and bool(there.user_id_alt) and not is_anothers(there, source, aliases)


def _people(source: Source, aliases: Aliases) -> tuple[Source, ...]:
    """A source with every id of its person, the lasting one first, and of its chat where that is a person's."""
    person = participant_of(source)
    if source.platform != WHATSAPP:
        return (source,)
    chats = aliases.every(source.chat_id) if source.chat_type == DM and source.chat_id else (source.chat_id,)
    people = () if person is None else aliases.every(person)
    flat = (replace(source, user_id=each, user_id_alt=None) for each in people)
    return tuple(replace(each, chat_id=chat) for each, chat in product((*flat, source), chats))
