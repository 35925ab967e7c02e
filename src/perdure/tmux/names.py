"""Names: a program's as tmux shows it, and that of our own sessions."""

from __future__ import annotations

from perdure.model.text import decode, encode

#: How the names of sessions begin that only last as long as a restore speaks through them.
TEMPORARY = "perdure-restore-"

# What C's isalnum and ispunct know: tmux takes anything else off the end of a name, the bytes of an é too.
_NOT_SOLID = bytes(byte for byte in range(256) if not 0x21 <= byte <= 0x7E)


def command_name(word: str) -> str:
    """Return `#{pane_current_command}` for a program started as `word`, by tmux's own rules."""
    name = word.removeprefix('"').partition('"')[0]
    raw = encode(name.removeprefix("exec ").lstrip(" -").partition(" ")[0])
    raw = raw[:1] + raw[1:].rstrip(_NOT_SOLID)
    return decode(raw.rstrip(b"/").rpartition(b"/")[2] or b"/" if raw.startswith(b"/") else raw)
