"""Text that is no UTF-8 any more, as one flipped bit leaves it: it costs the row it is in, and nothing else."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from msgspec.structs import replace

from perdure import errors
from perdure.chats.service import Chats
from perdure.model.chat import Chat, CloseReason
from perdure.model.config import Config
from perdure.store import open_store
from perdure.store.repair import repair
from perdure.store.store import Store
from tests.builders import a_capture, at
from tests.conftest import PrivateHome
from tests.contract.store.chats import Clock, a_chat, a_source, a_turn
from tests.contract.store.jobs import a_job
from tests.contract.store.runs import a_run, an_event
from tests.perdure_cli import Perdure

SPAN = 1 << 32


class Spoiling:
    """An SQLite store of three chats, of which single bits can be flipped."""

    def __init__(self, state: str) -> None:
        self.state = state
        self.path = os.path.join(state, "perdure.db")
        self.url = f"sqlite://{self.path}"
        self.opened: list[Store] = []
        store = open_store(self.url, state_dir=state)
        for id in ("c1", "c2", "c3"):
            source = a_source(id)
            store.chats.begin_chat(a_chat(id, title=f"title {id}", source=source))
            store.chats.append_turns(id, [a_turn(f"slate {id} {text}") for text in "abc"], at(1))
        for id in ("c2", "c3"):
            store.chats.change_chat(id, closed)
        store.close()

    def open(self, *, threads: bool = False) -> Store:
        self.opened.append(open_store(self.url, state_dir=self.state, threads=threads))
        return self.opened[-1]

    def flip(self, table: str, column: str, where: str, place: int = 3) -> None:
        """Flip the highest bit of one byte of a text, in the table and in whatever indexes have it."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            sql = f"SELECT rowid, CAST({column} AS BLOB) FROM {table} WHERE {where} LIMIT 1"
            ((row, raw),) = connection.execute(sql).fetchall()
            spoilt = bytearray(raw)
            spoilt[min(place, len(raw) - 1)] ^= 0x80
            connection.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE rowid = ?", (bytes(spoilt), row))

    def number(self, id: str) -> int:
        with closing(sqlite3.connect(self.path)) as connection:
            return int(connection.execute("SELECT number FROM chats WHERE id = ?", (id,)).fetchone()[0])


def closed(chat: Chat) -> Chat:
    return replace(chat, closed_at=at(2), close_reason=CloseReason.ASKED)


@pytest.fixture
def spoiling(private_home: PrivateHome) -> Iterator[Spoiling]:
    made = Spoiling(private_home.state)
    yield made
    for store in made.opened:
        store.close()


def said(store: Store, id: str, **how: bool) -> list[object]:
    return [turn.content for turn in store.chats.load_turns(id, **how).turns]


def everything(id: str) -> list[object]:
    return [f"slate {id} {text}" for text in "abc"]


@pytest.mark.parametrize("column", ["role", "at"])
@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_spoilt_turn_costs_only_itself(spoiling: Spoiling, column: str, is_indexed: bool) -> None:
    if is_indexed:
        spoiling.open().chats.index_whole()
    spoiling.flip("turns", column, f"id = {spoiling.number('c1') * SPAN + 2}")
    store = spoiling.open(threads=True)
    with pytest.raises(errors.ChatDamaged, match="c1"):
        store.chats.load_turns("c1")
    with pytest.raises(errors.ChatDamaged, match="c1"):
        store.chats.begin_chat(a_chat("c4"), copy="c1")
    left = store.chats.load_turns("c1", partly=True)
    assert ([turn.content for turn in left.turns], left.missing) == (["slate c1 a", "slate c1 c"], 1)
    assert said(store, "c2") == everything("c2")
    assert store.chats.append_turns("c1", [a_turn("copper")], at(3)) == 4
    assert [found.position for found in store.chats.search_turns("copper")] == [4]
    assert len(store.chats.search_turns("slate", chat="c2")) == 3
    assert [found.position for found in store.chats.search_turns("slate", chat="c1")] == [3, 1]
    assert [problem.where for problem in store.check()] == ["turn 2 of chat c1"]
    assert len(repair(spoiling.url, spoiling.state, at(60))) == 1
    assert [(problem.where, problem.repairable) for problem in store.check()] == [("chat c1", False)]
    assert said(store, "c1", partly=True) == ["slate c1 a", "slate c1 c", "copper"]
    store.chats.rebuild_index()
    assert len(store.chats.search_turns("slate")) == 8


