"""Whether the daemon is there."""

from __future__ import annotations

from litestar import get
from msgspec import Struct

from perdure import __version__


class Health(Struct, frozen=True, kw_only=True):
    """That somebody answers. Nothing about the machine: anybody may ask."""

    status: str
    version: str


@get("/health", sync_to_thread=False, security=[{}])
def health() -> Health:
    """Tell that the daemon is there."""
    return Health(status="ok", version=__version__)


ROUTES = (health,)
