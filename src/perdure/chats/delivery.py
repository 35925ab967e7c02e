"""Where an answer may go: `origin`, `local`, a platform, or a chat on it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from perdure.chats.source import platform_from
from perdure.errors import NotFound, UsageError
from perdure.model.chat import LOCAL, HomeChannel, Source
from perdure.model.chat_check import ORIGIN

#: What would be read as something else, in an id, and how it is written there.
_ESCAPES = {"%": "%25", ":": "%3A"}


class Target(Struct, frozen=True, kw_only=True):
    """Where something is to go, as it was asked for; `str` gives the words for it."""

    #: That of the origin is not known before there is one.
    platform: str = LOCAL
    #: None: the home channel of the platform.
    chat_id: str | None = None
    thread_id: str | None = None
    is_origin: bool = False

    def __str__(self) -> str:
        if self.is_origin:
            return ORIGIN
        parts = (self.platform, self.chat_id, self.thread_id)
        return ":".join(_escaped(part) for part in parts if part is not None)


class Destination(Struct, frozen=True, kw_only=True):
    """Where something goes: a chat on a platform, or files on this machine (`local`, without a chat)."""

    platform: str
    chat_id: str | None = None
    thread_id: str | None = None


def parse_target(text: str) -> Target:
    """Return what is meant by `origin`, `local`, `platform`, `platform:chat` or `platform:chat:thread`.

    A platform's case does not count, an id's does. A colon within an id is written `%3A`, a percent sign `%25`; rooms on
    Matrix, whose ids hold one, may be written as they are. What cannot be meant is a mistake, never a local file.
    """
    words = text.strip()
    if words.lower() == ORIGIN:
        return Target(is_origin=True)
    if not words:
        raise UsageError(f"There is nowhere to deliver to in {text!r}.")
    name, colon, rest = words.partition(":")
    platform = platform_from(name)
    if not colon:
        return Target(platform=platform)
    if platform == LOCAL:
        raise UsageError(f"{words!r} names a chat on this machine, which has none; local is enough.")
    chat, thread = _chat_and_thread(platform, rest)
    if not chat or thread == "":
        raise UsageError(f"{words!r} names no {'thread' if chat else 'chat'} after the colon.")
    return Target(platform=platform, chat_id=chat, thread_id=thread)


def resolve(target: Target, origin: Source | None, homes: Mapping[str, HomeChannel]) -> Destination:
    """Return where a target is, for a message from `origin`; what has no place to go to is a mistake that says so.

    Without an origin, what should go back there goes to local files: nobody is waiting elsewhere.
    """
    if target.is_origin:
        if origin is None or origin.platform == LOCAL:
            return Destination(platform=LOCAL)
        if not origin.chat_id:
            raise NotFound(f"The message from {origin.platform} does not tell which chat an answer goes to.")
        return Destination(platform=origin.platform, chat_id=origin.chat_id, thread_id=origin.thread_id)
    if target.platform == LOCAL:
        return Destination(platform=LOCAL)
    if target.chat_id is not None:
        return Destination(platform=target.platform, chat_id=target.chat_id, thread_id=target.thread_id)
    home = homes.get(target.platform)
    if home is None or not home.chat_id:
        raise NotFound(f"{target.platform} has no home channel; name a chat, as in {target.platform}:ID.")
    return Destination(platform=target.platform, chat_id=home.chat_id, thread_id=home.thread_id)


def _chat_and_thread(platform: str, rest: str) -> tuple[str, str | None]:
    if platform == "matrix" and rest.startswith(("!", "#", "@")):
        # `!room:server:port`, and threads begin with a dollar sign.
        chat, dollar, thread = rest.partition(":$")
        return _plain(chat), _plain(f"${thread}") if dollar else None
    chat, colon, thread = rest.partition(":")
    return _plain(chat), _plain(thread) if colon else None


def _plain(part: str) -> str:
    return re.sub("%25|%3[Aa]", lambda found: "%" if found[0] == "%25" else ":", part.strip())


def _escaped(part: str) -> str:
    return re.sub("[%:]", lambda found: _ESCAPES[found[0]], part)
