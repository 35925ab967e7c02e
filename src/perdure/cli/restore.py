"""`perdure restore [TARGET…]`: bring back what was there, and prove it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

import msgspec
from msgspec import Struct

from perdure.cli._setup import Setup, add_server_arguments, with_setup
from perdure.cli.find import find_snapshot, panes_at
from perdure.cli.render import age, counted, print_json, print_table, printable
from perdure.cli.restoring import Progress, Row, row_of, summary_of
from perdure.compat.resuming import imported_commands, resume_log, write_resume_log
from perdure.errors import (
    NotFound,
    PerdureError,
    Refused,
    SnapshotDamaged,
    SnapshotNotFound,
    UsageError,
    failure_of,
)
from perdure.host.clock import now
from perdure.host.users import user_by_uid
from perdure.model.plan import Action, Outcome, Restore, Result
from perdure.model.server import Server
from perdure.model.snapshot import Snapshot
from perdure.model.user import User
from perdure.restore.choose import choose, saved_users, servers_of, unfinished, up_to_date
from perdure.restore.plan import Conversation, Holder, Policy
from perdure.restore.run import Ground, Prepared, prepare, restore
from perdure.snapshots.ask import ask
from perdure.snapshots.look import Looked
from perdure.tmux.sockets import canonical, owner_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="only SESSION[:WINDOW[.PANE]]; everything without")
    add_server_arguments(parser)
    parser.add_argument("--from", dest="origin", metavar="SNAPSHOT", help="an id, the beginning of one, or 'latest'")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and do nothing")
    parser.add_argument("--lazy", action="store_true", help="let every agent wait in its pane until Enter is pressed")
    parser.add_argument(
        "--programs", choices=("all", "none"), help="start every program again, or none; agents and shells always are"
    )
    parser.add_argument("--max-parallel", type=_count, metavar="N", help="how many agents may be starting at once (4)")


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError("must be a number from 1 to 64")
    return int(text)


class _Part(Struct, frozen=True, kw_only=True):
    """One server's share of the run."""

    snapshot: Snapshot
    user: User
    policy: Policy
    #: How the snapshot was chosen, where that is worth a word.
    said: str = ""
    #: The panes of a snapshot that is taken instead of a later one, which had so many less.
    dropped_from: int | None = None
    #: Nothing is said of it when there is nothing to do.
    is_rest: bool = False


class _Trouble(Struct, frozen=True, kw_only=True):
    """Why nothing is brought back on one server; it is nobody else's trouble."""

    user: str
    socket: str
    message: str
    code: int


def _run(setup: Setup, args: argparse.Namespace) -> int:
    at = now()
    troubles: list[_Trouble] = []
    parts = _named(setup, args, at) if args.origin is not None else _parts(setup, args, at, troubles)
    wanted = [selected for part in parts if (selected := _selected(part, args.targets)) is not None]
    if not wanted and not troubles:
        raise NotFound(f"No saved pane is {' or '.join(map(repr, args.targets))}; `perdure show latest` lists them.")
    ground = ground_of(setup)
    results: list[tuple[Prepared, list[Outcome]]] = []
    # By user: two people's conversations are two, whatever they are called.
    taken: dict[int, dict[Conversation, Holder]] = {}
    is_alone = len({part.snapshot.server.key for part in wanted}) == 1 and not troubles
    for part in wanted:
        theirs = taken.setdefault(part.user.uid, {})
        with _apart(part.snapshot.server, troubles, is_alone=is_alone):
            if part.is_rest and prepare(part.snapshot, part.user, part.policy, ground, theirs).plan.is_done:
                continue
            done = _one(part, ground, args, theirs, at)
            results.append(done)
            _log(part, done[1], at, args)
            theirs |= done[0].conversations
    return _tell(results, troubles, args)


