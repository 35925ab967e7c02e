"""Failures as they are told over HTTP: `{code, message, data}`, whoever noticed them. Never a traceback, never a path of ours."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException
from msgspec import Struct

from perdure.api.taken import Taken
from perdure.api.wrong import BODY, missing, sentence
from perdure.daemon.protocol import failure_from
from perdure.errors import NotFound, PerdureError, failure_of
from perdure.model.text import as_text

log = logging.getLogger(__name__)

_UNKNOWN = "This could not be done; the daemon's log says why."
#: What is said of what the framework itself refuses.
_SAID = {
    HTTPStatus.NOT_FOUND: "There is nothing at this path.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This path is not asked for in this way.",
}


class Failure(Struct, frozen=True, kw_only=True):
    """Why something was not done."""

    #: Short and UPPER_SNAKE, for programs.
    code: str
    #: One sentence, for people.
    message: str
    data: dict[str, Any] | None = None


class ScreenChanged(PerdureError):
    """The screen no longer shows what was answered; look again."""

    http_status = 409


class Unauthorized(PerdureError):
    """A token is needed; `perdure open` logs a browser in, `perdure token new` is for programs."""

    http_status = 401


class WrongHost(PerdureError):
    """Nobody of this name is here; `[api] hosts` in the configuration adds names."""

    http_status = 403


class WrongOrigin(PerdureError):
    """Another page asked for this; only the daemon's own may."""

    http_status = 403


class ReadOnly(PerdureError):
    """This token is only for looking."""

    http_status = 403


class BadPath(PerdureError):
    """No path here is written like this."""

    http_status = 400


class TooMany(PerdureError):
    """Too many failures; try again in a while."""

    http_status = 429


class TooLarge(PerdureError):
    """This is more than is taken at once."""

    http_status = 413


class Unfinished(PerdureError):
    """The request did not come to its end."""

    http_status = 408


class Crowded(PerdureError):
    """Too many are connected; try again in a while."""

    http_status = 503


def failure(error: PerdureError) -> tuple[int, Failure]:
    """Return the status and the body that tell of an expected failure."""
    said = failure_from(error)
    data = as_text(msgspec.to_builtins(said.data, enc_hook=str)) if said.data else None
    # What was not found the path says.
    code = "NOT_FOUND" if isinstance(error, NotFound) else said.code.upper()
    body = Failure(code=code, message=error.message, data=data)  # type: ignore[arg-type]  # plain data
    return type(error).http_status, body


def of_http(error: HTTPException, taken: Taken) -> tuple[int, Failure]:
    """Return the same of what the framework refuses: no such route, a wrong method, a body that is none."""
    status = HTTPStatus(error.status_code)
    code = status.name if status is not HTTPStatus.BAD_REQUEST else "USAGE_ERROR"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return int(status), Failure(code=code, message=_UNKNOWN)
    # What exactly is wrong with which field; the values themselves may be secrets.
    extra = [each for each in error.extra if isinstance(each, dict)] if isinstance(error.extra, list) else []
    wrong = []
    for each in extra:
        key = taken.name_of(str(each.get("key", BODY)))
        noticed = str(each.get("message", ""))
        wrong.append({"key": key, "message": sentence(key, noticed, taken.words(key), known=taken.fields(key))})
    message = " ".join(each["message"] for each in wrong) or _said(error, status, taken)
    return int(status), Failure(code=code, message=message, data={"wrong": wrong} if wrong else None)


def _said(error: HTTPException, status: HTTPStatus, taken: Taken) -> str:
    if status in _SAID:
        return _SAID[status]
    detail = str(error.detail).split("\n")[0]
    if status is HTTPStatus.BAD_REQUEST:
        return sentence(BODY, detail, taken.words(missing(detail) or BODY), known=taken.fields(BODY))
    return f"{(detail or status.phrase).rstrip('.')}."


def unexpected(error: Exception) -> tuple[int, Failure]:
    """Return what is told of a failure nobody expected; what it was is for the log."""
    log.error("a request failed", exc_info=error)
    return 500, Failure(code="INTERNAL", message=_UNKNOWN)


def _told(status_and_body: tuple[int, Failure]) -> Response[Failure]:
    status, body = status_and_body
    return Response(body, status_code=status, media_type="application/json")


def on_failure(request: Request[Any, Any, Any], error: Exception) -> Response[Failure]:
    """Tell of any failure of a route."""
    if isinstance(error, PerdureError):
        return _told(failure(error))
    if isinstance(error, HTTPException):
        if error.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("a request failed", exc_info=error)
        return _told(of_http(error, Taken(request)))
    if isinstance(error, OSError):
        return _told(failure(failure_of(error)))
    return _told(unexpected(error))
