"""What routes answer with: pages of a list, and lists that are told only when they have changed."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec
from litestar import Request, Response
from litestar.types import Serializer
from msgspec import Struct

from perdure.errors import UsageError
from perdure.model.decoding import decoder_of
from perdure.model.digest import digest_of
from perdure.model.text import as_text

T = TypeVar("T")

#: To be asked for each time, and sent only when it has changed.
_ASK_AGAIN = "private, no-cache"
#: How many items a page has, unless asked for otherwise, and at most.
PAGE, LARGEST_PAGE = 200, 1000


class Page(Struct, Generic[T], frozen=True, kw_only=True):
    """Part of a list. `next`, given as `cursor`, asks for what follows; null: nothing does."""

    items: list[T]
    next: str | None = None


class Rank(Struct, frozen=True, order=True, array_like=True):
    """Where an item is in its list: by numbers, and by its id where those are the same."""

    numbers: tuple[float, ...]
    id: str


class Reply(Response[T], Generic[T]):
    """A response whose texts need not be Unicode: names and paths are bytes of whoever chose them."""

    def render(self, content: Any, media_type: str, enc_hook: Serializer = str) -> bytes:
        """Return the content as it is sent."""
        if isinstance(content, bytes | str) or "json" not in media_type:
            return super().render(content, media_type, enc_hook)
        return encoded(content)


def encoded(content: object) -> bytes:
    """Return anything of ours as JSON."""
    try:
        return msgspec.json.encode(content, enc_hook=str)
    except UnicodeEncodeError:
        return msgspec.json.encode(as_text(msgspec.to_builtins(content, enc_hook=str)))


def page_of(items: Sequence[T], at: Callable[[T], Rank], *, limit: int, cursor: str | None) -> Page[T]:
    """Return one page of a list that is whole at hand, in the order of the places of its items.

    What comes and goes between two pages moves nothing from one into the other: they meet at a place, not at a count.
    """
    behind = value_in(cursor, Rank)
    rest = sorted((item for item in items if behind is None or at(item) > behind), key=at)
    return Page(items=rest[:limit], next=cursor_of(at(rest[limit - 1])) if len(rest) > limit else None)


def newest_first(moment: datetime, id: str) -> Rank:
    """Return the place of something in a list that begins with the newest."""
    return Rank((-moment.timestamp(),), id)


def cursor_of(value: object) -> str:
    """Return something to go on from as a cursor, which callers only hand back."""
    return urlsafe_b64encode(msgspec.json.encode(value)).decode().rstrip("=")


def number_in(cursor: str | None) -> int:
    """Return the number in a cursor, 0 without one. Raises `UsageError` for one that was never given."""
    value = value_in(cursor, int)
    if value is not None and value < 0:
        raise UsageError("There is no such page: only what `next` said leads to one.")
    return value or 0


def value_in(cursor: str | None, kind: type[T]) -> T | None:
    """Return what a cursor was made of. Raises `UsageError` for one that was never given."""
    if cursor is None:
        return None
    try:
        return decoder_of(kind).decode(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (Error, ValueError, msgspec.DecodeError) as error:
        raise UsageError("There is no such page: only what `next` said leads to one.") from error


def with_zone(moment: datetime | None) -> datetime | None:
    """Return a moment somebody named, in UTC. Raises `UsageError` for one without a zone, which could be any of several."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise UsageError("A moment needs its zone, as in 2026-11-15T18:30:00Z.")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise UsageError("There is no such moment: it is before all time, or after it.") from error


def unless_known(request: Request[Any, Any, Any], content: T, *, by: object = None) -> Response[T]:
    """Return the content, or that it has not changed since the caller last had it (ETag, If-None-Match).

    `by` is what it is known by, where some of the content changes with every moment.
    """
    body = encoded(content)
    etag = etag_of(body if by is None else encoded(by))
    if is_known(request, etag):
        return unchanged(etag)
    return tagged(body, etag)  # type: ignore[arg-type]  # encoded once


def etag_of(what: bytes) -> str:
    """Return the ETag of a content, or of anything that is another when the content is."""
    return f'"{digest_of(what)[:32]}"'


def is_known(request: Request[Any, Any, Any], etag: str) -> bool:
    """Return whether the caller has what this ETag stands for."""
    given = request.headers.get("if-none-match", "").split(",")
    return etag in [each.strip().removeprefix("W/") for each in given]


def unchanged(etag: str) -> Response[Any]:
    """Return that nothing has changed."""
    return Response(b"", status_code=304, headers={"ETag": etag, "Cache-Control": _ASK_AGAIN})


def tagged(content: T, etag: str) -> Response[T]:
    """Return a content with its ETag."""
    headers = {"ETag": etag, "Cache-Control": _ASK_AGAIN}
    return Reply(content, headers=headers, media_type="application/json")
