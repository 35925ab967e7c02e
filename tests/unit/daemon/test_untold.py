"""Restores that nobody told of."""

from __future__ import annotations

from datetime import datetime

from perdure.daemon.untold import begun, untold
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.plan import Restore
from tests.builders import a_server, at

SERVER = a_server()


def stored(*events: Event) -> list[StoredEvent]:
    return [StoredEvent(seq=seq, event=event) for seq, event in enumerate(events, 1)]


def died(seconds: float, *, restoring: bool = True) -> Event:
    return Event(kind=EventKind.SERVER_DIED, at=at(seconds), server=SERVER.key, data={"restoring": restoring})


def restored(seconds: float) -> Event:
    return Event(kind=EventKind.RESTORED, at=at(seconds), server=SERVER.key)


def a_restore(began: float, ended: datetime | None = None) -> Restore:
    return Restore(id=f"r{began}", snapshot="s", server=SERVER, began_at=at(began), ended_at=ended)


def test_only_what_was_to_be_brought_back_and_not_told_of_is_left() -> None:
    assert begun(stored(died(0))) == {SERVER.key: died(0)}
    assert begun(stored(died(0), restored(5))) == {}
    assert begun(stored(died(0), died(9, restoring=False))) == {}
    assert begun(stored(died(0), restored(5), died(9))) == {SERVER.key: died(9)}
    # What somebody asked for over HTTP may have been a part of it, or refused.
    asked = Event(kind=EventKind.RESTORED, at=at(5), server=SERVER.key, data={"restore": "0a1b2c"})
    assert begun(stored(died(0), asked)) == {SERVER.key: died(0)}


def test_it_is_told_of_once_it_has_ended() -> None:
    deaths = begun(stored(died(0)))
    assert untold(deaths, []) == []
    assert untold(deaths, [a_restore(1)]) == []
    (event,) = untold(deaths, [a_restore(1, at(8)), a_restore(-60, at(-50))])
    assert (event.kind, event.at, event.server) == (EventKind.RESTORED, at(8), SERVER.key)
    assert (event.data["socket"], event.data["exit_code"]) == (SERVER.socket, None)


def test_one_of_several_parts_is_told_of_once_all_of_them_have_ended() -> None:
    deaths = begun(stored(died(0)))
    assert untold(deaths, [a_restore(9), a_restore(1, at(8))]) == []
    (event,) = untold(deaths, [a_restore(9, at(12)), a_restore(1, at(8))])
    assert event.at == at(12)


def test_what_somebody_asked_for_later_is_not_told_of() -> None:
    deaths = begun(stored(died(0)))
    assert untold(deaths, [a_restore(3600, at(3610))]) == []
    (event,) = untold(deaths, [a_restore(3600, at(3610)), a_restore(1, at(8))])
    assert event.at == at(8)
