"""Changing settings in config.toml and nothing else: every comment, and whatever is set besides, stays as it is. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from perdure.errors import Refused
from perdure.host.config import config_from

#: By table and name; None: what it is when nothing is said.
Settings = Mapping[str, Mapping[str, object]]


def with_settings(text: str, settings: Settings, path: str, *, home: str) -> str:
    """Return the text with these settings.

    Raises `ConfigError` when it says nothing that holds, before or after, and `Refused` when something else would
    change with them. `path` is only named in the message.
    """
    import tomlkit  # as much as everything else a daemon needs to read its configuration, and hardly ever wanted
    from tomlkit.exceptions import TOMLKitError

    config_from(text.encode(), path, home=home)
    expected = _with(tomllib.loads(text), settings)
    try:
        document = tomlkit.parse(text)
        for table, values in settings.items():
            if table not in document and any(value is not None for value in values.values()):
                document[table] = tomlkit.table()
            for name, value in values.items():
                if value is not None:
                    document[table][name] = value
                elif table in document:
                    document[table].pop(name, None)
        after = tomlkit.dumps(document)
        is_so = _said(tomllib.loads(after)) == _said(expected)
    except (TOMLKitError, tomllib.TOMLDecodeError) as error:
        raise Refused(f"The configuration {path} cannot be edited here: {error}.") from error
    if not is_so:
        raise Refused(
            f"The configuration {path} is written in a way that cannot be edited here without touching the rest."
        )
    config_from(after.encode(), path, home=home)
    return after


def _with(document: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """Return what the text is to say."""
    document = deepcopy(document)
    for table, values in settings.items():
        for name, value in values.items():
            if value is not None:
                document.setdefault(table, {})[name] = list(value) if isinstance(value, tuple) else value
            elif table in document:
                document[table].pop(name, None)
    return document


def _said(document: dict[str, Any]) -> dict[str, Any]:
    """Return what a document says: a table with nothing in it says nothing."""
    return {name: value for name, value in document.items() if value != {}}
