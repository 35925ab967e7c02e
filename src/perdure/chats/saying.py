"""What a gateway may write down as having been said: what comes back as it was, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import MAXYEAR, MINYEAR, UTC, datetime

from perdure.errors import UsageError
from perdure.model.chat import Source, Turn

#: How many lists and mappings may stand within each other. Whoever goes through them later, here or elsewhere, must not
#: run out of room: Python is done after some 900.
LEVELS = 100
#: No database counts further.
MOST = (1 << 63) - 1

_RAW = (bytes, bytearray, memoryview)
_TEXTS = ("tool_name", "tool_call_id", "model")


def checked(turns: Sequence[Turn]) -> Sequence[Turn]:
    """Return the turns. Raises `UsageError` for one that could not be read back as it is."""
    for turn in turns:
        given: object = turn
        if not isinstance(given, Turn):
            raise UsageError(f"What was said is told as a Turn, and not as {_short(turn)}.")
        role: object = turn.role
        if not isinstance(role, str):
            raise _wrong("role", "a text", role)
        if type(turn.at) is not datetime or turn.at.tzinfo is not UTC:
            in_a_zone(turn.at, "The time of a turn")
        if (
            turn.tokens is None
            and turn.model is turn.tool_name is turn.tool_call_id is None
            and turn.hidden is False
            and type(turn.content) is str
            and turn.tool_calls == turn.attachments == ()
            and turn.extra == {}
        ):
            # Nearly always.
            continue
        _refuse_wrong_kinds(turn)
        for name in ("content", "tool_calls", "attachments", "extra"):
            _refuse_unsayable(getattr(turn, name), name)
    return turns


def several(turns: Sequence[Turn]) -> Sequence[Turn]:
    """Return checked turns that are handed in together. Raises `UsageError` for what can only be gone through once."""
    value: object = turns
    if not isinstance(value, Sequence):
        raise UsageError(f"What was said is told as several turns, and not as {_short(turns)}.")
    return checked(turns)


def a_source(value: object) -> Source:
    """Return where a message comes from. Raises `UsageError` for anything else: nobody may be taken for somebody."""
    if not isinstance(value, Source):
        raise UsageError(f"Where a message comes from is told by a Source, and not by {_short(value)}.")
    return value


def text_of(value: object, what: str) -> str:
    """Return a text. Raises `UsageError` for anything else."""
    if not isinstance(value, str):
        raise UsageError(f"{what} has to be a text, and not {_short(value)}.")
    return value


def in_a_zone(at: datetime, what: str) -> datetime:
    """Return a time. Raises `UsageError` for what is none, and for one without a zone, which is no moment."""
    value: object = at
    if not isinstance(value, datetime):
        raise UsageError(f"{what} has to be a time with a zone, and not {_short(at)}.")
    if (offset := at.utcoffset()) is None:
        raise UsageError(f"{what} has to be a time with a zone, and {_short(at)} has none.")
    if offset.seconds % 60 or offset.microseconds:
        raise UsageError(f"{what} is {_short(at)}: JSON knows zones of whole minutes only.")
    if not MINYEAR < at.year < MAXYEAR:
        try:
            at.astimezone(UTC)
        except OverflowError:
            raise UsageError(f"{what} is {_short(at)}, which is out of all time in UTC.") from None
    return at


def whole(value: object, what: str) -> int:
    """Return a whole number. Raises `UsageError` for anything else."""
    if type(value) is not int:
        raise UsageError(f"{what} has to be a whole number, and not {_short(value)}.")
    return value


def _refuse_wrong_kinds(turn: Turn) -> None:
    for name in _TEXTS:
        value: object = getattr(turn, name)
        if value is not None and not isinstance(value, str):
            raise _wrong(name, "a text or None", value)
    tokens: object = turn.tokens
    if tokens is not None and type(tokens) is not int:
        raise _wrong("tokens", "a whole number or None", tokens)
    hidden: object = turn.hidden
    if not isinstance(hidden, bool):
        raise _wrong("hidden", "True or False", hidden)
    for name in ("tool_calls", "attachments"):
        several: object = getattr(turn, name)
        if not isinstance(several, tuple | list):
            raise _wrong(name, "a tuple", several)
    mappings: tuple[object, ...] = tuple(turn.attachments)
    if not all(isinstance(each, Mapping) for each in mappings):
        raise _wrong("attachments", "a tuple of mappings", mappings)
    extra: object = turn.extra
    if type(extra) is not dict and not isinstance(extra, Mapping):
        raise _wrong("extra", "a mapping", extra)


def _refuse_unsayable(value: object, name: str) -> None:
    if type(value) is str or value is None or (not value and isinstance(value, tuple | dict)):
        # Nearly always, and every turn has several.
        return
    # The last is gone into first, and whatever holds itself is soon too deep. Nothing here calls itself.
    left = [(value, 0)]
    while left:
        each, level = left.pop()
        inner: Sequence[object]
        if each is None or isinstance(each, str | int):
            continue
        if isinstance(each, dict) or isinstance(each, Mapping):  # noqa: SIM101 -- the first is quick, and nearly always
            if odd := [key for key in each if not isinstance(key, str)]:
                raise _unsayable(name, f"a mapping with {_short(odd[0])} as a name")
            inner = list(each.values())
        elif isinstance(each, list | tuple):
            inner = each
        elif isinstance(each, float) and math.isfinite(each):
            continue
        elif isinstance(each, float):
            raise _unsayable(name, f"the number {each}")
        else:
            raise _unsayable(name, "bytes" if isinstance(each, _RAW) else f"a {type(each).__name__}")
        if level == LEVELS:
            raise UsageError(
                f"The {name} of a turn holds more than {LEVELS} lists or mappings within each other, or one that holds itself."
            )
        left += [(one, level + 1) for one in inner]


def _unsayable(name: str, what: str) -> UsageError:
    return UsageError(f"The {name} of a turn holds {what}, which JSON cannot say.")


def _wrong(name: str, wanted: str, value: object) -> UsageError:
    return UsageError(f"The {name} of a turn is {wanted}, and not {_short(value)}.")


def _short(value: object) -> str:
    return ascii(value)[:80]
