"""Which pane that is there now an argument means."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct, structs

from perdure.agents import roster
from perdure.cli._setup import Setup
from perdure.cli.find import panes_at
from perdure.cli.missed import unanswered
from perdure.errors import NotFound, Refused, StoreUnusable, Unanswered, UsageError
from perdure.host.clock import now
from perdure.host.users import user_by_uid
from perdure.live.deliver import Recipient
from perdure.live.ending import why_over
from perdure.live.meant import meant_by
from perdure.live.present import refuse_strangers
from perdure.live.recognise import Found, found_in
from perdure.model.run import Run, number_of
from perdure.model.server import Server
from perdure.model.snapshot import Capture, Miss, Missed
from perdure.model.topology import Pane
from perdure.model.user import User
from perdure.ports import HostView
from perdure.snapshots.look import Looked
from perdure.tmux.act import Spot


class Aim(Struct, frozen=True, kw_only=True):
    """A pane of a server that was looked at, and its run where it was named by that."""

    looked: Looked
    pane: Pane
    run: Run | None = None

    @property
    def capture(self) -> Capture:
        """What its server holds."""
        return self.looked.capture


def look_around(
    setup: Setup, args: argparse.Namespace, *, scrollback: bool = False
) -> tuple[list[Looked], list[Missed]]:
    """Return the servers the arguments mean, and those of which nothing is known now. Raises when that is all."""
    looked = setup.look(setup.ask(args), now(), scrollback=scrollback)
    there = [each for each in looked if isinstance(each, Looked)]
    missed = unanswered(looked)
    if missed and not there:
        raise Refused(missed[0].message) if missed[0].reason is Miss.REFUSED else Unanswered(missed[0].message)
    if args.socket is not None and not there:
        raise NotFound(next(each.message for each in looked if isinstance(each, Missed)))
    return there, missed


def aim(setup: Setup, target: str, there: Sequence[Looked], missed: Sequence[Missed] = ()) -> Aim:
    """Return the one pane a target means: `%id`, SESSION[:WINDOW[.PANE]], or the id of a run.

    Raises NotFound, or Unanswered where a server that did not answer may have it, and UsageError for several.
    """
    run = find_run(setup, target)
    try:
        found = _named(target, there)
        if run is not None and found:
            raise UsageError(f"{target!r} is both a run and a session; name the pane by its id.")
        return _of_run(run, there) if run is not None else _only(target, found)
    except NotFound as error:
        if not missed:
            raise
        why = " ".join(each.message for each in missed)
        raise Unanswered(f"No server that answered has a pane {target!r}. {why}") from error


def find_run(setup: Setup, target: str) -> Run | None:
    """Return the run of that id, None when it is no id or there is none."""
    if number_of(target) is None:
        return None
    try:
        return setup.readable.get_run(target)
    except (NotFound, StoreUnusable):
        return None


def owner_of(setup: Setup, capture: Capture) -> User:
    """Return whose server that is."""
    server = capture.server
    if server.uid == setup.me.uid:
        return setup.me
    return user_by_uid(server.uid) or User(server.user, server.uid, server.uid, "/")


def recipient(setup: Setup, aimed: Aim, conversation: str | None = None) -> Recipient:
    """Return a pane as somebody who is told something; only in that conversation where one is named.

    By its place, whoever was in it when it was looked at is meant. By its run, who was in it when that was recorded: what
    is there now may be another's.
    """
    capture, pane = aimed.capture, aimed.pane
    server, timeout = capture.topology.process.pid, setup.config.tmux.timeout_seconds
    spot = Spot(capture.server.socket, owner_of(setup, capture), pane.id, server, timeout)
    found = next(each for each in found_in(capture) if each.pane == pane.id)
    seen = (found.program, found.identity) if found.program is not None and found.identity is not None else None
    meant = meant_by(aimed.run or found, conversation)
    if aimed.run is None and meant.agent is None:
        # A shell: what is for the agent it is left of is no command for it.
        meant = structs.replace(meant, agent=_was_there(setup, aimed, found))
    return Recipient(spot=spot, meant=meant, seen=seen)


def run_of(setup: Setup, aimed: Aim) -> Run | None:
    """Return the run that was recorded in a pane, None when there is none."""
    capture = aimed.capture
    for run in setup.readable.list_runs(host=setup.host, over=False):
        if (run.server.key, run.process, run.pane) == (capture.server.key, capture.topology.process, aimed.pane.id):
            return run
    return None


def refuse_others(setup: Setup, run: Run) -> None:
    """Raise RunReplaced when the pane of an agent's run has another agent by now. Who does not answer says nothing."""
    if run.identity is None or run.is_over or run.process is None:
        return
    spot = Spot(
        run.server.socket, setup.user_of(run.server), run.pane, run.process.pid, setup.config.tmux.timeout_seconds
    )
    with suppress(Unanswered):
        refuse_strangers(run, spot, known=roster(setup.config.agents), view=view_of(setup, run.server), now=now)


def view_of(setup: Setup, server: Server) -> HostView | None:
    """Return the files of a server's user; None for anybody else's, which are theirs to lead us astray with."""
    return setup.surroundings().view_of(setup.me) if server.uid == setup.me.uid else None


def place_of(capture: Capture, pane: Pane) -> str:
    """Return where a pane is, as a person would name it."""
    topology = capture.topology
    link = next(each for each in topology.links if each.window == pane.window)
    session = next(each for each in topology.sessions if each.id == link.session)
    return f"{session.name}:{link.index}.{pane.index}"


def _was_there(setup: Setup, aimed: Aim, found: Found) -> str | None:
    """Return the agent that was last known in a pane which is a shell's by now, by its run or the last snapshot."""
    topology = aimed.capture.topology
    try:
        run = run_of(setup, aimed)
        if run is not None:
            return run.agent if run.first in (None, found.first) else None
        snapshot = setup.readable.latest_snapshot(aimed.capture.server)
    except (NotFound, StoreUnusable):
        return None
    if snapshot is None or snapshot.topology.process != topology.process:
        return None
    panes = snapshot.topology.panes
    was = next((each for each in panes if (each.id, each.pid) == (aimed.pane.id, aimed.pane.pid)), None)
    return was.identity.agent if was is not None and was.identity is not None else None


def _named(target: str, there: Sequence[Looked]) -> list[Aim]:
    found: list[Aim] = []
    for looked in there:
        try:
            found += [Aim(looked=looked, pane=pane) for pane in panes_at(looked.capture.topology, target)]
        except NotFound:
            continue
    return found


def _only(target: str, found: Sequence[Aim]) -> Aim:
    if not found:
        raise NotFound(f"There is no pane {target!r}; `perdure ls` shows those there are.")
    if len(found) > 1:
        places = ", ".join(f"{each.pane.id} on {os.path.basename(each.capture.server.socket)}" for each in found[:6])
        raise UsageError(f"{target!r} means {len(found)} panes ({places}); name one, if need be with --socket PATH.")
    return found[0]


def _of_run(run: Run, there: Sequence[Looked]) -> Aim:
    for looked in there:
        topology = looked.capture.topology
        if looked.capture.server.key == run.server.key and run.process in (None, topology.process) and not run.is_over:
            for pane in topology.panes:
                if pane.id == run.pane:
                    return Aim(looked=looked, pane=pane, run=run)
    raise NotFound(why_over(run))
