"""What was said: written once, in order, for good, and read back whole or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure import errors
from perdure.model.chat import CloseReason, Kinship
from perdure.store.appends import Append, Appends
from perdure.store.chats import ChatBook
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import a_chat, a_turn

ANY_TEXT = st.text(st.characters())
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def book(store: Store) -> ChatBook:
    """A store with an open chat."""
    store.chats.begin_chat(a_chat())
    return store.chats


def how_it_went(appends: Appends, name: str) -> str:
    """Append to a chat, and return what came of it."""
    try:
        appends.run(Append(name, (), None, at(0)))
    except ValueError:
        return "failed"
    return "written"


def said(book: ChatBook, id: str = "c1") -> list[object]:
    return [turn.content for turn in book.load_turns(id).turns]


@pytest.mark.parametrize("turns", [0, 2])
def test_none_of_the_turns_can_be_asked_for(book: ChatBook, turns: int) -> None:
    for _ in range(turns):
        book.append_turns("c1", [a_turn()], at(1))
    found = book.load_turns("c1", limit=0)
    assert (found.turns, found.next) == ((), turns + 1)


@pytest.mark.parametrize("partly", [False, True])
@pytest.mark.parametrize("is_brought_back", [False, True])
def test_a_chat_that_is_forgotten_while_it_is_read_is_not_damaged(
    store: Store, opened: Callable[[], Store], monkeypatch: pytest.MonkeyPatch, *, is_brought_back: bool, partly: bool
) -> None:
    chat = a_chat(closed_at=at(1), close_reason=CloseReason.ASKED)
    store.chats.import_chat(chat, [a_turn("a"), a_turn("b")])
    gateway, unaccounted, times = opened().chats, store.chats.unaccounted, count()

    def after_it_went(*where: Any, **how: Any) -> int:
        if next(times) == 0:
            gateway.forget_chat("c1")
            if is_brought_back:
                gateway.import_chat(chat, [a_turn("a"), a_turn("b"), a_turn("c")])
        return unaccounted(*where, **how)

    monkeypatch.setattr(store.chats, "unaccounted", after_it_went)
    if is_brought_back:
        found = store.chats.load_turns("c1", partly=partly)
        assert ([turn.content for turn in found.turns], found.missing) == (["a", "b", "c"], 0)
    else:
        with pytest.raises(errors.ChatNotFound):
            store.chats.load_turns("c1", partly=partly)


def test_turns_come_back_in_order_as_they_were_written(book: ChatBook) -> None:
    turns = [
        a_turn("hello"),
        # A clock that went back changes no order.
        a_turn([{"type": "text", "text": "hi"}], "assistant", at=at(-99), model="m", tokens=3),
        a_turn(None, "assistant", tool_calls=({"name": "ls", "arguments": {"path": "/"}},), extra={"reasoning": "x"}),
        a_turn("a b", "tool", tool_name="ls", tool_call_id="1", attachments=({"path": "/home/dev/a.png"},)),
    ]
    assert book.append_turns("c1", turns[:1], at(1)) == 1
    assert book.append_turns("c1", turns[1:], at(2)) == 4
    found = book.load_turns("c1")
    assert [turn.position for turn in found.turns] == [1, 2, 3, 4]
    assert list(found.turns) == [
        type(turn)(**{name: getattr(turn, name) for name in turn.__struct_fields__} | {"position": place})
        for place, turn in enumerate(turns, 1)
    ]
    assert found.next == 5
    chat = book.get_chat("c1")
    assert (chat.turns, chat.touched_at) == (4, at(2))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=ANY_JSON, role=ANY_TEXT)
@pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
def test_any_json_survives(book: ChatBook, content: object, role: str) -> None:
    position = book.append_turns("c1", [a_turn(content, role)], at(0))
    (turn,) = book.load_turns("c1", start=position).turns
    assert (turn.content, turn.role) == (content, role)


def test_what_is_no_json_is_refused_and_nothing_written(book: ChatBook) -> None:
    with pytest.raises(errors.UsageError, match="JSON"):
        book.append_turns("c1", [a_turn("a"), a_turn(object())], at(0))
    assert said(book) == []


def test_ten_megabytes_in_a_turn(book: ChatBook) -> None:
    text = "0123456789" * 1024 * 1024
    book.append_turns("c1", [a_turn(text)], at(0))
    (turn,) = book.load_turns("c1").turns
    assert turn.content == text
    assert len(book.search_turns("0123456789*")) == 1


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_hundred_thousand_turns_in_a_chat(book: ChatBook) -> None:
    for start in range(0, 100_000, 20_000):
        book.append_turns("c1", [a_turn(number) for number in range(start, start + 20_000)], at(0))
    assert book.append_turns("c1", [a_turn("last")], at(0), expect=100_001) == 100_001
    assert [turn.content for turn in book.load_turns("c1", start=99_999).turns] == [99_998, 99_999, "last"]
    assert len(book.load_turns("c1").turns) == book.get_chat("c1").turns == 100_001
    assert book.undo_turns("c1", 100, at(0)).position == 99_902


def test_a_writer_that_expects_another_position_writes_nothing(book: ChatBook) -> None:
    book.append_turns("c1", [a_turn("a")], at(0), expect=1)
    with pytest.raises(errors.Conflict) as caught:
        book.append_turns("c1", [a_turn("b")], at(0), expect=1)
    assert caught.value.data["position"] == 2
    assert said(book) == ["a"]
    assert book.append_turns("c1", [a_turn("b")], at(0), expect=2) == 2


def test_of_many_who_expect_the_same_position_one_writes(threaded: Store) -> None:
    threaded.chats.begin_chat(a_chat())

    def write(number: int) -> bool:
        try:
            threaded.chats.append_turns("c1", [a_turn(number)], at(0), expect=1)
        except errors.Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(24))) == 1
    assert len(said(threaded.chats)) == 1


def test_an_unknown_chat_is_an_error_and_never_empty(book: ChatBook) -> None:
    for ask in (
        lambda: book.load_turns("c9"),
        lambda: book.append_turns("c9", [a_turn()], at(0)),
        lambda: book.rewrite_turns("c9", 1, [], at(0)),
        lambda: book.undo_turns("c9", 1, at(0)),
        lambda: book.get_chat("c9"),
    ):
        with pytest.raises(errors.ChatNotFound, match="c9"):
            ask()
    assert book.load_turns("c1").turns == ()


def test_pages(book: ChatBook) -> None:
    book.append_turns("c1", [a_turn(number) for number in range(10)], at(0))
    seen: list[object] = []
    start = 1
    while page := book.load_turns("c1", start=start, limit=4).turns:
        seen += [turn.content for turn in page]
        start = page[-1].position + 1
    assert seen == list(range(10))


def test_a_closed_chat_takes_what_comes_late(book: ChatBook) -> None:
    current = book.open_chat("key-c1")
    book.begin_chat(a_chat("c2", key="key-c1"), instead_of=current)
    book.append_turns("c1", [a_turn("late")], at(1))
    assert (said(book, "c1"), said(book, "c2")) == (["late"], [])
    assert not book.get_chat("c1").is_open


def test_rewriting_replaces_at_once_keeps_what_was_and_tells_other_writers(book: ChatBook) -> None:
    book.append_turns("c1", [a_turn(text) for text in "abc"], at(0))
    before = book.load_turns("c1")
    last = book.rewrite_turns("c1", 2, [a_turn("B"), a_turn("C", extra={"reasoning": "kept"})], at(1))
    assert said(book) == ["a", "B", "C"]
    assert book.load_turns("c1").turns[-1].extra == {"reasoning": "kept"}
    assert book.get_chat("c1").turns == 3
    hidden = book.load_turns("c1", hidden=True).turns
    assert [(turn.content, turn.hidden) for turn in hidden] == [
        ("a", False),
        ("b", True),
        ("c", True),
        ("B", False),
        ("C", False),
    ]
    with pytest.raises(errors.Conflict):
        book.append_turns("c1", [a_turn("d")], at(2), expect=before.next)
    assert book.append_turns("c1", [a_turn("d")], at(2), expect=last + 1) == last + 1


def test_taking_back_alone_is_noticed_too(book: ChatBook) -> None:
    book.append_turns("c1", [a_turn("a"), a_turn("b", "assistant")], at(0))
    before = book.load_turns("c1")
    book.undo_turns("c1", 1, at(0))
    with pytest.raises(errors.Conflict):
        book.append_turns("c1", [a_turn("c")], at(2), expect=before.next)
    assert book.append_turns("c1", [a_turn("c")], at(2), expect=book.load_turns("c1").next)


def test_a_rewrite_that_fails_leaves_what_was_there(book: ChatBook, monkeypatch: pytest.MonkeyPatch) -> None:
    book.append_turns("c1", [a_turn(text) for text in "abc"], at(0))

    def fail(*_: object) -> None:
        raise errors.StoreUnusable("no room")

    with monkeypatch.context() as failing:
        failing.setattr(book, "advance", fail)
        with pytest.raises(errors.StoreUnusable):
            book.rewrite_turns("c1", 1, [a_turn("x")], at(1))
    assert said(book) == ["a", "b", "c"]


def test_undo_goes_back_to_a_turn_of_the_user(book: ChatBook) -> None:
    for number in range(3):
        book.append_turns("c1", [a_turn(f"q{number}"), a_turn(f"a{number}", "assistant")], at(0))
    assert book.undo_turns("c1", 2, at(1)).content == "q1"
    assert said(book) == ["q0", "a0"]
    with pytest.raises(errors.UsageError, match="has 1 turns"):
        book.undo_turns("c1", 2, at(1))
    assert book.undo_turns("c1", 1, at(1)).content == "q0"
    assert said(book) == []
    assert book.get_chat("c1").turns == 0


def test_a_branch_begins_as_a_copy_and_goes_its_own_way(book: ChatBook) -> None:
    book.append_turns("c1", [a_turn(text) for text in "abcd"], at(0))
    book.rewrite_turns("c1", 4, [a_turn("D")], at(0))
    current = book.open_chat("key-c1")
    branch = a_chat("c2", key="key-c1", follows="c1", kinship=Kinship.BRANCH)
    begun = book.begin_chat(branch, instead_of=current, reason=CloseReason.SWITCHED, copy="c1", before=4)
    assert begun is not None
    assert (begun.turns, said(book, "c2")) == (3, ["a", "b", "c"])
    book.append_turns("c2", [a_turn("x")], at(0))
    assert (said(book, "c1"), said(book, "c2")) == (["a", "b", "c", "D"], ["a", "b", "c", "x"])


def test_making_a_chat_shorter_needs_to_have_seen_its_end(book: ChatBook) -> None:
    book.append_turns("c1", [a_turn(text) for text in "abc"], at(0))
    current = book.open_chat("key-c1")
    shorter = a_chat("c2", key="key-c1", follows="c1", kinship=Kinship.CONTINUATION)
    with pytest.raises(errors.Conflict):
        book.begin_chat(shorter, instead_of=current, reason=CloseReason.COMPRESSED, turns=[a_turn("abc")], expect=3)
    begun = book.begin_chat(shorter, instead_of=current, reason=CloseReason.COMPRESSED, turns=[a_turn("abc")], expect=4)
    assert begun is not None
    assert (begun.turns, said(book, "c2"), said(book, "c1")) == (1, ["abc"], ["a", "b", "c"])
    assert book.continuation_of("c1") == begun


def test_many_threads_append_to_one_and_to_many(threaded: Store) -> None:
    book = threaded.chats
    for number in range(5):
        book.begin_chat(a_chat(f"c{number}"))

    def write(writer: int) -> list[tuple[str, int]]:
        return [
            (id, book.append_turns(id, [a_turn([writer, number])], at(0)))
            for number in range(40)
            for id in ("c0", f"c{writer % 4 + 1}")
        ]

    with ThreadPoolExecutor(8) as pool:
        given = [each for result in pool.map(write, range(8)) for each in result]
    # Each acknowledged position is given once, and each writer's turns are in the order they were said.
    assert len(set(given)) == len(given) == 640
    for id in ("c0", "c1", "c2", "c3", "c4"):
        contents = [turn.content for turn in book.load_turns(id).turns]
        assert len(contents) == sum(each[0] == id for each in given)
        for writer in range(8):
            mine = [number for who, number in contents if who == writer]
            assert mine == sorted(mine)
    assert threaded.check() == ()


def test_those_who_wait_are_written_together_and_one_at_fault_costs_only_itself() -> None:
    batches: list[list[str]] = []
    entered, may_go_on = threading.Event(), threading.Event()

    def commit(batch: object) -> None:
        names = [each.chat for each in batch]  # type: ignore[attr-defined]
        batches.append(names)
        if names == ["first"]:
            entered.set()
            assert may_go_on.wait(60)
        if "bad" in names:
            raise ValueError("bad")

    appends = Appends(commit)

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(how_it_went, appends, "first")
        assert entered.wait(60)
        others = [pool.submit(how_it_went, appends, name) for name in ("a", "bad", "b")]
        while len(appends._waiting) < 3:
            threading.Event().wait(0.001)
        may_go_on.set()
        assert first.result() == "written"
        assert [each.result() for each in others] == ["written", "failed", "written"]
    assert [sorted(batch) for batch in batches[:2]] == [["first"], ["a", "b", "bad"]]
    assert sorted(batches[2:]) == [["a"], ["b"], ["bad"]]


def test_those_who_come_while_the_leader_waits_for_its_turn_are_written_along() -> None:
    batches: list[list[str]] = []
    entered, may_go_on = threading.Event(), threading.Event()

    def commit(batch: list[Append]) -> None:
        if len(batch) == 1 and not batches:
            entered.set()
            assert may_go_on.wait(60)
        appends.top_up(batch)
        batches.append([each.chat for each in batch])
        if "bad" in batches[-1]:
            raise ValueError("bad")

    appends = Appends(commit)

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(how_it_went, appends, "first")
        assert entered.wait(60)
        others = [pool.submit(how_it_went, appends, name) for name in ("a", "bad")]
        while len(appends._waiting) < 2:
            threading.Event().wait(0.001)
        may_go_on.set()
        assert first.result(60) == "written"
        assert [each.result(60) for each in others] == ["written", "failed"]
    # Nothing is added to what is written once more, each for itself.
    assert sorted(batches[0]) == ["a", "bad", "first"]
    assert sorted(batches[1:]) == [["a"], ["bad"], ["first"]]


def test_an_interrupted_leader_is_followed_by_another() -> None:
    entered, may_go_on = threading.Event(), threading.Event()

    def commit(batch: object) -> None:
        if [each.chat for each in batch] == ["first"]:  # type: ignore[attr-defined]
            entered.set()
            assert may_go_on.wait(60)
            raise KeyboardInterrupt

    appends = Appends(commit)

    def first() -> bool:
        try:
            appends.run(Append("first", (), None, at(0)))
        except KeyboardInterrupt:
            return True
        return False

    with ThreadPoolExecutor(2) as pool:
        interrupted = pool.submit(first)
        assert entered.wait(60)
        other = pool.submit(appends.run, Append("other", (), None, at(0)))
        may_go_on.set()
        assert interrupted.result()
        assert other.result(60) == 0
