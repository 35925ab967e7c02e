"""What the daemon is asked and what it answers: one JSON object a line, over its socket.

    {"id":1,"do":"runs"}              ->  {"id":1,"ok":[…]}   or   {"id":1,"error":{"code","message","data","exit_code"}}
    {"id":2,"do":"events","follow":true}  ->  {"id":2,"event":{…}} …, in the end perhaps {"id":2,"lagged":{"after":17}}

Requests on one connection are answered as they are done, not in their order: `id` says which answer is whose.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from perdure.errors import PerdureError, UsageError
from perdure.model.decoding import decoder_of
from perdure.model.event import EventKind, Lagged, StoredEvent
from perdure.model.text import as_text

#: No line is longer, in either direction.
LONGEST_LINE = 8 << 20
#: The most events in one answer.
LARGEST_PAGE = 5000


class Request(Struct, frozen=True, kw_only=True, tag_field="do", forbid_unknown_fields=True):
    """What every request has."""

    id: int = 0


class AskStatus(Request, frozen=True, kw_only=True, tag="status"):
    """How the daemon is."""


class AskRuns(Request, frozen=True, kw_only=True, tag="runs"):
    """All runs whose panes are there; with `over`, those whose panes are gone as well. The answer is a list of `Run`."""

    over: bool = False


class AskRun(Request, frozen=True, kw_only=True, tag="run"):
    """One run, by its id. The answer is a `Run`."""

    run: str


class Wait(Request, frozen=True, kw_only=True, tag="wait"):
    """Answer once a run is in one of these states (`live.until` has the words), or when the time is up.

    The answer is the `Run`; the errors are `NotReached` and `RunEnded`.
    """

    run: str
    until: Annotated[tuple[str, ...], Meta(min_length=1)]
    #: In seconds; None: as long as it takes.
    timeout: Annotated[float, Meta(ge=0)] | None = None


class MarkSeen(Request, frozen=True, kw_only=True, tag="seen"):
    """A person has seen how a run stands. The answer is the `Run`."""

    run: str


class Events(Request, frozen=True, kw_only=True, tag="events"):
    """What has happened behind a number: one page, or, with `follow`, all of it and then whatever happens."""

    after: Annotated[int, Meta(ge=0)] = 0
    follow: bool = False
    run: str | None = None
    kinds: tuple[EventKind, ...] = ()
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE)] = 500


class MarkTold(Request, frozen=True, kw_only=True, tag="told"):
    """Something was typed into a pane, with this result (`live.deliver`). The answer is the `Run` in it, or nothing."""

    socket: str
    pane: str
    result: str
    #: When it was begun: what the run has done since then it may have done because of it.
    at: datetime


class Detach(Request, frozen=True, kw_only=True, tag="detach"):
    """Follow a run no longer, for as long as the daemon runs; everything in tmux lives on. The answer is the `Run`."""

    run: str


class Follow(Request, frozen=True, kw_only=True, tag="follow"):
    """Follow a run again that was let go of. The answer is the `Run`; the error is `RunNotFound` when its pane is gone."""

    run: str


class Save(Request, frozen=True, kw_only=True, tag="save"):
    """Save every server now."""


class AskLogin(Request, frozen=True, kw_only=True, tag="login"):
    """Make an address that logs a browser in, once: as whoever asks, or, for root, as `user`. The answer has its `url`."""

    user: str | None = None


class Reload(Request, frozen=True, kw_only=True, tag="reload"):
    """Read the configuration again."""


AnyRequest = (
    AskStatus | AskRuns | AskRun | Wait | MarkSeen | MarkTold | Detach | Follow | Events | Save | AskLogin | Reload
)


class Failure(Struct, frozen=True, kw_only=True):
    """An expected failure as it crosses the socket: its sentence and its facts, never where in the program it was."""

    code: str
    message: str
    data: dict[str, Any] = {}
    exit_code: int = 1


class Page(Struct, frozen=True, kw_only=True):
    """Events, and how far was read for them. Only when `more` is false nothing was left behind `after`."""

    events: tuple[StoredEvent, ...]
    after: int
    more: bool


class Line(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the daemon says: exactly one of the last four is there."""

    #: Whose answer it is; None when that could not be read.
    id: int | None = None
    ok: Any = UNSET
    error: Failure | UnsetType = UNSET
    event: StoredEvent | UnsetType = UNSET
    lagged: Lagged | UnsetType = UNSET


def socket_path(state_dir: str) -> str:
    """Return where the daemon of a state directory listens."""
    return os.path.join(state_dir, "daemon.sock")


def encode_line(value: Struct) -> bytes:
    """Return a request or an answer as a line. Raises `PerdureError` for one that is too long."""
    try:
        raw = msgspec.json.encode(value, enc_hook=str)
    except UnicodeEncodeError:
        raw = msgspec.json.encode(as_text(msgspec.to_builtins(value, enc_hook=str)))
    if len(raw) >= LONGEST_LINE:
        raise PerdureError(f"This would take {len(raw)} bytes; no line is longer than {LONGEST_LINE}.")
    return raw + b"\n"


def decode_request(raw: bytes) -> AnyRequest:
    """Return what is asked for. Raises `UsageError`."""
    try:
        return _requests.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"This is no request: {error}.") from error


def id_of(raw: bytes) -> int | None:
    """Return the id of a request that may be none."""
    try:
        return decoder_of(_Numbered).decode(raw).id
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def decode_line(raw: bytes) -> Line:
    """Return what the daemon said. Raises `PerdureError` for what no daemon says."""
    try:
        return _lines.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PerdureError("The daemon's answer cannot be read; it may be of another version.") from error


def failure_from(error: PerdureError) -> Failure:
    """Return an error as it crosses the socket."""
    return Failure(
        code=_code(type(error)), message=error.message, data=dict(error.data), exit_code=type(error).exit_code
    )


def error_from(failure: Failure) -> PerdureError:
    """Return the error again: of its own kind, or of one with the same exit code where that kind is unknown here."""
    kinds = list(_kinds(PerdureError))
    same = next((kind for kind in kinds if _code(kind) == failure.code), None)
    alike = next((kind for kind in kinds if kind.exit_code == failure.exit_code), PerdureError)
    data = {name: value for name, value in failure.data.items() if name not in ("self", "message")}
    return (same or alike)(failure.message, **data)


class _Numbered(Struct):
    id: int = 0


_requests: msgspec.json.Decoder[AnyRequest] = decoder_of(AnyRequest)
_lines = decoder_of(Line)


def _code(kind: type[PerdureError]) -> str:
    """`NotFound` is `not_found`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def _kinds(kind: type[PerdureError]) -> Iterator[type[PerdureError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)
