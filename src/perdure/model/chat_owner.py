"""Whose a chat is, as text that compares: where it was held, who took part, and in whose name its title is unique.

Nothing here is a secret or a proof: a gateway vouches for what it says in a `Source`.
"""

from __future__ import annotations

import json

from msgspec.structs import replace

from perdure.model.chat import LOCAL, Chat, Source
from perdure.model.chat_import import NOWHERE
from perdure.model.whatsapp_id import plain_id

#: Where one id has many forms.
WHATSAPP = "whatsapp"
_DEFAULT_PROFILE = "default"
_DM = "dm"


def participant_of(source: Source) -> str | None:
    """Return the lasting id of who wrote, None when nobody can be told."""
    # Whoever may use the machine itself is one person.
    person = source.user_id_alt or source.user_id or (LOCAL if source.platform == LOCAL else None)
    return plain_id(person) if person and source.platform == WHATSAPP else person


def place_of(source: Source) -> str | None:
    """Return what is the same for all messages of one chat or thread of one account; None for nowhere."""
    if not source.platform or not source.chat_id:
        return None
    return _place(source)


def reach_of(chat: Chat) -> str | None:
    """Return what a chat is reached by: its place when it is everybody's there, else its place and its person.

    None when one of them is not known: then nobody reaches it but whoever runs the store. Direct messages of which nobody
    has said who wrote them are theirs whose id the chat has, if anybody's.
    """
    source = chat.source
    if chat.shared:
        return place_of(source)
    if chat.key.startswith(NOWHERE):
        return None
    person = participant_of(source)
    if person is not None:
        return _reach(source, person, alone=not source.user_id_alt)
    return _reach(source, source.chat_id, alone=True) if source.chat_type == _DM and source.chat_id else None


def reaches_of(source: Source) -> tuple[str, ...]:
    """Return everything by which whoever wrote from there reaches chats; () for nothing.

    That is by the lasting id (`user_id_alt`, or the only one that was told), and where only one id was told of whoever
    began a chat, by either. What was begun by somebody with another lasting id is reached by nothing.
    """
    person = participant_of(source)
    found = [place_of(source)]
    if person is not None:
        found += [_reach(source, person, alone=alone) for alone in (False, True)]
        if source.user_id_alt and source.user_id:
            # Held with them under either id, where the chat has none.
            places = (source, replace(source, chat_id=source.chat_id or person))
            found += [_reach(each, source.user_id, alone=True) for each in places]
    return tuple(dict.fromkeys(each for each in found if each is not None))


def owner_of(source: Source, *, shared: bool = False) -> str:
    """Return in whose name a title is unique: a person's on a platform and account, or a place's that is everybody's."""
    person = None if shared else participant_of(source)
    if person is None:
        return _place(source)
    return _text(source.platform, _profile(source), person)


def owners_of(source: Source, *, shared: bool) -> tuple[str, ...]:
    """Return in whose names titles may be that whoever wrote has given, the one of today first."""
    told = (source, replace(source, user_id_alt=None)) if source.user_id else (source,)
    return tuple(dict.fromkeys(owner_of(each, shared=shared) for each in told))


def _reach(source: Source, person: str, *, alone: bool) -> str | None:
    """A place and a person in it; `alone` when that was the only id that was told of them."""
    person = plain_id(person) if source.platform == WHATSAPP else person
    if not source.chat_id and source.chat_type == _DM:
        # As in its key: it is held with whoever writes.
        source = replace(source, chat_id=person)
    place = place_of(source)
    return None if place is None else _text(place, person, *(["alone"] if alone else []))


def _place(source: Source) -> str:
    chat = plain_id(source.chat_id) if source.platform == WHATSAPP else source.chat_id
    return _text(source.platform, _profile(source), source.scope_id, chat, source.thread_id)


def _profile(source: Source) -> str | None:
    return None if source.profile == _DEFAULT_PROFILE else source.profile


def _text(*parts: str | None) -> str:
    # ASCII alone: both databases take it, whatever a platform puts into its ids.
    return json.dumps([part or "" for part in parts])
