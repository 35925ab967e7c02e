"""What the daemon is told to watch."""

from __future__ import annotations

import os

from perdure.cli.up import open_world
from perdure.host.spool import spool_dir
from tests.conftest import PrivateHome


def test_places_that_are_not_there_yet_are_watched_too(private_home: PrivateHome) -> None:
    world = open_world(all_users=False)
    try:
        sockets = os.path.join(private_home.sockets, f"tmux-{os.geteuid()}")
        assert not os.path.exists(sockets)
        assert list(world.socket_dirs()) == [sockets]
        spool = spool_dir(private_home.state)
        assert list(world.spools()) == [spool]
        os.makedirs(os.path.join(spool, "some-agent"))
        assert list(world.spools()) == [spool, os.path.join(spool, "some-agent")]
    finally:
        world.close()
