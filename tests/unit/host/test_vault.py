from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents.generic import Generic
from perdure.host import vault
from perdure.host.users import current_user
from perdure.host.vault import COPIES, keep_copies, put_back, vault_dir
from perdure.model.identity import AgentDetails
from perdure.model.user import User
from tests.conftest import PrivateHome

ID = "11111111-2222-4333-8444-555555555555"
#: The number and group of an account that owns nothing.
NOBODY = User("nobody", 65534, 65534, "/")


class Forgetful(Generic):
    """An agent that deletes transcripts; those with a head are good."""

    name = "forgetful"

    def is_whole(self, transcript: bytes) -> bool:
        return transcript.startswith(b"HEAD\n")


class Place:
    """A conversation's file, and the vault."""

    def __init__(self, root: Path, user: User | None = None) -> None:
        self.root, self.user = root, user or current_user()
        self.file = root / "chats" / "session-1.jsonl"
        self.vault = vault_dir(str(root / "state"))
        self.file.parent.mkdir(exist_ok=True)

    @property
    def details(self) -> AgentDetails:
        return AgentDetails(transcript=str(self.file))

    def keep(self, text: str | None = None, *, conversation: str = ID) -> str:
        if text is not None:
            self.file.write_text(text)
        return keep_copies(conversation, self.details, Forgetful(), self.user, self.vault)

    def put_back(self, details: AgentDetails | None = None, *, conversation: str = ID) -> str | None:
        return put_back(conversation, details or AgentDetails(), Forgetful(), self.user, self.vault)

    @property
    def copies(self) -> Mapping[str, str]:
        found = (path for path in Path(self.vault).rglob("0*") if path.is_file())
        return {path.name[:6]: path.read_text() for path in sorted(found)}

    @property
    def contents(self) -> set[str]:
        return set(self.copies.values())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_copy_is_kept_and_put_back_where_it_was(place: Place) -> None:
    assert place.keep("HEAD\none\n") == ""
    os.utime(place.file, ns=(10**18, 10**18))
    assert place.keep("HEAD\none\ntwo\n") == ""
    written = place.file.stat().st_mtime_ns
    place.file.unlink()
    said = place.put_back()
    assert said == f"its transcript was gone and has been put back from a copy ({place.file})"
    assert place.file.read_text() == "HEAD\none\ntwo\n"
    # Who wrote last is known by this.
    assert place.file.stat().st_mtime_ns == written
    assert os.listdir(place.file.parent) == [place.file.name]


def test_everything_is_the_owners_alone(place: Place) -> None:
    previous = os.umask(0)
    try:
        place.keep("HEAD\n")
    finally:
        os.umask(previous)
    for directory, _, names in os.walk(place.vault):
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
        for name in names:
            assert stat.S_IMODE(os.stat(os.path.join(directory, name)).st_mode) == 0o600


def test_an_agent_that_deletes_nothing_needs_no_copy(place: Place) -> None:
    place.file.write_text("HEAD\n")
    assert keep_copies(ID, place.details, Generic(), place.user, place.vault) == ""
    assert put_back(ID, AgentDetails(), Generic(), place.user, place.vault) is None
    assert not os.path.exists(place.vault)


def test_the_same_content_is_kept_once(place: Place) -> None:
    for _ in range(3):
        assert place.keep("HEAD\none\n") == ""
    assert place.copies == {"000001": "HEAD\none\n"}


def test_the_last_few_are_kept(place: Place) -> None:
    for length in range(1, 8):
        place.keep("HEAD\n" + "line\n" * length)
    assert len(place.copies) == COPIES
    assert list(place.copies) == ["000005", "000006", "000007"]


def test_a_shorter_file_never_takes_the_place_of_a_longer_copy(place: Place) -> None:
    longest = "HEAD\n" + "line\n" * 50
    place.keep(longest)
    for length in range(10):
        place.keep("HEAD\n" + "x\n" * length)
    assert longest in place.contents
    assert len(place.copies) == COPIES
    place.file.unlink()
    place.put_back()
    assert place.file.read_text() == longest


