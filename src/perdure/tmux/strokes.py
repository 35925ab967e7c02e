"""Typing into a pane: bytes as they are, keys by their names, a text as one paste. Pure.

Nothing here is read by a shell, and tmux takes none of it for a command: bytes go as numbers, and a text is a word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from perdure.errors import UsageError
from perdure.tmux.act import OTHERS_TOO, PASSING, SHARED
from perdure.tmux.attached import Command
from perdure.tmux.control import Reply

_STATE = "#{pane_id}|#{pane_pid}|#{pane_dead}|#{pane_input_off}|" + SHARED + "|#{pane_mode}"
#: How many bytes go with one command.
_AT_ONCE = 1024
# tmux types letter by letter what it does not know as a key, so only what is one is passed on.
_KEY = re.compile(
    r"(?:[CMS]-){0,3}(?:[!-~]|Enter|Escape|Tab|BTab|Space|BSpace|Up|Down|Left|Right|Home|End|PageUp|PageDown|PPage|NPage"
    r"|IC|DC|F(?:[1-9]|1[0-2]))"
)
# In the middle of a paste such a character would end it, and what comes behind would be keys.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def asking_whether(pane: str) -> Sequence[Command]:
    """Return the command whose reply `objection` understands."""
    return [("display-message", "-p", "-t", pane, _STATE)]


def objection(pane: str, reply: Reply) -> str | None:
    """Return why nothing can be typed into a pane, None when it can; a sentence without its full stop."""
    id, _, dead, deaf, shared, mode = (reply.lines[0] if reply.lines else "|||||").split("|")
    if id != pane:
        return "it is not there any more"
    if dead == "1":
        return "its program has ended, and nobody reads what is typed"
    if deaf == "1":
        return "it was told to take no input"
    if shared == "1":
        return OTHERS_TOO
    if mode and mode not in PASSING:
        return f"it is in {mode}, where keys mean something else"
    return None


def first_in(reply: Reply) -> str:
    """Return what was started in the pane, by its number."""
    return reply.lines[0].split("|")[1]


def leaving_mode(pane: str, reply: Reply) -> list[Command]:
    """Return what takes a pane out of the mode it was said to be in; only one that is in it can leave it."""
    return [("send-keys", "-t", pane, "-X", "cancel")] if reply.lines[0].rpartition("|")[2] else []


def typing(pane: str, data: bytes) -> list[Command]:
    """Return the commands that give a pane these bytes, as if somebody had typed them."""
    pieces = [data[begin : begin + _AT_ONCE] for begin in range(0, len(data), _AT_ONCE)]
    return [("send-keys", "-t", pane, "-H", *(f"{byte:02x}" for byte in piece)) for piece in pieces]


def pressing(pane: str, keys: Sequence[str]) -> list[Command]:
    """Return the command that presses keys, by tmux's names for them. Raises UsageError for what is none."""
    for key in keys:
        if not _KEY.fullmatch(key):
            raise UsageError(f"{key!r} is no key; Enter, Escape, C-c, Up and F1 are.")
    return [("send-keys", "-t", pane, "--", *keys)]


def pasting(pane: str, text: str) -> list[Command]:
    """Return the commands that give a pane a text, as one paste where its program knows pastes.

    Control characters are left out, but for tabs and ends of lines.
    """
    name = f"perdure-{os.urandom(8).hex()}"
    # Without -r tmux would give a carriage return for every newline, which is Enter.
    return [
        ("set-buffer", "-b", name, "--", _CONTROLS.sub("", text)),
        ("paste-buffer", "-d", "-p", "-r", "-b", name, "-t", pane),
    ]
