"""`perdure chats resume TARGET [--key KEY]`: let a chat be the open one of its conversation again."""

from __future__ import annotations

import argparse
from contextlib import suppress

from perdure.chats.naming import tip_of
from perdure.chats.ownership import Asker
from perdure.chats.service import Chats
from perdure.chats.shown import chat_row, where
from perdure.chats.targets import chat_of_key, find_chat
from perdure.cli._setup import Setup, with_setup
from perdure.cli.chats_mirror import follow_in_mirror
from perdure.cli.chats_setup import add_target_argument, chats_of
from perdure.cli.render import print_json, printable
from perdure.errors import ChatNotFound, Refused, UsageError
from perdure.model.chat import Chat
from perdure.model.chat_owner import owner_of, reach_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target_argument(parser)
    parser.add_argument(
        "--key", metavar="KEY", help="go on in this conversation; when it is held elsewhere, with a copy of the chat"
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="even when the conversation of --key is somebody else's, who can read it then",
    )


def _run(setup: Setup, args: argparse.Namespace) -> int:
    if args.anyway and args.key is None:
        raise UsageError("--anyway is about the conversation of --key.")
    chats = chats_of(setup)
    while True:
        chat = tip_of(chats.store, find_chat(chats.store, args.target))
        key = chat.key if args.key is None else args.key
        before = chats.store.open_chat(key) if key == chat.key else _conversation(chats, chat, key, anyway=args.anyway)
        is_open = before is not None and before.id == chat.id
        now_open = chat if is_open else _gone_on(chats, chat, key, before)
        if now_open is not None:
            break
    follow_in_mirror(setup)
    closed = None if is_open or before is None or not before.is_open else before.id
    if args.json:
        print_json({"chat": chat_row(now_open), "resumed": chat.id, "closed": closed, "changed": not is_open})
    else:
        print(printable(_sentence(chat, now_open, closed, is_open=is_open)))
    return 0


run = with_setup(_run)


def _gone_on(chats: Chats, chat: Chat, key: str, before: Chat | None) -> Chat | None:
    """Let a chat, or a copy, be the open one of a key; None when something has changed there since it was looked at."""
    if before is None or key == chat.key or _is_same_place(before, chat):
        current = None if before is None or not before.is_open else before
        return chats.store.switch_chat(chat, key, chats.now(), instead_of=current)
    # A chat stays where it was held: whoever writes elsewhere would not be taken for one it belongs to.
    return chats.branch(before.source, chat.id, asker=Asker.OPERATOR, key=key)


def _conversation(chats: Chats, chat: Chat, key: str, *, anyway: bool) -> Chat | None:
    """Return the chat a conversation is in, or was in last; None for one that is the chat's own and is new.

    Raises `Refused` when it is another person's: what was said in the chat would be theirs to read.
    """
    there = chat_of_key(chats.store, key)
    if there is None:
        with suppress(UsageError):  # its messages may be such as have no conversation by the rules set now
            if chats.key(chat.source) == key:
                return None
        raise ChatNotFound(f"No chat has the key {key[:200]!r}: nobody can tell whose conversation that would be.")
    if not anyway and _owner(there) != _owner(chat):
        raise Refused(
            f"The conversation {key} ({where(there)}) is not with whom chat {chat.id} ({where(chat)}) is with; "
            "with --anyway they can read all of it.",
            chat=there.id,
        )
    return there


def _owner(chat: Chat) -> str:
    return owner_of(chat.source, shared=chat.shared)


def _is_same_place(one: Chat, other: Chat) -> bool:
    reach = reach_of(one)
    return reach is not None and reach == reach_of(other)


def _sentence(chat: Chat, now_open: Chat, closed: str | None, *, is_open: bool) -> str:
    if is_open:
        return f"{chat.id} is open already."
    how = "goes on" if now_open.id == chat.id else f"goes on in a copy, {now_open.id},"
    return f"{chat.id} {how} in {now_open.key}{f'; {closed} was closed' if closed else ''}."
