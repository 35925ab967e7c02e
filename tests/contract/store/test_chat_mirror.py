"""The mirror: what earlier programs read, made from the store, whoever writes and whatever fails."""

from __future__ import annotations

import logging
import os
import stat
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from perdure import errors
from perdure.chats.expiry import Expiry
from perdure.chats.importing import import_chats
from perdure.chats.mirror import NOTES, Mirror, Mirrored
from perdure.chats.mirroring import Mirroring
from perdure.chats.service import Chats
from perdure.compat.hermes_sessions import read_directory
from perdure.host.clock import pause, ticking
from perdure.model.chat import Source
from perdure.model.chat_import import Arrival
from perdure.model.config import ChatKeysConfig, ChatsConfig, Config
from perdure.store.store import Store
from tests.contract.store.chats import Clock, a_source, a_turn
from tests.contract.store.mirrors import index, inode, lines, said

GROUP = Source(platform="slack", chat_id="C0", chat_type="group", user_id="U1", user_name="Ann")


def test_tools_of_earlier_programs_find_what_they_expect(chats: Chats, mirror: Mirror) -> None:
    chat = chats.open(GROUP)
    chats.append(chat.id, a_turn("hi 😀"), a_turn(None, "assistant", tool_calls=({"id": 1},), extra={"reasoning": "r"}))
    chats.add_tokens(chat.id, "m", input=3, output=4)
    mirror.catch_up()
    entry = index(mirror)["agent:main:slack:group:C0:U1"]
    assert (entry["session_id"], entry["session_key"]) == (chat.id, "agent:main:slack:group:C0:U1")
    assert (entry["input_tokens"], entry["output_tokens"], entry["total_tokens"]) == (3, 4, 7)
    assert entry["origin"]["chat_id"] == "C0"
    # As the earliest of them reads it.
    assert "+" not in entry["created_at"]
    first, second = lines(mirror, chat.id)
    assert (first["role"], first["content"]) == ("user", "hi 😀")
    assert (second["tool_calls"], second["reasoning"]) == ([{"id": 1}], "r")
    assert stat.S_IMODE(os.stat(os.path.join(mirror.directory, "sessions.json")).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(mirror.directory).st_mode) == 0o700


def test_what_is_said_is_appended_and_what_is_taken_back_is_gone(chats: Chats, mirror: Mirror, clock: Clock) -> None:
    chat = chats.open(a_source())
    chats.append(chat.id, a_turn("a"))
    mirror.catch_up()
    before = inode(mirror, chat.id)
    clock.later(seconds=1)
    chats.append(chat.id, a_turn("b"))
    assert mirror.catch_up().written == (chat.id,)
    assert (said(mirror, chat.id), inode(mirror, chat.id)) == (["a", "b"], before)
    assert mirror.catch_up().written == ()
    clock.later(seconds=1)
    chats.undo(chat.id)
    mirror.catch_up()
    assert said(mirror, chat.id) == ["a"]
    # The same number of turns, and others.
    chats.rewrite(chat.id, 1, a_turn("z"))
    mirror.catch_up(everything=True)
    assert said(mirror, chat.id) == ["z"]


def test_a_reset_is_seen_and_the_chat_before_keeps_its_file(chats: Chats, mirror: Mirror, clock: Clock) -> None:
    first = chats.open(a_source())
    chats.append(first.id, a_turn("a"))
    mirror.catch_up()
    clock.later(days=3)
    chats.append(first.id, a_turn("last words"))
    second = chats.reset(a_source())
    mirror.catch_up()
    assert [entry["session_id"] for entry in index(mirror).values()] == [second.id]
    assert said(mirror, first.id) == ["a", "last words"]


def test_of_two_that_share_a_key_there_the_one_used_last_is_named(chats: Chats, mirror: Mirror, clock: Clock) -> None:
    # Here a colon in an id is no colon of the key.
    one = chats.open(a_source(chat_id="a:b"))
    clock.later(seconds=1)
    other = chats.open(a_source(chat_id="a", thread_id="b"))
    chats.append(one.id, a_turn("one"))
    chats.append(other.id, a_turn("other"))
    mirror.catch_up()
    assert {key: entry["session_id"] for key, entry in index(mirror).items()} == {
        "agent:main:telegram:dm:a:b": other.id
    }
    assert (said(mirror, one.id), said(mirror, other.id)) == (["one"], ["other"])
    clock.later(seconds=1)
    chats.touch(one.id)
    mirror.catch_up()
    assert index(mirror)["agent:main:telegram:dm:a:b"]["session_id"] == one.id


