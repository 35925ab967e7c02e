"""What was appended last and is yet to be put in its place: for whoever reads, changes, searches or mends, it is there."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import errors
from perdure.model.chat import CloseReason, Found, Turn
from perdure.store import arrivals, open_store, search
from perdure.store.chat_rows import SPAN
from perdure.store.repair import repair
from perdure.store.store import Store
from perdure.store.turns import Turns
from tests.builders import at
from tests.conftest import PrivateHome
from tests.contract.store.chats import a_chat, a_turn

_PAGE = 4096


@pytest.fixture(autouse=True)
def nobody_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what has arrived stay where it is, until somebody needs it in its place."""
    monkeypatch.setattr(search, "_GATHERING", 3600.0)


@pytest.fixture
def book(private_home: PrivateHome) -> Iterator[Store]:
    """A store with two chats; of each all but the first turn has only arrived."""
    with closing(opened(private_home.state)) as store:
        fill(store)
        yield store


def opened(directory: str, *, threads: bool = True) -> Store:
    return open_store(f"sqlite://{directory}/perdure.db", state_dir=directory, threads=threads)


def fill(store: Store) -> None:
    for id in ("c1", "c2"):
        store.chats.begin_chat(a_chat(id))
    for place in range(1, 6):
        for id in ("c1", "c2"):
            say(store, id, f"{id} {place}")
    assert arrived(store) == [("c1", place) for place in range(2, 6)] + [("c2", place) for place in range(2, 6)]


def say(store: Store, id: str, text: str, role: str = "user") -> int:
    return store.chats.append_turns(id, [a_turn(text, role)], at(1))


def arrived(store: Store) -> list[tuple[str, int]]:
    """Which turns of which chats are not in their places."""
    rows = store.driver.fetch(
        "SELECT chats.id, arrivals.id FROM arrivals JOIN chats ON number = arrivals.id >> 32 ORDER BY 1, 2"
    )
    return [(id, turn % SPAN) for id, turn in rows]


def contents(turns: tuple[Turn, ...]) -> list[object]:
    return [turn.content for turn in turns]


def said(store: Store, id: str, *, hidden: bool = False) -> list[object]:
    return contents(store.chats.load_turns(id, hidden=hidden).turns)


def places(found: tuple[Found, ...]) -> set[tuple[str, int]]:
    return {(each.chat, each.position) for each in found}


ALL: list[object] = [f"c1 {place}" for place in range(1, 6)]


def test_whoever_reads_sees_it_in_its_place(book: Store, private_home: PrivateHome) -> None:
    readers = [
        book,
        opened(private_home.state, threads=False),
        open_store(book_url(private_home), state_dir=private_home.state, read_only=True),
    ]
    try:
        for reader in readers:
            assert said(reader, "c1") == ALL
            assert (reader.chats.get_chat("c1").turns, reader.chats.load_turns("c1").next) == (5, 6)
            for start in range(1, 8):
                for limit in range(1, 7):
                    part = reader.chats.load_turns("c1", start=start, limit=limit)
                    assert contents(part.turns) == ALL[start - 1 : start - 1 + limit], (start, limit)
                    assert (part.missing, part.next) == (0, 6)
        assert arrived(book), "nobody had to settle anything for that"
        assert book.check() == ()
    finally:
        for reader in readers[1:]:
            reader.close()


def book_url(home: PrivateHome) -> str:
    return f"sqlite://{home.state}/perdure.db"


def test_it_goes_on_behind_it_whoever_appends(book: Store, private_home: PrivateHome) -> None:
    with closing(opened(private_home.state, threads=False)) as other:
        assert say(other, "c1", "c1 6") == 6
        assert arrived(book)
        assert say(book, "c1", "c1 7") == 7
        with pytest.raises(errors.Conflict):
            other.chats.append_turns("c1", [a_turn("late")], at(1), expect=7)
        assert said(other, "c1") == said(book, "c1") == [*ALL, "c1 6", "c1 7"]


