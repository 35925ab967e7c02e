"""What the verbs of `perdure chats` share: which chat is meant, and chats as people and scripts get to see them.

Whoever is at the command line runs the store: nothing is kept from them but keys and tokens, which stand as `***`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from perdure.chats.shown import title_of, where
from perdure.chats.source import platform_from
from perdure.chats.targets import find_chat
from perdure.cli._setup import Setup
from perdure.cli.render import age, print_table
from perdure.host.clock import now
from perdure.model.chat import PLATFORMS, Chat

if TYPE_CHECKING:
    from perdure.chats.service import Chats

#: How much is shown of where a chat is held; the names there have no end by themselves.
_PLACE = 200
_COLUMNS = ("chat", "title", "platform", "where", "turns", "tokens", "used", "state")


def add_target_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the argument that says which chat is meant."""
    parser.add_argument("target", metavar="TARGET", help="a chat's id, the beginning of one, its title or its key")


def add_platform_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the argument that narrows it to a platform."""
    parser.add_argument(
        "--platform", type=lambda text: text.strip().lower(), metavar="P", help="only chats on this platform"
    )


def platform_of(setup: Setup, args: argparse.Namespace) -> str | None:
    """Return the platform it is narrowed to. Raises `UsageError` for one that nobody knows and no chat is on."""
    name: str | None = args.platform
    if name is None or name in PLATFORMS or name in setup.config.chats.platforms:
        return name
    # A gateway may have registered it for itself.
    if any(chat.source.platform == name for chat in setup.readable.chats.list_chats()):
        return name
    return platform_from(name)


def chats_of(setup: Setup) -> Chats:
    """Return the chats of the store, to be changed. Those whose jobs run are kept from being reset by themselves."""
    # Only for verbs that change something: the others need none of it.
    from perdure.chats.service import Chats
    from perdure.cli.jobs_setup import jobs_of

    return Chats(setup.store.chats, setup.config, now, has_jobs=jobs_of(setup).has_running)


def target_of(setup: Setup, args: argparse.Namespace) -> Chat:
    """Return the chat that is meant, for a verb that only looks."""
    return find_chat(setup.readable.chats, args.target)


def print_chats(chats: Sequence[Chat], at: datetime) -> None:
    """Print chats as a table."""
    print_table(_COLUMNS, [_cells(chat, at) for chat in chats], whole=("chat",), spare=("tokens", "turns", "platform"))


def state_of(chat: Chat) -> str:
    """Return whether a chat is open, and if not, why."""
    if chat.is_open:
        return "open, suspended" if chat.suspended else "open"
    return f"closed: {chat.close_reason}" if chat.close_reason else "closed"


def _cells(chat: Chat, at: datetime) -> list[object]:
    counts = [chat.turns, chat.tokens.total]
    place = [chat.source.platform, _short(where(chat))]
    return [chat.id, title_of(chat), *place, *counts, age(chat.touched_at, at), state_of(chat)]


def _short(place: str) -> str:
    # People and platforms choose these names, and no table may be as wide as the longest: every line would be.
    return place if len(place) <= _PLACE else f"{place[: _PLACE - 1]}…"
