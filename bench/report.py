"""The results as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench import api_report, chat_report, job_report, live_report, targets
from bench.measures import batch, restores, startup
from bench.measures.bound import LIST_PANES
from bench.results import Case, Results
from bench.servers import LINES, SHAPES
from bench.targets import target_of


def report(results: Results) -> str:
    """Return everything a run found."""
    shapes = list(dict.fromkeys(case.shape for case in results.cases))
    parts = [_head(results)]
    for shape in shapes:
        cases = [case for case in results.cases if case.shape == shape]
        parts.append("\n".join([*_times(shape, cases), *_clients(cases), *_memory(cases), *_growth(cases)]))
    if results.live is not None:
        parts.append("\n".join(live_report.lines(results.live)))
    if results.chats is not None:
        parts.append("\n".join(chat_report.lines(results.chats)))
    if results.jobs is not None:
        parts.append("\n".join(job_report.lines(results.jobs)))
    if results.api is not None:
        parts.append("\n".join(api_report.lines(results.api)))
    parts.append(_foot(results))
    return "\n\n".join(parts)


def _head(run: Results) -> str:
    machine = run.machine
    where = f"{machine.system}, {machine.cpus} CPUs, load {machine.load:.2f}, Python {machine.python}, {machine.tmux}"
    return f"""{where}.
{run.rounds} rounds, {run.restores} of restores, panes with {LINES} lines of {run.width} columns.
Ratios are to `{LIST_PANES}` in the same rounds, those of restores to `{batch.BATCH}`. Others on terminals here, which a save reads too: {machine.others}."""


def _times(shape: str, cases: Sequence[Case]) -> Iterator[str]:
    width = max(len(what) for case in cases for what in case.timings)
    yield f"{shape}: {SHAPES[shape].about}"
    yield f"  panes  {'':<{width}}     median    minimum   ratio  of min.   target"
    for case in cases:
        judged = {verdict.what: verdict for verdict in targets.ratios(case)}
        for place, (what, timing) in enumerate(case.timings.items()):
            times = f"{_ms(timing.median)} {_ms(timing.minimum)}"
            ratios = _ratios(case, what)
            row = f"{'' if place else case.panes:>5}  {what:<{width}} {times} {ratios}   {target_of(judged.get(what))}"
            yield f"  {row}".rstrip()


def _ratios(case: Case, what: str) -> str:
    if what in (batch.BATCH, *restores.ALL):
        return f"{case.ratio(what, batch.BATCH):6.2f}x {case.least_ratio(what, batch.BATCH):7.2f}x"
    return f"{case.ratio(what, LIST_PANES):6.1f}x {case.least_ratio(what, LIST_PANES):7.1f}x"


def _clients(cases: Sequence[Case]) -> Iterator[str]:
    yield ""
    for case in cases:
        for verdict in targets.clients(case):
            yield f"  {case.panes:>5}  {verdict.what}: {verdict.value:.0f}   {target_of(verdict, '')}"


def _memory(cases: Sequence[Case]) -> Iterator[str]:
    yield ""
    for case in cases:
        bare = case.memory[startup.BARE]
        peaks = ", ".join(f"{what} {kib / 1024:.1f} MiB ({kib / bare:.2f}x)" for what, kib in case.memory.items())
        yield f"  {case.panes:>5}  peak memory: {peaks}"


def _growth(cases: Sequence[Case]) -> Iterator[str]:
    for small, large in targets.pairs(cases):
        yield ""
        for what, verdict in targets.growth(small, large).items():
            times = [case.timings[what].minimum * 1000 for case in (small, large)]
            more = (times[1] - times[0]) / (large.panes - small.panes)
            told = f"{times[1] / large.panes:.2f} ms a pane, {verdict.value:.2f}x that of {small.panes} panes"
            yield f"  {large.panes:>5}  {what}: {told} (one more pane: {more:.2f} ms)   {target_of(verdict)}"


def _foot(results: Results) -> str:
    verdicts = results.verdicts
    missed = [verdict for verdict in verdicts if not verdict.ok]
    told = f"{len(verdicts) - len(missed)} of {len(verdicts)} targets reached."
    if results.cases and not any(case.panes >= targets.PANES for case in results.cases):
        told += f" Times of saves are judged from {targets.PANES} panes on."
    lines = [
        f"  missed: {each.shape}, {f'{each.panes} panes, ' if each.panes else ''}{each.what}: {each.value:.2f} > {each.limit:g}"
        for each in missed
    ]
    return "\n".join([told, *lines])


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:7.1f} ms"