#: The bytes that are spoilt: also what stands between a date and a time, which Python takes for anything.
COLUMNS = [
    ("id", 1),
    ("key", 3),
    ("title", 3),
    ("touched_at", 3),
    ("touched_at", 10),
    ("closed_at", 3),
    ("closed_at", 10),
]


@pytest.mark.parametrize(("column", "place"), COLUMNS)
def test_a_spoilt_record_costs_only_its_chat(spoiling: Spoiling, column: str, place: int) -> None:
    spoiling.flip("chats", column, "id = 'c2'", place)
    store = spoiling.open(threads=True)
    chats = Chats(store.chats, Config(), Clock())
    assert {chat.id for chat in store.chats.list_chats()} == {"c1", "c3"}
    assert [chat.id for chat in store.chats.chats_titled(None, "title c1")] == ["c1"]
    assert said(store, "c1") == everything("c1")
    assert chats.open(a_source("someone")).is_open
    assert store.chats.append_turns("c1", [a_turn("copper")], at(3)) == 4
    assert [found.chat for found in store.chats.search_turns("copper")] == ["c1"]
    assert {found.chat for found in store.chats.search_turns("slate")} >= {"c1", "c3"}
    assert store.read_events(limit=1000)
    assert [(problem.where, problem.repairable) for problem in store.check()] == [("chat c2", True)]
    with pytest.raises((errors.ChatDamaged, errors.ChatNotFound)):
        store.chats.get_chat("c2")
    (action,) = repair(spoiling.url, spoiling.state, at(60))
    assert "the damaged record of chat c2" in action
    assert store.check() == ()
    # Nobody's, and closed: but all that was said is there under its id.
    assert said(store, "c2") == everything("c2")
    assert store.chats.get_chat("c2").source.user_id is None
    assert {found.chat for found in store.chats.search_turns("slate")} == {"c1", "c2", "c3"}
    with closing(sqlite3.connect(spoiling.path)) as connection:
        assert connection.execute("SELECT count(*) FROM damaged_chats").fetchone() == (1,)


@pytest.mark.parametrize("column", ["reach", "owner", "platform", "participant", "opened_at"])
def test_a_chat_that_cannot_be_found_any_more_is_named_and_filed_as_its_record_says(
    spoiling: Spoiling, column: str
) -> None:
    store = spoiling.open()
    before = store.driver.fetch("SELECT * FROM chats ORDER BY number")
    spoiling.flip("chats", column, "id = 'c2'")
    assert [(problem.where, problem.repairable) for problem in store.check()] == [("chat c2", True)]
    assert repair(spoiling.url, spoiling.state, at(60)) == ("Filed chat c2 anew, as its record says.",)
    assert store.check() == ()
    assert store.driver.fetch("SELECT * FROM chats ORDER BY number") == before


def test_what_is_said_in_a_chat_whose_time_is_spoilt_is_kept_and_holds_up_nobody(spoiling: Spoiling) -> None:
    spoiling.flip("chats", "touched_at", "id = 'c1'")
    store = spoiling.open(threads=True)
    assert store.chats.append_turns("c1", [a_turn("copper")], at(3)) == 4
    assert store.chats.append_turns("c3", [a_turn("zinc")], at(3)) == 4
    store.chats.begin_chat(a_chat("c5"))
    # The same in a store that tells at once.
    store = spoiling.open()
    assert store.chats.append_turns("c3", [a_turn("lead")], at(4)) == 5
    assert [event.event.data["chat"] for event in store.read_events(limit=1000) if event.event.at == at(4)] == ["c3"]
    assert said(store, "c1") == [*everything("c1"), "copper"]


