"""What is to be brought back, held against what is there now: the plan of a restore, and the ground it stands on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec
from msgspec import Struct

from perdure.agents import roster
from perdure.errors import Unanswered
from perdure.host.processes import read_processes
from perdure.model.plan import AGENT_ACTIONS, Plan, Restore, Scope
from perdure.model.server import Server, ServerProcess
from perdure.model.snapshot import Capture, Miss, Missed, Snapshot
from perdure.model.topology import Pane
from perdure.model.user import User
from perdure.ports import RestoreJournal, SnapshotStore
from perdure.restore.living import agents_of, living
from perdure.restore.plan import Conversation, Holder, Living, Policy, plan
from perdure.restore.refresh import moved_on, renewed, told
from perdure.snapshots.ask import Question
from perdure.snapshots.look import Looked, Surroundings, look


class Journal(SnapshotStore, RestoreJournal, Protocol):
    """Where snapshots are kept, and restores written down."""


class Ground(Struct, frozen=True, kw_only=True):
    """What a restore stands on."""

    store: Journal
    around: Surroundings
    #: Asks every server of a user, and these sockets besides.
    ask: Callable[[User, Sequence[str]], list[Question]]
    #: Where what belongs to a user is kept.
    state_dir_of: Callable[[User], str]
    #: What programs of a user find in their environment, when a server has to be started for them.
    environ_of: Callable[[User], Mapping[str, str]]
    #: Where the files lie that keep two restores of one server apart.
    lock_dir: str
    now: Callable[[], datetime]
    #: Tells whoever waits why nothing happens.
    say: Callable[[str], None] = lambda sentence: None


class Prepared(Struct, frozen=True, kw_only=True):
    """A plan, and what it was made from."""

    snapshot: Snapshot
    user: User
    living: Living
    plan: Plan
    #: What was asked for.
    scope: Scope = Scope()
    #: The snapshot as it was handed in, when it was made of several.
    composed: Snapshot | None = None

    @property
    def conversations(self) -> dict[Conversation, Holder]:
        """Who will be in which conversation when this is done."""
        found = {}
        for step, pane in zip(self.plan.steps, self._panes(), strict=True):
            if step.action in AGENT_ACTIONS and pane.identity and pane.identity.conversation:
                key = (pane.identity.agent, pane.identity.profile, pane.identity.conversation)
                found[key] = Holder(place=f"{step.target} on {self.plan.server.socket}")
        return found

    def _panes(self) -> Iterable[Pane]:
        panes = {pane.id: pane for pane in self.snapshot.topology.panes}
        return (panes[step.pane] for step in self.plan.steps)


def prepare(
    snapshot: Snapshot,
    user: User,
    policy: Policy,
    ground: Ground,
    taken: Mapping[Conversation, Holder] | None = None,
    *,
    is_composed: bool = False,
) -> Prepared:
    """Look at what is there, and plan. `taken` are conversations other restores of this run give to their panes.

    `is_composed` says that the snapshot is not as it was saved: what a restore of the saved one made is not of this one.

    Raises `Unanswered` when a server is there and does not tell what it holds.
    """
    config = ground.around.config
    known = roster(config.agents)
    composed = snapshot if is_composed else None
    captures = _captures(user, snapshot.server, ground)
    process = next((each.topology.process for each in captures if each.server.key == snapshot.server.key), None)
    found, since = living(
        snapshot,
        captures,
        lambda: read_processes(known.environment),
        known,
        ground.around.view_of(user),
        user,
        ground.around.me,
        interrupted=interrupted(ground.store, snapshot, composed, process),
        taken=(taken or {}).keys(),
        settled=moved_on(snapshot, ground.store),
    )
    if policy.as_saved:
        saved = {pane.id: pane.identity.conversation for pane in snapshot.topology.panes if pane.identity}
        since = {pane: each for pane, each in since.items() if each.identity.conversation == saved[pane]}
    snapshot = renewed(snapshot, since)
    found = msgspec.structs.replace(
        found, held={**(taken or {}), **found.held}, made=made_before(ground.store, snapshot, composed, process)
    )
    adapters = known.called(agents_of(snapshot))
    planned = told(plan(snapshot, found, adapters, policy), since)
    return Prepared(snapshot=snapshot, user=user, living=found, plan=planned, scope=policy.scope, composed=composed)


def _captures(user: User, server: Server, ground: Ground) -> list[Capture]:
    """Return what the user's servers hold, as far as they tell; the one that is restored has to."""
    said = ""
    # One that is just ending is gone when it is asked again. Any other must not be taken for one that is gone.
    for _ in range(2):
        looked = look(ground.ask(user, [server.socket]), ground.around, ground.now())
        missed = next((each for each in looked if isinstance(each, Missed) and each.server.key == server.key), None)
        if missed is None or missed.reason in (Miss.NO_SERVER, Miss.EMPTY):
            return [each.capture for each in looked if isinstance(each, Looked)]
        said = missed.message
    raise Unanswered(said)


def interrupted(
    journal: RestoreJournal, snapshot: Snapshot, composed: Snapshot | None, process: ServerProcess | None
) -> Restore | None:
    """Return the restore of this server that did not come to its end, as far as what it made can still be there."""
    found = journal.open_restore(snapshot.server)
    if found is None or process is None or not _is_of(found, snapshot, composed):
        return None
    # One that was ended before it could say which server it works on had made nothing yet.
    return found if found.process == process else None


def made_before(
    journal: RestoreJournal, snapshot: Snapshot, composed: Snapshot | None, process: ServerProcess | None
) -> dict[str, str]:
    """Return the panes that earlier restores of this snapshot made on this very server, with those they are."""
    made: dict[str, str] = {}
    for each in reversed(journal.list_restores() if process is not None else ()):
        is_here = (each.server.key, each.process) == (snapshot.server.key, process)
        if is_here and _is_of(each, snapshot, composed):
            known = {pane: outcome.pane for pane, outcome in each.outcomes.items() if pane in each.making}
            made |= {now: pane for pane, now in known.items() if now is not None}
    return made


def _is_of(restore: Restore, snapshot: Snapshot, composed: Snapshot | None) -> bool:
    """Say whether a restore means by the ids of panes what is meant by them here.

    Of one snapshot several may be made: with what was in its places later, and with what is to come behind that.
    """
    if restore.snapshot != snapshot.id or (restore.composed is None) != (composed is None):
        return False
    return restore.composed is None or composed is None or restore.composed.topology == composed.topology
