"""A server with everything in it that other tools lose, killed and brought back: nothing at all is different."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.acceptance.kit import save, wait_for
from tests.acceptance.restoring import (
    Picture,
    attached,
    await_calm,
    await_same,
    by_target,
    contents,
    count_panes,
    foreground,
    restored,
    user_configuration,
)
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import LETTING_GO, TmuxServer

BIG = """my proj "quoted" it's"""
ODD = "$HOME `id` $(id)|日本 ünï"
GROUP, GROUPED = "grp", "grp two"
ENV = "env #{pid} #(id)"
COLOURED = "coloured"
NAMES = (BIG, ODD, GROUP, GROUPED, ENV, COLOURED, "w1", "w10")


class Scene:
    """Eight sessions with forty panes, as bad as it gets."""

    def __init__(self, tmux: TmuxServer, home: PrivateHome, base: int) -> None:
        self.tmux = tmux
        self.base = base
        self.config = user_configuration(home, f"set -g base-index {base}\nset -g pane-base-index {base}\n")
        self.root = os.path.realpath(os.path.join(home.root, "work"))
        os.mkdir(self.root)
        self.deleted = self.directory("deleted")
        # Without a session no server stays for long enough to be told anything.
        tmux.run("new-session", "-d", "-s", "boot", ";", "source-file", self.config)
        self.big()
        self.others()
        self.group()
        tmux.run("kill-session", "-t", "=boot")

    def directory(self, name: str) -> str:
        """Make a directory to work in."""
        path = os.path.join(self.root, name)
        os.makedirs(path, exist_ok=True)
        return path

    def session(self, name: str, *words: str) -> str:
        """Make a session and return its id."""
        format = "#{session_id}"
        literal = name.replace("#", "##")
        made = self.tmux.run(
            "new-session", "-d", "-P", "-F", format, "-s", literal, "-x", "200", "-y", "50", "-c", self.root, *words
        )
        return made.decode().strip()

    def window(self, session: str, index: int, name: str, *words: str, cwd: str | None = None) -> str:
        """Make a window and return its first pane."""
        place = ["-t", f"{session}:{index}", "-n", name.replace("#", "##"), "-c", cwd or self.root]
        return self.tmux.run("new-window", "-d", "-P", "-F", "#{pane_id}", *place, *words).decode().strip()

    def split(self, pane: str, *words: str, cwd: str | None = None, flags: tuple[str, ...] = ("-v",)) -> str:
        """Split a pane and return the new one."""
        place = ["-d", "-P", "-F", "#{pane_id}", "-t", pane, "-c", cwd or self.root, *flags]
        return self.tmux.run("split-window", *place, *words).decode().strip()

    def big(self) -> None:
        """Windows at 1, 3, 4, 5, 6, 7 and 9: a nest that is zoomed, odd places, programs, dead panes."""
        big = self.session(BIG, "-n", "nest")
        if not self.base:
            self.tmux.run("move-window", "-s", f"{big}:0", "-t", f"{big}:1")
        first = self.tmux.show("#{pane_id}", f"{big}:1")
        right = self.split(first, flags=("-h", "-l", "70"))
        below = self.split(right, flags=("-v", "-l", "30"))
        self.split(below, flags=("-h", "-l", "20"))
        self.split(first, flags=("-v", "-l", "11"))
        self.tmux.run("select-pane", "-t", right, ";", "select-pane", "-t", f"{big}:1.{self.base + 3}")
        self.tmux.run("resize-pane", "-Z", "-t", f"{big}:1.{self.base + 3}")
        untitled = self.window(big, 3, 'a|b $HOME `id` "q" it\'s')
        self.tmux.run("select-pane", "-t", untitled, "-T", "")
        self.places(big)
        self.programs(big)
        lined = self.window(big, 6, "synchronized")
        self.split(lined)
        self.tmux.run("set-option", "-w", "-t", f"{big}:6", "synchronize-panes", "on")
        self.tmux.run("set-option", "-w", "-t", f"{big}:6", "pane-border-status", "top")
        self.dead(big)
        marked = self.window(big, 9, "#(touch PWNED) #[fg=red]")
        self.tmux.run("set-option", "-p", "-t", marked, "@agent", "x & touch PWNED 'it''s' #{pid}")
        self.tmux.run("select-pane", "-t", marked, "-T", "a title with 'quotes' #(id) $HOME ~ é")
        self.tmux.run("select-window", "-t", f"{big}:5", ";", "select-window", "-t", f"{big}:7")

    def places(self, big: str) -> None:
        """A window with a pane in each kind of directory; one is deleted."""
        pane = self.window(big, 4, "places", cwd=self.deleted)
        for name in ("two  spaces", "new\nline", "tab\there", "it's"):
            pane = self.split(pane, cwd=self.directory(name))
            self.tmux.run("select-layout", "-t", pane, "tiled")
        wait_for(lambda: _cwds(self.tmux, f"{big}:4") >= {self.deleted}, "a shell in the directory")
        os.rmdir(self.deleted)

    def programs(self, big: str) -> None:
        """A window with programs whose words a shell would read otherwise."""
        for name in ("file one.log", "it's.log"):
            with open(os.path.join(self.root, name), "w") as file:
                file.write(f"{name}\n")
        pane = self.window(big, 5, "programs", "tail", "-f", "file one.log", "it's.log")
        code = "import time; time.sleep(100000)"
        self.split(pane, "python3", "-c", code, "$(touch PWNED) `x` & touch PWNED", "", "two\nlines", "é\\n")

    def dead(self, big: str) -> None:
        """Panes that show how their programs ended."""
        pane = self.window(big, 7, "dead", "sh", "-c", "echo last words; exec sleep 10000")
        self.tmux.run("set-option", "-w", "-t", pane, "remain-on-exit", "on")
        killed = self.split(pane, "sleep", "10001")
        ended = self.split(pane, "sh", "-c", f"echo its last words; {LETTING_GO}exit 3")
        wait_for(lambda: self.tmux.show("#{pane_dead_status}", ended) == "3", "a program that ended")
        wait_for(lambda: self.tmux.show("#{pane_current_command}", killed) == "sleep", "a program to kill")
        os.kill(int(self.tmux.show("#{pane_pid}", killed)), signal.SIGKILL)
        wait_for(lambda: self.ended_by(killed) == "9", "a program that was killed")

    def ended_by(self, pane: str) -> str:
        """The signal that ended a program. tmux 3.3a may miss that one has ended until it hears of the next."""
        self.tmux.run("run-shell", "true")
        return self.tmux.show("#{pane_dead_signal}", pane)

    def others(self) -> None:
        """Names that are targets in other words, an environment, options, colours."""
        odd = self.session(ODD, "-n", "x & touch PWNED")
        self.split(self.split(f"{odd}:"), flags=("-h",))
        env = self.session(ENV)
        self.tmux.run("set-environment", "-t", env, "FOO", 'b  a\'r "$HOME" `id` & touch PWNED')
        self.tmux.run("set-environment", "-t", env, "EMPTY", "")
        self.tmux.run("set-environment", "-r", "-t", env, "GONE")
        self.tmux.run("set-option", "-t", env, "status", "off")
        self.tmux.run("set-option", "-t", env, "@note", "x & touch PWNED")
        self.tmux.run("set-option", "-t", env, "status-left", "#(echo left) #{session_name}")
        self.split(f"{env}:")
        script = os.path.join(self.root, "colours")
        with open(script, "w") as file:
            file.write(
                "i=1; while [ $i -le 100 ]; do "
                'printf "\\033[31mred %s\\033[0m \\033[1;44mblue\\033[m \\033[38;2;1;200;3mtrue\\033[m plain\\n" $i; '
                "i=$((i+1)); done; exec sh\n"
            )
        coloured = self.session(COLOURED, "-n", "colours", "sh", script)
        for _ in range(3):
            self.tmux.run("split-window", "-d", "-h", "-t", f"{coloured}:", "-c", self.root)
        self.tmux.run("select-layout", "-t", f"{coloured}:", "main-vertical")
        for name in ("w1", "w10"):
            self.window(self.session(name), 5, f"only {name}", cwd=self.directory(name))

    def group(self) -> None:
        """Two sessions of one group, each at another of their windows."""
        first = self.session(GROUP, "-n", "one")
        self.split(self.window(first, 4, "four"))
        self.tmux.run("new-window", "-d", "-t", f"{first}:8", "-c", self.root)
        made = self.tmux.run("new-session", "-d", "-P", "-F", "#{session_id}", "-s", GROUPED, "-t", first)
        second = made.decode().strip()
        self.tmux.run("select-window", "-t", f"{second}:8", ";", "select-window", "-t", f"{second}:4")
        self.tmux.run("set-environment", "-t", second, "ONLY", "second")


