"""A look at real servers, with as little around it as there can be."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence

from perdure.host.clock import now
from perdure.host.files import Files
from perdure.host.users import current_user
from perdure.model.config import Config, TmuxConfig
from perdure.model.server import Server
from perdure.model.snapshot import Missed, Snapshot
from perdure.model.topology import Link, Pane, PaneDetails, Session, Window
from perdure.ports import HostView
from perdure.snapshots.ask import ask
from perdure.snapshots.capture import Memory
from perdure.snapshots.look import Looked, Surroundings, look
from tests.at_rest import rest_of
from tests.tmux_server import PATIENCE, TmuxServer
from tests.waiting import wait_for


def surroundings(
    config: Config | None = None, earlier: Callable[[Server], Snapshot | None] | None = None
) -> Surroundings:
    """This machine and this user, with no agent's files and, unless given, no snapshot from before."""

    def view_of(user: object) -> HostView:
        return Files(os.environ["HOME"], spool="/nowhere", query=lambda *_: None)

    return Surroundings(
        config=config or Config(tmux=TmuxConfig(timeout_seconds=PATIENCE)),
        host="here",
        me=current_user(),
        view_of=view_of,
        earlier=earlier or (lambda server: None),
    )


def look_at(
    *servers: TmuxServer,
    scrollback: bool = False,
    config: Config | None = None,
    memory: Memory | None = None,
    earlier: Callable[[Server], Snapshot | None] | None = None,
) -> Sequence[Looked | Missed]:
    """Return what a look at these servers gives, in their order."""
    around = surroundings(config, earlier)
    at = now()
    timeout = around.config.tmux.timeout_seconds
    questions = [
        ask(
            server.socket,
            around.me,
            options=memory is None or not memory.is_fresh(server.socket, at),
            timeout=timeout,
        )
        for server in servers
    ]
    return look(questions, around, at, scrollback=scrollback, memory=memory)


class Seen:
    """A capture with its parts by their tmux ids."""

    def __init__(self, looked: Looked) -> None:
        self.looked = looked
        self.capture = looked.capture
        self.topology = looked.capture.topology
        self.details = looked.capture.details

    def session(self, name: str) -> Session:
        return next(each for each in self.topology.sessions if each.name == name)

    def window(self, id: str) -> Window:
        return next(each for each in self.topology.windows if each.id == id)

    def links(self, session: str) -> list[Link]:
        return [each for each in self.topology.links if each.session == self.session(session).id]

    def pane(self, id: str) -> Pane:
        return next(each for each in self.topology.panes if each.id == id)

    def pane_details(self, id: str) -> PaneDetails:
        return self.details.panes[id]


def see(server: TmuxServer, *, scrollback: bool = False, config: Config | None = None) -> Seen:
    """Return the complete capture of a server; anything else fails the test."""
    (looked,) = look_at(server, scrollback=scrollback, config=config)
    assert isinstance(looked, Looked), looked
    return Seen(looked)


def miss(server: TmuxServer, *, scrollback: bool = False, config: Config | None = None) -> Missed:
    """Return why a server gave no capture; a capture fails the test."""
    (missed,) = look_at(server, scrollback=scrollback, config=config)
    assert isinstance(missed, Missed), missed
    return missed


wait_until = wait_for


def until_at_rest(tmux: TmuxServer) -> None:
    """Wait until every pane runs its program and all of them wait. What tmux calls a pane does not tell that."""
    wait_until(rest_of(tmux), "programs that wait")


def kill_and_wait(pid: int) -> None:
    """Kill a process and wait until it has ended; a zombie nobody collects has."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_running(pid), f"process {pid} ends")


def is_running(pid: int) -> bool:
    """Whether a process does anything any more."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False
