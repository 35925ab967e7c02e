"""Ids of chats, and which chat is meant by what somebody typed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

from perdure import errors
from perdure.chats import titles
from perdure.chats.ownership import Ownership
from perdure.model.chat import Chat, Kinship, Source
from perdure.model.chat_owner import owner_of, owners_of
from perdure.model.text import is_storable
from perdure.ports import ChatStore

#: How often somebody else may be quicker before it is given up.
_TRIES = 1000
_Written = TypeVar("_Written")


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
    spellings = [each for each in titles.spellings(text) if is_storable(each)]
    for wanted in spellings:
        with suppress(errors.ChatNotFound):
            # Somebody else's is refused, and not looked for under another name.
            return chats.get(source, wanted)
        titled = _titled(chats, source, wanted)
        if titled is not None:
            return titled
    found = [chat for chat in (chats.list(source) if spellings else ()) if chat.id.startswith(tuple(spellings))]
    if len(found) > 1:
        raise errors.AmbiguousChat(f"{len(found)} chats begin with {spellings[-1]}.", chats=[chat.id for chat in found])
    if not found:
        shown = text.strip() if is_storable(text) and text.isprintable() else ascii(text)
        raise errors.ChatNotFound(f'There is no chat "{shown[:200]}" of yours.')
    return found[0]


def _titled(chats: Ownership, source: Source, wanted: str) -> Chat | None:
    by_title = {chat.title: chat for chat in _candidates(chats, source, wanted) if chat.title is not None}
    title = titles.resolve(wanted, by_title)
    return None if title is None else counted_on(chats.store, by_title[title], lambda chat: chats.owns(source, chat))


def with_free_title(
    store: ChatStore,
    look: Callable[[], tuple[str, str | None]],
    write: Callable[[str | None], _Written | None],
    *,
    as_is: bool = False,
) -> _Written:
    """Return what is written with the next free title of what `look` says: whose title it is, and which is wanted.

    Both are asked again when the title was taken after all, or `write` returned None because somebody else has changed
    something. A title that was refused once is not tried again, whatever is said of it. Raises `TitleTaken` or
    `Conflict` when others are quicker without end.
    """
    refused: set[str] = set()
    for _ in range(_TRIES):
        owner, wanted = look()
        title = None if wanted is None else next_free(store, owner, wanted, besides=refused, as_is=as_is)
        try:
            written = write(title)
        except errors.TitleTaken:
            if title is None or len(refused) == _TRIES - 1:
                raise
            refused.add(title)
            continue
        if written is not None:
            return written
    raise errors.Conflict("Others change this conversation all the time: try again later.")


def next_free(store: ChatStore, owner: str, wanted: str, *, besides: Collection[str] = (), as_is: bool = False) -> str:
    """Return the next title under a name that nobody's chat of an owner has, as `titles.next_title` counts.

    None of those `besides`, either.
    """
    base = wanted if as_is else titles.base_and_number(wanted)[0]
    # What it is cut to may be the beginning of another title, whose numbers are taken too.
    found = [title for name in (base, *titles.cuts(base)) for title in store.taken_titles(owner, name)]
    return titles.next_title([*found, *besides], wanted, as_is=as_is)


def counted_on(store: ChatStore, chat: Chat, may: Callable[[Chat], bool] = lambda chat: True) -> Chat:
    """Return the latest of what follows from a chat under its title where that had to be cut to be counted on.

    What was cut may be the beginning of another title, too: only what does follow from the chat is taken for it.
    """
    owner = owner_of(chat.source, shared=chat.shared)
    title = chat.title or ""
    latest, highest = chat, 1
    # One that has a number is itself.
    for cut in titles.cuts(title) if titles.base_and_number(title)[1] is None else ():
        for each in store.chats_titled(owner, cut):
            base, number = titles.base_and_number(each.title or "")
            if base == cut and (number or 0) > highest and may(each) and _follows_from(store, each, chat.id):
                latest, highest = each, number or 0
    return latest


def _follows_from(store: ChatStore, chat: Chat, id: str) -> bool:
    seen = {chat.id}
    while (
        chat.kinship in (Kinship.BRANCH, Kinship.CONTINUATION) and chat.follows is not None and chat.follows not in seen
    ):
        if chat.follows == id:
            return True
        seen.add(chat.follows)
        try:
            chat = store.get_chat(chat.follows)
        except (errors.ChatNotFound, errors.ChatDamaged):
            return False
    return False


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
