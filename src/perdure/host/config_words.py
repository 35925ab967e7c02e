"""Saying what is wrong with config.toml in words."""

from __future__ import annotations

import re


def shown(name: str) -> str:
    """Return the name of a table as it is shown: quoted when it has to be."""
    return name if name.isprintable() and " " not in name else repr(name)


_KINDS = {
    "str": "a text",
    "array": "a list",
    "object": "a table",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
}


def sentence(error: str) -> str:
    """Say in words what msgspec says of a field."""
    if found := re.fullmatch(r"Expected `([a-z]+)`, got `([a-z]+)`(?: - at `\$\.?([^`]*)`)?", error):
        expected, got, where = found.groups()
        return f"{where or 'it'} must be {_KINDS.get(expected, expected)}, not {_KINDS.get(got, got)}"
    if found := re.fullmatch(r"Object contains unknown field `([^`]*)`(?: - at `\$\.?([^`]*)`)?", error):
        return f"there is no field {found[1]!r}" + (f" in {found[2]}" if found[2] else "")
    if found := re.fullmatch(r"Object missing required field `([^`]*)`(?: - at `\$\.?([^`]*)`)?", error):
        return f"{found[1]} is missing" + (f" in {found[2]}" if found[2] else "")
    return error
