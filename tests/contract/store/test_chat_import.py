"""Chats that come from elsewhere: once, whole, and never mixed with what is here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure import errors
from perdure.chats.importing import Taken, import_chats
from perdure.chats.jsonl import lines_of, read_export
from perdure.chats.service import Chats
from perdure.compat.hermes_database import read_database
from perdure.compat.hermes_sessions import read_directory
from perdure.model.chat import Chat, CloseReason, Kinship, Source, Tokens, Turn
from perdure.model.chat_import import Arrival, Incoming, Mishap, Words
from perdure.model.config import Config
from perdure.store import open_store
from perdure.store.foreign import query
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import Clock, a_chat, a_source, a_turn

SAMPLE = str(Path(__file__).parents[2] / "unit" / "compat" / "samples" / "hermes-0.19.0" / "state.db")
ROOF, ROOF_2 = "20261115_083702_cab80001", "20261115_090000_cab80002"
ANN = {"platform": "telegram", "chat_id": "99", "chat_type": "dm", "user_id": "99", "user_name": "Ann"}


@pytest.fixture
def chats(store: Store) -> Chats:
    """The chats of a new store."""
    return Chats(store.chats, Config(), Clock())


def turns(*texts: str, hidden: str = "") -> tuple[Turn, ...]:
    return tuple(
        a_turn(text, position=place, at=at(place), hidden=text in hidden.split()) for place, text in enumerate(texts, 1)
    )


def coming(id: str = "s1", *texts: str, **changes: Any) -> Incoming:
    """A session of Ann's, in which that was said."""
    words = changes.pop("words", None) or Words(turns=turns(*texts))
    fields: dict[str, Any] = {"opened_at": at(0), "touched_at": at(10), "origin": ANN, **changes}
    return Incoming(id=id, where="there", read=lambda: words, **fields)


def results(taken: Taken) -> dict[str, Arrival]:
    return {each.chat.id: each.result for each in taken.arrived}


def said(store: Store, id: str, *, hidden: bool = False) -> list[object]:
    return [turn.content for turn in store.chats.load_turns(id, hidden=hidden).turns]


def test_a_chat_comes_in_whole_at_the_positions_it_had(store: Store, opened: Callable[[], Store]) -> None:
    chat = a_chat("c1", title="T", tokens=Tokens(input=3), extra={"kept": True})
    told = (a_turn("a", position=1), a_turn("b", position=2, hidden=True), a_turn("c", position=5))
    arrived = store.chats.import_chat(chat, told, next=9)
    assert (arrived.result, arrived.added) == (Arrival.NEW, 3)
    there = opened().chats
    assert there.get_chat("c1") == replace(chat, turns=2) == arrived.chat
    transcript = there.load_turns("c1", hidden=True)
    assert (transcript.turns, transcript.next) == (told, 9)
    assert [found.position for found in there.search_turns("c")] == [5]
    assert store.check() == ()


def test_what_goes_on_there_is_followed_and_nothing_comes_twice(store: Store) -> None:
    book = store.chats
    book.import_chat(a_chat("c1"), turns("a", "b"))
    assert book.import_chat(a_chat("c1"), turns("a", "b")).result is Arrival.UNCHANGED
    grown = book.import_chat(a_chat("c1", touched_at=at(30)), turns("a", "b", "c"))
    assert (grown.result, grown.added, grown.chat.touched_at) == (Arrival.GREW, 1, at(30))
    taken_back = book.import_chat(a_chat("c1"), turns("a", "b", "c", "d", hidden="b c"))
    assert (taken_back.result, taken_back.chat.turns) == (Arrival.GREW, 2)
    assert said(store, "c1") == ["a", "d"]
    # Whoever had read it before learns that it is not what it was.
    with pytest.raises(errors.Conflict):
        book.append_turns("c1", [a_turn("x")], at(40), expect=4)
    assert book.import_chat(a_chat("c1"), turns("a", "b", "c", "d", hidden="b c")).result is Arrival.UNCHANGED
    assert book.search_turns("b") == ()
    assert store.check() == ()