def rewrite(store: Store) -> list[object]:
    assert store.chats.rewrite_turns("c1", 4, [a_turn("anew")], at(2)) == 7
    return [*ALL[:3], "anew"]


def undo(store: Store) -> list[object]:
    assert store.chats.undo_turns("c1", 2, at(2)).content == "c1 4"
    return ALL[:3]


def follow(store: Store) -> list[object]:
    turns = [turn for turn in store.chats.load_turns("c1").turns if turn.position != 3]
    turns[2:2] = [a_turn("c1 3", position=3, hidden=True)]
    grown = store.chats.import_chat(a_chat("c1"), [*turns, a_turn("more", position=6)])
    assert grown.added == 1
    return ["c1 1", "c1 2", "c1 4", "c1 5", "more"]


@pytest.mark.parametrize("change", [rewrite, undo, follow])
def test_whoever_takes_something_back_takes_back_what_has_arrived(
    book: Store, change: Callable[[Store], list[object]]
) -> None:
    left = change(book)
    assert said(book, "c1") == left
    assert set(ALL) <= set(said(book, "c1", hidden=True))
    # The other chat was no business of theirs.
    assert arrived(book) == [("c2", place) for place in range(2, 6)]
    say(book, "c1", "on")
    assert said(book, "c1") == [*left, "on"]
    assert places(book.chats.search_turns("c1")) == {
        ("c1", turn.position) for turn in book.chats.load_turns("c1").turns if str(turn.content).startswith("c1")
    }
    assert book.check() == ()


def test_a_branch_has_all_that_was_said_before_it(book: Store) -> None:
    book.chats.begin_chat(a_chat("c3"), copy="c1", before=5)
    assert said(book, "c3") == ALL[:4]
    assert said(book, "c1") == ALL
    assert book.check() == ()


def test_a_chat_that_is_forgotten_leaves_nothing_behind(book: Store) -> None:
    book.chats.change_chat("c1", lambda chat: a_chat("c1", closed_at=at(3), close_reason=CloseReason.ASKED))
    book.chats.forget_chat("c1")
    assert arrived(book) == [("c2", place) for place in range(2, 6)]
    assert book.driver.fetch("SELECT count(*) FROM arrivals") == [(4,)]
    assert [id for (id,) in book.driver.fetch("SELECT id >> 32 FROM turns GROUP BY 1")] == [2]
    assert (book.chats.search_turns("c1"), book.check()) == ((), ())


def test_whoever_searches_finds_it_once(book: Store) -> None:
    for _ in range(2):
        assert places(book.chats.search_turns("c1")) == {("c1", place) for place in range(1, 6)}
    assert (arrived(book), said(book, "c1")) == ([], ALL)
    assert book.driver.fetch("SELECT count(*) FROM chats WHERE behind = 1") == [(0,)]


