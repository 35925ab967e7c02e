"""Whoever wrote to a chat last goes on without asking where; whatever others did to it meanwhile, nothing is lost or written over."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure import errors
from perdure.model.chat import CloseReason
from perdure.store import open_store
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import a_chat, a_turn
from tests.contract.store.conftest import Place
from tests.contract.store.test_chat_events import told as all_told


@pytest.fixture
def two(place: Place) -> Iterator[tuple[Store, Store]]:
    """Two that know nothing of each other, each for several threads: only there it is known where a chat goes on."""
    stores = [open_store(place.url, state_dir=place.state_dir, threads=True) for _ in range(2)]
    yield stores[0], stores[1]
    for store in stores:
        store.close()


@pytest.fixture
def known(threaded: Store) -> Store:
    """A store that knows where its chat goes on."""
    threaded.chats.begin_chat(a_chat())
    threaded.chats.append_turns("c1", [a_turn("a")], at(1))
    assert threaded.chats.is_known("c1")
    return threaded


class Said:
    """What was said in a chat, as it should be."""

    def __init__(self) -> None:
        self.next = 1
        self.seen: dict[int, object] = {}
        self.touched = 0

    def append(self, contents: list[int], hidden: bool, moment: int) -> None:
        for content in contents:
            if not hidden:
                self.seen[self.next] = content
            self.next += 1
        self.touched = max(self.touched, moment)

    def rewrite(self, start: int, content: int, moment: int) -> None:
        self.seen = {place: each for place, each in self.seen.items() if place < start}
        self.next += 1
        self.append([content], False, moment)


_ids = itertools.count()
_DEEDS = st.tuples(
    st.integers(0, 1),
    st.sampled_from(["append", "append", "append", "hidden", "expect", "surprise", "rewrite", "index", "touch"]),
    st.integers(1, 3),
    # Clocks go forward, nearly always.
    st.sampled_from([0, 0, 0, -5]),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deeds=st.lists(_DEEDS, max_size=25))
def test_whoever_writes_in_whatever_order_everything_has_its_own_place(
    two: tuple[Store, Store], deeds: list[tuple[int, str, int, int]]
) -> None:
    id, said, words = f"k{next(_ids)}", Said(), itertools.count()
    two[0].chats.begin_chat(a_chat(id))
    for step, (who, deed, count, back) in enumerate(deeds):
        moment = max(0, step + back)
        book = two[who].chats
        if deed == "index":
            book.index_turns()
        elif deed == "touch":
            book.touch_chat(id, at(moment))
            said.touched = max(said.touched, moment)
        elif deed == "rewrite":
            word, start = next(words), min(count, said.next)
            book.rewrite_turns(id, start, [a_turn(word)], at(moment))
            said.rewrite(start, word, moment)
        elif deed == "surprise":
            with pytest.raises(errors.Conflict) as caught:
                book.append_turns(id, [a_turn("never")], at(moment), expect=said.next + count)
            assert caught.value.data["position"] == said.next
        else:
            contents = list(itertools.islice(words, count))
            turns = [a_turn(each, hidden=deed == "hidden") for each in contents]
            expect = said.next if deed == "expect" else None
            said.append(contents, deed == "hidden", moment)
            assert book.append_turns(id, turns, at(moment), expect=expect) == said.next - 1
    for store in two:
        found = store.chats.load_turns(id)
        assert {turn.position: turn.content for turn in found.turns} == said.seen
        assert found.next == said.next
        chat = store.chats.get_chat(id)
        assert (chat.turns, chat.touched_at) == (len(said.seen), at(said.touched))
    assert two[0].check() == ()


def test_two_who_both_know_where_a_chat_goes_on_take_turns(two: tuple[Store, Store]) -> None:
    two[0].chats.begin_chat(a_chat())
    order = (0, 1, 0, 1, 1, 0, 0, 1)
    for place, who in enumerate(order, 1):
        assert two[who].chats.append_turns("c1", [a_turn(who)], at(place)) == place
    assert tuple(turn.content for turn in two[0].chats.load_turns("c1").turns) == order
    assert all(store.chats.is_known("c1") for store in two)


def test_what_is_appended_without_asking_is_found_and_told(known: Store) -> None:
    known.chats.append_turns("c1", [a_turn("chimney")], at(2))
    assert [found.position for found in known.chats.search_turns("chimney")] == [2]
    # All of it was indexed by then: the chat has to fall behind anew.
    known.chats.append_turns("c1", [a_turn("gutter")], at(3))
    known.chats.append_turns("c1", [a_turn("gutter")], at(4))
    assert [found.position for found in known.chats.search_turns("gutter")] == [4, 3]
    assert known.chats.load_turns("c1").next == 5
    assert [told["last"] for kind, told in all_told(known) if kind == "chat_said"][-1] == 4


def test_a_chat_that_was_forgotten_is_not_written_to_not_even_under_its_name(known: Store) -> None:
    known.chats.change_chat("c1", lambda chat: replace(chat, closed_at=at(2), close_reason=CloseReason.ASKED))
    known.chats.forget_chat("c1")
    with pytest.raises(errors.ChatNotFound):
        known.chats.append_turns("c1", [a_turn("b")], at(2))
    known.chats.begin_chat(a_chat())
    assert known.chats.append_turns("c1", [a_turn("c")], at(3)) == 1
    assert [turn.content for turn in known.chats.load_turns("c1").turns] == ["c"]


def test_what_came_to_nothing_is_not_counted(known: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    say = known.chats._say
    with monkeypatch.context() as failing:
        failing.setattr(known.chats, "_say", say.replace("?6", "NULL"))
        with pytest.raises(Exception, match=r"(?i)null|parameter|binding"):
            known.chats.append_turns("c1", [a_turn("lost")], at(2))
    assert known.chats.append_turns("c1", [a_turn("b")], at(2)) == 2
    assert [turn.content for turn in known.chats.load_turns("c1").turns] == ["a", "b"]
    assert known.check() == ()


def test_of_many_chats_only_some_are_known(known: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.store.turns._KNOWN", 3)
    for number in range(2, 7):
        known.chats.begin_chat(a_chat(f"c{number}"))
        for place in (1, 2):
            assert known.chats.append_turns(f"c{number}", [a_turn()], at(2)) == place
    assert sum(known.chats.is_known(f"c{number}") for number in range(1, 7)) <= 3
    assert known.chats.append_turns("c1", [a_turn("b")], at(3)) == 2
