"""What is told of a restore that was run aside. Pure."""

from __future__ import annotations

import msgspec

from perdure.host.run import Ran
from perdure.model.decoding import decoder_of
from perdure.model.plan import Result
from perdure.model.secrets import redact_text
from perdure.restore.shown import Restored

#: So many panes are named that did not come back, and so many characters told at most.
_NAMED, _LONGEST = 3, 500


def message_of(ran: Ran) -> str:
    """Return in words what is wrong with what a restore came to: what it said itself, and which panes have failed."""
    return redact_text("\n".join(filter(None, (ran.err.strip(), _failures(ran.out)))))[-_LONGEST:]


def _failures(out: bytes) -> str:
    try:
        restored = decoder_of(Restored).decode(out)
    except msgspec.MsgspecError:
        return ""
    failed = [f"{row.target}: {row.why}" for row in restored.steps if row.result == Result.FAILED]
    more = [f"and {len(failed) - _NAMED} more"] if len(failed) > _NAMED else []
    return "; ".join(failed[:_NAMED] + more)
