"""Commands of the program itself, run for a route: what is done to a whole server is done in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from perdure.daemon.protocol import Failure, error_from
from perdure.errors import PerdureError
from perdure.host.run import Ran
from perdure.model.decoding import decoder_of
from perdure.model.secrets import redact_text

if TYPE_CHECKING:
    from perdure.api.world import ApiWorld

T = TypeVar("T")

#: Done, and done in part.
_DONE = (0, 4)


class _Refusal(Struct, frozen=True):
    error: dict[str, Any]


async def answered(world: ApiWorld, kind: type[T], *words: str) -> T:
    """Return what a command printed with `--json`. Raises the `PerdureError` it ended with."""
    ran = await world.command(*words)
    if ran.status in _DONE:
        try:
            return decoder_of(kind).decode(ran.out)
        except msgspec.DecodeError:
            pass  # partly done may also mean that it is an error that it tells of
    raise refusal_of(ran)


def refusal_of(ran: Ran) -> PerdureError:
    """Return why a command could not do what it was to do: its own words, or that it has none."""
    last = ran.out.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        told = decoder_of(_Refusal).decode(last).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        told = {}
    message = str(told.pop("message", "")) or redact_text(ran.err.strip())[-500:] or "It ended without a word."
    told.pop("code", None)
    return error_from(Failure(code="", message=message, data=told, exit_code=ran.status))