def _cwds(tmux: TmuxServer, window: str) -> set[str]:
    pids = tmux.run("list-panes", "-t", window, "-F", "#{pane_pid}").split()
    return {foreground(int(pid))[1] for pid in pids}


@pytest.fixture
def scene(private_home: PrivateHome, tmux: TmuxServer) -> Callable[[int], tuple[Scene, Picture]]:
    """Builds the scene with a base index, and gives what it looks like when everything runs."""

    def build(base: int) -> tuple[Scene, Picture]:
        built = Scene(tmux, private_home, base)
        shown = await_calm(tmux)
        assert (len(shown), count_panes(shown)) == (8, 40)
        return built, shown

    return build


def as_it_can_be(before: Picture, scene: Scene) -> Picture:
    """What a picture has to be after a restore: the one directory that is gone is the nearest that is not."""
    for session in before.values():
        for window in session["windows"].values():
            for pane in window["panes"]:
                if pane["cwd"] == f"{scene.deleted} (deleted)":
                    pane["cwd"] = scene.root
    return before


def texts(tmux: TmuxServer) -> dict[str, list[str]]:
    """What stands in each pane, by its place."""
    format = "#{session_name}:#{window_index}.#{pane_index}\t#{pane_id}"
    rows = tmux.run("list-panes", "-a", "-F", format).decode().splitlines()
    return {place: contents(tmux, id) for place, _, id in (row.rpartition("\t") for row in rows)}


