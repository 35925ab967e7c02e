"""What a gateway may write down as having been said: what comes back as it was, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime

from perdure.errors import UsageError
from perdure.model.chat import Turn

#: Whether it was put right or left out, something else would stand there than was said.
_RAW = (bytes, bytearray, memoryview)


def checked(turns: Sequence[Turn]) -> Sequence[Turn]:
    """Return the turns. Raises `UsageError` for one that could not be read back as it is."""
    for turn in turns:
        role: object = turn.role
        if not isinstance(role, str):
            raise UsageError(f"The role of a turn is a text, and not {ascii(role)[:80]}.")
        in_a_zone(turn.at, "The time of a turn")
        if type(turn.content) is str and turn.tool_calls == turn.attachments == () and turn.extra == {}:
            # Nearly always.
            continue
        for name in ("content", "tool_calls", "attachments", "extra"):
            _refuse_lossy(getattr(turn, name), name)
    return turns


def in_a_zone(at: datetime, what: str) -> datetime:
    """Return a time. Raises `UsageError` for one without a zone, which is no moment."""
    if at.tzinfo is None:
        raise UsageError(f"{what} has to be a time with a zone, and {ascii(at)[:80]} has none.")
    return at


def _refuse_lossy(value: object, name: str) -> None:
    if value is None or type(value) is str or value == () or value == {}:
        # Nearly always, and every turn has several.
        return
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, Mapping):
            left += each.values()
        elif isinstance(each, list | tuple):
            left += each
        elif isinstance(each, _RAW) or (isinstance(each, float) and not math.isfinite(each)):
            kind = "bytes" if isinstance(each, _RAW) else f"the number {each}"
            raise UsageError(f"The {name} of a turn holds {kind}, which JSON cannot say.")
