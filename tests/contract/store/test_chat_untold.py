"""What was said is told soon after, once, and before whatever happens to the chat next."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from perdure import errors
from perdure.store import migrations, open_store
from perdure.store.chat_rows import ready
from perdure.store.chats import ChatBook
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import a_chat, a_turn
from tests.contract.store.conftest import Place
from tests.contract.store.test_chat_events import told
from tests.contract.store.test_schema import NEWEST


@pytest.fixture
def silent(threaded: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store whose process ends before anything is told in the background."""
    monkeypatch.setattr(threaded.chats, "wake_indexer", lambda: None)
    threaded.chats.begin_chat(a_chat("c1"))
    threaded.chats.begin_chat(a_chat("c2"))
    threaded.chats.append_turns("c1", [a_turn("a")], at(1))
    threaded.chats.append_turns("c2", [a_turn("b")] * 2, at(2))
    threaded.chats.append_turns("c1", [a_turn("c")] * 3, at(3))
    return threaded


SAID = [
    ("chat_said", {"chat": "c2", "first": 1, "last": 2}),
    ("chat_said", {"chat": "c1", "first": 1, "last": 4}),
]


def test_whoever_reads_events_is_told_what_was_said_before_and_once(place: Place, silent: Store) -> None:
    other = place.open()
    assert other.last_event() == 4
    assert told(other, 2) == told(silent, 2) == SAID
    assert [each.event.at for each in other.read_events(after=2)] == [at(2), at(3)]
    silent.chats.append_turns("c2", [a_turn("d")], at(4))
    assert told(other, 4) == [("chat_said", {"chat": "c2", "first": 3, "last": 3})]
    assert told(silent, 5) == []
    other.close()


def test_one_that_does_not_tell_later_tells_first_what_others_said(place: Place, silent: Store) -> None:
    other = place.open()
    other.chats.append_turns("c1", [a_turn("d")], at(9))
    assert told(silent, 2) == [*SAID, ("chat_said", {"chat": "c1", "first": 5, "last": 5})]
    assert told(other, 5) == []
    other.close()


def test_what_was_said_is_told_before_what_happens_next(silent: Store) -> None:
    silent.chats.change_chat("c1", lambda chat: replace(chat, title="Roof"), at=at(5))
    silent.chats.rewrite_turns("c2", 1, [a_turn("B")], at(6))
    assert told(silent, 2) == [
        *SAID,
        ("chat_titled", {"chat": "c1", "title": "Roof"}),
        ("chat_taken_back", {"chat": "c2", "start": 1, "count": 2, "first": 4, "last": 4}),
    ]
    silent.chats.append_turns("c2", [a_turn("d")], at(7))
    assert told(silent, 6) == [("chat_said", {"chat": "c2", "first": 5, "last": 5})]


def test_what_was_said_is_told_when_the_store_is_closed(place: Place) -> None:
    store = open_store(place.url, state_dir=place.state_dir, threads=True)
    store.chats.begin_chat(a_chat())
    store.chats.append_turns("c1", [a_turn("a")], at(1))
    store.close()
    reader = open_store(place.url, state_dir=place.state_dir, read_only=True)
    assert told(reader, 1) == [("chat_said", {"chat": "c1", "first": 1, "last": 1})]
    reader.close()


def test_one_who_may_not_write_reads_what_was_told(place: Place, silent: Store) -> None:
    reader = open_store(place.url, state_dir=place.state_dir, read_only=True)
    assert [kind for kind, _ in told(reader)] == ["chat_opened", "chat_opened"]
    assert reader.last_event() == 2
    assert reader.chats.load_turns("c1").next == 5
    reader.close()
    assert told(silent, 2) == SAID


def test_events_can_be_read_where_nothing_can_be_written(silent: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise errors.StoreUnusable("no room")

    with monkeypatch.context() as failing:
        failing.setattr(silent, "keep_events", fail)
        assert [kind for kind, _ in told(silent)] == ["chat_opened", "chat_opened"]
    assert told(silent, 2) == SAID


def test_what_is_untold_is_found_and_indexed_whichever_comes_first(silent: Store) -> None:
    assert len(silent.chats.search_turns("c")) == 3
    assert told(silent, 2) == SAID
    silent.chats.append_turns("c1", [a_turn("e")], at(5))
    assert told(silent, 4) == [("chat_said", {"chat": "c1", "first": 5, "last": 5})]
    assert len(silent.chats.search_turns("e")) == 1
    assert not silent.chats.index_turns()
    assert silent.driver.fetch("SELECT count(*) FROM chats WHERE behind = 1") == [(0,)]


@pytest.mark.unmade
def test_a_store_from_before_tells_nothing_twice_and_finds_what_was_not_indexed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        every = migrations.known
        earlier.setattr(migrations, "known", lambda dialect: {step: every(dialect)[step] for step in range(1, 6)})
        # In those days nobody asked what is untold.
        earlier.setattr(ChatBook, "changing", ChatBook.alone)
        old = place.open()
        old.chats.begin_chat(a_chat("c1"))
        # As it was written in those days.
        spot = "UPDATE chats SET next = 3, turns = 2 WHERE id = 'c1'"
        with old.driver.transaction():
            rows = [ready(a_turn("roof")).row("c1", 1, position) for position in (1, 2)]
            old.driver.execute_many(old.chats.sql["insert_turn"], rows)
            old.driver.execute(spot)
        old.driver.close()
    store = place.open()
    assert migrations.version(store.driver) == NEWEST
    assert [kind for kind, _ in told(store)] == ["chat_opened"]
    assert len(store.chats.search_turns("roof")) == 2
    assert store.chats.append_turns("c1", [a_turn("tiles")], at(3), expect=3) == 3
    assert told(store, 1) == [("chat_said", {"chat": "c1", "first": 3, "last": 3})]
    assert store.check() == ()
    store.close()
