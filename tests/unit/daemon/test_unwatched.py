"""Servers that were watched, and what is known of those that are gone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec import structs

from perdure.daemon.unwatched import Watched, missed
from perdure.host.demise import DemiseKind, while_unwatched
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.run import Program, Run
from perdure.model.server import ServerProcess
from tests.builders import a_server, at
from tests.unit.live.events import a_run

PROCESS = ServerProcess(pid=300, started_at=at(0), version="3.4")


def runs() -> list[Run]:
    here = structs.replace(a_run("r1"), server=a_server(), process=PROCESS, program=None)
    return [here, structs.replace(here, id="r2", program=Program(pid=5, start_ticks=6))]


def test_those_whose_runs_are_not_over() -> None:
    unknown = structs.replace(runs()[0], id="r3", server=a_server("other"), process=None)
    assert missed([*runs(), unknown], []) == [Watched(server=a_server(), process=PROCESS, agents=1)]


@pytest.mark.parametrize(("pid", "seconds", "is_told"), [(300, 9, True), (301, 9, False), (300, -9, False)])
def test_but_not_those_of_whose_death_is_told(pid: int, seconds: float, is_told: bool) -> None:
    died = Event(kind=EventKind.SERVER_DIED, at=at(seconds), server=a_server().key, data={"pid": pid})
    assert (missed(runs(), [StoredEvent(seq=1, event=died)]) == []) is is_told


def test_what_was_last_seen_before_the_machine_was_started_ended_with_it() -> None:
    assert while_unwatched(at(0), at(0) + timedelta(seconds=1)).kind is DemiseKind.REBOOT
    assert while_unwatched(at(0), at(0)).kind is DemiseKind.UNKNOWN
