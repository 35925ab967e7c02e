"""Which pane that is there now an argument means."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from contextlib import suppress

from msgspec import Struct, structs

from perdure.agents import roster
from perdure.cli._setup import Setup
from perdure.cli.find import Part, part_at
from perdure.cli.missed import unanswered
from perdure.errors import NotFound, Refused, StoreUnusable, Unanswered, UsageError
from perdure.host.clock import now
from perdure.host.users import user_by_uid
from perdure.live.deliver import Recipient
from perdure.live.ending import why_over
from perdure.live.find import both, enumerated, find_run
from perdure.live.meant import meant_by
from perdure.live.present import refuse_strangers
from perdure.live.recognise import Found, found_in
from perdure.model.identity import Identity
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


class AimedPart(Part, frozen=True, kw_only=True):
    """What a target means of a server that was looked at, and its run where it was named by that."""

    looked: Looked
    run: Run | None = None

    @classmethod
    def of(cls, looked: Looked, part: Part) -> AimedPart:
        """Return it as a part of that server."""
        return cls(looked=looked, **structs.asdict(part))

    @property
    def pane_ids(self) -> list[str]:
        """Its panes, each with the server it is on."""
        return [f"{pane.id} on {self.looked.capture.server.socket}" for pane in self.panes]


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
    part = aim_at_part(setup, target, there, missed)
    if len(part.panes) > 1:
        raise _several(target, [part])
    return Aim(looked=part.looked, pane=part.panes[0], run=part.run)


def aim_at_part(setup: Setup, target: str, there: Sequence[Looked], missed: Sequence[Missed] = ()) -> AimedPart:
    """Return the one part of one server a target means: as `aim`, but it may be a session, or a window of several panes.

    Raises UsageError where it is several of them, or is what a session and a run are both called.
    """
    run = _find_run(setup, target)
    named = _named(target, there)
    if run is not None:
        _refuse_both(run, named, there)
    try:
        part = _of_run(run, there) if run is not None else _only(target, named)
    except NotFound as error:
        if not missed:
            raise
        why = " ".join(each.message for each in missed)
        raise Unanswered(f"No server that answered has a pane {target!r}. {why}") from error
    if part.kind == "parts":
        raise _several(target, [part])
    return part


def run_by_id(setup: Setup, args: argparse.Namespace) -> Run | None:
    """Return the run whose id the target is, there or not; None when it is no id or there is none.

    Raises UsageError when a session is called so, too.
    """
    run = _find_run(setup, args.target)
    if run is not None:
        # Who does not answer, or is gone, has no session of that name as far as anybody knows.
        with suppress(Unanswered, Refused, NotFound):
            there, _ = look_around(setup, args)
            _refuse_both(run, _named(args.target, there), there)
    return run


def gone_run(setup: Setup, args: argparse.Namespace, there: Sequence[Looked]) -> Run | None:
    """Return the run whose id the target is, of which `aim` found no pane there, when that is gone for certain; else None.

    It is not where the run was let go of, where its server was not looked at and nobody has noted its end, and where
    its conversation goes on in another pane: it may be brought back with nobody noting that.
    """
    run = run_by_id(setup, args)
    if run is None or run.detached:
        return None
    if not run.is_over and all(each.capture.server.key != run.server.key for each in there):
        return None
    found = [each.identity for looked in there for each in found_in(looked.capture)]
    return None if any(each is not None and _is_conversation_of(run, each) for each in found) else run


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


def run_meant(setup: Setup, args: argparse.Namespace, runs: Sequence[Run]) -> Run | Aim:
    """Return the run that the target of the arguments means, of those that are known; the pane, where it is of none of them.

    A place is looked at: what is known of it may be a moment old, and then a name that is two panes' is one pane's still.
    Where that does not answer, what is known counts. Raises as `aim` does.
    """
    target = args.target
    if any(run.id == target for run in runs):
        return find_run(runs, target)
    try:
        there, missed = look_around(setup, args)
        aimed = aim(setup, target, there, missed)
    except (NotFound, Unanswered):
        # Of another user's, it may be known to a daemon all the same.
        return find_run(runs, target)
    return run_in(aimed, runs) or aimed


def run_of(setup: Setup, aimed: Aim) -> Run | None:
    """Return the run that was recorded in a pane, None when there is none."""
    return run_in(aimed, setup.readable.list_runs(host=setup.host, over=False))


def run_in(aimed: Aim, runs: Iterable[Run]) -> Run | None:
    """Return the one of these runs that is in a pane and not over, None when there is none."""
    return next((run for run in runs if not run.is_over and _is_in(aimed, run)), None)


def let_go_of(aimed: Aim, runs: Iterable[Run]) -> Run | None:
    """Return the one of these runs that was last let go of in a pane, None when there is none."""
    found = [run for run in runs if run.detached and _is_in(aimed, run)]
    return max(found, key=lambda run: run.ended_at or run.created_at, default=None)


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


def _is_conversation_of(run: Run, identity: Identity) -> bool:
    mine = run.identity
    if mine is None or mine.conversation is None:
        return False
    return (identity.agent, identity.conversation) == (mine.agent, mine.conversation)


def _is_in(aimed: Aim, run: Run) -> bool:
    capture = aimed.capture
    return (run.server.key, run.process, run.pane) == (capture.server.key, capture.topology.process, aimed.pane.id)


def _find_run(setup: Setup, target: str) -> Run | None:
    if number_of(target) is None:
        return None
    try:
        run = setup.readable.get_run(target)
    except (NotFound, StoreUnusable):
        return None
    # Another machine may keep its runs in the same store: what is here is none of them.
    return run if run.server.host == setup.host else None


def _named(target: str, there: Sequence[Looked]) -> list[AimedPart]:
    """What a target is called on every server that has such a thing."""
    found = []
    for looked in there:
        with suppress(NotFound):
            found.append(AimedPart.of(looked, part_at(looked.capture.topology, target)))
    return found


def _only(target: str, found: Sequence[AimedPart]) -> AimedPart:
    if not found:
        raise NotFound(f"There is no pane {target!r}; `perdure ls` shows those there are.")
    if len(found) > 1:
        raise _several(target, found)
    return found[0]


def _several(target: str, found: Sequence[AimedPart]) -> UsageError:
    named = [each for part in found for each in part.pane_ids]
    return UsageError(
        f"{target!r} means {len(named)} panes ({enumerated(named)}); name one, if need be with --socket PATH."
    )


def _refuse_both(run: Run, named: Sequence[AimedPart], there: Sequence[Looked]) -> None:
    if named:
        own = [] if run.is_over else [run.pane]
        others = [each for part in named for each in part.pane_ids]
        such = [each for looked in there for each in looked.capture.topology.panes if each.id == run.pane]
        socket = run.server.socket if len(such) > 1 else None
        raise UsageError(both(run.id, "run", [f"{run.pane} on {run.server.socket}"], others, own, socket))


def _of_run(run: Run, there: Sequence[Looked]) -> AimedPart:
    for looked in there:
        topology = looked.capture.topology
        if looked.capture.server.key == run.server.key and run.process in (None, topology.process) and not run.is_over:
            for pane in topology.panes:
                if pane.id == run.pane:
                    return AimedPart(
                        looked=looked, panes=(pane,), kind="pane", id=pane.id, sessions=frozenset(), run=run
                    )
    raise NotFound(why_over(run))
