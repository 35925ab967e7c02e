"""Edits of YAML text that leave every other byte as it is.

The text is read by the parser the agent itself uses, which tells where everything stands. Into something that is
written in lines new lines go before the first one there; into something in brackets, behind the opening one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import yaml
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from perdure.hooks import lines
from perdure.hooks.problems import Unreadable, Unsuitable

EMPTY = ""
IN_FRONT = True

#: The one in C does the same and is much faster, but counts places in a way of its own.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INDENT = "  "
#: Nobody's settings are longer, deeper, or refer to more.
_LONGEST, _DEEPEST, _MOST = 1 << 20, 100, 1 << 16
_NOTHING = "tag:yaml.org,2002:null"


def load(text: str) -> object:
    """Return what the text says. Raises Unreadable."""
    try:
        _see_bounds(text)
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise Unreadable(f"is not YAML{_place(error)}") from None
    except (ValueError, RecursionError):  # a date there is not, a key that has no end
        raise Unreadable("is not YAML that can be read") from None


@lru_cache(maxsize=4)  # every edit is checked by reading the text before and after it
def _see_bounds(text: str) -> None:
    """See that the text can be read: what nests too deeply ends the process, and references can mean any amount."""
    if len(text) > _LONGEST:
        raise Unreadable("is too large for settings")
    # For every collection that is open its name, if it has one, and how much is in it; and what names stand for.
    open_ones: list[tuple[str | None, int]] = [(None, 0)]
    amounts: dict[str, int] = {}
    referred = 0
    for event in yaml.parse(text, Loader=_Loader):
        anchor, amount = getattr(event, "anchor", None), 1
        if isinstance(event, CollectionStartEvent):
            open_ones.append((anchor, 1))
            if len(open_ones) > _DEEPEST:
                raise Unreadable("is nested too deeply")
            continue
        if isinstance(event, CollectionEndEvent):
            anchor, amount = open_ones.pop()
        elif isinstance(event, AliasEvent):
            amount = amounts.get(anchor or "", 1)
            referred += amount
        elif not isinstance(event, NodeEvent):
            continue
        if referred > _MOST:
            raise Unreadable("has references that come to more than settings can be")
        if anchor is not None:
            amounts[anchor] = amount
        outer, before = open_ones[-1]
        open_ones[-1] = (outer, before + amount)


def append(text: str, path: Sequence[str], value: object) -> str:
    """Return the text with `value` before the items of the list at `path`; what is missing on the way is made."""
    at = _compose(text)
    if at is None or _is_nothing(at):
        return lines.append(text, _block(path, value, ""))
    for depth, name in enumerate(path):
        child = _child(at, name)
        if child is None:
            return _add(text, at, path[depth:], value, at_root=not depth)
        key, node = child
        if _is_nothing(node):
            place = lines.line_end(text, key.end_mark.index)
            return lines.insert(text, place, _block(path[depth + 1 :], value, " " * key.start_mark.column + _INDENT))
        if node.start_mark.index < key.end_mark.index:
            raise Unsuitable(f"has an alias for {name!r}")
        at = node
    return _add(text, at, (), value, at_root=False)


def remove_item(text: str, path: Sequence[str], index: int) -> str:
    """Return the text without one item of the list at `path`."""
    holder = _at(text, path)
    if not isinstance(holder, SequenceNode):
        raise Unsuitable(f"has no list {'.'.join(path)!r}")
    item = holder.value[index]
    if holder.flow_style:
        return _cut_flow(text, item.start_mark.index, item.end_mark.index)
    dash = text.rfind("-", 0, item.start_mark.index)
    start = lines.line_start(text, item.start_mark.index)
    if text[start:dash].strip(" ") or text[dash + 1 : item.start_mark.index].strip(" "):
        raise Unsuitable(f"has an entry in {'.'.join(path)!r} that is not on a line of its own")
    return lines.cut(text, start, lines.line_end(text, _last(item).end_mark.index))


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return the text without what is at `path`."""
    holder = _at(text, path[:-1])
    child = _child(holder, path[-1])
    if child is None:
        raise Unsuitable(f"has no {path[-1]!r}")
    key, node = child
    if holder.flow_style:
        return _cut_flow(text, key.start_mark.index, node.end_mark.index)
    start = lines.line_start(text, key.start_mark.index)
    end = lines.line_end(text, max(key.end_mark.index, _last(node).end_mark.index))
    return lines.cut(text, start, end, appended=len(path) == 1)


