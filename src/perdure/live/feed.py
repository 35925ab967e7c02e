"""publish: stored events to everybody who listens, in order, without a gap and without a repeat.

A subscriber begins behind a number. What was stored behind it comes first, page by page, and then what is published. An
event is stored before it is published, so a subscriber that is still reading the store loses nothing by not being handed
what is new: a later page has it. What others have stored is not published: whoever follows is told to read on. One that has caught up and then does not keep pace is dropped, with a mark of how far
it came. Whoever publishes never waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from perdure.model.event import Lagged, StoredEvent

#: How many events may wait for one subscriber.
MOST = 1024

#: Returns the first stored events behind a number, in order; none only when there are none.
Read = Callable[[int], Awaitable[Sequence[StoredEvent]]]
Wants = Callable[[StoredEvent], bool]


def everything(event: StoredEvent) -> bool:
    """Want every event."""
    return True


class Mailbox:
    """What one subscriber is still to get. No I/O: whoever owns it reads the store when it `is_behind`."""

    def __init__(self, after: int, wants: Wants = everything, most: int = MOST) -> None:
        #: The number up to which everything was taken, or was not wanted.
        self.cursor = after
        #: Whether the store has to be read before what is published can follow.
        self.is_behind = True
        #: Whether the subscriber was dropped.
        self.is_dropped = False
        self._wants = wants
        self._most = most
        self._delivered = after
        self._page: deque[StoredEvent] = deque()
        self._live: deque[StoredEvent] = deque()
        self._missed = False
        self._read_to = after

    def offer(self, event: StoredEvent) -> None:
        """Take in what was just published."""
        if self.is_dropped or not self._wants(event):
            return
        if len(self._live) < self._most:
            self._live.append(event)
            return
        self._live.clear()
        if self.is_behind:
            self._missed = True
        else:
            self.is_dropped = True

    def fall_behind(self) -> None:
        """Have the store read before anything else follows: there is more in it than was published."""
        self.is_behind = True
        # Also where it is being read at this moment.
        self._missed = True

    def read_begins(self) -> int:
        """Return the number to read behind, once nothing is left to take. What was published by now the store will tell."""
        self._live.clear()
        self._missed = False
        self.cursor = max(self.cursor, self._read_to)
        return self.cursor

    def read_ended(self, page: Sequence[StoredEvent]) -> None:
        """Take in what the store had. Nothing more: what was published since it was asked is all that is new."""
        fresh = [event for event in page if event.seq > self.cursor]
        self._page.extend(filter(self._wants, fresh))
        self._read_to = fresh[-1].seq if fresh else self._read_to
        self.is_behind = bool(fresh) or self._missed

    def take(self) -> StoredEvent | Lagged | None:
        """Return what is next, None when nothing is there now. After `Lagged` there is nothing any more."""
        if self.is_dropped:
            return Lagged(after=self._delivered)
        if self._page:
            return self._given(self._page.popleft())
        while self._live and not self.is_behind:
            event = self._live.popleft()
            # One that could not be stored has no number, and is passed on where it stands.
            if event.seq > self.cursor or event.seq <= 0:
                return self._given(event)
        return None

    def _given(self, event: StoredEvent) -> StoredEvent:
        self.cursor = self._delivered = max(self.cursor, event.seq)
        return event


class Subscription:
    """An async iterator of events, for one task. Ends after `Lagged`, and when the feed closes; `close` leaves it.

    What reading the store raises comes out of it, and the next step reads again.
    """

    def __init__(self, feed: Feed, mailbox: Mailbox, read: Read) -> None:
        self._feed = feed
        self._mailbox = mailbox
        self._read = read
        self._woken = asyncio.Event()
        self._is_over = False

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> StoredEvent | Lagged:
        while not self._is_over:
            item = self._mailbox.take()
            if item is not None:
                self._is_over = isinstance(item, Lagged)
                return item
            if self._mailbox.is_behind:
                self._mailbox.read_ended(await self._read(self._mailbox.read_begins()))
                continue
            if self._feed.is_closed:
                break
            self._woken.clear()
            await self._woken.wait()
        raise StopAsyncIteration

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Listen no longer."""
        self._is_over = True
        self._feed.leave(self)

    def offer(self, event: StoredEvent) -> bool:
        """Take in what was just published; False when the subscriber is dropped by it."""
        self._mailbox.offer(event)
        self._woken.set()
        return not self._mailbox.is_dropped

    def fall_behind(self) -> None:
        """Have it read the store; one that only listens has nothing to read."""
        if self._read is not _nothing:
            self._mailbox.fall_behind()
            self._woken.set()

    def wake(self) -> None:
        """Have it notice that the feed has closed."""
        self._woken.set()


class Feed:
    """Everybody who listens. All of it belongs to one event loop."""

    def __init__(self, most: int = MOST) -> None:
        #: Whether nothing will be published any more.
        self.is_closed = False
        self._most = most
        self._subscriptions: dict[Subscription, None] = {}

    def __len__(self) -> int:
        return len(self._subscriptions)

    def publish(self, event: StoredEvent) -> None:
        """Hand an event to everybody, in the order of their numbers, after it was stored. Never waits.

        One that could not be stored has the number 0: who listens at this moment gets it, and nobody later.
        """
        for each in list(self._subscriptions):
            if not each.offer(event):
                self.leave(each)

    def fall_behind(self) -> None:
        """Have everybody who follows the store read on in it: others have stored what is published nowhere. Never waits."""
        for each in list(self._subscriptions):
            each.fall_behind()

    def subscribe(self, after: int, read: Read, wants: Wants = everything) -> Subscription:
        """Listen from now on, to what is stored behind `after` and then to what is published.

        `read` may give what is not wanted: it is left out here, and still counts as read. To be closed, best by `with`.
        """
        return self._with(Mailbox(after, wants, self._most), read)

    def listen(self, wants: Wants = everything) -> Subscription:
        """Listen to nothing but what is published from now on. How far one came that is dropped is not known then."""
        mailbox = Mailbox(0, wants, self._most)
        mailbox.is_behind = False
        return self._with(mailbox, _nothing)

    def leave(self, subscription: Subscription) -> None:
        """Hand nothing more to a subscriber."""
        self._subscriptions.pop(subscription, None)

    def close(self) -> None:
        """Let every subscription end once it has given what it has."""
        self.is_closed = True
        for each in list(self._subscriptions):
            each.wake()

    def _with(self, mailbox: Mailbox, read: Read) -> Subscription:
        subscription = Subscription(self, mailbox, read)
        self._subscriptions[subscription] = None
        return subscription


async def _nothing(after: int) -> Sequence[StoredEvent]:
    return ()
