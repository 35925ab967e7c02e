"""What was measured of the daemon, as tables for people."""

from __future__ import annotations

from collections.abc import Iterator

from bench import targets
from bench.measures import live
from bench.results import Live
from bench.targets import target_of


def lines(found: Live) -> Iterator[str]:
    """Yield everything a run found about the daemon."""
    yield f"live: {found.panes} panes, {found.agents} of them with simulated agents"
    yield from _shares(found)
    yield ""
    yield from _memory(found)
    yield ""
    yield from _delays(found)
    yield ""
    yield from _changes(found)


def _shares(found: Live) -> Iterator[str]:
    width, judged = max(map(len, found.shares)), targets.shares(found)
    yield f"  {'of one core':<{width}}   watches     server    seconds   target"
    for name, share in found.shares.items():
        row = f"{name:<{width}} {share.percent:8.2f} % {share.server_percent:8.2f} % {share.seconds:10.0f}"
        yield f"  {row}   {target_of(judged.get(name), ' %')}".rstrip()
    for name, alone, polled in (
        (live.IDLE, live.IDLE_ALONE, live.POLL_250MS),
        (live.BUSY, live.BUSY_ALONE, live.POLL_250MS_BUSY),
    ):
        bound = found.shares[alone].server_percent
        ours, theirs = (_in_all(found, each) - bound for each in (name, polled))
        yield f"  {name}: {ours:.2f} % with what the server does for it, {_ratio(ours, theirs)} `{polled}`"


def _in_all(found: Live, name: str) -> float:
    share = found.shares[name]
    return share.percent + share.server_percent


def _memory(found: Live) -> Iterator[str]:
    told = ", ".join(f"{what} {kib / 1024:.1f} MiB" for what, kib in found.memory.items())
    yield f"  most memory held: {told}   {target_of(targets.held(found), ' MiB')}"


def _delays(found: Live) -> Iterator[str]:
    width, judged = max(map(len, found.delays)), targets.told(found)
    yield f"  {'':<{width}}   samples       p50        p95        max   target (p95)"
    for name, timing in found.delays.items():
        times = " ".join(f"{each * 1000:7.0f} ms" for each in (timing.median, timing.p95, max(timing.samples)))
        yield f"  {name:<{width}} {len(timing.samples):9} {times}   {target_of(judged.get(name), ' ms')}".rstrip()


def _changes(found: Live) -> Iterator[str]:
    first = found.changes[0]
    for each in found.changes:
        costs = f"{each.used * 1000:.1f} ms of the daemon, {each.server * 1000:.1f} ms of the server"
        against = "" if each is first else f", {_ratio(each.used, first.used)} that of {first.panes} panes"
        yield f"  {each.panes:>5} panes: a change costs {costs}{against}"


def _ratio(one: float, other: float) -> str:
    return f"{one / other:.2f}x" if other > 0 else "beyond compare to"
