from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.compat.resurrect_rows import read_rows
from perdure.errors import ImportFailed

PANE = "pane\tmain\t0\t1\t:*\t0\tbox\t:/home/dev\t1\tbash\t:"
WINDOW = "window\tmain\t0\t:bash\t1\t:*\taca0,200x50,0,0,3\t:"
STATE = "state\tmain\t"


def file(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def test_an_empty_title_is_seen_through() -> None:
    """As the saving shell writes it: every later column one place early, another process's command at the end."""
    shifted = "pane\tmain\t0\t1\t:*Z\t1\t:/home/dev/my dir/two  spaces\t0\tvim\t7021\t:cron -f"
    (row,) = read_rows(file(shifted)).panes
    assert (row.title, row.cwd, row.active, row.command) == ("", "/home/dev/my dir/two  spaces", False, "vim")
    assert row.full_command == ""


def test_a_title_may_look_like_a_directory() -> None:
    (row,) = read_rows(file("pane\tmain\t0\t1\t:*\t0\t:/title\t:/home\t1\tbash\t:")).panes
    assert (row.title, row.cwd) == (":/title", "/home")


def test_only_the_first_space_of_a_directory_is_escaped() -> None:
    (row,) = read_rows(file("pane\tmain\t0\t1\t:*\t0\tbox\t:/a\\ b c\t1\tbash\t:")).panes
    assert row.cwd == "/a b c"


def test_the_processes_of_a_pane_may_take_several_lines() -> None:
    save = read_rows(file(PANE + "-zsh", "vim -S", "sleep 5", PANE.replace("pane\tmain\t0", "pane\tmain\t1"), STATE))
    assert [row.full_command for row in save.panes] == ["-zsh\nvim -S\nsleep 5", ""]
    assert save.attached == "main"


@pytest.mark.parametrize(
    "line",
    [
        "pane\tmain\t0\t:vim\t1\t:*\t0\t:/home\t1\tvim\t:vim a b",
        "pane\tmain\t0\t:vim\t1\t:*\t0\tbox\t:/home\t1\tvim\t:vim a b",
    ],
)
def test_older_versions_keep_the_windows_name_with_the_pane(line: str) -> None:
    (row,) = read_rows(file(line)).panes
    assert (row.window_name, row.cwd, row.command, row.full_command) == ("vim", "/home", "vim", "vim a b")


@pytest.mark.parametrize(
    ("line", "name", "rename"),
    [
        (WINDOW, "bash", None),
        (WINDOW[:-1] + "off", "bash", "off"),
        ("window\tmain\t0\t:bash\t1\t:*\taca0,200x50,0,0,3", "bash", None),
        ("window\tmain\t0\t1\t:*\taca0,200x50,0,0,3", None, None),
    ],
)
def test_windows_of_every_version(line: str, name: str | None, rename: str | None) -> None:
    (row,) = read_rows(file(line)).windows
    assert (row.name, row.automatic_rename, row.active, row.flags) == (name, rename, True, "*")
    assert (row.width, row.height, row.cells) == (200, 50, [(200, 50)])


def test_the_cells_of_a_layout_are_its_panes() -> None:
    layout = "21be,200x50,0,0{100x50,0,0,0,99x50,101,0[99x25,101,0,1,99x24,101,26,2]}"
    (row,) = read_rows(file(f"window\tmain\t0\t:w\t1\t:*\t{layout}\t:")).windows
    assert row.cells == [(100, 50), (99, 25), (99, 24)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "no line"),
        ("pane", "no line"),
        ("line\t0\tbash", "no line"),
        ("session\tmain", "no line"),
        ("state\tmain", "no line"),
        ("grouped_session\tside\tmain\t:0", "no line"),
        ("pane\tmain\t0\t1\t:*\t0\tbox\t:/home\t1\tbash", "number of columns"),
        ("pane\tmain\t0\t1\t:*\t0\tbox\t:/home\t1\tbash\t:\tx", "number of columns"),
        ("pane\t\t0\t1\t:*\t0\tbox\t:/home\t1\tbash\t:", "no name"),
        ("pane\tmain\tx\t1\t:*\t0\tbox\t:/home\t1\tbash\t:", "index"),
        ("pane\tmain\t0\t2\t:*\t0\tbox\t:/home\t1\tbash\t:", "neither 0 nor 1"),
        ("pane\tmain\t0\t1\t*\t0\tbox\t:/home\t1\tbash\t:", "colon"),
        ("pane\tmain\t0\t1\t:*\t-1\tbox\t:/home\t1\tbash\t:", "index"),
        ("pane\tmain\t0\t1\t:*\t0\tbox\t/home\t1\tbash\t:", "directory"),
        ("pane\tmain\t0\t1\t:*\t0\tbox\t:/new\t\t\t:", "neither 0 nor 1"),
        ("pane\tmain\t0\t1\t:*\t0\tbox\t:/a\tb\t1\t:", "neither 0 nor 1"),
        ("pane\tmain\t0\t1\t:*\t0\tbox\t:/home\t1\tbash\tvim", "colon"),
        ("pane\tmain\t0\t1\t:*\t0\t:/home\t1\tbash\tnopid\t:", "process id"),
        ("window\tmain\t0\t:bash\t1\t:*", "number of columns"),
        ("window\tmain\t0\t1\t:*\taca0,200x50,0,0,3\t:", "number of columns"),
        (WINDOW + "\tx", "number of columns"),
        (WINDOW[:-1] + "maybe", "automatic-rename"),
        (WINDOW.replace("aca0", "aca1"), "layout"),
        (WINDOW.replace("200x50", "200x51"), "layout"),
        (WINDOW.replace("aca0,200x50,0,0,3", "tiled"), "layout"),
        ("grouped_session\tside\tmain\t0\t:1", "colon"),
        ("grouped_session\tside\tmain\t:\t:x", "number"),
        ("grouped_session\t\tmain\t:\t:", "no name"),
    ],
)
def test_a_line_that_does_not_fit_is_named(line: str, words: str) -> None:
    with pytest.raises(ImportFailed, match=rf"\ALine 2: .*{words}.*\.\Z"):
        read_rows(file(WINDOW, line, STATE))


@given(st.lists(st.sampled_from([PANE, WINDOW, STATE, "x", "\t", ":", "grouped_session\ta\tb\t:\t:"]), min_size=1))
def test_any_lines_are_read_or_refused(lines: list[str]) -> None:
    try:
        save = read_rows(file(*lines))
    except ImportFailed as failure:
        line = failure.data["line"]
    else:
        line = 1
        assert len(save.panes) == lines.count(PANE)
    assert line in range(1, len(lines) + 1)
