"""What a route takes, by its own signature: the parameters it knows, and the words that each of them, or a field of its body, may be."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal, cast, get_args, get_origin

import msgspec
from litestar import Request
from litestar.params import QueryParameter
from msgspec import Struct

from perdure.api.wrong import BODY
from perdure.errors import UsageError


class Taken:
    """What the route of a request takes; nothing where there is no such route."""

    def __init__(self, request: Request[Any, Any, Any]) -> None:
        self._route: Any = cast(dict[str, Any], request.scope).get("route_handler")
        self._fields = self._route.parsed_fn_signature.parameters if self._route is not None else {}

    def name_of(self, key: str) -> str:
        """Return what those who ask call what is called so here."""
        field = self._fields.get(key)
        return getattr(field.kwarg_definition, "name", None) or key if field is not None else key

    def parameters(self) -> list[str]:
        """Return what may be given behind the `?`."""
        known = [name for name, field in self._fields.items() if isinstance(field.kwarg_definition, QueryParameter)]
        return [self.name_of(name) for name in known]

    @property
    def body(self) -> Any:
        """What kind of thing its body is, None when it reads none."""
        field = self._fields.get(BODY)
        return None if field is None else field.annotation

    def fields(self, key: str) -> tuple[str, ...]:
        """Return the fields of the body, or of something in it (`restore`)."""
        return tuple(_fields(self.body if key == BODY else _within(self.body, key.split("."))))

    def words(self, key: str) -> tuple[str, ...]:
        """Return the words a parameter, or a field of the body (`restore.programs`), may be; () where it may be any."""
        for name, field in self._fields.items():
            if self.name_of(name) == key and name != BODY:
                return tuple(_words(field.annotation))
        return tuple(_words(_within(self.body, key.split("."))))

    @property
    def is_described(self) -> bool:
        """Whether it is a route for programs, which reads what stands behind the `?`; the pages' addresses are not."""
        return self._route is not None and self._route.resolve_include_in_schema()


def refuse_unknown(request: Request[Any, Any, Any], taken: Taken) -> None:
    """Refuse a request with a parameter that its route does not know: whoever gave it means something by it."""
    given = dict.fromkeys(request.query_params)
    known = taken.parameters()
    there = f"there {'are' if len(known) > 1 else 'is'} {', '.join(known)}" if known else "it takes none"
    wrong = [
        {"key": name, "message": f"There is no parameter `{name}`; {there}."} for name in given if name not in known
    ]
    if wrong:
        raise UsageError(" ".join(each["message"] for each in wrong), wrong=wrong)


def _words(kind: Any) -> Iterator[str]:
    """Every word that something of this kind may be."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        yield from (str(each.value) for each in kind)
    elif get_origin(kind) is Literal:
        yield from (str(each) for each in get_args(kind))
    else:
        for each in get_args(kind):
            yield from _words(each)


def _within(kind: Any, path: list[str]) -> Any:
    """Return the kind of a field somewhere below a struct, None when there is none."""
    for name in path:
        kind = _fields(kind).get(name.partition("[")[0])
    return kind


def _fields(kind: Any) -> dict[str, Any]:
    """Return the fields of a struct, or of those something may be, each with its kind."""
    structs = [each for each in (kind, *get_args(kind)) if isinstance(each, type) and issubclass(each, Struct)]
    return {field.encode_name: field.type for each in structs for field in msgspec.structs.fields(each)}
