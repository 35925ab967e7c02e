"""`perdure events`: what has happened, with a daemon and without."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from perdure.chats.service import Chats
from perdure.host.clock import now
from perdure.host.places import store_url
from perdure.model.chat import Source, Turn
from perdure.model.config import Config
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.run import Run
from perdure.store import open_store
from tests.acceptance.kit import has_fields, only_json, sentence
from tests.acceptance.watching import PATIENCE, state_dir, watching
from tests.documented import documented_events
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer
from tests.unit.live.events import a_run, an_event


def record(runs: Sequence[Run], events: Sequence[Event]) -> tuple[StoredEvent, ...]:
    """Write down what no daemon saw."""
    store = open_store(store_url(os.environ, state_dir()), state_dir=state_dir())
    try:
        return store.record(runs, events)
    finally:
        store.close()


def happen(*kinds: EventKind, run: str | None = "r1") -> None:
    """Let things of these kinds have happened."""
    record([], [an_event(0, kind, run=run).event for kind in kinds])


class Follower:
    """`perdure events --follow` at work."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def line(self) -> str:
        """Return the next line; fails the test when none comes."""
        return _line(self.process.stdout)

    def complaint(self) -> str:
        """Return the next line on standard error."""
        return _line(self.process.stderr)

    def row(self) -> dict[str, Any]:
        """Return the next line as the one object it has to be."""
        found: dict[str, Any] = msgspec.json.decode(self.line())
        return found


def _line(stream: Any) -> str:
    ready, _, _ = select.select([stream], [], [], PATIENCE)
    assert ready, "in vain: a line"
    return str(stream.readline().decode())


