"""Chats of one store: one open for each key, titles of one owner, grants, and who came first."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from perdure import errors
from perdure.model.chat import CloseReason, Kinship, Source, Tokens
from perdure.model.chat_owner import owner_of, reaches_of
from perdure.model.event import EventKind
from perdure.store import migrations, open_store
from perdure.store.chat_rows import SPAN
from perdure.store.chats import ChatBook
from perdure.store.driver import Row
from perdure.store.forgetting import go_on, note
from perdure.store.store import Store
from tests.builders import a_capture, at
from tests.contract.store.chats import a_chat, a_source, a_turn
from tests.contract.store.conftest import Place


def ids(chats: tuple[object, ...]) -> list[str]:
    return [chat.id for chat in chats]  # type: ignore[attr-defined]


def test_a_chat_comes_back_as_it_was_written(store: Store, opened: Callable[[], Store]) -> None:
    chat = a_chat(
        source=Source(
            platform="discord",
            chat_id="42",
            chat_type="thread",
            chat_name="na\u00efve \U0001f600 \ud800 \0",
            user_id="u\0",
            user_name="b",
            profile="work",
        ),
        title="The roof",
        tokens=Tokens(input=3, output=4),
        by_model={"m": Tokens(input=3, output=4)},
        model="m",
        extra={"nested": [1, {"a": None}]},
        notice=CloseReason.DAILY,
    )
    assert store.chats.begin_chat(chat) == chat
    assert opened().chats.get_chat("c1") == chat
    assert opened().chats.open_chat("key-c1") == chat
    assert store.check() == ()


def test_what_has_to_be_proved_anew_is_not_written_down(store: Store) -> None:
    source = a_source(role_authorized=True, relayed=True)
    begun = store.chats.begin_chat(a_chat(source=source))
    assert begun is not None
    assert begun.source == a_source()


def test_a_key_has_one_open_chat_and_all_who_come_at_once_find_it(place: Place) -> None:
    stores = [place.open() for _ in range(4)]

    def begin(number: int) -> str | None:
        begun = stores[number % 4].chats.begin_chat(a_chat(f"c{number}", key="same"))
        return None if begun is None else begun.id

    with ThreadPoolExecutor(4) as pool:
        # One thread for each store, which belong to one thread each.
        begun = [each for each in pool.map(begin, range(4)) if each]
    assert len(begun) == 1
    found = stores[0].chats.open_chat("same")
    assert found is not None
    assert [found.id] == begun
    assert stores[0].chats.count_chats() == 1
    for store in stores:
        store.close()


def test_the_open_chat_gives_way_only_as_it_was_seen(store: Store) -> None:
    first = store.chats.begin_chat(a_chat("c1", key="k"))
    second = a_chat("c2", key="k", opened_at=at(9), touched_at=at(9), follows="c1", kinship=Kinship.SUCCESSOR)
    assert store.chats.begin_chat(second) is None
    store.chats.touch_chat("c1", at(5))
    assert store.chats.begin_chat(second, instead_of=first, reason=CloseReason.IDLE) is None
    current = store.chats.open_chat("k")
    assert store.chats.begin_chat(second, instead_of=current, reason=CloseReason.IDLE) == second
    closed = store.chats.get_chat("c1")
    assert (closed.closed_at, closed.close_reason, closed.touched_at) == (at(9), CloseReason.IDLE, at(5))
    assert store.chats.last_closed("k") == closed


def test_touching_never_goes_back_and_says_when_a_chat_was_closed(store: Store) -> None:
    chat = store.chats.begin_chat(a_chat())
    assert store.chats.touch_chat("c1", at(5))
    assert store.chats.touch_chat("c1", at(3))
    assert store.chats.get_chat("c1").touched_at == at(5)
    current = store.chats.get_chat("c1")
    store.chats.begin_chat(a_chat("c2", key="key-c1"), instead_of=current)
    assert not store.chats.touch_chat("c1", at(9))
    assert chat is not None


def test_switching_closes_the_one_and_opens_the_other(store: Store) -> None:
    book = store.chats
    first = book.begin_chat(a_chat("c1", key="k"))
    book.begin_chat(a_chat("c2", key="k", opened_at=at(1), touched_at=at(1)), instead_of=first)
    switched = book.switch_chat(book.get_chat("c1"), "k", at(2), instead_of=book.get_chat("c2"))
    assert switched is not None
    assert switched.is_open
    assert book.get_chat("c2").close_reason is CloseReason.SWITCHED
    again = book.switch_chat(switched, "k", at(3), instead_of=switched)
    assert again is not None
    assert again.touched_at == at(2)
    # Under a key that was made by other rules.
    moved = book.switch_chat(book.get_chat("c2"), "other", at(4), instead_of=None)
    assert moved is not None
    assert (moved.key, moved.is_open) == ("other", True)
    with pytest.raises(errors.ChatNotFound):
        book.switch_chat(a_chat("c9"), "k", at(5), instead_of=None)


def test_a_title_is_the_owners_alone(store: Store) -> None:
    book = store.chats
    book.begin_chat(a_chat("c1", title="Roof"))
    book.begin_chat(a_chat("c2", source=a_source("bob"), title="Roof"))
    with pytest.raises(errors.TitleTaken, match="c1"):
        book.begin_chat(a_chat("c3", title="Roof"))
    with pytest.raises(errors.ChatNotFound):
        book.get_chat("c3")
    book.begin_chat(a_chat("c3"))
    with pytest.raises(errors.TitleTaken):
        book.change_chat("c3", lambda chat: replace(chat, title="Roof"))
    assert book.change_chat("c1", lambda chat: replace(chat, title="Roof")).title == "Roof"
    assert book.change_chat("c3", lambda chat: replace(chat, title="Roof"), over=["c1"]).title == "Roof"
    assert book.get_chat("c1").title is None


def test_a_chat_is_changed_only_where_it_goes_on_as_expected(store: Store) -> None:
    book = store.chats
    book.begin_chat(a_chat("c1"))
    book.append_turns("c1", [a_turn("a")], at(0))
    with pytest.raises(errors.Conflict) as raised:
        book.change_chat("c1", lambda chat: replace(chat, suspended=True), expect=1)
    assert raised.value.data["position"] == 2
    assert not book.get_chat("c1").suspended
    assert book.change_chat("c1", lambda chat: replace(chat, closed_at=at(1)), expect=2).closed_at == at(1)
    # Whether or not it is open.
    assert book.change_chat("c1", lambda chat: replace(chat, flushed_at=at(1)), expect=2).flushed_at == at(1)


def test_numbered_titles_are_found_by_what_they_begin_with_literally(store: Store) -> None:
    book = store.chats
    for number, title in enumerate(["50%_", "50%_ #2", "50%_ #ideas", "50%x #2", "50%_#3", "50%_ $", "50%_ #10"]):
        book.begin_chat(a_chat(f"c{number}", title=title))
    found = book.chats_titled(owner_of(a_source()), "50%_")
    assert [chat.title for chat in found] == ["50%_", "50%_ #2", "50%_ #ideas", "50%_ #10"]
    assert book.chats_titled(owner_of(a_source("bob")), "50%_") == ()


def test_lists_are_by_use_and_by_whose_they_are(store: Store) -> None:
    book = store.chats
    book.begin_chat(a_chat("c1", touched_at=at(3)))
    book.begin_chat(a_chat("c2", touched_at=at(5), source=a_source("bob")))
    closed = a_chat("c3", touched_at=at(4), closed_at=at(4), close_reason=CloseReason.IMPORTED)
    book.begin_chat(closed)
    assert ids(book.list_chats()) == ["c2", "c3", "c1"]
    assert ids(book.list_chats(is_open=True)) == ["c2", "c1"]
    assert ids(book.list_chats(is_open=False)) == ["c3"]
    assert ids(book.list_chats(since=at(4), limit=1)) == ["c2"]
    assert ids(book.list_chats(key="key-c1")) == ["c1"]
    mine = {"reaches": reaches_of(a_source()), "owner": owner_of(a_source())}
    assert ids(book.list_chats(**mine)) == ["c3", "c1"]  # type: ignore[arg-type]
    book.grant_chat("c2", owner_of(a_source()))
    book.grant_chat("c2", owner_of(a_source()))
    assert ids(book.list_chats(**mine)) == ["c2", "c3", "c1"]  # type: ignore[arg-type]
    assert book.is_granted("c2", owner_of(a_source()))
    book.revoke_chat("c2", owner_of(a_source()))
    assert ids(book.list_chats(**mine)) == ["c3", "c1"]  # type: ignore[arg-type]
    assert book.list_chats(reaches=()) == ()


def test_nobody_reaches_a_chat_of_which_it_is_not_known_whose_it_is(store: Store) -> None:
    store.chats.begin_chat(a_chat(source=a_source(None, chat_id="5")))
    for asker in (a_source(None, chat_id="5"), a_source("alice", chat_id="5"), a_source(None, chat_id="")):
        assert store.chats.list_chats(reaches=reaches_of(asker), owner=owner_of(asker)) == ()


def test_only_a_closed_chat_can_be_forgotten_with_all_that_was_said(store: Store) -> None:
    book = store.chats
    first = book.begin_chat(a_chat("c1", key="k"))
    book.append_turns("c1", [a_turn("some secret tiles")], at(0))
    with pytest.raises(errors.Refused):
        book.forget_chat("c1")
    assert len(book.search_turns("tiles")) == 1
    first = book.open_chat("k")
    book.begin_chat(a_chat("c2", key="k"), instead_of=first)
    book.forget_chat("c1")
    with pytest.raises(errors.ChatNotFound):
        book.load_turns("c1")
    assert book.search_turns("tiles") == ()
    assert store.driver.fetch("SELECT count(*) FROM turns") == [(0,)]
    book.append_turns("c2", [a_turn("other tiles")], at(0))
    assert [found.chat for found in book.search_turns("tiles")] == ["c2"]
    assert store.check() == ()


def a_long_chat_to_forget(book: ChatBook) -> None:
    book.begin_chat(a_chat("c1", key="k"))
    book.append_turns("c1", [a_turn(f"secret tiles {number}") for number in range(450)], at(0))
    assert len(book.search_turns("secret", limit=1000)) == 450
    book.begin_chat(a_chat("c2", key="k"), instead_of=book.open_chat("k"))


def test_nobody_waits_for_a_long_chat_to_be_forgotten_as_a_whole(
    opened: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = opened(), opened()
    a_long_chat_to_forget(store.chats)
    changing = store.chats.changing

    def after_another() -> AbstractContextManager[None]:
        other.chats.append_turns("c2", [a_turn("in between")], at(1))
        return changing()

    monkeypatch.setattr(store.chats, "changing", after_another)
    store.chats.forget_chat("c1")
    assert len(other.chats.load_turns("c2").turns) > 2
    assert store.driver.fetch("SELECT count(*) FROM turns") == [(len(other.chats.load_turns("c2").turns),)]
    assert store.check() == ()


def test_a_short_chat_is_forgotten_in_one_go(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.chats.begin_chat(a_chat("c1", key="k"))
    store.chats.append_turns("c1", [a_turn("secret tiles")] * 3, at(0))
    store.chats.begin_chat(a_chat("c2", key="k"), instead_of=store.chats.open_chat("k"))
    changing, times = store.chats.changing, count()

    def once() -> AbstractContextManager[None]:
        assert next(times) == 0
        return changing()

    monkeypatch.setattr(store.chats, "changing", once)
    store.chats.forget_chat("c1")
    assert store.driver.fetch("SELECT count(*) FROM turns") == [(0,)]
    assert store.driver.fetch("SELECT count(*) FROM facts WHERE name LIKE 'forgetting%'") == [(0,)]


def test_few_turns_of_a_chat_are_forgotten_at_once_where_they_are_large(
    opened: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = opened(), opened()
    large, larger = "tiles " * 40_000, "tiles " * 100_000
    store.chats.begin_chat(a_chat("c1", key="k"))
    for content in ("secret", large, large, large, larger, "secret", large):
        store.chats.append_turns("c1", [a_turn(content)], at(0))
    assert len(store.chats.search_turns("tiles")) == 5
    store.chats.begin_chat(a_chat("c2", key="k"), instead_of=store.chats.open_chat("k"))
    changing, forget_words, steps = store.chats.changing, store.chats.forget_words, []

    def after_another() -> AbstractContextManager[None]:
        other.chats.append_turns("c2", [a_turn("in between")], at(1))
        return changing()

    def noted(chat: str, number: int, rows: list[Row]) -> None:
        steps.append([row[0] - number * SPAN for row in rows])
        forget_words(chat, number, rows)

    monkeypatch.setattr(store.chats, "changing", after_another)
    monkeypatch.setattr(store.chats, "forget_words", noted)
    store.chats.forget_chat("c1")
    assert steps == [[1, 2, 3], [4], [5], [6, 7]]
    assert len(other.chats.load_turns("c2").turns) == len(steps)
    assert store.driver.fetch("SELECT count(*) FROM turns") == [(len(steps),)]
    assert other.chats.search_turns("tiles") == ()
    assert store.check() == ()


@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_a_chat_whose_forgetting_was_interrupted_is_gone_and_the_rest_goes_later(
    opened: Callable[[], Store], monkeypatch: pytest.MonkeyPatch, *, is_rebuilt: bool
) -> None:
    store = opened()
    a_long_chat_to_forget(store.chats)
    forget_words, times = store.chats.forget_words, count(1)

    def interrupted(*which: Any) -> None:
        if next(times) > 1:
            raise KeyboardInterrupt
        forget_words(*which)

    monkeypatch.setattr(store.chats, "forget_words", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.chats.forget_chat("c1")
    later = opened()
    with pytest.raises(errors.ChatNotFound):
        later.chats.load_turns("c1")
    assert later.chats.search_turns("secret") == ()
    assert later.check() == ()
    assert len(later.read_events(kinds=[EventKind.CHAT_FORGOTTEN])) == 1
    later.chats.append_turns("c2", [a_turn("other tiles")], at(0))
    assert [found.chat for found in later.chats.search_turns("tiles", limit=1)] == ["c2"]
    if is_rebuilt:
        later.chats.rebuild_index()
    later.chats.begin_chat(a_chat("c3", key="k"), instead_of=later.chats.open_chat("k"))
    assert later.driver.fetch("SELECT count(*) FROM turns") == [(251,)]
    later.chats.forget_chat("c2")
    assert later.driver.fetch("SELECT count(*) FROM turns") == [(0,)]
    later.chats.append_turns("c3", [a_turn("tiles again")], at(0))
    assert [found.chat for found in later.chats.search_turns("tiles")] == ["c3"]
    assert later.check() == ()


def test_what_is_left_of_a_forgotten_chat_hides_nothing_that_was_said_before_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of very many that match, the latest are looked at."""
    store.chats.begin_chat(a_chat("c0", key="another"))
    store.chats.append_turns("c0", [a_turn("tiles of long ago")], at(0))
    a_long_chat_to_forget(store.chats)
    forgetting = store.chats.forget_words

    def interrupted(*which: Any) -> None:
        monkeypatch.setattr(store.chats, "changing", _interrupt)
        forgetting(*which)

    monkeypatch.setattr(store.chats, "forget_words", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.chats.forget_chat("c1")
    monkeypatch.undo()
    assert store.driver.fetch("SELECT count(*) FROM turns") == [(251,)]
    assert [found.chat for found in store.chats.search_turns("tiles", limit=1)] == ["c0"]


def _interrupt() -> AbstractContextManager[None]:
    raise KeyboardInterrupt


def test_no_chat_that_is_there_goes_because_a_note_of_forgetting_was_damaged(store: Store) -> None:
    store.chats.begin_chat(a_chat("c1"))
    store.chats.append_turns("c1", [a_turn("kept")], at(0))
    ((number,),) = store.driver.fetch("SELECT number FROM chats")
    note(store.chats, "c0", number, 2)
    while go_on(store.chats):
        continue
    assert [turn.content for turn in store.chats.load_turns("c1").turns] == ["kept"]
    assert [found.chat for found in store.chats.search_turns("kept")] == ["c1"]


def test_a_change_that_raises_changes_nothing(store: Store) -> None:
    store.chats.begin_chat(a_chat())

    def fail(chat: object) -> None:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        store.chats.change_chat("c1", fail)  # type: ignore[arg-type]
    assert store.chats.get_chat("c1") == a_chat()


def test_chats_by_the_beginning_of_their_ids(store: Store) -> None:
    for id in ("20261115_a", "20261115_b", "2027"):
        store.chats.begin_chat(a_chat(id))
    assert ids(store.chats.chats_beginning("20261115")) == ["20261115_a", "20261115_b"]
    assert ids(store.chats.chats_beginning("2027")) == ["2027"]
    assert store.chats.chats_beginning("3") == ()


def test_a_store_that_is_only_read_changes_no_chat(place: Place, store: Store) -> None:
    store.chats.begin_chat(a_chat())
    store.chats.append_turns("c1", [a_turn()], at(0))
    store.chats.search_turns("hello")
    reader = open_store(place.url, state_dir=place.state_dir, read_only=True)
    assert len(reader.chats.load_turns("c1").turns) == 1
    assert len(reader.chats.search_turns("hello")) == 1
    for change in (
        lambda: reader.chats.append_turns("c1", [a_turn()], at(0)),
        lambda: reader.chats.begin_chat(a_chat("c2")),
        lambda: reader.chats.touch_chat("c1", at(1)),
        lambda: reader.chats.undo_turns("c1", 1, at(1)),
    ):
        with pytest.raises(errors.StoreUnusable, match="only read"):
            change()
    reader.close()


@pytest.mark.unmade
def test_a_store_from_before_the_chats_keeps_what_it_has(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        every = migrations.known
        earlier.setattr(migrations, "known", lambda dialect: {step: every(dialect)[step] for step in (1, 2, 3)})
        old = place.open()
        saved = old.save_snapshot(a_capture(), {})
        assert not old.driver.has_table("chats")
        old.close()
    store = place.open()
    assert [line.id for line in store.list_snapshots()] == [saved.id]
    store.chats.begin_chat(a_chat())
    assert store.check() == ()
    store.close()


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_broken_connection_costs_what_met_it_and_nothing_after(threaded: Store, store: Store) -> None:
    book = threaded.chats
    book.begin_chat(a_chat())
    ((pid,),) = threaded.driver.fetch("SELECT pg_backend_pid()")
    store.driver.fetch("SELECT pg_terminate_backend(CAST(:pid AS INTEGER))", pid=pid)
    with pytest.raises(errors.StoreUnusable):
        book.append_turns("c1", [a_turn("lost")], at(0))
    assert book.append_turns("c1", [a_turn("kept")], at(0)) == 1
    assert [turn.content for turn in book.load_turns("c1").turns] == ["kept"]
