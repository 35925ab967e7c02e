"""Watching panes of a real server: the screen, then everything after it; and nothing that anybody else would notice."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Awaitable, Callable

import pytest

from perdure.daemon.terminals import Terminals
from perdure.daemon.viewing import LARGEST_INPUT, Viewer
from perdure.errors import NotFound, Refused, UsageError
from perdure.model.terminal import Printed, Resized, Screen
from tests.conftest import PrivateHome
from tests.integration.viewers import Watcher, eventually, shown, spot, terminals_here, watch
from tests.tmux_server import TmuxServer

COUNTING = "i=0; while :; do i=$((i+1)); echo $i; [ $((i % 50)) = 0 ] && sleep 0.01; done"


def together(tmux: TmuxServer, day: Callable[[Terminals], Awaitable[None]]) -> None:
    """Run something beside terminals, and see that no client is left of them."""

    async def main() -> None:
        async with terminals_here() as terminals:
            await day(terminals)
        assert tmux.run("list-clients", check=False) == b""

    asyncio.run(main())


def session(tmux: TmuxServer, name: str, *words: str, size: str = "80x24") -> None:
    cols, _, rows = size.partition("x")
    tmux.run("new-session", "-d", "-x", cols, "-y", rows, "-s", name, "-n", "w", *words)


def test_first_the_screen_then_everything_after_it(tmux: TmuxServer) -> None:
    session(tmux, "a", "sh", "-c", COUNTING)

    def is_seamless(watcher: Watcher) -> bool:
        numbers = [int(each) for each in re.findall(r"\d+(?=\r)", watcher.text)]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        return len(numbers) > 1000

    async def day(terminals: Terminals) -> None:
        watchers = []
        for _ in range(6):
            # Each comes in the middle of what the others are shown.
            watchers.append(watcher := await watch(terminals, tmux, "a:"))
            await watcher.has(300)
        assert len(terminals) == 1, "one client for all of them"
        for watcher in watchers:
            await watcher.has(9000)
            assert is_seamless(watcher)

    together(tmux, day)


def test_a_screen_has_its_colours_modes_title_and_place_of_the_cursor(tmux: TmuxServer) -> None:
    program = r"printf '\033]2;a|b %%H\007\033[?1049h\033[?1h\033[?1002h\033[?1006h\033[?25l\033[2;5r\033[3;4H\033[31mred\033[0m\303\251'"
    session(tmux, "a", "sh", "-c", f"{program}; exec sleep 1000", size="40x10")

    async def day(terminals: Terminals) -> None:
        await eventually(lambda: "red" in tmux.run("capture-pane", "-p", "-t", "a:").decode(), "it has printed")
        screen = await (await watch(terminals, tmux, "a:")).screen()
        assert (screen.cols, screen.rows, screen.cursor) == (40, 10, (7, 2))
        assert screen.title == "a|b %H"
        assert screen.alternate
        assert shown(screen)[2] == "   redé"
        assert "\x1b[31mred" in screen.text
        assert screen.text.startswith("\x1b[?1049h")
        assert screen.text.endswith("\x1b[2;5r\x1b[?1h\x1b[?1002h\x1b[?1006h\x1b[?25l\x1b[3;8H")

    tmux.run("set-option", "-g", "allow-rename", "off")
    together(tmux, day)


def test_what_is_cut_in_two_by_the_screen_is_whole_for_whoever_watches(
    tmux: TmuxServer, private_home: PrivateHome
) -> None:
    gate = os.path.join(private_home.root, "gate")
    os.mkfifo(gate)
    program = rf"printf 'begun\033[3'; read _ <{gate}; printf '2mgreen\303'; read _ <{gate}; printf '\251t\303\251'; exec sleep 1000"
    session(tmux, "a", "sh", "-c", program)

    async def go_on() -> None:
        await asyncio.get_running_loop().run_in_executor(None, lambda: open(gate, "w").close())

    async def day(terminals: Terminals) -> None:
        await eventually(lambda: b"begun" in tmux.run("capture-pane", "-p", "-t", "a:"), "it has begun")
        first = await watch(terminals, tmux, "a:")
        await first.screen()
        assert await first.next() == Printed(text="\x1b[3")
        await go_on()
        await first.reads("2mgreen")
        late = await watch(terminals, tmux, "a:")
        await late.screen()
        await go_on()
        for watcher in (first, late):
            await watcher.reads("té")
            assert watcher.text.endswith("greenété")
        # Whoever comes when half of a character was printed, and nobody has heard it, misses that character alone.
        assert "�" not in late.text + first.text

    together(tmux, day)


def test_a_pane_that_imitates_tmux_is_only_a_pane(tmux: TmuxServer) -> None:
    imitation = r"%%end 1 1 1\n%%output %%1 forged\n%%begin 1 2 1\n%%exit\n"
    session(tmux, "a", "sh", "-c", f"printf '{imitation}'; read _; printf '{imitation}'; exec sleep 1000")
    session(tmux, "b", "cat")
    tmux.run("move-window", "-s", "b:0", "-t", "a:5")

    async def day(terminals: Terminals) -> None:
        imitator, other = await watch(terminals, tmux, "a:0"), await watch(terminals, tmux, "a:5")
        await imitator.reads("%begin 1 2 1")
        await other.screen()
        await imitator.viewer.type(b"\r")
        await imitator.until(lambda: imitator.text.count("%exit") == 2)
        await other.viewer.type(b"mine\r")
        await other.reads("mine\r\nmine")
        assert "forged" not in other.text

    together(tmux, day)


def test_nobody_notices_but_by_the_attached_client(tmux: TmuxServer) -> None:
    session(tmux, "a", "cat", size="91x23")
    tmux.run("new-window", "-d", "-t", "a", "-n", "other", "cat")
    before = tmux.run("list-windows", "-a", "-F", "#{window_id} #{window_active} #{window_layout}")
    options = tmux.run("show-options", "-t", "a"), tmux.run("show-options", "-w", "-t", "a")
    environment = tmux.run("show-environment", "-t", "a")

    async def day(terminals: Terminals) -> None:
        watcher = await watch(terminals, tmux, "a:other")
        await watcher.screen()
        assert tmux.show("#{session_attached}", "a") == "1"
        assert tmux.run("list-windows", "-a", "-F", "#{window_id} #{window_active} #{window_layout}") == before
        watcher.viewer.close()
        await eventually(lambda: tmux.show("#{session_attached}", "a") == "0", "the client leaves with the last viewer")
        await eventually(lambda: not len(terminals), "and is forgotten")

    together(tmux, day)
    assert tmux.run("list-windows", "-a", "-F", "#{window_id} #{window_active} #{window_layout}") == before
    assert (tmux.run("show-options", "-t", "a"), tmux.run("show-options", "-w", "-t", "a")) == options
    assert tmux.run("show-environment", "-t", "a") == environment


def test_panes_of_several_sessions_are_told_apart(tmux: TmuxServer) -> None:
    for name in ("a", "b"):
        session(tmux, name, "cat")
        tmux.run("split-window", "-t", name, "cat")

    async def day(terminals: Terminals) -> None:
        targets = [f"{name}:0.{index}" for name in "ab" for index in (0, 1)]
        watchers = [await watch(terminals, tmux, target) for target in targets]
        for watcher, target in zip(watchers, targets, strict=True):
            await watcher.screen()
            await watcher.viewer.type(f"<{target}>\r".encode())
        for watcher, target in zip(watchers, targets, strict=True):
            await watcher.reads(f"<{target}>\r\n<{target}>")
            assert watcher.text.count("<") == 2, "nothing of the others"
        assert len(terminals) == 2

    together(tmux, day)


def test_bytes_arrive_as_they_are(tmux: TmuxServer, private_home: PrivateHome) -> None:
    taken = os.path.join(private_home.root, "taken")
    session(tmux, "a", "sh", "-c", f"stty raw -echo; echo ready; exec cat >{taken}")
    tmux.run("bind-key", "-n", "C-a", "kill-server")
    every = bytes(range(256)) + "; é 'x' #{pid} $HOME ~\n".encode()
    much = (b"0123456789abcde\n" * 4096)[:LARGEST_INPUT]

    def read() -> bytes:
        if not os.path.exists(taken):
            return b""
        with open(taken, "rb") as file:
            return file.read()

    async def day(terminals: Terminals) -> None:
        watcher = await watch(terminals, tmux, "a:")
        await watcher.reads("ready")
        await watcher.viewer.type(every)
        await watcher.viewer.press(["Enter", "C-c", ";", "Escape"])
        await watcher.viewer.type(much)
        await eventually(lambda: len(read()) >= len(every) + 4 + len(much), "all of it arrives")
        assert read() == every + b"\r\x03;\x1b" + much
        with pytest.raises(UsageError, match="no key"):
            await watcher.viewer.press(["Enter", "rm -rf"])
        with pytest.raises(UsageError, match="too many"):
            await watcher.viewer.type(much + b"x")

    together(tmux, day)


def test_a_paste_is_one_where_the_program_knows_pastes(tmux: TmuxServer, private_home: PrivateHome) -> None:
    taken = os.path.join(private_home.root, "taken")
    session(tmux, "a", "sh", "-c", rf"stty raw -echo; printf 'ready\033[?2004h'; exec cat >{taken}")

    async def day(terminals: Terminals) -> None:
        watcher = await watch(terminals, tmux, "a:")
        await watcher.reads("ready")
        await watcher.viewer.paste("-two\nlines;")
        expected = b"\x1b[200~-two\nlines;\x1b[201~"
        await eventually(lambda: os.path.exists(taken) and os.path.getsize(taken) >= len(expected), "it arrives")
        with open(taken, "rb") as file:
            assert file.read() == expected
        assert tmux.run("list-buffers") == b""

    together(tmux, day)


def test_nothing_is_typed_where_nobody_reads_it(tmux: TmuxServer) -> None:
    session(tmux, "a", "cat")
    tmux.run("set-option", "-g", "remain-on-exit", "on")
    tmux.run("new-window", "-d", "-t", "a", "-n", "dead", "true")
    tmux.run("new-window", "-d", "-t", "a", "-n", "deaf", "cat")
    tmux.run("select-pane", "-d", "-t", "a:deaf")
    tmux.run("copy-mode", "-t", "a:0")

    async def day(terminals: Terminals) -> None:
        dead = await watch(terminals, tmux, "a:dead")
        await eventually(lambda: tmux.show("#{pane_dead}", "a:dead") == "1", "it has ended")
        with pytest.raises(Refused, match="has ended"):
            await dead.viewer.type(b"x")
        deaf = await watch(terminals, tmux, "a:deaf")
        with pytest.raises(Refused, match="no input"):
            await deaf.viewer.type(b"x")
        scrolled = await watch(terminals, tmux, "a:0")
        await scrolled.viewer.type(b"heard\r")
        await scrolled.reads("heard\r\nheard")
        assert tmux.show("#{pane_in_mode}", "a:0") == "0"

    together(tmux, day)


def test_a_size_is_taken_only_when_asked_for_and_given_back(tmux: TmuxServer) -> None:
    session(tmux, "a", "cat", size="100x30")
    tmux.run("split-window", "-h", "-l", "40", "-t", "a", "cat")
    tmux.run("set-option", "-w", "-t", "a", "window-size", "largest")

    def size(target: str) -> str:
        return tmux.show("#{pane_width}x#{pane_height} #{window_width}x#{window_height}", target)

    def own_option() -> bytes:
        return tmux.run("show-options", "-w", "-t", "a", "window-size")

    async def day(terminals: Terminals) -> None:
        before = size("a:0.0")
        for give_back in (Viewer.release_size, Viewer.close):
            watcher = await watch(terminals, tmux, "a:0.0")
            await watcher.screen()
            await watcher.viewer.take_size(50, 20)
            screen = await watcher.screen()
            assert size("a:0.0").endswith("91x20")
            assert isinstance(watcher.frames[-2], Resized)
            assert (screen.cols, screen.rows) == (watcher.frames[-2].cols, watcher.frames[-2].rows)
            give_back(watcher.viewer)
            await eventually(lambda: size("a:0.0") == before, "it has its size again")
            await eventually(lambda: own_option() == b"window-size largest\n", "and its option")
            with pytest.raises(UsageError, match="No pane can be"):
                await (await watch(terminals, tmux, "a:")).viewer.take_size(5, 20)

    together(tmux, day)


@pytest.mark.parametrize("end", ["kill-pane", "kill-session", "kill-server", "kill9", "exit"])
def test_a_pane_that_is_gone_is_told_of(tmux: TmuxServer, end: str) -> None:
    session(tmux, "a", "cat")
    session(tmux, "keep", "cat")
    tmux.run("split-window", "-t", "a", "cat")

    async def day(terminals: Terminals) -> None:
        watcher = await watch(terminals, tmux, "a:0.1")
        await watcher.screen()
        where = spot(tmux, "a:0.1")
        if end == "kill9":
            tmux.kill9()
        elif end == "exit":
            await watcher.viewer.type(b"\x04")
        else:
            target = {"kill-pane": ("-t", "a:0.1"), "kill-session": ("-t", "a")}.get(end, ())
            tmux.run(end, *target)
        assert "not there any more" in await watcher.closes()
        with pytest.raises(NotFound):
            await terminals.view(where)

    together(tmux, day)


def test_a_pane_is_followed_to_another_session_and_back_after_being_detached(tmux: TmuxServer) -> None:
    session(tmux, "a", "cat")
    tmux.run("split-window", "-t", "a", "cat")
    session(tmux, "b", "cat")

    async def day(terminals: Terminals) -> None:
        watcher = await watch(terminals, tmux, "a:0.1")
        await watcher.screen()
        pane = spot(tmux, "a:0.1").pane
        tmux.run("break-pane", "-d", "-s", pane, "-t", "b:7")
        await watcher.screen()
        await watcher.viewer.type(b"moved\r")
        await watcher.reads("moved\r\nmoved")
        await asyncio.sleep(1.1)  # one that is sent away at once does not come back
        tmux.run("detach-client", "-s", "b")
        await watcher.screen()
        await watcher.viewer.type(b"again\r")
        await watcher.reads("again\r\nagain")
        # More than once: whoever takes long to send it away again did not do so at once.
        closing = asyncio.get_running_loop().create_task(watcher.closes())
        while not closing.done():
            tmux.run("detach-client", "-s", "b", check=False)
            await asyncio.sleep(0.05)
        assert await closing

    together(tmux, day)


def test_what_nobody_watches_or_reads_goes_on_printing(tmux: TmuxServer, private_home: PrivateHome) -> None:
    done = [os.path.join(private_home.root, name) for name in ("beside", "watched")]
    gate = os.path.join(private_home.root, "gate")
    os.mkfifo(gate)
    flood = "yes 0123456789012345678901234567890123456789 | head -c 6000000; echo; echo over >{}; exec cat"
    session(tmux, "a", "cat")

    async def day(terminals: Terminals) -> None:
        watcher = await watch(terminals, tmux, "a:")
        await watcher.screen()
        tmux.run("split-window", "-d", "-t", "a", "sh", "-c", flood.format(done[0]))
        await eventually(lambda: os.path.exists(done[0]), "the pane beside is not held up")
        tmux.run("new-window", "-d", "-t", "a", "-n", "flood", "sh", "-c", f"read _ <{gate}; {flood.format(done[1])}")
        slow = await watch(terminals, tmux, "a:flood")
        await slow.screen()
        await asyncio.to_thread(lambda: open(gate, "w").close())
        await eventually(lambda: os.path.exists(done[1]), "nor is a watched one whose viewer does not read")
        await watcher.viewer.type(b"still here\r")
        await watcher.reads("still here\r\nstill here")
        await slow.viewer.type(b"fresh\r")
        await slow.reads("fresh\r\nfresh")
        assert any(isinstance(frame, Screen) for frame in slow.frames[1:])
        assert sum(len(frame.text) for frame in slow.frames if isinstance(frame, Printed)) < 2_000_000

    together(tmux, day)


def test_a_session_that_ends_unattached_is_left_alone(tmux: TmuxServer) -> None:
    session(tmux, "keep", "cat")
    session(tmux, "a", "cat")
    words = ["tmux", "-u", "-L", tmux.name, "-C", "attach-session", "-t", "a"]

    async def day(terminals: Terminals) -> None:
        # Somebody is there, as there is for as long as such a session is.
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as somebody:
            await eventually(lambda: tmux.show("#{session_attached}", "a") == "1", "somebody is attached")
            tmux.run("set-option", "-t", "a", "destroy-unattached", "on")
            with pytest.raises(Refused, match="destroy-unattached"):
                await watch(terminals, tmux, "a:")
            assert tmux.show("#{session_attached}", "a") == "1"
            assert somebody.poll() is None
            tmux.run("set-option", "-t", "a", "destroy-unattached", "off")

    together(tmux, day)


def test_nobody_attaches_where_that_is_not_wished_for(tmux: TmuxServer) -> None:
    session(tmux, "a", "cat", size="70x12")
    tmux.run("set-hook", "-g", "client-attached", "kill-server")

    async def main() -> None:
        async with terminals_here(attaches=False) as terminals:
            watcher = await watch(terminals, tmux, "a:")
            await watcher.screen()
            await watcher.viewer.type("é;x\r".encode())
            await watcher.reads("é;x\r\né;x")
            other = await watch(terminals, tmux, "a:")
            await other.reads("é;x")
            with pytest.raises(UsageError, match="no key"):
                await other.viewer.press(["Entr"])
            await other.viewer.take_size(60, 10)
            await watcher.until(lambda: Resized(cols=60, rows=10) in watcher.frames)
            assert (await watcher.screen()).cols == 60
            other.viewer.close()
            await eventually(lambda: tmux.show("#{window_width}", "a:") == "70", "it has its size again")
            tmux.run("kill-session", "-t", "a")
            assert "not there any more" in await watcher.closes()

    asyncio.run(main())