@contextmanager
def _apart(server: Server, troubles: list[_Trouble], *, is_alone: bool) -> Iterator[None]:
    """Note what goes wrong with one server, so that the others come back; when there is no other it is raised."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (PerdureError, OSError) as error:
        if is_alone:
            raise
        known = error if isinstance(error, PerdureError) else failure_of(error)
        troubles.append(_Trouble(user=server.user, socket=server.socket, message=known.message, code=known.exit_code))


run = with_setup(_run)


def _log(part: _Part, outcomes: Sequence[Outcome], at: datetime, args: argparse.Namespace) -> None:
    """Leave the log that the script behind an imported manifest would leave."""
    log = resume_log(part.snapshot, outcomes, at)
    if log is None or args.dry_run:
        return
    try:
        write_resume_log(part.user, log)
    except (OSError, PerdureError) as error:
        print(f"perdure: the resume log could not be written: {error}", file=sys.stderr)


def _one(
    part: _Part, ground: Ground, args: argparse.Namespace, taken: dict[Conversation, Holder], at: datetime
) -> tuple[Prepared, list[Outcome]]:
    def prepared() -> Prepared:
        ready = prepare(part.snapshot, part.user, part.policy, ground, taken)
        if not args.json:
            _announce(part, ready, at)
        return ready

    if args.dry_run:
        ready = prepared()
        skipped = (Action.KEEP, Action.LEAVE)
        return ready, [
            Outcome(step=step, result=Result.SKIPPED if step.action in skipped else Result.PLANNED, why=step.why)
            for step in ready.plan.steps
        ]
    most = args.max_parallel or ground.around.config.restore.max_parallel
    with Progress(len(part.snapshot.topology.panes), shown=not args.json) as progress:
        return restore(part.snapshot.server, prepared, ground, most=most, report=progress.note)


def ground_of(setup: Setup) -> Ground:
    """Return what a restore stands on in this process."""
    return Ground(
        store=setup.store,
        around=setup.surroundings(),
        ask=setup.ask_user,
        state_dir_of=setup.state_dir_of,
        environ_of=setup.environ_of,
        lock_dir=setup.state_dir,
        now=now,
        say=lambda sentence: print(f"perdure: {sentence}.", file=sys.stderr),
    )


def _policy(setup: Setup, args: argparse.Namespace) -> Policy:
    return Policy(
        programs=_programs(setup, args.programs),
        lazy=args.lazy,
        private=frozenset(setup.config.restore.environment),
    )


def _parts(setup: Setup, args: argparse.Namespace, at: datetime, troubles: list[_Trouble]) -> list[_Part]:
    """Return the parts of all servers that are meant; those that can have none are among the troubles."""
    policy = _policy(setup, args)
    servers = _servers(setup, args, at)
    parts = []
    for server in servers:
        with _apart(server, troubles, is_alone=len(servers) == 1):
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
        uids += saved_users(setup.store, host=setup.host, socket=socket, now=at)
    return [
        server
        for uid in dict.fromkeys(uids)
        for server in servers_of(setup.store, host=setup.host, uid=uid, socket=socket, now=at)
    ]


def _named(setup: Setup, args: argparse.Namespace, at: datetime) -> list[_Part]:
    if args.all_users:
        raise UsageError("--from names one snapshot; it does not go with --all-users.")
    socket = canonical(args.socket) if args.socket is not None else None
    snapshot = find_snapshot(setup.store, args.origin, uid=setup.me.uid, socket=socket)
    user = _owner(setup, snapshot.server)
    if socket is not None and socket != snapshot.server.socket:
        server = msgspec.structs.replace(snapshot.server, socket=socket)
        snapshot = msgspec.structs.replace(snapshot, server=server)
    commands = imported_commands(snapshot, setup.config.restore.tmux_persist_flags)
    policy = msgspec.structs.replace(_policy(setup, args), commands=commands)
    part = _Part(snapshot=snapshot, user=user, policy=policy)
    begun = _going_on(setup, user, snapshot.server, _policy(setup, args), at)
    # Agents that wait for their turn in panes of an interrupted one would wait forever.
    return [part] if begun is None or begun.snapshot.id == snapshot.id else [begun, part]


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


def _chosen(setup: Setup, user: User, server: Server, policy: Policy, at: datetime) -> list[_Part]:
    """Return the parts of a server: the snapshot of it to bring back, and what came since where that is not the latest."""
    begun = _going_on(setup, user, server, policy, at)
    if begun is not None:
        return [begun]
    chosen = choose(setup.store.list_snapshots(server=server), now=at)
    if chosen is None:
        return []
    try:
        snapshot = setup.store.get_snapshot(chosen.snapshot)
        latest = setup.store.get_snapshot(chosen.latest) if chosen.latest is not None else None
    except SnapshotDamaged:
        # The manifest, or an older one, may still be read.
        readable = setup.store.latest_snapshot(server)
        if readable is None:
            raise
        said = f"{chosen.snapshot} cannot be read, so an earlier one is taken"
        return [_Part(snapshot=readable, user=user, policy=policy, said=said)]
    if latest is None:
        return [_Part(snapshot=snapshot, user=user, policy=policy)]
    return [
        _Part(snapshot=up_to_date(snapshot, latest), user=user, policy=policy, dropped_from=chosen.dropped_from),
        _Part(snapshot=latest, user=user, policy=policy, said="what came after it", is_rest=True),
    ]


def _going_on(setup: Setup, user: User, server: Server, policy: Policy, at: datetime) -> _Part | None:
    """Return the part that finishes an interrupted restore of a server, None when there is none to finish."""
    begun = _begun(setup, user, server, at)
    if begun is None:
        return None
    try:
        snapshot = setup.store.get_snapshot(begun.snapshot)
    except SnapshotNotFound:
        return None
    return _Part(snapshot=snapshot, user=user, policy=policy, said="going on with a restore that was interrupted")


def _begun(setup: Setup, user: User, server: Server, at: datetime) -> Restore | None:
    """Return the interrupted restore of a server to go on with. The server is asked only where there is one."""
    if setup.store.open_restore(server) is None:
        return None
    looked = setup.look([ask(server.socket, user, timeout=setup.config.tmux.timeout_seconds)], at)[0]
    process = looked.capture.topology.process if isinstance(looked, Looked) else None
    return unfinished(setup.store, server, process, at)


def _programs(setup: Setup, which: str | None) -> frozenset[str] | None:
    if which == "all":
        return None
    return frozenset() if which == "none" else frozenset(setup.config.restore.programs)


def _selected(part: _Part, targets: Sequence[str]) -> _Part | None:
    """Return the part with only what was asked for, None when nothing of it was."""
    if not targets:
        return part
    topology = part.snapshot.topology
    panes: set[str] = set()
    sessions: set[str] = set()
    for target in targets:
        try:
            panes |= {pane.id for pane in panes_at(topology, target)}
        except NotFound:
            continue
        name = target.partition(":")[0]
        sessions |= {session.id for session in topology.sessions if session.name == name or target.startswith("%")}
    if not panes:
        return None
    policy = msgspec.structs.replace(part.policy, panes=frozenset(panes), sessions=frozenset(sessions))
    return msgspec.structs.replace(part, policy=policy)


def _announce(part: _Part, ready: Prepared, at: datetime) -> None:
    snapshot = part.snapshot
    what = f"{counted(len(snapshot.topology.panes), 'pane')}, {counted(snapshot.topology.agents, 'agent')}"
    where = printable(f"{snapshot.server.user} {snapshot.server.socket}")
    print(f"{where}: {what}, seen {age(snapshot.last_seen_at, at)} ({snapshot.id})")
    if part.dropped_from is not None:
        there = ready.living.topology
        print(f"{where}: before the crash: {part.dropped_from} panes, now: {len(there.panes) if there else 0}")
    if part.said:
        print(f"{where}: {part.said}")


def _tell(
    results: Sequence[tuple[Prepared, list[Outcome]]], troubles: Sequence[_Trouble], args: argparse.Namespace
) -> int:
    rows = [
        row_of(number, ready, outcome)
        for number, (ready, outcome) in enumerate(
            ((ready, outcome) for ready, outcomes in results for outcome in outcomes), 1
        )
    ]
    summary = summary_of(results)
    if args.json:
        ids = [ready.snapshot.id for ready, _ in results]
        answer = {"snapshot": ids[0] if ids else None, "snapshots": ids, "steps": rows, "summary": summary}
        print_json({**answer, "errors": troubles})
    elif results:
        _print(rows, summary, args)
    for each in troubles:
        print(f"perdure: {printable(f'{each.user} {each.socket}: {each.message}')}", file=sys.stderr)
    return 4 if troubles or summary["failed"] else 0


def _print(rows: Sequence[Row], summary: Mapping[str, int], args: argparse.Namespace) -> None:
    shown = [row for row in rows if row.action not in (Action.KEEP, Action.LEAVE)]
    shown += [row for row in rows if row.action == Action.KEEP and "left alone" in row.why]
    if not shown:
        kept = sum(row.action == Action.KEEP for row in rows)
        print(f"Nothing to do: {counted(kept, 'pane')} there already.")
        return
    columns = ("user", "pane", "action", "agent", "conversation", "result", "why")
    cells = [(row.user, row.target, row.action, row.agent, row.conversation, row.result, row.why) for row in shown]
    # Whose it is goes without saying where all is one user's.
    first = 0 if len({row.user for row in shown}) > 1 else 1
    whole = ("user", "pane", "action", "result")
    print_table(columns[first:], [row[first:] for row in cells], whole=whole[first:], spare=("conversation",))
    for row in shown:
        if row.screen:
            print(f"\n{printable(row.target)} showed last:")
            print("\n".join(f"  {printable(line)}" for line in row.screen))
    if args.dry_run:
        print(f"\n{counted(len(shown), 'pane')} would be brought back; nothing was done.")
        return
    print(
        f"\n{counted(summary['created'], 'pane')} made, {counted(summary['resumed'], 'agent')} back"
        f" ({summary['verified']} verified), {summary['skipped']} skipped, {summary['failed']} failed."
    )
