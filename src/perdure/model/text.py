"""Text from the outside, byte for byte.

Paths, titles and arguments are bytes that are usually, not always, UTF-8. JSON, SQLite and PostgreSQL want
text and refuse lone surrogates, so Python's own `surrogateescape` cannot be stored. Here every byte that is
not valid UTF-8 becomes one private-use character, U+EF80 to U+EFFF, and a real character from that range is
treated as three invalid bytes; so any bytes come back exactly, and ordinary text is left as it is.
"""

from __future__ import annotations

import re

_FIRST, _LAST = 0xEF80, 0xEFFF
_RESERVED = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
#: Halves of a pair that stand alone and do not stand for a byte either.
_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def decode(raw: bytes) -> str:
    """Return `raw` as text that can be stored anywhere; `encode` gives the same bytes back."""
    if raw.isascii():
        return raw.decode("ascii")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode(errors="surrogateescape")
        text = _RESERVED.sub(_as_bytes, text)
        return "".join(chr(0xEF00 + ord(c) - 0xDC00) if "\udc80" <= c <= "\udcff" else c for c in text)
    return _RESERVED.sub(_as_bytes, text) if _RESERVED.search(text) else text


def encode(text: str) -> bytes:
    """Return the bytes `text` was decoded from."""
    if text.isascii() or not _RESERVED.search(text):
        return text.encode(errors="surrogateescape")
    return b"".join(
        bytes([ord(c) - 0xEF00]) if _FIRST <= ord(c) <= _LAST else c.encode(errors="surrogateescape") for c in text
    )


def visible(text: str) -> str:
    """Return text on one line in which everything a terminal would act on, or not show, is written out."""
    return "".join(each if each.isprintable() else _written_out(each) for each in text)


def is_storable(text: str) -> bool:
    """Whether every database takes a text as it is: one with half a character or a NUL in it is kept nowhere.

    What is no text at all is none either: ids come from gateways, which may hand in anything.
    """
    value: object = text
    return isinstance(value, str) and (value.isascii() or not re.search("[\ud800-\udfff]", value)) and "\0" not in value


def as_text(value: object) -> object:
    """Return plain data with every argument or path of the outside that is no text written as `decode` writes it.

    Half of a character, as JSON can say it, becomes U+FFFD.
    """
    if isinstance(value, str):
        return decode(encode(_HALVES.sub("\ufffd", value)))
    if isinstance(value, dict):
        return {as_text(name): as_text(each) for name, each in value.items()}
    return [as_text(each) for each in value] if isinstance(value, list | tuple) else value


def _as_bytes(match: re.Match[str]) -> str:
    return "".join(chr(0xEF00 + byte) for byte in match[0].encode())


def _written_out(char: str) -> str:
    # A byte that was not UTF-8 is shown as the byte it was.
    if _FIRST <= ord(char) <= _LAST:
        return f"\\x{ord(char) - 0xEF00:02x}"
    return char.encode("unicode_escape").decode()
