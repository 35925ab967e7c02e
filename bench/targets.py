"""What the numbers have to be, and whether they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from bench.measures import api, chats, cold, delays, jobs, live, restores, warm
from bench.measures.batch import BATCH
from bench.measures.bound import LIST_PANES
from bench.results import CAT, KEPT, Api, Case, Chats, Jobs, Live, Verdict
from bench.timing import Timing

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

#: What the daemon may use of one core, with its children, in hundredths; and hold, in MiB.
SHARES = {live.IDLE: 1.0, live.BUSY: 10.0}
HELD = 80.0
#: The seconds within which 95 of 100 changes are told, or are in the store.
DELAYS = {
    delays.TITLE: 0.25,
    delays.REGISTRY: 0.25,
    delays.AGENT_ENDED: 0.25,
    delays.PANE_KILLED: 0.25,
    delays.SERVER_KILLED: 1.0,
    delays.IDENTITY_KEPT: 1.0,
    delays.WINDOW_KEPT: 1.0,
    delays.NAME_KEPT: 1.0,
}

#: What appending, opening and loading may take of the time hermes-agent takes for the same.
OF_HERMES = {
    chats.APPEND: 1 / 2,
    chats.THREADS: 1 / 5,
    chats.PROCESSES: 1 / 5,
    chats.opening(chats.CROWDS[-1]): 1 / 100,
    chats.LOAD: 1.0,
}
#: What opening a chat may take among many, of what it takes among few: 1 is independent, the rest is for noise.
CROWDED = 1.25
#: The seconds within which 95 of 100 searches of each kind are done.
FOUND = 0.05
#: What is judged as a whole, and how the names of what belongs to it begin.
EVERY_SEARCH = {"all searches": chats.SEARCH, "all cold searches": chats.COLD}
#: What a process may hold at most later, or with many chats, of what it held at first, or with few.
FLAT = 1.1

JOB_STARTS = f"{jobs.WARM}: of {jobs.BARE}"
JOB_THROUGHPUT = f"{KEPT}: of {CAT}"
JOB_IDLE = f"{jobs.CROWD} idle jobs: % of a core"
JOB_HELD = "a supervisor: MiB held"
#: A job's first output and its whole output, as multiples of the times of a process without us; what idle ones use of a
#: core, all together and in hundredths; and what looks after one holds, in MiB.
OF_JOBS = {JOB_STARTS: 3.0, JOB_THROUGHPUT: 2.0, JOB_IDLE: 1.0, JOB_HELD: 6.0}

#: The seconds within which 95 of 100 requests are answered, events told and letters echoed; while a watched pane floods, too.
OF_API = {
    api.LIST: 0.02,
    api.FANNED: 0.1,
    api.ECHO: 0.05,
    api.LIST_FLOODED: 0.25,
    api.ECHO_FLOODED: 0.25,
    api.PAINTED: 1.0,
}
API_GROWN = "a flood in a watched pane: MiB the daemon held more"
#: What the daemon may hold more, in MiB, when much is printed in a pane that is watched.
GROWN = 8.0


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


def shares(found: Live) -> dict[str, Verdict]:
    """Judge what the daemon used of a core."""
    return {
        what: _of_daemon(found, f"{what}: % of a core", found.shares[what].percent, limit)
        for what, limit in SHARES.items()
    }


def held(found: Live) -> Verdict:
    """Judge what the daemon held at most."""
    return _of_daemon(found, "perdure up: MiB held", max(found.memory.values()) / 1024, HELD)


def told(found: Live) -> dict[str, Verdict]:
    """Judge how soon changes were told."""
    return {
        what: _of_daemon(found, f"{what}: ms, 95 of 100", found.delays[what].p95 * 1000, limit * 1000)
        for what, limit in DELAYS.items()
    }


def growth(small: Case, large: Case) -> dict[str, Verdict]:
    """Judge how the time per pane changes between two sizes of a shape, by what was measured."""
    return {what: _rise(what, small, large) for what in GROWING}


def pairs(cases: Sequence[Case]) -> Iterator[tuple[Case, Case]]:
    """Yield every size of a shape with the next larger one."""
    for _, same in groupby(cases, key=lambda case: case.shape):
        yield from pairwise(sorted(same, key=lambda case: case.panes))


def of_hermes(found: Chats) -> dict[str, Verdict]:
    """Judge what took part of hermes-agent's time for the same; nothing where it is not there."""
    verdicts = {}
    cold = {what: 1.0 for what in found.whats() if what.startswith(chats.COLD)}
    for what, limit in {**OF_HERMES, **cold}.items():
        ours, theirs = found.of(what, chats.PERDURE), found.of(what, chats.HERMES)
        if ours is not None and theirs is not None:
            verdicts[what] = _of_chats(found, f"{what}: of hermes' time", ours.median / theirs.median, limit)
    return verdicts


