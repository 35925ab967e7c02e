"""Whether the daemon is there, and writes down what happens."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from litestar import get
from msgspec import Struct

from perdure import __version__
from perdure.api.asking import World

_UNWRITABLE = (
    "The store cannot be written; what happens is kept in memory, and panes that are opened get no id, until it can."
)


class Health(Struct, frozen=True, kw_only=True):
    """That somebody answers, and whether all is well. Nothing about the machine: anybody may ask."""

    #: `ok`; `degraded` while the store cannot be written: what happens is only kept in memory then.
    status: Literal["ok", "degraded"]
    version: str
    #: What is wrong, in a sentence, and since when; null when nothing is.
    problem: str | None = None
    since: datetime | None = None


@get("/health", sync_to_thread=False, security=[{}])
def health(world: World) -> Health:
    """Tell that the daemon is there, and whether it writes down what happens. Why it cannot is told to those with a token alone."""
    trouble = world.daemon.rounds.trouble
    if trouble is None:
        return Health(status="ok", version=__version__)
    return Health(status="degraded", version=__version__, problem=_UNWRITABLE, since=trouble.since)


ROUTES = (health,)
