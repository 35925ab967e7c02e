"""Whose chats are whose: what somebody may see, and what they may go on with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import Enum

from perdure import errors
from perdure.chats.saying import a_source, in_a_zone, text_of, whole
from perdure.model.chat import Chat, Found, Source
from perdure.model.chat_owner import owner_of, participant_of, reach_of, reaches_of
from perdure.ports import ChatStore

#: More than there is of anything, and as much as a database takes.
MANY = (1 << 31) - 1
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class Asker(Enum):
    """Somebody who asks, and is nobody's guest."""

    #: Whoever runs the store: nothing is kept from them.
    OPERATOR = "operator"


class Ownership:
    """The chats of a store as somebody may see them."""

    def __init__(self, store: ChatStore, now: Callable[[], datetime]) -> None:
        self.store = store
        self._clock = now

    def now(self) -> datetime:
        """Return what time it is. Raises `UsageError` when the clock tells no zone."""
        now = self._clock()
        if type(now) is datetime and now.tzinfo is UTC:
            # Nearly always.
            return now
        return in_a_zone(now, "What time it is")

    def selves(self, source: Source) -> tuple[Source, ...]:
        """Return everything by which whoever wrote is known, the first being what they are known as for good."""
        return (a_source(source),)

    def get(self, asker: Source | Asker, id: str) -> Chat:
        """Return a chat of whoever asks, by its id."""
        chat = self.store.get_chat(id)
        self.refuse_stranger(asker, chat)
        return chat

    def may(self, asker: Source | Asker, chat: Chat) -> bool:
        """Return whether a chat is for whoever asks to see, their own or granted to them."""
        return self.owns(asker, chat) or (
            isinstance(asker, Source)
            and (to := self._grantee(asker)) is not None
            and self.store.is_granted(chat.id, to)
        )

    def owns(self, asker: Source | Asker, chat: Chat) -> bool:
        """Return whether a chat is theirs: proved by everything their message says, and by nothing that is missing."""
        if isinstance(asker, Asker):
            return True
        a_source(asker)
        reach = reach_of(chat)
        # What the message says is enough, as a rule; the rest may have to be looked up.
        return reach is not None and (reach in reaches_of(asker) or reach in self._reaches(asker))

    def refuse_stranger(self, asker: Source | Asker, chat: Chat) -> None:
        """Raise `Refused` when a chat is not for whoever asks to see."""
        if not self.may(asker, chat):
            raise errors.Refused(f"Chat {chat.id} is somebody else's, and was not granted to you.", chat=chat.id)

    def grant(self, asker: Source | Asker, id: str, to: Source) -> None:
        """Let somebody else see a chat, and go on with a copy of it. Only who owns it can.

        It goes on with the conversation: they see what the chat is continued in, too, when it is made shorter later.
        """
        self.owned(asker, id)
        self.store.grant_chat(id, self._known_grantee(to))

    def revoke(self, asker: Source | Asker, id: str, to: Source) -> None:
        """Take a grant back, of the whole conversation: of what it was made shorter from, and of what it goes on in.

        Copies that were begun stay with whoever began them.
        """
        self.owned(asker, id)
        self.store.revoke_chat(id, self._known_grantee(to))

    def list(
        self, asker: Source | Asker, *, active_within: timedelta | None = None, limit: int | None = None
    ) -> tuple[Chat, ...]:
        """Return the chats of whoever asks, the one that was used last first."""
        since = None if active_within is None else _before(self.now(), active_within)
        limit = None if limit is None else min(whole(limit, "How many chats are listed"), MANY)
        if isinstance(asker, Asker):
            return self.store.list_chats(since=since, limit=limit)
        return self.store.list_chats(reaches=self._reaches(asker), owner=self._grantee(asker), since=since, limit=limit)

    def search(
        self,
        asker: Source | Asker,
        query: str,
        *,
        platform: str | None = None,
        user: str | None = None,
        role: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
    ) -> tuple[Found, ...]:
        """Return what best matches of what whoever asks may see. `user` is who chats are with, by their lasting id."""
        for name, moment in (("since", since), ("until", until)):
            if moment is not None:
                in_a_zone(moment, name)
        for name, wanted in (("platform", platform), ("user", user), ("role", role)):
            if wanted is not None:
                text_of(wanted, name)
        # Of anybody who is neither a source nor the operator nothing is known: they are not to see everything.
        is_operator = isinstance(asker, Asker)
        return self.store.search_turns(
            text_of(query, "What is searched for"),
            reaches=None if is_operator else self._reaches(a_source(asker)),
            owner=None if is_operator else self._grantee(a_source(asker)),
            platform=platform,
            participant=user,
            role=role,
            since=since,
            until=until,
            limit=min(whole(limit, "How many turns are found"), MANY),
        )

    def owned(self, asker: Source | Asker, id: str) -> Chat:
        """Return a chat whoever asks owns; raise `Refused` when it is granted to them at most."""
        chat = self.store.get_chat(id)
        if not self.owns(asker, chat):
            raise errors.Refused(f"Chat {id} is somebody else's.", chat=id)
        return chat

    def _reaches(self, source: Source) -> tuple[str, ...]:
        """Everything by which whoever wrote reaches chats."""
        return tuple(dict.fromkeys(reach for each in self.selves(source) for reach in reaches_of(each)))

    def _grantee(self, source: Source) -> str | None:
        """In whose name grants are; nobody's without a person."""
        known_as = self.selves(source)[0]
        return None if participant_of(known_as) is None else owner_of(known_as)

    def _known_grantee(self, source: Source) -> str:
        grantee = self._grantee(source)
        if grantee is None:
            raise errors.UsageError("A chat is granted to a person, and it is not said to whom.")
        return grantee


def _before(now: datetime, ago: timedelta) -> datetime:
    """A time so long ago; the first or the last there is when it would be beyond."""
    value: object = ago
    if not isinstance(value, timedelta):
        raise errors.UsageError(f"active_within has to be a timedelta, and not {ascii(ago)[:80]}.")
    try:
        return now - ago
    except OverflowError:
        return _FIRST if ago > timedelta() else _LAST
