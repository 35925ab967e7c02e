"""Searching what was said: everything that was said by now, whatever is typed."""

from __future__ import annotations

import threading
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure import errors
from perdure.model.chat_owner import owner_of, reaches_of
from perdure.store.chats import ChatBook
from perdure.store.read_only import open_read_only
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import a_chat, a_source, a_turn
from tests.contract.store.conftest import Place
from tests.waiting import wait_for

#: So that no example of a property finds what another has said.
EXAMPLES = count(100)
FIRST = datetime(2025, 12, 30, tzinfo=UTC)
SAID = (
    ("c1", "user", "The roof needs new tiles, see roof-plan_v2.txt", 1),
    ("c1", "assistant", "Which tiles do you want? Slate or clay?", 2),
    ("c2", "user", "My caf\u00e9 in Z\u00dcRICH has no roof at all", 3),
    ("c2", "tool", [{"type": "text", "text": "\u6211\u4eec\u5728\u6771\u4eac\u8bf4\u8bdd"}], 4),
    ("c3", "user", "tilesmith ranked tiles tiles tiles", 5),
)


@pytest.fixture
def book(store: Store) -> ChatBook:
    """A store in which two people have said something."""
    store.chats.begin_chat(a_chat("c1"))
    store.chats.begin_chat(a_chat("c2", source=a_source("bob", platform="slack")))
    store.chats.begin_chat(a_chat("c3", title="Tiles"))
    for id, role, content, second in SAID:
        store.chats.append_turns(id, [a_turn(content, role, at=at(second))], at(second))
    return store.chats


def where(book: ChatBook, query: str, **filters: object) -> list[tuple[str, int]]:
    found = book.search_turns(query, **filters)  # type: ignore[arg-type]
    return sorted((each.chat, each.position) for each in found)


def test_words_phrases_beginnings_alternatives_and_exclusions(book: ChatBook) -> None:
    assert where(book, "tiles") == [("c1", 1), ("c1", 2), ("c3", 1)]
    assert where(book, "TILES roof") == [("c1", 1)]
    assert where(book, '"new tiles"') == [("c1", 1)]
    assert where(book, '"tiles new"') == []
    assert where(book, "tile*") == [("c1", 1), ("c1", 2), ("c3", 1)]
    assert where(book, "tilesm*") == [("c3", 1)]
    assert where(book, "tilesm") == []
    assert where(book, "slate OR caf\u00e9") == [("c1", 2), ("c2", 1)]
    assert where(book, "tiles -roof") == [("c1", 2), ("c3", 1)]
    assert where(book, "tiles NOT roof NOT slate") == [("c3", 1)]
    assert where(book, "roof-plan_v2.txt") == [("c1", 1)]
    assert where(book, "cafe z\u00fcrich") == [("c2", 1)]


def test_a_role_is_looked_for_as_such_and_is_no_word(book: ChatBook) -> None:
    for role in ("Tool Result", "toolresult", "\u5de5\u5177", ""):
        book.append_turns("c1", [a_turn("mortar", role)], at(9))
    assert where(book, "tiles", role="user") == [("c1", 1), ("c3", 1)]
    assert where(book, "tiles -roof", role="user") == [("c3", 1)]
    assert where(book, "slate OR roof", role="assistant") == [("c1", 2)]
    assert where(book, "tiles", role="nobody") == []
    assert [
        len(where(book, "mortar", role=role)) for role in ("Tool Result", "toolresult", "\u5de5\u5177", "", "tool")
    ] == [1, 1, 1, 1, 0]
    assert where(book, "toolresult") == where(book, "user") == where(book, ":user") == where(book, "assist*") == []


def test_scripts_without_spaces(book: ChatBook) -> None:
    assert where(book, "\u6771\u4eac") == [("c2", 2)]
    assert where(book, "\u4eac\u6771") == []


def test_filters(book: ChatBook) -> None:
    assert where(book, "roof", platform="slack") == [("c2", 1)]
    assert where(book, "roof", participant="alice") == [("c1", 1)]
    assert where(book, "tiles", role="assistant") == [("c1", 2)]
    assert where(book, "tiles", since=at(2)) == [("c1", 2), ("c3", 1)]
    assert where(book, "tiles", until=at(2)) == [("c1", 1)]
    assert where(book, "tiles", chat="c3") == [("c3", 1)]
    assert len(where(book, "tiles", limit=2)) == 2


