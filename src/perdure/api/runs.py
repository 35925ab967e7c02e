"""Runs: what every pane is doing."""

from __future__ import annotations

from litestar import Response, get

from perdure.api.asking import Asked, Cursor, Id, Limit, Who, World
from perdure.api.replies import PAGE, Page, page_of, unless_known
from perdure.api.run_rows import RunRow, run_row


@get("/api/runs", sync_to_thread=False)
def list_runs(
    world: World, caller: Who, request: Asked, limit: Limit = PAGE, cursor: Cursor = None
) -> Response[Page[RunRow]]:
    """Every run whose pane is there."""
    rows = [run_row(run) for run in world.runs(caller)]
    return unless_known(request, page_of(rows, limit=limit, cursor=cursor))


@get("/api/runs/{id:str}")
async def one_run(world: World, caller: Who, id: Id) -> RunRow:
    """One run, over or not."""
    return run_row(await world.run(id, caller))


ROUTES = (list_runs, one_run)
