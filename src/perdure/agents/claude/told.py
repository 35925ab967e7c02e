"""What Claude Code says it is doing: its live registry follows all that happens; without an entry, its hooks do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from perdure.agents._json import text
from perdure.agents._records import moment
from perdure.agents._told import BUSY, IDLE, PERMISSION, QUESTION, SILENT, Sign, by_hooks, by_registry, common_sign
from perdure.agents.claude.home import read_registry, registry_path
from perdure.model.observation import Reading
from perdure.model.process import Process
from perdure.ports import HostView

#: `shell`: the turn is over, and a command of it runs on in the background.
_STATUS = {"idle": IDLE, "shell": IDLE, "busy": BUSY}
#: A list or panel that somebody has opened (`dialog open`) waits for nobody, and hides what it is doing.
_WAITING = {"permission prompt": PERMISSION, "input needed": QUESTION}


def told(agent: str, process: Process, host: HostView) -> list[Reading]:
    """Return what the registry says, else what the hooks do.

    Not both: an entry is of this moment, however old, and a hook may be followed by what no hook tells.
    """
    entry = read_registry(process, host)[0]
    if entry is None:
        return by_hooks(agent, [process], host, common_sign)
    sign, rule = _sign(entry)
    at = _dated(entry) or host.modified_at(registry_path(process, host)) or process.started_at
    return by_registry(sign, at, rule, complete=True)


def _sign(entry: Mapping[str, object]) -> tuple[Sign, str]:
    status, waiting = text(entry.get("status")) or "", text(entry.get("waitingFor")) or ""
    if text(entry.get("parkedJobId")):
        # The pane shows a background job since, and the entry is of what was there before.
        return SILENT, "parked"
    if status == "waiting":
        return _WAITING.get(waiting, SILENT), waiting or status
    return _STATUS.get(status, SILENT), status


def _dated(entry: Mapping[str, object]) -> datetime | None:
    return moment(entry.get("statusUpdatedAt")) or moment(entry.get("updatedAt"))
