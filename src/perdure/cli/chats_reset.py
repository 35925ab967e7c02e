"""`perdure chats reset TARGET`: close an open chat, and begin another in its place."""

from __future__ import annotations

import argparse

from perdure.chats.naming import tip_of
from perdure.chats.ownership import Asker
from perdure.chats.shown import chat_row
from perdure.chats.targets import find_chat
from perdure.cli._setup import Setup, with_setup
from perdure.cli.chats_mirror import follow_in_mirror
from perdure.cli.chats_setup import add_target_argument, chats_of
from perdure.cli.render import print_json
from perdure.errors import Conflict


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target_argument(parser)


def _run(setup: Setup, args: argparse.Namespace) -> int:
    chats = chats_of(setup)
    chat = tip_of(chats.store, find_chat(chats.store, args.target))
    if not chat.is_open:
        current = chats.store.open_chat(chat.key)
        instead = f"; its conversation is in chat {current.id} now" if current is not None else ""
        raise Conflict(f"Chat {chat.id} is closed already{instead}.", chat=chat.id)
    begun = chats.renew(Asker.OPERATOR, chat.id)
    follow_in_mirror(setup)
    if args.json:
        print_json({"closed": chat_row(chats.store.get_chat(chat.id)), "begun": chat_row(begun)})
    else:
        print(f"{chat.id} is closed; {begun.id} was begun in its place.")
    return 0


run = with_setup(_run)
