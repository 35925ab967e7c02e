"""Edits of JSON text, comments allowed, that leave every other byte as it is.

Something new goes behind what is there; where there is nothing, right behind the opening bracket. Only whitespace in
front of it is added, so that taking it out again, with that whitespace, restores the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, NoReturn

from perdure.hooks.problems import Unreadable, Unsuitable

EMPTY = "{\n}\n"
IN_FRONT = False

_INDENT = "  "
_TOO_DEEP = "is nested too deeply"
#: Whitespace and comments. A comment that does not end is caught where something else is expected.
_GAP = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
#: A comment that ends the line it begins on.
_LINE_COMMENT = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/[ \t]*)(?=\r?\n)")


class Span(NamedTuple):
    """A value: where it is, what it is, and for objects and arrays what is in it."""

    start: int
    end: int
    value: object
    children: tuple[Child, ...] = ()


class Child(NamedTuple):
    """A member of an object, from its name on, or an item of an array."""

    start: int
    name: str | None
    span: Span


def load(text: str) -> object:
    """Return the value in the text, the caller's own. Raises Unreadable."""
    span = _parse(text)
    try:
        return _copied(span.value)
    except RecursionError:
        raise Unreadable(_TOO_DEEP) from None


def _copied(value: object) -> object:
    if isinstance(value, dict):
        return {name: _copied(each) for name, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def append(text: str, path: Sequence[str], value: object) -> str:
    """Return the text with `value` behind the items of the list at `path`; what is missing on the way is made."""
    at = _parse(text)
    for depth, name in enumerate(path):
        found = _member(at, name)
        if found is None:
            made: object = [value]
            for missing in reversed(path[depth + 1 :]):
                made = {missing: made}
            return _add(text, at, name, made)
        at = found.span
    return _add(text, at, None, value)


def remove_item(text: str, path: Sequence[str], index: int) -> str:
    """Return the text without one item of the list at `path`."""
    return _take(text, _at(text, path), index)


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return the text without what is at `path`."""
    holder = _at(text, path[:-1])
    index = next(place for place, child in enumerate(holder.children) if child.name == path[-1])
    return _take(text, holder, index)


def _at(text: str, path: Sequence[str]) -> Span:
    at = _parse(text)
    for name in path:
        found = _member(at, name)
        if found is None:
            raise Unsuitable(f"has no {name!r}")
        at = found.span
    return at


def _member(span: Span, name: str) -> Child | None:
    found = [child for child in span.children if child.name == name]
    if len(found) > 1:
        raise Unsuitable(f"names {name!r} twice")
    return found[0] if found else None


def _add(text: str, into: Span, name: str | None, value: object) -> str:
    label = "" if name is None else f"{json.dumps(name, ensure_ascii=False)}: "
    lead = _lead(text, into)
    if lead is None:
        new = label + json.dumps(value, ensure_ascii=False)
        lead = " " if into.children else ""
    else:
        new = label + json.dumps(value, ensure_ascii=False, indent=_unit(text, into, lead))
        new = new.replace("\n", lead)
    if not into.children:
        place = into.start + 1
        return text[:place] + lead + new + text[place:]
    end = into.children[-1].span.end
    # A comment behind the last one is about that one and stays with it.
    comment = _LINE_COMMENT.match(text, end) if "\n" in lead else None
    place = comment.end() if comment else end
    return f"{text[:end]},{text[end:place]}{lead}{new}{text[place:]}"


def _lead(text: str, into: Span) -> str | None:
    """Return the line break and indentation something new in there begins with, None when it is all on one line."""
    if "\n" not in text[into.start : into.end]:
        return None
    newline = "\r\n" if "\r\n" in text else "\n"
    for child in into.children:
        before = re.search(r"\n([ \t]*)\Z", text[into.start : child.start])
        if before:
            return newline + before[1]
    if into.children:
        return None
    return newline + _line_indent(text, into.start) + _INDENT


def _unit(text: str, into: Span, lead: str) -> str:
    """Return by how much the text indents."""
    inner, outer = lead.lstrip("\r\n"), _line_indent(text, into.start)
    return inner[len(outer) :] if inner.startswith(outer) and inner != outer else _INDENT


def _line_indent(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _take(text: str, holder: Span, index: int) -> str:
    child = holder.children[index]
    begin = text[: child.start]
    begin = begin[: _space_before(begin)]
    if len(holder.children) == 1:
        # All of the whitespace, however much: it came with it.
        inside = text[holder.start + 1 : child.start]
        return (text[: holder.start + 1] if not inside.strip(" \t\r\n") else begin) + text[child.span.end :]
    if index:
        previous = holder.children[index - 1].span.end
        comma = _comma(text, previous)
        return begin[:comma] + begin[comma + 1 :] + text[child.span.end :]
    comma = _comma(text, child.span.end)
    return begin + text[child.span.end : comma] + text[comma + 1 :].lstrip(" \t")


def _space_before(text: str) -> int:
    shorter = text.rstrip(" \t")
    return len(shorter.removesuffix("\n").removesuffix("\r") if shorter.endswith("\n") else shorter)


def _comma(text: str, place: int) -> int:
    found = _GAP.match(text, place)
    return found.end() if found else place


@lru_cache(maxsize=4)  # every edit is checked by reading the text before and after it
def _parse(text: str) -> Span:
    place = _skip(text, 1 if text.startswith("\ufeff") else 0)
    try:
        span = _value(text, place)
    except RecursionError:
        raise Unreadable(_TOO_DEEP) from None
    end = _skip(text, span.end)
    if end != len(text):
        _fail(text, end, "nothing more")
    return span


def _value(text: str, place: int) -> Span:
    opening = text[place : place + 1]
    if opening == "{":
        return _object(text, place)
    if opening == "[":
        return _array(text, place)
    if opening == '"':
        value, end = _string(text, place)
        return Span(place, end, value)
    found = _SCALAR.match(text, place)
    if not found or text[found.end() : found.end() + 1].isalnum():
        _fail(text, place, "a value")
    return Span(place, found.end(), _decoded(text, found))


def _object(text: str, start: int) -> Span:
    children: list[Child] = []
    place = _skip(text, start + 1)
    while text[place : place + 1] != "}":
        place = _next(text, place, "}", first=not children)
        name, end = _string(text, place)
        colon = _skip(text, end)
        if text[colon : colon + 1] != ":":
            _fail(text, colon, "a colon")
        span = _value(text, _skip(text, colon + 1))
        children.append(Child(place, name, span))
        place = _skip(text, span.end)
    return Span(start, place + 1, {child.name: child.span.value for child in children}, tuple(children))


def _array(text: str, start: int) -> Span:
    children: list[Child] = []
    place = _skip(text, start + 1)
    while text[place : place + 1] != "]":
        place = _next(text, place, "]", first=not children)
        span = _value(text, place)
        children.append(Child(place, None, span))
        place = _skip(text, span.end)
    return Span(start, place + 1, [child.span.value for child in children], tuple(children))


def _next(text: str, place: int, closing: str, *, first: bool) -> int:
    """Return where the next child begins, behind the comma that has to be there unless it is the first."""
    if first:
        return place
    if text[place : place + 1] != ",":
        _fail(text, place, f"a comma or {closing}")
    return _skip(text, place + 1)


def _string(text: str, place: int) -> tuple[str, int]:
    if text[place : place + 1] != '"':
        _fail(text, place, "a name in quotes")
    found = _STRING.match(text, place)
    if not found:
        _fail(text, place, "a text that ends on its line")
    return str(_decoded(text, found)), found.end()


def _decoded(text: str, found: re.Match[str]) -> object:
    try:
        return json.loads(found[0])
    except ValueError:  # an escape there is not, or a number too long for Python
        _fail(text, found.start(), "a value that means something")


def _skip(text: str, place: int) -> int:
    found = _GAP.match(text, place)
    return found.end() if found else place


def _fail(text: str, place: int, expected: str) -> NoReturn:
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    raise Unreadable(f"is not JSON: line {line}, column {column}, where {expected} was expected")