def test_whatever_was_done_to_its_files_is_put_right(chats: Chats, mirror: Mirror) -> None:
    chat = chats.open(a_source())
    chats.append(chat.id, a_turn("a"))
    mirror.catch_up()
    path = Path(mirror.directory, f"{chat.id}.jsonl")
    whole = path.read_text()
    # As a crash in the middle of appending leaves it.
    path.write_text(whole + '{"role": "us')
    chats.append(chat.id, a_turn("b"))
    mirror.catch_up()
    assert said(mirror, chat.id) == ["a", "b"]
    path.write_text("nonsense")
    Path(mirror.directory, "sessions.json").write_text("{")
    mirror.catch_up(everything=True)
    assert said(mirror, chat.id) == ["a", "b"]
    assert len(index(mirror)) == 1
    path.unlink()
    Path(mirror.directory, NOTES).write_text("{")
    mirror.catch_up()
    assert said(mirror, chat.id) == ["a", "b"]


def test_what_a_child_says_is_mirrored_by_the_child(threaded: Store, tmp_path: Path) -> None:
    mirror = Mirror(threaded.chats, str(tmp_path / "sessions"), ChatKeysConfig())
    with Mirroring(threaded.chats, mirror) as mirroring:
        chats = Chats(mirroring.store, Config(), Clock())
        chat = chats.open(a_source())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if not child:
            code = 1
            try:
                chats.append(chat.id, a_turn("child"))
                mirroring.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert said(mirror, chat.id) == ["child"]


def test_files_of_somebody_else_are_left_alone(chats: Chats, mirror: Mirror) -> None:
    chat = chats.open(a_source())
    chats.append(chat.id, a_turn("a"))
    os.mkdir(mirror.directory)
    theirs = Path(mirror.directory, "sessions.json")
    theirs.write_text("{}")
    with pytest.raises(errors.Refused):
        mirror.catch_up()
    assert (theirs.read_text(), os.listdir(mirror.directory)) == ("{}", ["sessions.json"])
    theirs.unlink()
    transcript = Path(mirror.directory, f"{chat.id}.jsonl")
    transcript.write_text("theirs")
    done = mirror.catch_up()
    assert (done.written, len(done.failures), transcript.read_text()) == ((), 1, "theirs")
    transcript.unlink()
    assert mirror.catch_up().written == (chat.id,)


def test_what_was_forgotten_goes_and_nothing_else(chats: Chats, mirror: Mirror, store: Store) -> None:
    first = chats.open(a_source())
    second = chats.reset(a_source())
    mirror.catch_up()
    Path(mirror.directory, "notes.jsonl").write_text("mine")
    store.chats.forget_chat(first.id)
    assert mirror.catch_up(everything=True).removed == (first.id,)
    assert {f"{second.id}.jsonl", "notes.jsonl", "sessions.json", NOTES} == set(os.listdir(mirror.directory))


def test_it_says_the_same_as_the_store(chats: Chats, mirror: Mirror) -> None:
    chat = chats.open(a_source())
    chats.append(chat.id, a_turn("a"), a_turn([{"type": "text"}], "assistant"))
    mirror.catch_up()
    taken = import_chats(chats, read_directory(mirror.directory))
    assert [(each.chat.id, each.result) for each in taken.arrived] == [(chat.id, Arrival.UNCHANGED)]


def test_several_who_write_at_once_leave_it_whole(opened: Callable[[], Store], mirror: Mirror, chats: Chats) -> None:
    chat = chats.open(a_source())

    def work(store: Store) -> None:
        own = Mirror(store.chats, mirror.directory, ChatKeysConfig())
        for number in range(10):
            store.chats.append_turns(chat.id, [a_turn(f"{number}")], chats.now())
            own.catch_up()

    stores = [opened() for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, stores))
    expected = [turn.content for turn in chats.load(chat.id).turns]
    assert said(mirror, chat.id) == expected
    assert len(expected) == 30


