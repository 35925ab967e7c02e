"""`perdure restore [TARGET…]`: bring back what was there, and prove it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import datetime

import msgspec

from perdure.cli._setup import Setup, add_server_arguments, with_setup
from perdure.cli.parts import Part, apart, named_part, panes_meant, parts_of, selected
from perdure.cli.render import age, counted, print_json, print_table, printable
from perdure.cli.restoring import Lines, Progress, planned_of, row_of, say
from perdure.compat.resuming import resume_log, write_resume_log
from perdure.errors import NotFound, PerdureError, UsageError
from perdure.host.clock import now
from perdure.model.plan import Action, Outcome, Result, Step
from perdure.restore.left_out import ended_on_purpose, sentence, still_left_out
from perdure.restore.living import conversation_of
from perdure.restore.plan import LEFT_ALONE, Conversation, Holder, is_left_alone
from perdure.restore.prepare import Ground, Prepared, prepare
from perdure.restore.run import restore
from perdure.restore.shown import LeftOut, ProgressLine, Restored, StepRow, Summary, Trouble, summary_of


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
    parser.add_argument(
        "--progress", action="store_true", help="with --json: a line for the plan and each step as it is settled, too"
    )


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError("must be a number from 1 to 64")
    return int(text)


def _run(setup: Setup, args: argparse.Namespace) -> int:
    if args.progress and (args.dry_run or not args.json):
        raise UsageError("--progress goes with --json, and not with --dry-run, which makes no progress.")
    at = now()
    troubles: list[Trouble] = []
    if not args.dry_run:
        setup.store  # noqa: B018 - what cannot be written down cannot be gone on with: not begun at all
    parts = named_part(setup, args, at) if args.origin is not None else parts_of(setup, args, at, troubles)
    unknown = [target for target in args.targets if not any(panes_meant(part, target) for part in parts)]
    if unknown and not troubles:
        raise NotFound(f"No saved pane is {' or '.join(map(repr, unknown))}; `perdure restore --dry-run` lists them.")
    wanted = [chosen for part in parts if (chosen := selected(part, args.targets)) is not None]
    ground = ground_of(setup)
    if args.progress:
        ground = msgspec.structs.replace(ground, say=say)
    results: list[tuple[Prepared, list[Outcome]]] = []
    left_out: list[LeftOut] = []
    # By user: two people's conversations are two, whatever they are called.
    taken: dict[int, dict[Conversation, Holder]] = {}
    is_alone = len({part.snapshot.server.key for part in wanted}) == 1 and not troubles
    for part in wanted:
        theirs = taken.setdefault(part.user.uid, {})
        with apart(part.snapshot.server, troubles, is_alone=is_alone):
            if part.is_rest:
                ready = _prepared(part, ground, theirs)
                if part.is_offered:
                    left_out += ended_on_purpose(ready)
                if part.is_offered or _is_nothing(ready):
                    continue
                part = _without_what_is_there(part, ready, results if args.dry_run else ())
                if part.policy.panes != ready.scope.panes and _is_nothing(_prepared(part, ground, theirs)):
                    continue
            done = _one(part, ground, args, theirs, at, first=1 + sum(len(outcomes) for _, outcomes in results))
            results.append((done[0], [outcome for outcome in done[1] if _is_told(part, outcome.step)]))
            left_out += part.left_out
            _log(part, done[1], at, args)
            theirs |= done[0].conversations
    return _tell(results, troubles, still_left_out(left_out, _brought_back(results)), args)


run = with_setup(_run)


def _is_told(part: Part, step: Step) -> bool:
    """Say whether a step is worth telling: what a part beside others leaves to them was told with those."""
    return not part.is_rest or step.action not in (Action.LEAVE, Action.KEEP) or is_left_alone(step)


def _prepared(part: Part, ground: Ground, taken: dict[Conversation, Holder]) -> Prepared:
    return prepare(part.snapshot, part.user, part.policy, ground, taken, is_composed=part.is_composed)


def _without_what_is_there(part: Part, ready: Prepared, planned: Sequence[tuple[Prepared, list[Outcome]]]) -> Part:
    """Return a part that brings back what else is lost, without what is not: it needs no pane that says so.

    That is each conversation somebody is in by now, and, where nothing is done, what those before it would have made.
    """
    held = {key for key, holder in ready.living.held.items() if holder.process is None}
    places = {
        step.target
        for other, _ in planned
        for step in other.plan.steps
        if other.plan.server.key == ready.plan.server.key and step.pane in other.plan.making | other.plan.unfinished
    }
    targets = {step.pane: step.target for step in ready.plan.steps}
    panes = frozenset(
        pane.id
        for pane in ready.snapshot.topology.panes
        if part.policy.wants(pane.id)
        and (pane.id in ready.plan.panes or conversation_of(pane.identity) not in held)
        and targets[pane.id] not in places
    )
    if all(pane.id in panes for pane in ready.snapshot.topology.panes if part.policy.wants(pane.id)):
        return part
    left: Part = msgspec.structs.replace(part, policy=msgspec.structs.replace(part.policy, panes=panes))
    return left


def _is_nothing(ready: Prepared) -> bool:
    """Say whether there is nothing to do, and nothing to say of a conversation that is not running."""
    return ready.plan.is_done and not any(is_left_alone(step) for step in ready.plan.steps)


def _brought_back(results: Sequence[tuple[Prepared, list[Outcome]]]) -> set[tuple[str, str, str]]:
    """By user and agent the conversations that somebody is in, or will be, when all is done."""
    return {
        (ready.user.name, key[0], key[2]) for ready, _ in results for key in (*ready.conversations, *ready.living.held)
    }


def _log(part: Part, outcomes: Sequence[Outcome], at: datetime, args: argparse.Namespace) -> None:
    """Leave the log that the script behind an imported manifest would leave."""
    log = resume_log(part.snapshot, outcomes, at)
    if log is None or args.dry_run:
        return
    try:
        write_resume_log(part.user, log)
    except (OSError, PerdureError) as error:
        print(f"perdure: the resume log could not be written: {error}", file=sys.stderr)


def _one(
    part: Part, ground: Ground, args: argparse.Namespace, taken: dict[Conversation, Holder], at: datetime, *, first: int
) -> tuple[Prepared, list[Outcome]]:
    lines = Lines(first, lambda step: _is_told(part, step)) if args.progress else None

    def prepared() -> Prepared:
        ready = _prepared(part, ground, taken)
        if not args.json:
            _announce(part, ready, at)
        if lines is not None:
            lines.plan(ready)
        return ready

    if args.dry_run:
        ready = prepared()
        return ready, [planned_of(step) for step in ready.plan.steps]
    most = args.max_parallel or ground.around.config.restore.max_parallel
    try:
        with Progress(len(part.snapshot.topology.panes), shown=not args.json) as progress:
            report = progress.note if lines is None else lines.note
            return restore(part.snapshot.server, prepared, ground, most=most, report=report)
    except KeyboardInterrupt:
        print("perdure: interrupted; `perdure restore` goes on from here.", file=sys.stderr)
        raise


def ground_of(setup: Setup) -> Ground:
    """Return what a restore stands on in this process."""
    return Ground(
        store=setup.readable,
        around=setup.surroundings(),
        ask=setup.ask_user,
        state_dir_of=setup.state_dir_of,
        environ_of=setup.environ_of,
        lock_dir=setup.state_dir,
        now=now,
        say=lambda sentence: print(f"perdure: {sentence}.", file=sys.stderr),
    )


def _announce(part: Part, ready: Prepared, at: datetime) -> None:
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
    results: Sequence[tuple[Prepared, list[Outcome]]],
    troubles: Sequence[Trouble],
    left_out: Sequence[LeftOut],
    args: argparse.Namespace,
) -> int:
    rows = [
        row_of(number, ready, outcome)
        for number, (ready, outcome) in enumerate(
            ((ready, outcome) for ready, outcomes in results for outcome in outcomes), 1
        )
    ]
    # What an interrupted restore has made belongs to the one that goes on with it: it is told of once, as a whole.
    summary = summary_of((ready.plan.making | ready.plan.unfinished, outcomes) for ready, outcomes in results)
    if args.json:
        ids = tuple(ready.snapshot.id for ready, _ in results)
        restored = Restored(
            snapshot=ids[0] if ids else None,
            snapshots=ids,
            steps=tuple(rows),
            summary=summary,
            errors=tuple(troubles),
            left_out=tuple(left_out),
        )
        print_json(ProgressLine(restored=restored) if args.progress else restored)
    elif results:
        _print(rows, summary, args)
    for one in left_out:
        print(f"perdure: {printable(sentence(one))}.", file=sys.stderr)
    for each in troubles:
        print(f"perdure: {printable(f'{each.user} {each.socket}: {each.message}')}", file=sys.stderr)
    return 4 if troubles or summary.failed else 0


def _print(rows: Sequence[StepRow], summary: Summary, args: argparse.Namespace) -> None:
    shown = [row for row in rows if row.action not in (Action.KEEP, Action.LEAVE)]
    shown += [row for row in rows if row.action == Action.KEEP and LEFT_ALONE in row.why]
    if not shown:
        kept = sum(row.action == Action.KEEP for row in rows)
        print(f"Nothing to do: {counted(kept, 'pane')} there already.")
        return
    # Whose it is and where goes without saying where all is in one place.
    several = {"user": len({row.user for row in shown}) > 1, "server": len({row.socket for row in shown}) > 1}
    named = [name for name, is_needed in several.items() if is_needed]
    sockets = {row.socket for row in shown}
    is_plain = len({os.path.basename(socket) for socket in sockets}) == len(sockets)
    cells = [
        (
            *(
                {"user": row.user, "server": os.path.basename(row.socket) if is_plain else row.socket}[name]
                for name in named
            ),
            *(row.target, row.action, row.agent, row.conversation, row.result, row.why),
        )
        for row in shown
    ]
    columns = (*named, "pane", "action", "agent", "conversation", "result", "why")
    print_table(columns, cells, whole=(*named, "pane", "action", "result"), spare=("conversation",))
    _print_troubles(shown)
    if args.dry_run:
        planned = sum(row.result == Result.PLANNED for row in shown)
        print(f"\n{counted(planned, 'pane')} would be brought back; nothing was done.")
        return
    print(
        f"\n{counted(summary.created, 'pane')} made, {counted(summary.resumed, 'agent')} back"
        f" ({summary.verified} verified), {summary.skipped} skipped, {summary.failed} failed."
    )


def _print_troubles(rows: Sequence[StepRow]) -> None:
    """Print in full what a narrow table has to cut: why something is not as it was, and what the pane showed last."""
    odd = [row for row in rows if row.result in (Result.FAILED, Result.UNVERIFIED, Result.SKIPPED)]
    if sys.stdout.isatty():
        for row in odd:
            print(f"\n{printable(row.target)}: {printable(row.why)}")
    for row in odd:
        if row.screen:
            print(f"\n{printable(row.target)} showed last:")
            print("\n".join(f"  {printable(line)}" for line in row.screen))
