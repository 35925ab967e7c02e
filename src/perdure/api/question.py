"""A request as routes read it: what is wrong with its body is whoever sent it to be told, not ours to log."""

from __future__ import annotations

from typing import Any

from litestar import Request
from litestar.exceptions import InternalServerException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge

from perdure.api.admission import too_large
from perdure.api.caller import Caller
from perdure.api.errors import Unfinished
from perdure.errors import UsageError


class Question(Request[Caller, Any, Any]):
    """A request whose body may be anything."""

    async def body(self) -> bytes:
        """Return the whole body. Raises `Unfinished` when it does not come to its end, and `TooLarge`."""
        try:
            return await super().body()
        except RequestEntityTooLarge as error:
            raise too_large() from error
        except InternalServerException as error:
            # All the framework says of somebody who hung up.
            raise Unfinished from error

    async def json(self) -> Any:
        """Return what the body says. Raises `UsageError` for what nobody can follow."""
        try:
            return await super().json()
        except RecursionError:
            raise UsageError("The body is nested too deeply to be read.") from None
