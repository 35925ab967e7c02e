"""What processes hand to each other: whole, of the living only, and never twice taken for new."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.store import desk as desks
from perdure.store.appends import Append
from perdure.store.chat_rows import ready
from perdure.store.desk import Desk, Handing, desk_at
from perdure.store.door import Door
from tests.builders import at
from tests.conftest import PrivateHome
from tests.contract.store.chats import a_turn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no desk elsewhere")


@pytest.fixture
def path(private_home: PrivateHome) -> str:
    return f"{private_home.root}/some.db-desk"


@pytest.fixture
def ours(path: str) -> Iterator[Desk]:
    desk = Desk(path)
    yield desk
    desk.close()


@pytest.fixture
def theirs(path: str) -> Iterator[Desk]:
    desk = Desk(path)
    yield desk
    desk.close()


def an_append(text: str = "a", *, chat: str = "c1", expect: int | None = None) -> Append:
    return Append(chat, [ready(a_turn(text))], expect, at(1))


def seen(desk: Desk) -> list[tuple[str, int | None, object, object]]:
    """What a desk has for whoever writes."""
    return [(each.chat, each.expect, each.at, each.turns) for order in desk.orders() for each in order.appends]


def test_an_order_arrives_as_it_was_and_is_answered(ours: Desk, theirs: Desk) -> None:
    first, second = an_append("ä\0" * 100, expect=7), an_append("b", chat="c2")
    ticket = theirs.put([first, second])
    assert ticket is not None
    assert seen(ours) == [(each.chat, each.expect, each.at, each.turns) for each in (first, second)]
    assert theirs.answer_to(ticket) is None
    (order,) = ours.orders()
    order.positions = [7, 0]
    ours.answer(order)
    assert ours.orders() == []
    answer = theirs.answer_to(ticket)
    assert answer is not None
    assert answer[:2] == [7, 0]
    # The next one is another.
    again = theirs.put([first])
    assert again not in (None, ticket)
    assert theirs.answer_to(again or 0) is None
    assert len(ours.orders()) == 1


def test_an_order_says_where_its_chats_go_on_as_far_as_is_known(ours: Desk, theirs: Desk) -> None:
    theirs.put([an_append(), an_append(chat="c2")], {"c1": (7, 12), "c3": (8, 1)})
    assert [each.known for order in ours.orders() for each in order.appends] == [(7, 12), None]


def test_what_others_have_written_for_us_is_known_here(theirs: Desk) -> None:
    known = {"c1": (7, 12)}
    handing = Handing(theirs, [an_append(), an_append(chat="c2"), an_append()], known)
    handing.positions = [14, 3, 13]
    assert handing.rest() == []
    # Nothing but the number of a chat that was never written to from here is missing.
    assert known == {"c1": (7, 15)}
    handing.positions = [0, 0, 0]
    assert len(handing.rest()) == 3
    assert known == {"c1": (7, 15)}


def test_where_there_is_no_room_for_it_there_is_no_desk(
    private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that was made longer and has no room to lie in would end whoever looks there.
    monkeypatch.setattr(os, "pwrite", lambda file, raw, offset: len(raw) - 1)
    assert desk_at(Door(f"{private_home.root}/some.db")) is None


def test_a_desk_is_empty_when_nothing_lies_there_at_all(ours: Desk, theirs: Desk) -> None:
    assert ours.is_empty()
    theirs.put([an_append()])
    assert not ours.is_empty()
    (order,) = ours.orders()
    order.positions = [1]
    ours.answer(order)
    assert ours.count() == 0
    # Until whoever put it there has read the answer.
    assert not ours.is_empty()
    theirs.take_off()
    assert ours.is_empty()


def test_nobody_takes_their_own_order(ours: Desk) -> None:
    assert ours.put([an_append()]) is not None
    assert ours.orders() == []


def test_what_was_taken_off_is_taken_by_nobody(ours: Desk, theirs: Desk) -> None:
    theirs.put([an_append()])
    theirs.take_off()
    assert ours.orders() == []
    assert ours.count() == 0


def test_an_order_of_one_who_is_gone_is_taken_by_nobody_not_even_under_another(ours: Desk, path: str) -> None:
    gone = Desk(path)
    gone.put([an_append()])
    place = gone.place
    gone.close()
    assert ours.orders() == []
    heir = Desk(path)
    assert heir._has_place()
    assert ours.orders() == []
    assert heir.put([an_append("new")]) is not None
    assert heir.place == place
    assert [turns for *_, turns in seen(ours)] == [[ready(a_turn("new"))]]
    heir.close()


#: Puts an order on a desk, forks, and the child says its number and lives on.
FORKING = """
import os, sys, time
from perdure.store.desk import Desk
from tests.unit.store.test_desk import an_append
desk = Desk(sys.argv[1])
assert desk.put([an_append()]) is not None
if os.fork() == 0:
    print(os.getpid(), flush=True)
