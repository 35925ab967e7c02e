"""`python -m bench`: measure, show, write down."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import FrameType

from bench.measures import api, batch, bound, chats, clients, cold, hook, jobs, live, memory, restores, startup, warm
from bench.report import report
from bench.results import Api, Case, Chats, Jobs, Live, Results, this_machine, write
from bench.sandbox import BenchFailed, Sandbox, sandbox
from bench.servers import SHAPES, Server, Shape, serve
from bench.targets import judge
from bench.timing import Timing, interleave
from bench.vacant import Vacant, vacate

SAVES, LIVE, CHATS, JOBS, API = PARTS = ("saves", "live", "chats", "jobs", "api")
LATEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results", "latest.json")


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 when everything was measured; with --strict, 1 when a target was missed."""
    args = _arguments(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    home = dict(os.environ)
    try:
        with sandbox() as place:
            results = _measure(place, home, args)
    except BenchFailed as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    print(report(results))
    write(results, args.json)
    return int(args.strict and not all(verdict.ok for verdict in results.verdicts))


def _measure(place: Sandbox, home: Mapping[str, str], args: argparse.Namespace) -> Results:
    machine = this_machine(place.environ)
    shapes = args.shapes if SAVES in args.parts else []
    cases = tuple([_case(place, shape, panes, args) for shape in shapes for panes in args.sizes])
    daemon = _live(place, args)
    gateway = _chats(place, home, args)
    crew = _jobs(place, args)
    asked = _api(place, args)
    return Results(
        machine=machine,
        rounds=args.rounds,
        restores=args.restores,
        width=args.width,
        cases=cases,
        live=daemon,
        chats=gateway,
        jobs=crew,
        api=asked,
        verdicts=judge(cases, daemon, gateway, crew, asked),
    )


def _case(place: Sandbox, shape: Shape, panes: int, args: argparse.Namespace) -> Case:
    print(f"{shape.name}, {panes} panes …", file=sys.stderr, flush=True)
    with serve(place, shape, panes, args.width) as server:
        timings = _saves(server, place, args.rounds)
        counted, peaks = clients.of_saves(server, place), memory.of_saves(server, place)
        vacant = vacate(server, shape, place)
    return Case(
        shape=shape.name,
        panes=panes,
        timings={**timings, **_restores(vacant, args.restores)},
        clients={**counted, **clients.of_restores(vacant, place)},
        memory={**peaks, **memory.of_restores(vacant)},
    )


def _live(place: Sandbox, args: argparse.Namespace) -> Live | None:
    """Measure the daemon, where the kernel tells what a process uses and everything else it is told."""
    if LIVE not in args.parts or not sys.platform.startswith("linux"):
        return None
    return live.measure(place, seconds=args.live_seconds, samples=args.live_samples, sizes=args.sizes, width=args.width)


def _jobs(place: Sandbox, args: argparse.Namespace) -> Jobs | None:
    """Measure jobs, which only Linux has."""
    if JOBS not in args.parts or not sys.platform.startswith("linux"):
        return None
    return jobs.measure(place, rounds=args.rounds * 2, seconds=args.live_seconds / 2)


def _api(place: Sandbox, args: argparse.Namespace) -> Api | None:
    """Measure the HTTP interface, where the kernel tells what a process uses."""
    if API not in args.parts or not sys.platform.startswith("linux"):
        return None
    return api.measure(place, samples=args.live_samples, width=args.width)


def _chats(place: Sandbox, home: Mapping[str, str], args: argparse.Namespace) -> Chats | None:
    """Measure chats, where the kernel tells what a process holds."""
    if CHATS not in args.parts or not sys.platform.startswith("linux"):
        return None
    return chats.measure(place, home, rounds=args.rounds, turns=args.chat_turns)


def _saves(server: Server, place: Sandbox, rounds: int) -> dict[str, Timing]:
    with ExitStack() as stack:
        steps = {
            **bound.steps(server),
            **hook.steps(place),
            **startup.steps(server, place),
            **cold.steps(server, place),
            **warm.steps(server, place, stack),
        }
        return interleave(steps, rounds)


def _restores(vacant: Vacant, rounds: int) -> dict[str, Timing]:
    with ExitStack() as stack:
        return interleave({**batch.steps(vacant), **restores.steps(vacant, stack)}, rounds)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure saves, restores and the daemon, also over HTTP, on private tmux servers, and chats and jobs by themselves.",
    )
    parser.add_argument("--rounds", type=_count, default=15, help="how often each thing is measured (15)")
    parser.add_argument("--restores", type=_count, default=7, metavar="ROUNDS", help="the same for each restore (7)")
    parser.add_argument("--sizes", type=_sizes, default=[10, 50, 200], metavar="N,…", help="panes (10,50,200)")
    parser.add_argument("--shapes", type=_shapes, default=list(SHAPES.values()), metavar="S,…", help=",".join(SHAPES))
    parser.add_argument("--width", type=_count, default=60, help="columns of what the panes have printed (60)")
    parser.add_argument("--parts", type=_parts, default=list(PARTS), metavar="P,…", help=",".join(PARTS))
    parser.add_argument(
        "--live-seconds", type=_count, default=60, help="how long the daemon is measured at a time (60)"
    )
    parser.add_argument("--live-samples", type=_count, default=100, help="how often each change is made (100)")
    parser.add_argument("--chat-turns", type=_count, default=1_000_000, help="in how many turns is searched (1000000)")
    parser.add_argument(
        "--json", default=LATEST, metavar="PATH", help="where the results go (bench/results/latest.json)"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    return parser.parse_args(argv)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)


def _sizes(text: str) -> list[int]:
    return sorted({_count(size) for size in text.split(",")})


def _shapes(text: str) -> list[Shape]:
    if unknown := [name for name in text.split(",") if name not in SHAPES]:
        raise argparse.ArgumentTypeError(f"there is no shape {unknown[0]!r}, only {', '.join(SHAPES)}")
    return [SHAPES[name] for name in dict.fromkeys(text.split(","))]


def _parts(text: str) -> list[str]:
    if unknown := [part for part in text.split(",") if part not in PARTS]:
        raise argparse.ArgumentTypeError(f"there is no part {unknown[0]!r}, only {', '.join(PARTS)}")
    return text.split(",")


def _leave(number: int, _frame: FrameType | None) -> None:
    """Leave by way of an exception, so that the servers are ended."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
