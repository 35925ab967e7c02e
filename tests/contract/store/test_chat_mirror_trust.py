"""What must not happen to a mirror: that it keeps what was forgotten or taken back, or takes away what is not its own."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from perdure import errors
from perdure.chats.followed import FollowedStore
from perdure.chats.mirror import NOTES, Mirror, Mirrored
from perdure.chats.mirroring import Mirroring
from perdure.chats.service import Chats
from perdure.model.chat import CloseReason
from perdure.model.config import ChatKeysConfig, Config
from perdure.store import open_store
from perdure.store.store import Store
from tests.builders import NOON
from tests.contract.store.chats import Clock, a_chat, a_source, a_turn
from tests.contract.store.conftest import Place
from tests.contract.store.mirrors import index, inode, said


def file_of(mirror: Mirror, id: str) -> Path:
    """Where what was said in a chat is."""
    return Path(mirror.directory, f"{id}.jsonl")


def closed_and_open(chats: Chats, mirror: Mirror) -> tuple[str, str]:
    """The ids of a closed chat and of the one after it; both are mirrored."""
    old = chats.open(a_source())
    chats.append(old.id, a_turn("a secret"))
    new = chats.reset(a_source())
    chats.append(new.id, a_turn("b"))
    mirror.catch_up()
    assert said(mirror, old.id) == ["a secret"]
    return old.id, new.id


class Counting:
    """A store that counts how often what was said is read."""

    def __init__(self, store: FollowedStore) -> None:
        self._store = store
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        self.reads += name == "load_turns"
        return getattr(self._store, name)


#: Forgets a chat, and is killed before it could see to the mirror.
_KILLED = """
import os, signal, sys
from perdure.store import open_store
url, state_dir, id = sys.argv[1:]
open_store(url, state_dir=state_dir).chats.forget_chat(id)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_somebody_forgot_who_was_killed_goes_with_the_next_change(
    chats: Chats, mirror: Mirror, place: Place
) -> None:
    old, new = closed_and_open(chats, mirror)
    ran = subprocess.run([sys.executable, "-c", _KILLED, place.url, place.state_dir, old], check=False)
    assert ran.returncode == -signal.SIGKILL
    chats.append(new, a_turn("c"))
    assert mirror.catch_up().removed == (old,)
    assert not file_of(mirror, old).exists()
    assert said(mirror, new) == ["b", "c"]
    assert mirror.catch_up().removed == ()


def test_whoever_begins_to_mirror_takes_away_what_was_forgotten_before(
    threaded: Store, tmp_path: Path, clock: Clock
) -> None:
    mirror = Mirror(threaded.chats, str(tmp_path / "sessions"), ChatKeysConfig())
    old, _ = closed_and_open(Chats(threaded.chats, Config(), clock), mirror)
    threaded.chats.forget_chat(old)
    with Mirroring(threaded.chats, mirror):
        pass
    assert not file_of(mirror, old).exists()


def test_a_file_of_somebody_else_stays_though_a_chat_of_its_name_was_forgotten(
    chats: Chats, mirror: Mirror, store: Store
) -> None:
    os.mkdir(mirror.directory)
    old = chats.open(a_source())
    file_of(mirror, old.id).write_text("theirs")
    chats.reset(a_source())
    mirror.catch_up()
    store.chats.forget_chat(old.id)
    assert mirror.catch_up().removed == ()
    assert mirror.catch_up(everything=True).removed == ()
    assert file_of(mirror, old.id).read_text() == "theirs"


def test_one_that_was_forgotten_and_came_back_has_what_is_said_in_it_now(
    chats: Chats, mirror: Mirror, store: Store
) -> None:
    old, _ = closed_and_open(chats, mirror)
    before = store.chats.get_chat(old)
    store.chats.forget_chat(old)
    # As many turns, used at the same time, and other words.
    store.chats.import_chat(before, [a_turn("no secret", position=1)])
    assert mirror.catch_up().removed == ()
    assert said(mirror, old) == ["no secret"]


