"""What Cline says it is doing: the status in the file of the session that the log says it is in."""

from __future__ import annotations

from collections.abc import Mapping
from os.path import join

from perdure.agents._told import BUSY, IDLE, SILENT, by_registry
from perdure.agents.cline import sessions
from perdure.model.observation import Reading
from perdure.model.process import Process
from perdure.ports import HostView

#: `pending` is open too, but does not say what for.
_SIGNS = {"running": BUSY, "idle": IDLE, "pending": SILENT}


def told(process: Process, options: Mapping[str, str], host: HostView) -> list[Reading]:
    """Return the status of its session. `options` are those of its command line."""
    path, session = _session(process, options, host)
    at = host.modified_at(path) if path else None
    status = session.status if session else None
    if at is None or status not in _SIGNS or at < process.started_at:
        return []
    return by_registry(_SIGNS[status], at, status)


def telling(process: Process, options: Mapping[str, str], host: HostView) -> list[str]:
    """Return the file of its session, and the log that tells of the next one."""
    path, _ = _session(process, options, host)
    return [*([path] if path else ()), sessions.log_path(process, sessions.data_home(process, options, host), host)]


def _session(
    process: Process, options: Mapping[str, str], host: HostView
) -> tuple[str | None, sessions.Session | None]:
    entered = sessions.entered(process, sessions.data_home(process, options, host), host)
    if entered is None or entered.stopped or "/" in entered.session:
        return None, None
    home = sessions.sessions_home(process, options, host)
    return join(home, entered.session, f"{entered.session}.json"), sessions.find(home, entered.session, host)
