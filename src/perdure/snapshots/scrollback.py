"""Which panes' scrollback is kept, and under which name. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from perdure.model.config import ScrollbackConfig
from perdure.model.snapshot import Capture, Snapshot
from perdure.model.topology import Pane, PaneDetails, Topology

_RELIABLE_FOR = timedelta(hours=1)


def wanted_panes(topology: Topology, config: ScrollbackConfig) -> list[str]:
    """Return the ids of the panes whose screen may be read: what is excluded is never even asked for."""
    if not config.enabled:
        return []
    quiet = {session.id for session in topology.sessions if session.name in config.exclude_sessions}
    hidden = {link.window for link in topology.links if link.session in quiet}
    return [
        pane.id for pane in topology.panes if pane.window not in hidden and pane.command not in config.exclude_programs
    ]


def unchanged_panes(capture: Capture, before: Snapshot | None) -> Mapping[str, PaneDetails]:
    """Return the panes that have shown nothing new since their scrollback was read, with what was known then.

    tmux goes through colours cell by cell: reading a screen is by far the dearest part of a save. It also notes,
    to the second, when anything in a window last printed. Within an hour, and unless the pane was moved, resized,
    cleared or started anew, that can be relied on.
    """
    if before is None or before.topology.process != capture.topology.process:
        return {}
    then = {pane.id: pane for pane in before.topology.panes}
    found = {}
    for pane in capture.topology.panes:
        known, now = before.details.panes.get(pane.id), capture.details.panes[pane.id]
        active_at = capture.details.window_activity.get(pane.window)
        if (
            known is not None
            and active_at is not None
            and (known.history_size, known.cursor, known.alternate) == (now.history_size, now.cursor, now.alternate)
            and _place(then.get(pane.id)) == _place(pane)
            and _is_quiet(known.scrollback_at, active_at, capture.taken_at)
        ):
            found[pane.id] = known
    return found


def _place(pane: Pane | None) -> tuple[object, ...]:
    return (pane.window, pane.width, pane.height, pane.pid, pane.dead) if pane else ()


def _is_quiet(read_at: datetime | None, active_at: datetime, now: datetime) -> bool:
    """Whether nothing was printed since `read_at`; also false when the clock was set, and after an hour."""
    if read_at is None or not timedelta() <= now - read_at <= _RELIABLE_FOR:
        return False
    # tmux's second is cut off: what was printed in the very second of the reading may have come after it.
    return active_at < read_at.replace(microsecond=0)


def tidy(text: bytes) -> bytes:
    """Return a screen without the empty lines below its last one."""
    return text.rstrip(b"\n") + b"\n" if text.strip(b"\n") else b""
