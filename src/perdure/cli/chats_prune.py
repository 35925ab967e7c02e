"""`perdure chats prune`: let go of closed chats that nobody has used for long."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import timedelta

from perdure.chats.pruning import Choice, Pruned, choose, prune
from perdure.chats.retention import busy_by
from perdure.chats.shown import chat_row
from perdure.cli._setup import Setup, with_setup
from perdure.cli.chats_mirror import follow_in_mirror
from perdure.cli.chats_setup import add_platform_argument, platform_of, print_chats
from perdure.cli.jobs_setup import jobs_of
from perdure.cli.render import counted, local, print_json
from perdure.cli.spans import span_argument
from perdure.errors import UsageError
from perdure.host.clock import now
from perdure.model.chat import Chat


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--older-than",
        type=span_argument,
        metavar="TIME",
        help="neither used nor closed for so many days, or 30d, 12w, 36h; prune_days of [chats] without it",
    )
    add_platform_argument(parser)
    parser.add_argument(
        "--owed",
        action="store_true",
        help="also those that ended by themselves and were never handed on, for gateways that do not do that",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be let go of")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    at = now()
    before = at - (args.older_than or _configured(setup))
    store = (setup.readable if args.dry_run else setup.store).chats
    chosen = choose(
        store.list_chats(),
        before,
        platform=platform_of(setup, args),
        owed=args.owed or not setup.config.chats.keep_owed,
        is_busy=busy_by(jobs_of(setup, only_look=args.dry_run).has_running),
    )
    done = Pruned()
    if not args.dry_run:
        try:
            done = prune(store, chosen.doomed, before, at)
        finally:
            # Also where nothing went: one that was killed may have left files of what it let go of.
            follow_in_mirror(setup)
    gone = chosen.doomed if args.dry_run else done.gone
    if args.json:
        kept = {"owed": chosen.owed, "busy": chosen.busy, "continued": chosen.continued, "changed": done.kept}
        print_json(
            {
                "dry_run": args.dry_run,
                "before": before,
                "forgotten": [chat_row(chat) for chat in gone],
                "kept": {why: [chat.id for chat in chats] for why, chats in kept.items()},
            }
        )
        return 0
    if gone:
        print_chats(gone, at)
        print()
    for line in _summary(gone, chosen, done, f"before {local(before)}", is_dry=args.dry_run):
        print(line)
    return 0


run = with_setup(_run)


def _configured(setup: Setup) -> timedelta:
    days = setup.config.chats.prune_days
    if not days:
        raise UsageError("prune_days of [chats] is 0: say how old with --older-than.")
    return timedelta(days=days)


def _summary(gone: Sequence[Chat], chosen: Choice, done: Pruned, when: str, *, is_dry: bool) -> list[str]:
    turns = counted(sum(chat.turns for chat in gone), "turn")
    what = f"{counted(len(gone), 'chat')} with {turns}, last used {when}"
    lines = (
        [f"This would delete {what}." if is_dry else f"Deleted {what}."]
        if gone
        else [f"No chat closed {when} is to go."]
    )
    reasons = (
        (chosen.owed, "what was said there is still to be handed on (with --owed they go, too)"),
        (chosen.busy, "jobs of the conversation are running"),
        (chosen.continued, "the conversation goes on in a chat that is kept"),
        (done.kept, "used or continued in the meantime, or damaged"),
    )
    return lines + [f"Kept {counted(len(chats), 'chat')}: {why}." for chats, why in reasons if chats]
