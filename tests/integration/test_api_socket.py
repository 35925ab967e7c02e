"""The WebSocket, as a client sees it: events without a gap, terminals, typing, and every way of asking wrongly."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from perdure.api import seats
from perdure.api import socket as the_socket
from perdure.api.binding import listen
from perdure.api.caller import Scope
from perdure.daemon.rounds import Rounds
from perdure.model.config import ApiConfig
from perdure.model.event import Event, EventKind
from tests.acceptance.kit import configure
from tests.acceptance.watching import Watching, begin, dispose
from tests.conftest import PrivateHome
from tests.integration.api_here import caller
from tests.integration.api_served import ServedApi
from tests.integration.sockets_here import Here, Talk, socket_here
from tests.integration.viewers import eventually
from tests.integration.watching_here import await_run
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


def together(day: Callable[[Here], Awaitable[None]]) -> None:
    async def main() -> None:
        async with socket_here() as here:
            await day(here)

    asyncio.run(main())


async def happen(here: Here, *numbers: int, socket: str = "/tmp/x") -> None:
    """Let something happen for each of these, all of it written down together."""
    data = [{"socket": socket, "panes": number} for number in numbers]
    events = [Event(kind=EventKind.SAVED, at=here.world.now(), data=each) for each in data]

    def note(rounds: Rounds) -> None:
        for event in events:
            rounds.supervisor.note(event)

    await here.daemon.in_order(note)


def numbered(talk: Talk) -> list[int]:
    events = [message["event"] for message in talk.heard if message["type"] == "event"]
    return [event["data"]["panes"] for event in events if event["kind"] == "saved" and "snapshot" not in event["data"]]


def last_number(talk: Talk, number: int) -> Callable[[object], bool]:
    return lambda _: numbered(talk)[-1:] == [number]


def test_events_come_from_a_number_on_and_without_a_gap_across_connections() -> None:
    async def day(here: Here) -> None:
        await happen(here, *range(20))
        after = 0
        seen: list[int] = []
        for turn in range(4):
            async with here.talk() as talk:
                await talk.say(op="subscribe", after=after)
                heard = await talk.hear()
                assert (heard["type"], heard["after"], heard["last"] >= after) == ("subscribed", after, True)
                await happen(here, *range(20 + turn * 10, 30 + turn * 10))
                await talk.until(last_number(talk, 29 + turn * 10))
                numbers = [message["event"]["seq"] for message in talk.heard if message["type"] == "event"]
                assert numbers == sorted(set(numbers))
                after = numbers[-1]
                seen += numbered(talk)
        assert seen == list(range(60))
        async with here.talk() as talk:
            await talk.say(op="subscribe")
            await talk.told("subscribed", after=after)
            await happen(here, 1000)
            await talk.until(last_number(talk, 1000))
            assert numbered(talk) == [1000]
        async with here.talk() as talk:
            # There is no such number: what happens from now on is told all the same.
            await talk.say(op="subscribe", after=1 << 40)
            there = await here.world.read(lambda store: store.last_event())
            await talk.told("subscribed", after=there, last=there)
            await happen(here, 2000)
            await talk.until(last_number(talk, 2000))
            assert numbered(talk) == [2000]

    together(day)


def test_everybody_is_told_and_who_does_not_read_is_marked_and_holds_nobody_up() -> None:
    async def day(here: Here) -> None:
        here.daemon.feed._most = 64
        narrow = socket.create_connection(("127.0.0.1", here.port))
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        async with here.talk(max_queue=1, sock=narrow) as slow, here.talk() as quick:
            for each in (slow, quick):
                await each.say(op="subscribe")
                await each.told("subscribed")
            reading = asyncio.get_running_loop().create_task(quick.until(last_number(quick, 7)))
            for turn in range(1, 11):
                await happen(here, *range(100, 130), socket="x" * 3000)
                # Whoever reads is given the time to.
                await eventually(lambda many=turn * 30: len(numbered(quick)) >= many, "it is told")  # type: ignore[misc]
            await happen(here, 7)
            await reading
            assert len(numbered(quick)) == 301
            lagged = await slow.told("lagged")
            events = [message["event"]["seq"] for message in slow.heard if message["type"] == "event"]
            assert lagged["after"] == events[-1]
            await slow.say(op="subscribe", after=lagged["after"])
            await slow.until(last_number(slow, 7))
            assert len(numbered(slow)) == 301

    together(day)


def test_a_terminal_is_shown_typed_into_and_closed(
    tmux: TmuxServer, private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long it takes to be typed here, it is one line of the audit log.
    monkeypatch.setattr(seats, "TOGETHER", 600.0)
    tmux.run("new-session", "-d", "-x", "90", "-y", "20", "-s", "a", "-n", "w", "cat")

    async def day(here: Here) -> None:
        run = (await await_run(here.daemon, "a:0.0")).id
        async with here.talk() as talk:
            await talk.say(op="open", run=run)
            screen = await talk.told("screen", run=run)
            assert (screen["cols"], screen["rows"], screen["cursor"]) == (90, 20, {"x": 0, "y": 0})
            await talk.say(op="input", run=run, id=4, text="héllo sk-ant-0123456789012345678901234\r")
            assert (await talk.told("ack"))["result"] == "sent"
            await talk.say(op="input", run=run, id=5, keys=["x", "Enter"])
            await talk.reads(run, "x\r\nx\r\n")
            await talk.say(op="input", run=run, id=6, paste="one\ntwo\n")
            await talk.told("ack", id=6, result="sent")
            await talk.reads(run, "two\r\n")
            await talk.say(op="input", run=run, id=7, keys=["Entr"])
            assert "no key" in (await talk.told("ack", id=7, result="refused"))["why"]
            await talk.say(op="take_size", run=run, cols=70, rows=15)
            await talk.told("resized", run=run, cols=70, rows=15)
            await talk.told("screen", run=run, cols=70, rows=15)
            await talk.say(op="take_size", run=run, cols=1, rows=15)
            await talk.told("error", run=run, code="USAGE_ERROR")
            await talk.say(op="release_size", run=run)
            await talk.told("screen", run=run, cols=90, rows=20)
            await talk.say(op="close", run=run)
            await talk.say(op="input", run=run, id=8, text="y")
            await talk.told("ack", id=8, result="refused")
            await eventually(lambda: tmux.run("list-clients") == b"", "the client leaves")
            await talk.say(op="open", run=run)
            await talk.told("screen", run=run)
            tmux.run("kill-server")
            await talk.told("closed", run=run)
            await talk.say(op="ping")
            await talk.told("pong")
            # Whoever opens what is gone is told so, and is not let go of.
            await talk.say(op="open", run=run)
            await talk.until(lambda message: message["type"] in ("closed", "error"))

    together(day)
    with open(os.path.join(private_home.state, "audit.log"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    typed = [line for line in lines if line["action"] == "type"]
    assert [(line["typed"], line["keys"], line["pasted"]) for line in typed] == [(40, 2, 8)]
    assert not any("llo" in json.dumps(line) for line in lines)
    assert [(line["cols"], line["rows"]) for line in lines if line["action"] == "take size"] == [(70, 15)]


def test_a_client_that_goes_leaves_nothing_behind(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-x", "90", "-y", "20", "-s", "a", "-n", "w", "cat")

    async def day(here: Here) -> None:
        run = (await await_run(here.daemon, "a:0.0")).id
        async with here.talk() as talk:
            await talk.say(op="subscribe")
            await talk.say(op="open", run=run)
            await talk.told("screen", run=run)
            await talk.say(op="take_size", run=run, cols=70, rows=15)
            await talk.told("screen", run=run, cols=70)
            talk.connection.transport.abort()
        await eventually(lambda: tmux.run("list-clients") == b"", "the client leaves")
        await eventually(lambda: tmux.show("#{window_width}", "a:") == "90", "it has its size again")
        own = ("show-options", "-w", "-t", "a", "window-size")
        await eventually(lambda: tmux.run(*own) == b"", "and no option of ours")
        await eventually(lambda: len(here.world.feed) == 0, "nobody follows")

    together(day)


def test_whoever_has_taken_the_size_is_told_when_another_takes_it(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-x", "90", "-y", "20", "-s", "a", "-n", "w", "cat")

    async def day(here: Here) -> None:
        run = (await await_run(here.daemon, "a:0.0")).id
        async with here.talk() as one, here.talk() as other:
            for talk in (one, other):
                await talk.say(op="open", run=run)
                await talk.told("screen", run=run)
            await one.say(op="take_size", run=run, cols=70, rows=15)
            await one.told("size", run=run, taken=True)
            await one.told("screen", run=run, cols=70)
            # As large as before: nothing else would tell.
            await other.say(op="take_size", run=run, cols=70, rows=15)
            await other.told("size", run=run, taken=True)
            await one.told("size", run=run, taken=False)
            # Who has lost it gives nothing back.
            await one.say(op="release_size", run=run)
            await one.say(op="input", run=run, id=1, text="x")
            await one.told("ack", run=run, id=1, result="sent")
            assert tmux.show("#{window_width}", "a:") == "70"
            await other.say(op="release_size", run=run)
            await other.told("size", run=run, taken=False)
            await eventually(lambda: tmux.show("#{window_width}", "a:") == "90", "it has its size again")

    together(day)


def test_whoever_may_only_look_types_nothing(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "-n", "w", "cat")

    async def day(here: Here) -> None:
        run = (await await_run(here.daemon, "a:0.0")).id
        async with here.talk(caller(Scope.READ)) as talk:
            await talk.say(op="open", run=run)
            await talk.told("screen", run=run)
            await talk.say(op="input", run=run, id=1, text="x\r")
            assert (await talk.told("ack", id=1))["result"] == "refused"
            await talk.say(op="take_size", run=run, cols=70, rows=15)
            await talk.told("error", run=run, code="READ_ONLY")
        async with here.talk(caller(uid=54321)) as other:
            await other.say(op="open", run=run)
            await other.told("error", run=run, code="NOT_FOUND")
            await other.say(op="subscribe", after=0)
            await other.say(op="ping")
            await other.told("pong")
        assert b"x" not in tmux.run("capture-pane", "-p", "-t", "a:")

    together(day)


NONSENSE: tuple[str | bytes, ...] = (
    "",
    "{",
    "[]",
    "null",
    "{}",
    '{"op":"dance"}',
    '{"op":"open"}',
    '{"op":"open","run":""}',
    '{"op":"open","run":7}',
    '{"op":"open","run":"r1","more":1}',
    '{"op":"subscribe","after":-1}',
    '{"op":"subscribe","after":"x"}',
    '{"op":"subscribe","after":99999999999999999999}',
    '{"op":"input","run":"r1"}',
    '{"op":"input","run":"r1","text":"a","keys":["b"]}',
    '{"op":"input","run":"r1","keys":[]}',
    '{"op":"input","run":"r1","text":"\\ud800"}',
    '{"op":"take_size","run":"r1","cols":1e99,"rows":2}',
    '{"op":"input","run":"r1","text":"' + "x" * (1 << 18) + '"}',
    "[" * 100_000,
    b"\x00\xff",
)


def test_nonsense_is_answered_and_nobody_falls() -> None:
    async def day(here: Here) -> None:
        async with here.talk() as talk:
            for message in NONSENSE:
                await talk.connection.send(message)
                error = await talk.hear()
                assert (error["type"], error.get("code")) == ("error", "USAGE_ERROR"), message[:60]
                assert "Traceback" not in error["message"]
            await talk.say(op="ping")
            assert (await talk.hear()) == {"type": "pong"}

    together(day)


def test_a_client_has_only_so_many_terminals(tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(the_socket, "TERMINALS", 1)
    tmux.run("new-session", "-d", "-s", "a", "-n", "w", "cat")
    tmux.run("split-window", "-t", "a", "cat")

    async def day(here: Here) -> None:
        runs = [(await await_run(here.daemon, f"a:0.{index}")).id for index in (0, 1)]
        async with here.talk() as talk:
            for run in runs:
                await talk.say(op="open", run=run)
            await talk.told("error", run=runs[1], code="TOO_MANY")
            await talk.say(op="open", run=runs[0])
            await talk.told("screen", run=runs[0])
            await talk.say(op="open", run="r999999")
            await talk.told("error", run="r999999", code="NOT_FOUND")

    together(day)


def test_what_is_asked_of_a_terminal_is_answered_in_that_order_also_where_it_is_refused(
    tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing overtakes: not what is too much at once, nor what comes behind a close, or where nothing is open."""
    monkeypatch.setattr(seats, "WAITING", 3)
    tmux.run("new-session", "-d", "-s", "a", "-n", "w", "cat")

    async def day(here: Here) -> None:
        run = (await await_run(here.daemon, "a:0.0")).id
        async with here.talk() as talk:
            await talk.say(op="open", run=run)
            await talk.told("screen", run=run)
            ops: list[dict[str, object]] = [{"op": "input", "id": id, "text": "x"} for id in range(1, 21)]
            ops[10:10] = [{"op": "close"}, {"op": "input", "id": 99, "text": "y"}, {"op": "open"}]
            for op in ops:
                await talk.connection.send(json.dumps({"run": run, **op}))
            await talk.told("ack", id=20)
            acks = [message for message in talk.heard if message["type"] == "ack"]
            assert [message["id"] for message in acks] == [*range(1, 11), 99, *range(11, 21)]
            assert acks[0]["result"] == "sent"
            # It is a person who types too fast, and no reason to be let go of.
            await talk.told("screen", run=run)
            await talk.say(op="input", run=run, id=21, text="z")
            await talk.told("ack", id=21, result="sent")

    together(day)


