"""Everybody who listens gets every event once, in order, however publishing, reading and dropping fall together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.live.feed import Feed, Mailbox, Read
from perdure.model.event import Lagged, StoredEvent
from tests.unit.live.events import an_event

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.integers(1, 4)),
        st.tuples(st.just("publish"), st.integers(1, 4)),
        st.tuples(st.just("others_record"), st.integers(1, 4)),
        st.tuples(st.just("ask"), st.integers(1, 3)),
        st.tuples(st.just("tell"), st.just(0)),
        st.tuples(st.just("take"), st.integers(1, 4)),
    ),
    max_size=60,
)


class Play:
    """A store, a publisher behind it and one subscriber, each a step at a time."""

    def __init__(self, after: int, most: int, gone: frozenset[int], wants: Callable[[StoredEvent], bool]) -> None:
        self.stored: list[StoredEvent] = []
        self.published = 0
        self.after = after
        self.gone = gone
        self.wants = wants
        self.most = most
        self.mailbox = Mailbox(after, wants, most)
        self.page: Sequence[StoredEvent] | None = None
        self.got: list[int] = []
        self.drops = 0

    def record(self, count: int) -> None:
        """Write events down; some numbers are never seen."""
        for _ in range(count):
            number = self.stored[-1].seq + 1 if self.stored else 1
            while number in self.gone:
                number += 1
            self.stored.append(an_event(number))

    def publish(self, count: int) -> None:
        for event in self.stored[self.published : self.published + count]:
            self.mailbox.offer(event)
        self.published = min(self.published + count, len(self.stored))

    def others_record(self, count: int) -> None:
        """Somebody else writes events down: all that is published then is that there are some."""
        self.publish(1 << 20)
        self.record(count)
        self.published = len(self.stored)
        self.mailbox.fall_behind()

    def ask(self, limit: int) -> None:
        """Begin to read the store: what is there at this moment is what will come back."""
        if self.page is None and self.mailbox.is_behind and not self.mailbox.is_dropped:
            self.take(1 << 20)
            after = self.mailbox.read_begins()
            self.page = [event for event in self.stored if event.seq > after][:limit]

    def tell(self, _: int) -> None:
        if self.page is not None:
            self.mailbox.read_ended(self.page)
            self.page = None

    def take(self, count: int) -> None:
        for _ in range(count):
            item = self.mailbox.take()
            if item is None:
                return
            if isinstance(item, Lagged):
                assert item.after == max([self.after, *self.got])
                self.drops += 1
                self.mailbox = Mailbox(item.after, self.wants, self.most)
                self.page = None
                return
            self.got.append(item.seq)

    def finish(self) -> None:
        """Publish and read everything there is."""
        self.publish(1 << 20)
        for _ in range(len(self.stored) + 10):
            self.tell(0)
            self.take(1 << 20)
            self.ask(7)
        self.tell(0)
        self.take(1 << 20)


@given(
    steps=STEPS,
    after=st.integers(0, 6),
    most=st.integers(1, 5),
    gone=st.frozensets(st.integers(1, 40)),
    wanted=st.sampled_from([lambda event: True, lambda event: event.seq % 3 != 0, lambda event: event.seq % 3 == 0]),
)
def test_nothing_is_lost_and_nothing_comes_twice(
    steps: list[tuple[str, int]],
    after: int,
    most: int,
    gone: frozenset[int],
    wanted: Callable[[StoredEvent], bool],
) -> None:
    play = Play(after, most, gone, wanted)
    for name, count in steps:
        getattr(play, name)(count)
    play.finish()
    assert play.got == [event.seq for event in play.stored if event.seq > after and wanted(event)]


@given(count=st.integers(1, 30), most=st.integers(1, 5))
def test_only_one_who_has_caught_up_is_dropped(count: int, most: int) -> None:
    behind, live = Mailbox(0, most=most), Mailbox(0, most=most)
    live.read_begins()
    live.read_ended(())
    for number in range(1, count + 1):
        behind.offer(an_event(number))
        live.offer(an_event(number))
    assert not behind.is_dropped
    assert live.is_dropped == (count > most)
    assert live.take() == (Lagged(after=0) if count > most else an_event(1))


def test_what_could_not_be_stored_is_passed_on_and_moves_nothing() -> None:
    mailbox = Mailbox(5)
    mailbox.read_begins()
    mailbox.read_ended(())
    for event in (an_event(0), an_event(6), an_event(0)):
        mailbox.offer(event)
    assert [mailbox.take() for _ in range(4)] == [an_event(0), an_event(6), an_event(0), None]
    assert mailbox.cursor == 6


def _reading(stored: Sequence[StoredEvent], limit: int = 2) -> Read:
    async def read(after: int) -> Sequence[StoredEvent]:
        found = [event for event in stored if event.seq > after][:limit]
        await asyncio.sleep(0)
        return found

    return read


async def _numbers(feed: Feed, after: int, read: Read, count: int) -> list[int]:
    with feed.subscribe(after, read) as events:
        found = []
        async for item in events:
            assert isinstance(item, StoredEvent)
            found.append(item.seq)
            if len(found) == count:
                return found
    return found


def test_stored_events_come_first_and_then_those_of_the_moment() -> None:
    async def play() -> None:
        feed, stored = Feed(), [an_event(number) for number in range(1, 6)]
        async with asyncio.TaskGroup() as group:
            readers = [group.create_task(_numbers(feed, after, _reading(stored), 10 - after)) for after in range(6)]
            for number in range(6, 11):
                await asyncio.sleep(0)
                stored.append(an_event(number))
                feed.publish(stored[-1])
        for after, reader in enumerate(readers):
            assert reader.result() == list(range(after + 1, 11))
        assert len(feed) == 0

    asyncio.run(play())


def test_what_others_have_stored_is_read_and_nobody_is_dropped_for_it() -> None:
    async def play() -> None:
        feed, stored = Feed(most=2), [an_event(1)]
        with feed.listen() as listener, feed.subscribe(0, _reading(stored, 3)) as events:
            assert await anext(events) == an_event(1)
            stored.extend(an_event(number) for number in range(2, 9))
            feed.fall_behind()
            # Our own, behind those of others.
            stored.append(an_event(9))
            feed.publish(an_event(9))
            assert [await anext(events) for _ in range(8)] == [an_event(number) for number in range(2, 10)]
            # Whoever only listens reads nothing, and misses nothing of what is published.
            assert await anext(listener) == an_event(9)
            assert len(feed) == 2

    asyncio.run(play())


def test_a_slow_subscriber_is_dropped_and_goes_on_where_it_was() -> None:
    async def play() -> None:
        feed, stored = Feed(most=3), [an_event(1)]
        read = _reading(stored, 100)
        with feed.subscribe(0, read) as slow, feed.subscribe(0, read) as quick:
            assert await anext(slow) == await anext(quick) == an_event(1)
            waiting = asyncio.gather(anext(slow), anext(quick))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            for number in range(2, 8):
                stored.append(an_event(number))
                feed.publish(stored[-1])
                if number == 2:
                    assert list(await waiting) == [an_event(2), an_event(2)]
                elif number > 3:
                    assert await anext(quick) == an_event(number - 1)
            assert len(feed) == 1
            assert [item async for item in slow] == [Lagged(after=2)]
        assert await _numbers(feed, 2, read, 5) == [3, 4, 5, 6, 7]

    asyncio.run(play())


def test_a_closed_feed_gives_what_it_has_and_ends() -> None:
    async def play() -> None:
        feed, stored = Feed(), [an_event(1)]
        with feed.subscribe(0, _reading(stored)) as events:
            assert await anext(events) == an_event(1)
            feed.publish(an_event(2))
            stored.append(an_event(2))
            feed.close()
            assert [item async for item in events] == [an_event(2)]

    asyncio.run(play())


def test_who_listens_from_now_on_gets_all_that_comes_even_before_it_asks() -> None:
    async def play() -> None:
        feed = Feed(most=2)
        with feed.listen(lambda stored: stored.seq != 4) as events:
            feed.publish(an_event(3))
            feed.publish(an_event(4))
            feed.publish(an_event(0))
            assert [await anext(events), await anext(events)] == [an_event(3), an_event(0)]
            for number in range(5, 8):
                feed.publish(an_event(number))
            assert [type(item) async for item in events] == [Lagged]

    asyncio.run(play())


def test_a_store_that_fails_is_told_and_read_again() -> None:
    async def play() -> None:
        trouble = [OSError("no disk")]

        async def read(after: int) -> Sequence[StoredEvent]:
            if trouble:
                raise trouble.pop()
            return [an_event(1)] if after < 1 else ()

        with Feed().subscribe(0, read) as events:
            with pytest.raises(OSError, match="no disk"):
                await anext(events)
            assert await anext(events) == an_event(1)

    asyncio.run(play())
