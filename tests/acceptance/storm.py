"""A storm: everything that can happen to a machine with agents on it, at random, for as long as is wanted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from perdure.daemon import protocol
from perdure.daemon.call import stream
from perdure.errors import PerdureError
from perdure.model.event import Lagged, StoredEvent
from tests.acceptance.simulants import Simulants
from tests.acceptance.watching import Watching, begin, dispose, state_dir
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxFailed, TmuxServer

_SHELL = "/bin/sh"


class Sample(Struct, frozen=True):
    """What a daemon takes at a moment."""

    daemon: int
    seconds: float
    panes: int
    files: int
    watches: int
    kilobytes: int


class Follower(threading.Thread):
    """Somebody who listens all the time, and goes on behind the last number whenever the daemon was gone."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.heard: list[StoredEvent] = []
        self.is_over = False
        self._state_dir = state_dir()

    def run(self) -> None:
        while not self.is_over:
            after = self.heard[-1].seq if self.heard else 0
            with suppress(PerdureError, OSError):
                for each in stream(self._state_dir, protocol.Events(after=after, follow=True)):
                    if isinstance(each, Lagged):
                        break
                    # One that could not be stored has no number.
                    if each.seq:
                        self.heard.append(each)
            time.sleep(0.05)


class Storm:
    """The machine, what is done to it, and what was seen of the daemon meanwhile."""

    def __init__(self, perdure: Perdure, servers: list[TmuxServer], simulants: Simulants, seed: int) -> None:
        self.perdure = perdure
        self.servers = servers
        self.simulants = simulants
        self.random = random.Random(seed)
        self.daemon = begin(perdure)
        self.daemons = [self.daemon]
        self.samples: list[Sample] = []
        self.done: list[str] = []
        #: Which run each conversation was ever certainly in.
        self.runs: dict[str, set[str]] = {}
        self._began = time.monotonic()
        self._restoring: list[subprocess.Popen[bytes]] = []
        self._number = 0
        for each in servers:
            self._start(each)

    # What happens

    def rage(self, until: float, *, kills_daemon: bool) -> None:
        """Do something, again and again."""
        deeds: list[tuple[Callable[[TmuxServer], object], int]] = [
            (self._new_window, 14),
            (self._new_agent, 12),
            (self._split, 4),
            (self._kill_pane, 12),
            (self._kill_session, 2),
            (self._rename, 4),
            (self._move, 3),
            (self._ask, 16),
            (self._switch, 3),
            (self._quit, 4),
            (self._kill_agent, 3),
            (self._stop_for_a_while, 1),
            (self._kill_server, 4),
            (self._hang_up, 1),
            *([(self._kill_daemon, 2), (self._end_daemon, 1)] if kills_daemon else []),
        ]
        chosen = [deed for deed, weight in deeds for _ in range(weight)]
        while time.monotonic() - self._began < until:
            deed, server = self.random.choice(chosen), self.random.choice(self.servers)
            self.done.append(f"{time.monotonic() - self._began:.2f} {deed.__name__} {server.name}")
            # What is aimed at may be gone by the time.
            with suppress(TmuxFailed, ProcessLookupError):
                deed(server)
            self._tend()
            time.sleep(self.random.uniform(0.0, 0.12))

    def settle(self) -> None:
        """Let what was begun come to its end."""
        for each in self._restoring:
            each.wait(120)
        self._restoring.clear()

    def end(self) -> None:
        """See that nothing is left of it."""
        for restoring in self._restoring:
            restoring.kill()
            restoring.wait()
        for daemon in self.daemons:
            dispose(daemon)

    def sample(self) -> None:
        """See what the daemon takes, and who is where."""
        pid = self.daemon.pid
        runs = self.daemon.runs()
        for run in runs:
            identity = run.identity
            if identity is not None and identity.conversation and identity.certain and run.program is not None:
                self.runs.setdefault(identity.conversation, set()).add(run.id)
        with suppress(OSError):
            names = os.listdir(f"/proc/{pid}/fd")
            watches = 0
            for name in names:
                with suppress(OSError), open(f"/proc/{pid}/fdinfo/{name}") as file:
                    watches += sum(line.startswith("inotify wd:") for line in file)
            with open(f"/proc/{pid}/status") as file:
                size = next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
            seconds = time.monotonic() - self._began
            self.samples.append(Sample(pid, seconds, len(runs), len(names), watches, size))

    def _tend(self) -> None:
        """Keep the machine in use: servers are started, brought back or begun anew, and the daemon with them."""
        self._restoring = [each for each in self._restoring if each.poll() is None]
        for each in self.servers:
            if not each.alive and self.random.random() < 0.1:
                self._start(each)
        if self.random.random() < 0.1:
            self.sample()

    def _start(self, server: TmuxServer) -> None:
        server.run("new-session", "-d", "-s", "base", "-n", "one", _SHELL, check=False)

    def _name(self) -> str:
        self._number += 1
        return f"n{self._number}"

    def _panes(self, server: TmuxServer) -> list[str]:
        return server.run("list-panes", "-a", "-F", "#{pane_id}", check=False).decode().split()

    def _pane(self, server: TmuxServer) -> str:
        panes = self._panes(server)
        if not panes:
            raise TmuxFailed("there is no pane")
        return self.random.choice(panes)

    def _new_window(self, server: TmuxServer) -> None:
        if len(self._panes(server)) < 12:
            server.run("new-session", "-d", "-s", self._name(), "-n", "one", _SHELL)

    def _new_agent(self, server: TmuxServer) -> None:
        if len(self._panes(server)) >= 12:
            return
        words = f"{self.simulants.path} --think {self.random.choice(['0.1', '1', '4'])} 'the plan'"
        if self.random.random() < 0.5:
            server.run("new-session", "-d", "-s", self._name(), "-n", "agent", words)
        else:
            name = self._name()
            server.run("new-session", "-d", "-s", name, "-n", "agent", _SHELL)
            server.run("send-keys", "-t", name, words, "Enter")

    def _split(self, server: TmuxServer) -> None:
        if len(self._panes(server)) < 12:
            server.run("split-window", "-d", "-t", self._pane(server), _SHELL, check=False)

    def _kill_pane(self, server: TmuxServer) -> None:
        if len(self._panes(server)) > 2:
            server.run("kill-pane", "-t", self._pane(server))

    def _kill_session(self, server: TmuxServer) -> None:
        sessions = server.run("list-sessions", "-F", "#{session_name}", check=False).decode().split()
        if len(sessions) > 2:
            server.run("kill-session", "-t", self.random.choice(sessions))

    def _rename(self, server: TmuxServer) -> None:
        kind = self.random.choice(["rename-session", "rename-window"])
        server.run(kind, "-t", self._pane(server), self._name())

    def _move(self, server: TmuxServer) -> None:
        server.run("join-pane", "-d", "-s", self._pane(server), "-t", self._pane(server), check=False)

    def _agents(self, server: TmuxServer) -> list[str]:
        """The panes in which an agent runs."""
        found = server.run("list-panes", "-a", "-F", "#{pane_id} #{pane_title}", check=False).decode(errors="replace")
        return [line.split()[0] for line in found.splitlines() if "simulant" in line]

    def _tell(self, server: TmuxServer, text: str) -> None:
        agents = self._agents(server)
        if agents:
            server.run("send-keys", "-t", self.random.choice(agents), text, "Enter")

    def _ask(self, server: TmuxServer) -> None:
        self._tell(server, self.random.choice(["more", "run the tests", "y", "n", "and then"]))

    def _switch(self, server: TmuxServer) -> None:
        self._tell(server, "/new")

    def _quit(self, server: TmuxServer) -> None:
        self._tell(server, "/quit")

    def _kill_agent(self, server: TmuxServer) -> None:
        running = sorted(self.simulants.running().values())
        if running:
            os.kill(self.random.choice(running), signal.SIGKILL)

    def _stop_for_a_while(self, server: TmuxServer) -> None:
        pid = server.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(self.random.uniform(0.2, 2.5))
        finally:
            os.kill(pid, signal.SIGCONT)

    def _kill_server(self, server: TmuxServer) -> None:
        server.kill9()
        if self.random.random() < 0.5:
            # The daemon may bring it back at the same time: one of the two refuses then.
            self._restore(server)

    def _restore(self, server: TmuxServer) -> None:
        words = self.perdure.argv("restore", "--json", "--socket", server.socket)
        self._restoring.append(
            subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )

    def _hang_up(self, server: TmuxServer) -> None:
        os.kill(self.daemon.pid, signal.SIGHUP)

    def _kill_daemon(self, server: TmuxServer) -> None:
        self.daemon.process.kill()
        self.daemon.process.wait()
        self._begin_again()

    def _end_daemon(self, server: TmuxServer) -> None:
        assert self.daemon.end() == 0, self.daemon.log
        self._begin_again()

    def _begin_again(self) -> None:
        dispose(self.daemon)
        if self.random.random() < 0.5:
            # Nobody is there to notice it.
            with suppress(TmuxFailed, ProcessLookupError):
                server = self.random.choice(self.servers)
                self.random.choice([self._new_agent, self._kill_pane, self._kill_server])(server)
        self.daemon = begin(self.perdure)
        self.daemons.append(self.daemon)


def last_of(watcher: Watching) -> int:
    """Return the number of the last event, once nothing has happened for a moment."""
    last, since = watcher.last(), time.monotonic()
    while time.monotonic() - since < 2.5:
        now = watcher.last()
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.1)
    return last
