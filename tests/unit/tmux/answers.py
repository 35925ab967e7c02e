"""What tmux 3.3a printed for three sessions, two of them a group, with odd names and a pane that has ended.

Kept by field, so that asking for one more field does not need another recording.
"""

from __future__ import annotations

from collections.abc import Mapping

from perdure.tmux.formats import PANE, SESSION, WINDOW, Record

MARK = "0123456789abcdef"
WHO = "14401 1794745791 3.3a"

_SECONDS = "1794745791"
_NO_GROUP = {"session_created": _SECONDS, "session_attached": "0", "session_activity": _SECONDS, "session_group": ""}
_GROUPED = {**_NO_GROUP, "session_group": "pipe|sess"}
SESSIONS: tuple[Mapping[str, str], ...] = (
    {**_NO_GROUP, "session_id": "$1", "session_name": 'naïve "q"', "session_path": "/tmp/pd-rec"},
    {**_GROUPED, "session_id": "$2", "session_name": "other", "session_path": "/tmp/pd-rec"},
    {**_GROUPED, "session_id": "$0", "session_name": "pipe|sess", "session_path": "/tmp/pd-rec/two  spaces"},
)

_SPLIT = "6b90,100x30,0,0{50x30,0,0,1,49x30,51,0,3}"
_SHOWN = {"window_active": "1", "window_last_flag": "0", "window_zoomed_flag": "0", "window_flags": "*"}
_DEAD_END = {
    **_SHOWN,
    "window_id": "@1",
    "window_name": "exit[dead]",
    "window_width": "100",
    "window_height": "30",
    "window_layout": _SPLIT,
    "window_visible_layout": _SPLIT,
    "window_activity": _SECONDS,
}
_SHARED = {
    **_SHOWN,
    "window_id": "@0",
    "window_name": "tab\\t %d",
    "window_width": "80",
    "window_height": "24",
    "window_layout": "b25d,80x24,0,0,0",
    "window_visible_layout": "b25d,80x24,0,0,0",
    "window_activity": _SECONDS,
}
WINDOWS: tuple[Mapping[str, str], ...] = (
    {**_DEAD_END, "session_id": "$1", "window_index": "1"},
    {**_SHARED, "session_id": "$2", "window_index": "0"},
    {**_SHARED, "session_id": "$0", "window_index": "0"},
)

_ALIVE = {"pane_last": "0", "pane_active": "0", "pane_dead": "0", "history_size": "0", "alternate_on": "0"}
_SLEEPER = {
    **_ALIVE,
    "window_id": "@1",
    "pane_id": "%1",
    "pane_index": "0",
    "pane_pid": "14409",
    "pane_tty": "/dev/pts/614",
    "pane_width": "50",
    "pane_height": "30",
    "pane_last": "1",
    "pane_title": "vm",
    "pane_start_path": "/tmp/pd-rec",
    "pane_start_command": '"sleep 1000"',
}
_ENDED = {
    **_ALIVE,
    "window_id": "@1",
    "pane_id": "%3",
    "pane_index": "1",
    "pane_pid": "14424",
    "pane_tty": "/dev/pts/615",
    "pane_width": "49",
    "pane_height": "30",
    "pane_active": "1",
    "pane_dead": "1",
    "pane_dead_status": "7",
    "pane_title": "vm",
    "pane_start_path": "/tmp/pd-rec",
    "pane_start_command": '"exit 7"',
    "history_size": "1",
}
_ODD = {
    **_ALIVE,
    "window_id": "@0",
    "pane_id": "%0",
    "pane_index": "0",
    "pane_pid": "14404",
    "pane_tty": "/dev/pts/613",
    "pane_width": "80",
    "pane_height": "24",
    "pane_active": "1",
    "pane_title": "it's | 5:x",
    "pane_start_path": "/tmp/pd-rec/two  spaces",
    "pane_start_command": '"sleep 1000"',
}
PANES: tuple[Mapping[str, str], ...] = (_SLEEPER, _ENDED, _ODD, _ODD)

SETTINGS = r"""0123456789abcdef $1
default-size 100x30
unset DISPLAY;
unset KRB5CCNAME;
0123456789abcdef $2
unset DISPLAY;
0123456789abcdef $0
@note "a \"b\" \$c \\d"
default-size 80x24
status off
API_KEY="hunter2"; export API_KEY;
unset DISPLAY;
GREETING="two
lines \"q\" \$x \`y\` \\z"; export GREETING;
unset KRB5CCNAME;
0123456789abcdef @1
remain-on-exit on
0123456789abcdef @1.0.14409
0123456789abcdef @1.1.14424
0123456789abcdef @0
automatic-rename off
0123456789abcdef @0.0.14404
@me x\ty
0123456789abcdef @0
automatic-rename off
0123456789abcdef @0.0.14404
@me x\ty
"""


def line(record: Record, values: Mapping[str, str]) -> bytes:
    """Return a record as tmux prints it; a field that has no value is empty."""
    words = " ".join(values.get(name, "") for name in record.words)
    texts = (values.get(name, "").encode() for name in record.texts)
    return f"{record.letter}{words}|".encode() + b"".join(b"%d:%b" % (len(text), text) for text in texts) + b"\n"


def answer(*, pane: Record = PANE, settings: str = SETTINGS) -> bytes:
    """Return the whole answer to `formats.survey`."""
    rows = [line(SESSION, each) for each in SESSIONS] + [line(WINDOW, each) for each in WINDOWS]
    rows += [line(pane, each) for each in PANES]
    return b"".join([f"{MARK} begin {WHO}\n".encode(), *rows, settings.encode(), f"{MARK} end {WHO}\n".encode()])
