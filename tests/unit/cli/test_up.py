"""What the daemon is told to watch."""

from __future__ import annotations

import os

import pytest

from perdure.cli.up import open_world, say_ready
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


def test_what_is_watched_is_counted_as_people_count(capsys: pytest.CaptureFixture[str]) -> None:
    say_ready(1, 1, 1, None, as_json=False)
    say_ready(2, 3, 0, None, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "Watching 1 pane of 1 server, 1 agent. Ctrl-C ends it.",
        "Watching 3 panes of 2 servers, 0 agents. Ctrl-C ends it.",
    ]
