"""Chats that have gone stale: what was said in them is handed on before the next message, then they are closed for good."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from perdure import errors
from perdure.chats.retention import EVERY, tidy
from perdure.chats.service import Chats
from perdure.model.chat import Chat, CloseReason
from perdure.ports import Leases

#: How often a chat is tried to be handed on.
TRIES = 3
#: What a chat keeps in its `extra` of the last failure.
FAILURE = "flush_failure"
_LEASE, _HELD = "chats-expiry", timedelta(minutes=10)
#: What becomes of one chat meanwhile, and is no reason to leave the others.
_LOST = (errors.ChatNotFound, errors.ChatDamaged)
#: Behind every position.
_BEHIND = 1 << 40


class Expired(Struct, frozen=True, kw_only=True):
    """What came of a round."""

    #: The ids of the chats that were handed on.
    flushed: tuple[str, ...] = ()
    #: Those that were not, to be tried again while they have tries left.
    failed: tuple[str, ...] = ()
    #: Who is at it already; then nothing was done.
    held_by: str | None = None
    #: Those that had all their tries, are stale, and were never handed on: somebody has to look at them.
    given_up: tuple[str, ...] = ()
    #: Those that were closed so long ago that they were not kept any longer, where `keep_days` says how long.
    pruned: tuple[str, ...] = ()


class Expiry:
    """Finds stale chats ahead of their next message. With `leases`, of several processes one does it at a time."""

    def __init__(self, chats: Chats, *, leases: Leases | None = None, holder: str = "") -> None:
        self._chats = chats
        self._store = chats.store
        self._leases = leases
        self._holder = holder
        self._tidied_at: datetime | None = None

    def due(self, now: datetime) -> tuple[Chat, ...]:
        """Return the chats that are stale, or were closed for it, and are still to be handed on; the oldest first."""
        return tuple(chat for chat in self._stale(now) if chat.flush_failures < TRIES)

    def run_once(self, flush: Callable[[Chat], None]) -> Expired:
        """Hand on what is due, by `flush`, and close what it was done for.

        One that `flush` raises for costs only itself: it is noted, never counted as done, and tried again in later
        rounds, three times in all; so is one during which the process dies. A chat in which nothing was said is closed
        without asking. One that was used in the meantime stays open, and is neither flushed nor failed; nor is one that was
        forgotten, or cannot be read any more. Once an hour, chats go that were closed longer ago than they are to be kept.
        """
        try:
            return self._round(flush)
        finally:
            # Also when it was interrupted: whoever is next need not wait until it is over by itself. Another's is left alone.
            if self._leases is not None:
                with suppress(errors.StoreUnusable):
                    self._leases.drop_lease(_LEASE, self._holder)

    def _round(self, flush: Callable[[Chat], None]) -> Expired:
        now = self._chats.now()
        for chat in self._store.list_chats(is_open=True, since=now):
            with suppress(*_LOST):
                self._chats.put_right(chat, now)
        done: dict[str, bool | None] = {}
        for chat in self.due(now):
            other = self._held_by_another()
            if other is not None:
                return self._expired(done, held_by=other)
            with suppress(*_LOST):
                if self._begin(chat):
                    done[chat.id] = self._flush(chat, flush)
        pruned = self._tidy(now)
        return replace(self._expired(done), pruned=pruned)

    def _tidy(self, now: datetime) -> tuple[str, ...]:
        if self._tidied_at is not None and now - self._tidied_at < EVERY:
            return ()
        tidied = tidy(self._chats)
        self._tidied_at = None if tidied.is_more else now
        return tuple(chat.id for chat in tidied.gone)

    def _stale(self, now: datetime) -> list[Chat]:
        """Those that are stale, or were closed for it, and were not handed on; the oldest first."""
        stale = [chat for chat in self._store.list_chats(is_open=True) if self._why(chat, now) is not None]
        return sorted((*stale, *self._store.chats_owed()), key=lambda chat: chat.touched_at)

    def _expired(self, done: Mapping[str, bool | None], *, held_by: str | None = None) -> Expired:
        without_tries = (chat.id for chat in self._stale(self._chats.now()) if chat.flush_failures >= TRIES)
        return Expired(
            flushed=tuple(id for id, is_flushed in done.items() if is_flushed),
            failed=tuple(id for id, is_flushed in done.items() if is_flushed is False),
            held_by=held_by,
            given_up=tuple(without_tries),
        )

    def _begin(self, chat: Chat) -> bool:
        """Count a try before it is made; False when the chat is not as it was found."""
        begun: list[bool] = []

        def begin(found: Chat) -> Chat:
            begun[:] = [found.flush_failures == chat.flush_failures and found.flushed_at is None]
            return replace(found, flush_failures=found.flush_failures + 1) if begun[0] else found

        self._store.change_chat(chat.id, begin)
        return begun[0]

    def _flush(self, chat: Chat, flush: Callable[[Chat], None]) -> bool | None:
        """Whether it was handed on; None when it was used meanwhile, so that not all of it was."""
        next = self._store.load_turns(chat.id, start=_BEHIND, limit=1, partly=True).next
        if chat.turns:
            try:
                flush(chat)
            except Exception as error:
                self._note_failure(chat, error)
                return False
        return self._close(chat, next, self._chats.now()) or None

    def _close(self, chat: Chat, next: int, now: datetime) -> bool:
        """Note that it was handed on up to `next`, and close it; False when it was used since, or is gone on with after all."""
        why = self._why(chat, now)
        is_done: list[bool] = []

        def close(found: Chat) -> Chat:
            # How many turns there are as well: whoever said something since it was found may have a clock that is behind.
            is_used = (found.touched_at, found.turns) != (chat.touched_at, chat.turns)
            is_done[:] = [not is_used and (why is not None or not found.is_open)]
            if not is_done[0]:
                # What was said since, or will be, is still to be handed on.
                return replace(found, flush_failures=0)
            done = replace(found, flushed_at=now, flush_failures=0, extra=_without(found, FAILURE))
            return replace(done, closed_at=now, close_reason=why) if found.is_open else done

        try:
            self._store.change_chat(chat.id, close, expect=next)
        except errors.Conflict:
            # Said or changed since, by whatever clock, and maybe as many turns as before.
            self._store.change_chat(chat.id, lambda found: replace(found, flush_failures=0))
            return False
        return is_done[0]

    def _note_failure(self, chat: Chat, error: Exception) -> None:
        # Its kind alone: what it says may hold what was said in the chat, or a key.
        failure = {FAILURE: type(error).__name__}
        self._store.change_chat(chat.id, lambda found: replace(found, extra={**found.extra, **failure}))

    def _why(self, chat: Chat, now: datetime) -> CloseReason | None:
        return self._chats.why_over(chat, now) if chat.is_open else None

    def _held_by_another(self) -> str | None:
        if self._leases is None:
            return None
        now = self._chats.now()
        return self._leases.take_lease(_LEASE, self._holder, now, until=now + _HELD)


def _without(chat: Chat, name: str) -> dict[str, object]:
    return {each: value for each, value in chat.extra.items() if each != name}
