"""`/metrics`: how the daemon and its runs stand, in the text format Prometheus reads. No name, title or path of anybody's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from litestar import MediaType, Response, get

from perdure import __version__
from perdure.api.asking import Who, World
from perdure.api.caller import Caller
from perdure.api.failures import failures
from perdure.api.world import ApiWorld
from perdure.errors import StoreUnusable
from perdure.host.memory import resident_bytes
from perdure.live.whose import ROOT

_KIND = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


def metric(name: str, kind: str, what: str, values: Mapping[Labels, float]) -> Iterator[str]:
    """Yield the lines of one metric: what it is, and its values by their labels."""
    yield f"# HELP {name} {what}"
    yield f"# TYPE {name} {kind}"
    for labels, value in sorted(values.items()):
        inner = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
        yield f"{name}{{{inner}}} {value:g}" if inner else f"{name} {value:g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@get("/metrics", media_type=MediaType.TEXT, responses=failures())
async def metrics(world: World, caller: Who) -> Response[str]:
    """How the daemon and the caller's runs stand, in the text format Prometheus reads."""
    try:
        last = await world.read(lambda store: store.last_event())
    except StoreUnusable:
        last = None
    lines = [line for part in _parts(world, caller, last) for line in part]
    return Response("\n".join([*lines, ""]), media_type=_KIND)


def _parts(world: ApiWorld, caller: Caller, last: int | None) -> Iterator[Iterator[str]]:
    runs = world.runs(caller)
    states: Counter[Labels] = Counter()
    health: Counter[Labels] = Counter()
    for run in runs:
        status, agent = run.status, run.tenant.agent if run.tenant else ""
        states[("agent", agent), ("reason", str(status.reason or "")), ("state", str(status.state))] += 1
        health[(("health", str(run.health)),)] += 1
    up = (world.now() - world.began_at).total_seconds()
    yield metric("perdure_info", "gauge", "What answers.", {(("version", __version__),): 1})
    yield metric("perdure_uptime_seconds", "gauge", "How long it has answered.", {(): round(up, 3)})
    yield metric("perdure_runs", "gauge", "Runs whose panes are there, by agent and state.", states)
    yield metric("perdure_runs_health", "gauge", "The same by how up to date they can be.", health)
    yield metric("perdure_store_up", "gauge", "Whether the store can be used.", {(): last is not None})
    if last is not None:
        yield metric("perdure_events_total", "counter", "The number of the last event.", {(): last})
    if caller.uid in (ROOT, world.ground.me.uid):
        answers: dict[Labels, float] = {
            (("status", str(status)),): count for status, count in world.logs.answered.items()
        }
        yield metric("perdure_http_requests_total", "counter", "Requests that were answered, by status.", answers)
        yield metric("perdure_followers", "gauge", "How many follow what happens.", {(): len(world.feed)})
        memory = resident_bytes()
        if memory is not None:
            yield metric("perdure_resident_memory_bytes", "gauge", "Memory the daemon holds.", {(): memory})


ROUTES = (metrics,)
