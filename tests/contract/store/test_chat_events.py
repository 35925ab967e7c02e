"""What happens to chats is written down with it, in order, and never what was said."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from perdure import errors
from perdure.model.chat import CloseReason, Kinship
from perdure.model.event import Event, EventKind
from perdure.store.appends import Append
from perdure.store.chat_rows import ready
from perdure.store.rows import canonical
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import a_chat, a_source, a_turn
from tests.contract.store.conftest import Place

Told = list[tuple[str, dict[str, object]]]


def told(store: Store, after: int = 0) -> Told:
    """Every event behind a number: its kind, and what it says."""
    return [(str(each.event.kind), dict(each.event.data)) for each in store.read_events(after=after)]


def test_a_chat_is_told_from_its_beginning_to_its_end(store: Store) -> None:
    book = store.chats
    first = book.begin_chat(a_chat())
    book.append_turns("c1", [a_turn("a"), a_turn("b", "assistant")], at(1))
    book.change_chat("c1", lambda chat: replace(chat, title="Roof"), at=at(2))
    book.rewrite_turns("c1", 2, [a_turn("B")], at(3))
    book.undo_turns("c1", 1, at(4))
    shorter = a_chat("c2", key="key-c1", follows="c1", kinship=Kinship.CONTINUATION, opened_at=at(5))
    assert first is not None
    book.begin_chat(shorter, instead_of=book.open_chat("key-c1"), reason=CloseReason.COMPRESSED, turns=[a_turn("s")])
    book.switch_chat(book.get_chat("c1"), "key-c1", at(6), instead_of=book.get_chat("c2"))
    book.forget_chat("c2", at=at(7))
    assert told(store) == [
        ("chat_opened", {"chat": "c1", "platform": "telegram", "type": "dm", "turns": 0}),
        ("chat_said", {"chat": "c1", "first": 1, "last": 2}),
        ("chat_titled", {"chat": "c1", "title": "Roof"}),
        ("chat_taken_back", {"chat": "c1", "start": 2, "count": 1, "first": 4, "last": 4}),
        ("chat_taken_back", {"chat": "c1", "start": 4, "count": 1}),
        ("chat_closed", {"chat": "c1", "reason": "compressed", "successor": "c2"}),
        (
            "chat_opened",
            {
                "chat": "c2",
                "platform": "telegram",
                "type": "dm",
                "follows": "c1",
                "kinship": "continuation",
                "turns": 1,
            },
        ),
        ("chat_closed", {"chat": "c2", "reason": "switched", "successor": "c1"}),
        ("chat_resumed", {"chat": "c1", "platform": "telegram", "title": "Roof"}),
        ("chat_forgotten", {"chat": "c2"}),
    ]
    stored = store.read_events()
    assert [each.event.at for each in stored] == [at(second) for second in (0, 1, 2, 3, 4, 5, 5, 6, 6, 7)]
    assert [each.seq for each in stored] == list(range(1, len(stored) + 1))
    assert store.check() == ()


def test_a_title_that_moves_on_is_told_of_both(store: Store) -> None:
    book = store.chats
    book.begin_chat(a_chat("c1", title="Roof", closed_at=at(1), close_reason=CloseReason.IMPORTED))
    book.begin_chat(a_chat("c2"))
    before = store.last_event()
    book.change_chat("c2", lambda chat: replace(chat, title="Roof"), over=["c1"], at=at(2))
    assert told(store, before) == [
        ("chat_titled", {"chat": "c1", "was": "Roof"}),
        ("chat_titled", {"chat": "c2", "title": "Roof"}),
    ]


def test_one_that_comes_from_elsewhere_closed_is_told_as_that(store: Store) -> None:
    store.chats.begin_chat(a_chat(closed_at=at(1), close_reason=CloseReason.IMPORTED))
    assert [kind for kind, _ in told(store)] == ["chat_opened", "chat_closed"]
    store.chats.change_chat("c1", lambda chat: replace(chat, flushed_at=at(2)))
    assert len(told(store)) == 2


def test_what_is_nobodys_news_is_not_told(store: Store) -> None:
    book = store.chats
    book.begin_chat(a_chat())
    book.append_turns("c1", [], at(1))
    book.touch_chat("c1", at(1))
    book.change_chat("c1", lambda chat: replace(chat, suspended=True))
    book.grant_chat("c1", "bob")
    book.revoke_chat("c1", "bob")
    same = book.get_chat("c1")
    book.switch_chat(same, "key-c1", at(2), instead_of=same)
    book.index_turns()
    assert len(told(store)) == 1


def test_nothing_is_told_of_what_came_to_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    book = store.chats
    book.begin_chat(a_chat())
    for attempt in (
        lambda: book.append_turns("c1", [a_turn("a")], at(1), expect=9),
        lambda: book.append_turns("c9", [a_turn("a")], at(1)),
        lambda: book.rewrite_turns("c1", 1, [a_turn("a")], at(1), expect=9),
        lambda: book.begin_chat(a_chat("c1", key="other")),
        lambda: book.forget_chat("c1"),
    ):
        with pytest.raises(errors.PerdureError):
            attempt()

    def fail(*_: object) -> None:
        raise errors.StoreUnusable("no room")

    with monkeypatch.context() as failing:
        failing.setattr(store, "keep_events", fail)
        with pytest.raises(errors.StoreUnusable):
            book.append_turns("c1", [a_turn("a")], at(1))
        with pytest.raises(errors.StoreUnusable):
            book.begin_chat(a_chat("c2"))
    # Neither is there without the other.
    assert book.load_turns("c1").turns == ()
    assert book.count_chats() == 1
    assert len(told(store)) == 1
    book.append_turns("c1", [a_turn("a")], at(1))
    assert told(store)[1:] == [("chat_said", {"chat": "c1", "first": 1, "last": 1})]


def test_neither_words_nor_people_nor_keys_are_told(store: Store) -> None:
    book = store.chats
    source = a_source("alice-5550100", chat_name="Alice", chat_topic="diagnosis")
    book.begin_chat(a_chat(source=source, key="agent:main:telegram:dm:alice-5550100"))
    secret = "sk-ant-" + "a1B2" * 12
    book.append_turns("c1", [a_turn(f"confidential {secret}", tool_name="spy", extra={"reasoning": "hush"})], at(1))
    book.change_chat("c1", lambda chat: replace(chat, title=f"Key {secret}"), at=at(2))
    book.rewrite_turns("c1", 1, [a_turn("confidential")], at(3))
    raw = b"".join(canonical(each) for each in store.read_events())
    for word in (b"confidential", b"5550100", b"Alice", b"diagnosis", b"spy", b"hush", secret.encode()):
        assert word not in raw


def test_those_who_are_written_together_are_told_together_chat_by_chat(store: Store) -> None:
    book = store.chats
    book.begin_chat(a_chat("c1"))
    book.begin_chat(a_chat("c2"))
    before = store.last_event()
    said = [ready(a_turn("a"))]
    book._commit(
        [
            Append("c1", said, None, at(3)),
            Append("c2", said * 2, None, at(1)),
            Append("c9", said, None, at(9)),
            Append("c1", said * 3, None, at(2)),
            Append("c2", said, 1, at(9)),
        ]
    )
    assert sorted(map(str, told(store, before))) == [
        str(("chat_said", {"chat": "c1", "first": 1, "last": 4})),
        str(("chat_said", {"chat": "c2", "first": 1, "last": 2})),
    ]


def test_whoever_follows_misses_nothing_however_many_write(place: Place, threaded: Store) -> None:
    other = place.open()
    for number in range(3):
        threaded.chats.begin_chat(a_chat(f"c{number}"))
    is_over = threading.Event()
    seen: list[tuple[int, Event]] = []

    def follow() -> None:
        reader, after = place.open(), 0
        while True:
            is_last = is_over.is_set()
            while page := reader.read_events(after=after, limit=7):
                seen.extend((each.seq, each.event) for each in page)
                after = page[-1].seq
            if is_last:
                reader.close()
                return

    def write(writer: int) -> None:
        for number in range(15):
            if writer == 4:
                # The daemon writes, too.
                other.record([], [Event(kind=EventKind.SAVED, at=at(number))])
            else:
                threaded.chats.append_turns(f"c{(writer + number) % 3}", [a_turn(number)] * 2, at(number))

    with ThreadPoolExecutor(6) as pool:
        following = pool.submit(follow)
        for done in [pool.submit(write, writer) for writer in range(5)]:
            done.result()
        is_over.set()
        following.result()
    other.close()
    assert [seq for seq, _ in seen] == list(range(1, len(seen) + 1))
    assert sum(event.kind is EventKind.SAVED for _, event in seen) == 15
    for id in ("c0", "c1", "c2"):
        mine = [event.data for _, event in seen if event.kind is EventKind.CHAT_SAID and event.data["chat"] == id]
        places = [place for data in mine for place in range(data["first"], data["last"] + 1)]
        assert places == list(range(1, threaded.chats.load_turns(id).next))
