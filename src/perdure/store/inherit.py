"""Scrollback that was not read this time: what was known of the same panes still is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

import msgspec
from msgspec import Struct

from perdure.model.decoding import decoder_of
from perdure.model.server import ServerProcess
from perdure.model.snapshot import Capture
from perdure.model.topology import Topology
from perdure.store.driver import Row
from perdure.store.rows import unpacked


class _Pane(Struct):
    scrollback: str | None = None
    scrollback_at: datetime | None = None


class _Details(Struct):
    panes: dict[str, _Pane]


class _Place(Struct):
    id: str
    pid: int


class _Topology(Struct):
    process: ServerProcess
    panes: tuple[_Place, ...]


#: A digest, and when that text was read.
Known = tuple[str, datetime | None]


def known_scrollback(row: Row | None, topology: Topology) -> Mapping[str, Known]:
    """Return by pane id the scrollback of a stored snapshot, as far as the same server has the same pane in it.

    Only these fields are read: the rest of a snapshot would take ten times as long.
    """
    if row is None:
        return {}
    *_, details, body = row
    with suppress(ValueError, msgspec.MsgspecError):
        before = decoder_of(_Topology).decode(unpacked(body))
        if before.process == topology.process:
            same = {(pane.id, pane.pid) for pane in before.panes} & {(pane.id, pane.pid) for pane in topology.panes}
            panes = decoder_of(_Details).decode(unpacked(details)).panes
            known = ((id, panes[id]) for id, _ in same if id in panes)
            return {id: (pane.scrollback, pane.scrollback_at) for id, pane in known if pane.scrollback}
    return {}


def with_scrollback(capture: Capture, known: Mapping[str, Known]) -> Capture:
    """Return the capture with its panes referring to the scrollback that is known of them."""
    if not known:
        return capture
    panes = {
        id: msgspec.structs.replace(pane, scrollback=known[id][0], scrollback_at=known[id][1]) if id in known else pane
        for id, pane in capture.details.panes.items()
    }
    details = msgspec.structs.replace(capture.details, panes=panes)
    return msgspec.structs.replace(capture, details=details)
