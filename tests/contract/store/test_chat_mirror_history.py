"""A mirror beside a store that has another past by now, or whose files say something else than it was written there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from perdure.chats import mirror_file
from perdure.chats.mirror import NOTES, Mirror
from perdure.chats.service import Chats
from perdure.model.config import ChatKeysConfig, Config
from perdure.store import open_store
from perdure.store.store import Store
from tests.contract.store.chats import Clock, a_source, a_turn
from tests.contract.store.conftest import Place
from tests.contract.store.mirrors import inode, lines, said

_TABLES = ("chats", "turns", "events", "counters")


@pytest.fixture(params=[False, True], ids=["told at once", "told later"])
def book(request: pytest.FixtureRequest, place: Place) -> Iterator[Store]:
    """A new store, of either kind: what was said is in the mirror before or after an event tells of it."""
    with closing(open_store(place.url, state_dir=place.state_dir, threads=request.param)) as store:
        yield store


@pytest.fixture
def chats(book: Store, clock: Clock) -> Chats:
    """Its chats."""
    return Chats(book.chats, Config(), clock)


@pytest.fixture
def mirror(book: Store, tmp_path: Path) -> Mirror:
    """Its mirror."""
    return Mirror(book.chats, str(tmp_path / "sessions"), ChatKeysConfig())


def back_up(book: Store) -> None:
    """Let `put_back` bring the store to where it is now."""
    # Told, and in its place, so that four tables have all there is to it.
    book.make_up_for_untold()
    book.chats.index_whole()
    for table in _TABLES:
        book.driver.execute(f"CREATE TABLE kept_{table} AS SELECT * FROM {table}")


def put_back(book: Store) -> None:
    """Let the store be as it was at `back_up`."""
    book.make_up_for_untold()
    book.chats.index_whole()
    with book.driver.transaction("test"):
        for table in reversed(_TABLES):
            book.driver.execute(f"DELETE FROM {table}")
        for table in _TABLES:
            book.driver.execute(f"INSERT INTO {table} SELECT * FROM kept_{table}")


def a_mirrored_chat(chats: Chats, mirror: Mirror) -> str:
    """The id of a chat with one turn, which the mirror has."""
    chat = chats.open(a_source()).id
    chats.append(chat, a_turn("hello"))
    mirror.catch_up()
    return chat


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("more", [(), ("CCCC",)])
def test_what_was_said_before_a_backup_was_put_back_does_not_stay(
    chats: Chats, mirror: Mirror, book: Store, clock: Clock, everything: bool, more: tuple[str, ...]
) -> None:
    """As many turns, as long, at the same time, and the numbers of events are the same again."""
    id = a_mirrored_chat(chats, mirror)
    back_up(book)
    clock.later(seconds=1)
    chats.append(id, a_turn("AAAA"))
    mirror.catch_up()
    assert said(mirror, id) == ["hello", "AAAA"]
    put_back(book)
    clock.later(seconds=1)
    for text in ("BBBB", *more):
        chats.append(id, a_turn(text))
    mirror.catch_up(everything=everything)
    assert said(mirror, id) == ["hello", "BBBB", *more]


def test_a_closed_chat_of_before_is_brought_up_to_date_too(
    chats: Chats, mirror: Mirror, book: Store, clock: Clock
) -> None:
    id = a_mirrored_chat(chats, mirror)
    back_up(book)
    for text in ("AAAA", "BBBB"):
        clock.later(seconds=1)
        chats.append(id, a_turn(text))
        chats.reset(a_source())
        # Told of, too.
        for _ in range(2):
            book.make_up_for_untold()
            mirror.catch_up()
        assert said(mirror, id) == ["hello", text]
        put_back(book)


def test_a_store_that_is_behind_what_was_heard_has_another_past(chats: Chats, mirror: Mirror, book: Store) -> None:
    id = a_mirrored_chat(chats, mirror)
    back_up(book)
    chats.append(id, a_turn("AAAA"))
    book.make_up_for_untold()
    mirror.catch_up()
    path = Path(mirror.directory, f"{id}.jsonl")
    before = inode(mirror, id)
    put_back(book)
    mirror.catch_up()
    assert said(mirror, id) == ["hello"]
    # It is looked at once, not for ever: what is in the file stays there unless somebody asks for everything.
    edited = path.read_bytes().replace(b"hello", b"olleh")
    path.write_bytes(edited)
    assert mirror.catch_up().written == ()
    assert (path.read_bytes(), inode(mirror, id) != before) == (edited, True)


def test_numbers_that_were_left_out_by_a_store_that_was_put_back_are_noticed(
    chats: Chats, mirror: Mirror, book: Store
) -> None:
    """So they are where it is far behind the copy of its numbers: there is no event any more where one was heard."""
    id = a_mirrored_chat(chats, mirror)
    back_up(book)
    chats.append(id, a_turn("AAAA"))
    book.make_up_for_untold()
    mirror.catch_up()
    put_back(book)
    book.go_on_behind(book.last_event() + 10)
    chats.append(id, a_turn("BBBB"))
    book.make_up_for_untold()
    mirror.catch_up()
    assert said(mirror, id) == ["hello", "BBBB"]


def test_a_file_that_says_something_else_is_put_right_by_whoever_looks_at_everything(
    chats: Chats, mirror: Mirror
) -> None:
    id = a_mirrored_chat(chats, mirror)
    path = Path(mirror.directory, f"{id}.jsonl")
    right, before = path.read_bytes(), inode(mirror, id)
    assert mirror.catch_up(everything=True).written == ()
    assert inode(mirror, id) == before
    path.write_bytes(right.replace(b"hello", b"jello"))
    assert mirror.catch_up(everything=True).written == (id,)
    assert path.read_bytes() == right
    assert mirror.catch_up(everything=True).written == ()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 500])
def test_a_file_is_compared_in_pieces(chats: Chats, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(mirror_file, "_PIECE", size)
    chat = chats.open(a_source()).id
    chats.append(chat, *(a_turn(f"turn {number}") for number in range(6)))
    mirror.catch_up()
    path = Path(mirror.directory, f"{chat}.jsonl")
    right = path.read_bytes()
    cut = [right[:end] for end in (0, 1, len(right) // 2, right.index(b"\n") + 1, len(right) - 1)]
    spoilt = [right.replace(f"turn {number}".encode(), b"turn x") for number in range(6)]
    for wrong in (*cut, *spoilt, right + b"{}\n", right + right):
        path.write_bytes(wrong)
        assert mirror.catch_up(everything=True).written == (chat,)
        assert path.read_bytes() == right
    assert mirror.catch_up(everything=True).written == ()


def test_one_that_only_got_longer_is_appended_to_by_whoever_looks_at_everything(chats: Chats, mirror: Mirror) -> None:
    id = a_mirrored_chat(chats, mirror)
    before = inode(mirror, id)
    chats.append(id, a_turn("more"))
    assert mirror.catch_up(everything=True).written == (id,)
    assert (said(mirror, id), inode(mirror, id)) == (["hello", "more"], before)
    chats.append(id, a_turn("still more"))
    mirror.catch_up()
    assert (said(mirror, id), inode(mirror, id)) == (["hello", "more", "still more"], before)


def test_a_turn_that_is_damaged_holds_up_nothing_that_is_said_after_it(
    chats: Chats, mirror: Mirror, book: Store
) -> None:
    id = a_mirrored_chat(chats, mirror)
    book.chats.index_whole()
    book.driver.execute("UPDATE turns SET body = :body", body=b"spoilt")
    chats.append(id, a_turn("more"))
    assert mirror.catch_up().failures == ()
    assert said(mirror, id) == ["hello", "more"]
    # Nor where an earlier version has noted less.
    forget_what_is_new(mirror)
    chats.append(id, a_turn("most"))
    assert mirror.catch_up().failures == ()
    assert said(mirror, id) == ["hello", "more", "most"]
    # It cannot be compared, and stays as it is.
    assert len(mirror.catch_up(everything=True).failures) == 1
    assert said(mirror, id) == ["hello", "more", "most"]


def forget_what_is_new(mirror: Mirror) -> None:
    """Let the notes say what an earlier version writes."""
    notes = Path(mirror.directory, NOTES)
    found: Any = json.loads(notes.read_text())
    del found["mark"]
    notes.write_text(json.dumps(found | {"files": {id: file[:5] for id, file in found["files"].items()}}))


def test_notes_of_an_earlier_version_are_gone_on_with(chats: Chats, mirror: Mirror, book: Store) -> None:
    id = a_mirrored_chat(chats, mirror)
    book.make_up_for_untold()
    mirror.catch_up()
    before = inode(mirror, id)
    forget_what_is_new(mirror)
    assert mirror.catch_up().written == ()
    assert inode(mirror, id) == before
    forget_what_is_new(mirror)
    chats.append(id, a_turn("more"))
    mirror.catch_up()
    assert [line["content"] for line in lines(mirror, id)] == ["hello", "more"]
    assert len(json.loads(Path(mirror.directory, NOTES).read_text())["files"][id]) == 7
