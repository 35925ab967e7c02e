"""Whether the daemon is there, and who one is."""

from __future__ import annotations

from litestar import get
from msgspec import Struct

from perdure import __version__
from perdure.api.asking import Who, World
from perdure.api.caller import Scope


class Health(Struct, frozen=True, kw_only=True):
    """That somebody answers. Nothing about the machine: anybody may ask."""

    status: str
    version: str


class Me(Struct, frozen=True, kw_only=True):
    """Who asks, and whom."""

    user: str
    scope: Scope
    version: str
    host: str


@get("/health", sync_to_thread=False)
def health() -> Health:
    """Tell that the daemon is there."""
    return Health(status="ok", version=__version__)


@get("/api/me", sync_to_thread=False)
def me(world: World, caller: Who) -> Me:
    """Tell who asks."""
    return Me(user=caller.user, scope=caller.scope, version=__version__, host=world.host)


ROUTES = (health, me)
