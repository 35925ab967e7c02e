"""Chats, and what was said in them, as programs get to see them: keys and tokens stand as `***`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from perdure.chats.source import description, source_dict
from perdure.errors import ChatDamaged, ChatNotFound
from perdure.model.chat import Chat, Found, Tokens, Turn
from perdure.model.decoding import converted
from perdure.model.secrets import mask_text, redact_data, redact_text
from perdure.ports import ChatStore
from perdure.store.search import text_of
from perdure.store.words import SEARCHABLE, Term, snippet

#: Whatever people chose: it may hold anything.
_TEXTS = ("chat_name", "chat_topic", "user_name", "auto_thread_initial_name")
#: Behind every turn a chat can have.
_BEHIND = 1 << 40
#: How far back it is looked for where a chat comes from.
_GENERATIONS = 50


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


class Ancestor(Struct, frozen=True, kw_only=True):
    """A chat that another follows from."""

    id: str
    #: How the later one follows from it.
    kinship: str | None
    title: str | None
    #: False when it was let go of.
    kept: bool


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


def where(chat: Chat) -> str:
    """Return where a chat is held and with whom."""
    return redact_text(description(chat.source))


def title_of(chat: Chat) -> str | None:
    """Return a chat's title as it is shown."""
    return None if chat.title is None else redact_text(chat.title)


def turn_row(turn: Turn) -> Turn:
    """Return a turn for scripts."""
    return converted(redact_data(msgspec.to_builtins(turn)), Turn)


def last_turns(store: ChatStore, id: str, count: int, *, hidden: bool, before: int | None = None) -> tuple[Turn, ...]:
    """Return the last turns of a chat, or the last before a position, so many where there are so many.

    All that come before them are not read.
    """
    end = store.load_turns(id, start=_BEHIND, limit=1).next
    end = end if before is None else min(end, before)
    back = count
    while True:
        # Positions that were taken back count too: it may have to be gone back further.
        start = max(1, end - back)
        loaded = store.load_turns(id, start=start, limit=max(0, end - start), hidden=hidden).turns
        turns = tuple(turn for turn in loaded if turn.position < end)
        if len(turns) >= count or start == 1:
            return turns[-count:]
        back *= 4


def ancestors(store: ChatStore, chat: Chat) -> Iterator[Ancestor]:
    """The chats a chat follows from, the nearest first."""
    seen = {chat.id}
    while chat.follows is not None and chat.follows not in seen and len(seen) <= _GENERATIONS:
        id, kinship, before = chat.follows, chat.kinship, None
        with suppress(ChatNotFound):
            before = store.get_chat(id)
        title = None if before is None else title_of(before)
        yield Ancestor(id=id, kinship=kinship, title=title, kept=before is not None)
        if before is None:
            return
        seen.add(id)
        chat = before


def found_row(store: ChatStore, found: Found, terms: Sequence[Term]) -> FoundRow | None:
    """Return what was found for scripts and people; None when it went meanwhile, or its chat cannot be read back."""
    try:
        chat = store.get_chat(found.chat)
        turns = store.load_turns(chat.id, start=found.position, limit=1).turns
    except (ChatNotFound, ChatDamaged):
        return None
    if not turns or turns[0].position != found.position:
        return None
    turn = turns[0]
    # Cut out only behind this: of a key that was cut first, nobody could tell that it is one. And by the names of
    # fields first, as `show` does: in the text alone nobody could tell what `password` was the name of.
    shown = converted(redact_data(msgspec.to_builtins({"content": turn.content, "tool_calls": turn.tool_calls})), _Said)
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


def _token_row(tokens: Tokens) -> TokenRow:
    return TokenRow(input=tokens.input, output=tokens.output, total=tokens.total)
