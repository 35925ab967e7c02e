"""The pane a run is in, for those who look at it or type into it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import structs

from perdure.api.caller import Caller
from perdure.api.world import ApiWorld
from perdure.errors import NotFound, RunNotFound
from perdure.live.deliver import Recipient
from perdure.live.ending import why_over
from perdure.live.meant import meant_as
from perdure.model.run import Run
from perdure.tmux.act import Spot


class Mode(StrEnum):
    """How a run is let go of."""

    #: Only followed no longer; everything in tmux lives on.
    DETACH = "detach"
    #: Its pane is ended, kept first so that it can be brought back.
    KILL = "kill"


async def run_with_pane(world: ApiWorld, id: str, caller: Caller) -> Run:
    """Return a run of the caller's whose pane is there, as far as is known. Raises `NotFound`.

    Those of another machine that shares the store are not: its panes are not ours to say anything of.
    """
    run = await world.run(id, caller)
    if run.server.host != world.host:
        raise RunNotFound(f"{id} is a run of {run.server.host}, not of this machine.")
    if run.is_over or run.process is None:
        raise NotFound(why_over(run))
    return run


def spot_of(world: ApiWorld, run: Run) -> Spot:
    """Return a run's pane as tmux knows it: of this very process of its server, and of no other."""
    assert run.process is not None
    return Spot(
        run.server.socket,
        world.ground.user_of(run.server),
        run.pane,
        run.process.pid,
        world.config.tmux.timeout_seconds,
        since=int(run.process.started_at.timestamp()),
    )


def recipient_of(world: ApiWorld, run: Run, conversation: str | None, who: str | None) -> Recipient:
    """Return a run as somebody who is told something: as it is shown, and only in that conversation where one is named.

    `who` is the word that was handed back for who was shown, where that is still so (`live.meant.changed_since`).
    """
    meant = meant_as(run, who)
    return Recipient(
        spot=spot_of(world, run), meant=structs.replace(meant, conversation=conversation or meant.conversation)
    )
