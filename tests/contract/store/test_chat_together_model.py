"""Whoever hands over, serves, looks, takes a turn or dies, in whatever order: what was acknowledged is there once, where it was said to be."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.store import open_store
from perdure.store.appends import Append
from perdure.store.chat_rows import ready
from perdure.store.desk import Desk, Handing, note, orders
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import a_chat, a_turn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no desk elsewhere")

CHATS = ("c0", "c1")


class Died(BaseException):
    """A process was killed."""


class Process:
    """One that appends, with a desk of its own and a transaction when it is its turn."""

    def __init__(self, store: Store, path: str) -> None:
        self.store = store
        self.desk = Desk(path)
        self.handing: Handing | None = None
        self.append: Append | None = None
        #: Where it believes that chats go on.
        self.known: dict[str, tuple[int, int]] = {}

    def want(self, number: int, chat: str) -> None:
        self.append = Append(chat, [ready(a_turn(number))], None, at(number))
        self.handing = Handing(self.desk, [self.append], self.known)

    def hand_over(self) -> None:
        assert self.handing is not None
        self.handing.ticket = self.desk.put([self.append], self.known)  # type: ignore[list-item]

    def be_misled(self) -> None:
        """Take each chat for the other, where that goes on."""
        spots = [self.store.chats.spot(chat) for chat in CHATS]
        self.known.update({chat: (spot.number, spot.next) for chat, spot in zip(CHATS, reversed(spots), strict=True)})

    def look(self) -> bool:
        """Whether somebody says that it was written."""
        assert self.handing is not None
        if self.handing.ticket is not None:
            self.handing.positions = self.desk.answer_to(self.handing.ticket)
        return self.handing.positions is not None and not self.handing.rest()

    def take_turn(self, dies: str) -> None:
        """Write one's own, and what others have handed over."""
        assert self.handing is not None
        assert self.append is not None
        self.store.chats._known = self.known
        with self.store.driver.transaction():
            self.handing.settle(self.store.driver)
            mine = [] if self.handing.positions is not None else [self.append]
            taken, told = orders(self.desk, self.store.driver)
            written = [*mine, *(each for order in taken for each in order.appends)]
            self.store.chats._write(written, self.store.driver)
            if taken:
                note(self.store.driver, taken)
            if dies == "before":
                raise Died
        if dies == "after":
            raise Died
        self.handing.rest()
        for order in (*taken, *told):
            self.desk.answer(order)


class World:
    """Some processes over one store, and what each was told."""

    def __init__(self, store: Store, path: str) -> None:
        self.store, self.path = store, path
        self.processes = [Process(store, path) for _ in range(3)]
        self.number = 0
        self.wanted: dict[int, int] = {}
        self.acknowledged: dict[int, tuple[str, int]] = {}
        #: What those who died wanted, and how often it was there when they did.
        self.left: dict[int, int] = {}

    def do(self, who: int, what: str, dies: str) -> None:
        process = self.processes[who]
        if what == "dies":
            self.bury(who)
        elif what == "is misled":
            process.be_misled()
        elif who not in self.wanted:
            self.number += 1
            self.wanted[who] = self.number
            process.want(self.number, CHATS[self.number % 2])
            if what == "hands over":
                process.hand_over()
        elif what == "looks":
            if process.look():
                process.desk.take_off()
                self.acknowledge(who)
        else:
            try:
                process.take_turn(dies)
            except Died:
                self.bury(who)
            else:
                self.acknowledge(who)

    def acknowledge(self, who: int) -> None:
        append = self.processes[who].append
        assert append is not None
        self.acknowledged[self.wanted.pop(who)] = (append.chat, append.position)

    def bury(self, who: int) -> None:
        self.processes[who].desk.close()
        if who in self.wanted:
            number = self.wanted.pop(who)
            self.left[number] = sum(content == number for _, _, content in self.there())
        self.processes[who] = Process(self.store, self.path)

    def there(self) -> Iterator[tuple[str, int, object]]:
        for chat in CHATS:
            yield from ((chat, turn.position, turn.content) for turn in self.store.chats.load_turns(chat).turns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("together"))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from(["hands over", "hands over", "takes its turn", "looks", "dies", "is misled"]),
            st.sampled_from(["", "", "before", "after"]),
        ),
        max_size=30,
    )
)
def test_what_was_acknowledged_is_there_once_and_nothing_of_the_dead_comes_later(
    folder: str, steps: list[tuple[int, str, str]]
) -> None:
    store = open_store(f"sqlite://{folder}/perdure.db", state_dir=folder)
    # As where threads are allowed; nobody tells anything meanwhile.
    store.chats.tells_later = lambda: True  # type: ignore[method-assign]
    store.driver.execute("PRAGMA synchronous = OFF")
    for table in ("chats", "turns", "events", "handed_over"):
        store.driver.execute(f"DELETE FROM {table}")
    for chat in CHATS:
        store.chats.begin_chat(a_chat(chat))
    world = World(store, f"{folder}/perdure.db-desk")
    for who, what, dies in steps:
        world.do(who, what, dies)
    # Those who are left come to an end, one after the other.
    for who in list(world.wanted):
        world.do(who, "takes its turn", "")
    there = list(world.there())
    numbers = [content for _, _, content in there]
    assert len(set(map(str, numbers))) == len(numbers)
    for number, (chat, position) in world.acknowledged.items():
        assert (chat, position, number) in there
    for number, count in world.left.items():
        assert numbers.count(number) == count
    assert {*world.acknowledged, *world.left} >= {int(str(number)) for number in numbers}
    for chat in CHATS:
        assert [position for name, position, _ in there if name == chat] == list(
            range(1, store.chats.load_turns(chat).next)
        )
    for process in world.processes:
        process.desk.close()
    store.close()