def test_it_follows_in_the_background(threaded: Store, tmp_path: Path) -> None:
    mirror = Mirror(threaded.chats, str(tmp_path / "sessions"), ChatKeysConfig())
    with Mirroring(threaded.chats, mirror) as mirroring:
        chats = Chats(mirroring.store, Config(), Clock())
        chat = chats.open(a_source())
        chats.append(chat.id, a_turn("a"))
        path = Path(mirror.directory, f"{chat.id}.jsonl")
        deadline = ticking() + 20
        while not (path.exists() and path.read_text()) and ticking() < deadline:
            pause(0.02)
        assert said(mirror, chat.id) == ["a"]
        chats.append(chat.id, a_turn("b"))
    assert said(mirror, chat.id) == ["a", "b"]


def two_of_which_one_is_old(threaded: Store, mirror: Mirror, clock: Clock) -> tuple[str, str]:
    """The ids of a closed chat that nobody has used for long, and of the one that came after it; both are mirrored."""
    chats = Chats(threaded.chats, Config(), clock)
    old = chats.open(a_source())
    chats.append(old.id, a_turn("a secret"))
    new = chats.reset(a_source())
    chats.append(new.id, a_turn("b"))
    mirror.catch_up()
    clock.later(days=40)
    return old.id, new.id


def test_what_goes_by_itself_goes_from_the_mirror_too(threaded: Store, tmp_path: Path, clock: Clock) -> None:
    mirror = Mirror(threaded.chats, str(tmp_path / "sessions"), ChatKeysConfig())
    old, new = two_of_which_one_is_old(threaded, mirror, clock)
    with Mirroring(threaded.chats, mirror) as mirroring:
        chats = Chats(mirroring.store, Config(chats=ChatsConfig(keep_days=10, keep_owed=False)), clock)
        assert Expiry(chats).run_once(lambda _: None).pruned == (old,)
    assert not Path(mirror.directory, f"{old}.jsonl").exists()
    assert said(mirror, new) == ["b"]
    assert mirror.catch_up(everything=True).removed == ()


def test_what_was_forgotten_while_the_mirror_could_not_be_written_goes_later(
    threaded: Store, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = Mirror(threaded.chats, str(tmp_path / "sessions"), ChatKeysConfig())
    old, new = two_of_which_one_is_old(threaded, mirror, clock)
    catch_up, is_broken, has_failed = mirror.catch_up, threading.Event(), threading.Event()
    is_broken.set()

    def broken(**settings: Any) -> Mirrored:
        if is_broken.is_set():
            if old in settings.get("forgotten", ()):
                has_failed.set()
            raise errors.Refused("The disk is full.")
        return catch_up(**settings)

    monkeypatch.setattr(mirror, "catch_up", broken)
    with Mirroring(threaded.chats, mirror) as mirroring:
        mirroring.store.forget_chat(old)
        assert has_failed.wait(30)
        is_broken.clear()
    assert not Path(mirror.directory, f"{old}.jsonl").exists()
    assert said(mirror, new) == ["b"]


def test_only_what_is_not_there_is_taken_for_forgotten(chats: Chats, mirror: Mirror, store: Store) -> None:
    kept, gone, lost = (chats.open(a_source(name)).id for name in ("alice", "bob", "carol"))
    for id in (kept, gone, lost):
        chats.append(id, a_turn(id))
    mirror.catch_up()
    store.chats.change_chat(gone, lambda chat: replace(chat, closed_at=chat.touched_at))
    store.chats.forget_chat(gone)
    # As after a loss: of this one nobody has said that it may go, and its file may be all that is left of it.
    store.driver.execute("DELETE FROM chats WHERE id = :id", id=lost)
    assert mirror.catch_up(forgotten=[kept, gone, "never there"]).removed == (gone,)
    assert (said(mirror, kept), said(mirror, lost)) == ([kept], [lost])


def test_its_failure_is_said_and_nobody_elses(
    threaded: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "sessions").write_text("in the way")
    mirror = Mirror(threaded.chats, str(tmp_path / "sessions"), ChatKeysConfig())
    with caplog.at_level(logging.WARNING), Mirroring(threaded.chats, mirror) as mirroring:
        chats = Chats(mirroring.store, Config(), Clock())
        chat = chats.open(a_source())
        assert chats.append(chat.id, a_turn("a")) == 1
    assert "mirror of chats could not be written" in caplog.text
    (tmp_path / "sessions").unlink()
    # Whoever comes next makes up for it.
    with Mirroring(threaded.chats, mirror):
        pass
    assert said(mirror, chat.id) == ["a"]
