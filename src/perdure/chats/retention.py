"""Closed chats that go by themselves once they were kept long enough: a few at a time, by whoever keeps house.

Unless somebody has said how long, all are kept for good.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from msgspec import Struct

from perdure.chats.pruning import choose, prune
from perdure.chats.reset import JobCheck
from perdure.chats.service import Chats
from perdure.model.chat import Chat

#: How many go at once at most, and with how many turns, though one always may: nobody who writes waits long for it.
MOST_CHATS, MOST_TURNS = 20, 5000
#: How often it is worth a look.
EVERY = timedelta(hours=1)


class Tidied(Struct, frozen=True, kw_only=True):
    """What has gone."""

    gone: tuple[Chat, ...] = ()
    #: Whether there was more to go than goes at once.
    is_more: bool = False


def tidy(chats: Chats) -> Tidied:
    """Let go of some of the closed chats that were neither used nor closed for `keep_days`, the oldest conversations first.

    Never of one that is open, that has jobs of its conversation running, that a kept one continues, or that is still to
    be handed on, unless `keep_owed` says that nobody does so. Nothing goes while `keep_days` is 0. Raises `StoreUnusable`.
    """
    config = chats.config.chats
    if not config.keep_days:
        return Tidied()
    now = chats.now()
    before = now - timedelta(days=config.keep_days)
    listed = chats.store.list_chats()
    chosen = choose(listed, before, owed=not config.keep_owed, is_busy=busy_by(chats.has_jobs))
    lot: list[Chat] = []
    turns = 0
    for chat in chosen.doomed[:MOST_CHATS]:
        turns += chat.turns
        if lot and turns > MOST_TURNS:
            break
        lot.append(chat)
    done = prune(chats.store, lot, before, now)
    return Tidied(gone=done.gone, is_more=len(lot) < len(chosen.doomed) and bool(done.gone))


def busy_by(has_jobs: JobCheck | None) -> Callable[[str], bool]:
    """Return what says of a key whether any job of it is running, however old; one nobody can tell of is."""

    def is_busy(key: str) -> bool:
        if has_jobs is None:
            return False
        try:
            return has_jobs(key, timedelta.max)
        except Exception:
            return True

    return is_busy
