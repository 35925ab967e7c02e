"""What gemini's hooks say it is doing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.agents._told import BUSY, IDLE, Sign, common_sign

_TURN = {"BeforeAgent": BUSY, "AfterAgent": IDLE}


def sign(record: Mapping[str, Any]) -> Sign | None:
    """Return what a record means: a turn's beginning and end have names of their own."""
    return _TURN.get(str(record.get("hook_event_name"))) or common_sign(record)
