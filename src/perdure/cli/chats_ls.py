"""`perdure chats ls`: chats, the one that was used last first."""

from __future__ import annotations

import argparse
from datetime import timedelta

from perdure.chats.shown import chat_row
from perdure.cli._setup import Setup, count_argument, with_setup
from perdure.cli.chats_setup import add_platform_argument, platform_of, print_chats
from perdure.cli.render import print_json
from perdure.host.clock import now
from perdure.model.chat import Chat, Source


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--open", dest="is_open", action="store_const", const=True, default=True, help="as without it")
    which.add_argument("--closed", dest="is_open", action="store_const", const=False, help="those that were closed")
    which.add_argument("--all", dest="is_open", action="store_const", const=None, help="both")
    add_platform_argument(parser)
    parser.add_argument("--user", metavar="U", help="only chats begun by this person, by id or name")
    parser.add_argument("--active", type=count_argument, metavar="MINUTES", help="only those used within that time")
    parser.add_argument("--limit", type=count_argument, metavar="N", help="only the first N")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    at, platform = now(), platform_of(setup, args)
    since = None if args.active is None else at - timedelta(minutes=args.active)
    is_narrowed = platform is not None or args.user is not None
    found = setup.readable.chats.list_chats(
        is_open=args.is_open, since=since, limit=None if is_narrowed else args.limit
    )
    shown = [chat for chat in found if _is_meant(chat, args)][: args.limit]
    if args.json:
        print_json({"chats": [chat_row(chat) for chat in shown]})
    elif shown:
        print_chats(shown, at)
    else:
        kind = {True: "open ", False: "closed ", None: ""}[args.is_open]
        also = " `perdure chats ls --all` lists closed ones too." if args.is_open else ""
        print(f"There is no {kind}chat like that.{also}")
    return 0


run = with_setup(_run)


def _is_meant(chat: Chat, args: argparse.Namespace) -> bool:
    return args.platform in (None, chat.source.platform) and (args.user is None or args.user in _names(chat.source))


def _names(source: Source) -> tuple[str | None, ...]:
    return source.user_id, source.user_id_alt, source.user_name
