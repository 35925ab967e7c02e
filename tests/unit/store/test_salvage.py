"""What repair gets out of a SQLite file with damaged pages: everything that can be read, and never less unsaid."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure import errors
from perdure.model.chat import Turn
from perdure.model.event import EventKind
from perdure.store import chat_events, open_store
from perdure.store.forgetting import begin, go_on, note
from perdure.store.repair import repair
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import a_chat, a_turn
from tests.contract.store.jobs import a_job, begun, over
from tests.contract.store.runs import a_run, an_event

_PAGE = 4096
_CHATS = [f"c{number}" for number in range(20)]
_OWNERS = ("alice", "bobby", "carol")


@pytest.fixture(scope="module")
def original() -> Iterator[str]:
    """A state directory with chats of up to eighty turns, many with some that were taken back."""
    with tempfile.TemporaryDirectory() as directory:
        store = opened(directory)
        for number, id in enumerate(_CHATS):
            store.chats.begin_chat(a_chat(id))
            turns = [a_turn(f"{id} {count} " + "word " * 40) for count in range(number * 4 + 3)]
            store.chats.append_turns(id, turns, at(number))
            if number % 3 == 0:
                store.chats.rewrite_turns(id, number + 2, [a_turn("instead")], at(number + 1))
        store.driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store.close()
        yield directory


def opened(directory: str) -> Store:
    return open_store(f"sqlite://{directory}/perdure.db", state_dir=directory)


def heard(directory: str, *, hidden: bool) -> dict[str, tuple[Turn, ...] | None]:
    """What is said to have been said in each chat; None where it is an error to ask."""
    found: dict[str, tuple[Turn, ...] | None] = dict.fromkeys(_CHATS)
    try:
        store = opened(directory)
    except errors.StoreUnusable:
        return found
    for id in _CHATS:
        try:
            found[id] = store.chats.load_turns(id, hidden=hidden).turns
        except (errors.ChatNotFound, errors.StoreUnusable):
            continue
    store.close()
    return found


def spoil(path: str, pages: set[int], seed: int) -> None:
    with open(path, "r+b") as file:
        for page in pages:
            file.seek(page * _PAGE)
            file.write(Random(seed + page).randbytes(_PAGE))


def root_of(path: str, name: str) -> int:
    """The page, from 1, on which a table or an index begins."""
    with closing(sqlite3.connect(path)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,))
    return int(root)


def leaves_of(path: str, table: str) -> list[int]:
    """The pages, from 0, on which the rows of a table stand, in their order."""
    root = root_of(path, table)
    with open(path, "rb") as file:
        content = file.read()
    page = content[(root - 1) * _PAGE : root * _PAGE]
    assert page[0] == 0x05
    count = int.from_bytes(page[3:5], "big")
    cells = [int.from_bytes(page[12 + 2 * each : 14 + 2 * each], "big") for each in range(count)]
    return [int.from_bytes(page[cell : cell + 4], "big") - 1 for cell in cells]


def check_repair(original: str, directory: str, pages: set[int], seed: int) -> dict[str, tuple[Turn, ...] | None]:
    """Damage a copy and mend it: whatever could be read still can, and nothing is less than was said unsaid."""
    shutil.copytree(original, directory, dirs_exist_ok=True)
    spoil(f"{directory}/perdure.db", pages, seed)
    before = heard(directory, hidden=False)
    repair(f"sqlite://{directory}/perdure.db", directory, at(100))
    for hidden in (True, False):
        after, said = heard(directory, hidden=hidden), heard(original, hidden=hidden)
        assert {id: turns for id, turns in after.items() if turns not in (None, said[id])} == {}
    assert {id: turns for id, turns in before.items() if turns is not None and after[id] != turns} == {}
    with closing(opened(directory)) as store:
        named = {problem.where for problem in store.check()}
        for chat in store.chats.list_chats():
            assert (after[chat.id] is None) == (f"chat {chat.id}" in named)
    return after


def test_what_lies_between_damaged_pages_comes_back(original: str) -> None:
    leaves = leaves_of(f"{original}/perdure.db", "turns")
    with tempfile.TemporaryDirectory() as directory:
        after = check_repair(original, directory, {leaves[2], leaves[-3], leaves[-9]}, 1)
    assert sum(turns is None for turns in after.values()) <= 6
    with tempfile.TemporaryDirectory() as directory:
        # The first and the last too: then neither way through the table begins.
        after = check_repair(original, directory, {leaves[0], leaves[len(leaves) // 2], leaves[-1]}, 1)
    assert sum(turns is None for turns in after.values()) <= 8


def test_a_chat_whose_record_is_lost_is_known_to_be(original: str) -> None:
    path = f"{original}/perdure.db"
    with open(path, "rb") as file:
        pages = iter(lambda: file.read(_PAGE), b"")
        records = {number for number, page in enumerate(pages) if page[0] == 0x0D and b"key-c1" in page}
    with tempfile.TemporaryDirectory() as directory:
        after = check_repair(original, directory, records, 1)
        lost = [id for id, turns in after.items() if turns is None]
        assert lost
        with closing(opened(directory)) as store:
            assert {chat.id for chat in store.chats.list_chats()} == set(_CHATS)
            for id in lost:
                assert not store.chats.get_chat(id).is_open
                left = store.chats.load_turns(id, partly=True)
                assert (len(left.turns) > 0, left.missing) == (True, 1)


def test_runs_and_events_between_damaged_pages_come_back() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/perdure.db"
        store = opened(directory)
        for id in store.new_runs(200):
            store.record([a_run(id, cwd=Random(id).randbytes(150).hex())], [an_event(run=id, data={"x": "y" * 300})])
        store.driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store.close()
        spoilt = {root_of(path, index) - 1 for index in ("runs_by_end", "events_by_run", "events_by_time")}
        for table in ("runs", "events"):
            leaves = leaves_of(path, table)
            spoilt |= {leaves[1], leaves[len(leaves) // 2], leaves[-1]}
        spoil(path, spoilt, 1)
        with closing(sqlite3.connect(path)) as connection:
            runs = readable(connection, "runs", "number", 200)
            events = readable(connection, "events", "seq", 200)
        assert min(len(runs), len(events)) > 100
        repair(f"sqlite://{directory}/perdure.db", directory, at(100))
        with closing(opened(directory)) as store:
            assert {run.id for run in store.list_runs()} == {f"r{number}" for number in runs}
            assert {stored.seq for stored in store.read_events()} == events


def readable(connection: sqlite3.Connection, table: str, key: str, last: int) -> set[int]:
    """The keys of the rows that can be asked for one by one."""
    found: set[int] = set()
    for number in range(1, last + 1):
        with suppress(sqlite3.Error):
            if connection.execute(f"SELECT * FROM {table} NOT INDEXED WHERE {key} = ?", (number,)).fetchone():
                found.add(number)
    return found


@settings(max_examples=12, deadline=None)
@given(places=st.sets(st.floats(0.0, 0.999), min_size=1, max_size=6), seed=st.integers(0, 1000))
def test_never_less_than_was_said_without_saying_so(original: str, places: set[float], seed: int) -> None:
    count = os.path.getsize(f"{original}/perdure.db") // _PAGE
    with tempfile.TemporaryDirectory() as directory:
        check_repair(original, directory, {int(count * place) for place in places}, seed)


@pytest.fixture(scope="module")
def granted() -> Iterator[str]:
    """A state directory with chats that were granted to three people each, jobs, and what is to be delivered of them."""
    with tempfile.TemporaryDirectory() as directory:
        store = opened(directory)
        for id in _CHATS:
            store.chats.begin_chat(a_chat(id))
            store.chats.append_turns(id, [a_turn(f"{id} {each} " + "word " * 40) for each in range(40)], at(1))
            for owner in _OWNERS:
                store.chats.grant_chat(id, owner)
        for number in range(80):
            job = a_job(f"j{number:02}", owner=_CHATS[number % 20], seconds=number)
            store.jobs.add_job(replace(job, order=replace(job.order, cwd=Random(number).randbytes(300).hex())))
            store.jobs.change_job(job.id, begun)
            if number % 2:
                store.jobs.change_job(job.id, over)
        store.driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store.close()
        yield directory


@contextmanager
def mended(directory: str, pages: set[int]) -> Iterator[Store]:
    """A copy of which some pages were damaged, and which was repaired."""
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(directory, copy, dirs_exist_ok=True)
        spoil(f"{copy}/perdure.db", pages, 1)
        repair(f"sqlite://{copy}/perdure.db", copy, at(100))
        with closing(opened(copy)) as store:
            yield store


def grants_of(store: Store) -> set[tuple[str, str]]:
    return {(id, owner) for id in _CHATS for owner in (*_OWNERS, "mally") if store.chats.is_granted(id, owner)}


def owed_to(store: Store) -> dict[str, list[int]]:
    return {owner: [event.seq for event in store.jobs.undelivered(owner)] for owner in _CHATS}


def test_jobs_grants_and_what_is_to_be_delivered_come_back(granted: str) -> None:
    with closing(opened(granted)) as store:
        jobs, owed = store.jobs.list_jobs(), owed_to(store)
    assert all(owed[owner] for owner in _CHATS[1::2])
    with mended(granted, {leaves_of(f"{granted}/perdure.db", "turns")[3]}) as store:
        assert store.jobs.list_jobs() == jobs
        assert owed_to(store) == owed
        assert grants_of(store) == set(product(_CHATS, _OWNERS))


def pages_naming_tables(path: str) -> list[int]:
    """The pages, from 0, on which it stands which tables there are, apart from the first, which leads to them."""
    with open(path, "rb") as file:
        page = file.read(_PAGE)
    assert page[100] == 0x05
    count = int.from_bytes(page[103:105], "big")
    cells = [int.from_bytes(page[112 + 2 * each : 114 + 2 * each], "big") for each in range(count)]
    return [int.from_bytes(page[place : place + 4], "big") - 1 for place in (*cells, 108)]


def test_everything_comes_back_although_it_cannot_be_read_any_more_which_tables_there_are(granted: str) -> None:
    with closing(opened(granted)) as store:
        jobs, owed = store.jobs.list_jobs(), owed_to(store)
    said = heard(granted, hidden=True)
    pages = pages_naming_tables(f"{granted}/perdure.db")
    for spoilt in (*({page} for page in pages), set(pages)):
        with mended(granted, spoilt) as store:
            assert store.jobs.list_jobs() == jobs
            assert owed_to(store) == owed
            assert grants_of(store) == set(product(_CHATS, _OWNERS))
            assert {id: store.chats.load_turns(id, hidden=True).turns for id in _CHATS} == said
            assert store.check() == ()


def test_jobs_between_damaged_pages_come_back(granted: str) -> None:
    path = f"{granted}/perdure.db"
    leaves = leaves_of(path, "jobs")
    spoilt = {leaves[1], leaves[len(leaves) // 2], leaves[-2], root_of(path, "jobs_by_order") - 1}
    with tempfile.TemporaryDirectory() as copy:
        shutil.copy(path, copy)
        spoil(f"{copy}/perdure.db", spoilt, 1)
        with closing(sqlite3.connect(f"{copy}/perdure.db")) as connection:
            there = {f"j{number - 1:02}" for number in readable(connection, "jobs", "rowid", 80)}
    assert 40 < len(there) < 80
    with mended(granted, spoilt) as store:
        assert {job.id for job in store.jobs.list_jobs()} == there
        # Nobody is told what is another's.
        for owner in _CHATS:
            assert {store.jobs.get_job(job.id).order.owner for job in store.jobs.list_jobs(owner=owner)} <= {owner}


@pytest.mark.parametrize("where", ["chat_grants", "chat_grants_by_owner", "sqlite_autoindex_chat_grants_1"])
def test_a_grant_that_is_not_said_twice_is_not_believed(granted: str, where: str) -> None:
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(granted, copy, dirs_exist_ok=True)
        path = f"{copy}/perdure.db"
        with open(path, "r+b") as file:
            file.seek((root_of(path, where) - 1) * _PAGE)
            page = file.read(_PAGE)
            assert page.count(b"carol") == len(_CHATS)
            file.seek(-_PAGE, 1)
            file.write(page.replace(b"carol", b"mally"))
        with mended(copy, {leaves_of(path, "turns")[3]}) as store:
            assert grants_of(store) == set(product(_CHATS, _OWNERS))


def test_what_was_taken_back_last_is_not_granted_again(granted: str) -> None:
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        shutil.copytree(granted, first, dirs_exist_ok=True)
        with closing(opened(first)) as store:
            store.chats.revoke_chat("c3", "carol")
            # As a crash leaves it: in the log alone.
            shutil.copytree(first, second, dirs_exist_ok=True)
        assert os.path.getsize(f"{second}/perdure.db-wal") > 0
        with mended(second, {leaves_of(f"{granted}/perdure.db", "turns")[3]}) as store:
            assert grants_of(store) == set(product(_CHATS, _OWNERS)) - {("c3", "carol")}


@pytest.mark.parametrize("is_note_damaged", [False, True])
def test_a_chat_that_was_being_forgotten_does_not_come_back_and_costs_no_other(*, is_note_damaged: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = opened(directory)
        for id in ("c1", "c2"):
            store.chats.begin_chat(a_chat(id))
            store.chats.append_turns(id, [a_turn(f"said in {id}")], at(0))
        ((number,),) = store.driver.fetch("SELECT number FROM chats WHERE id = 'c1'")
        ((other,),) = store.driver.fetch("SELECT number FROM chats WHERE id = 'c2'")
        with store.chats.changing():
            note(store.chats, "c1", other if is_note_damaged else number, 1)
            store.driver.execute("DELETE FROM chats WHERE id = 'c1'")
        ((root,),) = store.driver.fetch("SELECT rootpage FROM sqlite_master WHERE name = 'snapshots_by_time'")
        store.driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store.close()
        with open(f"{directory}/perdure.db", "r+b") as file:
            file.seek((root - 1) * _PAGE)
            file.write(bytes(_PAGE))
        list(repair(f"sqlite://{directory}/perdure.db", directory, at(9)))
        store = opened(directory)
        assert [chat.id for chat in store.chats.list_chats()] == ["c2"]
        assert [turn.content for turn in store.chats.load_turns("c2").turns] == ["said in c2"]
        # What nobody says was to go is kept aside.
        assert store.driver.fetch("SELECT count(*) FROM damaged_turns") == [(int(is_note_damaged),)]
        while go_on(store.chats):
            continue
        assert len(store.chats.load_turns("c2").turns) == 1
        store.close()


@contextmanager
def mended_with_log(
    before: Callable[[Store], object], in_log: Callable[[Store], object], *, in_other: int = 450
) -> Iterator[Store]:
    """A store that somebody had open when an index was damaged, and that was repaired: its log was not emptied since.

    It has the chats c1, which is closed and long enough to be forgotten bit by bit, and c2. `before` is in the file, and
    what `in_log` does in the log alone.
    """
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as left:
        with closing(opened(directory)) as store:
            store.chats.begin_chat(replace(a_chat("c1"), closed_at=at(1)))
            store.chats.begin_chat(a_chat("c2"))
            for id, count in (("c1", 450), ("c2", in_other)):
                store.chats.append_turns(id, [a_turn(f"{each} in {id}") for each in range(count)], at(0))
            before(store)
            ((root,),) = store.driver.fetch("SELECT rootpage FROM sqlite_master WHERE name = 'snapshots_by_time'")
            store.driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            in_log(store)
            shutil.copytree(directory, left, dirs_exist_ok=True)
        path = f"{left}/perdure.db"
        with closing(sqlite3.connect(path)) as other:
            # Whoever has it open: the last to close it would empty the log.
            other.execute("SELECT number FROM chats").fetchall()
            spoil(path, {root - 1}, 1)
            repair(f"sqlite://{path}", left, at(100))
            (log,) = Path(left).glob("perdure.db.damaged-*-wal")
            assert log.stat().st_size > 0
        with closing(opened(left)) as store:
            assert len(store.chats.load_turns("c2").turns) == in_other
            yield store


def nothing(store: Store) -> None:
    pass


def forget(store: Store) -> None:
    store.chats.forget_chat("c1", at=at(2))


def begin_to_forget(store: Store) -> None:
    """As whoever is killed leaves it: with turns that are yet to go, and a note."""
    ((number,),) = store.driver.fetch("SELECT number FROM chats WHERE id = 'c1'")
    with store.chats.changing():
        store.driver.execute("DELETE FROM chats WHERE id = 'c1'")
        begin(store.chats, "c1", number, 1)
        store.chats.tell([chat_events.forgotten("c1", at(2))])


def forget_the_rest(store: Store) -> None:
    while go_on(store.chats):
        continue


def lose_record(store: Store) -> None:
    """As in the midst of the log being emptied, page by page: the turns are there, and neither their chat nor a note."""
    store.driver.execute("DELETE FROM chats WHERE id = 'c1'")


def lose_turns(store: Store) -> None:
    with store.chats.changing():
        store.driver.execute("DELETE FROM turns WHERE id < 2 * 4294967296")
        store.chats.tell([chat_events.forgotten("c1", at(2))])


def come_again(store: Store) -> None:
    forget(store)
    store.chats.import_chat(replace(a_chat("c1"), closed_at=at(3)), [a_turn("again")])


def come_again_untold(store: Store) -> None:
    """As a repair brings a chat in: nothing tells of it."""
    come_again(store)
    ((seq,),) = store.driver.fetch("SELECT max(seq) FROM events WHERE kind = 'chat_forgotten'")
    store.driver.execute("DELETE FROM events WHERE seq > :seq", seq=seq)


def vanish(store: Store) -> None:
    """What no chat that was forgotten looks like: nothing tells of it."""
    store.driver.execute("DELETE FROM turns WHERE id < 2 * 4294967296")
    store.driver.execute("DELETE FROM chats WHERE id = 'c1'")


def vanish_without_turns(store: Store) -> None:
    """What no chat that was forgotten looks like: its turns are there, and no note that they are to go."""
    with store.chats.changing():
        store.driver.execute("DELETE FROM chats WHERE id = 'c1'")
        store.chats.tell([chat_events.forgotten("c1", at(2))])


@pytest.mark.parametrize(
    ("before", "in_log"),
    [
        (nothing, forget),
        (nothing, begin_to_forget),
        (begin_to_forget, forget_the_rest),
        (lose_record, lose_turns),
    ],
)
def test_what_the_log_has_forgotten_does_not_come_back_from_behind_it(
    before: Callable[[Store], object], in_log: Callable[[Store], object]
) -> None:
    with mended_with_log(before, in_log) as store:
        assert [chat.id for chat in store.chats.list_chats()] == ["c2"]
        assert store.driver.fetch("SELECT count(*) FROM damaged_turns") == [(0,)]
        assert store.driver.fetch("SELECT count(*) FROM turns WHERE body LIKE '%in c1%'") == [(0,)]
        assert [each.event.data for each in store.read_events(kinds=[EventKind.CHAT_FORGOTTEN])] == [{"chat": "c1"}]


def test_the_only_chat_in_which_anything_was_said_does_not_come_back_when_it_was_forgotten() -> None:
    with mended_with_log(nothing, forget, in_other=0) as store:
        assert [chat.id for chat in store.chats.list_chats()] == ["c2"]
        assert store.driver.fetch("SELECT count(*) FROM damaged_turns") == [(0,)]


@pytest.mark.parametrize("in_log", [come_again, come_again_untold])
def test_a_chat_that_was_forgotten_and_came_again_is_there(in_log: Callable[[Store], object]) -> None:
    with mended_with_log(nothing, in_log) as store:
        assert {chat.id for chat in store.chats.list_chats()} == {"c1", "c2"}
        assert [turn.content for turn in store.chats.load_turns("c1").turns] == ["again"]


def test_a_chat_that_came_again_and_is_told_to_have_been_forgotten_is_there() -> None:
    with mended_with_log(come_again_untold, lambda store: store.chats.touch_chat("c2", at(4))) as store:
        assert [turn.content for turn in store.chats.load_turns("c1").turns] == ["again"]


@pytest.mark.parametrize("in_log", [vanish, vanish_without_turns])
def test_a_chat_that_the_log_does_not_have_comes_back_where_it_may_not_have_been_forgotten(
    in_log: Callable[[Store], object],
) -> None:
    with mended_with_log(nothing, in_log) as store:
        assert {chat.id for chat in store.chats.list_chats()} == {"c1", "c2"}
        assert len(store.chats.load_turns("c1").turns) == 450


def test_what_was_delivered_of_a_job_is_not_told_again() -> None:
    def order(store: Store) -> None:
        for id in ("j1", "j2"):
            store.jobs.add_job(a_job(id, owner=id))
            store.jobs.change_job(id, begun)
            store.jobs.change_job(id, over)

    def deliver(store: Store) -> None:
        store.jobs.deliver("j1", store.jobs.undelivered("j1")[-1].seq)

    with mended_with_log(order, deliver) as store:
        assert [len(store.jobs.undelivered(owner)) for owner in ("j1", "j2")] == [0, 1]


def spoil_length(path: str) -> None:
    """Let the second of two chats, whose records are on one page, say that its record is longer than any memory."""
    with open(path, "r+b") as file:
        file.seek(start := (root_of(path, "chats") - 1) * _PAGE)
        page = file.read(_PAGE)
        assert (page[0], page[4]) == (0x0D, 2)
        cell = int.from_bytes(page[10:12], "big")
        # How long it is, which one it is, and the beginning of how long its head is.
        file.seek(start + cell)
        file.write(b"\xff" * 19)


def test_a_length_beyond_all_memory_costs_only_what_says_so() -> None:
    with tempfile.TemporaryDirectory() as directory:
        with closing(opened(directory)) as store:
            for id in ("c1", "c2"):
                store.chats.begin_chat(a_chat(id))
                store.chats.append_turns(id, [a_turn(f"said in {id}")], at(0))
            store.driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        spoil_length(f"{directory}/perdure.db")
        with closing(opened(directory)) as store:
            assert {problem.where for problem in store.check() if problem.repairable} == {"database"}
            with pytest.raises(errors.StoreDamaged):
                store.chats.list_chats()
        repair(f"sqlite://{directory}/perdure.db", directory, at(9))
        with closing(opened(directory)) as store:
            assert {chat.id for chat in store.chats.list_chats()} == {"c1", "c2"}
            assert [turn.content for turn in store.chats.load_turns("c1").turns] == ["said in c1"]
            assert [turn.content for turn in store.chats.load_turns("c2", partly=True).turns] == ["said in c2"]


def test_what_the_log_has_changed_of_a_chat_stays_changed() -> None:
    def grant(store: Store) -> None:
        store.chats.grant_chat("c1", "carol")
        store.chats.change_chat("c2", lambda chat: replace(chat, title="before"))

    def change(store: Store) -> None:
        store.chats.revoke_chat("c1", "carol")
        # As many as were there, so that the other is as long as before.
        store.chats.rewrite_turns("c2", 1, [a_turn(f"instead {each}") for each in range(450)], at(2))
        store.chats.change_chat("c2", lambda chat: replace(chat, title="after", closed_at=at(3)))

    with mended_with_log(grant, change) as store:
        assert not store.chats.is_granted("c1", "carol")
        chat = store.chats.get_chat("c2")
        assert (chat.title, chat.closed_at) == ("after", at(3))
        assert {str(turn.content).split()[0] for turn in store.chats.load_turns("c2").turns} == {"instead"}


def test_a_complaint_of_sqlite_that_is_no_text_is_about_damage(granted: str) -> None:
    said = heard(granted, hidden=True)
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(granted, copy, dirs_exist_ok=True)
        path = Path(copy, "perdure.db")
        statement = b"INDEX jobs_by_order"
        # SQLite quotes what it does not understand of it.
        path.write_bytes(path.read_bytes().replace(statement, b"\xff" * len(statement)))
        for read_only in (False, True):
            with pytest.raises(errors.StoreDamaged):
                open_store(f"sqlite://{path}", state_dir=copy, read_only=read_only)
        repair(f"sqlite://{path}", copy, at(100))
        assert heard(copy, hidden=True) == said
