"""What tmux is asked and how its answer is laid out.

An answer is a stream, not lines: a directory may hold a newline, a name a pipe or a tab. Numbers and ids, which
tmux makes itself, are words before a `|`; everything else is length-prefixed, `#{n:X}:#{X}`. What tmux can only
print as lines (options, environments, screens) stands between marker lines made of a random word of this one
question, which no text on the screen can know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Record(NamedTuple):
    """One kind of record: a letter, tmux's own words, and the free texts."""

    letter: str
    words: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def format(self) -> str:
        """The tmux format that prints such a record."""
        words = " ".join(f"#{{{name}}}" for name in self.words)
        return f"{self.letter}{words}|" + "".join(f"#{{n:{name}}}:#{{{name}}}" for name in self.texts)


SESSION = Record(
    "S",
    ("session_id", "session_created", "session_attached", "session_activity", "session_last_attached"),
    ("session_name", "session_group", "session_path"),
)
WINDOW = Record(
    "W",
    (
        "session_id",
        "window_id",
        "window_index",
        "window_active",
        "window_last_flag",
        "window_zoomed_flag",
        "window_width",
        "window_height",
        "window_layout",
        "window_visible_layout",
        "window_activity",
    ),
    ("window_name", "window_flags"),
)
PANE = Record(
    "P",
    (
        "window_id",
        "pane_id",
        "pane_index",
        "pane_pid",
        "pane_tty",
        "pane_width",
        "pane_height",
        "pane_active",
        "pane_last",
        "pane_dead",
        "pane_dead_status",
        "pane_dead_signal",
        "history_size",
        "alternate_on",
        "cursor_x",
        "cursor_y",
        "pane_mode",
    ),
    ("pane_title", "pane_start_path", "pane_start_command"),
)
#: The same with what tmux would look up for us in the process table, for platforms where we cannot do it cheaper.
PANE_LOCATED = Record("P", PANE.words, (*PANE.texts, "pane_current_path", "pane_current_command"))

#: Which server process answers.
WHO = "#{pid} #{start_time} #{version}"
# tmux expands this loop into one command a line before it runs the first: the ids are those of the lists, and a
# pane that ends meanwhile costs only its own line. Nothing but ids is expanded, so nothing can be smuggled in.
# display-message runs strftime over its text, which would eat the percent sign of a pane's id; so a pane is marked
# by its window, its index and, since panes move up when one before them ends, its process. Two loops rather than one:
# tmux's parser is slower the longer its input.
_ON_SESSIONS = (
    "#{{S:display-message -p '{mark} #{{session_id}}'\n"
    "show-options -t '#{{session_id}}'\n"
    "show-environment -s -t '#{{session_id}}'\n"
    "}}"
)
_ON_WINDOWS = (
    "#{{S:#{{W:display-message -p '{mark} #{{window_id}}'\n"
    "show-options -w -t '#{{window_id}}'\n"
    "#{{P:display-message -p '{mark} #{{window_id}}.#{{pane_index}}.#{{pane_pid}}'\n"
    "show-options -p -t '#{{pane_id}}'\n"
    "}}}}}}"
)


def survey(mark: str, *, pane: Record, options: bool) -> list[str]:
    """Return the command that asks a server for everything in one go.

    The three lists run without the server doing anything else in between, so they fit together.
    """
    command = ["display-message", "-p", f"{mark} begin {WHO}", ";"]
    command += ["list-sessions", "-F", SESSION.format, ";"]
    command += ["list-windows", "-a", "-F", WINDOW.format, ";"]
    command += ["list-panes", "-a", "-F", pane.format, ";"]
    if options:
        command += ["run-shell", "-C", _ON_SESSIONS.format(mark=mark), ";"]
        command += ["run-shell", "-C", _ON_WINDOWS.format(mark=mark), ";"]
    return [*command, "display-message", "-p", f"{mark} end {WHO}"]


def revisit(mark: str, *, unknown: Iterable[str], panes: Sequence[str], lines: int) -> bytes:
    """Return the script that asks for the options of the ids in `unknown` and the scrollback of `panes`.

    One command a line, so that a pane which ended meanwhile costs only itself.
    """
    script = [f"display-message -p '{mark} begin {WHO}'"]
    for id in unknown:
        script.append(f"display-message -p '{mark} {id.replace('%', '%%')}'")
        script += _set_on(id)
    for id in panes:
        script.append(f"display-message -p '{mark} scroll {id.replace('%', '%%')}'")
        script.append(f"capture-pane -epJ -S -{lines} -t '{id}'")
    script.append(f"display-message -p '{mark} end {WHO}'")
    return "\n".join(script).encode() + b"\n"


def _set_on(id: str) -> list[str]:
    if id.startswith("$"):
        return [f"show-options -t '{id}'", f"show-environment -s -t '{id}'"]
    return [f"show-options -{'w' if id.startswith('@') else 'p'} -t '{id}'"]
