"""What the routes may ask, and do: the daemon's runs, the store, and the library, each where it may be used.

Nothing here blocks the loop. What the daemon knows is a copy it has published; what is kept is read over connections of our
own, in threads of our own; what changes something is done by the same functions as from the command line.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from threading import Lock
from typing import TypeVar

from msgspec import Struct

from perdure.api.aside import Aside
from perdure.api.caller import Caller
from perdure.api.keys import Keys
from perdure.api.logs import Logs
from perdure.api.restoring import Restores
from perdure.api.run_rows import RunRows
from perdure.api.vault import Vault
from perdure.daemon.answers import Answers
from perdure.daemon.current import Current
from perdure.daemon.daemon import Daemon
from perdure.daemon.terminals import Terminals
from perdure.errors import Refused, RunNotFound
from perdure.host.child import follow_aside, run_aside
from perdure.host.clock import ticking
from perdure.host.run import Ran
from perdure.jobs.service import Jobs
from perdure.live.feed import Feed
from perdure.live.whose import is_run_of
from perdure.model.config import Config
from perdure.model.event import Event
from perdure.model.run import Run
from perdure.model.server import Server
from perdure.model.user import User
from perdure.snapshots.look import Surroundings
from perdure.store.store import Store
from perdure.tmux.attached import is_safe

T = TypeVar("T")

#: How many read the store at once.
READERS = 4
#: How many may be at something that takes its time at once: telling an agent something, starting one.
DOERS = 16
#: How many commands of the program itself run at once for those who ask; others wait for their turn.
COMMANDS = 4


class Ground(Struct, frozen=True, kw_only=True):
    """What is handed in by whoever starts the daemon."""

    me: User
    state_dir: str
    #: The words the program is started with, and what it finds in its environment.
    program: tuple[str, ...]
    environ: Mapping[str, str]
    #: Opens the store for several threads. Raises `StoreUnusable`.
    open_store: Callable[[], Store]
    #: The jobs in that store, of our own user.
    jobs: Callable[[Store, Config], Jobs]
    user_of: Callable[[Server], User]
    environ_of: Callable[[User], Mapping[str, str]]
    now: Callable[[], datetime]


class ApiWorld:
    """Everything a route depends on. Its methods are for the loop; what they are handed runs elsewhere."""

    def __init__(self, daemon: Daemon, answers: Answers, ground: Ground) -> None:
        self.daemon = daemon
        #: Who is let in, by what.
        self.keys = Keys(Vault(ground.state_dir, ground.me), now=ground.now, ticking=ticking)
        #: Who asked for what, and, by `logs.audit`, who did what: whatever changes something says so there.
        self.logs = Logs(ground.state_dir, ground.now)
        #: What the daemon does for those who ask over its own socket, by who they are.
        self.answers = answers
        self.ground = ground
        #: When this began: numbers that only grow begin anew with it.
        self.began_at = ground.now()
        self.rows = RunRows()
        #: Whoever watches a pane.
        self.terminals = Terminals(self._attaches)
        answers.let_go = self.terminals.let_go
        self._readers = ThreadPoolExecutor(max_workers=READERS, thread_name_prefix="api-read")
        self._doers = Aside(DOERS)
        self._commands = asyncio.Semaphore(COMMANDS)
        self._opening = Lock()
        self._store: Store | None = None
        #: The file it lies in, if it does in one, and which one that was.
        self._file: str | None = None
        self._opened: tuple[int, int] | None = None
        #: The restores that were asked for here.
        self.restores = Restores(self.follow, self.note, ground.now)

    @property
    def config(self) -> Config:
        """The configuration as it is now."""
        return self.daemon.rounds.world.config

    def _attaches(self, version: str) -> bool:
        wish = self.config.api.attach
        return is_safe(version) if wish == "auto" else wish == "always"

    @property
    def host(self) -> str:
        """This machine's name in the store."""
        return self.daemon.rounds.world.host

    @property
    def around(self) -> Surroundings:
        """What a look at a server depends on, with the views of everybody's files."""
        return self.daemon.rounds.world.around

    @property
    def feed(self) -> Feed:
        """What happens, as it happens."""
        return self.daemon.feed

    @property
    def current(self) -> Current:
        """The runs whose panes are there, of everybody, as they were last written down."""
        return self.daemon.current

    def now(self) -> datetime:
        """Return the present moment."""
        return self.ground.now()

    def runs(self, caller: Caller) -> list[Run]:
        """Return the caller's runs whose panes are there."""
        return [run for run in self.current.runs if is_run_of(run, caller.uid)]

    async def run(self, id: str, caller: Caller) -> Run:
        """Return a run of the caller's by its id, over or not. Raises `RunNotFound`."""
        run = self.current.get(id)
        if run is None:
            run = await self.read(lambda store: store.get_run(id))
        if not is_run_of(run, caller.uid):
            raise RunNotFound(f"There is no run {id!r}; `perdure ls` shows those there are.")
        return run

    async def read(self, work: Callable[[Store], T]) -> T:
        """Run something short over the store, in a thread; at most a handful at once. Raises `StoreUnusable`."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, lambda: work(self.store()))

    async def do(self, work: Callable[[], T]) -> T:
        """Run something that takes its time, in a thread. It goes on when nobody waits for it any more."""
        return await self._doers.run(work)

    async def briefly(self, work: Callable[[], T]) -> T:
        """Run something that only has to do with our own files, in a thread; nothing that takes its time stands before it."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def command(self, *words: str) -> Ran:
        """Run a command of the program itself, as our own user, in a process of its own; cancelled, it is ended."""
        ground = self.ground
        async with self._commands:
            return await run_aside((*ground.program, *words), environ=ground.environ, cwd="/")

    async def follow(self, take: Callable[[bytes], None], *words: str) -> Ran:
        """Run a command as `command` does, and hand on every line it prints as it comes."""
        ground = self.ground
        return await follow_aside((*ground.program, *words), environ=ground.environ, cwd="/", take=take)

    async def note(self, event: Event) -> None:
        """Write down that something has happened, and tell those who follow."""
        await self.daemon.in_order(lambda rounds: rounds.supervisor.note(event))

    def store(self) -> Store:
        """Return the store, for a thread of `read` or `do`; several may use it at once. Raises `StoreUnusable`."""
        with self._opening:
            if self._store is not None and _identity(self._file) != self._opened:
                # Another was put in its place, by a repair say: what is read on would be the old one for ever.
                self._store.close()
                self._store = None
            if self._store is None:
                self._store = self.ground.open_store()
                self._file = next(iter(self._store.driver.files), None)
                self._opened = _identity(self._file)
            return self._store

    def jobs(self) -> Jobs:
        """Return the jobs of our own user, for a thread of `read` or `do`."""
        return self.ground.jobs(self.store(), self.config)

    def owners_only(self, caller: Caller) -> bool:
        """Return whether the caller is whose store it is: what belongs to no server, chats and jobs, is theirs alone."""
        return caller.uid in (0, self.ground.me.uid)

    def refuse_others(self, caller: Caller, what: str) -> None:
        """Raise `Refused` unless the caller is whose store it is. `what` is called theirs then."""
        if not self.owners_only(caller):
            raise Refused(f"The {what} here are those of {self.ground.me.name}.")

    def close(self) -> None:
        """Let go of threads and store; what is still at work is not waited for."""
        self.restores.close()
        self._readers.shutdown(wait=False, cancel_futures=True)
        if self._store is not None:
            self._store.close()
        self.logs.close()


def _identity(path: str | None) -> tuple[int, int] | None:
    """Which file is at a path; None where none is, or none has to be."""
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