def test_one_that_comes_back_just_as_it_is_heard_that_it_went(chats: Chats, mirror: Mirror, store: Store) -> None:
    old, _ = closed_and_open(chats, mirror)
    before = store.chats.get_chat(old)
    store.chats.forget_chat(old)

    class Meanwhile(Counting):
        def __getattr__(self, name: str) -> Any:
            if name == "get_chat" and not self.reads:
                self.reads = 1
                store.chats.import_chat(before, [a_turn("no secret", position=1)])
            return super().__getattr__(name)

    Mirror(cast("FollowedStore", Meanwhile(store.chats)), mirror.directory, ChatKeysConfig()).catch_up()
    mirror.catch_up()
    assert said(mirror, old) == ["no secret"]


def test_one_that_came_back_and_was_lost_then_keeps_its_file(chats: Chats, mirror: Mirror, store: Store) -> None:
    old, _ = closed_and_open(chats, mirror)
    before = store.chats.get_chat(old)
    store.chats.forget_chat(old)
    store.chats.import_chat(before, [a_turn("a secret", position=1)])
    store.driver.execute("DELETE FROM chats WHERE id = :id", id=old)
    assert mirror.catch_up().removed == ()
    assert said(mirror, old) == ["a secret"]


def test_what_could_not_be_removed_costs_only_itself_and_goes_later(chats: Chats, mirror: Mirror, store: Store) -> None:
    old, new = closed_and_open(chats, mirror)
    store.chats.forget_chat(old)
    file_of(mirror, old).unlink()
    # Nothing that can be unlinked.
    file_of(mirror, old).mkdir()
    chats.append(new, a_turn("c"))
    done = mirror.catch_up()
    assert (done.removed, len(done.failures), said(mirror, new)) == ((), 1, ["b", "c"])
    assert [entry["session_id"] for entry in index(mirror).values()] == [new]
    file_of(mirror, old).rmdir()
    file_of(mirror, old).write_text("a secret")
    assert mirror.catch_up().removed == (old,)
    assert not file_of(mirror, old).exists()


