"""Coming and going: links that log a browser in, once; and who one is."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, get, post
from litestar.params import QueryParameter
from litestar.response import Redirect
from msgspec import Struct

from perdure import __version__
from perdure.api.admission import cookie_of
from perdure.api.asking import Asked, Who, World
from perdure.api.caller import Scope
from perdure.api.errors import TooMany, Unauthorized
from perdure.api.failures import failures
from perdure.api.guard import approach_of, peer_of
from perdure.api.pages import the_page, wants_page
from perdure.api.tokens import SESSION_LASTS
from perdure.api.world import ApiWorld


class Me(Struct, frozen=True, kw_only=True):
    """Who asks, and whom."""

    user: str
    scope: Scope
    version: str
    host: str


class Ticket(Struct, frozen=True, kw_only=True):
    """What opens one WebSocket, within half a minute."""

    ticket: str


Once = Annotated[str, QueryParameter(description="What the link says.", max_length=200)]


@get("/login", status_code=303, include_in_schema=False)
async def log_in(world: World, request: Request[Any, Any, Any], once: Once = "") -> Response[Any]:
    """Follow a link: the browser is logged in from here on."""
    caller = world.keys.follow(once)
    if caller is None:
        return await _followed_again(world, request)
    secret = await world.briefly(lambda: world.keys.log_in(caller))
    world.logs.audit(caller, "log in", "browser")
    response = Redirect("/", status_code=303)
    response.set_cookie(
        world.keys.cookie,
        secret,
        max_age=int(SESSION_LASTS.total_seconds()),
        path="/",
        httponly=True,
        samesite="strict",
        secure=world.keys.is_secure,
    )
    return response


async def _followed_again(world: ApiWorld, request: Request[Any, Any, Any]) -> Response[Any]:
    """A browser is shown the page, which says how to get in, or goes on where it is in already; a program is told."""
    approach = approach_of(dict(request.scope))
    secret = cookie_of(approach, world.keys.cookie)
    is_browser = wants_page(request)
    if is_browser and secret is not None and world.keys.who(secret) is not None:
        return Redirect("/", status_code=303)
    refusal = world.keys.refusal(
        peer_of(request.scope), "This link was followed already, or is too old; `perdure open` makes another."
    )
    if is_browser and isinstance(refusal, Unauthorized):
        return await the_page(status=401)
    if is_browser and isinstance(refusal, TooMany):
        # A page says more than a line for programs does: that another link lets them in all the same.
        page = await the_page(status=429)
        page.headers["retry-after"] = str(refusal.data["retry_after"])
        return page
    raise refusal


@post("/api/logout", status_code=204, responses=failures())
async def log_out(world: World, caller: Who, request: Asked) -> None:
    """End this browser's session; a program's token stays what it is."""
    secret = cookie_of(approach_of(dict(request.scope)), world.keys.cookie)
    if secret is not None:
        await world.briefly(lambda: world.keys.log_out(secret))
        world.logs.audit(caller, "log out", "browser")


@get("/api/me", sync_to_thread=False, responses=failures())
def me(world: World, caller: Who) -> Me:
    """Tell who asks."""
    return Me(user=caller.user, scope=caller.scope, version=__version__, host=world.host)


@post("/api/tickets", status_code=201, sync_to_thread=False, responses=failures())
def ticket(world: World, caller: Who) -> Ticket:
    """Get a ticket for the WebSocket: `/api/socket?ticket=…`, once, soon."""
    return Ticket(ticket=world.keys.ticket(caller))


ROUTES = (log_in, log_out, me, ticket)
