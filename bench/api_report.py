"""What was measured of the HTTP interface, as tables for people."""

from __future__ import annotations

from collections.abc import Iterator

from bench import targets
from bench.results import Api
from bench.targets import target_of


def lines(found: Api) -> Iterator[str]:
    """Yield everything a run found about the HTTP interface."""
    judged, flood = targets.of_api(found), found.flood
    width = max(map(len, found.timings))
    yield f"over HTTP, {found.panes} panes: milliseconds"
    yield f"  {'':<{width}}   samples     median  95 of 100"
    for what, timing in found.timings.items():
        times = " ".join(f"{each * 1000:10.2f}" for each in (timing.median, timing.p95))
        yield f"  {what:<{width}} {len(timing.samples):9} {times}   {target_of(judged[what], ' ms')}"
    times = f"{flood.alone:.2f} s watched by nobody, {flood.watched:.2f} s by one who reads and one who does not"
    yield f"  {flood.printed >> 20} MiB printed in a pane: {times}"
    told = f"{flood.grown / 1024:.1f} MiB   {target_of(judged[targets.API_GROWN], ' MiB')}"
    yield f"  held more meanwhile: {told}; {flood.used:.2f} s of processor time, {flood.frames} messages to who read"
