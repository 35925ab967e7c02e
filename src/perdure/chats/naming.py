"""Ids of chats, and which chat is meant by what somebody typed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

from perdure import errors
from perdure.chats import titles
from perdure.chats.ownership import Ownership
from perdure.model.chat import Chat, Source
from perdure.model.chat_owner import owners_of
from perdure.model.text import is_storable
from perdure.ports import ChatStore

#: What people put around a title because it stood so in the help.
_PAIRS = (("<", ">"), ("[", "]"), ('"', '"'), ("'", "'"))


def new_id(now: datetime) -> str:
    """Return an id for a chat: when it was begun, in UTC, and what makes it the only one."""
    return f"{now.astimezone(UTC):%Y%m%d_%H%M%S}_{os.urandom(4).hex()}"


def tip_of(store: ChatStore, chat: Chat, may: Callable[[Chat], bool] = lambda chat: True) -> Chat:
    """Return where a conversation goes on that was made shorter, as far as it may be seen.

    What only came after it is not followed.
    """
    seen = {chat.id}
    while (further := store.continuation_of(chat.id)) is not None and further.id not in seen and may(further):
        seen.add(further.id)
        chat = further
    return chat


def meant(chats: Ownership, source: Source, text: str) -> Chat:
    """Return the chat somebody means by an id, a title or the only beginning of an id. Raises `ChatNotFound`."""
    wanted = _bare(text)
    if not is_storable(wanted):
        raise errors.ChatNotFound(f"There is no chat {ascii(wanted)[:200]} of yours.")
    with suppress(errors.ChatNotFound):
        # Somebody else's is refused, and not looked for under another name.
        return chats.get(source, wanted)
    titled = _titled(chats, source, wanted)
    if titled is not None:
        return titled
    found = [chat for chat in chats.list(source) if wanted and chat.id.startswith(wanted)]
    if len(found) > 1:
        raise errors.AmbiguousChat(f"{len(found)} chats begin with {wanted}.", chats=[chat.id for chat in found])
    if not found:
        raise errors.ChatNotFound(f'There is no chat "{wanted}" of yours.')
    return found[0]


def _titled(chats: Ownership, source: Source, wanted: str) -> Chat | None:
    by_title = {chat.title: chat for chat in _candidates(chats, source, wanted) if chat.title is not None}
    title = titles.resolve(wanted, by_title)
    return None if title is None else by_title[title]


def _candidates(chats: Ownership, source: Source, wanted: str) -> Iterator[Chat]:
    """Chats with that title or a numbered one: granted ones, then those of the place, then one's own, which win."""
    yield from (chat for chat in chats.list(source) if not chats.owns(source, chat))
    selves = chats.selves(source)
    for shared in (True, False):
        # What they are known as for good comes last, and wins.
        owners = [owner for each in selves for owner in owners_of(each, shared=shared)]
        for owner in dict.fromkeys(reversed(owners)):
            for chat in chats.store.chats_titled(owner, wanted):
                if chats.owns(source, chat):
                    yield chat


def _bare(text: str) -> str:
    bare = text.strip()
    for first, last in _PAIRS:
        if len(bare) > 1 and bare.startswith(first) and bare.endswith(last):
            return bare[1:-1].strip()
    return bare
