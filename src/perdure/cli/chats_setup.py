"""What the verbs of `perdure chats` share: which chat is meant, and chats as people and scripts get to see them.

Whoever is at the command line runs the store: nothing is kept from them but keys and tokens, which stand as `***`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from perdure.chats.source import description, platform_from, source_dict
from perdure.chats.targets import find_chat
from perdure.cli._setup import Setup
from perdure.cli.render import age, print_table
from perdure.host.clock import now
from perdure.model.chat import PLATFORMS, Chat, Tokens
from perdure.model.secrets import redact_text

if TYPE_CHECKING:
    from perdure.chats.service import Chats

#: Whatever people chose: it may hold anything.
_TEXTS = ("chat_name", "chat_topic", "user_name", "auto_thread_initial_name")
_COLUMNS = ("chat", "title", "platform", "where", "turns", "tokens", "used", "state")


class TokenRow(Struct, frozen=True, kw_only=True):
    """How many tokens."""

    input: int
    output: int
    total: int


class ChatRow(Struct, frozen=True, kw_only=True):
    """One chat."""

    id: str
    key: str
    title: str | None
    platform: str
    #: Where it is held and with whom, in a few words.
    where: str
    source: dict[str, Any]
    shared: bool
    open: bool
    suspended: bool
    opened_at: datetime
    used_at: datetime
    closed_at: datetime | None
    close_reason: str | None
    #: Closed by itself, and what was said in it is still to be handed on.
    owed: bool
    follows: str | None
    kinship: str | None
    turns: int
    model: str | None
    tokens: TokenRow
    by_model: Mapping[str, TokenRow]


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


def chat_row(chat: Chat) -> ChatRow:
    """Return a chat for scripts."""
    source = source_dict(chat.source)
    source |= {name: redact_text(source[name]) for name in _TEXTS if source.get(name)}
    return ChatRow(
        id=chat.id,
        key=chat.key,
        title=title_of(chat),
        platform=chat.source.platform,
        where=where(chat),
        source=source,
        shared=chat.shared,
        open=chat.is_open,
        suspended=chat.suspended,
        opened_at=chat.opened_at,
        used_at=chat.touched_at,
        closed_at=chat.closed_at,
        close_reason=chat.close_reason,
        owed=chat.is_owed,
        follows=chat.follows,
        kinship=chat.kinship,
        turns=chat.turns,
        model=chat.model,
        tokens=_token_row(chat.tokens),
        by_model={model: _token_row(tokens) for model, tokens in chat.by_model.items()},
    )


def print_chats(chats: Sequence[Chat], at: datetime) -> None:
    """Print chats as a table."""
    print_table(_COLUMNS, [_cells(chat, at) for chat in chats], whole=("chat",), spare=("tokens", "turns", "platform"))


def where(chat: Chat) -> str:
    """Return where a chat is held and with whom."""
    return redact_text(description(chat.source))


def title_of(chat: Chat) -> str | None:
    """Return a chat's title as it is shown."""
    return None if chat.title is None else redact_text(chat.title)


def state_of(chat: Chat) -> str:
    """Return whether a chat is open, and if not, why."""
    if chat.is_open:
        return "open, suspended" if chat.suspended else "open"
    return f"closed: {chat.close_reason}" if chat.close_reason else "closed"


def _cells(chat: Chat, at: datetime) -> list[object]:
    counts = [chat.turns, chat.tokens.total]
    place = [chat.source.platform, where(chat)]
    return [chat.id, title_of(chat), *place, *counts, age(chat.touched_at, at), state_of(chat)]


def _token_row(tokens: Tokens) -> TokenRow:
    return TokenRow(input=tokens.input, output=tokens.output, total=tokens.total)
