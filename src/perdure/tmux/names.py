"""A program's name as tmux shows it."""

from __future__ import annotations

from perdure.model.text import decode, encode

# What C's isalnum and ispunct know: tmux takes anything else off the end of a name, the bytes of an é too.
_NOT_SOLID = bytes(byte for byte in range(256) if not 0x21 <= byte <= 0x7E)


def command_name(word: str) -> str:
    """Return `#{pane_current_command}` for a program started as `word`, by tmux's own rules."""
    name = word.removeprefix('"').partition('"')[0]
    raw = encode(name.removeprefix("exec ").lstrip(" -").partition(" ")[0])
    raw = raw[:1] + raw[1:].rstrip(_NOT_SOLID)
    return decode(raw.rstrip(b"/").rpartition(b"/")[2] or b"/" if raw.startswith(b"/") else raw)