@pytest.mark.parametrize("column", ["happened_at", "kind"])
def test_a_spoilt_event_costs_only_itself(spoiling: Spoiling, column: str) -> None:
    store = spoiling.open()
    store.record([a_run()], [an_event(), an_event()])
    before = [each.seq for each in store.read_events(limit=1000)]
    spoiling.flip("events", column, f"seq = {before[-2]}")
    assert [each.seq for each in store.read_events(limit=1000)] == [*before[:-2], before[-1]]
    assert [problem.where for problem in store.check()] == [f"event {before[-2]}"]
    assert repair(spoiling.url, spoiling.state, at(60)) == (f"Set the damaged event {before[-2]} aside.",)
    assert store.check() == ()


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("snapshots", "id"),
        ("snapshots", "host"),
        ("snapshots", "taken_at"),
        ("scrollbacks", "digest"),
        ("runs", "host"),
        ("jobs", "id"),
        ("jobs", "place"),
    ],
)
def test_any_other_spoilt_row_is_named_and_set_aside(spoiling: Spoiling, table: str, column: str) -> None:
    store = spoiling.open()
    store.save_snapshot(a_capture(session="a", seconds=1, scrollback={"%0": "d1"}), {"d1": b"one"})
    store.save_snapshot(a_capture(session="b", seconds=2, scrollback={"%0": "d1"}), {"d1": b"one"})
    store.record([a_run()], [])
    store.jobs.add_job(a_job())
    spoiling.flip(table, column, "1 = 1", 1)
    assert store.check()
    assert repair(spoiling.url, spoiling.state, at(60))
    assert store.check() == ()
    with closing(sqlite3.connect(spoiling.path)) as connection:
        assert connection.execute(f"SELECT count(*) FROM damaged_{table}").fetchone() == (1,)


def test_spoilt_text_leaves_every_program_a_sentence(spoiling: Spoiling, perdure: Perdure) -> None:
    spoiling.flip("chats", "id", "id = 'c2'", 1)
    spoiling.flip("chats", "title", "id = 'c3'")
    spoiling.flip("turns", "at", f"id = {spoiling.number('c1') * SPAN + 2}")
    for command, codes in (
        ("check", {4}),
        ("check --json", {4}),
        ("chats ls --all", {0}),
        ("chats ls --all --json", {0}),
        ("chats search slate", {0}),
        ("chats search slate --json", {0}),
        ("chats show c3", {4, 5, 6}),
        ("chats show c1 --json", {4, 5, 6}),
        ("events --after 0", {0}),
        ("check --repair --json", {4}),
        ("check", {4}),
    ):
        ran = perdure(*command.split())
        assert "Traceback" not in ran.err, f"{command}: {ran.err}"
        assert ran.code in codes, f"{command}: {ran}"


def test_a_database_that_is_damaged_otherwise_gives_its_spoilt_rows_up_one_by_one(spoiling: Spoiling) -> None:
    spoiling.flip("turns", "role", f"id = {spoiling.number('c1') * SPAN + 2}")
    spoiling.flip("chats", "title", "id = 'c2'")
    with closing(sqlite3.connect(spoiling.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = 'chats_by_key'")
    assert "database" in [problem.where for problem in spoiling.open().check()]
    repair(spoiling.url, spoiling.state, at(60))
    store = spoiling.open()
    assert said(store, "c3") == everything("c3")
    assert said(store, "c2", partly=True) == everything("c2")
    assert said(store, "c1", partly=True) == ["slate c1 a", "slate c1 c"]
    with closing(sqlite3.connect(spoiling.path)) as connection:
        connection.text_factory = bytes
        assert [row[0] for row in connection.execute("SELECT role FROM damaged_turns")] == [b"use\xf2"]
