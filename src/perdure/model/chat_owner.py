"""Whose a chat is, as text that compares: where it was held, who took part, and in whose name its title is unique.

Nothing here is a secret or a proof: a gateway vouches for what it says in a `Source`.
"""

from __future__ import annotations

import json

from perdure.model.chat import LOCAL, Source
from perdure.model.whatsapp_id import plain_id

#: Where one id has many forms.
WHATSAPP = "whatsapp"
_DEFAULT_PROFILE = "default"


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


def reach_of(source: Source, *, shared: bool) -> str | None:
    """Return what a chat is reached by: its place when it is everybody's there, else its place and its person.

    None when one of them is not known: then nobody reaches it but whoever runs the store.
    """
    place = place_of(source)
    if place is None or shared:
        return place
    person = participant_of(source)
    return None if person is None else _text(place, person)


def reaches_of(source: Source) -> tuple[str, ...]:
    """Return everything by which whoever wrote from there reaches chats; () for nothing."""
    found = (reach_of(source, shared=True), reach_of(source, shared=False))
    return tuple(each for each in found if each is not None)


def owner_of(source: Source, *, shared: bool = False) -> str:
    """Return in whose name a title is unique: a person's on a platform and account, or a place's that is everybody's."""
    person = None if shared else participant_of(source)
    if person is None:
        return _place(source)
    return _text(source.platform, _profile(source), person)


def _place(source: Source) -> str:
    chat = plain_id(source.chat_id) if source.platform == WHATSAPP else source.chat_id
    return _text(source.platform, _profile(source), source.scope_id, chat, source.thread_id)


def _profile(source: Source) -> str | None:
    return None if source.profile == _DEFAULT_PROFILE else source.profile


def _text(*parts: str | None) -> str:
    # ASCII alone: both databases take it, whatever a platform puts into its ids.
    return json.dumps([part or "" for part in parts])