def test_what_is_forgotten_goes_though_nothing_can_be_written(
    chats: Chats, mirror: Mirror, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = closed_and_open(chats, mirror)
    store.chats.forget_chat(old)
    chats.append(new, a_turn("c"))

    def full(*args: object, **settings: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("perdure.chats.mirror.write_atomically", full)
    with pytest.raises(errors.PerdureError):
        mirror.catch_up()
    assert not file_of(mirror, old).exists()


def test_what_was_replaced_by_as_much_at_the_same_time_is_seen(chats: Chats, mirror: Mirror, clock: Clock) -> None:
    chat = chats.open(a_source())
    chats.append(chat.id, a_turn("question"), a_turn("a secret", "assistant"))
    mirror.catch_up()
    # The clock was put back: the chat was last used when it was before, by what is known of it.
    clock.later(seconds=-5)
    chats.rewrite(chat.id, 2, a_turn("nothing", "assistant"))
    mirror.catch_up()
    assert said(mirror, chat.id) == ["question", "nothing"]
    chats.undo(chat.id)
    chats.append(chat.id, a_turn("other"), a_turn("words", "assistant"))
    mirror.catch_up()
    assert said(mirror, chat.id) == ["other", "words"]


def test_a_chat_from_long_ago_that_comes_in_is_followed(chats: Chats, mirror: Mirror, clock: Clock) -> None:
    chats.open(a_source())
    mirror.catch_up()
    long_ago = NOON - timedelta(days=400)
    old = a_chat("old", opened_at=long_ago, touched_at=long_ago, closed_at=long_ago, close_reason=CloseReason.IMPORTED)
    chats.store.import_chat(old, [a_turn("a", position=1)])
    assert mirror.catch_up().written == ("old",)
    assert said(mirror, "old") == ["a"]
    # Taken back there, and as many said instead.
    chats.store.import_chat(old, [a_turn("a", position=1, hidden=True), a_turn("b", position=2)])
    mirror.catch_up()
    assert said(mirror, "old") == ["b"]


def test_nothing_that_was_said_is_read_while_nothing_is_said(
    chats: Chats, mirror: Mirror, store: Store, clock: Clock
) -> None:
    closed_and_open(chats, mirror)
    other = chats.open(a_source("bob"))
    chats.append(other.id, a_turn("a"))
    counting = Counting(store.chats)
    following = Mirror(cast("FollowedStore", counting), mirror.directory, ChatKeysConfig())
    following.catch_up()
    counting.reads = 0
    for _ in range(3):
        following.catch_up()
    assert counting.reads == 0
    clock.later(seconds=1)
    chats.append(other.id, a_turn("b"))
    following.catch_up()
    assert counting.reads == 1


def test_a_mirror_of_an_earlier_version_is_gone_on_with(chats: Chats, mirror: Mirror, store: Store) -> None:
    old, new = closed_and_open(chats, mirror)
    notes = Path(mirror.directory, NOTES)
    found = json.loads(notes.read_text())
    earlier = {"files": {id: file[:4] for id, file in found["files"].items()}, "open": [new]}
    notes.write_text(json.dumps(earlier))
    before = inode(mirror, new)
    store.chats.forget_chat(old)
    assert mirror.catch_up().removed == (old,)
    assert (said(mirror, new), inode(mirror, new)) == (["b"], before)


def test_what_was_half_written_by_somebody_who_was_killed_does_not_stay(
    chats: Chats, mirror: Mirror, store: Store
) -> None:
    old, new = closed_and_open(chats, mirror)
    left = Path(mirror.directory, f".{old}.jsonl.4711-0a1b2c3d.tmp")
    left.write_text("a secret")
    theirs = [Path(mirror.directory, name) for name in ("theirs.tmp", ".theirs.4711-0a1b2c3d.tmp", f".{new}.jsonl.tmp")]
    for path in theirs:
        path.write_text("theirs")
    store.chats.forget_chat(old)
    mirror.catch_up()
    assert not left.exists()
    assert [path.read_text() for path in theirs] == ["theirs"] * 3


@pytest.fixture
def west() -> Iterator[None]:
    """This machine's clock is behind that of Greenwich."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "EST5")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("west")
def test_a_time_that_no_clock_here_can_show_costs_nobody_anything(chats: Chats, mirror: Mirror) -> None:
    early, other = chats.open(a_source()).id, chats.open(a_source("bob")).id
    chats.store.append_turns(early, [a_turn("early", at=datetime.min.replace(tzinfo=UTC))], NOON)
    chats.append(other, a_turn("a"))
    mirror.catch_up()
    assert (said(mirror, other), said(mirror, early)) == (["a"], ["early"])


def test_the_mirror_of_another_store_is_left_alone(chats: Chats, mirror: Mirror, tmp_path: Path) -> None:
    old, new = closed_and_open(chats, mirror)
    before = index(mirror)
    # As after the loss of the first one, or where somebody tries something out with another.
    state_dir = str(tmp_path / "elsewhere")
    other = open_store(f"sqlite://{state_dir}/perdure.db", state_dir=state_dir)
    own = Chats(other.chats, Config(), chats.now)
    elsewhere = Mirror(other.chats, mirror.directory, ChatKeysConfig())
    for everything in (False, True):
        with pytest.raises(errors.Refused, match="import"):
            elsewhere.catch_up(everything=everything)
    own.open(a_source("carol"))
    for everything in (False, True):
        with pytest.raises(errors.Refused, match="import"):
            elsewhere.catch_up(everything=everything)
    other.close()
    assert index(mirror) == before
    assert (said(mirror, old), said(mirror, new)) == (["a secret"], ["b"])


@pytest.mark.parametrize(
    "more",
    [
        {"agent:main:slack:dm:9": {"session_id": "20260101_000000_theirs"}},
        {"agent:main:slack:dm:9": {"session_id": 17}},
        {"agent:main:slack:dm:9": {"session_id": "\ud800"}},
        {"agent:main:slack:dm:9": {"session_id": "a\0b"}},
        {"agent:main:slack:dm:9": "theirs"},
    ],
)
def test_an_index_that_another_program_goes_on_with_is_left_alone(
    chats: Chats, mirror: Mirror, more: dict[str, object]
) -> None:
    _, new = closed_and_open(chats, mirror)
    path = Path(mirror.directory, "sessions.json")
    theirs = json.dumps({**index(mirror), **more})
    path.write_text(theirs)
    chats.append(new, a_turn("c"))
    for everything in (False, True):
        done = mirror.catch_up(everything=everything)
        assert (path.read_text(), len(done.failures), said(mirror, new)) == (theirs, 1, ["b", "c"])
    path.unlink()
    assert mirror.catch_up().failures == ()
    assert [entry["session_id"] for entry in index(mirror).values()] == [new]


def test_an_index_that_another_program_may_be_writing_is_left_alone(chats: Chats, mirror: Mirror) -> None:
    _, new = closed_and_open(chats, mirror)
    path = Path(mirror.directory, "sessions.json")
    for half in ('{"agent:main:slack:dm:9": {"sess', ""):
        path.write_text(half)
        done = mirror.catch_up()
        assert (path.read_text(), len(done.failures)) == (half, 1)
    assert mirror.catch_up(everything=True).failures == ()
    assert [entry["session_id"] for entry in index(mirror).values()] == [new]


def test_pipes_in_the_place_of_files_hold_up_nobody(chats: Chats, mirror: Mirror) -> None:
    empty = chats.open(a_source()).id
    mirror.catch_up()
    file_of(mirror, empty).unlink()
    os.mkfifo(file_of(mirror, empty))
    Path(mirror.directory, "sessions.json").unlink()
    os.mkfifo(os.path.join(mirror.directory, "sessions.json"))
    chats.append(empty, a_turn("a"))
    assert len(mirror.catch_up().failures) == 1
    assert said(mirror, empty) == ["a"]


def test_what_is_lost_is_named_and_its_file_kept(chats: Chats, mirror: Mirror, store: Store) -> None:
    old, _ = closed_and_open(chats, mirror)
    store.driver.execute("DELETE FROM chats WHERE id = :id", id=old)
    done = mirror.catch_up(everything=True)
    assert (done.removed, done.orphaned, said(mirror, old)) == ((), (old,), ["a secret"])


def test_one_that_goes_while_it_is_written_is_no_failure(chats: Chats, mirror: Mirror, store: Store) -> None:
    old, new = closed_and_open(chats, mirror)
    chats.append(old, a_turn("late"))
    chats.append(new, a_turn("c"))

    class Meanwhile(Counting):
        def __getattr__(self, name: str) -> Any:
            if name == "load_turns" and not self.reads:
                store.chats.forget_chat(old)
            return super().__getattr__(name)

    following = Mirror(cast("FollowedStore", Meanwhile(store.chats)), mirror.directory, ChatKeysConfig())
    assert following.catch_up().failures == ()
    assert said(mirror, new) == ["b", "c"]
    assert following.catch_up().removed == (old,)
    assert not file_of(mirror, old).exists()


def test_notes_that_lead_out_of_the_directory_are_not_followed(chats: Chats, mirror: Mirror, tmp_path: Path) -> None:
    closed_and_open(chats, mirror)
    outside = tmp_path / "mine.jsonl"
    outside.write_text("mine")
    notes = Path(mirror.directory, NOTES)
    found = json.loads(notes.read_text())
    found["files"]["../mine"] = [4, 2, 1, None]
    notes.write_text(json.dumps(found))
    mirror.catch_up(everything=True)
    assert outside.read_text() == "mine"


class Folding(Mirror):
    """A mirror on a file system that does not tell `A` from `a`."""

    def _path(self, name: str) -> str:
        return super()._path(name.lower())


def test_two_ids_that_are_one_to_the_file_system_are_not_mixed_up(store: Store, tmp_path: Path) -> None:
    mirror = Folding(store.chats, str(tmp_path / "sessions"), ChatKeysConfig())
    for id in ("Abc", "abc"):
        store.chats.begin_chat(a_chat(id))
        store.chats.append_turns(id, [a_turn(id)], NOON)
    done = mirror.catch_up()
    (first,) = done.written
    assert len(done.failures) == 1
    for _ in range(3):
        store.chats.append_turns("Abc", [a_turn("Abc")], NOON)
        store.chats.append_turns("abc", [a_turn("abc")], NOON)
        assert len(mirror.catch_up().failures) == 1
        assert set(said(mirror, "abc")) == {first}


def test_two_ids_that_are_nearly_one_have_a_file_each_where_that_can_be(store: Store, mirror: Mirror) -> None:
    for id in ("Abc", "abc"):
        store.chats.begin_chat(a_chat(id))
        store.chats.append_turns(id, [a_turn(id)], NOON)
    mirror.catch_up()
    assert mirror.catch_up().failures == ()
    assert (said(mirror, "Abc"), said(mirror, "abc")) == (["Abc"], ["abc"])


def test_an_id_that_leads_elsewhere_is_told_nobody(store: Store, mirror: Mirror, tmp_path: Path) -> None:
    for id in ("../outside", "c1"):
        store.chats.begin_chat(a_chat(id, source=a_source(id)))
        store.chats.append_turns(id, [a_turn(id)], NOON)
    assert mirror.catch_up() == Mirrored(written=("c1",))
    assert [entry["session_id"] for entry in index(mirror).values()] == ["c1"]
    assert sorted(os.listdir(tmp_path)) == ["sessions"]


def test_a_directory_that_was_removed_is_made_anew(chats: Chats, mirror: Mirror) -> None:
    old, new = closed_and_open(chats, mirror)
    shutil.rmtree(mirror.directory)
    assert set(mirror.catch_up().written) == {old, new}
    assert (said(mirror, old), said(mirror, new)) == (["a secret"], ["b"])


@pytest.mark.parametrize("moment", ["next_positions", "load_turns"])
def test_a_directory_that_is_emptied_meanwhile_is_made_anew_the_next_time(
    chats: Chats, mirror: Mirror, store: Store, moment: str
) -> None:
    old, new = closed_and_open(chats, mirror)
    chats.append(new, a_turn("c"))

    class Meanwhile(Counting):
        def __getattr__(self, name: str) -> Any:
            if name == moment:
                for each in os.listdir(mirror.directory):
                    os.unlink(os.path.join(mirror.directory, each))
            return super().__getattr__(name)

    with suppress(errors.StoreUnusable):
        Mirror(cast("FollowedStore", Meanwhile(store.chats)), mirror.directory, ChatKeysConfig()).catch_up()
    mirror.catch_up()
    assert (said(mirror, old), said(mirror, new)) == (["a secret"], ["b", "c"])
    assert [entry["session_id"] for entry in index(mirror).values()] == [new]


def test_what_goes_wrong_again_and_again_is_logged_once(
    threaded: Store, tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.chats.mirroring.EVERY", 0.0)
    rounds = threading.Semaphore(0)
    mirror = Mirror(threaded.chats, str(tmp_path / "sessions"), ChatKeysConfig())
    catch_up = mirror.catch_up

    def counted(**settings: Any) -> Mirrored:
        try:
            return catch_up(**settings)
        finally:
            rounds.release()

    monkeypatch.setattr(mirror, "catch_up", counted)
    chats = Chats(threaded.chats, Config(), clock)
    chat = chats.open(a_source())
    os.mkdir(mirror.directory)
    file_of(mirror, chat.id).write_text("theirs")
    with caplog.at_level(logging.WARNING), Mirroring(threaded.chats, mirror) as mirroring:
        following = Chats(mirroring.store, Config(), clock)
        for _ in range(3):
            following.append(chat.id, a_turn("a"))
            assert rounds.acquire(timeout=30)
    assert caplog.text.count("somebody else's") == 1
