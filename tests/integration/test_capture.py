"""What a look finds, held against how it was set up and against what tmux itself says."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import pytest

from perdure.snapshots.look import Looked
from tests.integration.looking import look_at, see, until_at_rest, wait_until
from tests.tmux_server import TmuxServer


def said(tmux: TmuxServer, format: str, target: str) -> str:
    return tmux.show(format, target)


def test_the_server_itself(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    seen = see(tmux)
    process = seen.topology.process
    assert process.pid == tmux.pid
    assert str(int(process.started_at.timestamp())) == tmux.show("#{start_time}")
    assert process.version == tmux.show("#{version}")
    assert seen.capture.server.socket == tmux.socket
    assert seen.capture.server.uid == os.getuid()


def test_a_group_is_sessions_that_share_their_windows(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "lead", "sleep 1000", ";", "new-window", "sleep 1000")
    tmux.run("new-session", "-d", "-s", "follow", "-t", "lead")
    tmux.run("select-window", "-t", "lead:0", ";", "select-window", "-t", "follow:1")
    seen = see(tmux)
    assert seen.session("lead").group == seen.session("follow").group == said(tmux, "#{session_group}", "lead") != ""
    assert len(seen.topology.windows) == len(seen.topology.panes) == 2
    assert [(link.index, link.active) for link in seen.links("lead")] == [(0, True), (1, False)]
    assert [(link.index, link.active) for link in seen.links("follow")] == [(0, False), (1, True)]


def test_a_linked_window_is_one_window_in_two_places(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000", ";", "new-session", "-d", "-s", "b", "sleep 1000")
    tmux.run("link-window", "-d", "-s", "a:0", "-t", "b:7")
    seen = see(tmux)
    assert [(link.window, link.index) for link in seen.links("b")] == [("@1", 0), ("@0", 7)]
    assert len(seen.topology.windows) == 2
    assert seen.session("a").group == ""


def test_indexes_begin_where_they_do_and_have_gaps(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "first", "sleep 1000")
    tmux.run("set-option", "-g", "base-index", "1", ";", "set-option", "-wg", "pane-base-index", "1")
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    for index in (3, 9):
        tmux.run("new-window", "-d", "-t", f"a:{index}", "sleep 1000")
    tmux.run("split-window", "-t", "a:9", "sleep 1000")
    tmux.run("select-window", "-t", "a:3", ";", "select-window", "-t", "a:9")
    seen = see(tmux)
    assert [(link.index, link.active, link.last) for link in seen.links("a")] == [
        (1, False, False),
        (3, False, True),
        (9, True, False),
    ]
    window = seen.links("a")[-1].window
    panes = [pane for pane in seen.topology.panes if pane.window == window]
    assert [(pane.index, pane.active, pane.last) for pane in panes] == [(1, False, True), (2, True, False)]


def test_a_zoomed_window_has_two_layouts(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "-x", "120", "-y", "40", "sleep 1000")
    for split in ("-h", "-v", "-h"):
        tmux.run("split-window", split, "-t", "a", "sleep 1000")
    plain = see(tmux).window("@0")
    assert plain.layout == plain.visible_layout == said(tmux, "#{window_layout}", "a")
    tmux.run("resize-pane", "-Z", "-t", "%3")
    zoomed = see(tmux).window("@0")
    assert (zoomed.zoomed, plain.zoomed) == (True, False)
    assert zoomed.layout == plain.layout
    assert zoomed.visible_layout == said(tmux, "#{window_visible_layout}", "a") != plain.layout
    assert (zoomed.width, zoomed.height) == (120, 40)
    assert see(tmux).details.window_flags["@0"] == said(tmux, "#{window_flags}", "a")


def is_dead(tmux: TmuxServer, pane: str) -> bool:
    return said(tmux, "#{pane_dead}", pane) == "1"


def ended_pane(tmux: TmuxServer, command: str, how: str) -> str:
    """Open a pane whose program ends in this way; return its id.

    On a busy machine tmux 3.3a at times never learns how a program ended: then another one has to.
    """
    for _ in range(50):
        pane = tmux.run("new-window", "-d", "-P", "-F", "#{pane_id}", command).decode().strip()
        wait_until(partial(is_dead, tmux, pane), "the program ends")
        tmux.run("run-shell", "sleep 0.1")
        if said(tmux, "#{pane_dead_status}/#{pane_dead_signal}", pane) == how:
            return pane
        tmux.run("kill-pane", "-t", pane)
    raise AssertionError(f"tmux never said that a program ended by {how}")


def test_how_a_pane_ended(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000", ";", "set-option", "-g", "remain-on-exit", "on")
    failed = ended_pane(tmux, "sleep 0.1; exit 7", "7/")
    finished = ended_pane(tmux, "sleep 0.1; exit 0", "0/")
    killed = ended_pane(tmux, "sleep 0.1; kill -TERM $$", "/15")
    seen = see(tmux)
    ends = {pane.id: (pane.dead, pane.exit_status, pane.exit_signal) for pane in seen.topology.panes}
    assert ends == {
        "%0": (False, None, None),
        failed: (True, 7, None),
        finished: (True, 0, None),
        killed: (True, None, 15),
    }
    assert seen.pane(failed).cwd == said(tmux, "#{pane_current_path}", failed) == ""
    assert seen.pane_details(failed).processes == ()
    assert seen.pane(failed).start_command == '"sleep 0.1; exit 7"'


def test_modes_and_the_alternate_screen(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "-x", "80", "-y", "10", "seq 100; sleep 1000")
    tmux.run("new-window", "-d", "printf '\\033[?1049h'; sleep 1000")
    wait_until(lambda: said(tmux, "#{alternate_on}", "%1") == "1", "the alternate screen is shown")
    wait_until(lambda: said(tmux, "#{history_size}", "%0") == "91", "everything is printed")
    tmux.run("copy-mode", "-t", "%0")
    seen = see(tmux)
    assert seen.pane_details("%0").mode == "copy-mode"
    assert seen.pane_details("%0").history_size == 91
    assert (seen.pane_details("%0").alternate, seen.pane_details("%1").alternate) == (False, True)
    assert seen.pane_details("%1").mode == ""


def test_a_title_without_its_spinner(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "-n", "a", "exec sleep 1000")
    until_at_rest(tmux)
    tmux.run("select-pane", "-T", "⠐ Fix the parser")
    one = see(tmux)
    tmux.run("select-pane", "-T", "✳ Fix the parser")
    other = see(tmux)
    assert one.pane("%0").title == "Fix the parser"
    assert one.pane_details("%0").title == "⠐ Fix the parser"
    assert one.topology == other.topology


def test_the_program_in_the_foreground_and_the_shell_at_its_prompt(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a")
    tmux.run("new-window", "-d", "exec sleep 1000 ''", check=False)
    tmux.run("new-window", "-d", "exec tail -f /dev/null 'two words' \"it's\"")
    until_at_rest(tmux)
    seen = see(tmux)
    assert seen.pane("%0").program is None
    assert seen.pane("%0").command == "sh"
    program = seen.pane("%2").program
    assert program is not None
    assert program.argv == ("tail", "-f", "/dev/null", "two words", "it's")


def test_the_same_state_is_the_same_topology(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "b", "-n", "b", "exec sleep 1000", ";", "split-window", "exec sleep 1000")
    tmux.run("new-session", "-d", "-s", "a", "-t", "b")
    until_at_rest(tmux)
    assert see(tmux).topology == see(tmux, scrollback=True).topology


def test_times(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    seen = see(tmux)
    session = seen.session("a")
    assert str(int(session.created_at.timestamp())) == said(tmux, "#{session_created}", "a")
    activity = seen.details.sessions[session.id].activity_at
    assert activity is not None
    assert str(int(activity.timestamp())) == said(tmux, "#{session_activity}", "a")
    assert seen.details.sessions[session.id].last_attached_at is None


@pytest.mark.parametrize("count", [1, 60])
def test_numbers_of_everything(tmux: TmuxServer, count: int) -> None:
    for number in range(count):
        tmux.run("new-session", "-d", "-s", f"s{number}", "-x", "80", "-y", "24", "exec sleep 1000")
    seen = see(tmux)
    assert len(seen.topology.sessions) == len(seen.topology.windows) == len(seen.topology.panes) == count
    assert [session.id for session in seen.topology.sessions] == [f"${number}" for number in range(count)]
    assert [pane.id for pane in seen.topology.panes] == [f"%{number}" for number in range(count)]


def test_several_servers_come_back_in_the_order_they_were_asked(tmux_server: Callable[[str], TmuxServer]) -> None:
    servers = [tmux_server(name) for name in ("c", "a", "b")]
    for server in servers:
        server.run("new-session", "-d", "-s", server.name, "sleep 1000")
    looked = [each for each in look_at(*servers) if isinstance(each, Looked)]
    assert [each.capture.topology.sessions[0].name for each in looked] == ["c", "a", "b"]
