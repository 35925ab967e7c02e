"""A pane's whole screen, as something a terminal can be made to show. Pure, but for asking.

What is asked for has to be done in one line of commands, so that all of it is of one moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from perdure.model.terminal import Screen
from perdure.model.text import encode
from perdure.tmux.control import Reply
from perdure.tmux.heard import octal

# What a terminal is told when a flag of the pane is not as in a new terminal: the flag, its usual value, the words.
_MODES = (
    ("insert_flag", "0", "\x1b[4h"),
    ("wrap_flag", "1", "\x1b[?7l"),
    ("keypad_cursor_flag", "0", "\x1b[?1h"),
    ("keypad_flag", "0", "\x1b="),
    ("mouse_standard_flag", "0", "\x1b[?1000h"),
    ("mouse_button_flag", "0", "\x1b[?1002h"),
    ("mouse_all_flag", "0", "\x1b[?1003h"),
    ("mouse_sgr_flag", "0", "\x1b[?1006h"),
    # Only newer ones tell; empty counts as usual.
    ("bracket_paste_flag", "0", "\x1b[?2004h"),
    ("cursor_flag", "1", "\x1b[?25l"),
)
_NUMBERS = ("pane_width", "pane_height", "cursor_x", "cursor_y", "scroll_region_upper", "scroll_region_lower")
_WORDS = ("pid", "pane_id", "pane_pid", "session_id", *_NUMBERS, "alternate_on", *(name for name, _, _ in _MODES))
# Between bars, for an empty one is one too; the title comes last, for it may hold anything but a newline.
_FACTS = "|".join(f"#{{{name}}}" for name in (*_WORDS, "pane_title"))


class Captured(NamedTuple):
    """A screen, and where it was seen."""

    #: The process of the server.
    server: int
    #: The id of the session.
    session: str
    #: What was started in the pane, by its number.
    first: str
    screen: Screen
    #: The beginning of a sequence whose end has not been printed yet; what is printed next goes on from it.
    pending: str


def capturing(pane: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands whose replies `captured` understands."""
    return (
        ("display-message", "-p", "-t", pane, _FACTS),
        ("capture-pane", "-epJ", "-t", pane),
        # What the screen does not show yet.
        ("capture-pane", "-pPC", "-t", pane),
    )


def captured(pane: str, replies: Sequence[Reply]) -> Captured | None:
    """Return what the replies tell, None when the pane is not there."""
    if len(replies) != 3 or any(reply.error for reply in replies):
        return None
    facts, shown, pending = replies
    told = facts.lines[0].split("|", len(_WORDS)) if facts.lines else []
    if len(told) != len(_WORDS) + 1:
        return None
    known = dict(zip(_WORDS, told, strict=False))
    if known["pane_id"] != pane:
        return None
    # A title of several lines is none tmux would keep; and only what was counted is a number.
    cols, rows, x, y, upper, lower = (int(known[name] or 0) for name in _NUMBERS)
    is_alternate = known["alternate_on"] == "1"
    parts = ["\x1b[?1049h\x1b[H" if is_alternate else "", "\r\n".join(map(_shown, shown.lines)), "\x1b[0m"]
    if (upper, lower) != (0, rows - 1):
        parts.append(f"\x1b[{upper + 1};{lower + 1}r")
    parts += [words for name, usual, words in _MODES if known[name] not in (usual, "")]
    # Last, for setting the region moves the cursor.
    parts.append(f"\x1b[{y + 1};{min(x, cols - 1) + 1}H")
    screen = Screen(
        cols=cols,
        rows=rows,
        cursor=(x, y),
        title=told[-1],
        alternate=is_alternate,
        text="".join(parts),
    )
    unfinished = "".join(octal(encode(line)).decode(errors="replace") for line in pending.lines)
    return Captured(int(known["pid"]), known["session_id"], known["pane_pid"], screen, unfinished)


def _shown(line: str) -> str:
    """Return a line of a screen as text for everybody: what is no Unicode is shown as that."""
    return line if line.isascii() else encode(line).decode(errors="replace")
