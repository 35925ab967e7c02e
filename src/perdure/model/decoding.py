"""Reading plain data into what it is to be, safe for threads.

Before msgspec reads the first value of a kind it learns the fields of that, and of everything within. Whoever asks for
one of them meanwhile gets it half learnt, and the process dies of that. So perdure learns them here, one at a time, and
nowhere else.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Any, TypeVar, overload

import msgspec

_Kind = TypeVar("_Kind")
_LEARNING = threading.Lock()


@overload
def decoder_of(kind: type[_Kind]) -> msgspec.json.Decoder[_Kind]: ...
@overload
def decoder_of(kind: Any) -> msgspec.json.Decoder[Any]: ...
def decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return what reads a kind from JSON, the same every time."""
    return _learnt(kind)


@overload
def converted(value: object, kind: type[_Kind], *, strict: bool = True) -> _Kind: ...
@overload
def converted(value: object, kind: Any, *, strict: bool = True) -> Any: ...
def converted(value: object, kind: Any, *, strict: bool = True) -> Any:
    """Return plain data as a kind. Raises `msgspec.ValidationError`."""
    _learnt(kind)
    return msgspec.convert(value, kind, strict=strict)


@cache
def _learnt(kind: Any) -> msgspec.json.Decoder[Any]:
    with _LEARNING:
        return msgspec.json.Decoder(kind)


# No child is begun while something is half learnt: it would stay so there.
os.register_at_fork(before=_LEARNING.acquire, after_in_parent=_LEARNING.release, after_in_child=_LEARNING.release)
