"""Letting go of chats that nobody has used for long: which ones, and nothing that is still needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from perdure import errors
from perdure.model.chat import Chat, Kinship
from perdure.ports import ChatStore


class Choice(Struct, frozen=True, kw_only=True):
    """What is to become of the closed chats that are old enough."""

    #: Those to let go of, each before the one it continues.
    doomed: tuple[Chat, ...] = ()
    #: Kept: what was said in them was not handed on yet.
    owed: tuple[Chat, ...] = ()
    #: Kept: jobs of their conversation are running.
    busy: tuple[Chat, ...] = ()
    #: Kept: the beginning of a conversation that goes on in a chat that is kept.
    continued: tuple[Chat, ...] = ()


class Pruned(Struct, frozen=True, kw_only=True):
    """What became of those that were to be let go of."""

    gone: tuple[Chat, ...] = ()
    #: Used, continued or damaged since they were chosen, and kept.
    kept: tuple[Chat, ...] = ()


def choose(
    chats: Iterable[Chat],
    before: datetime,
    *,
    platform: str | None = None,
    owed: bool = False,
    is_busy: Callable[[str], bool] = lambda key: False,
) -> Choice:
    """Return which of all chats to let go of: the closed ones that were neither used nor closed since then.

    Never one with words that are still to be handed on, unless these are `owed` to nobody; nor one of a key with jobs
    that run; nor one that is continued by a chat that is kept: that is the same conversation, and what was said before it
    was made shorter stands nowhere else. A chat that only came after one that goes, or began as a copy of it, is whole
    without it, and goes on naming it. With `platform` only chats there go.
    """
    there = {chat.id: chat for chat in chats}
    old = {id for id, chat in there.items() if _is_old(chat, before) and platform in (None, chat.source.platform)}
    unpaid = {id for id in old if not owed and there[id].is_owed and there[id].turns}
    busy_keys = {key for key in {there[id].key for id in old - unpaid} if is_busy(key)}
    busy = {id for id in old - unpaid if there[id].key in busy_keys}
    kept = unpaid | busy
    needed = _continued_by(there, there.keys() - (old - kept))
    doomed = [there[id] for id in old - kept - needed]
    return Choice(
        doomed=tuple(sorted(doomed, key=lambda chat: (-len(_chain(there, chat)), chat.touched_at, chat.id))),
        owed=_oldest_first(there[id] for id in unpaid),
        busy=_oldest_first(there[id] for id in busy),
        continued=_oldest_first(there[id] for id in needed & old - kept),
    )


def prune(store: ChatStore, doomed: Sequence[Chat], before: datetime, now: datetime) -> Pruned:
    """Let go of chats that were chosen, each for itself and for good; those that were used in between are kept."""
    gone: list[Chat] = []
    kept: list[Chat] = []
    for chat in doomed:
        try:
            # Whatever continues it was to go first: somebody has resumed that, or it cannot be read.
            if store.continuation_of(chat.id) is not None:
                raise errors.Refused
            store.forget_chat(chat.id, before=before, at=now)
        except (errors.Refused, errors.ChatDamaged):
            kept.append(chat)
        except errors.ChatNotFound:
            continue
        else:
            gone.append(chat)
    return Pruned(gone=tuple(gone), kept=tuple(kept))


def _is_old(chat: Chat, before: datetime) -> bool:
    # Both: one that nobody used for a year may have been closed just now, and its person told how to get it back.
    return chat.closed_at is not None and max(chat.touched_at, chat.closed_at) < before


def _continued_by(there: dict[str, Chat], kept: Iterable[str]) -> set[str]:
    """The chats that some chats continue, directly or not."""
    return {each.id for id in kept for each in _chain(there, there[id])[1:]}


def _chain(there: dict[str, Chat], chat: Chat) -> list[Chat]:
    """A chat, the one it continues, the one that continues, …"""
    chain = {chat.id: chat}
    while chat.kinship is Kinship.CONTINUATION and chat.follows in there and chat.follows not in chain:
        chat = there[chat.follows]
        chain[chat.id] = chat
    return list(chain.values())


def _oldest_first(chats: Iterable[Chat]) -> tuple[Chat, ...]:
    return tuple(sorted(chats, key=lambda chat: (chat.touched_at, chat.id)))