@given(st.lists(st.text("ab", max_size=6), min_size=1, max_size=12))
def test_whatever_is_copied_the_longest_and_the_latest_are_there(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    place = Place(tmp_path_factory.mktemp("vault"))
    for text in texts:
        assert place.keep(f"HEAD\n{text}") == ""
    assert len(place.copies) <= COPIES
    assert max(len(text) for text in place.contents) == 5 + max(map(len, texts))
    assert f"HEAD\n{texts[-1]}" in place.contents


def test_what_is_whole_is_left_alone(place: Place) -> None:
    place.keep("HEAD\none\ntwo\n")
    place.file.write_text("HEAD\none\n")
    assert place.put_back(place.details) is None
    # Even when the agent's files did not tell of it.
    assert place.put_back() is None
    assert place.file.read_text() == "HEAD\none\n"


def test_one_that_moved_is_not_put_back_where_it_was(place: Place) -> None:
    place.keep("HEAD\none\n")
    elsewhere = place.root / "moved.jsonl"
    place.file.rename(elsewhere)
    assert place.put_back(AgentDetails(transcript=str(elsewhere))) is None
    assert not place.file.exists()


def test_an_empty_companion_does_not_stand_for_the_conversation(place: Place) -> None:
    place.keep("HEAD\none\n")
    place.file.unlink()
    companion = place.file.with_name("session-2.jsonl")
    companion.write_text("nothing\n")
    assert place.put_back(AgentDetails(transcript=str(companion))) is not None
    assert place.file.read_text() == "HEAD\none\n"
    assert companion.read_text() == "nothing\n"


def test_a_transcript_without_its_head_makes_room_and_is_not_lost(place: Place) -> None:
    place.keep("HEAD\none\n")
    place.file.write_text("two\n")
    said = place.put_back(place.details)
    left = place.file.with_name("session-1.jsonl.left-1")
    assert said == f"its transcript was broken and has been put back from a copy; what was left of it is {left}"
    assert place.file.read_text() == "HEAD\none\n"
    assert left.read_text() == "two\n"
    place.file.write_text("three\n")
    place.put_back(place.details)
    assert (left.read_text(), place.file.with_name("session-1.jsonl.left-2").read_text()) == ("two\n", "three\n")


def test_without_a_copy_there_is_nothing_to_say(place: Place) -> None:
    assert place.put_back() is None
    place.file.write_text("broken\n")
    assert place.put_back(place.details) is None
    assert place.file.read_text() == "broken\n"


def test_copies_of_one_conversation_are_not_anothers(place: Place) -> None:
    place.keep("HEAD\none\n")
    place.file.unlink()
    assert place.put_back(conversation="other") is None


def test_what_was_put_back_counts_though_the_agent_tells_of_another_file(place: Place) -> None:
    """Resuming makes a second, empty file of a conversation, which is all that is found once the first is gone."""
    place.keep("HEAD\nsaid\n")
    first, place.file = place.file, place.file.with_name("session-2.jsonl")
    place.file.write_text("nothing was said")
    first.unlink()
    assert "has been put back" in (place.put_back(place.details) or "")
    assert (place.keep(), first.read_text()) == ("", "HEAD\nsaid\n")
    assert place.put_back(place.details) is None


@pytest.mark.parametrize("odd", ["../../../out", "..", ".", "", "a/b", "a\0b", "ü" * 200, "x" * 300])
def test_an_id_that_is_no_name_stays_in_the_vault(place: Place, odd: str) -> None:
    assert place.keep("HEAD\n", conversation=odd) == ""
    place.file.unlink()
    assert place.put_back(conversation=odd) is not None
    assert os.listdir(place.vault) == ["forgetful"]
    assert len(os.listdir(os.path.join(place.vault, "forgetful"))) == 1
    assert sorted(os.listdir(place.root)) == ["chats", "state"]


def test_a_damaged_copy_is_no_good(place: Place) -> None:
    place.keep("HEAD\none\n")
    place.keep("HEAD\none\ntwo\n")
    (longest,) = Path(place.vault).rglob("000002-*")
    longest.write_text("HEAD\ngarbage that is longer than anything\n")
    place.file.unlink()
    assert place.put_back() is not None
    assert place.file.read_text() == "HEAD\none\n"
    assert place.keep("HEAD\none\ntwo\n") == ""
    assert "HEAD\none\ntwo\n" in place.contents


def test_an_interrupted_copy_is_in_nobodys_way(place: Place) -> None:
    place.keep("HEAD\none\n")
    (copy,) = Path(place.vault).rglob("000001-*")
    copy.with_name(".new").write_text("HEAD\nhalf")
    assert place.keep("HEAD\none\ntwo\n") == ""
    assert sorted(name[:6] for name in os.listdir(copy.parent)) == ["000001", "000002", "path"]


@pytest.mark.parametrize("text", ["broken\n", ""])
def test_without_a_whole_transcript_the_agent_is_not_started(place: Place, text: str) -> None:
    why = place.keep(text)
    assert why.startswith(f"no whole transcript of {ID} was found to be copied first; forgetful deletes transcripts")
    place.file.unlink()
    assert place.keep() == why


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.mkdir()


def _circle(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize("make", [_fifo, _directory, _circle])
def test_something_else_in_its_place_is_said_and_left(place: Place, make: object) -> None:
    place.keep("HEAD\n")
    place.file.unlink()
    assert callable(make)
    make(place.file)
    before = os.lstat(place.file)
    assert str(place.file) in place.keep()
    assert str(place.file) in (place.put_back(place.details) or "")
    assert os.lstat(place.file).st_ino == before.st_ino


def test_a_link_that_leads_nowhere_is_not_written_through(place: Place) -> None:
    place.keep("HEAD\n")
    place.file.unlink()
    place.file.symlink_to(place.root / "victim")
    assert place.put_back() == "its transcript is gone, and its copy could not be put back (File exists)"
    assert not (place.root / "victim").exists()
    assert os.listdir(place.file.parent) == [place.file.name]


def test_a_transcript_behind_a_link_is_copied(place: Place) -> None:
    real = place.root / "real.jsonl"
    real.write_text("HEAD\nreal\n")
    place.file.symlink_to(real)
    assert place.keep() == ""
    assert place.contents == {"HEAD\nreal\n"}


def test_a_full_disk_is_said_and_leaves_nothing_half(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.keep("HEAD\none\n")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "(No space left on device); forgetful deletes transcripts" in place.keep("HEAD\none\ntwo\n")
    place.file.unlink()
    said = place.put_back()
    assert said == "its transcript is gone, and its copy could not be put back (No space left on device)"
    assert os.listdir(place.file.parent) == []
    monkeypatch.undo()
    assert place.contents == {"HEAD\none\n"}
    assert not list(Path(place.vault).rglob(".new"))


def test_a_vault_that_cannot_be_made(place: Place) -> None:
    (place.root / "state").write_text("a file")
    assert "so it was not started" in place.keep("HEAD\n")


def test_a_directory_that_is_gone_comes_back_too(place: Place) -> None:
    place.keep("HEAD\n")
    place.file.unlink()
    place.file.parent.rmdir()
    assert place.put_back() is not None
    assert place.file.read_text() == "HEAD\n"
    assert stat.S_IMODE(place.file.parent.stat().st_mode) == 0o700


def test_a_transcript_that_is_too_large(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault, "_LARGEST", 10)
    assert "(File too large)" in place.keep("HEAD\n" + "x" * 20)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_for_another_user_it_is_done_as_that_user(private_home: PrivateHome) -> None:
    root = Path(private_home.root) / "theirs"
    root.mkdir()
    for directory in (root, root.parent):
        directory.chmod(0o711)
    place = Place(root, NOBODY)
    for directory in (root, place.file.parent):
        os.chown(directory, NOBODY.uid, NOBODY.gid)
    assert place.keep("HEAD\n") == ""
    assert {os.stat(directory).st_uid for directory, _, _ in os.walk(place.vault)} == {NOBODY.uid}
    place.file.unlink()
    assert place.put_back() is not None
    assert place.file.stat().st_uid == NOBODY.uid
    secret = root / "secret"
    secret.write_text("HEAD\nroot's\n")
    secret.chmod(0o600)
    place.file.unlink()
    place.file.symlink_to(secret)
    assert "(Permission denied)" in place.keep()
    assert "HEAD\nroot's\n" not in place.contents
