"""What is wrong with a request, in words for whoever made it. Pure: what was noticed is handed in as msgspec says it."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: What is called the whole of a body.
BODY = "data"
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
    "datetime": "a moment with its zone, such as 2026-01-31T12:00:00Z",
}
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than", "==": "exactly"}
_COUNTED = {"str": "character", "array": "item", "object": "field"}

KIND = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_NUMBER = re.compile(r"Expected `(?:int|float|decimal)[^`]*` (>=|<=|>|<) (\S+)")
_LENGTH = re.compile(r"Expected `(str|array|object)[^`]*` of length (>=|<=|==) (\d+)")
_LOOKS = re.compile(r"Expected `str[^`]*` matching regex '(.+)'")
#: How it begins what it says of what is no JSON at all.
_UNREADABLE = ("Input data was truncated", "JSON is malformed", "Invalid UTF-8", "'utf-8' codec")
_MOMENT = "Invalid RFC3339 encoded datetime"
#: What has to look like something, in words. A test holds that there are no others.
LOOKS = {
    r"^%[0-9]{1,9}$": "a pane's id, such as %3",
    "^[0-9a-f]{1,16}$": "a snapshot's id, or how it begins: digits and the letters a to f",
    "^/": "a path from the root on",
    "^[0-9]{1,15}$": "what `next` of the page before says",
    "^[^/\\x00]+$": "a program's name, without a path",
}
_UNSAID = re.compile(r"Object missing required field `(.+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.+)`")
_NEEDED = re.compile(r"Missing required \w+ parameter '([^']+)'")


def missing(noticed: str) -> str | None:
    """Return the parameter that is said to be missing, None when it is about something else."""
    found = _NEEDED.match(noticed)
    return found[1] if found else None


def sentence(
    key: str, noticed: str, words: Sequence[str] = (), *, whole: str = "The body", known: Sequence[str] = ()
) -> str:
    """Return what is wrong with a field or parameter as a sentence; `words` are those that it may be, where they are few.

    `known` are the fields there are in it.
    """
    if found := _NEEDED.match(noticed) or _UNSAID.match(noticed):
        right = f"; it has to be {_one_of(words)}" if words else ""
        return f"`{_below(key, found[1])}` is missing{right}."
    if found := _UNKNOWN.match(noticed):
        there = f"; there {'are' if len(known) > 1 else 'is'} {', '.join(known)}" if known else ""
        return f"There is no field `{_below(key, found[1])}`{there}."
    what = whole if key == BODY else f"`{key}`"
    if noticed.startswith(_UNREADABLE):
        return f"{what} is no JSON that can be read."
    if key == BODY and noticed == repr(BODY):
        # The framework has looked for it in vain.
        return "A body is needed, which is JSON."
    if found := KIND.match(noticed):
        return f"{what} has to be {_kind(found[1])}, not {_kind(found[2])}."
    if found := _NUMBER.match(noticed):
        return f"{what} has to be {_BOUNDS[found[1]]} {found[2].removesuffix('.0')}."
    if found := _LENGTH.match(noticed):
        noun = _COUNTED[found[1]] + ("" if found[3] == "1" else "s")
        return f"{what} has to have {_BOUNDS[found[2]]} {found[3]} {noun}."
    if found := _LOOKS.match(noticed):
        # It is told with its backslashes doubled.
        looks = LOOKS.get(found[1].replace("\\\\", "\\"))
        return f"{what} has to be {looks}." if looks else f"{what} is not written as it has to be."
    if noticed.startswith(_MOMENT):
        return f"{what} has to be {_KINDS['datetime']}."
    if noticed.startswith("Invalid enum value"):
        return f"{what} has to be {_one_of(words)}." if words else f"{what} is none of the words it may be."
    return f"{what}: {noticed.rstrip('.')}."


def _below(key: str, field: str) -> str:
    return field if key == BODY else f"{key}.{field}"


def _one_of(words: Sequence[str]) -> str:
    return " or ".join(words) if len(words) < 3 else f"one of {', '.join(words)}"


def _kind(said: str) -> str:
    return " or ".join(_KINDS.get(each, each) for each in said.split(" | "))
