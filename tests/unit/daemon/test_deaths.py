"""Servers that are to be brought back: what is gone on with, and when that ends."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec import structs

from perdure.daemon.deaths import MOST_DAEMONS, MOST_UNSEEN, Deaths
from perdure.daemon.keeping import Keeping
from perdure.daemon.known_servers import Known
from perdure.daemon.stimuli import Gone
from perdure.daemon.untold import Promise
from perdure.host.demise import Vigil
from perdure.host.exits import Exit
from perdure.live.supervise import Supervisor
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.plan import Restore
from perdure.model.run import Program
from perdure.model.server import ServerProcess
from perdure.model.user import User
from tests.builders import a_capture, a_pane, a_server, a_snapshot, an_identity, at
from tests.unit.live.events import a_run

SERVER = a_server()
_A_MINUTE_LATER = at(60)
DEV = User("dev", 1000, 1000, "/home/dev")


class Store:
    """As much of a store as tells of deaths and restores."""

    def __init__(self, events: Sequence[Event], restores: Sequence[Restore]) -> None:
        self.events = [StoredEvent(seq=seq, event=event) for seq, event in enumerate(events, 1)]
        self.restores = tuple(restores)

    def read_events(self, *, limit: int, kinds: frozenset[EventKind]) -> list[StoredEvent]:
        """Return what was told."""
        return [each for each in self.events if each.event.kind in kinds][:limit]

    def list_restores(self) -> tuple[Restore, ...]:
        """Return them, the latest first."""
        return self.restores


def deaths_after(
    *events: Event,
    restores: Sequence[Restore] = (),
    now: datetime = _A_MINUTE_LATER,
    restore: bool = True,
    me: User = DEV,
) -> Deaths:
    config = SimpleNamespace(live=SimpleNamespace(restore=restore))
    store = Store(events, restores)
    world = SimpleNamespace(config=config, me=me, store=store, now=lambda: now, ticking=lambda: 100.0)
    return Deaths(cast(Keeping, SimpleNamespace(world=world)), Supervisor())


def died(seconds: float = 0, *, restoring: bool = True, server: str = SERVER.key) -> Event:
    data = {"socket": SERVER.socket, "pid": 300, "agents": 5, "restoring": restoring}
    return Event(kind=EventKind.SERVER_DIED, at=at(seconds), server=server, data=data)


def restored(seconds: float, exit_code: int | None = 0) -> Event:
    data = {"socket": SERVER.socket, "exit_code": exit_code, "message": ""}
    return Event(kind=EventKind.RESTORED, at=at(seconds), server=SERVER.key, data=data)


def started(seconds: float, *restoring: str) -> Event:
    return Event(kind=EventKind.DAEMON_STARTED, at=at(seconds), data={"restoring": list(restoring)})


def a_restore(began: float, ended: float | None = None) -> Restore:
    at_end = None if ended is None else at(ended)
    return Restore(id=f"r{began}", snapshot="s", server=SERVER, began_at=at(began), ended_at=at_end)


def told(deaths: Deaths, kind: EventKind = EventKind.RESTORED) -> list[Event]:
    return [event for event in deaths.supervisor.batch().events if event.kind is kind]


def begun(deaths: Deaths) -> list[str]:
    keys = deaths.begin([a_run("r1")])
    deaths.tell_restored()
    return keys


# -- what a daemon before has promised ---------------------------------------------------------------------------------


@pytest.mark.parametrize("restores", [[], [a_restore(1)], [a_restore(9), a_restore(1, 8)], [a_restore(-9, -1)]])
def test_what_a_daemon_before_was_to_bring_back_is_gone_on_with(restores: list[Restore]) -> None:
    deaths = deaths_after(died(), restores=restores)
    assert begun(deaths) == [SERVER.key]
    assert deaths.to_restore == [SERVER]
    assert deaths.promised(SERVER) == Promise(server=SERVER, died=died())
    assert told(deaths) == []


def test_but_not_what_was_told_of_or_has_come_back_or_is_anothers() -> None:
    elsewhere = a_server(host="tower").key
    for deaths in (
        deaths_after(died(), restored(5, 4)),
        deaths_after(died(), died(5, restoring=False)),
        deaths_after(died(), restores=[a_restore(1, 8)]),
        deaths_after(died(), restores=[a_restore(3600, 3610)], now=at(4000)),
        deaths_after(died(server=elsewhere)),
        deaths_after(died(), restore=False),
        deaths_after(died(), me=User("guest", 1001, 1001, "/home/dev")),
    ):
        assert begun(deaths) == []
        assert deaths.to_restore == []
        assert deaths.promised(SERVER) is None


def test_what_has_come_back_while_it_waited_for_its_turn_is_told_of_and_left_alone() -> None:
    deaths = deaths_after(died(), restores=[a_restore(1)])
    begun(deaths)
    store = cast(Store, deaths._keeping.world.store)
    store.restores = (a_restore(1, 70),)
    assert deaths.promised(SERVER) is None
    (event,) = told(deaths)
    assert (event.at, event.data["exit_code"]) == (at(70), None)


def test_it_is_given_up_when_so_many_daemons_have_tried() -> None:
    tries = [started(each, SERVER.key) for each in range(MOST_DAEMONS)]
    others = [started(each, "another") for each in range(9)]
    # What went before its last death does not count.
    assert begun(deaths_after(*tries, died(), *tries[1:], *others)) == [SERVER.key]
    # It may be what makes both fall.
    falling = [each for one in tries for each in (died(one.at.second), one)]
    for deaths in (deaths_after(died(), *tries), deaths_after(*falling)):
        assert begun(deaths) == []
        assert deaths.to_restore == []
        (event,) = told(deaths)
        assert event.data["exit_code"] is None
        assert "perdure restore" in str(event.data["message"])


def test_what_was_promised_long_ago_is_given_up() -> None:
    deaths = deaths_after(died(), now=at(0) + timedelta(hours=49))
    assert begun(deaths) == []
    assert [event.data["socket"] for event in told(deaths)] == [SERVER.socket]


# -- what falls while it is brought back -------------------------------------------------------------------------------


def half_made(pid: int, *, is_peopled: bool = True) -> Known:
    program = Program(pid=pid, start_ticks=7)
    process = ServerProcess(pid=pid, started_at=at(1), version="3.4")
    vigil = Vigil(pid=pid, start_ticks=7, boot_id="")
    return Known(server=SERVER, owner=DEV, process=process, program=program, vigil=vigil, is_peopled=is_peopled)


def fall(deaths: Deaths, known: Known, *, how: Exit) -> Event:
    assert known.program is not None
    deaths.died(known, at(90), Gone(known.program, how, 100.0))
    return told(deaths, EventKind.SERVER_DIED)[-1]


KILLED, IN_GOOD_ORDER = Exit(signal=9), Exit(status=0)


def test_what_falls_while_it_is_brought_back_counts_what_was_to_be_in_it_and_comes_back_a_few_times() -> None:
    deaths = deaths_after(died())
    begun(deaths)
    for number in range(MOST_UNSEEN):
        event = fall(deaths, half_made(400 + number), how=KILLED)
        assert (event.data["agents"], event.data["restoring"]) == (5, True)
        assert deaths.promised(SERVER) == Promise(server=SERVER, died=event)
    assert fall(deaths, half_made(500), how=KILLED).data["restoring"] is False
    assert deaths.promised(SERVER) is None


def test_what_its_owner_ends_while_it_is_brought_back_is_left() -> None:
    deaths = deaths_after(died())
    begun(deaths)
    assert fall(deaths, half_made(400), how=IN_GOOD_ORDER).data["restoring"] is False
    assert deaths.promised(SERVER) is None


def test_what_ends_with_the_session_a_restore_spoke_through_was_ended_by_nobody() -> None:
    deaths = deaths_after(died())
    begun(deaths)
    assert fall(deaths, half_made(400, is_peopled=False), how=IN_GOOD_ORDER).data["restoring"] is True
    # Elsewhere it is as good as any other end.
    deaths = deaths_after()
    begun(deaths)
    assert fall(deaths, half_made(400, is_peopled=False), how=IN_GOOD_ORDER).data["restoring"] is False


def test_what_falls_before_it_is_looked_at_again_counts_what_was_brought_to_it() -> None:
    known = half_made(400)
    snapshot = a_snapshot(a_capture([a_pane(identity=an_identity())]))
    made = structs.replace(a_restore(1, 5), process=known.process, composed=snapshot)
    for looked_at, agents in ((99.0, 1), (101.0, 0)):
        deaths = deaths_after()
        store = cast(Store, deaths._keeping.world.store)
        store.restores = (made,)
        deaths.restored(Promise(server=SERVER, died=died()), at(0), restored(5))
        known = half_made(400)
        known.looked_at = looked_at
        event = fall(deaths, known, how=KILLED)
        assert (event.data["agents"], event.data["restoring"]) == (agents, bool(agents))


def test_a_restore_is_told_of_unless_its_server_is_brought_back_once_more() -> None:
    deaths = deaths_after(died())
    begun(deaths)
    first = deaths.promised(SERVER)
    assert first is not None
    fall(deaths, half_made(400), how=KILLED)
    deaths.restored(first, at(61), restored(95, 4))
    assert told(deaths) == []
    second = deaths.promised(SERVER)
    assert second is not None
    deaths.restored(second, at(96), restored(99))
    assert told(deaths) == [restored(99)]
    assert deaths.promised(SERVER) is None