def test_what_is_not_what_it_was_is_left_alone(store: Store) -> None:
    book = store.chats
    book.import_chat(a_chat("c1"), turns("a", "b"))
    asked: list[Chat] = []

    def change(chat: Chat) -> Chat:
        asked.append(chat)
        return replace(chat, title="never")

    assert book.import_chat(a_chat("c1"), turns("a", "x", "c"), change=change).result is Arrival.CHANGED
    book.append_turns("c1", [a_turn("ours")], at(5))
    assert book.import_chat(a_chat("c1"), turns("a", "b", "theirs"), change=change).result is Arrival.CHANGED
    elsewhere = a_chat("c1", source=a_source("bob"))
    assert book.import_chat(elsewhere, turns("a", "b"), change=change).result is Arrival.CHANGED
    assert said(store, "c1") == ["a", "b", "ours"]
    assert (asked, book.get_chat("c1").title) == ([], None)


def test_one_whose_key_has_an_open_chat_comes_in_closed(store: Store) -> None:
    book = store.chats
    book.begin_chat(a_chat("c1", key="k"))
    arrived = book.import_chat(a_chat("c2", key="k", touched_at=at(7)), turns("a"))
    assert (arrived.chat.closed_at, arrived.chat.close_reason) == (at(7), CloseReason.IMPORTED)
    assert book.open_chat("k") == book.get_chat("c1")
    assert book.chats_owed() == ()


def test_a_title_of_another_is_not_taken_and_nothing_is_written(store: Store) -> None:
    store.chats.begin_chat(a_chat("c1", title="T"))
    with pytest.raises(errors.TitleTaken):
        store.chats.import_chat(a_chat("c2", title="T"), turns("a"))
    with pytest.raises(errors.ChatNotFound):
        store.chats.get_chat("c2")


@pytest.mark.parametrize("title", ["T", None])
def test_one_whose_person_is_told_later_is_counted_on_among_theirs(
    chats: Chats, store: Store, monkeypatch: pytest.MonkeyPatch, title: str | None
) -> None:
    import_chats(chats, [coming("s1", "a", title="T", origin={"platform": "telegram"})])
    store.chats.begin_chat(a_chat("c1", title="T", source=Source(platform="telegram", chat_id="99", user_id="99")))
    tried, bring_in = [], store.chats.import_chat

    def counted(*args: Any, **settings: Any) -> object:
        tried.append(args)
        assert len(tried) < 20, "the same is tried again and again"
        return bring_in(*args, **settings)

    monkeypatch.setattr(store.chats, "import_chat", counted)
    taken = import_chats(chats, [coming("s1", "a", "b", title=title)])
    assert (results(taken), taken.mishaps) == ({"s1": Arrival.GREW}, ())
    chat = store.chats.get_chat("s1")
    assert (chat.title, chat.source.user_id, said(store, "s1")) == ("T #2", "99", ["a", "b"])


def test_the_events_tell_what_came_in(store: Store) -> None:
    store.chats.import_chat(a_chat("c1"), turns("a"))
    store.chats.import_chat(a_chat("c1"), turns("a", "b"))
    store.chats.import_chat(a_chat("c1"), turns("a", "b"))
    assert [event.event.kind.value for event in store.read_events()] == ["chat_opened", "chat_said"]