def assert_replayed(before: dict[str, list[str]], tmux: TmuxServer) -> None:
    """Every pane has, in its own time, what it had, colours and all, above a line that says so."""
    now: dict[str, list[str]] = {}

    def is_replayed(place: str, lines: list[str]) -> bool:
        shown = now.get(place, [])
        return shown[: len(lines)] == lines and "── restored " in "".join(shown[len(lines) : len(lines) + 1])

    def are_replayed() -> bool:
        now.update(texts(tmux))
        return all(is_replayed(place, lines) for place, lines in before.items() if any(map(str.strip, lines)))

    with suppress(AssertionError):
        wait_for(are_replayed, "everything that was shown")
    assert now.keys() == before.keys()
    for place, lines in before.items():
        if any(line.strip() for line in lines):
            assert now[place][: len(lines)] == lines, place
            assert "── restored " in now[place][len(lines)], (place, now[place])


def ids(tmux: TmuxServer) -> bytes:
    """Who is who: the same before and after, or something was made or ended."""
    format = "#{session_id} #{session_created} #{window_id} #{pane_id} #{pane_pid} #{pane_tty} #{history_size}"
    return tmux.run("list-panes", "-a", "-F", format)


def test_nothing_is_different(
    scene: Callable[[int], tuple[Scene, Picture]], perdure: Perdure, tmux: TmuxServer
) -> None:
    built, before = scene(0)
    said = texts(tmux)
    assert len(said[f"{COLOURED}:0.0"]) > 100
    save(perdure)
    tmux.kill9()
    answer = restored(perdure, "--programs", "all")
    await_same(as_it_can_be(before, built), tmux)
    assert_replayed(said, tmux)
    assert answer["summary"]["failed"] == 0
    step = by_target(answer)[f"{BIG}:4.0"]
    assert step["cwd"] == built.root
    assert f"{built.deleted} is gone" in step["why"]
    assert not os.path.exists(os.path.join(built.root, "PWNED"))


def test_nothing_is_different_after_a_second_crash_either(
    scene: Callable[[int], tuple[Scene, Picture]], perdure: Perdure, tmux: TmuxServer
) -> None:
    built, before = scene(1)
    before = as_it_can_be(before, built)
    save(perdure)
    tmux.kill9()
    restored(perdure, "--programs", "all")
    await_same(before, tmux)

    await_calm(tmux)
    who = ids(tmux)
    again = restored(perdure, "--programs", "all")
    assert {step["result"] for step in again["steps"]} == {"skipped"}
    assert again["summary"]["created"] == 0
    await_same(before, tmux)
    assert ids(tmux) == who

    await_calm(tmux)
    said = texts(tmux)
    save(perdure)
    tmux.kill9()
    restored(perdure, "--programs", "all")
    await_same(before, tmux)
    assert_replayed(said, tmux)
    # What started a pane has not been wrapped once more.
    commands = tmux.run("list-panes", "-a", "-F", "#{pane_start_command}").splitlines()
    assert {command.count(b" perdure prelude ") for command in commands} == {1}


def test_somebody_at_a_smaller_terminal_changes_only_what_tmux_itself_would(
    scene: Callable[[int], tuple[Scene, Picture]], perdure: Perdure, tmux: TmuxServer
) -> None:
    built, before = scene(1)
    before = as_it_can_be(before, built)
    with attached(tmux, 200, 51, "attach-session", "-t", f"={BIG}"):
        save(perdure)
    with attached(tmux, 80, 24, "attach-session", "-t", f"={BIG}"):
        walk_through(tmux, 80)
        small = as_it_can_be(await_calm(tmux), built)
    with attached(tmux, 160, 60, "attach-session", "-t", f"={BIG}"):
        walk_through(tmux, 160)
        large = as_it_can_be(await_calm(tmux), built)
    tmux.kill9()

    with attached(tmux, 80, 24, "new-session", "-s", "mine"):
        restored(perdure, "--programs", "all")
        await_same(before, tmux, leaving=["mine"])
        tmux.run("switch-client", "-t", f"={BIG}")
        walk_through(tmux, 80)
        await_same(small, tmux, leaving=["mine"])
    with attached(tmux, 160, 60, "attach-session", "-t", f"={BIG}"):
        walk_through(tmux, 160)
        await_same(large, tmux, leaving=["mine"])


def walk_through(tmux: TmuxServer, width: int) -> None:
    """Look at every window: tmux fits one to the terminal when it is shown."""
    for index in (1, 3, 4, 5, 6, 7, 9, 5, 7):
        tmux.run("select-window", "-t", f"={BIG}:{index}")
        wait_for(lambda: tmux.show("#{window_width}", f"={BIG}:") == str(width), "a window that fits")
