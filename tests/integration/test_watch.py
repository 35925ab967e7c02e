"""Real files, directories and terminals, and what the kernel tells of them."""

from __future__ import annotations

import errno
import os
import resource
import select
from collections.abc import Iterator
from pathlib import Path

import pytest
from inotify_simple import INotify

from perdure.host.watch import EVERYTHING, Everything, Watch, watch
from perdure.model.text import decode
from tests.tmux_server import PATIENCE, TmuxServer


@pytest.fixture
def watching() -> Iterator[Watch[str]]:
    began: Watch[str] | None = watch()
    assert began is not None
    yield began
    began.close()


def told(watching: Watch[str]) -> set[str | Everything]:
    """What is told once something is: fails the test when nothing ever is."""
    ready, _, _ = select.select([watching], [], [], PATIENCE)
    assert ready, "nothing was told"
    return watching.read()


def test_a_quiet_watch_says_nothing_and_does_not_wait(watching: Watch[str], tmp_path: Path) -> None:
    assert watching.add(str(tmp_path), "here")
    assert watching.read() == set()
    assert select.select([watching], [], [], 0)[0] == []


def test_a_directory_tells_of_its_entries(watching: Watch[str], tmp_path: Path) -> None:
    watching.add(str(tmp_path), "here")
    entry = tmp_path / "entry"
    for happen in (
        lambda: entry.write_text("made"),
        lambda: entry.write_text("written"),
        lambda: entry.rename(tmp_path / "moved"),
        (tmp_path / "moved").unlink,
        (tmp_path / "folder").mkdir,
    ):
        happen()
        assert told(watching) == {"here"}
        assert watching.read() == set()


