"""Of several users, one who cannot be looked at costs only their own servers."""

from __future__ import annotations

import os

import pytest

from perdure.errors import PerdureError
from perdure.host.files import Files
from perdure.model.config import Config
from perdure.model.snapshot import Miss, Missed
from perdure.model.user import User
from perdure.snapshots import look
from tests.builders import a_capture, a_server


def test_one_users_trouble_is_not_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(user: User, work: object) -> bytes:
        raise PerdureError(f"Looking at {user.name}'s panes failed.")

    monkeypatch.setattr(look, "run_as", fail)
    me = User("me", os.geteuid(), os.getegid(), "/nowhere")
    around = look.Surroundings(
        config=Config(),
        host="laptop",
        me=me,
        view_of=lambda user: Files(user.home, spool="/nowhere", query=lambda path, sql, parameters: None),
        earlier=lambda server: None,
    )
    theirs = a_capture(server=a_server(user="guest", uid=me.uid + 1))
    mine = a_capture(server=a_server(user="me", uid=me.uid))
    looked = [look.Looked(capture=each, scrollback=None) for each in (theirs, mine)]
    missed, kept = look._who(looked, around)
    assert isinstance(missed, Missed)
    assert (missed.server, missed.reason) == (theirs.server, Miss.INCOMPLETE)
    assert isinstance(kept, look.Looked)
    assert kept.capture.server == mine.server
