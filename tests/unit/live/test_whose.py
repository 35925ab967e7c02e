"""Nobody but root sees what is another's."""

from __future__ import annotations

import pytest
from msgspec import structs

from perdure.live.whose import is_event_for, is_run_of
from perdure.model.event import Event, EventKind
from tests.builders import NOON, a_server
from tests.unit.live.events import a_run, an_event


@pytest.mark.parametrize(("uid", "is_shown"), [(1000, True), (0, True), (100, False), (10000, False), (-1, False)])
def test_a_run_and_its_events_are_shown_to_its_owner_and_to_root(uid: int, is_shown: bool) -> None:
    assert is_run_of(a_run(), uid) is is_shown
    assert is_event_for(an_event(1).event, uid, owner=1000) is is_shown


def test_a_socket_with_numbers_in_its_path_is_still_its_owners() -> None:
    server = a_server(uid=1000)
    sly = structs.replace(server, socket="/1001/1001")
    event = structs.replace(an_event(1).event, server=sly.key)
    assert is_event_for(event, 1000, owner=0)
    assert not is_event_for(event, 1001, owner=0)


def test_what_is_about_no_server_is_whose_store_it_is_in_but_a_daemon_is_everybodys() -> None:
    started = Event(kind=EventKind.DAEMON_STARTED, at=NOON)
    assert is_event_for(started, 1000, owner=0)
    for kind, run in ((EventKind.THOUGHT, "r1"), (EventKind.CHAT_SAID, None), (EventKind.JOB_ENDED, None)):
        unsaid = structs.replace(started, kind=kind, run=run)
        assert not is_event_for(unsaid, 1000, owner=0)
        assert not is_event_for(unsaid, -1, owner=1000)
        assert is_event_for(unsaid, 1000, owner=1000)
        assert is_event_for(unsaid, 0, owner=1000)
