"""Which conversation a message belongs to: the key, the same for all its messages and for no other's.

A key is segments joined by colons. What means something in a key, in a path or to a terminal is written `%XX` within a
segment, so two ids never make one key; ordinary ids stand as they are.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

from perdure.chats.whatsapp import NO_ALIASES, Aliases
from perdure.errors import UsageError
from perdure.model.chat import PLATFORMS, KeyRules, Source
from perdure.model.config import ChatKeysConfig

_DEFAULT_PROFILE = "default"
#: The namespace of whoever has one account only; no profile's, though one may be called so.
_MAIN = "main"
#: The type of chat in which one person writes with the gateway.
DM = "dm"

#: Fixed here, and not asked of the interpreter: the next one may know more characters, and a key has to stay the same.
_UNSEEN = r"\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
_SPECIAL = re.compile(rf"[:/\\%{_UNSEEN}]|\.(?=\.)|(?<=\.)\.")
#: A longer segment is named by its beginning and a digest: databases index no more than some 2700 bytes.
_SEGMENT_BYTES, _KEPT = 256, 64
#: Stands before a digest, and nowhere else: an escape is followed by two digits.
_DIGEST = "%~"


def key_of(
    source: Source, keys: ChatKeysConfig, aliases: Aliases = NO_ALIASES, *, scoped: bool = False, personal: bool = False
) -> str:
    """Return the key of the conversation a message belongs to, by the rules that are set.

    With `isolated`, messages of different conversations never have the same key, and one whose conversation cannot be
    told (a direct message without chat and sender, a group without an id) is refused. The earlier rules put everybody's
    direct messages on a platform into one conversation, as they always did. With `scoped` the scope is a part of it
    where ids are unique without, too; with `personal`, the sender is, of a direct message, or
    the chat once more where that is not told.
    """
    return ":".join(map(_segment, _segments(source, keys, aliases, scoped=scoped, personal=personal)))


def legacy_key_of(source: Source, keys: ChatKeysConfig, aliases: Aliases = NO_ALIASES) -> str:
    """Return the key as the programs write it that these rules come from, for files they read.

    It is that of `key_of` for most messages, but several conversations may share it: nothing is to be looked up by it.
    """
    unscoped = msgspec.structs.replace(source, scope_id=None)
    return ":".join(segment for segment in _segments(unscoped, keys, aliases) if segment)


def is_shared(source: Source, keys: ChatKeysConfig) -> bool:
    """Whether several people write in the conversation, so that it has to be said who does."""
    if source.chat_type == DM:
        return False
    if keys.rules != KeyRules.ISOLATED:
        return True
    return not (keys.thread_sessions_per_user if source.thread_id else keys.group_sessions_per_user)


def _segments(
    source: Source, keys: ChatKeysConfig, aliases: Aliases, *, scoped: bool = False, personal: bool = False
) -> list[str]:
    if keys.rules == KeyRules.ISOLATED:
        return _isolated(source, keys, aliases, scoped=scoped, personal=personal)
    head = ["agent", _MAIN, source.platform, source.chat_type]
    if source.chat_type != DM:
        return [*head, source.chat_id]
    by_chat = keys.rules == KeyRules.WHATSAPP_BY_CHAT and source.platform == "whatsapp" and source.chat_id
    return [*head, source.chat_id] if by_chat else head


def _isolated(source: Source, keys: ChatKeysConfig, aliases: Aliases, *, scoped: bool, personal: bool) -> list[str]:
    person = source.user_id_alt or source.user_id
    chat: str | None = source.chat_id
    if source.platform == "whatsapp":
        person = person and aliases.canonical(person)
        chat = aliases.canonical(source.chat_id) if source.chat_type == DM else chat
    if source.chat_type == DM:
        chat = chat or person
    if not chat:
        whose = "a chat or a sender" if source.chat_type == DM else "a chat"
        raise UsageError(
            f"A message on {source.platform} ({source.chat_type}) comes without the id of {whose}: "
            "it would share its conversation with strangers."
        )
    segments = ["agent", *_namespace(source, keys), source.platform, source.chat_type]
    segments += [*_scope(source, scoped=scoped), chat]
    if source.thread_id:
        segments.append(source.thread_id)
    if source.chat_type != DM:
        if person and not is_shared(source, keys):
            segments.append(person)
        elif source.thread_id:
            # Nobody's in particular. Without the empty segment it could be the chat of a person of that id.
            segments.append("")
    elif personal:
        # Behind an empty segment, which no thread has: else it could be the thread of that id.
        segments += ["", person or chat]
    return segments


def _namespace(source: Source, keys: ChatKeysConfig) -> list[str]:
    profile = (source.profile or keys.profile) if keys.multiplex_profiles else ""
    return [_MAIN] if not profile or profile == _DEFAULT_PROFILE else ["", profile] if profile == _MAIN else [profile]


def _scope(source: Source, *, scoped: bool) -> list[str]:
    """Return the scope as segments; nothing where ids are unique without. An empty segment stands nowhere else there."""
    is_needed = scoped or source.platform not in PLATFORMS
    return ["", source.scope_id] if source.scope_id and is_needed else []


def _segment(text: str) -> str:
    escaped = _SPECIAL.sub(_escaped, text)
    if len(raw := escaped.encode()) <= _SEGMENT_BYTES:
        return escaped
    return raw[:_KEPT].decode(errors="ignore") + _DIGEST + hashlib.sha256(raw).hexdigest()


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode(errors="surrogatepass"))


#: Nothing in a name a file system might take for something else: neither case nor composition of letters counts there.
_UNSAFE = re.compile(rb"[^a-z0-9_-]")
_CONTROL = re.compile(f"[{_UNSEEN}]")
_DRIVE = re.compile(r"[A-Za-z]:")
#: Hides a file, leads a directory up, or is not kept at all.
_LOST_DOT = re.compile(r"^\.|\.\Z|(?<=\.)\.")
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?![^.])")
_FILE_BYTES, _FILE_KEPT = 135, 70


def file_name_of(key: str) -> str:
    """Return a name for a file about the key: safe on every file system, no other key's, at most 135 ASCII characters.

    A colon becomes a dot and everything but small letters, digits, `_` and `-` is written `%xx`; a long name ends in a
    digest after `~`.
    """
    raw = key.encode(errors="surrogatepass")
    name = ".".join(_UNSAFE.sub(lambda found: b"%%%02x" % found[0][0], part).decode() for part in raw.split(b":"))
    name = _LOST_DOT.sub("%3a", name)
    if _DEVICES.match(name):
        name = f"%{ord(name[0]):02x}{name[1:]}"
    if len(name) > _FILE_BYTES:
        name = f"{name[:_FILE_KEPT]}~{hashlib.sha256(raw).hexdigest()}"
    return name or "%"


def is_safe_id(chat_id: str) -> bool:
    """Whether an id read from a file may become a part of a path: one plain name that leads nowhere else."""
    return _is_plain(chat_id) and not re.search(r"[/\\]", chat_id) and chat_id != "."


def is_safe_key(key: str) -> bool:
    """Whether a key read from a file may be taken as it is; a slash within it is allowed."""
    return _is_plain(key) and not key.startswith(("/", "\\"))


def _is_plain(text: str) -> bool:
    return 0 < len(text) <= 2048 and ".." not in text and not _DRIVE.match(text) and not _CONTROL.search(text)
