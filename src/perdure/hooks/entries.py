"""Entries of ours in lists of nested objects, whatever the text around them is written in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from perdure.agents.hooking import MARK, Entry
from perdure.hooks import marks
from perdure.hooks.problems import Unreadable, Unsuitable


class Codec(Protocol):
    """Edits of one kind of text; each leaves everything else in it as it is."""

    #: What a file that has to be made begins with.
    EMPTY: str
    #: Whether something new comes before what is in its list, instead of behind it.
    IN_FRONT: bool

    def load(self, text: str) -> object:
        """Return what the text says. Raises Unreadable."""

    def append(self, text: str, path: Sequence[str], value: object) -> str:
        """Return the text with one more item in the list at `path`, which is made if need be. Raises Unsuitable."""

    def remove_item(self, text: str, path: Sequence[str], index: int) -> str:
        """Return the text without an item of a list."""

    def remove_member(self, text: str, path: Sequence[str]) -> str:
        """Return the text without a member that holds nothing any more."""


class Found(NamedTuple):
    """An entry of ours in a document."""

    path: tuple[str, ...]
    place: int
    #: In one form, whatever the order of names.
    text: str


def find(data: object, entries: Sequence[Entry]) -> list[Found]:
    """Return what is ours, also where other versions had put it."""
    found = []
    for path in _lists(data, entries):
        items = _get(data, path)
        for index, item in enumerate(items if isinstance(items, list) else ()):
            text = _canonical(item)
            if marks.is_marked(text):
                found.append(Found(path, index, text))
    return found


def find_edited(codec: Codec, text: str | None, entries: Sequence[Entry]) -> list[Found]:
    """Return what is ours and was edited by somebody. Raises Unreadable."""
    found = find(codec.load(text), entries) if text is not None else []
    return [each for each in found if marks.is_edited(each.text)]


def is_current(data: object, entries: Sequence[Entry]) -> bool:
    """Say whether exactly these entries are there, besides what was edited."""
    there = sorted((each.path, marks.unstamped(each.text)) for each in _untouched(data, entries))
    return there == sorted((entry.path, _canonical(entry.value)) for entry in entries)


def install(codec: Codec, text: str | None, entries: Sequence[Entry]) -> str:
    """Return the text with these entries, and no others of ours; None is a file that is not there.

    Something of ours that was edited stays, and nothing is put beside it. Raises Unreadable, Unsuitable. What comes
    back has been read again, and the text restored from it.
    """
    edited = {each.path for each in find_edited(codec, text, entries)}
    entries = [entry for entry in entries if entry.path not in edited]
    if text is not None and edited and is_current(codec.load(text), entries):
        return text
    bare = None if text is None else uninstall(codec, text, entries)
    before = codec.EMPTY if bare is None else bare
    data = codec.load(before)
    expected = {} if data is None else _unshared(data)
    after = before
    try:
        for entry in reversed(entries) if codec.IN_FRONT else entries:
            value = _stamped(entry, _missing(data, entry.path) + (bare is None))
            after = codec.append(after, entry.path, value)
            _put(expected, entry.path, value, in_front=codec.IN_FRONT)
        is_right = codec.load(after) == expected and uninstall(codec, after, entries) == bare
    except Unreadable:
        is_right = False
    if not is_right:
        raise Unsuitable("is written in a way that cannot be edited without touching the rest")
    return after


def _stamped(entry: Entry, made: int) -> object:
    """Return the entry's value with its mark filled in, its names in their order."""
    mark = marks.mark_of(marks.stamped(_canonical(entry.value), made))
    return json.loads(json.dumps(entry.value).replace(MARK, mark))


def uninstall(codec: Codec, text: str, entries: Sequence[Entry]) -> str | None:
    """Return the text without anything of ours but what was edited, None when nothing is left of a file we made.

    Raises Unsuitable when something else would go with it.
    """
    while found := _untouched(codec.load(text), entries):
        path, index, entry = found[-1]
        text = _checked(codec, text, codec.remove_item(text, path, index), path, index)
        made = marks.made_around(entry)
        while path and made and not _get(codec.load(text), path):
            text = _checked(codec, text, codec.remove_member(text, path), path[:-1], path[-1])
            path, made = path[:-1], made - 1
        if not path and made and "".join(text.split()) in ("", "{}"):
            return None
    return text


def _untouched(data: object, entries: Sequence[Entry]) -> list[Found]:
    return [each for each in find(data, entries) if not marks.is_edited(each.text)]


def _checked(codec: Codec, before: str, after: str, path: Sequence[str], gone: int | str) -> str:
    """Return `after` when it says what `before` did, without one item or member of what is at `path`."""
    expected, said = codec.load(before), codec.load(after)
    holder: Any = _get(expected, path)
    del holder[gone]
    # Where lines are all there is, the last one leaves nothing behind, not an empty list.
    if said != expected and (holder or _get(said, path) or _without(said, path) != _without(expected, path)):
        raise Unsuitable("holds hooks of perdure's that cannot be taken out without touching the rest")
    return after


def _without(data: object, path: Sequence[str]) -> object:
    """Return a copy without what is at `path`."""
    if not path:
        return None
    copy = _unshared(data)
    holder: Any = _get(copy, path[:-1])
    holder.pop(path[-1], None)
    return copy


def _lists(data: object, entries: Sequence[Entry]) -> Iterator[tuple[str, ...]]:
    """Yield the places of lists that may hold something of ours."""
    for path in dict.fromkeys(entry.path[:-1] for entry in entries):
        holder = _get(data, path)
        if not path:
            yield from dict.fromkeys(entry.path for entry in entries if len(entry.path) == 1)
        elif isinstance(holder, Mapping):
            yield from ((*path, name) for name in holder if isinstance(name, str))


def _missing(data: object, path: Sequence[str]) -> int:
    """Return how many names of the path are not there. Raises Unsuitable when something else is in the way."""
    at = {} if data is None else data
    for depth, name in enumerate(path):
        if not isinstance(at, Mapping):
            raise Unsuitable(f"has {_named(path[:depth])} that is no object")
        if name not in at:
            return len(path) - depth
        at = at[name]
        if at is None and depth + 1 < len(path):
            at = {}
    if not isinstance(at, list):
        raise Unsuitable(f"has {_named(path)} that is no list")
    return 0


def _named(path: Sequence[str]) -> str:
    return f"a {'.'.join(path)!r}" if path else "a content"


def _get(data: object, path: Sequence[str]) -> object:
    for name in path:
        if not isinstance(data, Mapping):
            return None
        data = data.get(name)
    return data


def _unshared(data: object) -> Any:
    """Return a copy in which nothing is in two places: YAML has references, and with one more would change."""
    try:
        if isinstance(data, dict):
            return {name: _unshared(value) for name, value in data.items()}
        return [_unshared(value) for value in data] if isinstance(data, list) else data
    except RecursionError:
        raise Unsuitable("refers to itself") from None


def _put(data: Any, path: Sequence[str], value: object, *, in_front: bool) -> None:
    """Add to the list at `path` of a document that was found to be suitable."""
    for name in path[:-1]:
        if data.get(name) is None:
            data[name] = {}
        data = data[name]
    items = data.setdefault(path[-1], [])
    items.insert(0 if in_front else len(items), value)


def _canonical(value: object) -> str:
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""  # YAML knows things JSON does not; none of them is ours
