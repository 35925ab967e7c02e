"""Which servers and snapshots a restore is about: what the arguments mean, each server apart from anybody's trouble."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from typing import Final

import msgspec
from msgspec import Struct

from perdure.cli._setup import Setup
from perdure.cli.find import find_snapshot, panes_at, part_at
from perdure.compat.resuming import imported_commands
from perdure.errors import (
    NotFound,
    PerdureError,
    Refused,
    SnapshotDamaged,
    SnapshotNotFound,
    UsageError,
    failure_of,
)
from perdure.host.boot import booted_at
from perdure.host.users import user_by_uid
from perdure.model.event import EventKind
from perdure.model.plan import Restore, Scope
from perdure.model.server import Server
from perdure.model.snapshot import Snapshot, whereabouts_of
from perdure.model.user import User
from perdure.ports import EventLog
from perdure.restore.choose import abandoned, choose, saved_users, servers_of, unfinished
from perdure.restore.lost import Lost, beside, ended_in_good_order, lost
from perdure.restore.merge import merged
from perdure.restore.plan import Policy
from perdure.restore.shown import LeftOut, Trouble
from perdure.snapshots.ask import ask
from perdure.snapshots.former import Past, readable
from perdure.snapshots.look import Looked
from perdure.tmux.sockets import canonical, owner_of

_ENDED_BEFORE: Final = "what ended with the tmux server before"
#: More events than there ever are of one kind.
_ALL: Final = 1_000_000


class Part(Struct, frozen=True, kw_only=True):
    """One server's share of the run."""

    snapshot: Snapshot
    #: It is not as it was saved, but made of several.
    is_composed: bool = False
    user: User
    policy: Policy
    #: How the snapshot was chosen, where that is worth a word.
    said: str = ""
    #: The panes of a snapshot that is taken instead of a later one, which had so many less.
    dropped_from: int | None = None
    #: What has no place in it any more.
    left_out: tuple[LeftOut, ...] = ()
    #: Nothing is said of it when there is nothing to do.
    is_rest: bool = False
    #: It is not brought back, since somebody ended it: it is said which conversations of it are not running.
    is_offered: bool = False


