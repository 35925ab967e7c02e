"""The pane a run is in, for those who look at it or type into it."""

from __future__ import annotations

from perdure.api.caller import Caller
from perdure.api.world import ApiWorld
from perdure.errors import NotFound
from perdure.live.deliver import Recipient
from perdure.model.run import Run
from perdure.tmux.act import Spot


async def run_with_pane(world: ApiWorld, id: str, caller: Caller) -> Run:
    """Return a run of the caller's whose pane is there, as far as is known. Raises `NotFound`."""
    run = await world.run(id, caller)
    if run.is_over or run.process is None:
        raise NotFound(f"The pane of {id} is gone; `perdure restore` brings back what was saved of it.")
    return run


def spot_of(world: ApiWorld, run: Run) -> Spot:
    """Return a run's pane as tmux knows it: of this very process of its server, and of no other."""
    assert run.process is not None
    owner = world.ground.user_of(run.server)
    return Spot(run.server.socket, owner, run.pane, run.process.pid, world.config.tmux.timeout_seconds)


def recipient_of(world: ApiWorld, run: Run) -> Recipient:
    """Return a run as somebody who is told something."""
    identity = run.identity
    is_there = identity is not None and not identity.is_kept
    return Recipient(spot=spot_of(world, run), identity=identity if is_there else None, expected=run.agent)
