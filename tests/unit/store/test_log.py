"""A damaged log costs no commit that was acknowledged: it is noticed before anybody opens the database, and read back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import errors
from perdure.store import log, open_store
from perdure.store.log import is_broken
from perdure.store.repair import repair
from perdure.store.store import Store
from tests.builders import at
from tests.conftest import PrivateHome
from tests.contract.store.chats import a_chat, a_turn

_FRAME = 24 + 4096
_COMMITS = 12


@pytest.fixture(scope="module")
def original() -> Iterator[str]:
    """A state directory as a kill leaves it: nearly all that was said is in the log alone."""
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as directory:
        with closing(opened(work)) as store:
            for id in ("a", "b"):
                store.chats.begin_chat(a_chat(id))
            store.driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            for count in range(_COMMITS):
                store.chats.append_turns("ab"[count % 2], [a_turn(f"{count} " + "word " * 90)], at(1))
            shutil.copytree(work, directory, dirs_exist_ok=True)
        os.unlink(f"{directory}/perdure.db-shm")
        yield directory


def opened(directory: str) -> Store:
    return open_store(f"sqlite://{directory}/perdure.db", state_dir=directory)


def log_of(directory: str) -> str:
    return f"{directory}/perdure.db-wal"


def flip(path: str, place: int, bit: int = 0) -> None:
    with open(path, "r+b") as file:
        file.seek(place)
        (before,) = file.read(1)
        file.seek(place)
        file.write(bytes([before ^ 1 << bit]))


def said(directory: str) -> list[str]:
    with closing(opened(directory)) as store:
        return [
            str(turn.content).split()[0]
            for chat in ("a", "b")
            for turn in store.chats.load_turns(chat, partly=True).turns
        ]


def rows_in(directory: str) -> int:
    """How many turns SQLite finds, whose log ends where that is damaged."""
    with closing(sqlite3.connect(f"{directory}/perdure.db")) as connection:
        ((count,),) = connection.execute("SELECT (SELECT count(*) FROM turns) + (SELECT count(*) FROM arrivals)")
    return int(count)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_a_log_that_is_damaged_in_the_midst_is_opened_by_nobody_and_read_back(spoilt: str, share: float) -> None:
    size = os.path.getsize(log_of(spoilt))
    # Within a page, not at its edge, where nothing may stand.
    flip(log_of(spoilt), int(size * share) // _FRAME * _FRAME + 32 + 24 + 4000)
    for _ in range(2):
        with pytest.raises(errors.StoreDamaged) as caught:
            opened(spoilt)
        # What is asked again, with the error at hand, is refused again: nobody gets in by trying twice.
        assert "perdure check --repair" in caught.value.message
    assert os.path.getsize(log_of(spoilt)) == size
    done = repair(f"sqlite://{spoilt}/perdure.db", spoilt, at(9))
    assert any("Set the damaged database aside" in each for each in done)
    found = said(spoilt)
    # One page is damaged: what stood on it may be lost, and is said to be.
    lacking = {str(count) for count in range(_COMMITS)} - set(found)
    assert len(lacking) <= 2, (lacking, done)
    assert len(found) == len(set(found))
    with closing(opened(spoilt)) as store:
        assert lacking == set() or store.check() != ()


def test_a_whole_log_is_read_as_ever(spoilt: str) -> None:
    assert not is_broken(log_of(spoilt))
    assert set(said(spoilt)) == {str(count) for count in range(_COMMITS)}


def test_no_log_and_half_a_header_are_not_broken(spoilt: str) -> None:
    assert not is_broken(f"{spoilt}/nothing")
    with open(f"{spoilt}/short", "wb") as file:
        file.write(b"\x37\x7f\x06\x82")
    assert not is_broken(f"{spoilt}/short")


def test_a_header_that_is_damaged_hides_nothing(spoilt: str) -> None:
    flip(log_of(spoilt), 17)
    with pytest.raises(errors.StoreDamaged):
        opened(spoilt)
    repair(f"sqlite://{spoilt}/perdure.db", spoilt, at(9))
    assert set(said(spoilt)) == {str(count) for count in range(_COMMITS)}


@given(data=st.data())
def test_whatever_bit_is_flipped_no_more_than_one_commit_is_missed_unnoticed(
    original: str, data: st.DataObject
) -> None:
    size = os.path.getsize(log_of(original))
    place, bit = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, 7))
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(original, directory, dirs_exist_ok=True)
        flip(log_of(directory), place, bit)
        if is_broken(log_of(directory)):
            log.relink(log_of(directory))
            assert not is_broken(log_of(directory))
        else:
            # The last ones look as a crash leaves them, and nobody can tell.
            assert rows_in(directory) >= _COMMITS - 2


@given(share=st.floats(0, 1), filler=st.binary(max_size=300))
def test_a_log_that_a_crash_cut_off_is_whole(original: str, share: float, filler: bytes) -> None:
    with open(log_of(original), "rb") as file:
        content = file.read()
    with tempfile.NamedTemporaryFile() as file:
        file.write(content[: int(len(content) * share)] + filler)
        file.flush()
        assert not is_broken(file.name)


@given(lost=st.sets(st.integers(0, 3)), extra=st.integers(1, 3))
def test_a_transaction_that_a_crash_left_in_pieces_is_no_damage(original: str, lost: set[int], extra: int) -> None:
    """The last transaction may be there in part, its end included: it was acknowledged to nobody."""
    with open(log_of(original), "rb") as file:
        content = bytearray(file.read())
    ends = [
        end for end in range(32 + _FRAME, len(content) + 1, _FRAME) if any(content[end - _FRAME + 4 : end - _FRAME + 8])
    ]
    begins = ends[-2]
    for each in lost:
        start = begins + each * _FRAME
        if start < ends[-1]:
            content[start : start + _FRAME] = bytes(min(_FRAME, len(content) - start))
    with tempfile.NamedTemporaryFile() as file:
        # Behind it, what was in the file when the log was begun anew.
        file.write(content + bytes(_FRAME * extra))
        file.flush()
        assert not is_broken(file.name)


def test_what_is_left_of_the_log_before_is_no_part_of_this_one(private_home: PrivateHome) -> None:
    path = f"{private_home.root}/some.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE said (what)")
        for count in range(20):
            connection.execute("INSERT INTO said VALUES (?)", (f"{count} " * 900,))
        size = os.path.getsize(f"{path}-wal")
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        for count in range(3):
            connection.execute("INSERT INTO said VALUES (?)", (str(count),))
            assert os.path.getsize(f"{path}-wal") == size
            assert not is_broken(f"{path}-wal")
