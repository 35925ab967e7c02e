"""Reading `[chats]` of config.toml."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from perdure.host.config_words import sentence, shown
from perdure.model.chat import KeyRules, ResetMode, ResetPolicy
from perdure.model.config import ChatKeysConfig, ChatsConfig
from perdure.model.decoding import converted

_Kind = TypeVar("_Kind", ResetPolicy, ChatKeysConfig, ChatsConfig)
#: Fields that hold one of a few words: another is left standing, to be judged with everything else.
_WORDS = {"mode": ResetMode, "rules": KeyRules}


def read_chats(table: object) -> tuple[ChatsConfig, list[str]]:
    """Return what is set, and a sentence without its full stop for every mistake, each with the field it is about."""
    if not isinstance(table, dict):
        return ChatsConfig(), ["chats must be a table: [chats]"]
    if not table:
        return ChatsConfig(), []
    from perdure.model.chat_check import mistakes_in_chats

    wrong: list[str] = []
    tables = dict(table)
    # Taken one by one: otherwise only the first mistake would be said, and not in which of the policies it is.
    parts: dict[str, Any] = {
        "reset": _read("chats.reset", tables.pop("reset", {}), ResetPolicy, wrong),
        "keys": _read("chats.keys", tables.pop("keys", {}), ChatKeysConfig, wrong),
    }
    for name in ("reset_by_type", "reset_by_platform"):
        parts[name] = _policies(name, tables.pop(name, {}), wrong)
    chats = msgspec.structs.replace(_read("chats", tables, ChatsConfig, wrong), **parts)
    return chats, wrong + [f"chats.{each}" for each in mistakes_in_chats(chats)]


def _policies(name: str, tables: object, wrong: list[str]) -> dict[str, ResetPolicy]:
    if not isinstance(tables, dict):
        wrong.append(f"chats.{name} must be tables, such as [chats.{name}.some]")
        return {}
    return {each: _read(f"chats.{name}.{shown(each)}", table, ResetPolicy, wrong) for each, table in tables.items()}


def _read(where: str, table: object, kind: type[_Kind], wrong: list[str]) -> _Kind:
    fields = dict(table) if isinstance(table, dict) else {}
    odd = {
        name: fields.pop(name)
        for name, words in _WORDS.items()
        if name in kind.__struct_fields__ and isinstance(fields.get(name), str) and fields[name] not in tuple(words)
    }
    try:
        return msgspec.structs.replace(converted(fields if isinstance(table, dict) else table, kind), **odd)
    except msgspec.ValidationError as error:
        wrong.append(f"[{where}]: {sentence(str(error))}")
        return kind()