def test_only_what_somebody_reaches_or_was_granted_is_found(book: ChatBook) -> None:
    bob = a_source("bob", platform="slack")
    mine = {"reaches": reaches_of(bob), "owner": owner_of(bob)}
    assert where(book, "roof", **mine) == [("c2", 1)]
    book.grant_chat("c1", owner_of(bob))
    assert where(book, "roof", **mine) == [("c1", 1), ("c2", 1)]
    assert where(book, "roof", reaches=(), owner=None) == []


def test_the_best_comes_first_with_some_of_its_text(book: ChatBook) -> None:
    first = book.search_turns("tiles")[0]
    assert (first.chat, first.position, first.title, first.role) == ("c3", 1, "Tiles", "user")
    assert [first.snippet[start:end] for start, end in first.marks] == ["tiles", "tiles", "tiles"]
    book.append_turns("c1", [a_turn("word " * 500 + "N\u00c9EDLE\n" + "word " * 500)], at(9))
    (found,) = book.search_turns("needle")
    assert len(found.snippet) < 200
    assert [found.snippet[start:end] for start, end in found.marks] == ["N\u00c9EDLE"]
    assert "\n" not in found.snippet


def test_what_was_taken_back_is_not_found_and_what_took_its_place_is(book: ChatBook) -> None:
    assert len(where(book, "tiles", chat="c1")) == 2
    book.rewrite_turns("c1", 2, [a_turn("Copper then")], at(9))
    assert where(book, "tiles", chat="c1") == [("c1", 1)]
    assert where(book, "copper") == [("c1", 4)]


def test_what_tools_were_called_with_is_found(book: ChatBook) -> None:
    turn = a_turn(None, "assistant", tool_calls=({"name": "read", "arguments": {"path": "gutter.md"}},))
    book.append_turns("c1", [turn], at(9))
    assert where(book, "gutter") == [("c1", 3)]


@pytest.mark.parametrize("query", ["", "   ", '""', "*", "-roof", "AND", "NOT roof", "!!! ???", "'", '"'])
def test_without_a_word_to_look_for_it_is_one_sentence(book: ChatBook, query: str) -> None:
    with pytest.raises(errors.UsageError, match="no word"):
        book.search_turns(query)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(st.characters(), max_size=40) | st.text("ab\"'*-():^{}|&!<>\\ORAND %\0", max_size=30))
@pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
def test_no_query_is_malformed(book: ChatBook, query: str) -> None:
    with suppress(errors.UsageError):
        book.search_turns(query)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(), min_size=1, max_size=60))
@pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
def test_whatever_was_said_is_found_by_its_own_words(book: ChatBook, text: str) -> None:
    position = book.append_turns("c1", [a_turn(text)], at(0))
    try:
        found = book.search_turns(f'"{text.replace(chr(34), " ")}"', limit=10_000)
    except errors.UsageError:
        return
    assert ("c1", position) in {(each.chat, each.position) for each in found}


def test_it_is_indexed_in_the_background_where_threads_are_allowed(threaded: Store) -> None:
    threaded.chats.begin_chat(a_chat())
    threaded.chats.append_turns("c1", [a_turn("tiles")], at(0))
    wait_for(lambda: threaded.driver.fetch("SELECT searchable, next FROM chats") == [(2, 2)], "it to be indexed")
    assert not threaded.chats.index_turns()


