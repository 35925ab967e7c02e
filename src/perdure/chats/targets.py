"""Which chat is meant by whoever runs the store: they may name everybody's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress

from perdure import errors
from perdure.chats import titles
from perdure.chats.naming import counted_on
from perdure.chats.source import description
from perdure.model.chat import Chat
from perdure.model.chat_owner import owner_of
from perdure.model.secrets import redact_text
from perdure.model.text import is_storable
from perdure.ports import ChatStore

#: How many of those that may be meant are named.
_NAMED = 10


def find_chat(store: ChatStore, text: str) -> Chat:
    """Return the chat that is meant by an id, a key, a title or the beginning of an id, the first of these that fits.

    A key is its open chat, or the one that was closed last. `My Project` is the latest of `My Project #2`, … of one
    owner. Raises `ChatNotFound`, and `AmbiguousChat` when several people have such a title, or several ids begin so.
    """
    spellings = [each for each in titles.spellings(text) if is_storable(each)]
    for wanted in spellings:
        with suppress(errors.ChatNotFound):
            return store.get_chat(wanted)
        by_key = chat_of_key(store, wanted)
        if by_key is not None:
            return by_key
        if found := _titled(store, wanted):
            return _only(text, found)
    for wanted in spellings:
        if found := store.chats_beginning(wanted, limit=_NAMED + 1):
            return _only(text, found)
    raise _not_found(text)


def chat_of_key(store: ChatStore, key: str) -> Chat | None:
    """Return the open chat of a conversation, else the one that was closed last; None when it never had one."""
    if not is_storable(key):
        return None
    return store.open_chat(key) or store.last_closed(key)


def _titled(store: ChatStore, wanted: str) -> Sequence[Chat]:
    """The chat each owner calls so."""
    owners: dict[str, dict[str, Chat]] = defaultdict(dict)
    for chat in store.chats_titled(None, wanted):
        if chat.title is not None:
            owners[owner_of(chat.source, shared=chat.shared)][chat.title] = chat
    resolved = ((titles.resolve(wanted, named), named) for named in owners.values())
    return [counted_on(store, named[title]) for title, named in resolved if title is not None]


def _only(text: str, found: Sequence[Chat]) -> Chat:
    if len(found) > 1:
        raise _ambiguous(text, found)
    return found[0]


def _not_found(text: str) -> errors.ChatNotFound:
    return errors.ChatNotFound(f"There is no chat {text[:200]!r}, by its id, key or title.")


def _ambiguous(text: str, found: Sequence[Chat]) -> errors.AmbiguousChat:
    places = (f"{chat.id} ({chat.source.platform}, {description(chat.source)})" for chat in found[:_NAMED])
    which = redact_text(", ".join(places))
    more = " and more" if len(found) > _NAMED else ""
    ids = [chat.id for chat in found[:_NAMED]]
    return errors.AmbiguousChat(f"More than one chat may be meant by {text[:200]!r}: {which}{more}.", chats=ids)
