"""What the HTTP interface is handed: the same ground the commands stand on."""

from __future__ import annotations

import os
import sys

from perdure.api.world import Ground
from perdure.cli._setup import Setup
from perdure.host import places
from perdure.host.clock import now
from perdure.jobs.service import Jobs
from perdure.store import open_store
from perdure.store.store import Store


def ground_of(setup: Setup) -> Ground:
    """Return what the routes stand on; the store is opened when they first need it."""

    def opened() -> Store:
        url = places.store_url(os.environ, setup.state_dir)
        return open_store(url, state_dir=setup.state_dir, threads=True)

    def jobs(store: Store) -> Jobs:
        return Jobs(store.jobs, os.path.join(setup.state_dir, "jobs"), setup.config, now)

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