@contextmanager
def following(perdure: Perdure, *args: str) -> Iterator[Follower]:
    """Start it and see that nothing is left of it."""
    process = subprocess.Popen(
        perdure.argv("events", "--follow", *args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    try:
        yield Follower(process)
    finally:
        process.kill()
        process.communicate()


def test_nothing_has_happened_yet(perdure: Perdure) -> None:
    assert "Nothing like that has happened yet" in perdure.ok("events").out
    assert only_json(perdure.ok("events", "--json")) == {"events": [], "last": 0}


def test_what_is_stored_is_shown_in_order_and_from_where_one_was(perdure: Perdure) -> None:
    happen(EventKind.RUN_CREATED, EventKind.STATE_CHANGED)
    happen(EventKind.STATE_CHANGED, run="r2")
    said = only_json(perdure.ok("events", "--json"))
    assert [each["seq"] for each in said["events"]] == [1, 2, 3]
    assert said["last"] == 3
    fields = {"seq": int, "at": str, "kind": str, "run": str, "server": str, "data": dict}
    has_fields(said["events"][0], fields)
    assert [line.split()[0] for line in perdure.ok("events", "--after", "1").out.splitlines()] == ["2", "3"]
    assert [each["seq"] for each in only_json(perdure.ok("events", "--run", "r2", "--json"))["events"]] == [3]
    both = perdure.ok("events", "--kind", "run_created", "--kind", "state_changed", "--run", "r1", "--json")
    assert [each["seq"] for each in only_json(both)["events"]] == [1, 2]


def test_more_than_a_page_is_shown_whole(perdure: Perdure) -> None:
    happen(*[EventKind.TITLE_CHANGED] * 1201)
    assert len(perdure.ok("events").out.splitlines()) == 1201


@pytest.mark.parametrize(
    "args", [("--after", "-1"), ("--after", "x"), ("--run", "7"), ("--run", ""), ("--kind", "party"), ("more",)]
)
def test_wrong_arguments_are_told_so(perdure: Perdure, args: tuple[str, ...]) -> None:
    ran = perdure("events", *args)
    assert ran.code == 2
    sentence(ran)


def test_without_a_daemon_the_store_is_followed_and_that_is_said(perdure: Perdure) -> None:
    happen(EventKind.RUN_CREATED, EventKind.STATE_CHANGED)
    with following(perdure, "--json", "--after", "1") as follower:
        assert "No daemon is at work" in follower.complaint()
        assert follower.row()["seq"] == 2
        happen(EventKind.SAVED, EventKind.SEEN)
        assert [follower.row()["seq"], follower.row()["seq"]] == [3, 4]


def test_without_a_number_it_is_followed_from_now_on(perdure: Perdure) -> None:
    happen(EventKind.RUN_CREATED)
    with following(perdure, "--kind", "seen") as follower:
        assert "No daemon is at work" in follower.complaint()
        happen(EventKind.SAVED, EventKind.SEEN)
        assert follower.line().split()[0] == "3"


def test_a_follower_goes_from_the_store_to_the_daemon_and_back_and_misses_nothing(
    perdure: Perdure, tmux: TmuxServer
) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "w")
    with following(perdure, "--json", "--after", "0") as follower:
        assert "No daemon is at work" in follower.complaint()
        with watching(perdure) as daemon:
            tmux.run("new-session", "-d", "-s", "more", "-n", "w")
            daemon.await_run("more:0.0")
        # What comes after the daemon has ended is found too.
        record([a_run("r99")], [an_event(0, run="r99").event])
        rows = [follower.row()]
        while rows[-1]["run"] != "r99":
            rows.append(follower.row())
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    kinds = [row["kind"] for row in rows]
    assert kinds.count("run_created") == 2
    assert {"daemon_started", "daemon_stopped"} <= set(kinds)
    documented = documented_events()
    assert [(row["kind"], name) for row in rows for name in row["data"] if name not in documented[row["kind"]]] == []


def talk(count: int) -> str:
    """Let something be said in a chat, as a gateway does it: with the same store, and without asking anybody."""
    store = open_store(store_url(os.environ, state_dir()), state_dir=state_dir(), threads=True)
    try:
        chats = Chats(store.chats, Config(), now)
        source = Source(platform="telegram", chat_id="5", user_id="7")
        id = chats.reset(source).id
        for number in range(count):
            chats.append(id, Turn(position=0, role="user", content=f"confidential {number}", at=now()))
        chats.set_title(source, id, f"Roof {id}")
        return id
    finally:
        store.close()


def test_whoever_follows_the_daemon_hears_of_chats_in_order_with_its_own(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "w")
    with watching(perdure) as daemon, following(perdure, "--json", "--after", "0") as follower:
        # More at once than may wait for one who follows.
        first = talk(1500)
        tmux.run("new-session", "-d", "-s", "more", "-n", "w")
        daemon.await_run("more:0.0")
        second = talk(2)
        rows = [follower.row()]
        while rows[-1]["kind"] != "chat_titled" or rows[-1]["data"]["chat"] != second:
            rows.append(follower.row())
        assert follower.process.poll() is None
        assert "confidential" not in daemon.log
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    said = [row["data"] for row in rows if row["kind"] == "chat_said"]
    # As many at once as were said before somebody told of it; each once, and in order.
    assert [(data["chat"], place) for data in said for place in range(data["first"], data["last"] + 1)] == [
        (chat, place) for chat, count in ((first, 1500), (second, 2)) for place in range(1, count + 1)
    ]
    assert "run_created" in [row["kind"] for row in rows]
    assert "confidential" not in str(rows)
    documented = documented_events()
    assert [(row["kind"], name) for row in rows for name in row["data"] if name not in documented[row["kind"]]] == []


def test_without_a_daemon_chats_are_followed_too(perdure: Perdure) -> None:
    with following(perdure, "--json", "--after", "0", "--kind", "chat_opened", "--kind", "chat_said") as follower:
        assert "No daemon is at work" in follower.complaint()
        id = talk(1)
        assert [(row["kind"], row["data"]["chat"]) for row in (follower.row(), follower.row())] == [
            ("chat_opened", id),
            ("chat_said", id),
        ]
