"""What the numbers have to be, and whether they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from bench.measures import cold, restores, warm
from bench.measures.batch import BATCH
from bench.measures.bound import LIST_PANES
from bench.results import Case, Verdict

#: Multiples of the lower bound, for servers of this many panes and more: below, starting Python is most of a save.
PANES = 200
RATIOS = {cold.SAVE: 20.0, cold.SAVE_SCROLLBACK: 25.0, warm.WARM: 6.0}
#: Multiples of the batch that makes the same panes, for servers of any size.
RESTORES = {restores.WARM: 1.5, restores.WARM_SCROLLBACK: 2.0}
#: tmux clients of a save and of a restore, however many panes there are.
CLIENTS = {cold.SAVE: 1, cold.SAVE_SCROLLBACK: 2, restores.COLD: 3, restores.COLD_SCROLLBACK: 3}
#: Time per pane as a multiple of that of the next smaller server: 1 is linear, the rest is for noise.
GROWTH = 1.1
GROWING = (warm.WARM, cold.SAVE, cold.SAVE_SCROLLBACK)


def ratios(case: Case) -> Iterator[Verdict]:
    """Judge the times."""
    for what, limit in RATIOS.items():
        if case.panes >= PANES:
            yield _verdict(case, what, case.ratio(what, LIST_PANES), limit)
    for what, limit in RESTORES.items():
        yield _verdict(case, what, case.ratio(what, BATCH), limit)


def clients(case: Case) -> Iterator[Verdict]:
    """Judge the number of tmux clients."""
    for what, limit in CLIENTS.items():
        yield _verdict(case, f"{what}: tmux clients", case.clients[what], limit)


def growth(small: Case, large: Case) -> dict[str, Verdict]:
    """Judge how the time per pane changes between two sizes of a shape, by what was measured."""
    return {what: _rise(what, small, large) for what in GROWING}


def pairs(cases: Sequence[Case]) -> Iterator[tuple[Case, Case]]:
    """Yield every size of a shape with the next larger one."""
    for _, same in groupby(cases, key=lambda case: case.shape):
        yield from pairwise(sorted(same, key=lambda case: case.panes))


def judge(cases: Sequence[Case]) -> tuple[Verdict, ...]:
    """Return every verdict there is."""
    found = [verdict for case in cases for verdict in (*ratios(case), *clients(case))]
    return (*found, *(verdict for small, large in pairs(cases) for verdict in growth(small, large).values()))


def _rise(what: str, small: Case, large: Case) -> Verdict:
    # Two sizes are never measured in the same rounds: only the minima leave out what the machine did in between.
    rise = (large.timings[what].minimum / large.panes) / (small.timings[what].minimum / small.panes)
    return _verdict(large, f"{what}: time per pane against {small.panes} panes", rise, GROWTH)


def _verdict(case: Case, what: str, value: float, limit: float) -> Verdict:
    return Verdict(shape=case.shape, panes=case.panes, what=what, value=value, limit=limit)
