"""A path that is no socket is never taken for one: tmux would delete what is there, and put its own in its place."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.acceptance.kit import sentence
from tests.conftest import PrivateHome
from tests.integration.api_here import api_here
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

KEPT = "the only copy of somebody's thesis\n"


@pytest.fixture
def thesis(private_home: PrivateHome) -> Path:
    file = Path(private_home.sockets, "thesis.txt")
    file.write_text(KEPT, encoding="utf-8")
    return file


def named(thesis: Path, what: str) -> Path:
    """What somebody gives for a socket, by mistake."""
    place = thesis.with_name(what)
    if what == "link":
        place.symlink_to(thesis)
    elif what == "nowhere":
        place.symlink_to(thesis.with_name("not there"))
    elif what == "directory":
        place.mkdir()
    elif what == "locked":
        # Where tmux has its lock while it starts.
        os.link(thesis, f"{place}.lock")
    return thesis if what == "file" else place


@pytest.mark.parametrize("what", ["file", "link", "nowhere", "directory", "locked"])
def test_what_is_no_socket_stays_as_it_is(perdure: Perdure, thesis: Path, what: str) -> None:
    place = named(thesis, what)
    before = sorted(os.scandir(thesis.parent), key=lambda each: each.name)
    ran = perdure("new", "--socket", str(place))
    assert ran.code == 2
    assert str(place) in sentence(ran)
    after = sorted(os.scandir(thesis.parent), key=lambda each: each.name)
    assert [(each.name, each.inode()) for each in after] == [(each.name, each.inode()) for each in before]
    assert thesis.read_text(encoding="utf-8") == KEPT


def test_over_http_too(thesis: Path, private_home: PrivateHome) -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            asked = {"socket": str(thesis), "cwd": private_home.home}
            refused = await client.post("/api/runs", json=asked)
            assert (refused.status_code, refused.json()["code"]) == (400, "USAGE_ERROR")
            assert str(thesis) in refused.json()["message"]

    asyncio.run(go())
    assert thesis.read_text(encoding="utf-8") == KEPT


def test_a_restore_does_not_delete_what_has_taken_the_place_of_a_socket(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")
    assert perdure("save").code == 0
    tmux.kill()
    place = Path(tmux.socket)
    place.unlink(missing_ok=True)
    place.write_text(KEPT, encoding="utf-8")
    ran = perdure("restore", "--socket", tmux.socket)
    assert ran.code != 0
    assert place.read_text(encoding="utf-8") == KEPT
    place.unlink()


def test_a_socket_that_is_left_of_a_crash_is_one(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")
    tmux.kill9()
    Path(f"{tmux.socket}.lock").touch()
    assert perdure("new", "--socket", tmux.socket).code == 0
    assert tmux.alive