def searches(found: Chats, peer: str, which: str = chats.SEARCH) -> Timing | None:
    """Return the times of all searches of a peer, or all cold ones; None where they were not measured."""
    samples = [
        sample
        for line in found.lines
        if line.peer == peer and line.what.startswith(which)
        for sample in line.timing.samples
    ]
    return Timing(samples=tuple(samples)) if samples else None


def found_soon(found: Chats) -> dict[str, Verdict]:
    """Judge the searches of each kind."""
    return {
        line.what: _of_chats(found, f"{line.what}: ms, 95 of 100", line.timing.p95 * 1000, FOUND * 1000)
        for line in found.lines
        if line.peer == chats.PERDURE and line.what.startswith(chats.SEARCH)
    }


def flat(found: Chats) -> Iterator[Verdict]:
    """Judge what does not grow: opening by the number of chats, memory by that and by what was appended."""
    few, many = (found.of(chats.opening(crowd), chats.PERDURE) for crowd in (chats.CROWDS[0], chats.CROWDS[-1]))
    if few is not None and many is not None:
        yield _of_chats(
            found,
            f"{chats.opening(chats.CROWDS[-1])}: of that among {chats.CROWDS[0]}",
            many.median / few.median,
            CROWDED,
        )
    held = found.memory[chats.PERDURE]
    for what, before in ((chats.LATER, chats.FIRST), (chats.opening(chats.CROWDS[-1]), chats.opening(chats.CROWDS[0]))):
        yield _of_chats(found, f"memory, {what}: of {before}", held[what] / held[before], FLAT)
    for name, which in EVERY_SEARCH.items():
        ours, theirs = (searches(found, peer, which) for peer in (chats.PERDURE, chats.HERMES))
        if ours is not None and theirs is not None:
            yield _of_chats(found, f"{name}, 95 of 100: of hermes' time", ours.p95 / theirs.p95, 1.0)


def of_jobs(found: Jobs) -> dict[str, Verdict]:
    """Judge what was measured of jobs."""
    values = {
        JOB_STARTS: found.timings[jobs.WARM].median / found.timings[jobs.BARE].median,
        JOB_THROUGHPUT: 1 / found.throughput,
        JOB_IDLE: found.idle,
        JOB_HELD: found.rss / 1024,
    }
    return {
        what: Verdict(shape="jobs", panes=0, what=what, value=value, limit=OF_JOBS[what])
        for what, value in values.items()
    }


def of_api(found: Api) -> dict[str, Verdict]:
    """Judge what was measured of the HTTP interface."""
    verdicts = {
        what: _of_requests(found, f"{what}: ms, 95 of 100", found.timings[what].p95 * 1000, limit * 1000)
        for what, limit in OF_API.items()
        # Without a browser there is nothing to paint.
        if what in found.timings
    }
    return {**verdicts, API_GROWN: _of_requests(found, API_GROWN, found.flood.grown / 1024, GROWN)}


def judge(
    cases: Sequence[Case], daemon: Live | None, gateway: Chats | None, crew: Jobs | None, asked: Api | None
) -> tuple[Verdict, ...]:
    """Return every verdict there is."""
    found = [verdict for case in cases for verdict in (*ratios(case), *clients(case))]
    found += [verdict for small, large in pairs(cases) for verdict in growth(small, large).values()]
    if daemon is not None:
        found += [*shares(daemon).values(), held(daemon), *told(daemon).values()]
    if gateway is not None:
        found += [*of_hermes(gateway).values(), *found_soon(gateway).values(), *flat(gateway)]
    if crew is not None:
        found += of_jobs(crew).values()
    if asked is not None:
        found += of_api(asked).values()
    return tuple(found)


def target_of(verdict: Verdict | None, unit: str = "x") -> str:
    """Return what a number has to be, and whether it is."""
    if verdict is None:
        return ""
    return f"<= {verdict.limit:g}{unit} {'ok' if verdict.ok else 'missed'}"


def _rise(what: str, small: Case, large: Case) -> Verdict:
    # Two sizes are never measured in the same rounds: only the minima leave out what the machine did in between.
    rise = (large.timings[what].minimum / large.panes) / (small.timings[what].minimum / small.panes)
    return _verdict(large, f"{what}: time per pane against {small.panes} panes", rise, GROWTH)


def _verdict(case: Case, what: str, value: float, limit: float) -> Verdict:
    return Verdict(shape=case.shape, panes=case.panes, what=what, value=value, limit=limit)


def _of_daemon(found: Live, what: str, value: float, limit: float) -> Verdict:
    return Verdict(shape="live", panes=found.panes, what=what, value=value, limit=limit)


def _of_requests(found: Api, what: str, value: float, limit: float) -> Verdict:
    return Verdict(shape="api", panes=found.panes, what=what, value=value, limit=limit)


def _of_chats(found: Chats, what: str, value: float, limit: float) -> Verdict:
    return Verdict(shape="chats", panes=0, what=what, value=value, limit=limit)
