"""How routes may fail, for whoever reads their description: every answer a route can give is written down with it."""

from __future__ import annotations

from litestar.openapi.datastructures import ResponseSpec

from perdure.api.errors import Failure

#: What each status says. Those of `_ANY` may come from every route.
_SAID = {
    400: "What was asked for makes no sense; `message` says why.",
    401: "A token is needed.",
    403: "Refused: not with this token, not from there, or not safe.",
    404: "There is no such thing.",
    409: "It is not as it was thought to be; look again.",
    413: "This is more than is taken at once.",
    429: "Too much at once; try again in a while.",
    500: "It could not be done; `message` says why.",
    503: "What it takes is not to be had at the moment: the store, or another part of the daemon.",
    504: "Somebody did not answer in time.",
}
_ANY = (400, 401, 403, 413, 429, 500, 503)

#: For the `responses` of a route that is asked again and again (`replies.unless_known`).
UNCHANGED = {304: ResponseSpec(None, description="Nothing has changed since; there is nothing in the answer.")}


def failures(*statuses: int) -> dict[int, ResponseSpec]:
    """Return how a route may fail, for its `responses`: in these ways besides those any route may."""
    return {
        status: ResponseSpec(Failure, description=_SAID[status], generate_examples=False)
        for status in sorted({*_ANY, *statuses})
    }
