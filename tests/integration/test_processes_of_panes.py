"""The processes of real panes, read from /proc and, the other way, through psutil."""

from __future__ import annotations

import os
import sys

import pytest

from perdure.host.processes import read_processes
from perdure.model.process import Process
from tests.builders import keeping
from tests.integration.looking import see, until_at_rest, wait_until
from tests.tmux_server import TmuxServer


def commands(tree: tuple[Process, ...]) -> list[str]:
    return [" ".join(process.argv) for process in tree]


def test_everything_below_a_pane(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "exec bash -c 'bash -c \"sleep 1001; :\" & sleep 1002; :'")
    tmux.run("new-window", "-d", "exec sleep 1003")
    below = {"sleep 1001", "sleep 1002", "bash -c sleep 1001; :"}
    # Each is a copy of the shell before it is a program: to count them is not to wait for them.
    wait_until(lambda: below <= set(commands(see(tmux).pane_details("%0").processes)), "all programs run")
    wait_until(
        lambda: commands(see(tmux).pane_details("%1").processes) == ["sleep 1003"], "the other pane runs its own"
    )
    seen = see(tmux)
    tree = seen.pane_details("%0").processes
    assert tree[0].pid == seen.pane("%0").pid
    assert len(tree) == 4
    known = set()
    for process in tree:
        assert process.ppid in known or process is tree[0]
        known.add(process.pid)


def test_the_foreground_and_the_background(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "exec bash --norc -ic 'sleep 1001 & sleep 1002; :'")

    def running() -> dict[str, bool]:
        tree = see(tmux).pane_details("%0").processes
        return {command: process.foreground for command, process in zip(commands(tree), tree, strict=True)}

    # Each is a copy of the shell before it is a program.
    wait_until(lambda: {"sleep 1001", "sleep 1002"} <= running().keys(), "all programs run")
    assert {name for name, is_foreground in running().items() if is_foreground} == {"sleep 1002"}


def test_a_pane_is_given_no_process_that_is_not_its_own(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "exec sleep 1001", ";", "new-window", "exec sleep 1002")
    until_at_rest(tmux)
    panes = see(tmux).topology.panes
    table = read_processes(keeping())
    assert len(table.tree(panes[0].pid, panes[0].tty)) == 1
    assert table.tree(panes[0].pid, panes[1].tty) == ()
    assert table.tree(os.getpid(), panes[0].tty) == ()


def test_a_pane_that_came_after_the_table_was_read_is_there_all_the_same(tmux: TmuxServer) -> None:
    table = read_processes(keeping())
    tmux.run("new-session", "-d", "-s", "a", "exec sleep 1001")
    until_at_rest(tmux)
    pane = see(tmux).topology.panes[0]
    assert [process.pid for process in table.tree(pane.pid, pane.tty)] == [pane.pid]


def test_allowed_variables_and_no_secret(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "-e", "EDITOR=vi", "-e", "API_KEY=hunter2", "-e", "LANG=hunter2@x")
    tmux.run("set-environment", "-u", "-t", "a", "API_KEY")
    # Before it is a shell it is a copy of the server, with the server's variables.
    wait_until(lambda: commands(see(tmux).pane_details("%0").processes) == ["-sh"], "the shell is there")
    environ = see(tmux).pane_details("%0").processes[0].environ
    assert environ["EDITOR"] == "vi"
    assert "API_KEY" not in environ
    assert "TMUX" not in environ


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is only one way elsewhere")
def test_both_ways_to_read_the_table_agree(tmux: TmuxServer, tmp_path: object) -> None:
    pytest.importorskip("psutil")
    from perdure.host.portable_processes import read_portably

    odd = os.path.join(os.fsencode(str(tmp_path)), b"caf\xe9 dir")
    os.mkdir(odd)
    tmux.run("new-session", "-d", "-s", "a", "-e", b"WHERE=" + odd, "-e", "EDITOR=vi", 'cd "$WHERE"; exec bash --norc')
    tmux.run(
        "new-window",
        "-d",
        "exec bash --norc -ic 'tail -f /dev/null $'\"'\"'caf\\xe9'\"'\"' \"\" | cat & sleep 1001; :'",
    )
    programs = ["bash", "cat", "sleep", "tail"]

    def running() -> list[str]:
        # By their arguments, which a program has a moment later than its name.
        return sorted("".join(each.argv[:1]) for each in see(tmux).pane_details("%1").processes)

    wait_until(lambda: running() == programs, "all programs run")
    wait_until(lambda: commands(see(tmux).pane_details("%0").processes) == ["bash --norc"], "the shell is there")
    here, there = read_processes(keeping("EDITOR")), read_portably(keeping("EDITOR"))
    for pane in see(tmux).topology.panes:
        one, other = here.tree(pane.pid, pane.tty), there.tree(pane.pid, pane.tty)
        assert facts(one) == facts(other) != []
    assert there.tree(os.getpid(), "/dev/pts/99999") == ()


def test_a_circle_in_the_table_ends(tmux: TmuxServer) -> None:
    """With a number given out anew while psutil looks, somebody may become his own ancestor."""
    pytest.importorskip("psutil")
    from perdure.host.portable_processes import PortableTable

    tmux.run("new-session", "-d", "-s", "a", "exec sleep 1001")
    until_at_rest(tmux)
    pane = see(tmux).topology.panes[0]
    table = PortableTable(keeping())
    table._kids = {pane.pid: [os.getpid()], os.getpid(): [pane.pid]}
    assert [process.pid for process in table.tree(pane.pid, pane.tty)] == [pane.pid, os.getpid()]


def facts(tree: tuple[Process, ...]) -> list[tuple[object, ...]]:
    return sorted(
        (each.pid, each.ppid, each.pgid, each.foreground, each.argv, each.cwd, each.exe, dict(each.environ))
        for each in tree
    )
