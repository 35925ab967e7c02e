"""What a repair could not read is said, for as long as the file is there; and what only seems lost is read."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from perdure import errors
from perdure.store import open_store
from perdure.store.repair import repair
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import a_chat, a_turn

_PAGE = 4096
_CHATS = [f"c{number}" for number in range(12)]


@pytest.fixture(scope="module")
def original() -> Iterator[str]:
    """A state directory with chats, some of what was said in the log alone."""
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as directory:
        with closing(opened(work)) as store:
            for id in _CHATS:
                store.chats.begin_chat(a_chat(id, title=id))
                store.chats.append_turns(id, [a_turn(f"{id} {count} " + "word " * 90) for count in range(9)], at(0))
            store.chats.index_whole()
            store.driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            store.chats.append_turns("c3", [a_turn("c3 in the log")], at(1))
            shutil.copytree(work, directory, dirs_exist_ok=True)
        assert os.path.getsize(f"{directory}/perdure.db-wal") > 0
        yield directory


@pytest.fixture(scope="module")
def whole(original: str) -> dict[str, list[object]]:
    """What was said in it."""
    # Of a copy: whoever opens it brings the log into the database.
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(original, directory, dirs_exist_ok=True)
        found = said(directory)
    assert (len(found), found["c3"][-1]) == (len(_CHATS), "c3 in the log")
    return found


def opened(directory: str) -> Store:
    return open_store(f"sqlite://{directory}/perdure.db", state_dir=directory)


def change(directory: str, how: Callable[[bytearray], object]) -> bytes:
    """Change the database as a disk does; return what it is then."""
    path = f"{directory}/perdure.db"
    with open(path, "rb") as file:
        content = bytearray(file.read())
    how(content)
    with open(path, "wb") as file:
        file.write(content)
    return bytes(content)


def said(directory: str) -> dict[str, list[object]]:
    with closing(opened(directory)) as store:
        return {
            chat.id: [turn.content for turn in store.chats.load_turns(chat.id, partly=True).turns]
            for chat in store.chats.list_chats()
        }


def flip(place: int, bits: int) -> Callable[[bytearray], None]:
    def change(content: bytearray) -> None:
        content[place] ^= bits

    return change


def wipe_first_page(content: bytearray) -> None:
    content[:_PAGE] = bytes(_PAGE)


@pytest.mark.parametrize(
    "how",
    [
        *(pytest.param(flip(place, 1), id=f"bit 0 of byte {place}") for place in (0, 7, 15, 16, 20, 21, 59, 100)),
        pytest.param(flip(18, 0x40), id="bit 6 of byte 18"),
        pytest.param(wipe_first_page, id="the whole first page"),
    ],
)
def test_a_first_page_costs_nothing_of_the_rest(
    whole: dict[str, list[object]], spoilt: str, how: Callable[[bytearray], object]
) -> None:
    damaged = change(spoilt, how)
    actions = repair(f"sqlite://{spoilt}/perdure.db", spoilt, at(100))
    assert said(spoilt) == whole
    with closing(opened(spoilt)) as store:
        assert store.check() == ()
    if actions:
        # Only a copy was changed, and it is gone.
        (aside,) = [name for name in os.listdir(spoilt) if ".damaged-" in name and name.endswith("Z")]
        with open(f"{spoilt}/{aside}", "rb") as file:
            assert file.read() == damaged
        assert not [name for name in os.listdir(spoilt) if ".copy" in name]
        assert actions[-1] == (
            f"All snapshots, runs, events, chats and jobs in it were read. It is still in {spoilt}/{aside}."
        )


def hide_a_page(content: bytearray) -> None:
    content[28:32] = (int.from_bytes(content[28:32], "big") - 1).to_bytes(4, "big")


@pytest.mark.parametrize(
    "how",
    [
        # Of every number that stands in the header, the last byte.
        *(pytest.param(flip(place, 1), id=f"byte {place}") for place in (*range(23, 72, 4), 91, 95, 99, 102, 104, 107)),
        hide_a_page,
    ],
)
def test_nothing_in_the_header_costs_anything_where_no_log_says_it_again(
    spoilt: str, how: Callable[[bytearray], object]
) -> None:
    with closing(opened(spoilt)):
        pass
    before = said(spoilt)
    assert len(before) == len(_CHATS)
    assert not os.path.exists(f"{spoilt}/perdure.db-wal")
    change(spoilt, how)
    repair(f"sqlite://{spoilt}/perdure.db", spoilt, at(100))
    assert said(spoilt) == before


def cut_short(content: bytearray) -> None:
    del content[len(content) // 2 :]


def make_noise(content: bytearray) -> None:
    content[:] = os.urandom(len(content))


def cut_off(content: bytearray) -> None:
    content.clear()


@pytest.mark.parametrize("how", [cut_short, make_noise, cut_off])
@pytest.mark.parametrize("has_log", [True, False])
def test_what_could_not_be_read_is_said_until_the_file_is_gone(
    whole: dict[str, list[object]], spoilt: str, how: Callable[[bytearray], object], *, has_log: bool
) -> None:
    change(spoilt, how)
    if not has_log:
        os.unlink(f"{spoilt}/perdure.db-wal")
        os.unlink(f"{spoilt}/perdure.db-shm")
    actions = repair(f"sqlite://{spoilt}/perdure.db", spoilt, at(100))
    aside = f"{spoilt}/perdure.db.damaged-20261115T120140Z"
    back = said(spoilt)
    assert back != whole
    for _ in range(2):
        with closing(opened(spoilt)) as store:
            (lacking,) = [problem for problem in store.check() if problem.where == aside]
        assert not lacking.repairable
        assert ("Nothing in the damaged database could be read." in lacking.what) == (not back)
        assert any(sentence.startswith(lacking.what.split(" This is said")[0]) for sentence in actions)
        assert repair(f"sqlite://{spoilt}/perdure.db", spoilt, at(200)) == ()
    assert os.path.exists(f"{aside}-wal") or not has_log
    os.unlink(aside)
    with closing(opened(spoilt)) as store:
        assert aside not in [problem.where for problem in store.check()]
    assert repair(f"sqlite://{spoilt}/perdure.db", spoilt, at(300)) == ()
    assert not os.path.exists(f"{spoilt}/perdure.db.mending")


@pytest.mark.parametrize("how", [{}, {"threads": True}, {"read_only": True}])
def test_an_empty_file_is_not_taken_for_a_store_that_holds_nothing(spoilt: str, how: dict[str, bool]) -> None:
    change(spoilt, cut_off)
    os.unlink(f"{spoilt}/perdure.db-wal")
    with pytest.raises(errors.StoreDamaged, match=r"empty, and .*numbers\.json says .*check --repair"):
        open_store(f"sqlite://{spoilt}/perdure.db", state_dir=spoilt, **how)
    assert os.path.getsize(f"{spoilt}/perdure.db") == 0


def test_an_empty_file_where_nothing_was_is_a_new_store() -> None:
    with tempfile.TemporaryDirectory() as directory:
        change_to_nothing(f"{directory}/perdure.db")
        assert said(directory) == {}


@pytest.fixture
def young() -> Iterator[str]:
    """A state directory whose store was never closed: all there is to it is in the log, and the database one page."""
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as directory:
        with closing(opened(work)) as store:
            store.chats.begin_chat(a_chat("c1"))
            store.chats.append_turns("c1", [a_turn("tiles")], at(0))
            shutil.copytree(work, directory, dirs_exist_ok=True)
        assert os.path.getsize(f"{directory}/perdure.db") == _PAGE
        yield directory


def lose_log(directory: str) -> None:
    for end in ("wal", "shm"):
        os.unlink(f"{directory}/perdure.db-{end}")


def empty_log(directory: str) -> None:
    change_to_nothing(f"{directory}/perdure.db-wal")


@pytest.mark.parametrize("lose", [lose_log, empty_log])
@pytest.mark.parametrize("how", [{}, {"threads": True}, {"read_only": True}])
def test_a_young_store_that_has_lost_its_log_is_not_taken_for_a_new_one(
    young: str, lose: Callable[[str], None], how: dict[str, bool]
) -> None:
    lose(young)
    files = sorted(os.listdir(young))
    with pytest.raises(errors.StoreDamaged, match=r"empty, and .*numbers\.json says .*check --repair"):
        open_store(f"sqlite://{young}/perdure.db", state_dir=young, **how)
    assert sorted(os.listdir(young)) == files


@pytest.mark.parametrize("lose", [lose_log, empty_log])
def test_a_young_store_that_has_lost_its_log_is_set_aside(young: str, lose: Callable[[str], None]) -> None:
    lose(young)
    actions = repair(f"sqlite://{young}/perdure.db", young, at(100))
    aside = f"{young}/perdure.db.damaged-20261115T120140Z"
    assert actions[0] == f"Set the damaged database aside as {aside}."
    assert os.path.getsize(aside) == _PAGE
    assert said(young) == {}
    for _ in range(2):
        with closing(opened(young)) as store:
            assert [problem.where for problem in store.check()] == [aside]
            # No number is given again.
            assert store.last_event() > 1
        assert repair(f"sqlite://{young}/perdure.db", young, at(200)) == ()


def test_a_young_store_with_its_log_is_opened_at_once(young: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_: float) -> None:
        raise AssertionError("nobody waits")

    monkeypatch.setattr("perdure.store.mending.sleep", never)
    assert said(young) == {"c1": ["tiles"]}


def test_one_that_somebody_is_about_to_make_is_waited_for(young: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{young}/perdure.db"
    with open(f"{path}-wal", "rb") as file:
        log = file.read()
    lose_log(young)

    def somebody_goes_on(_: float) -> None:
        with open(f"{path}-wal", "wb") as file:
            file.write(log)

    monkeypatch.setattr("perdure.store.mending.sleep", somebody_goes_on)
    assert said(young) == {"c1": ["tiles"]}


def test_a_database_of_one_page_where_nothing_was_is_a_new_store(young: str) -> None:
    lose_log(young)
    os.unlink(f"{young}/numbers.json")
    assert said(young) == {}


@pytest.mark.parametrize("is_there", [True, False])
def test_a_log_that_holds_everything_is_read_without_its_database(*, is_there: bool) -> None:
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as directory:
        with closing(opened(work)) as store:
            store.chats.begin_chat(a_chat("c1"))
            store.chats.append_turns("c1", [a_turn("tiles"), a_turn("slate")], at(0))
            shutil.copytree(work, directory, dirs_exist_ok=True)
        os.unlink(f"{directory}/perdure.db")
        if is_there:
            change_to_nothing(f"{directory}/perdure.db")
        with open(f"{directory}/perdure.db-wal", "rb") as file:
            log = file.read()
        with pytest.raises(errors.StoreDamaged):
            opened(directory)
        repair(f"sqlite://{directory}/perdure.db", directory, at(100))
        assert said(directory) == {"c1": ["tiles", "slate"]}
        with open(f"{directory}/perdure.db.damaged-20261115T120140Z-wal", "rb") as file:
            assert file.read() == log


def change_to_nothing(path: str) -> None:
    with open(path, "wb"):
        pass
