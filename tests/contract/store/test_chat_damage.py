"""Chats that cannot be read back: never empty, never somebody else's, and mended without deleting anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from perdure import errors
from perdure.chats.importing import import_chats
from perdure.chats.service import Chats
from perdure.model.chat import CloseReason
from perdure.model.chat_import import Incoming, Words
from perdure.model.config import Config
from perdure.store.chat_damage import ChatDamage, damage_of
from perdure.store.chats import ChatBook
from perdure.store.driver import Row
from perdure.store.repair import repair
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import Clock, a_chat, a_source, a_turn
from tests.contract.store.conftest import Place


@pytest.fixture
def filled(store: Store) -> Store:
    """A store with two chats of three turns each."""
    for id in ("c1", "c2"):
        store.chats.begin_chat(a_chat(id, title=id))
        store.chats.append_turns(id, [a_turn(f"{id} {text}") for text in "abc"], at(0))
    return store


def number_of(store: Store, id: str) -> int:
    return store.chats.spot(id).number


def said(store: Store, id: str) -> list[object]:
    return [turn.content for turn in store.chats.load_turns(id).turns]


SPOILING = {
    "a body that is no JSON": "UPDATE turns SET body = :data WHERE id = :id",
    "another text": "UPDATE turns SET body = (SELECT body FROM turns WHERE id = :id + 1) WHERE id = :id",
    "another role": "UPDATE turns SET role = 'system' WHERE id = :id",
    "a turn that is gone": "DELETE FROM turns WHERE id = :id",
    "a turn that was hidden behind our back": "UPDATE turns SET hidden = 1 WHERE id = :id",
}


@pytest.mark.parametrize("how", SPOILING)
def test_a_damaged_turn_is_an_error_and_never_less_than_was_said(filled: Store, place: Place, how: str) -> None:
    id = number_of(filled, "c1") * (1 << 32) + 2
    sql = SPOILING[how]
    filled.driver.execute(sql, id=id, **({"data": b"spoilt"} if ":data" in sql else {}))
    with pytest.raises(errors.ChatDamaged, match="c1"):
        filled.chats.load_turns("c1")
    assert said(filled, "c2") == ["c2 a", "c2 b", "c2 c"]
    assert [problem.repairable for problem in filled.check()] == [True]
    actions = repair(place.url, place.state_dir, at(60))
    assert len(actions) == 1
    assert "chat c1" in actions[0]
    assert filled.chats.append_turns("c1", [a_turn("d")], at(61)) == 4
    # What is lost stays lost, and known to be: the rest is never taken for all that was said.
    assert [(problem.where, problem.repairable) for problem in filled.check()] == [("chat c1", False)]
    assert repair(place.url, place.state_dir, at(62)) == ()
    assert_short(filled, "c1", ["c1 a", "c1 c", "d"], missing=1)


def assert_short(store: Store, id: str, left: list[object], *, missing: int) -> None:
    """Nothing gives what is left of a chat for the whole, and whoever asks for it gets it."""
    for hidden in (False, True):
        with pytest.raises(errors.ChatDamaged, match=id):
            store.chats.load_turns(id, hidden=hidden)
    transcript = store.chats.load_turns(id, partly=True)
    assert ([turn.content for turn in transcript.turns], transcript.missing) == (left, missing)


@pytest.mark.parametrize("how", SPOILING)
def test_nothing_that_covers_a_damaged_turn_gives_less_than_was_said(filled: Store, how: str) -> None:
    id = number_of(filled, "c1") * (1 << 32) + 2
    sql = SPOILING[how]
    filled.driver.execute(sql, id=id, **({"data": b"spoilt"} if ":data" in sql else {}))
    load = filled.chats.load_turns
    for hidden in (False, True):
        for start, limit in ((1, 3), (1, 2), (2, None), (2, 1), (1, 100), (0, None)):
            with pytest.raises(errors.ChatDamaged, match="c1"):
                load("c1", start=start, limit=limit, hidden=hidden)
        # What does not cover it is not affected.
        assert [turn.content for turn in load("c1", start=1, limit=1, hidden=hidden).turns] == ["c1 a"]
        assert [turn.content for turn in load("c1", start=3, hidden=hidden).turns] == ["c1 c"]
        assert load("c1", start=4, hidden=hidden).turns == ()
    with pytest.raises(errors.ChatDamaged, match="c1"):
        filled.chats.begin_chat(a_chat("c3"), copy="c1")
    assert filled.chats.begin_chat(a_chat("c4"), copy="c1", before=2) is not None
    assert said(filled, "c4") == ["c1 a"]
    assert_short(filled, "c1", ["c1 a", "c1 c"], missing=1)


@pytest.mark.parametrize("how", SPOILING)
def test_what_is_said_in_a_damaged_chat_is_kept_and_hides_nothing(filled: Store, place: Place, how: str) -> None:
    id = number_of(filled, "c1") * (1 << 32) + 2
    sql = SPOILING[how]
    filled.driver.execute(sql, id=id, **({"data": b"spoilt"} if ":data" in sql else {}))
    chats = Chats(filled.chats, Config(), Clock())
    for position, text, mend in ((4, "slate", False), (5, "copper", True)):
        assert chats.append("c1", a_turn(text)) == position
        if mend:
            repair(place.url, place.state_dir, at(60))
        assert [turn.content for turn in chats.load("c1", start=4).turns] == ["slate", "copper"][: position - 3]
        with pytest.raises(errors.ChatDamaged, match=r"perdure check --repair.*perdure chats export"):
            chats.load("c1")
        left = chats.load("c1", partly=True)
        assert [turn.content for turn in left.turns] == ["c1 a", "c1 c", "slate", "copper"][: position - 1]
        assert (left.missing, left.next) == (1, position + 1)
        assert [found.position for found in filled.chats.search_turns(text)] == [position]
    # Whoever has seen what is left goes on from there, and learns of what others say meanwhile.
    assert chats.append("c1", a_turn("zinc"), expect=left.next) == 6
    with pytest.raises(errors.Conflict):
        chats.append("c1", a_turn("lead"), expect=left.next)


@pytest.mark.parametrize("next", [1, 2, 3, 0, -5, 1 << 32, 1 << 40])
def test_a_chat_that_says_a_wrong_place_goes_on_behind_what_is_there(threaded: Store, place: Place, next: int) -> None:
    store = threaded
    for id in ("c0", "c1", "c2"):
        store.chats.begin_chat(a_chat(id))
        store.chats.append_turns(id, [a_turn(f"{id} {text}") for text in "abc"], at(0))
    store.driver.execute("UPDATE chats SET next = :next WHERE id = 'c1'", next=next)
    with pytest.raises(errors.ChatDamaged, match="c1"):
        store.chats.load_turns("c1")
    left = store.chats.load_turns("c1", partly=True)
    assert ([turn.content for turn in left.turns], left.next) == (["c1 a", "c1 b", "c1 c"], 4)
    assert [(problem.where, problem.repairable) for problem in store.check()] == [("chat c1", True)]
    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(lambda each: store.chats.append_turns(each, [a_turn("d")], at(1)), ["c1", "c2"] * 6))
    # Nobody's message is lost, nor what was there before; and nobody else is in trouble for it.
    assert sorted(told) == sorted([*range(4, 10)] * 2)
    assert said(store, "c1") == ["c1 a", "c1 b", "c1 c", *"dddddd"]
    assert [turn.content for turn in store.chats.load_turns("c2").turns] == ["c2 a", "c2 b", "c2 c", *"dddddd"]
    assert said(store, "c0") == ["c0 a", "c0 b", "c0 c"]
    assert store.check() == ()


@pytest.mark.parametrize("next", [1, 3, 1 << 40])
def test_a_wrong_place_is_put_right_by_repair_and_by_whoever_expects_the_right_one(
    filled: Store, place: Place, next: int
) -> None:
    filled.driver.execute("UPDATE chats SET next = :next", next=next)
    with pytest.raises(errors.Conflict):
        filled.chats.append_turns("c1", [a_turn("d")], at(1), expect=3 if next == 3 else 5)
    assert filled.chats.append_turns("c1", [a_turn("d")], at(1), expect=4) == 4
    assert said(filled, "c1") == ["c1 a", "c1 b", "c1 c", "d"]
    (action,) = repair(place.url, place.state_dir, at(60))
    assert "chat c2" in action
    assert said(filled, "c2") == ["c2 a", "c2 b", "c2 c"]
    assert filled.check() == ()


def test_the_last_turn_and_one_that_was_taken_back_are_missed_too(filled: Store, place: Place) -> None:
    base = number_of(filled, "c1") * (1 << 32)
    filled.driver.execute("DELETE FROM turns WHERE id = :id", id=base + 3)
    with pytest.raises(errors.ChatDamaged):
        filled.chats.load_turns("c1", start=2)
    filled.chats.rewrite_turns("c2", 2, [a_turn("c2 d")], at(1))
    filled.driver.execute("DELETE FROM turns WHERE id = :id", id=number_of(filled, "c2") * (1 << 32) + 2)
    with pytest.raises(errors.ChatDamaged):
        filled.chats.load_turns("c2", hidden=True)
    repair(place.url, place.state_dir, at(60))
    assert [problem.where for problem in filled.check()] == ["chat c1", "chat c2"]
    assert_short(filled, "c1", ["c1 a", "c1 b"], missing=1)


def test_a_damaged_turn_that_was_taken_back_is_missed_only_among_those(filled: Store, place: Place) -> None:
    damaged = number_of(filled, "c1") * (1 << 32) + 3
    filled.driver.execute("UPDATE turns SET body = :data WHERE id = :id", data=b"spoilt", id=damaged)
    filled.chats.rewrite_turns("c1", 2, [a_turn("c1 d")], at(1))
    before = filled.chats.load_turns("c1")
    assert len(repair(place.url, place.state_dir, at(60))) == 1
    assert filled.chats.load_turns("c1") == before
    assert [turn.content for turn in before.turns] == ["c1 a", "c1 d"]
    # What was taken back is not all there, and nobody is told that it is.
    with pytest.raises(errors.ChatDamaged):
        filled.chats.load_turns("c1", hidden=True)
    assert filled.chats.load_turns("c1", hidden=True, partly=True).missing == 1
    assert filled.driver.fetch("SELECT count(*) FROM damaged_turns") == [(1,)]
    assert filled.check() == ()
    assert repair(place.url, place.state_dir, at(61)) == ()
    filled.chats.begin_chat(a_chat("c3"), copy="c1")
    assert said(filled, "c3") == ["c1 a", "c1 d"]


def test_what_was_left_out_is_not_missed(filled: Store) -> None:
    chats = filled.chats
    chats.rewrite_turns("c1", 2, [a_turn("d"), a_turn("e")], at(1))
    chats.undo_turns("c1", 1, at(2))
    far = [a_turn("x", position=7), a_turn("y", position=1_000_000), a_turn("z", position=1_000_001)]
    chats.import_chat(a_chat("c3"), far, next=2_000_000)
    chats.begin_chat(a_chat("c4"), copy="c1")
    for id in ("c1", "c2", "c3", "c4"):
        whole = chats.load_turns(id, hidden=True)
        for start in {1, *range(1, 12), 999_999, 1_000_000, 1_000_001, 1_500_000, whole.next}:
            for hidden in (False, True):
                for limit in (None, 1, 2):
                    found = chats.load_turns(id, start=start, limit=limit, hidden=hidden).turns
                    expected = [turn for turn in whole.turns if turn.position >= start and turn.hidden <= hidden]
                    assert list(found) == expected[:limit]
    assert filled.check() == ()


def test_a_copy_may_end_where_something_was_left_out(filled: Store) -> None:
    chats = filled.chats
    chats.append_turns("c1", [a_turn("d"), a_turn("e")], at(1))
    chats.rewrite_turns("c1", 2, [], at(1))
    chats.append_turns("c1", [a_turn("f")], at(1))
    chats.begin_chat(a_chat("copy"), copy="c1")
    chats.import_chat(a_chat("far"), [a_turn("x", position=7), a_turn("y", position=1_000_000)], next=2_000_000)
    for id, ends in (("copy", range(1, 10)), ("far", (1, 6, 7, 8, 9, 500_000, 1_000_000, 1_000_001, 3_000_000))):
        whole = chats.load_turns(id).turns
        for end in ends:
            copied = f"{id} before {end}"
            assert chats.begin_chat(a_chat(copied), copy=id, before=end) is not None
            assert said(filled, copied) == [turn.content for turn in whole if turn.position < end]
    # What is lost before its end is missed as ever.
    filled.driver.execute("DELETE FROM turns WHERE id = :id", id=number_of(filled, "far") * (1 << 32) + 7)
    for end in (8, 9, 500_000):
        with pytest.raises(errors.ChatDamaged, match="far"):
            chats.begin_chat(a_chat(f"short {end}"), copy="far", before=end)


def test_from_whatever_position_on_what_was_taken_back_and_is_lost_is_missed_only_among_those(
    filled: Store, place: Place
) -> None:
    chats = filled.chats
    chats.append_turns("c1", [a_turn("d"), a_turn("e"), a_turn("f")], at(1))
    first = number_of(filled, "c1") * (1 << 32)
    chats.rewrite_turns("c1", 2, [a_turn("g")], at(1))
    chats.append_turns("c1", [a_turn("h")], at(1))
    for position in (3, 4, 5):
        filled.driver.execute("UPDATE turns SET body = :data WHERE id = :id", data=b"spoilt", id=first + position)
    repair(place.url, place.state_dir, at(60))
    shown = [(turn.position, turn.content) for turn in chats.load_turns("c1").turns]
    for start in range(1, 11):
        found = chats.load_turns("c1", start=start).turns
        assert [(turn.position, turn.content) for turn in found] == [each for each in shown if each[0] >= start]
        if start > 5:
            assert chats.load_turns("c1", start=start, hidden=True).missing == 0
            continue
        with pytest.raises(errors.ChatDamaged):
            chats.load_turns("c1", start=start, hidden=True)
        left = chats.load_turns("c1", start=start, hidden=True, partly=True)
        assert left.missing == len({3, 4, 5} & set(range(start, 6)))


def test_a_wrong_count_is_put_right_when_everything_is_there(filled: Store, place: Place) -> None:
    filled.driver.execute("UPDATE chats SET turns = 7 WHERE id = 'c1'")
    with pytest.raises(errors.ChatDamaged):
        filled.chats.load_turns("c1")
    assert len(repair(place.url, place.state_dir, at(60))) == 1
    assert said(filled, "c1") == ["c1 a", "c1 b", "c1 c"]
    assert filled.check() == ()


def test_a_turn_is_not_taken_for_another_chats(filled: Store) -> None:
    first, second = number_of(filled, "c1"), number_of(filled, "c2")
    filled.driver.execute("DELETE FROM turns WHERE id = :id", id=second * (1 << 32) + 3)
    filled.driver.execute(
        "UPDATE turns SET id = :new WHERE id = :old", new=second * (1 << 32) + 3, old=first * (1 << 32) + 3
    )
    for id in ("c1", "c2"):
        with pytest.raises(errors.ChatDamaged):
            filled.chats.load_turns(id)


@pytest.mark.parametrize("column", ["body", "key"])
def test_a_damaged_record_costs_only_its_chat_and_keeps_what_was_said(filled: Store, place: Place, column: str) -> None:
    filled.driver.execute(
        f"UPDATE chats SET {column} = :data WHERE id = 'c1'", data=b"spoilt" if column == "body" else "key-other"
    )
    with pytest.raises(errors.ChatDamaged):
        filled.chats.get_chat("c1")
    assert [chat.id for chat in filled.chats.list_chats()] == ["c2"]
    assert [problem.where for problem in filled.check()] == ["chat c1"]
    (action,) = repair(place.url, place.state_dir, at(60))
    assert "kept" in action
    assert said(filled, "c1") == ["c1 a", "c1 b", "c1 c"]
    mended = filled.chats.get_chat("c1")
    assert not mended.is_open
    # Nobody's: it is not known whose it was.
    assert filled.driver.fetch("SELECT reach FROM chats WHERE id = 'c1'") == [(None,)]
    assert filled.driver.fetch("SELECT id FROM damaged_chats") == [("c1",)]
    assert filled.check() == ()
    assert filled.chats.begin_chat(a_chat("c3", key="key-c1")) is not None


def test_whoever_writes_in_a_damaged_chat_can_begin_a_whole_one(store: Store, place: Place) -> None:
    chats = Chats(store.chats, Config(), Clock())
    chat = chats.open(a_source())
    chats.append(chat.id, a_turn("tiles"), a_turn("slate"))
    store.driver.execute("DELETE FROM turns WHERE id = :id", id=number_of(store, chat.id) * (1 << 32) + 1)
    assert chats.open(a_source()).id == chat.id
    fresh = chats.reset(a_source())
    assert (fresh.follows, chats.load(fresh.id).turns) == (chat.id, ())
    # One whose record cannot be read is not known to be theirs, and nothing takes its place until somebody looks at it.
    store.driver.execute("UPDATE chats SET body = :data WHERE id = :id", data=b"spoilt", id=fresh.id)
    for verb in (chats.open, chats.reset, chats.peek):
        with pytest.raises(errors.ChatDamaged, match=rf"{fresh.id}.*perdure check --repair"):
            verb(a_source())
    assert len(store.chats.list_chats()) == 1
    repair(place.url, place.state_dir, at(60))
    assert chats.load(chats.open(a_source()).id).turns == ()


@pytest.mark.parametrize("before", [False, True])
def test_a_damaged_record_of_a_closed_chat_locks_nobody_out(store: Store, before: bool) -> None:
    clock = Clock()
    chats = Chats(store.chats, Config(), clock)
    alice, bob = a_source(), replace(a_source("bob"), chat_id="chat-alice")
    readable: list[str] = []
    if before:
        readable.append(chats.open(alice).id)
        chats.append(readable[0], a_turn("tiles"))
        clock.later(minutes=1)
        chats.reset(alice)
    spoilt = chats.open(alice).id
    chats.append(spoilt, a_turn("slate"))
    store.chats.change_chat(
        spoilt, lambda chat: replace(chat, closed_at=clock.later(minutes=1), close_reason=CloseReason.IDLE)
    )
    store.driver.execute("UPDATE chats SET body = :data WHERE id = :id", data=b"spoilt", id=spoilt)
    assert chats.peek(alice) is None
    assert [chat.id for chat in chats.list(alice)] == readable
    assert [found.chat for found in chats.search(alice, "tiles")] == readable
    fresh = chats.open(alice)
    # It is not known what came before, nor why that was closed, and nobody is told otherwise.
    assert (fresh.follows, fresh.notice, fresh.turns) == (None, None, 0)
    assert chats.reset(alice).follows == fresh.id
    # Nobody else gets there: by what can be read, or because there is somebody again.
    assert chats.open(bob).id not in {chat.id for chat in chats.list(alice)}
    assert chats.list(bob) == (chats.peek(bob),)
    # Whoever asks for that very chat is told.
    with pytest.raises(errors.ChatDamaged, match=spoilt):
        chats.get(alice, spoilt)


def test_the_record_of_a_closed_chat_tells_whose_a_conversation_is_though_a_later_one_is_damaged(store: Store) -> None:
    clock = Clock()
    chats = Chats(store.chats, Config(), clock)
    alice = replace(a_source(), user_id_alt="lasting")
    bob = replace(a_source("bob"), chat_id="chat-alice")
    first = chats.open(alice).id
    clock.later(minutes=1)
    spoilt = chats.reset(alice).id
    store.chats.change_chat(spoilt, lambda chat: replace(chat, closed_at=clock.later(minutes=1)))
    store.driver.execute("UPDATE chats SET body = :data WHERE id = :id", data=b"spoilt", id=spoilt)
    # As long as something of hers can be read there, the conversation is hers, told with less of her name, too.
    assert chats.key(bob) != chats.key(alice)
    assert [chat.id for chat in chats.list(a_source())] == [first]


def branch(chats: Chats, id: str) -> str | None:
    chats.set_title(a_source(), id, "Roof #2")
    return chats.branch(a_source(), id).title


def compress(chats: Chats, id: str) -> str | None:
    chats.set_title(a_source(), id, "Roof #2")
    return chats.compress(id, [a_turn("in short")]).title


def take_over(chats: Chats, id: str) -> str | None:
    origin = {"platform": "telegram", "chat_id": "chat-alice", "user_id": "alice"}
    coming = Incoming(
        id="s1", where="there", read=lambda: Words(), opened_at=at(0), touched_at=at(0), origin=origin, title="Roof"
    )
    taken = import_chats(chats, [coming])
    assert taken.mishaps == ()
    return taken.arrived[0].chat.title


TITLING: dict[str, tuple[str, Callable[[Chats, str], str | None]]] = {
    "a title by itself": ("Roof", lambda chats, id: chats.auto_title(id, "Roof").title),
    "a branch": ("Roof #3", branch),
    "a shorter form": ("Roof #3", compress),
    "an import": ("Roof", take_over),
}


@pytest.mark.parametrize("how", TITLING)
def test_a_title_of_a_chat_that_cannot_be_read_is_taken(
    store: Store, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    title, give = TITLING[how]
    chats = Chats(store.chats, Config(), Clock())
    spoilt = chats.open(a_source())
    chats.set_title(a_source(), spoilt.id, title)
    chat = chats.reset(a_source())
    store.driver.execute("UPDATE chats SET body = :data WHERE id = :id", data=b"spoilt", id=spoilt.id)
    tried, ask = [], store.chats.refuse_title_of_another

    def asked(*args: object, **settings: object) -> object:
        tried.append(args)
        assert len(tried) < 20, "the same is tried again and again"
        return ask(*args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(store.chats, "refuse_title_of_another", asked)
    assert give(chats, chat.id) == {"Roof": "Roof #2", "Roof #3": "Roof #4"}[title]
    with pytest.raises(errors.TitleTaken, match=spoilt.id):
        chats.set_title(a_source(), chat.id, title)


def test_what_a_chat_that_cannot_be_read_is_called_is_not_given_up_to_what_continues_it(store: Store) -> None:
    chats = Chats(store.chats, Config(), Clock())
    first = chats.open(a_source())
    chats.set_title(a_source(), first.id, "Roof")
    shorter = chats.compress(first.id, [a_turn("in short")])
    store.driver.execute("UPDATE chats SET body = :data WHERE id = :id", data=b"spoilt", id=first.id)
    with pytest.raises(errors.TitleTaken, match=first.id):
        chats.set_title(a_source(), shorter.id, "Roof")
    assert chats.set_title(a_source(), shorter.id, "Walls").title == "Walls"


def test_turns_without_a_chat_are_set_aside(filled: Store, place: Place) -> None:
    filled.driver.execute("DELETE FROM chats WHERE id = 'c1'")
    assert len(filled.check()) == 3
    assert len(repair(place.url, place.state_dir, at(60))) == 3
    assert filled.driver.fetch("SELECT count(*) FROM damaged_turns") == [(3,)]
    assert filled.check() == ()


def test_a_chat_that_is_used_while_it_is_looked_at_is_not_called_damaged(
    filled: Store, opened: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, rows, places_of = opened().chats, filled.chats.rows, filled.chats.places_of

    def append_behind() -> Iterator[Row]:
        found = list(rows())
        gateway.append_turns("c1", [a_turn("d")], at(1))
        yield from found

    def forget_before(number: int) -> Iterator[tuple[int, int | None, int]]:
        if number == second and gateway.list_chats(key="key-c2"):
            gateway.forget_chat("c2")
        return places_of(number)

    second = number_of(filled, "c2")
    gateway.change_chat("c2", lambda chat: replace(chat, closed_at=at(1), close_reason=CloseReason.ASKED))
    monkeypatch.setattr(filled.chats, "rows", append_behind)
    monkeypatch.setattr(filled.chats, "places_of", forget_before)
    assert filled.check() == ()
    assert [chat.id for chat in gateway.list_chats()] == ["c1"]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE turns SET role = 'system' WHERE id = :id",
        "DELETE FROM turns WHERE id = :id",
        "UPDATE chats SET turns = 7 WHERE :id > 0",
    ],
)
def test_what_is_no_longer_there_when_it_is_mended_is_let_be(
    filled: Store, place: Place, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    filled.driver.execute(sql, id=number_of(filled, "c1") * (1 << 32) + 2)
    filled.chats.change_chat("c1", lambda chat: replace(chat, closed_at=at(1), close_reason=CloseReason.ASKED))

    def forget_behind(book: ChatBook) -> Iterator[ChatDamage]:
        found = list(damage_of(book))
        assert {damage.chat for damage in found} >= {"c1"}
        filled.chats.forget_chat("c1")
        yield from (damage for damage in found if damage.chat == "c1")

    monkeypatch.setattr("perdure.store.repair.damage_of", forget_behind)
    assert repair(place.url, place.state_dir, at(60)) == ()
    monkeypatch.undo()
    assert filled.driver.fetch("SELECT count(*) FROM damaged_turns") == [(0,)]
    assert [chat.id for chat in filled.chats.list_chats()] == ["c2"]


@pytest.mark.parametrize("hidden", [b"\x00", b"", "x", 7, -1, 5])
@pytest.mark.parametrize("position", [2, 4])
def test_a_row_that_does_not_say_what_it_is_is_set_aside(
    filled: Store, place: Place, hidden: bytes | str | int, position: int
) -> None:
    if filled.driver.dialect == "postgres" and not isinstance(hidden, int):
        pytest.skip("PostgreSQL takes only numbers there")
    # Positions 1 to 3 are turns, 4 was left out.
    filled.chats.rewrite_turns("c1", 3, [a_turn("c1 d")], at(1))
    id = number_of(filled, "c1") * (1 << 32) + position
    filled.driver.execute("UPDATE turns SET hidden = :hidden WHERE id = :id", hidden=hidden, id=id)
    problems = [(problem.where, problem.repairable) for problem in filled.check()]
    assert (f"turn {position} of chat c1", True) in problems
    assert f"turn {position} of chat c1" in repair(place.url, place.state_dir, at(60))[0]
    assert filled.driver.fetch("SELECT hidden FROM damaged_turns") == [(hidden,)]
    assert [(problem.where, problem.repairable) for problem in filled.check()] == [("chat c1", False)]
    assert repair(place.url, place.state_dir, at(61)) == ()
    left = ["c1 a", "c1 d"] if position == 2 else ["c1 a", "c1 b", "c1 d"]
    transcript = filled.chats.load_turns("c1", partly=True)
    assert ([turn.content for turn in transcript.turns], transcript.missing) == (left, 1)
    assert said(filled, "c2") == ["c2 a", "c2 b", "c2 c"]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize("seal", [b"\x00", "x", 0, -1, 1 << 40])
def test_a_row_that_does_not_say_for_how_much_it_stands_is_set_aside(
    filled: Store, place: Place, seal: bytes | str | int
) -> None:
    filled.chats.rewrite_turns("c1", 3, [a_turn("c1 d")], at(1))
    id = number_of(filled, "c1") * (1 << 32) + 4
    filled.driver.execute("UPDATE turns SET seal = :seal WHERE id = :id", seal=seal, id=id)
    assert ("turn 4 of chat c1", True) in [(problem.where, problem.repairable) for problem in filled.check()]
    repair(place.url, place.state_dir, at(60))
    assert [(problem.where, problem.repairable) for problem in filled.check()] == [("chat c1", False)]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_damaged_file_gives_its_chats_to_a_new_one(place: Place) -> None:
    store = place.open()
    for id in ("c1", "c2"):
        store.chats.begin_chat(a_chat(id, title=id))
        store.chats.append_turns(id, [a_turn(f"{id} {text}") for text in "abc"], at(0))
    store.chats.search_turns("c1")
    damaged = number_of(store, "c2") * (1 << 32) + 2
    store.driver.execute("UPDATE turns SET body = :data WHERE id = :id", data=b"spoilt", id=damaged)
    taken_back = number_of(store, "c1") * (1 << 32) + 5
    store.chats.append_turns("c1", [a_turn("c1 d"), a_turn("c1 e")], at(0))
    store.chats.undo_turns("c1", 2, at(0))
    store.driver.execute("UPDATE turns SET body = :data WHERE id = :id", data=b"spoilt", id=taken_back)
    store.driver.execute("DELETE FROM sqlite_sequence")
    store.driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    root = store.driver.fetch("SELECT rootpage FROM sqlite_master WHERE name = 'snapshots_by_time'")[0][0]
    size = store.driver.fetch("PRAGMA page_size")[0][0]
    store.close()
    path = place.url.removeprefix("sqlite://")
    with open(path, "r+b") as file:
        file.seek((root - 1) * size)
        file.write(os.urandom(size))
    actions = repair(place.url, place.state_dir, at(60))
    assert "Read 2 chats back from the damaged database." in actions
    store = place.open()
    assert [(problem.where, problem.repairable) for problem in store.check()] == [("chat c2", False)]
    assert said(store, "c1") == ["c1 a", "c1 b", "c1 c"]
    assert_short(store, "c2", ["c2 a", "c2 c"], missing=1)
    assert [found.chat for found in store.chats.search_turns("a")] != []
    assert store.driver.fetch("SELECT count(*) FROM damaged_turns") == [(2,)]
    chat = store.chats.open_chat("key-c1")
    assert chat is not None
    assert chat.title == "c1"
    store.close()
