"""Simulated agents in some panes of a server: started in its shells as people start them, idle or kept busy."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
from msgspec import Struct

from bench.sandbox import Sandbox
from bench.servers import Server
from perdure.demo.agent import NAME, new_id
from perdure.demo.program import install

#: How long an agent thinks about a prompt, in seconds; all that time its title and its screen turn, five times a second.
THINK = 3.0
#: Every agent is asked something this often, in seconds, a quarter of them at a time.
TURN = 4.0
_PARTS = 4


class Pane(Struct, frozen=True, kw_only=True):
    """A pane, and the terminal programs in it print to."""

    id: str
    tty: str

    def print(self, text: str) -> None:
        """Print as a program in it does."""
        terminal = os.open(self.tty, os.O_WRONLY | os.O_NOCTTY)
        try:
            os.write(terminal, text.encode())
        finally:
            os.close(terminal)

    def entitle(self, title: str) -> None:
        """Set its title as programs do."""
        self.print(f"\033]2;{title}\007")


def panes_of(server: Server) -> list[Pane]:
    """Return all panes of a server."""
    rows = server.tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_tty}").splitlines()
    return [Pane(id=id, tty=tty) for id, tty in (row.split() for row in rows)]


def start_agents(server: Server, panes: Sequence[Pane], sandbox: Sandbox) -> None:
    """Start an agent in each of these panes, and another whenever one has ended."""
    program = install(sandbox.directory("agent"))
    line = f"while :; do {program} --think {THINK:g}; sleep 0.2; done"
    _type(server, panes, line)


def switch(home: str, pid: int) -> str:
    """Have the registry say that an agent went on to another conversation, and return which."""
    path = os.path.join(home, f".{NAME}", "running", f"{pid}.json")
    with open(path, "rb") as file:
        entry = msgspec.json.decode(file.read())
    entry["id"] = new_id()
    with open(f"{path}.new", "wb") as file:
        file.write(msgspec.json.encode(entry))
    os.replace(f"{path}.new", path)
    return str(entry["id"])


@contextmanager
def kept_busy(server: Server, panes: Sequence[Pane]) -> Iterator[None]:
    """Keep the agents in these panes at work: each thinks for a while, answers, rests and is asked again."""
    over = threading.Event()

    def ask() -> None:
        turn = 0
        while not over.wait(TURN / _PARTS):
            _type(server, panes[turn % _PARTS :: _PARTS], f"look into matter {turn // _PARTS}")
            turn += 1

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        over.wait(TURN)
        yield
    finally:
        over.set()
        asking.join()


def _type(server: Server, panes: Sequence[Pane], line: str) -> None:
    server.tmux("source-file", "-", script="".join(f"send-keys -t {pane.id} '{line}' Enter\n" for pane in panes))
