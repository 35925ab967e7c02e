"""Files printed into the terminals of other processes: whole and once, or left for somebody else to print."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from perdure.host import terminals
from perdure.host.terminals import Terminal, print_files

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="terminals are written to on Linux only")


class Pane:
    """A terminal with a process in it, and whatever is printed there."""

    def __init__(self, stack: ExitStack) -> None:
        self.controller, inside = os.openpty()
        stack.callback(os.close, self.controller)
        path = os.ttyname(inside)
        process = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=inside, start_new_session=True)
        stack.callback(process.wait)
        stack.callback(process.kill)
        os.close(inside)
        self.terminal = Terminal(path=path, pid=process.pid)

    def read(self, count: int) -> bytes:
        """Return that much of what was printed."""
        read = b""
        while len(read) < count:
            read += os.read(self.controller, 65536)
        return read

    def has_more(self) -> bool:
        os.set_blocking(self.controller, False)
        try:
            return bool(os.read(self.controller, 1))
        except BlockingIOError:
            return False
        finally:
            os.set_blocking(self.controller, True)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def written(directory: object, name: str, content: bytes) -> str:
    path = os.path.join(str(directory), name)
    with open(path, "wb") as file:
        file.write(content)
    return path


def content_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def lines(name: object, count: int) -> bytes:
    return b"".join(b"%s, line %d\n" % (str(name).encode(), number) for number in range(count))


def on_screen(text: bytes) -> bytes:
    return text.replace(b"\n", b"\r\n")


def test_each_file_is_in_its_terminal_once_and_empty(
    stack: ExitStack, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who reads here are seventy threads of a machine that may have much else to do.
    monkeypatch.setattr(terminals, "_PATIENCE", 120.0)
    monkeypatch.setattr(terminals, "_STILLNESS", 60.0)
    # More than are written to at a time, and more in each than a terminal takes at once.
    texts = [lines(number, 2000) for number in range(70)]
    panes = [Pane(stack) for _ in texts]
    files = [written(tmp_path, str(number), text) for number, text in enumerate(texts)]
    printed: dict[int, bytes] = {}

    def read(number: int) -> None:
        printed[number] = panes[number].read(len(on_screen(texts[number])))

    readers = [threading.Thread(target=read, args=[number]) for number in range(len(texts))]
    for reader in readers:
        reader.start()
    print_files(dict(zip(files, (pane.terminal for pane in panes), strict=True)))
    assert [content_of(file) for file in files] == [b""] * len(files)
    for reader in readers:
        reader.join()
    assert [printed[number] for number in range(len(texts))] == [on_screen(text) for text in texts]
    assert not any(pane.has_more() for pane in panes)


def test_a_terminal_that_takes_nothing_keeps_no_other_waiting(stack: ExitStack, tmp_path: object) -> None:
    deaf, other = Pane(stack), Pane(stack)
    long, short = written(tmp_path, "long", lines("long", 10_000)), written(tmp_path, "short", b"short\n")
    print_files({long: deaf.terminal, short: other.terminal})
    assert other.read(7) == b"short\r\n"
    # What it has taken is told from nothing: all of it is still to be printed.
    assert (content_of(long), content_of(short)) == (lines("long", 10_000), b"")


def test_a_terminal_nobody_can_be_sure_of_is_left_alone(stack: ExitStack, tmp_path: object) -> None:
    pane, another = Pane(stack), Pane(stack)
    elsewhere = [
        Terminal(path=pane.terminal.path, pid=another.terminal.pid),
        Terminal(path=pane.terminal.path, pid=os.getpid()),
        Terminal(path=pane.terminal.path, pid=2**31 - 1),
        Terminal(path="/dev/pts/4000000", pid=pane.terminal.pid),
        Terminal(path="/dev/null", pid=pane.terminal.pid),
        Terminal(path="", pid=0),
        Terminal(path=os.path.join(str(tmp_path), "link"), pid=pane.terminal.pid),
    ]
    os.symlink(pane.terminal.path, os.path.join(str(tmp_path), "link"))
    files = {written(tmp_path, str(number), b"text\n"): each for number, each in enumerate(elsewhere)}
    print_files(files)
    assert [content_of(file) for file in files] == [b"text\n"] * len(elsewhere)
    assert not pane.has_more()
    assert not another.has_more()


def test_what_cannot_be_read_or_is_very_long_is_left_alone(stack: ExitStack, tmp_path: object) -> None:
    panes = [Pane(stack) for _ in range(4)]
    long = written(tmp_path, "long", lines("long", 30_000))
    link = os.path.join(str(tmp_path), "link")
    os.symlink(written(tmp_path, "linked", b"linked\n"), link)
    names = (long, link, os.path.join(str(tmp_path), "none"), written(tmp_path, "empty", b""))
    print_files(dict(zip(names, (pane.terminal for pane in panes), strict=True)))
    assert content_of(long) == lines("long", 30_000)
    assert content_of(link) == b"linked\n"
    assert not any(pane.has_more() for pane in panes)


def test_a_pane_that_is_gone_costs_the_others_nothing(stack: ExitStack, tmp_path: object) -> None:
    other = Pane(stack)
    with ExitStack() as ended:
        lost = Pane(ended)
    files = {
        written(tmp_path, "lost", b"lost\n"): lost.terminal,
        written(tmp_path, "other", b"other\n"): other.terminal,
    }
    print_files(files)
    assert [content_of(file) for file in files] == [b"lost\n", b""]
    assert other.read(7) == b"other\r\n"
