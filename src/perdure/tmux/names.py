"""A program's name as tmux shows it."""

from __future__ import annotations


def command_name(word: str) -> str:
    """Return `#{pane_current_command}` for a program started as `word`, by tmux's own rules."""
    name = word.removeprefix('"').partition('"')[0]
    name = name.removeprefix("exec ").lstrip(" -").partition(" ")[0]
    while len(name) > 1 and name[-1].isascii() and (name[-1].isspace() or not name[-1].isprintable()):
        name = name[:-1]
    return name.rstrip("/").rpartition("/")[2] or "/" if name.startswith("/") else name
