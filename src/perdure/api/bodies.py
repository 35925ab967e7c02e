"""Bodies that a route would take though whoever sent them means something else: one it has no use for, and texts for numbers."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request
from litestar.exceptions import SerializationException

from perdure.api.taken import Taken
from perdure.api.wrong import BODY, KIND, sentence
from perdure.errors import UsageError
from perdure.model.decoding import converted

_CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})


async def refuse_body(request: Request[Any, Any, Any], taken: Taken) -> None:
    """Raise UsageError for a body with anything in it where none is read, and for one whose fields are of another kind.

    The framework reads parameters, which are texts, and fields alike: to it "5" is a number. What else is wrong it says itself.
    """
    if request.method not in _CHANGING:
        return
    try:
        said = await request.json()
    except SerializationException:
        if taken.body is None:
            raise UsageError("The body is no JSON that can be read; none is needed.") from None
        return
    if taken.body is None:
        _refuse_any(said)
        return
    try:
        converted(said, taken.body)
    except msgspec.ValidationError as error:
        noticed, _, place = str(error).partition(" - at `$")
        if said is not None and KIND.match(noticed):
            key = place.strip("`.") or BODY
            raise _wrong([(key, sentence(key, noticed))]) from error


def _refuse_any(said: Any) -> None:
    if said is None:
        return
    if not isinstance(said, dict):
        raise UsageError("The body has to be an object, or left out.")
    if said:
        raise _wrong([(name, f"There is no field `{name}`; it takes none.") for name in said])


def _wrong(found: list[tuple[str, str]]) -> UsageError:
    wrong = [{"key": key, "message": message} for key, message in found]
    return UsageError(" ".join(message for _, message in found), wrong=wrong)
