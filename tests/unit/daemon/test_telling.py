"""What the daemon writes down and what others write into its store: told once, in order, whoever comes and goes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from perdure.daemon.protocol import Events
from perdure.daemon.telling import Telling
from perdure.errors import StoreUnusable
from perdure.live.feed import Mailbox
from perdure.model.event import Event, EventKind, StoredEvent
from tests.unit.live.events import an_event


class Log:
    """A store of events, into which anybody writes."""

    def __init__(self) -> None:
        self.stored: list[StoredEvent] = []
        self.is_broken = False
        self.asked = 0

    def write(self, count: int) -> list[StoredEvent]:
        fresh = [an_event(len(self.stored) + number) for number in range(1, count + 1)]
        self.stored += fresh
        return fresh

    def last_event(self) -> int:
        self.asked += 1
        if self.is_broken:
            raise StoreUnusable("no disk")
        return len(self.stored)

    def read_events(
        self, *, after: int = 0, limit: int = 500, run: str | None = None, kinds: Collection[EventKind] = ()
    ) -> tuple[StoredEvent, ...]:
        return tuple(self.stored[after : after + limit])

    def record(self, runs: Sequence[object], events: Sequence[Event]) -> tuple[StoredEvent, ...]:
        raise NotImplementedError

    def forget_events(self, before: datetime) -> int:
        raise NotImplementedError


class Follower:
    """One who follows, reading when it has to."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.mailbox = Mailbox(after, most=3)
        self.got: list[int] = []

    def take(self, log: Log, telling: Telling) -> None:
        while True:
            item = self.mailbox.take()
            if isinstance(item, StoredEvent):
                self.got.append(item.seq)
            elif item is not None:
                self.mailbox = Mailbox(item.after, most=3)
            elif self.mailbox.is_behind:
                after = self.mailbox.read_begins()
                self.mailbox.read_ended(telling.read(log, Events(after=after, limit=2)))
            else:
                return


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["own", "others", "look", "come", "go", "take", "breaks"]), st.integers(1, 5)),
        max_size=50,
    )
)
def test_everybody_gets_everything_once_in_order(steps: list[tuple[str, int]]) -> None:
    log, followers, all_who_came = Log(), list[Follower](), list[Follower]()

    def publish(events: Sequence[StoredEvent], has_more: bool) -> None:
        for each in followers:
            if has_more:
                each.mailbox.fall_behind()
            for event in events:
                each.mailbox.offer(event)

    telling = Telling(publish)
    for name, count in steps:
        if name == "own":
            telling.own(log.write(count))
        elif name == "others":
            log.write(count)
        elif name == "look" and followers:
            telling.others(log)
        elif name == "look":
            telling.rest()
        elif name == "come":
            followers.append(Follower(len(log.stored) // count))
            all_who_came.append(followers[-1])
        elif name == "go" and followers:
            followers.pop(0)
        elif name == "take":
            for each in followers:
                each.take(log, telling)
        elif name == "breaks":
            log.is_broken = True
            telling.others(log)
            log.is_broken = False
    for each in followers:
        each.take(log, telling)
    telling.others(log)
    for each in followers:
        each.take(log, telling)
        assert each.got == list(range(each.after + 1, len(log.stored) + 1))
    for each in all_who_came:
        assert each.got == list(range(each.after + 1, each.after + 1 + len(each.got)))


def test_as_long_as_nobody_follows_nothing_is_asked() -> None:
    log, told = Log(), list[tuple[Sequence[StoredEvent], bool]]()
    telling = Telling(lambda events, has_more: told.append((events, has_more)))
    log.write(2)
    telling.others(log)
    own = log.write(1)
    telling.own(own)
    assert (log.asked, told) == (0, [(own, False)])
    telling.read(log, Events())
    log.write(1)
    telling.others(log)
    telling.others(log)
    assert told[1:] == [((), True)]
    telling.rest()
    before = log.asked
    telling.others(log)
    assert log.asked == before
