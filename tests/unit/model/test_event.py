"""Every kind of event is documented, with what is in it."""

from __future__ import annotations

from perdure.model.event import EventKind
from tests.documented import documented_events


def test_every_kind_of_event_is_documented_once() -> None:
    assert sorted(documented_events()) == sorted(EventKind)
