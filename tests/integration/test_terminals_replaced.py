"""What is typed into a terminal goes to who was shown there: to no other server, and to no other program, with the same name."""

from __future__ import annotations

import asyncio

import pytest

from perdure.daemon import viewing
from perdure.errors import PerdureError, Refused
from tests.integration.sockets_here import socket_here
from tests.integration.viewers import eventually, terminals_here, watch
from tests.integration.watching_here import await_run
from tests.tmux_server import TmuxServer

TYPED = "meant-for-somebody-else"


def shown_in(tmux: TmuxServer, target: str) -> str:
    return tmux.run("capture-pane", "-p", "-t", target).decode()


def replace_server(tmux: TmuxServer) -> None:
    """Another server on the same socket, whose first pane has the same number."""
    tmux.kill()
    tmux.run("new-session", "-d", "-s", "a", "-n", "w", "cat")


async def is_untouched(tmux: TmuxServer, target: str) -> None:
    """Nothing was typed there: what was would stand before what is typed now."""
    tmux.run("send-keys", "-t", target, "ours", "Enter")
    await eventually(lambda: "ours\nours" in shown_in(tmux, target), "it reads what is typed")
    assert TYPED not in shown_in(tmux, target)


@pytest.mark.parametrize("attaches", [False, True])
@pytest.mark.parametrize("how", ["type", "press", "paste", "take_size"])
def test_a_terminal_does_not_go_over_to_another_server_on_the_socket(
    tmux: TmuxServer, attaches: bool, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody looks between the end of the one and what is typed for it.
    monkeypatch.setattr(viewing, "POLL", 1.0)
    tmux.run("new-session", "-d", "-s", "a", "-n", "w", "cat")

    async def day() -> None:
        async with terminals_here(attaches=attaches) as terminals:
            watcher = await watch(terminals, tmux, "a:")
            viewer = watcher.viewer
            await watcher.screen()
            pane = tmux.show("#{pane_id}", "a:")
            replace_server(tmux)
            assert tmux.show("#{pane_id}", "a:") == pane, "it has the same name"
            size = tmux.show("#{window_width}", "a:")
            doing = {
                "type": lambda: viewer.type(TYPED.encode()),
                "press": lambda: viewer.press([*TYPED]),
                "paste": lambda: viewer.paste(TYPED),
                "take_size": lambda: viewer.take_size(33, 11),
            }
            with pytest.raises(PerdureError):
                await doing[how]()
            assert "not there any more" in await watcher.closes()
            viewer.close()
            await is_untouched(tmux, "a:")
            assert tmux.show("#{window_width}", "a:") == size
            assert tmux.run("list-buffers") == b"", "nobody else is handed what was to be pasted"

    asyncio.run(day())


def test_whoever_types_over_the_socket_is_told_that_the_server_was_replaced(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "-n", "w", "cat")

    async def day() -> None:
        async with socket_here() as here, here.talk() as talk:
            run = (await await_run(here.daemon, "a:0.0")).id
            await talk.say(op="open", run=run)
            await talk.told("screen", run=run)
            replace_server(tmux)
            await talk.say(op="input", run=run, id=1, text=TYPED)
            await talk.told("ack", id=1, result="refused")
            if not any(message["type"] == "closed" for message in talk.heard):
                await talk.told("closed", run=run)
            await talk.say(op="input", run=run, id=2, text=TYPED)
            await talk.told("ack", id=2, result="refused")
            await is_untouched(tmux, "a:")

    asyncio.run(day())


@pytest.mark.parametrize("attaches", [False, True])
def test_another_program_in_the_pane_is_shown_before_it_is_typed_into(
    tmux: TmuxServer, attaches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody looks between the end of the one and what is typed for it.
    monkeypatch.setattr(viewing, "POLL", 600.0)
    tmux.run("new-session", "-d", "-s", "a", "-n", "w", "cat")

    async def day() -> None:
        async with terminals_here(attaches=attaches) as terminals:
            watcher, other = await watch(terminals, tmux, "a:"), await watch(terminals, tmux, "a:")
            await watcher.screen()
            await other.screen()
            tmux.run("respawn-pane", "-k", "-t", "a:", "sh", "-c", "echo another; exec cat")
            await eventually(lambda: "another" in shown_in(tmux, "a:"), "it has begun")
            with pytest.raises(Refused, match="another program was started there"):
                await watcher.viewer.type(TYPED.encode())
            await watcher.reads("another")
            await other.reads("another")
            await is_untouched(tmux, "a:")
            # Who has seen it may type.
            await watcher.viewer.type(b"for it\r")
            await eventually(lambda: "for it\nfor it" in shown_in(tmux, "a:"), "it reads what is typed")

    asyncio.run(day())