def test_what_comes_while_others_are_indexed_is_found_later(book: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would count as indexed, and nobody would ever find it."""
    settle_all = arrivals.settle_all

    def and_then_somebody_appends(of: search.Search) -> None:
        settle_all(of)
        say(book, "c1", "slate")

    monkeypatch.setattr(arrivals, "settle_all", and_then_somebody_appends)
    book.chats.index_turns()
    assert arrived(book) == [("c1", 6)]
    assert said(book, "c1") == [*ALL, "slate"]
    monkeypatch.setattr(arrivals, "settle_all", settle_all)
    assert places(book.chats.search_turns("slate")) == {("c1", 6)}


def test_very_much_of_it_is_settled_some_at_a_time(book: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_AT_ONCE", 3)
    monkeypatch.setattr(arrivals, "_BYTES", 10_000)
    for text in ("word " * 4000, "word " * 4000, "short"):
        say(book, "c2", text)
    say(book, "c1", "c1 6")
    left: list[int] = []
    put_in_place = arrivals._put_in_place

    def put_some_in_place(of: Turns, low: int, high: int, last: int) -> None:
        put_in_place(of, low, high, last)
        left.append(len(arrived(book)))

    monkeypatch.setattr(arrivals, "_put_in_place", put_some_in_place)
    arrivals.settle_all(book.chats)
    # At most three at once, and each of the long ones alone.
    assert left == [9, 6, 4, 3, 2, 0]
    assert said(book, "c1") == [*ALL, "c1 6"]
    assert len(said(book, "c2")) == 8


def test_several_that_settle_while_others_append_lose_and_double_nothing(
    book: Store, private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "_AT_ONCE", 3)
    is_over = threading.Event()

    def settle() -> None:
        with closing(opened(private_home.state, threads=False)) as other:
            while not is_over.is_set():
                arrivals.settle_all(other.chats)

    def append(id: str) -> None:
        for place in range(6, 106):
            say(book, id, f"{id} {place}")

    with ThreadPoolExecutor(4) as threads:
        settling = [threads.submit(settle) for _ in range(2)]
        try:
            for appending in [threads.submit(append, id) for id in ("c1", "c2")]:
                appending.result()
        finally:
            is_over.set()
        for each in settling:
            each.result()
    for id in ("c1", "c2"):
        assert said(book, id) == [f"{id} {place}" for place in range(1, 106)]
    assert book.driver.fetch("SELECT count(*) FROM damaged_turns") == [(0,)]
    assert book.check() == ()


_APPENDER = """
import os, signal, sys
from perdure.store import open_store, search
from tests.builders import at
from tests.contract.store.chats import a_turn
search._GATHERING = 3600.0
store = open_store(sys.argv[1], state_dir=sys.argv[2], threads=True)
for place in range(6, 30):
    store.chats.append_turns("c1", [a_turn(f"c1 {place}")], at(1))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_outlives_whoever_appended(book: Store, private_home: PrivateHome) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _APPENDER, book_url(private_home), private_home.state], check=False, cwd=os.getcwd()
    )
    assert done.returncode == -signal.SIGKILL
    everything = [f"c1 {place}" for place in range(1, 30)]
    assert len(arrived(book)) == 4 + 4 + 23
    assert said(book, "c1") == everything
    assert len(book.chats.search_turns("c1", limit=100)) == 29
    assert (said(book, "c1"), arrived(book), book.check()) == (everything, [], ())


def test_what_stands_in_its_place_already_is_not_lost_and_neither_is_it(book: Store) -> None:
    """It cannot be, unless something was damaged: and then nobody can know which of them is right."""
    place = book.chats.spot("c1").number * SPAN + 3
    book.driver.execute(
        "INSERT INTO turns (id, role, at, hidden, seal, body) SELECT :id, role, at, hidden, seal, body FROM turns LIMIT 1",
        id=place,
    )
    arrivals.settle_all(book.chats)
    assert arrived(book) == []
    assert book.driver.fetch("SELECT chat, id FROM damaged_turns") == [("c1", place)]
    assert said(book, "c2") == [f"c2 {place}" for place in range(1, 6)]
    with pytest.raises(errors.ChatDamaged):
        book.chats.load_turns("c1")
    assert {problem.where for problem in book.check()} == {"turn 3 of chat c1"}


def test_one_that_is_spoilt_where_it_arrived_costs_only_itself(book: Store, private_home: PrivateHome) -> None:
    place = book.chats.spot("c1").number * SPAN + 3
    book.driver.execute("UPDATE arrivals SET body = :body WHERE id = :id", body=b"spoilt", id=place)
    with pytest.raises(errors.ChatDamaged):
        book.chats.load_turns("c1")
    assert {problem.where for problem in book.check()} == {"turn 3 of chat c1"}
    assert arrived(book)
    repair(book_url(private_home), private_home.state, at(5))
    left = book.chats.load_turns("c1", partly=True)
    assert (contents(left.turns), left.missing, left.next) == ([*ALL[:2], *ALL[3:]], 1, 6)
    assert book.driver.fetch("SELECT chat, id FROM damaged_turns") == [("c1", place)]
    assert said(book, "c2") == [f"c2 {place}" for place in range(1, 6)]