def test_what_hermes_wrote_comes_in_with_keys_of_our_own(chats: Chats, store: Store) -> None:
    taken = import_chats(chats, read_database(SAMPLE, query))
    assert set(results(taken).values()) == {Arrival.NEW}
    assert taken.mishaps == ()
    current = chats.peek(Source(platform="telegram", chat_id="99", user_id="99"))
    assert current is not None
    assert (current.id, current.title, current.follows) == (ROOF_2, "The roof #2", ROOF)
    assert current.kinship is Kinship.CONTINUATION
    before = store.chats.get_chat(ROOF)
    assert (before.key, before.close_reason) == (current.key, CloseReason.COMPRESSED)
    assert before.turns == 5
    assert store.chats.chats_owed() == ()
    asker = Source(platform="telegram", chat_id="99", user_id="99")
    assert chats.find(asker, "The roof").id == ROOF_2
    # Half a place is nobody's.
    lost = store.chats.get_chat("20261115_092000_cab80004")
    assert not lost.is_open
    assert lost.id not in {chat.id for chat in chats.list(replace(asker, chat_id="77", user_id="77"))}
    again = import_chats(chats, read_database(SAMPLE, query))
    assert set(results(again).values()) == {Arrival.UNCHANGED}
    assert store.check() == ()


def test_nothing_is_written_by_a_dry_run(chats: Chats, store: Store) -> None:
    taken = import_chats(chats, read_database(SAMPLE, query), dry_run=True)
    assert set(results(taken).values()) == {Arrival.NEW}
    assert store.chats.count_chats() == 0
    import_chats(chats, [coming("s1", "a")])
    grown = import_chats(chats, [coming("s1", "a", "b"), coming("s2", "x")], dry_run=True)
    assert [(each.chat.id, each.result, each.added) for each in grown.arrived] == [
        ("s1", Arrival.GREW, 1),
        ("s2", Arrival.NEW, 1),
    ]
    assert said(store, "s1") == ["a"]


def test_of_one_conversation_one_chat_is_open(chats: Chats, store: Store) -> None:
    several = [
        coming("s1", "a", touched_at=at(50)),
        coming("s2", "b", touched_at=at(20), is_current=True),
        coming("s3", "c", touched_at=at(30)),
        coming("s4", "d", closed_at=at(60), close_reason=CloseReason.ASKED, touched_at=at(60)),
    ]
    import_chats(chats, several)
    assert [chat.id for chat in store.chats.list_chats(is_open=True)] == ["s2"]
    # One that is open here stays it.
    import_chats(chats, [coming("s5", "e", touched_at=at(99), is_current=True)])
    assert [chat.id for chat in store.chats.list_chats(is_open=True)] == ["s2"]


def test_one_that_has_ended_there_ends_here_unless_it_was_gone_on_with(chats: Chats, store: Store) -> None:
    bob = {**ANN, "chat_id": "7", "user_id": "7"}
    import_chats(chats, [coming("s1", "a"), coming("s2", "a", origin=bob)])
    store.chats.touch_chat("s2", at(500))
    ended = {"closed_at": at(20), "close_reason": CloseReason.ASKED}
    import_chats(chats, [coming("s1", "a", **ended), coming("s2", "a", origin=bob, **ended)])
    assert store.chats.get_chat("s1").close_reason is CloseReason.ASKED
    assert store.chats.get_chat("s2").is_open


def test_tokens_grow_and_a_title_is_counted_on(chats: Chats, store: Store) -> None:
    store.chats.begin_chat(a_chat("c1", title="T", source=Source(platform="telegram", chat_id="99", user_id="99")))
    import_chats(chats, [coming("s1", "a", title="T", tokens=Tokens(input=5, output=5))])
    assert store.chats.get_chat("s1").title == "T #2"
    import_chats(chats, [coming("s1", "a", title="T", tokens=Tokens(input=9, output=1), model="m")])
    chat = store.chats.get_chat("s1")
    assert (chat.title, chat.tokens, chat.model) == ("T #2", Tokens(input=9, output=5), "m")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_session_of_two_places_comes_in_once_with_what_both_know(chats: Chats, store: Store, is_first: bool) -> None:
    index = coming("s1", "a", "b", "c", is_current=True)
    database = coming("s1", "a", "b", origin={"platform": "telegram", "user_id": "99"}, title="T")
    taken = import_chats(chats, [index, database] if is_first else [database, index])
    assert results(taken) == {"s1": Arrival.NEW}
    chat = store.chats.get_chat("s1")
    assert (chat.title, chat.is_open, chat.source.chat_id) == ("T", True, "99")
    assert said(store, "s1") == ["a", "b", "c"]


