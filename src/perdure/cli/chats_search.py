"""`perdure chats search WORDS…`: find what was said."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from perdure.chats.targets import find_chat
from perdure.cli._setup import Setup, count_argument, with_setup
from perdure.cli.chats_setup import add_platform_argument, platform_of, title_of, where
from perdure.cli.render import age, print_json, print_marked, printable
from perdure.cli.spans import moment_argument
from perdure.errors import ChatNotFound, UsageError
from perdure.host.clock import now
from perdure.model.chat import Found
from perdure.model.secrets import mask_text, redact_data
from perdure.ports import ChatStore
from perdure.store.search import text_of
from perdure.store.words import SEARCHABLE, Term, snippet, wanted

#: What comes behind `--` is words, even when it begins with a dash.
REST = True


class FoundRow(Struct, frozen=True, kw_only=True):
    """Something that was found."""

    chat: str
    title: str | None
    platform: str
    where: str
    position: int
    role: str
    at: datetime
    snippet: str
    #: Where in the snippet words stand that were asked for: from, to.
    marks: tuple[tuple[int, int], ...]


class _Said(Struct, frozen=True):
    """What is searched of a turn."""

    content: Any
    tool_calls: tuple[Any, ...]


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
    rows = [row for each in found if (row := _row(store, each, terms)) is not None]
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


def _row(store: ChatStore, found: Found, terms: Sequence[Term]) -> FoundRow | None:
    """Return what was found for scripts and people; None when it was taken back or deleted meanwhile."""
    try:
        chat = store.get_chat(found.chat)
        turns = store.load_turns(chat.id, start=found.position, limit=1).turns
    except ChatNotFound:
        return None
    if not turns or turns[0].position != found.position:
        return None
    turn = turns[0]
    # Cut out only behind this: of a key that was cut first, nobody could tell that it is one. And by the names of
    # fields first, as `show` does: in the text alone nobody could tell what `password` was the name of.
    shown = convert(redact_data(to_builtins({"content": turn.content, "tool_calls": turn.tool_calls})), _Said)
    said = replace(turn, content=shown.content, tool_calls=shown.tool_calls)
    text, marks = snippet(mask_text(text_of(said)[:SEARCHABLE]), terms)
    return FoundRow(
        chat=chat.id,
        title=title_of(chat),
        platform=chat.source.platform,
        where=where(chat),
        position=turn.position,
        role=turn.role,
        at=turn.at,
        snippet=text,
        marks=marks,
    )
