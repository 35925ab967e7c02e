"""What is said over the WebSocket: one JSON object a message, in both directions. Pure."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta, Struct

from perdure.api.errors import failure
from perdure.api.replies import encoded
from perdure.api.wrong import BODY, sentence
from perdure.errors import PerdureError, UsageError
from perdure.live.event_row import event_row
from perdure.model.decoding import decoder_of
from perdure.model.event import Lagged, StoredEvent
from perdure.model.terminal import Closed, Frame, Printed, Resized, Screen, Sized

#: No message of a client's is longer, in characters.
LONGEST = 1 << 18
#: Larger numbers than any event has, and than JavaScript has.
_MOST = 1 << 53

_Run = Annotated[str, Meta(min_length=1, max_length=32)]
_Key = Annotated[str, Meta(min_length=1, max_length=16)]


class _Asked(Struct, frozen=True, kw_only=True, tag_field="op", forbid_unknown_fields=True):
    pass


class Subscribe(_Asked, frozen=True, kw_only=True, tag="subscribe"):
    """Tell what has happened behind a number, and then whatever happens; without one, only that."""

    after: Annotated[int, Meta(ge=0, le=_MOST)] | None = None


class Open(_Asked, frozen=True, kw_only=True, tag="open"):
    """Show a run's terminal."""

    run: _Run


class Input(_Asked, frozen=True, kw_only=True, tag="input"):
    """Type into a run's terminal, which is open: exactly one of the last three. `id` comes back with what became of it."""

    run: _Run
    id: Annotated[int, Meta(ge=-_MOST, le=_MOST)] = 0
    #: What is typed, as it is.
    text: str | None = None
    #: Keys by tmux's names for them: `Enter`, `C-c`.
    keys: Annotated[tuple[_Key, ...], Meta(min_length=1, max_length=100)] | None = None
    #: What is pasted, as one paste where the program knows pastes.
    paste: str | None = None

    def __post_init__(self) -> None:
        """See that it is one thing."""
        if sum(each is not None for each in (self.text, self.keys, self.paste)) != 1:
            raise ValueError("exactly one of `text`, `keys` and `paste` is typed")


class TakeSize(_Asked, frozen=True, kw_only=True, tag="take_size"):
    """Give a run's terminal, which is open, a size."""

    run: _Run
    cols: int
    rows: int


class ReleaseSize(_Asked, frozen=True, kw_only=True, tag="release_size"):
    """Give it back the size it had."""

    run: _Run


class Close(_Asked, frozen=True, kw_only=True, tag="close"):
    """Show a run's terminal no longer."""

    run: _Run


class Ping(_Asked, frozen=True, kw_only=True, tag="ping"):
    """Say something."""


Asked = Subscribe | Open | Input | TakeSize | ReleaseSize | Close | Ping

_OPS = tuple(str(each.__struct_config__.tag) for each in get_args(Asked))
_asked: msgspec.json.Decoder[Asked] = decoder_of(Asked)


def read(message: str) -> Asked:
    """Return what a client wants. Raises `UsageError`."""
    if len(message) > LONGEST:
        raise UsageError(f"A message of {len(message)} characters is too long; {LONGEST} is not.")
    try:
        return _asked.decode(message)
    except RecursionError as error:
        raise UsageError("The message is nested too deeply to be read.") from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UsageError(_wrong(str(error))) from error


def _wrong(noticed: str) -> str:
    """Return what is wrong with a message as a sentence."""
    what, _, place = noticed.partition(" - at `$")
    key = place.strip("`.") or BODY
    if key == "op":
        what = "Invalid enum value"
    is_op = key == "op" or what == "Object missing required field `op`"
    return sentence(key, what, _OPS if is_op else (), whole="The message")


class Events:
    """Events as they are told. Everybody is told of the same ones at the same time, so each is put into words once."""

    def __init__(self, most: int = 256) -> None:
        self._most = most
        self._told: dict[int, tuple[StoredEvent, str]] = {}

    def told(self, happened: StoredEvent | Lagged) -> str:
        """Tell of an event, or that the subscriber was too slow for them."""
        if isinstance(happened, Lagged):
            return said("lagged", after=happened.after)
        known = self._told.get(happened.seq)
        # What could not be stored has no number of its own.
        if known is not None and known[0] is happened:
            return known[1]
        text = said("event", event=event_row(happened))
        if len(self._told) >= self._most:
            del self._told[next(iter(self._told))]
        self._told[happened.seq] = happened, text
        return text


def frame(run: str, shown: Frame) -> str:
    """Tell what a terminal shows."""
    match shown:
        case Screen():
            x, y = shown.cursor
            return said(
                "screen",
                run=run,
                cols=shown.cols,
                rows=shown.rows,
                cursor={"x": x, "y": y},
                title=shown.title,
                alternate=shown.alternate,
                text=shown.text,
            )
        case Printed():
            return said("output", run=run, text=shown.text)
        case Resized():
            return said("resized", run=run, cols=shown.cols, rows=shown.rows)
        case Sized():
            return said("size", run=run, taken=shown.taken)
        case Closed():
            return said("closed", run=run, why=shown.why)


def error(failed: PerdureError, **about: str) -> str:
    """Tell that something was not done, and why."""
    _, body = failure(failed)
    return said("error", code=body.code, message=body.message, **about)


def said(type: str, **facts: Any) -> str:
    """Return a message."""
    return encoded({"type": type, **facts}).decode()
