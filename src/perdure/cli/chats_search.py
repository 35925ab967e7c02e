"""`perdure chats search WORDS…`: find what was said."""

from __future__ import annotations

import argparse

from perdure.chats.shown import found_row
from perdure.chats.targets import find_chat
from perdure.cli._setup import Setup, count_argument, with_setup
from perdure.cli.chats_setup import add_platform_argument, platform_of
from perdure.cli.render import age, print_json, print_marked, printable
from perdure.cli.spans import moment_argument
from perdure.errors import UsageError
from perdure.host.clock import now
from perdure.store.words import wanted

#: What comes behind `--` is words, even when it begins with a dash.
REST = True


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "perdure chats search [OPTIONS] WORD … [-- WORD …]"
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help='all of them: words, "phrases", beginnings*, one OR another, NOT this'
    )
    add_platform_argument(parser)
    parser.add_argument("--user", metavar="ID", help="only chats begun by this person, by id")
    parser.add_argument("--chat", metavar="TARGET", help="only in this chat, by id, title or key")
    parser.add_argument("--role", metavar="R", help="only what was said by user, assistant, tool …")
    parser.add_argument(
        "--since", type=moment_argument, metavar="WHEN", help="a date, a time, or 3d for three days ago"
    )
    parser.add_argument("--until", type=moment_argument, metavar="WHEN", help="only what was said before then")
    parser.add_argument("--limit", type=count_argument, default=20, metavar="N", help="the best N (20)")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    store, at = setup.store.chats, now()
    query = " ".join([*args.words, *(args.rest or ())])
    terms = [term for group in wanted(query).groups for term in group]
    since, until = (None if when is None else when(at) for when in (args.since, args.until))
    if since is not None and until is not None and since >= until:
        raise UsageError("--since is not before --until.")
    found = store.search_turns(
        query,
        platform=platform_of(setup, args),
        participant=args.user,
        chat=None if args.chat is None else find_chat(store, args.chat).id,
        role=args.role,
        since=since,
        until=until,
        limit=args.limit,
    )
    rows = [row for each in found if (row := found_row(store, each, terms)) is not None]
    if args.json:
        print_json({"found": rows})
    elif not rows:
        print("Nothing was found.")
    for row in () if args.json else rows:
        title = f"  {row.title}" if row.title else ""
        print(printable(f"{row.chat}{title}  {row.where}  [{row.position}] {row.role}  {age(row.at, at)}"))
        print_marked(row.snippet, row.marks)
    return 0


run = with_setup(_run)
