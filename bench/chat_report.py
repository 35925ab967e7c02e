"""What was measured of chats, as tables for people."""

from __future__ import annotations

from collections.abc import Iterator

from bench import targets
from bench.measures import chats
from bench.results import Chats, Verdict
from bench.targets import target_of
from bench.timing import Timing

_PEERS = (chats.BARE, chats.PERDURE, chats.HERMES)


def lines(found: Chats) -> Iterator[str]:
    """Yield everything a run found about chats."""
    compared = f"hermes-agent {found.peer}" if found.peer else "hermes-agent was not there to be compared"
    yield f"chats: {compared}; searches in {found.turns} turns; milliseconds, median (minimum)"
    width = max(map(len, found.whats()))
    judged = {what: _at_least(verdict) for what, verdict in targets.of_hermes(found).items()}
    judged |= {what: target_of(verdict, " ms (p95)") for what, verdict in targets.found_soon(found).items()}
    yield f"  {'':<{width}} {'SQLite alone':>18} {'perdure':>18} {'hermes':>20}   quicker    p95   target"
    for what in found.whats():
        yield f"  {_row(found, what, width, judged.get(what, ''))}".rstrip()
    yield ""
    for name, which in targets.EVERY_SEARCH.items():
        for peer in (chats.PERDURE, chats.HERMES):
            if (every := targets.searches(found, peer, which)) is not None:
                told = f"median {_ms(every.median)}, p95 {_ms(every.p95)}, max {_ms(max(every.samples))} ms"
                yield f"  {peer}, {name}: {told}"
    for peer, held in found.memory.items():
        yield f"  {peer}, memory held: {', '.join(f'{what} {kib / 1024:.1f} MiB' for what, kib in held.items())}"
    for verdict in targets.flat(found):
        yield f"  {verdict.what}: {verdict.value:.2f}x   {target_of(verdict)}"


def _row(found: Chats, what: str, width: int, judged: str) -> str:
    bare, ours, theirs = (found.of(what, peer) for peer in _PEERS)
    cells = f"{_cell(bare):>18} {_cell(ours):>18} {_cell(theirs):>20}"
    ratio = "" if ours is None or theirs is None else f"{theirs.median / ours.median:.1f}x"
    p95 = "" if ours is None else _ms(ours.p95)
    return f"{what:<{width}} {cells} {ratio:>9} {p95:>6}   {judged}"


def _at_least(verdict: Verdict) -> str:
    return f">= {1 / verdict.limit:g}x {'ok' if verdict.ok else 'missed'}"


def _cell(timing: Timing | None) -> str:
    return "" if timing is None else f"{_ms(timing.median)} ({_ms(timing.minimum)})"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g}" if seconds < 1 else f"{seconds * 1000:.0f}"
