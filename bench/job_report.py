"""What was measured of jobs, as tables for people."""

from __future__ import annotations

from collections.abc import Iterator

from bench import targets
from bench.measures import jobs
from bench.results import Jobs, Verdict
from bench.targets import target_of


def lines(found: Jobs) -> Iterator[str]:
    """Yield everything a run found about jobs."""
    judged = targets.of_jobs(found)
    width = max(map(len, found.timings))
    yield f"jobs: milliseconds; {found.printed >> 20} MiB printed"
    yield f"  {'':<{width}}   samples     median    minimum"
    for what, timing in found.timings.items():
        times = " ".join(f"{each * 1000:10.2f}" for each in (timing.median, timing.minimum))
        yield f"  {what:<{width}} {len(timing.samples):9} {times}"
    least = found.timings[jobs.WARM].minimum / found.timings[jobs.BARE].minimum
    yield f"  first output: {_told(judged, targets.JOB_STARTS, 'x')} (by the minima {least:.2f}x)"
    yield f"  throughput: {found.throughput * 100:.0f} % of `cat`   {target_of(judged[targets.JOB_THROUGHPUT])}"
    yield f"  {found.crowd} idle jobs: {_told(judged, targets.JOB_IDLE, ' % of a core')}"
    told = f"{found.rss / 1024:.2f} MiB at most, {found.pss / 1024:.2f} MiB when what they share is counted once"
    yield f"  held by a supervisor: {told}   {target_of(judged[targets.JOB_HELD], ' MiB')}"


def _told(judged: dict[str, Verdict], what: str, unit: str) -> str:
    return f"{judged[what].value:.2f}{unit}   {target_of(judged[what], unit)}"