async def flood(talk: Talk, run: str) -> None:
    """Ask without end, and hear what comes of it."""
    for id in range(10_000):
        await talk.say(op="open", run=run)
        await talk.say(op="input", run=run, id=id, text="x")
    await talk.told("nothing")


def test_whoever_asks_for_far_too_much_at_once_is_let_go_of(tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seats, "WAITING", 2)
    monkeypatch.setattr(seats, "REFUSED", 2)
    tmux.run("new-session", "-d", "-s", "a", "-n", "w", "cat")

    async def day(here: Here) -> None:
        run = (await await_run(here.daemon, "a:0.0")).id
        async with here.talk() as talk:
            with pytest.raises(ConnectionClosed):
                await flood(talk, run)
            # And told that it was not as it should be.
            await talk.connection.wait_closed()
            assert talk.connection.close_code in (
                1008,
                1006,
            )  # the latter where so much was under way that the word was lost
        await eventually(lambda: tmux.run("list-clients") == b"", "nobody is left")
        async with here.talk() as talk:
            await talk.say(op="ping")
            await talk.told("pong")

    together(day)


def test_a_ticket_opens_one_socket_and_only_from_here() -> None:
    async def day(here: Here) -> None:
        origin = f"http://127.0.0.1:{here.port}"

        async def status(ticket: str, origin: str | None) -> int:
            address = f"ws://127.0.0.1:{here.port}/api/socket?ticket={ticket}"
            try:
                async with connect(address, origin=origin, proxy=None):  # type: ignore[arg-type]  # any text is tried
                    return 101
            except InvalidStatus as refused:
                return refused.response.status_code

        assert await status(here.ticket(), "http://evil.example") == 403
        assert await status(here.ticket(), None) == 403
        assert await status("", origin) == 401
        assert await status(used := here.ticket(), origin) == 101
        assert await status(used, origin) == 401

    together(day)