def test_it_is_the_same_who_indexes_what_comes_later_unless_that_takes_long(
    threaded: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever appends waits until a new one has begun: that is to happen seldom, but nobody stays for ever."""

    def said() -> threading.Thread | None:
        position = threaded.chats.append_turns("c1", [a_turn("tiles")], at(0))
        wait_for(lambda: threaded.driver.fetch("SELECT searchable FROM chats") == [(position + 1,)], "the index")
        return threaded.chats._indexer

    threaded.chats.begin_chat(a_chat())
    indexer = said()
    assert indexer is not None
    assert indexer.is_alive()
    assert said() is indexer
    monkeypatch.setattr("perdure.store.search._RESTING", 0.01)
    assert said() in (indexer, None)
    indexer.join(60)
    assert not indexer.is_alive()
    assert said() is not indexer


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_an_index_that_is_damaged_is_made_anew(book: ChatBook) -> None:
    assert len(where(book, "tiles")) == 3
    book.driver.execute("UPDATE turn_terms_data SET block = :block", block=b"spoilt")
    book.driver.execute("PRAGMA wal_checkpoint")
    store = Store(book.driver, "")
    assert len(where(store.chats, "tiles")) == 3


def test_as_many_are_found_as_are_wanted(store: Store) -> None:
    store.chats.begin_chat(a_chat("c1"))
    store.chats.append_turns("c1", [a_turn("mortar", at=at(0))] * 250, at(0))
    assert len(store.chats.search_turns("mortar", limit=1000)) == 250
    assert len(store.chats.search_turns("mortar", limit=3)) == 3
    assert len(store.chats.search_turns("mortar", chat="c1", limit=1000)) == 250


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_between_two_moments_exactly_that_is_found_that_was_said_then(store: Store, data: st.DataObject) -> None:
    id = f"c{next(EXAMPLES)}"
    store.chats.begin_chat(a_chat(id))
    # In any order: clocks are wrong at times.
    moments = st.integers(0, 35 * 24 * 3600).map(lambda seconds: FIRST + timedelta(seconds=seconds))
    times = data.draw(st.lists(moments, min_size=1, max_size=12))
    since, until = (data.draw(st.sampled_from(times) | moments | st.none()) for _ in range(2))
    store.chats.append_turns(id, [a_turn("mortar", at=each) for each in times], at(0))
    found = {each.position for each in store.chats.search_turns("mortar", chat=id, since=since, until=until)}
    assert found == {
        position
        for position, each in enumerate(times, 1)
        if (since is None or since <= each) and (until is None or each < until)
    }


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize("days", [(0, 2), (150, 151), (399, None)])
def test_what_was_said_at_other_times_costs_next_to_nothing(store: Store, days: tuple[int, int | None]) -> None:
    store.chats.begin_chat(a_chat("c1"))
    day = timedelta(days=1)
    turns = [a_turn("mortar", at=at(0) + day * (each // 10)) for each in range(4000)]
    store.chats.append_turns("c1", turns, at(0))
    assert len(store.chats.search_turns("mortar", limit=5000)) == 4000
    since, until = at(0) + day * days[0], None if days[1] is None else at(0) + day * days[1]
    steps = [0]

    def step() -> None:
        steps[0] += 1

    # How much the database has to do, rather than how long that takes.
    connection = cast(Any, store.driver)._connection
    connection.set_progress_handler(step, 100)
    found = store.chats.search_turns("mortar", since=since, until=until, limit=100)
    connection.set_progress_handler(None, 0)
    assert len(found) == 10 * (1 if days[1] is None else days[1] - days[0])
    assert steps[0] < 100


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_what_was_indexed_by_an_earlier_version_is_found_by_time_too(place: Place) -> None:
    with closing(place.open()) as store:
        store.chats.begin_chat(a_chat("c1"))
        store.chats.append_turns("c1", [a_turn("mortar", at=at(0))], at(0))
        assert len(store.chats.search_turns("mortar")) == 1
        # As it was before turns were indexed by their times.
        store.driver.execute("DROP TABLE turn_terms")
        store.driver.execute("CREATE VIRTUAL TABLE turn_words USING fts5 (words, content = '')")
    with closing(place.open()) as store:
        assert len(store.chats.search_turns("mortar", since=at(0), until=at(1))) == 1
        assert store.check() == ()
        assert store.driver.fetch("SELECT name FROM sqlite_master WHERE name LIKE 'turn_words%'") == []


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_where_nothing_can_be_written_what_is_indexed_is_found_and_else_it_is_said(place: Place) -> None:
    with closing(place.open()) as store:
        store.chats.begin_chat(a_chat("c1"))
        store.chats.append_turns("c1", [a_turn("mortar")], at(0))
    reading = open_read_only(place.url, place.state_dir)
    with closing(reading), pytest.raises(errors.StoreUnusable, match="has never been searched"):
        reading.chats.search_turns("mortar")
    with closing(place.open()) as store:
        assert len(store.chats.search_turns("mortar")) == 1
    with closing(open_read_only(place.url, place.state_dir)) as reading:
        assert len(reading.chats.search_turns("mortar")) == 1


def test_few_turns_are_indexed_at_once_where_they_are_large(store: Store) -> None:
    """Whoever appends meanwhile waits for a step, and for no more."""
    store.chats.begin_chat(a_chat("c1"))
    sizes = (1, 200_000, 200_000, 200_000, 900_000, 300_000, 100_000, 1)
    store.chats.append_turns(
        "c1", [a_turn(f"tiles {number} " + "x" * size) for number, size in enumerate(sizes)], at(0)
    )
    found, steps = 0, []
    while store.chats.index_turns():
        ((searchable,),) = store.driver.fetch("SELECT searchable FROM chats")
        steps.append(searchable - 1 - found)
        found = searchable - 1
    assert steps == [3, 1, 1, 3]
    assert len(store.chats.search_turns("tiles")) == len(sizes)
