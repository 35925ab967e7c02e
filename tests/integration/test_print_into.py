"""Texts printed for panes that are held back: each is in its pane once, whatever becomes of whoever prints them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable

import pytest

from perdure.host.scratch import Kind, Scratch
from perdure.host.terminals import Terminal
from perdure.host.users import current_user
from perdure.host.waiting import wait_until
from perdure.tmux.wrap import Start, command
from tests.tmux_server import PATIENCE, TmuxServer

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="terminals are written to on Linux only")

TEXT = "".join(
    f"\x1b[3{n % 8}mline {n}\x1b[m of \x1b]8;;https://example.org/{n}\x1b\\äöü\x1b]8;;\x1b\\\n" for n in range(120)
)
SHOWN = [f"line {n} of äöü" for n in range(120)]
SHELLS = [each for each in ("/bin/sh", "dash", "bash --posix", "busybox sh") if shutil.which(each.split(" ")[0])]


class Scene:
    """A pane that waits to print its text, and to become a shell that says nothing."""

    def __init__(self, tmux: TmuxServer, sh: str) -> None:
        self.scratch = Scratch(os.environ["PERDURE_STATE_DIR"], "r1", current_user())
        self.scratch.prepare({1: TEXT.encode()}, ())
        self._tmux, self._sh = tmux, sh
        self.pane = ""

    def open(self) -> None:
        words = command(Start(text=self.scratch.path(1, Kind.TEXT), shell="/bin/cat"))
        flags = ("-d", "-n", "held", "-x", "80", "-y", "20", "-P", "-F", "#{pane_id}")
        made = self._tmux.run("new-session", *flags, *self._sh.split(" "), *words[1:])
        self.pane = made.decode().strip()
        assert wait_until(self.terminal_is_there, PATIENCE)

    def terminal_is_there(self) -> bool:
        return os.readlink(f"/proc/{self.terminal.pid}/fd/1") == self.terminal.path

    @property
    def terminal(self) -> Terminal:
        pid, path = self._tmux.show("#{pane_pid} #{pane_tty}", self.pane).split(" ")
        return Terminal(path=path, pid=int(pid))

    def is_let_go(self) -> bool:
        with open(f"/proc/{self.terminal.pid}/cmdline", "rb") as file:
            return file.read() == b"/bin/cat\0"

    def lines(self) -> list[str]:
        shown = self._tmux.run("capture-pane", "-p", "-S", "-", "-t", self.pane).decode()
        return shown.rstrip("\n").split("\n")

    def files_left_open(self) -> set[str]:
        directory = f"/proc/{self.terminal.pid}/fd"
        return {os.readlink(os.path.join(directory, each)) for each in os.listdir(directory)}

    def assert_printed_once(self) -> None:
        assert wait_until(self.is_let_go, PATIENCE)
        # Typed behind all that was printed, and shown by the terminal and by the program: tmux reads in its own time.
        self._tmux.run("send-keys", "-t", self.pane, "typed", "Enter")
        assert wait_until(lambda: self.lines()[-2:] == ["typed", "typed"], PATIENCE), self.lines()
        assert self.lines()[:-2] == SHOWN
        assert not self.scratch.unprinted()
        assert self.files_left_open() == {self.terminal.path}


@pytest.fixture(params=SHELLS)
def scene(request: pytest.FixtureRequest, tmux: TmuxServer, private_home: object) -> Scene:
    return Scene(tmux, request.param)


def test_what_is_printed_for_a_pane_it_does_not_print_itself(scene: Scene) -> None:
    with scene.scratch.held_back() as is_held:
        assert is_held
        scene.open()
        scene.scratch.print_into({1: scene.terminal})
        assert not scene.scratch.unprinted()
        assert wait_until(lambda: scene.lines() == SHOWN, PATIENCE), scene.lines()
        assert not scene.is_let_go()
    scene.assert_printed_once()


# Within a line, within a colour, within a link's address, within a character, and all of it but not noted.
CUTS: dict[str, Callable[[bytes], int]] = {
    "nothing": lambda text: 0,
    "line": lambda text: text.index(b"line 60") + 3,
    "colour": lambda text: text.index(b"\x1b[3", 2000) + 2,
    "link": lambda text: text.index(b"https", 2000) + 7,
    "character": lambda text: text.index("ö".encode(), 2000) + 1,
    "all": len,
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_pane_prints_anew_what_was_printed_in_part(scene: Scene, cut: str) -> None:
    text = TEXT.encode()
    with scene.scratch.held_back():
        scene.open()
        scene.scratch.print_into({})
        with open(scene.terminal.path, "wb", buffering=0) as terminal:
            terminal.write(text[: CUTS[cut](text)])
        assert scene.scratch.unprinted() == {1}
    scene.assert_printed_once()


def test_a_pane_that_comes_when_all_is_printed_and_removed_is_just_a_shell(scene: Scene) -> None:
    with scene.scratch.held_back():
        scene.scratch.print_into({})
        scene.scratch.remove()
    assert not os.path.exists(scene.scratch.directory)
    scene.open()
    assert wait_until(scene.is_let_go, PATIENCE)
    assert scene.lines() == [""]