@pytest.mark.parametrize("other", [{"user_id": "7"}, {"chat_id": 98}, {"platform": "signal"}])
def test_a_session_that_two_are_said_to_have_is_nobodys(chats: Chats, store: Store, other: dict[str, object]) -> None:
    taken = import_chats(chats, [coming("s1", "hi"), coming("s2", "ho"), coming("s1", "hi", origin={**ANN, **other})])
    assert results(taken) == {"s2": Arrival.NEW}
    (mishap,) = taken.mishaps
    assert "more than one conversation is said to go on in session 's1'" in mishap.what
    with pytest.raises(errors.ChatNotFound):
        store.chats.get_chat("s1")
    # The same place, told twice, is one.
    again = import_chats(chats, [coming("s3", "hi"), coming("s3", "hi", origin={**ANN, "chat_id": 99})])
    assert results(again) == {"s3": Arrival.NEW}


def test_where_it_was_held_may_come_later(chats: Chats, store: Store) -> None:
    import_chats(chats, [coming("s1", "a", origin={"platform": "telegram", "user_id": "99"})])
    assert store.chats.get_chat("s1").key == "imported:s1"
    import_chats(chats, [coming("s1", "a", "b")])
    chat = store.chats.get_chat("s1")
    assert (chat.key, chat.is_open) == ("agent:main:telegram:dm:99", False)


def test_what_goes_wrong_costs_only_itself(chats: Chats, store: Store) -> None:
    def unreadable() -> Words:
        raise errors.ImportFailed("It cannot be read.")

    half = Words(turns=turns("a"), mishaps=(Mishap(where="f:2", what="half"),))
    taken = import_chats(
        chats,
        [
            Mishap(where="f", what="broken"),
            coming("../s0", "a"),
            coming("s1", "a", origin={**ANN, "platform": "telegraf"}),
            replace(coming("s2", "a"), read=unreadable),
            coming("s3", words=half),
            coming("s4", words=Words(turns=(a_turn({"deep": float}, position=1), a_turn("b", position=2)))),
            coming("s5", words=Words(turns=(a_turn("\ud83d\ude00", position=1), a_turn("b", position=2)))),
        ],
    )
    assert results(taken) == {"s3": Arrival.NEW, "s4": Arrival.NEW, "s5": Arrival.NEW}
    assert len(taken.mishaps) == 7
    assert store.chats.count_chats() == 3
    assert said(store, "s4") == said(store, "s5") == ["b"]
    changed = import_chats(chats, [coming("s3", "x")])
    assert results(changed) == {"s3": Arrival.CHANGED}
    assert "s3" in changed.mishaps[0].what
    assert said(store, "s3") == ["a"]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"follows": "s1", "kinship": Kinship.CONTINUATION}, "itself"),
        ({"tokens": Tokens(input=-5, output=7)}, "tokens"),
        ({"by_model": {"m": Tokens(input=1, output=1 << 63)}}, "tokens"),
    ],
)
@pytest.mark.parametrize("is_ours", [False, True])
def test_what_cannot_be_about_a_chat_is_left_out_and_told_and_the_chat_comes_in(
    chats: Chats, store: Store, changes: dict[str, Any], word: str, is_ours: bool
) -> None:
    own = {"own": replace(a_chat("s1", turns=1), **changes)} if is_ours else changes
    taken = import_chats(chats, [coming("s1", "a", **own)])
    assert results(taken) == {"s1": Arrival.NEW}
    (mishap,) = taken.mishaps
    assert word in mishap.what
    found = store.chats.get_chat("s1")
    assert (found.follows, found.kinship) == (None, None)
    assert found.tokens == Tokens(output=changes.get("tokens", Tokens()).output)
    assert found.by_model in ({}, {"m": Tokens(input=1)})
    assert said(store, "s1") == ["a"]
    assert [turn.content for each in chats.history(found.source, "s1") for turn in each.turns] == ["a"]