def _compose(text: str) -> Node | None:
    try:
        node: Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise Unreadable(f"is not YAML{_place(error)}") from None
    return node


def _at(text: str, path: Sequence[str]) -> CollectionNode:
    at = _compose(text)
    for name in path:
        child = _child(at, name)
        if child is None:
            raise Unsuitable(f"has no {name!r}")
        at = child[1]
    if not isinstance(at, CollectionNode):
        raise Unsuitable(f"has nothing in {'.'.join(path)!r}")
    return at


def _child(node: Node | None, name: str) -> tuple[Node, Node] | None:
    if not isinstance(node, MappingNode):
        raise Unsuitable("has a list or a text where names are expected")
    found = [(key, value) for key, value in node.value if isinstance(key, ScalarNode) and key.value == name]
    if len(found) > 1:
        raise Unsuitable(f"names {name!r} twice")
    return found[0] if found else None


def _is_nothing(node: Node) -> bool:
    """Say whether nothing is written there; `null` is something."""
    return isinstance(node, ScalarNode) and node.tag == _NOTHING and not node.value


def _add(text: str, into: Node, path: Sequence[str], value: object, *, at_root: bool) -> str:
    """Put the rest of a path, or an item when nothing is left of it, into a collection."""
    if not isinstance(into, CollectionNode):
        raise Unsuitable("has a text where names or a list are expected")
    start = into.start_mark.index
    if into.flow_style:
        new = _flow(_nested(path[1:], value) if path else value)
        new = f"{_quoted(path[0])}: {new}" if path else new
        return f"{text[: start + 1]}{new}{',' if into.value else ''}{text[start + 1 :]}"
    column = into.start_mark.column
    new_lines = _block(path, value, " " * column)
    if at_root:
        return lines.append(text, new_lines)
    place = lines.line_start(text, start)
    if text[place:start].strip(" "):
        raise Unsuitable("has something on one line that should begin on a line of its own")
    return lines.insert(text, place, new_lines)


def _cut_flow(text: str, start: int, end: int) -> str:
    rest = text[end:].lstrip()
    return text[:start] + (rest[1:] if rest.startswith(",") else text[end:])


def _last(node: Node) -> Node:
    """Return what a node ends with: a collection written in lines only ends where the next thing begins."""
    while isinstance(node, CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node


def _nested(path: Sequence[str], value: object) -> object:
    nested: object = [value]
    for name in reversed(path):
        nested = {name: nested}
    return nested


def _block(path: Sequence[str], value: object, indent: str) -> list[str]:
    """Return the lines of an item, below the names that lead to it."""
    found = []
    for name in path:
        found.append(f"{indent}{name}:")
        indent += _INDENT
    assert isinstance(value, Mapping)
    dash = "- "
    for name, each in value.items():
        found.append(f"{indent}{dash}{name}: {_flow(each)}")
        dash = "  "
    return found


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(str(name))}: {_flow(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(each) for each in value) + "]"
    return _quoted(str(value))


def _quoted(text: str) -> str:
    """Return text in double quotes, on one line."""
    escapes = {'"': '\\"', "\\": "\\\\"}
    return '"' + "".join(escapes.get(each) or (each if each.isprintable() else _escape(each)) for each in text) + '"'


def _escape(character: str) -> str:
    return f"\\U{ord(character):08x}"


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return ""
    problem = getattr(error, "problem", None) or "something else was expected"
    return f": line {mark.line + 1}, column {mark.column + 1}: {problem}"
