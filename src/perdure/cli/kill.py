"""`perdure kill TARGET`: end a pane, a window or a session, kept first so that it can be brought back."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Collection, Sequence

from msgspec import Struct

from perdure.agents import roster
from perdure.cli._setup import Setup, add_server_arguments, with_setup
from perdure.cli.aim import aim, aim_at_part, gone_run, look_around, owner_of, run_by_id, run_of, view_of
from perdure.cli.find import place_of, session_called
from perdure.cli.render import counted, print_json, printable
from perdure.cli.save import keep
from perdure.errors import NoDaemon, NotFound, PerdureError, StoreUnusable
from perdure.host.clock import now
from perdure.live.ending import detached, why_over
from perdure.live.present import end_run
from perdure.model.run import Run
from perdure.model.snapshot import Missed
from perdure.model.topology import Topology
from perdure.snapshots.look import Looked
from perdure.tmux.act import Spot, end


class Doomed(Struct, frozen=True, kw_only=True):
    """What is to be ended: a `session`, a `window` or a `pane`, by tmux's id, and what a person calls it."""

    looked: Looked
    kind: str
    id: str
    called: str
    #: A target that means it, and nothing else, where it is brought back.
    target: str
    panes: int
    #: The other sessions that show a window of it. A session's windows live on there; a window, or a pane, goes with it.
    shared: tuple[str, ...] = ()
    #: The run it was named by.
    run: Run | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("target", metavar="TARGET", help="a pane's id, SESSION[:WINDOW[.PANE]] or a run's id")
    add_server_arguments(parser)
    parser.add_argument("--detach", action="store_true", help="only stop following it; everything in tmux lives on")
    parser.add_argument("--anyway", action="store_true", help="end it even when it could not be saved before")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    if args.detach:
        return _detach(setup, args)
    there: list[Looked] = []
    try:
        there, missed = look_around(setup, args, scrollback=True)
        doomed = _doomed(setup, args.target, there, missed)
    except NotFound:
        if (gone := gone_run(setup, args, there)) is None:
            raise
        return _gone_already(gone, as_json=args.json)
    snapshot = _kept(setup, doomed, anyway=args.anyway)
    capture = doomed.looked.capture
    timeout = setup.config.tmux.timeout_seconds
    spot = Spot(capture.server.socket, owner_of(setup, capture), doomed.id, capture.topology.process.pid, timeout)
    was_there = _end(setup, spot, doomed)
    if args.json:
        result = "killed" if was_there else "gone"
        facts: dict[str, object] = {"kind": doomed.kind, "id": doomed.id, "panes": doomed.panes}
        facts |= {"target": doomed.called, "shared": doomed.shared}
        print_json({"result": result, **facts, "socket": capture.server.socket, "snapshot": snapshot})
        return 0
    what = f"{doomed.kind} {doomed.called} ({counted(doomed.panes, 'pane')})"
    print(printable(f"{what}: {'killed' if was_there else 'gone already'}{_elsewhere(doomed)}."))
    if snapshot is not None:
        print(printable(f"To bring it back: perdure restore --from {snapshot} {shlex.quote(doomed.target)}"))
    return 0


run = with_setup(_run)


def _gone_already(run: Run, *, as_json: bool) -> int:
    """Say of a run whose pane is gone that there was nothing to be ended."""
    if as_json:
        facts: dict[str, object] = {"kind": "pane", "id": run.pane, "panes": 1, "target": run.place.target}
        print_json({"result": "gone", **facts, "shared": (), "socket": run.server.socket, "snapshot": None})
    else:
        print(printable(f"pane {run.place.target} (1 pane): gone already."))
    return 0


def _end(setup: Setup, spot: Spot, doomed: Doomed) -> bool:
    """End it, False when it was gone already. By the id of a run only who was recorded under it."""
    if doomed.run is None:
        return end(spot, doomed.kind, doomed.id)
    view = view_of(setup, doomed.looked.capture.server)
    return end_run(doomed.run, spot, known=roster(setup.config.agents), view=view, now=now)


def _doomed(setup: Setup, target: str, there: Sequence[Looked], missed: Sequence[Missed]) -> Doomed:
    part = aim_at_part(setup, target, there, missed)
    topology = part.looked.capture.topology
    first, windows = part.panes[0], {pane.window for pane in part.panes}
    kind, id = part.kind, part.id
    if kind == "session":
        called = next(each.name for each in topology.sessions if each.id == id)
        meant, own = session_called(topology, called, id), part.sessions
    elif len(part.panes) > 1:
        called, own = target, part.sessions
        meant = session_called(topology, target, id) if target.startswith("-") else target
    else:
        # A window with a single pane goes with it.
        kind, id = "pane", first.id
        called = place_of(topology, first)
        meant, own = session_called(topology, called, id), _sessions_called(topology, called.partition(":")[0])
    return Doomed(
        looked=part.looked,
        kind=kind,
        id=id,
        called=called,
        target=meant,
        panes=len(part.panes),
        shared=_shared(topology, windows, own),
        run=part.run,
    )


def _sessions_called(topology: Topology, name: str) -> frozenset[str]:
    return frozenset(each.id for each in topology.sessions if each.name == name)


def _shared(topology: Topology, windows: Collection[str], own: Collection[str]) -> tuple[str, ...]:
    """Return the names of the sessions that show one of these windows, besides those by which it is called."""
    showing = {link.session for link in topology.links if link.window in windows}
    return tuple(each.name for each in topology.sessions if each.id in showing and each.id not in own)


def _elsewhere(doomed: Doomed) -> str:
    """What it means that others show it too."""
    if not doomed.shared:
        return ""
    names = ", ".join(doomed.shared)
    if doomed.kind == "session":
        return f"; what {names} shows of it too lives on there"
    return f", and gone from {names} too"


def _kept(setup: Setup, doomed: Doomed, *, anyway: bool) -> str | None:
    """Save the server, and return the snapshot from which what is ended can be brought back."""
    result = keep(setup, [doomed.looked], now())[0]
    if result.result in ("saved", "unchanged"):
        return result.snapshot
    sentence = f"It could not be saved: {(result.message or 'the store did not say why').rstrip('.')}"
    if not anyway:
        failure = StoreUnusable if result.reason == "store" else PerdureError
        raise failure(f"{sentence}; so nothing was ended (--anyway does it all the same).")
    print(f"perdure: {printable(sentence)}.", file=sys.stderr)
    return None


def _detach(setup: Setup, args: argparse.Namespace) -> int:
    from perdure.daemon import protocol
    from perdure.daemon.call import call

    run = run_by_id(setup, args)
    if run is None:
        there, missed = look_around(setup, args)
        run = run_of(setup, aim(setup, args.target, there, missed))
    if run is not None and run.is_over:
        raise NotFound(why_over(run))
    if run is None:
        raise NotFound(f"Nobody follows {args.target!r}: only what `perdure up` watches can be let go of.")
    try:
        call(setup.state_dir, protocol.Detach(run=run.id), 10.0)
    except NoDaemon:
        over, event = detached(run, now())
        setup.store.record([over], [event])
    if args.json:
        print_json({"result": "detached", "run": run.id, "pane": run.pane, "socket": run.server.socket})
    else:
        print(printable(f"{run.id} ({run.place.target}): not followed any more; it lives on in tmux."))
    return 0
