"""What Hermes' hooks say it is doing. That a turn begins they tell only of the first one in a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.agents._json import mapping
from perdure.agents._told import BUSY, IDLE, PERMISSION, SILENT, Sign

_SIGNS = {
    "on_session_start": BUSY,
    "on_session_reset": IDLE,
    # It comes after every turn, also after one that was interrupted.
    "on_session_end": IDLE,
    "on_session_finalize": SILENT,
}


def sign(record: Mapping[str, Any]) -> Sign | None:
    """Return what a record means."""
    event, extra = str(record.get("hook_event_name")), mapping(record.get("extra"))
    if event == "pre_approval_request":
        # First a model may be asked, and nobody else if that agrees.
        return BUSY if extra.get("surface") == "smart" else PERMISSION
    return None if extra.get("platform") == "subagent" else _SIGNS.get(event)