def test_one_that_belongs_to_no_chat_is_told_of_and_set_aside(book: Store, private_home: PrivateHome) -> None:
    book.driver.execute("UPDATE arrivals SET id = :to WHERE id = :id", id=SPAN + 5, to=77 * SPAN + 5)
    found = {problem.where for problem in book.check()}
    assert found == {"turn 5 of chat number 77, which is not there", "chat c1"}
    repair(book_url(private_home), private_home.state, at(5))
    assert book.driver.fetch("SELECT id FROM damaged_turns") == [(77 * SPAN + 5,)]
    left = book.chats.load_turns("c1", partly=True)
    assert (contents(left.turns), left.missing) == (ALL[:4], 1)


def move(store: Store, to: int) -> None:
    """Let the fifth turn of the first chat say, where it arrived, that its place is another one, as a flipped bit does."""
    assert store.driver.execute("UPDATE arrivals SET id = :to WHERE id = :id", id=SPAN + 5, to=to) == 1


def settle_all(store: Store) -> None:
    arrivals.settle_all(store.chats)


def append(store: Store) -> None:
    with closing(opened(store.state_dir, threads=False)) as other:
        say(other, "c1", "c1 6")


def change(store: Store) -> None:
    store.chats.rewrite_turns("c1", 6, [a_turn("c1 7")], at(2))


def mend(store: Store) -> None:
    repair(f"sqlite://{store.state_dir}/perdure.db", store.state_dir, at(5))


@pytest.mark.parametrize("by", [settle_all, append, change, mend])
@pytest.mark.parametrize(
    "to", [SPAN + 5 + (1 << 24), SPAN + 6, 2 * SPAN + 9, SPAN, 77 * SPAN + 5, SPAN + 5 - (1 << 62)]
)
def test_one_that_says_another_place_than_its_own_is_not_put_there(
    book: Store, by: Callable[[Store], None], to: int
) -> None:
    """No chat goes on where it says, and nothing is missed up to there."""
    move(book, to)
    by(book)
    settle_all(book)
    assert book.driver.fetch("SELECT count(*) FROM arrivals") == [(0,)]
    assert book.driver.fetch("SELECT id FROM damaged_turns") == [(to,)]
    left = book.chats.load_turns("c1", partly=True)
    assert contents(left.turns)[:4] == ALL[:4]
    assert (left.missing, left.next) == (1, 6 + len(left.turns) - 4 + (by is change))
    assert said(book, "c2") == [f"c2 {place}" for place in range(1, 6)]
    assert book.chats.load_turns("c2").next == 6
    with pytest.raises(errors.ChatDamaged):
        book.chats.load_turns("c1")
    mend(book)
    assert {(problem.where, problem.repairable) for problem in book.check()} == {("chat c1", False)}
    assert say(book, "c1", "on") == left.next


@pytest.mark.parametrize("by", [settle_all, append, change, mend])
def test_what_is_in_its_place_stays_there_though_its_chat_says_that_it_goes_on_before(
    book: Store, by: Callable[[Store], None]
) -> None:
    """It is sealed with its place: here it is the chat that is wrong."""
    book.driver.execute("UPDATE chats SET next = 3 WHERE number = 1")
    by(book)
    settle_all(book)
    mend(book)
    assert said(book, "c1")[:5] == ALL
    assert book.driver.fetch("SELECT count(*) FROM damaged_turns") == [(0,)]
    assert book.check() == ()