def test_a_directory_that_grows_is_followed(chats: Chats, store: Store, tmp_path: Path) -> None:
    entry = {
        "session_id": "s1",
        "created_at": "2026-02-17T09:00:00",
        "updated_at": "2026-02-17T09:00:00",
        "origin": ANN,
    }
    (tmp_path / "sessions.json").write_text(json.dumps({"agent:main:telegram:dm": entry}))
    lines = [json.dumps({"role": "user", "content": text}) + "\n" for text in ("a", "b", "x" * (10 << 20))]
    (tmp_path / "s1.jsonl").write_text(lines[0] + lines[1][:-5])
    half = import_chats(chats, read_directory(str(tmp_path)))
    assert ([each.added for each in half.arrived], len(half.mishaps)) == ([1], 1)
    (tmp_path / "s1.jsonl").write_text("".join(lines))
    whole = import_chats(chats, read_directory(str(tmp_path)))
    assert [(each.result, each.added) for each in whole.arrived] == [(Arrival.GREW, 2)]
    assert [len(str(text)) for text in said(store, "s1")] == [1, 1, 10 << 20]
    (tmp_path / "s1.jsonl").write_text(lines[1])
    assert results(import_chats(chats, read_directory(str(tmp_path)))) == {"s1": Arrival.CHANGED}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
texts = st.none() | st.text(max_size=8)
some_turns = st.lists(
    st.builds(
        Turn,
        position=st.just(0),
        role=st.text(max_size=8),
        content=json_values,
        at=st.datetimes().map(lambda moment: moment.replace(tzinfo=at(0).tzinfo)),
        tool_name=texts,
        tool_call_id=texts,
        tool_calls=st.lists(json_values, max_size=2).map(tuple),
        attachments=st.lists(st.dictionaries(st.text(max_size=5), json_values, max_size=2), max_size=2).map(tuple),
        tokens=st.none() | st.integers(0, 2**40),
        model=texts,
        hidden=st.booleans(),
        extra=st.dictionaries(st.text(max_size=5), json_values, max_size=2),
    ),
    max_size=5,
)


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Store]:
    """A second store, in a file."""
    other = open_store(f"sqlite://{tmp_path}/other.db", state_dir=str(tmp_path / "other"))
    yield other
    other.close()


@given(
    told=some_turns,
    gaps=st.lists(st.integers(1, 3), min_size=6, max_size=6),
    extra=st.dictionaries(st.text(max_size=5), json_values, max_size=2),
    is_open=st.booleans(),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_exported_comes_back_the_same(
    store: Store,
    another: Store,
    tmp_path: Path,
    told: list[Turn],
    gaps: list[int],
    extra: dict[str, object],
    is_open: bool,
) -> None:
    id = f"c{store.chats.count_chats()}"
    position, placed = 0, []
    for turn, gap in zip(told, gaps, strict=False):
        position += gap
        placed.append(replace(turn, position=position))
    chat = a_chat(id, extra=extra, title=f"T {id}", by_model={"m": Tokens(input=1)})
    if not is_open:
        chat = replace(chat, closed_at=at(5), close_reason=CloseReason.IDLE, flushed_at=at(6), follows="c", notice=None)
    store.chats.import_chat(chat, placed, next=position + gaps[-1])
    transcript = store.chats.load_turns(id, hidden=True)
    path = tmp_path / "chat.jsonl"
    path.write_bytes(b"".join(lines_of(store.chats.get_chat(id), transcript)))
    taken = import_chats(Chats(another.chats, Config(), Clock()), [read_export(str(path))])
    assert taken.mishaps == ()
    assert another.chats.get_chat(id) == store.chats.get_chat(id)
    assert another.chats.load_turns(id, hidden=True) == transcript
    again = import_chats(Chats(another.chats, Config(), Clock()), [read_export(str(path))])
    assert results(again) == {id: Arrival.UNCHANGED}
    assert another.chats.get_chat(id) == store.chats.get_chat(id)