@contextmanager
def apart(server: Server, troubles: list[Trouble], *, is_alone: bool) -> Iterator[None]:
    """Note what goes wrong with one server, so that the others come back; when there is no other it is raised."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (PerdureError, OSError) as error:
        if is_alone:
            raise
        known = error if isinstance(error, PerdureError) else failure_of(error)
        troubles.append(Trouble(user=server.user, socket=server.socket, message=known.message, code=known.exit_code))


def _policy(setup: Setup, args: argparse.Namespace) -> Policy:
    return Policy(
        programs=_programs(setup, args.programs),
        lazy=args.lazy,
        private=frozenset(setup.config.restore.environment),
    )


def parts_of(setup: Setup, args: argparse.Namespace, at: datetime, troubles: list[Trouble]) -> list[Part]:
    """Return the parts of all servers that are meant; those that can have none are among the troubles."""
    policy = _policy(setup, args)
    servers = _servers(setup, args, at)
    parts = []
    for server in servers:
        with apart(server, troubles, is_alone=len(servers) == 1):
            parts += _chosen(setup, _owner(setup, server), server, policy, at)
    if not parts and not troubles:
        where = f" of {canonical(args.socket)}" if args.socket else ""
        raise SnapshotNotFound(
            f"Nothing is saved{where} that could be brought back; `perdure history` lists all there is."
        )
    return parts


def _servers(setup: Setup, args: argparse.Namespace, at: datetime) -> list[Server]:
    """Return the saved servers that are meant. After a boot no socket tells of their users, so the store does."""
    socket = canonical(args.socket) if args.socket is not None else None
    uids = [user.uid for user in setup.users(args)]
    if setup.me.uid == 0 and (args.all_users or (socket is not None and owner_of(socket) is None)):
        uids += saved_users(setup.readable, host=setup.host, socket=socket, now=at)
    return [
        server
        for uid in dict.fromkeys(uids)
        for server in servers_of(setup.readable, host=setup.host, uid=uid, socket=socket, now=at)
    ]


def named_part(setup: Setup, args: argparse.Namespace, at: datetime) -> list[Part]:
    """Return the part a snapshot named with --from is, behind one that has to be finished first."""
    if args.all_users:
        raise UsageError("--from names one snapshot; it does not go with --all-users.")
    socket = canonical(args.socket) if args.socket is not None else None
    snapshot = find_snapshot(setup.readable, args.origin, uid=setup.me.uid, socket=socket)
    user = _owner(setup, snapshot.server)
    if socket is not None and socket != snapshot.server.socket:
        server = msgspec.structs.replace(snapshot.server, socket=socket)
        snapshot = msgspec.structs.replace(snapshot, server=server)
    commands = imported_commands(snapshot, setup.config.restore.tmux_persist_flags)
    latest = next(iter(setup.readable.list_snapshots(server=snapshot.server, limit=1)), None)
    policy = msgspec.structs.replace(
        _policy(setup, args), commands=commands, as_saved=latest is None or latest.id != snapshot.id
    )
    part = Part(snapshot=snapshot, user=user, policy=policy)
    begun = _going_on(setup, user, snapshot.server, _policy(setup, args), at)
    # Agents that wait for their turn in panes of an interrupted one would wait forever.
    is_same = begun is not None and begun.snapshot.id == snapshot.id and not begun.is_composed
    return [part] if begun is None or is_same else [begun, part]


def _owner(setup: Setup, server: Server) -> User:
    """Return whose panes a snapshot has; root brings back anybody's, and nobody else another's."""
    if server.uid == setup.me.uid:
        return setup.me
    if setup.me.uid != 0:
        raise Refused(f"The snapshot is of {server.user}: only they, or root, can bring it back.")
    found = user_by_uid(server.uid)
    if found is None:
        raise NotFound(f"The snapshot is of {server.user} (uid {server.uid}), whom this machine does not know.")
    if found.name != server.user:
        # Numbers are given to others when an account is gone; what was said is not.
        raise Refused(f"The snapshot is of {server.user}; their number {server.uid} is that of {found.name} now.")
    return found


def _chosen(setup: Setup, user: User, server: Server, policy: Policy, at: datetime) -> list[Part]:
    """Return the parts of a server: what is to be finished first, what is to come back, and what may be lost beside that.

    Whoever goes on with an interrupted restore gets all that is lost besides, as if it had not been interrupted.
    """
    begun = _going_on(setup, user, server, policy, at)
    parts = [] if begun is None else [begun]
    best = _best(setup, user, server, policy, at)
    parts += best if begun is None else [msgspec.structs.replace(part, is_rest=True) for part in best]
    if not parts:
        return []
    past = Past(setup.readable)
    if begun is None:
        parts += _abandoned(setup, server, parts, past, at)
    return [*parts, *_ended_before(setup, server, parts, past, at)]


def _best(setup: Setup, user: User, server: Server, policy: Policy, at: datetime) -> list[Part]:
    """Return the snapshot of a server to bring back, and what came since where that is not the latest."""
    chosen = choose(setup.readable.list_snapshots(server=server), now=at)
    if chosen is None:
        return []
    try:
        snapshot = setup.readable.get_snapshot(chosen.snapshot)
        latest = setup.readable.get_snapshot(chosen.latest) if chosen.latest is not None else None
    except SnapshotDamaged:
        # The manifest, or an older one, may still be read.
        latest = setup.readable.latest_snapshot(server)
        if latest is None:
            raise
        said = f"{chosen.snapshot} cannot be read, so an earlier one is taken"
        return [Part(snapshot=latest, user=user, policy=policy, said=said)]
    if latest is None:
        return [Part(snapshot=snapshot, user=user, policy=policy)]
    main = merged(snapshot, latest)
    return [
        Part(
            snapshot=main.snapshot,
            is_composed=main.snapshot.topology != snapshot.topology,
            user=user,
            policy=policy,
            dropped_from=chosen.dropped_from,
            left_out=main.left_out,
        ),
        Part(snapshot=latest, user=user, policy=policy, said="what came after it", is_rest=True),
    ]


def _abandoned(setup: Setup, server: Server, parts: Sequence[Part], past: Past, at: datetime) -> Iterator[Part]:
    """Yield what a restore had not made when it was interrupted, and its server ended too."""
    store = setup.readable
    half = abandoned(store, server, at)
    snapshot = None if half is None else _snapshot_of(setup, half)
    if half is None or snapshot is None:
        return
    known = [part.snapshot for part in parts]
    later = (each.id for each in store.list_snapshots(server=server) if each.taken_at >= half.began_at)
    found = lost(snapshot, chain(map(whereabouts_of, known), past.of(later)), store.list_restores())
    panes = frozenset() if found is None else found.panes & half.making
    if found is None or not panes:
        return
    found = msgspec.structs.replace(found, panes=panes)
    yield _beside(parts, found, known, half, said="what a restore that was interrupted had not made")


def _beside(
    parts: Sequence[Part], found: Lost, known: Sequence[Snapshot], restore: Restore | None = None, *, said: str
) -> Part:
    """Return what was lost as a part that comes behind these."""
    snapshot = beside(found, (each.topology for each in known))
    scope = Scope() if restore is None or restore.scope is None else restore.scope
    policy = msgspec.structs.replace(
        parts[0].policy,
        panes=found.panes,
        sessions=found.sessions,
        commands=scope.commands,
        as_saved=scope.as_saved,
    )
    is_composed = snapshot.topology != found.snapshot.topology or (restore is not None and restore.composed is not None)
    return Part(snapshot=snapshot, is_composed=is_composed, user=parts[0].user, policy=policy, said=said, is_rest=True)


def _ended_before(setup: Setup, server: Server, parts: Sequence[Part], past: Past, at: datetime) -> Iterator[Part]:
    """Yield what ended with servers that were on this socket before, as far as these parts do not bring it back."""
    store = setup.readable
    known = [part.snapshot for part in parts]
    gone = past.former(store.list_snapshots(server=server), at)
    restores = store.list_restores() if gone else ()
    for each in gone:
        for last in readable(store, [each.last.id]):
            since = chain(map(whereabouts_of, known), past.of(later.id for later in each.since))
            found = lost(last, since, restores)
            if found is None:
                continue
            part = _beside(parts, found, known, said=_ENDED_BEFORE)
            if _was_ended(store, last):
                yield msgspec.structs.replace(part, snapshot=last, is_composed=False, is_offered=True)
                continue
            known.append(part.snapshot)
            yield part


def _was_ended(store: EventLog, snapshot: Snapshot) -> bool:
    """Return whether somebody ended a server, and not the machine that was shut down, which asks as politely."""
    deaths = store.read_events(limit=_ALL, kinds={EventKind.SERVER_DIED})
    return ended_in_good_order(snapshot, deaths) and snapshot.last_seen_at >= booted_at()


def _going_on(setup: Setup, user: User, server: Server, policy: Policy, at: datetime) -> Part | None:
    """Return the part that finishes an interrupted restore of a server, None when there is none to finish."""
    begun = _begun(setup, user, server, at)
    snapshot = None if begun is None else _snapshot_of(setup, begun)
    if begun is None or snapshot is None:
        return None
    if begun.scope is not None:
        # Of what was asked for then, and no more: the rest of it may have been closed on purpose.
        policy = msgspec.structs.replace(policy, **msgspec.structs.asdict(begun.scope))
    return Part(
        snapshot=snapshot,
        is_composed=begun.composed is not None,
        user=user,
        policy=policy,
        said="going on with a restore that was interrupted",
    )


def _snapshot_of(setup: Setup, restore: Restore) -> Snapshot | None:
    """Return what a restore was bringing back, where it was; None when that is gone."""
    try:
        snapshot = restore.composed or setup.readable.get_snapshot(restore.snapshot)
    except (SnapshotNotFound, SnapshotDamaged):
        return None
    here: Snapshot = msgspec.structs.replace(snapshot, server=restore.server)
    return here


def _begun(setup: Setup, user: User, server: Server, at: datetime) -> Restore | None:
    """Return the interrupted restore of a server to go on with. The server is asked only where there is one."""
    if setup.readable.open_restore(server) is None:
        return None
    looked = setup.look([ask(server.socket, user, timeout=setup.config.tmux.timeout_seconds)], at)[0]
    process = looked.capture.topology.process if isinstance(looked, Looked) else None
    return unfinished(setup.readable, server, process, at)


def _programs(setup: Setup, which: str | None) -> frozenset[str] | None:
    if which == "all":
        return None
    return frozenset() if which == "none" else frozenset(setup.config.restore.programs)


def panes_meant(part: Part, target: str) -> set[str]:
    """The panes of a part that a target means, none when it means none of them."""
    try:
        return {pane.id for pane in panes_at(part.snapshot.topology, target) if part.policy.wants(pane.id)}
    except NotFound:
        return set()


def selected(part: Part, targets: Sequence[str]) -> Part | None:
    """Return the part with only what was asked for, None when nothing of it was."""
    if not targets:
        return part
    panes: set[str] = set()
    sessions: set[str] = set()
    for target in targets:
        found = panes_meant(part, target)
        panes |= found
        if found:
            sessions |= part_at(part.snapshot.topology, target).sessions
    if not panes:
        return None
    policy = msgspec.structs.replace(part.policy, panes=frozenset(panes), sessions=frozenset(sessions))
    return msgspec.structs.replace(part, policy=policy)
