"""What the HTTP interface is handed: the same ground the commands stand on."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from perdure.api.binding import Listening
from perdure.cli._setup import Setup
from perdure.daemon.answers import Answers
from perdure.daemon.daemon import Daemon
from perdure.errors import NotFound
from perdure.host import places
from perdure.host.clock import now
from perdure.jobs.service import Jobs
from perdure.model.config import ApiConfig, Config
from perdure.model.user import User
from perdure.store import open_store
from perdure.store.store import Store

if TYPE_CHECKING:
    from perdure.api.world import ApiWorld, Ground


class Served:
    """The HTTP interface of a daemon that is about to begin: it listens, and nobody is answered yet."""

    def __init__(self, setup: Setup, config: ApiConfig, listening: Listening) -> None:
        self._setup = setup
        self._config = config
        self._listening = listening
        self._world: ApiWorld | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return self._listening.base if self._listening.path is None else f"unix:{self._listening.path}"

    @property
    def is_for_browsers(self) -> bool:
        """Whether a browser gets to it."""
        return self._listening.path is None

    def link(self) -> str | None:
        """Return an address that logs us in, once; None where no browser gets to."""
        if self._world is None or not self.is_for_browsers:
            return None
        return self._world.keys.link(self._setup.me.uid, self._setup.me.name)

    async def run(self, daemon: Daemon, answers: Answers) -> None:
        """Answer until cancelled."""
        # Heavy, and of no use to any other command.
        from perdure.api.serve import serve
        from perdure.api.world import ApiWorld

        self._world = world = ApiWorld(daemon, answers, ground_of(self._setup))
        world.keys.vault.main()
        nobody, answers.log_in = answers.log_in, self._log_in
        try:
            await serve(self._listening, world, self._config)
        finally:
            answers.log_in = nobody

    def close(self) -> None:
        """Listen no longer."""
        self._listening.close()

    def _log_in(self, user: User) -> str:
        if self._world is None or not self.is_for_browsers:
            raise NotFound(f"No browser gets to {self.url}; a program does, with a token.")
        return self._world.keys.link(user.uid, user.name)


def ground_of(setup: Setup) -> Ground:
    """Return what the routes stand on; the store is opened when they first need it."""
    from perdure.api.world import Ground

    def opened() -> Store:
        url = places.store_url(os.environ, setup.state_dir)
        return open_store(url, state_dir=setup.state_dir, threads=True)

    def jobs(store: Store, config: Config) -> Jobs:
        return Jobs(store.jobs, os.path.join(setup.state_dir, "jobs"), config, now)

    return Ground(
        me=setup.me,
        state_dir=setup.state_dir,
        program=(sys.executable, "-m", "perdure"),
        environ=dict(os.environ),
        open_store=opened,
        jobs=jobs,
        user_of=setup.user_of,
        environ_of=setup.environ_of,
        now=now,
    )