@pytest.fixture(scope="module")
def large() -> Iterator[str]:
    """A state directory with several chats of many turns, of each of which something has only arrived; no log."""
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as directory:
        gathering, search._GATHERING = search._GATHERING, 3600.0
        try:
            with closing(opened(work)) as store:
                for id in _LARGE:
                    store.chats.begin_chat(a_chat(id))
                    store.chats.append_turns(
                        id, [a_turn(f"{id} {place} " + "word " * 40) for place in range(60)], at(1)
                    )
                store.chats.index_whole()
                for place in range(60, 63):
                    for id in _LARGE:
                        say(store, id, f"{id} {place}")
                # The first to come after all was indexed is put in its place at once.
                assert len(arrived(store)) == 2 * len(_LARGE)
                store.driver.fetch("PRAGMA wal_checkpoint(TRUNCATE)")
                shutil.copytree(work, directory, dirs_exist_ok=True)
        finally:
            search._GATHERING = gathering
        yield directory


_LARGE = [f"c{number}" for number in range(6)]


def pages_with(path: str, text: bytes) -> list[int]:
    """The pages, from 0, on which there is some text."""
    with open(path, "rb") as file:
        content = file.read()
    return [at // _PAGE for at in range(0, len(content), _PAGE) if text in content[at : at + _PAGE]]


def spoil(path: str, page: int) -> None:
    with open(path, "r+b") as file:
        file.seek(page * _PAGE)
        file.write(b"\xa7" * _PAGE)


def test_a_page_that_is_damaged_holds_up_only_its_own_chat(large: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(large, directory, dirs_exist_ok=True)
        path = f"{directory}/perdure.db"
        # The last of what is in its place: where what has arrived would go.
        (page,) = pages_with(path, b"c2 59 word")
        spoil(path, page)
        with closing(opened(directory, threads=False)) as store:
            arrivals.settle_all(store.chats)
            left = {id for id, _ in arrived(store)}
            assert "c2" in left
            # A page may be shared with a neighbour.
            assert left <= {"c1", "c2", "c3"}
            for id in set(_LARGE) - left:
                assert len(said(store, id)) == 63
        repair(f"sqlite://{path}", directory, at(100))
        with closing(opened(directory, threads=False)) as store:
            for id in _LARGE:
                turns = contents(store.chats.load_turns(id, partly=True).turns)
                assert turns[-3:] == [f"{id} {place}" for place in range(60, 63)], id


@settings(max_examples=25, deadline=None)
@given(places=st.sets(st.floats(0, 1, exclude_max=True), min_size=1, max_size=3))
def test_never_less_is_saved_of_it_without_saying_so(large: str, places: set[float]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(large, directory, dirs_exist_ok=True)
        path = f"{directory}/perdure.db"
        count = os.path.getsize(path) // _PAGE
        for page in {1 + int(place * (count - 1)) for place in places}:
            spoil(path, page)
        actions = repair(f"sqlite://{path}", directory, at(100))
        with closing(opened(directory, threads=False)) as store:
            named = {problem.where for problem in store.check()}
            for id in _LARGE:
                whole = [f"{id} {place} " + "word " * 40 for place in range(60)]
                whole += [f"{id} {place}" for place in range(60, 63)]
                try:
                    assert said(store, id) == whole
                except errors.ChatDamaged:
                    assert f"chat {id}" in named
                except errors.ChatNotFound:
                    assert any("chats" in action for action in actions)


def test_a_table_of_them_that_is_lost_is_said_and_costs_nothing_else(large: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(large, directory, dirs_exist_ok=True)
        path = f"{directory}/perdure.db"
        with closing(sqlite3.connect(path)) as connection:
            ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'arrivals'")
        spoil(path, root - 1)
        actions = repair(f"sqlite://{path}", directory, at(100))
        assert any("Not all turns of chats" in action for action in actions)
        with closing(opened(directory, threads=False)) as store:
            for id in _LARGE:
                left = store.chats.load_turns(id, partly=True)
                assert (len(left.turns), left.missing, left.next) == (61, 2, 65)
                with pytest.raises(errors.ChatDamaged):
                    store.chats.load_turns(id)