def test_what_is_said_is_sent_at_once() -> None:
    """A message that waits for the one before to be acknowledged would come 40 ms late."""
    listening = listen(ApiConfig(port=0))
    client = socket.create_connection(listening.socket.getsockname())

    async def main() -> int:
        accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        class Taken(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                one = transport.get_extra_info("socket")
                accepted.set_result(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                transport.close()

        async with await asyncio.get_running_loop().create_server(Taken, sock=listening.socket):
            return await accepted

    assert asyncio.run(main())
    client.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_daemon_that_ends_leaves_no_client_in_tmux(
    tmux: TmuxServer, perdure: Perdure, private_home: PrivateHome, number: signal.Signals
) -> None:
    configure(private_home, '[api]\nattach = "always"\n')
    tmux.run("new-session", "-d", "-x", "90", "-y", "20", "-s", "a", "-n", "w", "cat")

    async def day(watcher: Watching) -> None:
        served = ServedApi(perdure, private_home.state)
        address, bearer = served.url.replace("http", "ws"), {"Authorization": f"Bearer {served.token}"}
        async with connect(f"{address}/api/socket", additional_headers=bearer, proxy=None) as connection:
            talk = Talk(connection)
            (run,) = watcher.runs()
            await talk.say(op="subscribe")
            await talk.say(op="open", run=run.id)
            await talk.told("screen", run=run.id)
            await talk.say(op="take_size", run=run.id, cols=70, rows=15)
            await talk.told("screen", run=run.id, cols=70)
            assert tmux.show("#{session_attached}", "a") == "1"
            watcher.process.send_signal(number)
            await eventually(lambda: tmux.show("#{session_attached}", "a") == "0", "the client ends with the daemon")
            await eventually(lambda: watcher.process.poll() is not None, "the daemon ends")

    watcher = begin(perdure, "--port", "0")
    try:
        asyncio.run(day(watcher))
        if number is signal.SIGTERM:
            assert watcher.process.returncode == 0, watcher.log
            assert tmux.show("#{window_width}", "a:") == "90", "what was taken is given back"
            assert tmux.run("show-options", "-w", "-t", "a", "window-size") == b""
            assert "Traceback" not in watcher.log
    finally:
        dispose(watcher)
