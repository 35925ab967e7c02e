"""The pane a run is in, for those who look at it or type into it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import structs

from perdure.api.caller import Caller
from perdure.api.world import ApiWorld
from perdure.errors import NotFound
from perdure.live.deliver import Recipient
from perdure.live.meant import meant_as
from perdure.model.event import EventKind
from perdure.model.run import Run
from perdure.store.store import Store
from perdure.tmux.act import Spot


class Mode(StrEnum):
    """How a run is let go of."""

    #: Only followed no longer; everything in tmux lives on.
    DETACH = "detach"
    #: Its pane is ended, kept first so that it can be brought back.
    KILL = "kill"


async def run_with_pane(world: ApiWorld, id: str, caller: Caller) -> Run:
    """Return a run of the caller's whose pane is there, as far as is known. Raises `NotFound`."""
    run = await world.run(id, caller)
    if run.is_over and await is_detached(world, run):
        raise NotFound(f"{id} is not followed any more, as somebody asked for; its pane is left to itself.")
    if run.is_over or run.process is None:
        raise NotFound(f"The pane of {id} is gone; `perdure restore` brings back what was saved of it.")
    return run


async def is_detached(world: ApiWorld, run: Run) -> bool:
    """Return whether a run is over only because somebody asked that it be followed no longer."""

    def work(store: Store) -> bool:
        told = store.read_events(after=0, limit=1, run=run.id, kinds=(EventKind.RUN_DELETED,))
        return any(each.event.data.get("mode") == Mode.DETACH for each in told)

    return await world.read(work)


def spot_of(world: ApiWorld, run: Run) -> Spot:
    """Return a run's pane as tmux knows it: of this very process of its server, and of no other."""
    assert run.process is not None
    owner = world.ground.user_of(run.server)
    return Spot(run.server.socket, owner, run.pane, run.process.pid, world.config.tmux.timeout_seconds)


def recipient_of(world: ApiWorld, run: Run, conversation: str | None, who: str | None) -> Recipient:
    """Return a run as somebody who is told something: as it is shown, and only in that conversation where one is named.

    `who` is the word that was handed back for who was shown, where that is still so (`live.meant.changed_since`).
    """
    meant = meant_as(run, who)
    return Recipient(
        spot=spot_of(world, run), meant=structs.replace(meant, conversation=conversation or meant.conversation)
    )
