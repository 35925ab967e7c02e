"""Taking over chats from elsewhere: each once, only what is new of it, and nothing mixed up with what is here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from perdure import errors
from perdure.chats import titles
from perdure.chats.key import is_safe_id, is_safe_key, is_shared
from perdure.chats.naming import with_free_title
from perdure.chats.saying import MOST, checked
from perdure.chats.service import Chats
from perdure.chats.source import platform_from, source_from
from perdure.model.chat import LOCAL, Chat, Source, Tokens, Turn
from perdure.model.chat_import import (
    NOWHERE,
    Arrival,
    Arrived,
    Incoming,
    Mishap,
    Words,
    come_in_closed,
    is_same_place,
    news,
)
from perdure.model.chat_owner import owner_of
from perdure.model.text import is_storable
from perdure.ports import ChatStore
from perdure.store.chat_rows import ready

_CHANGED = (
    "what was said in chat {id} is not what it was when it came in, here or there: nothing was taken over, so that "
    "nothing is mixed up"
)

_DISPUTED = "more than one conversation is said to go on in session {id}: nobody can know whose it is, and it was not taken over"


class Taken(Struct, frozen=True, kw_only=True):
    """What became of chats that came in."""

    arrived: tuple[Arrived, ...] = ()
    #: What was not taken over.
    mishaps: tuple[Mishap, ...] = ()


def import_chats(chats: Chats, incoming: Iterable[Incoming | Mishap], *, dry_run: bool = False) -> Taken:
    """Write down chats that come from elsewhere, the oldest first, each in one transaction; with `dry_run`, only look.

    Keys are made anew, by the rules that are set. Of several chats of a key the one it is known to go on in, else the
    one that was used last, comes in open, and only when no chat of the key is open here. A session that is told of
    twice comes in once, with the fuller of its transcripts. What goes wrong with one costs only that one.
    """
    found = list(incoming)
    mishaps = [each for each in found if isinstance(each, Mishap)]
    coming: list[tuple[Chat, Incoming]] = []
    for each in _once(each for each in found if isinstance(each, Incoming)):
        if isinstance(each, Mishap):
            mishaps.append(each)
            continue
        try:
            chat = _chat_of(each, chats)
            possible = _possible(chat)
            mishaps += (Mishap(where=each.where, what=what) for what in _left_out(chat, possible))
            coming.append((possible, each))
        except errors.UsageError as error:
            mishaps.append(Mishap(where=each.where, what=error.message.rstrip(".")))
    arrived = []
    for chat, each in _one_open(sorted(coming, key=lambda pair: (pair[0].opened_at, pair[0].id))):
        try:
            words = _sayable(each.read(), each.where)
            one = _look(chats.store, chat, words) if dry_run else _write(chats.store, _keyed(chats, chat, each), words)
        except (errors.UsageError, errors.ImportFailed, errors.ChatDamaged) as error:
            mishaps.append(Mishap(where=each.where, what=error.message.rstrip(".")))
            continue
        mishaps += words.mishaps
        if one.result is Arrival.CHANGED:
            mishaps.append(Mishap(where=each.where, what=_CHANGED.format(id=chat.id)))
        arrived.append(one)
    return Taken(arrived=tuple(arrived), mishaps=tuple(mishaps))


def _sayable(words: Words, where: str) -> Words:
    """What was said apart from what could not be read back as it is; each such turn costs itself."""
    turns: list[Turn] = []
    mishaps = list(words.mishaps)
    for turn in words.turns:
        try:
            ready(*checked([turn]))
            turns.append(turn)
        except errors.UsageError as error:
            mishaps.append(Mishap(where=f"{where}, turn {turn.position}", what=error.message.rstrip(".")))
    if len(turns) == len(words.turns):
        return words
    # What is left out may come with a later import, behind what is here.
    return replace(words, turns=tuple(turns), next=None, mishaps=tuple(mishaps))


def _keyed(chats: Chats, chat: Chat, incoming: Incoming) -> Chat:
    """A chat with its key as of now: one that came in just before may have it, of another place or person."""
    is_certain = incoming.own is not None or not chat.source.chat_id
    return chat if is_certain else replace(chat, key=chats.key(chat.source))


def _write(store: ChatStore, chat: Chat, words: Words) -> Arrived:
    def write(title: str | None) -> Arrived:
        def change(here: Chat) -> Chat:
            return replace(_merged(chat, here), title=title)

        return store.import_chat(replace(chat, title=title), words.turns, next=words.next, change=change)

    def look() -> tuple[str, str | None]:
        wanted = chat
        with suppress(errors.ChatNotFound):
            # It may have another title here, and it may be only now that it is known whose it is.
            wanted = _merged(chat, store.get_chat(chat.id))
        return owner_of(wanted.source, shared=wanted.shared), wanted.title

    try:
        return store.import_chat(chat, words.turns, next=words.next, change=partial(_merged, chat))
    except errors.TitleTaken:
        # Counted on, as one that goes on under the same title is.
        return with_free_title(store, look, write)


def _look(store: ChatStore, chat: Chat, words: Words) -> Arrived:
    """What would become of a chat."""
    try:
        here = store.get_chat(chat.id)
    except errors.ChatNotFound:
        if not chat.is_open or store.open_chat(chat.key) is not None:
            chat = come_in_closed(chat)
        return Arrived(result=Arrival.NEW, chat=replace(chat, turns=_shown(words.turns)), added=len(words.turns))
    new = news(store.load_turns(chat.id, hidden=True).turns, words.turns)
    if new.result is Arrival.CHANGED or not is_same_place(here.source, chat.source):
        return Arrived(result=Arrival.CHANGED, chat=here)
    return Arrived(result=new.result, chat=_merged(chat, here), added=len(new.rest))


def _once(incoming: Iterable[Incoming]) -> Iterator[Incoming | Mishap]:
    """Every session once, with what is known of it in all places. One that is said to be two's is nobody's."""
    by_id: dict[str, list[Incoming]] = {}
    for each in incoming:
        by_id.setdefault(each.id, []).append(each)
    for several in by_id.values():
        first, *others = several
        if any(_disagree(one, other) for one, other in combinations(several, 2)):
            yield Mishap(where=first.where, what=_DISPUTED.format(id=ascii(first.id)[:80]))
            continue
        for other in others:
            first = _joined(first, other)
        yield first


def _disagree(one: Incoming, other: Incoming) -> bool:
    """Whether two tell of one session that it was held in different places, or by different people."""
    if one.origin.get("chat_id") in (None, "") or other.origin.get("chat_id") in (None, ""):
        return False
    both = ((one.origin.get(name), other.origin.get(name)) for name in ("platform", "chat_id", "thread_id", "user_id"))
    return any(str(here) != str(there) for here, there in both if here is not None and there is not None)


def _joined(one: Incoming, other: Incoming) -> Incoming:
    """One session that two places tell of. Who knows where it was held is believed, and who knows that it has ended."""
    placed, unplaced = (one, other) if one.origin.get("chat_id") else (other, one)
    ended = one if one.close_reason is not None else other
    is_open = ended.close_reason is None and None in (one.closed_at, other.closed_at)
    return replace(
        placed,
        opened_at=min(one.opened_at, other.opened_at),
        touched_at=max(one.touched_at, other.touched_at),
        read=partial(_fuller, one, other),
        origin=placed.origin or unplaced.origin,
        # A file that no index names only looks as if it had ended.
        closed_at=None if is_open else ended.closed_at,
        close_reason=ended.close_reason,
        is_current=one.is_current or other.is_current,
        title=one.title or other.title,
        follows=one.follows or other.follows,
        kinship=one.kinship or other.kinship,
        tokens=_more(one.tokens, other.tokens),
        by_model=one.by_model or other.by_model,
        model=one.model or other.model,
        suspended=one.suspended or other.suspended,
        resume_pending_at=one.resume_pending_at or other.resume_pending_at,
        extra=_both(one.extra, other.extra),
        own=one.own or other.own,
    )


def _fuller(one: Incoming, other: Incoming) -> Words:
    """The longer of two transcripts, whole: they are never put together."""
    read: list[Words] = []
    failure: errors.ImportFailed | None = None
    for each in (one, other):
        try:
            read.append(each.read())
        except errors.ImportFailed as error:
            failure = error
    if failure is not None:
        # The other may be the shorter one, and nobody would know.
        raise failure
    return max(read, key=lambda words: (len(words.turns), _details(words.turns)))


def _details(turns: Sequence[Turn]) -> int:
    return sum(len(turn.extra) + bool(turn.tool_name) for turn in turns)


def _chat_of(incoming: Incoming, chats: Chats) -> Chat:
    """The chat a session becomes. Raises `UsageError` for one that cannot be any."""
    if not (incoming.id.isascii() and is_safe_id(incoming.id)):
        raise errors.UsageError(f"{ascii(incoming.id)[:80]} cannot be the id of a chat.")
    if incoming.own is not None:
        if not is_safe_key(incoming.own.key):
            raise errors.UsageError(f"{ascii(incoming.own.key)[:80]} cannot be the key of a chat.")
        title = incoming.own.title
        return incoming.own if title is None or is_storable(title) else replace(incoming.own, title=_title(title))
    source = _source_of(incoming.origin)
    # Half of a place is nobody's: as if it were a person's direct messages, a group's might come to light there.
    is_placed = bool(source.chat_id)
    chat = Chat(
        id=incoming.id,
        key=chats.key(source) if is_placed else NOWHERE + incoming.id,
        source=source,
        opened_at=incoming.opened_at,
        touched_at=incoming.touched_at,
        closed_at=incoming.closed_at,
        close_reason=incoming.close_reason,
        title=_title(incoming.title),
        shared=is_placed and is_shared(source, chats.config.chats.keys),
        follows=incoming.follows,
        kinship=incoming.kinship,
        tokens=incoming.tokens,
        by_model=incoming.by_model,
        suspended=incoming.suspended,
        resume_pending_at=incoming.resume_pending_at,
        model=incoming.model,
        extra=incoming.extra,
    )
    return chat if chat.is_open and is_placed else come_in_closed(chat)


def _possible(chat: Chat) -> Chat:
    """A chat without what cannot be about any: that it comes after itself or no chat, or has used up less than nothing."""
    is_before = chat.follows is None or (is_storable(chat.follows) and chat.follows != chat.id)
    follows, kinship = (chat.follows, chat.kinship) if is_before else (None, None)
    by_model = {model: _countable(tokens) for model, tokens in chat.by_model.items()}
    return replace(chat, follows=follows, kinship=kinship, tokens=_countable(chat.tokens), by_model=by_model)


def _countable(tokens: Tokens) -> Tokens:
    input, output = (each if 0 <= each <= MOST else 0 for each in (tokens.input, tokens.output))
    return Tokens(input=input, output=output)


def _left_out(told: Chat, possible: Chat) -> Iterator[str]:
    if told.follows != possible.follows:
        before = "itself" if told.follows == told.id else f"{ascii(told.follows)[:80]}, which can be no chat"
        yield f"chat {told.id} is said to come after {before}: it came in without that"
    if (told.tokens, told.by_model) != (possible.tokens, possible.by_model):
        yield f"what chat {told.id} is said to have used of tokens cannot be: it came in without that"


def _source_of(origin: Mapping[str, object]) -> Source:
    if origin.get("chat_id") is not None:
        return source_from(origin)
    platform = platform_from(origin["platform"]) if origin.get("platform") else LOCAL
    return source_from({**origin, "platform": platform, "chat_id": ""})


def _title(text: str | None) -> str | None:
    """A title as it may be here: what is too long of it is left out."""
    if text is None:
        return None
    cut = text[: titles.TITLE_CHARACTERS * 4]
    return titles.clean_title(" ".join(cut.split())[: titles.TITLE_CHARACTERS])


def _one_open(coming: Sequence[tuple[Chat, Incoming]]) -> Iterator[tuple[Chat, Incoming]]:
    """The same chats, of each key one open at most."""
    chosen: dict[str, tuple[Chat, Incoming]] = {}
    for pair in coming:
        chat = pair[0]
        if chat.is_open and (chat.key not in chosen or _rank(pair) >= _rank(chosen[chat.key])):
            chosen[chat.key] = pair
    for chat, incoming in coming:
        is_chosen = chat.key in chosen and chosen[chat.key][0].id == chat.id
        yield (chat if is_chosen else come_in_closed(chat)), incoming


def _rank(pair: tuple[Chat, Incoming]) -> tuple[bool, float]:
    chat, incoming = pair
    return incoming.is_current, chat.touched_at.timestamp()


def _merged(coming: Chat, here: Chat) -> Chat:
    """What is known of a chat that came in before, now that it comes in again. What was done here since is kept."""
    is_newer = here.touched_at <= coming.touched_at
    by_model = {
        model: _more(here.by_model.get(model, Tokens()), coming.by_model.get(model, Tokens()))
        for model in {**coming.by_model, **here.by_model}
    }
    merged = replace(
        here,
        title=here.title or coming.title,
        follows=here.follows or coming.follows,
        kinship=here.kinship or coming.kinship,
        tokens=_more(here.tokens, coming.tokens),
        by_model=by_model,
        model=here.model or coming.model,
        extra=_both(here.extra, coming.extra) if is_newer else _both(coming.extra, here.extra),
    )
    if not here.is_open and not here.source.chat_id and coming.source.chat_id:
        merged = replace(merged, source=coming.source, key=coming.key, shared=coming.shared)
    if here.is_open and not coming.is_open and is_newer:
        # It has ended there, and nobody has gone on with it here.
        merged = replace(merged, closed_at=coming.closed_at, close_reason=coming.close_reason)
        merged = come_in_closed(merged)
    return merged


def _both(low: Mapping[str, object], high: Mapping[str, object]) -> dict[str, object]:
    """What either keeps; of what both keep, one within the other, `high` wins."""
    both = {**low, **high}
    for name in low.keys() & high.keys():
        first, second = low[name], high[name]
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            both[name] = {**first, **second}
    return both


def _more(one: Tokens, other: Tokens) -> Tokens:
    return Tokens(input=max(one.input, other.input), output=max(one.output, other.output))


def _shown(turns: Sequence[Turn]) -> int:
    return sum(not turn.hidden for turn in turns)
