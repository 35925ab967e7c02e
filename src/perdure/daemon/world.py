"""What the daemon stands on, handed in by whoever starts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from perdure.jobs.service import Jobs
from perdure.model.config import Config
from perdure.model.snapshot import Missed
from perdure.model.user import User
from perdure.ports import EventLog, Leases, RestoreJournal, RunStore, SnapshotStore
from perdure.snapshots.look import Looked, Surroundings
from perdure.snapshots.save import SaveResult


class DaemonStore(SnapshotStore, RestoreJournal, RunStore, EventLog, Leases, Protocol):
    """Where everything is kept."""

    def go_on_behind(self, event: int) -> None:
        """Let no event get a number up to this one, which somebody remembers, although everything else may be lost."""


class World(Struct, frozen=True, kw_only=True):
    """Everything the daemon depends on. All of it is called from one thread, the store's."""

    config: Config
    host: str
    me: User
    #: Where what is kept lies, and the socket the daemon listens on.
    state_dir: str
    store: DaemonStore
    #: The jobs in that store, of our own user.
    jobs: Jobs
    around: Surroundings
    #: The sockets there are at this moment, each with its owner.
    sockets: Callable[[], Sequence[tuple[User, str]]]
    #: The directories new sockets appear in.
    socket_dirs: Callable[[], Sequence[str]]
    #: Where hooks leave their records, by agent.
    spools: Callable[[], Sequence[str]]
    #: Saves what was looked at, prunes what is old, and says what came of it.
    keep: Callable[[Sequence[Looked | Missed], datetime], list[SaveResult]]
    #: Lets go of some of the closed chats that were kept long enough, and says whether there are more of them.
    tidy_chats: Callable[[], bool]
    #: The words that restore one server in a process of its own, and what that finds in its environment.
    restore_words: Callable[[str], Sequence[str]]
    environ: Mapping[str, str]
    #: The same with the configuration read again. Raises what is wrong with it.
    reload: Callable[[], World]
    #: The same with the store opened again. Raises `StoreUnusable`, and then the one there was is still open.
    reopen: Callable[[], World]
    now: Callable[[], datetime]
    ticking: Callable[[], float]
    close: Callable[[], None]
