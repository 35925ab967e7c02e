"""`perdure chats title TARGET [TEXT | --clear]`: what a chat is called."""

from __future__ import annotations

import argparse
import sys

from perdure.chats.ownership import Asker
from perdure.chats.shown import title_of
from perdure.chats.titles import clean_title
from perdure.cli._setup import Setup, with_setup
from perdure.cli.chats_setup import add_target_argument, chats_of, target_of
from perdure.cli.render import print_json, printable
from perdure.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target_argument(parser)
    parser.add_argument("text", nargs="?", metavar="TEXT", help="what to call it; without it the title is printed")
    parser.add_argument("--clear", action="store_true", help="take the title away")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    if args.clear and args.text is not None:
        raise UsageError("Either a title or --clear.")
    if args.text is not None and clean_title(args.text) is None:
        raise UsageError("Nothing is left of this title; --clear takes one away.")
    chat = target_of(setup, args)
    if args.clear or args.text is not None:
        chat = chats_of(setup).set_title(Asker.OPERATOR, chat.id, args.text or "")
    title = title_of(chat)
    if args.json:
        print_json({"id": chat.id, "title": title})
    elif title is not None:
        print(printable(title))
    elif args.clear:
        print(f"{chat.id} has no title now.")
    else:
        print(f"perdure: {chat.id} has no title.", file=sys.stderr)
    return 0


run = with_setup(_run)
