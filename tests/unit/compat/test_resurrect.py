from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from perdure.compat.resurrect import from_resurrect, saved_at
from perdure.errors import ImportFailed
from perdure.model.topology import Topology
from tests.unit.compat.topologies import SERVER, WHEN

SPLIT = "21be,200x50,0,0{100x50,0,0,0,99x50,101,0[99x25,101,0,1,99x24,101,26,2]}"

#: A save of version 4: `main` zoomed in window 0 and shown in window 3; `side` shows the same windows.
SAVE = "".join(
    "\t".join(columns) + "\n"
    for columns in [
        ("grouped_session", "side", "main", ":3", ":0"),
        ("pane", 'it\'s "ü"', "0", "1", ":*", "0", "box", ":/tmp", "1", "bash", ":"),
        ("pane", "main", "0", "0", ":-Z", "0", "box", ":/home/dev/a\\ b c", "0", "vim", ":vim foo.txt --token abc"),
        ("pane", "main", "0", "0", ":-Z", "1", ":/home/dev", "0", "bash", "7021", ":init"),
        ("pane", "main", "0", "0", ":-Z", "2", "top | less", ":/", "1", "top", ":-zsh"),
        ("top",),
        ("pane", "main", "3", "1", ":*", "0", "box", ":/tmp", "1", "bash", ":"),
        ("window", 'it\'s "ü"', "0", ":bash", "1", ":*", "b262,80x24,0,0,5", ":"),
        ("window", "main", "0", ":edit|or", "0", ":-Z", SPLIT, "off"),
        ("window", "main", "3", ":bash", "1", ":*", "aca0,200x50,0,0,3", ":"),
        ("state", "side", "main"),
    ]
)

OLD = "".join(
    "\t".join(columns) + "\n"
    for columns in [
        ("pane", "red", "1", ":logs", "1", ":*", "0", ":/var/log", "1", "tail", ":tail -f syslog"),
        ("window", "red", "1", "1", ":*", "aca0,200x50,0,0,3"),
        ("state", "", ""),
    ]
)


def topology_of(save: str) -> Topology:
    return from_resurrect(save.encode(), server=SERVER, taken_at=WHEN).topology


def test_sessions_windows_and_panes_come_back() -> None:
    topology = topology_of(SAVE)
    assert [(session.id, session.name, session.group) for session in topology.sessions] == [
        ("$0", 'it\'s "ü"', ""),
        ("$1", "main", "main"),
        ("$2", "side", "main"),
    ]
    assert [(window.id, window.name, window.width, window.height) for window in topology.windows] == [
        ("@0", "bash", 80, 24),
        ("@1", "edit|or", 200, 50),
        ("@2", "bash", 200, 50),
    ]
    edit = topology.windows[1]
    assert (edit.layout, edit.zoomed, edit.options) == (SPLIT, True, {"automatic-rename": "off"})
    assert [pane.window for pane in topology.panes] == ["@0", "@1", "@1", "@1", "@2"]
    assert len({pane.id for pane in topology.panes}) == 5
    assert [(pane.index, pane.title, pane.cwd, pane.active) for pane in topology.panes[1:4]] == [
        (0, "box", "/home/dev/a b c", False),
        (1, "", "/home/dev", False),
        (2, "top | less", "/", True),
    ]
    assert [(pane.width, pane.height) for pane in topology.panes[1:4]] == [(100, 50), (99, 25), (99, 24)]


def test_each_session_keeps_its_active_and_its_last_window() -> None:
    links = topology_of(SAVE).links
    assert [(link.session, link.window, link.index, link.active, link.last) for link in links] == [
        ("$0", "@0", 0, True, False),
        ("$1", "@1", 0, False, True),
        ("$1", "@2", 3, True, False),
        ("$2", "@1", 0, True, False),
        ("$2", "@2", 3, False, True),
    ]


def test_what_ran_is_kept_as_text_and_never_as_something_to_start() -> None:
    capture = from_resurrect(SAVE.encode(), server=SERVER, taken_at=WHEN)
    panes = {pane.command: pane for pane in capture.topology.panes}
    assert all(pane.program is None and not pane.start_command for pane in panes.values())
    processes = {name: capture.details.panes[pane.id].processes for name, pane in panes.items()}
    assert [process.argv for process in processes["vim"]] == [("vim foo.txt --token ***",)]
    assert [process.argv for process in processes["top"]] == [("-zsh",), ("top",)]
    assert processes["bash"] == ()


def test_the_session_of_the_client_is_attached() -> None:
    capture = from_resurrect(SAVE.encode(), server=SERVER, taken_at=WHEN)
    assert {id: details.attached for id, details in capture.details.sessions.items()} == {"$2": 1}
    assert capture.details.window_flags == {"@0": "*", "@1": "-Z", "@2": "*"}


def test_a_save_of_an_older_version_comes_back_too() -> None:
    topology = topology_of(OLD)
    assert [(window.name, window.layout) for window in topology.windows] == [("logs", "aca0,200x50,0,0,3")]
    assert [(pane.cwd, pane.command, pane.title) for pane in topology.panes] == [("/var/log", "tail", "")]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("grouped_session\tside\tmain", "grouped_session\tside\tgone", 1, "'gone'"),
        ("grouped_session\tside\tmain", "grouped_session\tmain\tmain", 1, "before"),
        (":3\t:0\n", ":3\t:9\n", 1, "no such window"),
        ("pane\tmain\t3", "pane\tmain\t4", 7, "window"),
        ("pane\tmain\t0\t0\t:-Z\t2", "pane\tmain\t0\t0\t:-Z\t0", 5, "before"),
        ("window\tmain\t3", "window\tmain\t0", 10, "before"),
        ("pane\tmain\t3\t1\t:*\t0\tbox\t:/tmp\t1\tbash\t:\n", "", 9, "1 panes in the layout, but 0"),
        ("state\tside\tmain\n", "state\tsi", 11, "middle"),
        ("top\n", "top\tx\n", 6, "no line"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, line: int, words: str) -> None:
    assert old in SAVE
    with pytest.raises(ImportFailed, match=rf"\ALine {line}: .*{words}.*\.\Z"):
        topology_of(SAVE.replace(old, new, 1))


@pytest.mark.parametrize("save", ["", "state\t\t\n"])
def test_a_save_of_a_dead_server_is_refused(save: str) -> None:
    with pytest.raises(ImportFailed, match=r"\ALine 1: "):
        topology_of(save)


@pytest.mark.parametrize(
    "name", ["tmux_resurrect_20260413T172603.txt", "/home/dev/.tmux/resurrect/tmux_resurrect_2026-04-13T17:26:03.txt"]
)
def test_the_file_name_says_when_it_was_saved(name: str) -> None:
    zone = timezone(timedelta(hours=-4))
    assert saved_at(name, zone) == datetime(2026, 4, 13, 21, 26, 3, tzinfo=UTC)


def test_the_time_in_a_name_is_this_machines_own_by_default() -> None:
    when = saved_at("tmux_resurrect_20260413T172603.txt")
    assert when is not None
    assert when.astimezone().replace(tzinfo=None) == datetime(2026, 4, 13, 17, 26, 3)  # noqa: DTZ001


@pytest.mark.parametrize(
    "name", ["last", "tmux_resurrect_20261301T000000.txt", "tmux_resurrect_20260413T172603.txt.bak", "a.txt"]
)
def test_other_names_say_nothing(name: str) -> None:
    assert saved_at(name, UTC) is None
