"""When a pane's scrollback need not be read again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
import pytest

from perdure.model.snapshot import Capture, Snapshot
from perdure.model.topology import PaneDetails
from perdure.snapshots.scrollback import unchanged_panes
from tests.builders import a_capture, a_pane, a_snapshot, at


def captured(seconds: float, *, active: float, known: PaneDetails | None = None, **pane: Any) -> Capture:
    """A capture of one pane whose window last printed at `active`."""
    capture = a_capture([msgspec.structs.replace(a_pane(0), **pane)], seconds=seconds)
    panes = {"%0": known or PaneDetails(history_size=100)}
    details = msgspec.structs.replace(capture.details, panes=panes, window_activity={"@0": whole(at(active))})
    return msgspec.structs.replace(capture, details=details)


def whole(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


def read_before(seconds: float = 0) -> Snapshot:
    details = PaneDetails(history_size=100, scrollback="digest", scrollback_at=at(seconds))
    return a_snapshot(captured(seconds, active=-100, known=details))


def test_a_pane_that_printed_nothing_since_is_unchanged() -> None:
    found = unchanged_panes(captured(60, active=-5), read_before())
    assert found["%0"].scrollback == "digest"
    assert found["%0"].scrollback_at == at(0)


def test_an_empty_screen_stays_known_as_empty() -> None:
    empty = PaneDetails(history_size=100, scrollback=None, scrollback_at=at(0))
    before = a_snapshot(captured(0, active=-100, known=empty))
    assert unchanged_panes(captured(60, active=-5), before)["%0"].scrollback is None


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(captured(60, active=30), id="printed since"),
        pytest.param(captured(60, active=0), id="printed in the second of the reading"),
        pytest.param(captured(60, active=-5, width=90), id="resized"),
        pytest.param(captured(60, active=-5, pid=9), id="started anew"),
        pytest.param(captured(60, active=-5, dead=True), id="ended"),
        pytest.param(captured(60, active=-5, known=PaneDetails(history_size=0)), id="cleared"),
        pytest.param(captured(60, active=-5, known=PaneDetails(history_size=100, cursor=(0, 9))), id="reset"),
        pytest.param(captured(7200, active=-5), id="read long ago"),
        pytest.param(captured(-60, active=-90), id="the clock was set back"),
    ],
)
def test_it_is_read_again(now: Capture) -> None:
    assert unchanged_panes(now, read_before()) == {}


def test_nothing_is_known_of_another_server_process() -> None:
    before = read_before()
    process = msgspec.structs.replace(before.topology.process, pid=1)
    before = msgspec.structs.replace(before, topology=msgspec.structs.replace(before.topology, process=process))
    assert unchanged_panes(captured(60, active=-5), before) == {}


def without_time(before: Snapshot) -> Snapshot:
    panes = {"%0": PaneDetails(history_size=100, scrollback="digest")}
    return msgspec.structs.replace(before, details=msgspec.structs.replace(before.details, panes=panes))


@pytest.mark.parametrize("change", [lambda before: None, without_time])
def test_nothing_is_known_without_an_earlier_reading(change: Callable[[Snapshot], Snapshot | None]) -> None:
    assert unchanged_panes(captured(60, active=-5), change(read_before())) == {}
