"""What is there only in passing, and must not be kept. Pure."""

from __future__ import annotations

from msgspec import structs

from perdure.model.snapshot import Capture
from perdure.tmux.names import TEMPORARY


def without_temporary(capture: Capture) -> Capture:
    """Return a capture without the sessions a restore speaks through: kept, they would be brought back one day."""
    topology = capture.topology
    passing = {session.id for session in topology.sessions if session.name.startswith(TEMPORARY)}
    if not passing:
        return capture
    links = tuple(link for link in topology.links if link.session not in passing)
    windows = {link.window for link in links}
    panes = tuple(pane for pane in topology.panes if pane.window in windows)
    return structs.replace(
        capture,
        topology=structs.replace(
            topology,
            sessions=tuple(session for session in topology.sessions if session.id not in passing),
            windows=tuple(window for window in topology.windows if window.id in windows),
            links=links,
            panes=panes,
        ),
        details=structs.replace(
            capture.details,
            sessions={id: each for id, each in capture.details.sessions.items() if id not in passing},
            window_flags={id: each for id, each in capture.details.window_flags.items() if id in windows},
            window_activity={id: each for id, each in capture.details.window_activity.items() if id in windows},
            panes={pane.id: capture.details.panes[pane.id] for pane in panes if pane.id in capture.details.panes},
        ),
    )