time.sleep(60)
"""


def test_a_child_does_not_keep_the_place_of_its_parent(ours: Desk, path: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", FORKING, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        assert len(ours.orders()) == 1
        process.kill()
        process.wait()
        assert ours.orders() == []
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


def test_what_is_too_much_for_the_desk_is_not_put_there(ours: Desk, theirs: Desk) -> None:
    assert theirs.put([an_append()] * 17) is None
    assert theirs.put([an_append("x" * 40_000)]) is None
    assert ours.orders() == []


def test_without_a_place_or_without_room_on_the_disk_everybody_writes_for_themselves(
    path: str, ours: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [Desk(path) for _ in range(32)]
    assert all(other.put([an_append()]) is not None for other in others)
    assert ours.put([an_append()]) is None
    for other in others:
        other.close()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    other = Desk(path)
    with monkeypatch.context() as failing:
        failing.setattr(os, "pwrite", full)
        assert other.put([an_append()]) is None
    assert other.put([an_append()]) is not None
    other.close()


def test_whoever_waits_is_woken_and_one_who_is_gone_is_passed_over(ours: Desk, theirs: Desk, path: str) -> None:
    gone = Desk(path)
    gone.put([an_append()])
    gone.close()
    theirs.put([an_append()])
    assert not theirs.wait()
    ours.wake_next()
    assert theirs.wait()
    assert not theirs.wait()


def test_one_whom_nobody_wakes_writes_for_themselves_for_a_while(theirs: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desks, "_LATER", 5)
    assert theirs.put([an_append()]) is not None
    for _ in range(3):
        theirs.missed()
    assert [theirs.put([an_append()]) is None for _ in range(4)] == [True, True, False, False]


@given(
    patches=st.lists(
        st.tuples(
            st.one_of(st.integers(0, 7168), st.integers(8192, 8192 + 400), st.sampled_from([0, 8, 16, 32, 64, 2048])),
            st.binary(min_size=1, max_size=300),
        ),
        max_size=6,
    )
)
def test_whatever_becomes_of_the_file_only_whole_orders_are_taken(
    tmp_path_factory: pytest.TempPathFactory, patches: list[tuple[int, bytes]]
) -> None:
    path = str(tmp_path_factory.mktemp("desk") / "some.db-desk")
    ours, theirs = Desk(path), Desk(path)
    wanted = an_append("what was said")
    ticket = theirs.put([wanted])
    assert ticket is not None
    with open(path, "r+b") as file:
        for offset, raw in patches:
            file.seek(offset)
            file.write(raw)
    assert seen(ours) in ([], [(wanted.chat, wanted.expect, wanted.at, wanted.turns)])
    assert theirs.answer_to(ticket) is None
    ours.wake_next()
    ours.close()
    theirs.close()


def test_where_the_file_cannot_be_made_there_is_no_desk(private_home: PrivateHome) -> None:
    door = Door(f"{private_home.root}/some.db")
    os.mkdir(f"{private_home.root}/some.db-desk")
    assert desk_at(door) is None
    assert desk_at(Door(f"{private_home.root}/other.db")) is not None
    assert os.stat(f"{private_home.root}/other.db-desk").st_mode & 0o777 == 0o600
