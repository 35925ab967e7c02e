"""What opencode's plugin says it is doing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.agents._told import BUSY, IDLE, PERMISSION, QUESTION, SILENT, Sign

_SIGNS = {
    "message.updated": BUSY,
    "permission.asked": PERMISSION,
    "permission.replied": BUSY,
    "question.asked": QUESTION,
    "question.replied": BUSY,
    "question.rejected": BUSY,
}
_STATUS = {"busy": BUSY, "retry": BUSY, "idle": IDLE}


def sign(record: Mapping[str, Any]) -> Sign | None:
    """Return what a record means. The plugin leaves out what is only about a sub-agent."""
    event = str(record.get("hook_event_name"))
    return _STATUS.get(str(record.get("status")), SILENT) if event == "session.status" else _SIGNS.get(event)