def test_a_file_is_told_of_itself_and_of_no_other(watching: Watch[str], tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.write_text("")
    other.write_text("")
    watching.add(str(mine), "mine")
    other.write_text("x")
    other.unlink()
    assert watching.read() == set()
    with mine.open("a") as file:
        file.write("a line")
        file.flush()
        assert told(watching) == {"mine"}


def test_a_file_that_is_replaced_is_watched_on(watching: Watch[str], tmp_path: Path) -> None:
    mine, new = tmp_path / "mine", tmp_path / "new"
    mine.write_text("1")
    watching.add(str(mine), "mine")
    for _ in range(3):
        new.write_text("2")
        new.replace(mine)
        assert told(watching) == {"mine"}
        watching.read()
        mine.write_text("3")
        assert told(watching) == {"mine"}
        watching.read()


def test_a_file_that_is_deleted_and_made_again_is_watched_on(watching: Watch[str], tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("1")
    watching.add(str(mine), "mine")
    mine.unlink()
    assert told(watching) == {"mine"}
    watching.read()
    mine.write_text("2")
    assert told(watching) == {"mine"}
    watching.read()
    with mine.open("a") as file:
        file.write("more")
    assert told(watching) == {"mine"}


def test_what_is_not_there_yet_is_waited_for_however_deep_it_will_be(watching: Watch[str], tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c" / "file"
    assert watching.add(str(deep), "deep")
    (tmp_path / "something else").write_text("")
    assert watching.read() == set()
    deep.parent.mkdir(parents=True)
    assert told(watching) == {"deep"}
    deep.write_text("1")
    assert told(watching) == {"deep"}
    watching.read()
    with deep.open("a") as file:
        file.write("2")
    assert told(watching) == {"deep"}


def test_a_directory_that_is_made_anew_is_watched_on(watching: Watch[str], tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    watching.add(str(here), "here")
    here.rename(tmp_path / "away")
    assert told(watching) == {"here"}
    here.mkdir()
    assert told(watching) == {"here"}
    watching.read()
    (tmp_path / "away" / "entry").write_text("")
    assert watching.read() == set()
    (here / "entry").write_text("")
    assert told(watching) == {"here"}
    (here / "entry").unlink()
    here.rmdir()
    assert told(watching) == {"here"}
    here.mkdir()
    assert told(watching) == {"here"}


def test_a_link_is_followed_and_its_target_may_be_replaced(watching: Watch[str], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "file", tmp_path / "link"
    link.symlink_to(real)
    watching.add(str(link), "link")
    real.write_text("1")
    assert told(watching) == {"link"}
    watching.read()
    (tmp_path / "real" / "new").write_text("2")
    (tmp_path / "real" / "new").replace(real)
    assert told(watching) == {"link"}
    watching.read()
    real.write_text("3")
    assert told(watching) == {"link"}


def test_a_name_that_is_no_text_is_watched(watching: Watch[str], tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\xfe \n'"
    with open(path, "wb"):
        pass
    assert watching.add(decode(path), "odd")
    os.unlink(path)
    assert told(watching) == {"odd"}


def test_a_path_no_file_can_have_is_not_watched(watching: Watch[str]) -> None:
    assert not watching.add("/tmp/a\0b", "odd")
    assert watching.unwatched == {"odd"}
    assert watching.refusal is not None
    watching.remove("odd")
    assert watching.unwatched == frozenset()


def test_several_want_to_know_of_one_path_and_one_of_several(watching: Watch[str], tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for path in (one, two):
        path.write_text("")
    watching.add(str(one), "a")
    watching.add(str(one), "b")
    watching.add(str(two), "b")
    watching.add(str(tmp_path), "all")
    two.write_text("x")
    assert told(watching) == {"b", "all"}
    watching.read()
    watching.remove("b")
    watching.remove("all")
    one.write_text("x")
    assert told(watching) == {"a"}
    two.write_text("y")
    assert watching.read() <= {"a"}


def test_adding_twice_is_adding_once(watching: Watch[str], tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("")
    for _ in range(3):
        assert watching.add(str(mine), "mine")
    watching.remove("mine")
    watching.remove("mine")
    watching.read()
    mine.write_text("x")
    mine.unlink()
    assert select.select([watching], [], [], 0)[0] == []


def test_a_terminal_tells_what_a_program_prints_and_not_what_is_read(watching: Watch[str]) -> None:
    controller, terminal = os.openpty()
    assert watching.add(os.ttyname(terminal), "pane")
    os.write(controller, b"typed\n")
    assert watching.read() == set()
    os.write(terminal, b"printed")
    assert told(watching) == {"pane"}
    os.close(terminal)
    os.close(controller)
    assert told(watching) == {"pane"}


def test_a_terminal_that_is_gone_is_not_taken_for_the_next_of_its_name(watching: Watch[str]) -> None:
    controller, terminal = os.openpty()
    name = os.ttyname(terminal)
    watching.add(name, "old")
    os.close(terminal)
    os.close(controller)
    controller, terminal = os.openpty()
    told(watching)
    os.write(terminal, b"x")
    assert "old" not in watching.read()
    if os.ttyname(terminal) == name:
        assert watching.add(name, "new")
        os.write(terminal, b"y")
        assert told(watching) == {"new"}
    os.close(terminal)
    os.close(controller)
    assert not watching.add("/dev/pts/999999", "absent")
    assert watching.unwatched == frozenset()


def test_terminals_come_and_go_in_their_directory(watching: Watch[str]) -> None:
    watching.add("/dev/pts", "terminals")
    controller, terminal = os.openpty()
    assert told(watching) == {"terminals"}
    for end in (terminal, controller):
        os.close(end)
    assert told(watching) == {"terminals"}


def test_a_pane_that_prints_is_heard(watching: Watch[str], tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "-n", "a", "cat >/dev/null; echo done; exec cat")
    tmux.run("new-session", "-d", "-s", "b", "-n", "b", "exec cat")
    for name in ("a", "b"):
        watching.add(tmux.show("#{pane_tty}", f"={name}:"), name)
    watching.read()
    tmux.run("send-keys", "-t", "=a:", "C-d")
    assert told(watching) == {"a"}


def test_what_the_kernel_could_not_remember_is_everything(watching: Watch[str], tmp_path: Path) -> None:
    with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as file:
        most = int(file.read())
    mine = tmp_path / "mine"
    mine.write_text("")
    watching.add(str(tmp_path), "here")
    watching.add(str(mine), "mine")
    # Two that take turns: the same twice would be told once.
    ends = [os.open(tmp_path / name, os.O_WRONLY | os.O_CREAT) for name in ("one", "two")]
    for count in range(most + 10):
        os.write(ends[count % 2], b"x")
    # Not told any more, and yet not forgotten.
    (tmp_path / "new").write_text("")
    (tmp_path / "new").replace(mine)
    for end in ends:
        os.close(end)
    assert EVERYTHING in told(watching)
    watching.read()
    mine.write_text("x")
    assert told(watching) >= {"mine"}


class Limited(INotify):  # type: ignore[misc]
    """A kernel that allows only so many watches."""

    left = 1

    def add_watch(self, path: bytes, mask: int) -> int:
        if self.left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.left -= 1
        return int(super().add_watch(path, mask))


def test_a_limit_that_is_reached_is_said_and_costs_only_what_is_beyond_it(tmp_path: Path) -> None:
    kernel = Limited(nonblocking=True)
    limited = Watch[str](kernel)
    try:
        assert limited.add(str(tmp_path), "first")
        assert not limited.add("/tmp", "second")
        assert limited.unwatched == {"second"}
        assert "max_user_watches" in (limited.refusal or "")
        (tmp_path / "entry").write_text("")
        assert told(limited) == {"first"}
        kernel.left = 10
        assert limited.add("/tmp", "second")
        assert limited.unwatched == frozenset()
    finally:
        limited.close()


def test_a_file_that_can_only_be_half_watched_is_not_watched_at_all(tmp_path: Path) -> None:
    limited = Watch[str](Limited(nonblocking=True))
    mine = tmp_path / "mine"
    mine.write_text("")
    try:
        assert not limited.add(str(mine), "mine")
        limited.read()
        mine.unlink()
        assert select.select([limited], [], [], 0)[0] == []
    finally:
        limited.close()


def test_without_a_descriptor_to_be_had_there_is_no_watch() -> None:
    first: Watch[str] | None = watch()
    assert first is not None
    lowest = os.dup(0)
    os.close(lowest)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        second: Watch[str] | None = watch()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        first.close()
    assert second is None
