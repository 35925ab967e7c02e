"""What the builder makes on a fresh server is what was captured from another. tmux itself is the judge, in both."""

from __future__ import annotations

import os
import pty
import subprocess
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
import pytest

from perdure.host.users import current_user
from perdure.model.plan import Plan, Restore
from perdure.model.snapshot import Snapshot
from perdure.model.topology import Topology
from perdure.restore.build import Builder, Built, Pieces
from perdure.restore.plan import Living, Policy, plan
from perdure.snapshots.diff import Change, diff
from perdure.tmux.control import Control
from tests.builders import a_snapshot, at
from tests.integration.looking import Seen, see, wait_until
from tests.tmux_server import LETTING_GO, PATIENCE, TmuxServer

replace = msgspec.structs.replace
#: What is no property of what was saved: how the pane's program was started.
STARTED = frozenset({"start_command", "command", "program"})


@pytest.fixture
def fresh(tmux_server: Callable[[str], TmuxServer]) -> TmuxServer:
    """Another server, without a configuration."""
    server = tmux_server("fresh")
    with open(os.path.join(os.environ["HOME"], ".tmux.conf"), "w") as file:
        file.write("set-option -g automatic-rename off\n")
    return server


def saved(server: TmuxServer) -> Snapshot:
    return a_snapshot(see(server).capture)


def words_of(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Plain shells, and for a dead pane what ends as it did."""
    words: dict[str, tuple[str, ...]] = {}
    for pane in snapshot.topology.panes:
        end = f"kill -{pane.exit_signal} $$" if pane.exit_signal else f"exit {pane.exit_status or 0}"
        words[pane.id] = ("/bin/sh", "-c", LETTING_GO + end) if pane.dead else ()
    return words


def planned(snapshot: Snapshot, living: Topology | None = None, *, policy: Policy | None = None) -> Plan:
    return plan(snapshot, Living(topology=living), {}, policy or Policy())


def build(
    snapshot: Snapshot,
    server: TmuxServer,
    *,
    living: Topology | None = None,
    made: Plan | None = None,
    words: Mapping[str, tuple[str, ...]] | None = None,
) -> Built:
    """Make on a server what a plan lacks."""
    made = made or planned(snapshot, living)
    pieces = Pieces(
        words=words_of(snapshot) | dict(words or {}),
        directories={pane.id: pane.cwd or pane.start_path for pane in snapshot.topology.panes},
    )
    with control(server) as client:
        return Builder(snapshot, made, pieces, living).build(client)


def control(server: TmuxServer) -> Control:
    return Control(server.socket, current_user(), "perdure-restore-1", environ=dict(os.environ), timeout=PATIENCE)


def changes(before: Topology, after: Topology) -> list[Change]:
    """What differs, apart from how the programs were started."""
    return [change for change in diff(before, after) if change.property not in STARTED]


def rebuilt(tmux: TmuxServer, fresh: TmuxServer) -> tuple[Snapshot, Seen, Built]:
    """Everything of one server made on another, without a refusal and without a difference."""
    for window in see(tmux).topology.windows:
        if window.name in ("tmux", "sh"):
            tmux.run(
                "rename-window", "-t", window.id, "main", ";", "set-option", "-wu", "-t", window.id, "automatic-rename"
            )
    # A pane that was just made is nowhere for a moment.
    wait_until(
        lambda: all(pane.cwd or pane.dead for pane in see(tmux).topology.panes), "every program in its directory"
    )
    snapshot = saved(tmux)
    built = build(snapshot, fresh)
    assert built.problems == {}
    wait_for_the_same(snapshot, fresh, "rebuilt")
    after = see(fresh)
    assert lasts(after.topology) == lasts(snapshot.topology)
    return snapshot, after, built


def lasts(topology: Topology) -> dict[str, list[int]]:
    names = {session.id: session.name for session in topology.sessions}
    return {
        name: [link.index for link in topology.links if link.session == id and link.last] for id, name in names.items()
    }


def start(tmux: TmuxServer, *words: str) -> None:
    tmux.run("new-session", "-d", "-x", "80", "-y", "24", *words, ";", "set-option", "-g", "automatic-rename", "off")


def test_one_shell(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "work", "-n", "main")
    _, after, _ = rebuilt(tmux, fresh)
    assert [session.name for session in after.topology.sessions] == ["work"]


@pytest.mark.parametrize("base", ["0", "1", "7"])
@pytest.mark.parametrize("base_now", ["0", "1", "3"])
def test_indexes_with_gaps(tmux: TmuxServer, fresh: TmuxServer, base: str, base_now: str) -> None:
    start(tmux, "-s", "first")
    tmux.run("set-option", "-g", "base-index", base, ";", "set-option", "-g", "renumber-windows", "off")
    start(tmux, "-s", "work")
    for index in (8, 11, 9, 30):
        tmux.run("new-window", "-t", f"=work:{index}")
    tmux.run("select-window", "-t", "=work:9", ";", "select-window", "-t", "=work:30")
    start(fresh, "-s", "x")
    fresh.run("set-option", "-g", "base-index", base_now)
    fresh.run("set-option", "-g", "renumber-windows", "on")
    snapshot = saved(tmux)
    living = see(fresh).topology
    assert build(snapshot, fresh, living=living).problems == {}
    fresh.run("kill-session", "-t", "=x")
    wait_for_the_same(snapshot, fresh, "with its gaps")
    assert lasts(see(fresh).topology)["work"] == [9]


def test_a_pane_base_index(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "work")
    tmux.run("set-option", "-g", "pane-base-index", "1")
    tmux.run("split-window", "-t", "=work:", ";", "split-window", "-h", "-t", "=work:")
    start(fresh, "-s", "x")
    fresh.run("set-option", "-g", "pane-base-index", "1")
    snapshot = saved(tmux)
    build(snapshot, fresh, living=see(fresh).topology)
    fresh.run("kill-session", "-t", "=x")
    wait_for_the_same(snapshot, fresh, "with its indexes")


def split(tmux: TmuxServer, *targets: Sequence[str]) -> None:
    for words in targets:
        tmux.run("split-window", *words)


def test_nested_layouts_zoom_and_who_was_active(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "work", "-n", "nested", "-x", "211", "-y", "57")
    split(tmux, ["-h", "-l", "70"], ["-v"], ["-h", "-t", "%0"], ["-v", "-b", "-t", "%0"])
    tmux.run("select-pane", "-t", "%2", ";", "select-pane", "-t", "%3", ";", "resize-pane", "-Z")
    tmux.run("new-window", "-n", "behind", "-d", ";", "split-window", "-d", "-t", "behind")
    _, after, _ = rebuilt(tmux, fresh)
    zoomed = next(window for window in after.topology.windows if window.name == "nested")
    assert zoomed.zoomed
    assert [link.active for link in after.links("work")] == [True, False]


@pytest.mark.parametrize("layout", ["even-vertical", "even-horizontal", "tiled", "main-vertical"])
@pytest.mark.parametrize(("width", "height", "panes"), [(80, 24, 12), (40, 11, 10), (200, 50, 5)])
def test_many_panes_in_little_room(
    tmux: TmuxServer, fresh: TmuxServer, layout: str, width: int, height: int, panes: int
) -> None:
    start(tmux, "-s", "big", "-x", "200", "-y", "50")
    for _ in range(panes - 1):
        tmux.run("split-window", "-t", "=big:", ";", "select-layout", "-t", "=big:", "tiled")
    tmux.run(
        "select-layout", "-t", "=big:", layout, ";", "resize-window", "-t", "=big:", "-x", str(width), "-y", str(height)
    )
    tmux.run("set-option", "-wu", "-t", "=big:", "window-size")
    rebuilt(tmux, fresh)


def test_titles_options_environment_and_path(tmux: TmuxServer, fresh: TmuxServer) -> None:
    home = os.environ["HOME"]
    for name in ("a", "b #{pane_id} c", "it's"):
        os.mkdir(os.path.join(home, name))
    start(tmux, "-s", "work", "-n", "one", "-c", os.path.join(home, "a"))
    tmux.run("new-window", "-t", "=work:4", "-c", os.path.join(home, "b #{pane_id} c").replace("#", "##"))
    tmux.run("split-window", "-c", os.path.join(home, "it's"))
    tmux.run("select-pane", "-t", "%0", "-T", "", ";", "select-pane", "-t", "%1", "-T", "a ##{pid} $HOME \\ `x` 'y' %H")
    tmux.run("set-option", "-t", "=work:", "status", "off", ";", "set-option", "-t", "=work:", "history-limit", "1234")
    tmux.run("set-option", "-t", "=work:", "update-environment[3]", "ODD")
    tmux.run("set-option", "-t", "=work:", "@mine", "a;b #{pid} \\; \"q\" 'q' $HOME ~ ")
    tmux.run("set-option", "-w", "-t", "@1", "synchronize-panes", "on", ";", "set-option", "-w", "-t", "@1", "@w", "")
    tmux.run("set-option", "-w", "-t", "@1", "pane-border-status", "top")
    tmux.run(
        "set-option", "-p", "-t", "%1", "@agent", "x & touch PWNED", ";", "set-option", "-p", "-t", "%1", "@a##b", "v"
    )
    tmux.run(
        "set-environment", "-t", "=work:", "PLAIN", "a b;c", ";", "set-environment", "-t", "=work:", "LINES_", "1\n2"
    )
    tmux.run("set-environment", "-t", "=work:", "-r", "GONE")
    snapshot, after, built = rebuilt(tmux, fresh)
    assert after.session("work").removed == snapshot.topology.sessions[0].removed
    assert {fresh.show("#{history_limit}", pane) for pane in built.panes.values()} == {"1234"}


def test_no_size_and_no_rename_is_left_behind(tmux: TmuxServer, fresh: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", ";", "set-option", "-g", "automatic-rename", "off")
    tmux.run(
        "new-window",
        "-n",
        "fixed",
        ";",
        "new-window",
        "-n",
        "moving",
        ";",
        "set-option",
        "-w",
        "automatic-rename",
        "on",
    )
    tmux.run("new-window", "-n", "as all", ";", "set-option", "-wu", "automatic-rename")
    snapshot = saved(tmux)
    build(snapshot, fresh)
    after = see(fresh)
    assert "default-size" not in after.session("work").options
    assert [window.options.get("automatic-rename") for window in after.topology.windows] == [None, "off", "on", None]


def test_the_session_s_directory_is_not_that_of_its_first_pane(tmux: TmuxServer, fresh: TmuxServer) -> None:
    home = os.environ["HOME"]
    for name in ("session", "pane"):
        os.mkdir(os.path.join(home, name))
    start(tmux, "-s", "work", "-c", os.path.join(home, "session"))
    tmux.run("respawn-pane", "-k", "-t", "%0", "-c", os.path.join(home, "pane"))
    wait_until(lambda: see(tmux).pane("%0").cwd.endswith("/pane"), "the shell is there")
    _, after, built = rebuilt(tmux, fresh)
    assert after.session("work").path == os.path.join(home, "session")
    assert after.pane(built.panes["%0"]).cwd == os.path.join(home, "pane")


def ended(tmux: TmuxServer) -> int:
    """How many panes are dead of which tmux knows how."""
    panes = see(tmux).topology.panes
    return sum(pane.dead and (pane.exit_status is not None or pane.exit_signal is not None) for pane in panes)


def test_dead_panes_show_how_they_ended(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "work", "sleep 1000")
    tmux.run("set-option", "-w", "-t", "@0", "remain-on-exit", "on")
    tmux.run(
        *(word for end in ("exit 3", "kill -9 $$", "exit 0") for word in ("split-window", "-d", LETTING_GO + end, ";"))
    )
    wait_until(lambda: ended(tmux) == 3, "three are dead")
    _, after, _ = rebuilt(tmux, fresh)
    ends = {(pane.exit_status, pane.exit_signal) for pane in after.topology.panes if pane.dead}
    assert (3, None) in ends
    assert 9 in {signal for _, signal in ends}


def test_a_dead_pane_stays_where_panes_that_end_go(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "work", "sleep 1000")
    tmux.run("set-option", "-g", "remain-on-exit", "on", ";", "split-window", "-d", f"{LETTING_GO}exit 4")
    wait_until(lambda: ended(tmux) == 1, "it is dead")
    built = build(saved(tmux), fresh)
    wait_until(lambda: see(fresh).pane(built.panes["%1"]).exit_status == 4, "it is dead again")


def test_grouped_sessions_come_back_grouped(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "work")
    tmux.run("new-window", "-t", "=work:3", ";", "new-window", "-t", "=work:5")
    tmux.run("new-session", "-d", "-s", "other", "-t", "work", ";", "new-session", "-d", "-s", "third", "-t", "work")
    tmux.run("select-window", "-t", "=other:3", ";", "select-window", "-t", "=third:0")
    _, after, _ = rebuilt(tmux, fresh)
    assert {session.group for session in after.topology.sessions} == {"work"}
    assert len(after.topology.windows) == 3


def test_a_group_whose_namesake_is_gone(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "work")
    tmux.run("new-session", "-d", "-s", "$1", "-t", "work", ";", "new-session", "-d", "-s", "=b", "-t", "work")
    tmux.run("kill-session", "-t", "=work")
    _, after, _ = rebuilt(tmux, fresh)
    assert {session.group for session in after.topology.sessions} == {"work"}


def test_groups_of_one(tmux: TmuxServer, fresh: TmuxServer) -> None:
    for name in ("a", "b"):
        start(tmux, "-s", name)
        tmux.run("new-session", "-d", "-s", f"{name}2", "-t", name, ";", "kill-session", "-t", f"={name}")
    _, after, _ = rebuilt(tmux, fresh)
    assert [(session.name, session.group) for session in after.topology.sessions] == [("a2", "a"), ("b2", "b")]


def test_linked_windows(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "a", "-n", "shared")
    start(tmux, "-s", "b", "-n", "own")
    start(tmux, "-s", "c", "-n", "temporary")
    tmux.run("link-window", "-s", "@0", "-t", "=b:5", ";", "link-window", "-k", "-s", "@0", "-t", "=c:0")
    tmux.run("link-window", "-s", "@0", "-t", "=a:9", ";", "select-window", "-t", "=b:5")
    _, after, _ = rebuilt(tmux, fresh)
    assert len(after.topology.windows) == 2
    assert [link.index for link in after.links("a")] == [0, 9]
    assert [link.index for link in after.links("c")] == [0]


ODD_NAMES = ["w1", "w10", "*", "?", "[a]", "=x", "$1", "@2", "%3", "{last}", "-d", "a b ", "pipe|x", "it's \"q\"",
             "back\\slash", "$HOME", "#{pid}", "#(touch PWNED)", "##x#[fg=red]", "tab\there", "日本語 👍", ";", "~", "!", "+", "x & y"]  # fmt: skip


def test_every_odd_name_at_once(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "plain")
    for name in ODD_NAMES:
        text = name.replace("#", "##").replace("##[", "#[")
        text = text.replace(";", "\\;")
        tmux.run("new-session", "-d", "-s", text, "-n", text)
    _, after, _ = rebuilt(tmux, fresh)
    assert len(after.topology.sessions) == len(ODD_NAMES) + 1
    assert not os.path.exists("PWNED")


def test_w1_is_made_beside_w10(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "w1", "-n", "mine")
    tmux.run("new-window", "-t", "=w1:5")
    start(fresh, "-s", "w10", "-n", "theirs")
    before = see(fresh).topology
    assert build(saved(tmux), fresh, living=before).problems == {}
    after = see(fresh)
    assert [link.index for link in after.links("w10")] == [0]
    assert [link.index for link in after.links("w1")] == [0, 5]


def test_a_living_session_gets_only_what_it_lacks(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "work", "-n", "one", "-x", "120", "-y", "40")
    tmux.run("split-window", "-h", ";", "split-window", "-v", ";", "new-window", "-t", "=work:3", "-n", "three")
    tmux.run("new-window", "-t", "=work:4", "-n", "four")
    snapshot = saved(tmux)
    tmux.run("kill-pane", "-t", "%0", ";", "kill-pane", "-t", "%1", ";", "kill-window", "-t", "@1")
    tmux.run("rename-session", "-t", "$0", "renamed")
    living = see(tmux).topology
    made = planned(snapshot, living)
    assert made.making == {"%0", "%1", "@1", "%3"}
    built = build(snapshot, tmux, living=living)
    assert built.problems == {}
    after = see(tmux)
    assert [session.name for session in after.topology.sessions] == ["renamed"]
    assert [after.window(link.window).name for link in after.links("renamed")] == ["one", "three", "four"]
    assert after.window("@0").layout.split(",", 1)[1].count("x") == snapshot.topology.windows[0].layout.count("x")
    order = sorted((pane for pane in after.topology.panes if pane.window == "@0"), key=lambda pane: pane.index)
    assert [pane.id for pane in order] == [built.panes["%0"], built.panes["%1"], "%2"]
    assert [(pane.width, pane.height) for pane in order] == [
        (pane.width, pane.height) for pane in snapshot.topology.panes if pane.window == "@0"
    ]
    assert after.session("renamed").options == snapshot.topology.sessions[0].options


@contextmanager
def looking_at(tmux: TmuxServer, session: str, columns: int, lines: int) -> Iterator[None]:
    """A person with a terminal of this size, on a session."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (lines, columns))
    command = ["tmux", "-u", "-L", tmux.name, "attach-session", "-t", session]
    client = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    try:
        wait_until(lambda: tmux.run("list-clients") != b"", "the client is there")
        yield
    finally:
        client.kill()
        client.wait()
        os.close(ours)
        os.close(theirs)


def test_windows_come_into_a_session_on_a_smaller_terminal(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "work", "-x", "200", "-y", "50", "-n", "one")
    tmux.run(
        "new-window", "-t", "=work:4", "-n", "four", ";", "split-window", "-h", "-l", "50", ";", "split-window", "-v"
    )
    tmux.run("split-window", "-h", "-t", "%1", ";", "select-pane", "-t", "%2", ";", "resize-pane", "-Z")
    tmux.run(
        "new-window", "-t", "=work:6", "-n", "six", ";", "split-window", "-v", ";", "select-window", "-t", "=work:0"
    )
    snapshot = saved(tmux)
    start(fresh, "-s", "work", "-n", "one")
    with looking_at(fresh, "=work", 60, 20):
        built = build(snapshot, fresh, living=see(fresh).topology)
        assert [link.index for link in see(fresh).links("work") if link.active] == [0]
        fresh.run("select-window", "-t", "=work:4")
        after = see(fresh)
    assert built.problems == {}
    assert [link.index for link in after.links("work")] == [0, 4, 6]
    four = after.window(built.windows["@1"])
    assert (four.width, four.zoomed) == (60, True)
    order = sorted((pane for pane in after.topology.panes if pane.window == four.id), key=lambda pane: pane.index)
    assert [pane.id for pane in order] == [built.panes[id] for id in ("%1", "%4", "%2", "%3")]
    assert [pane.id for pane in order if pane.active] == [built.panes["%2"]]


def test_a_window_that_is_refused_costs_only_itself(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "work")
    tmux.run("new-window", "-t", "=work:2", "-n", "two", ";", "split-window", "-t", "=work:2")
    tmux.run("new-window", "-t", "=work:3", "-n", "three")
    snapshot = saved(tmux)
    start(fresh, "-s", "work")
    living = see(fresh).topology
    made = planned(snapshot, living)
    # Somebody was faster: this index is taken now.
    fresh.run("new-window", "-t", "=work:2", "-n", "theirs")
    built = build(snapshot, fresh, living=living, made=made)
    after = see(fresh)
    assert "index" in built.problems["@1"]
    assert [after.window(link.window).name for link in after.links("work")][1:] == ["theirs", "three"]
    assert [len([p for p in after.topology.panes if p.window == link.window]) for link in after.links("work")] == [
        1,
        1,
        1,
    ]


def test_an_option_or_layout_that_is_refused_costs_only_itself(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "work", "-n", "one")
    tmux.run("split-window", "-h", ";", "set-option", "-w", "-t", "@0", "@mine", "kept", ";", "select-pane", "-t", "%0")
    snapshot = saved(tmux)
    window = snapshot.topology.windows[0]
    odd = replace(window, layout="dead,80x24,0,0,0", options={"no-such-option": "1", **window.options})
    snapshot = replace(snapshot, topology=replace(snapshot.topology, windows=(odd,)))
    built = build(snapshot, fresh)
    after = see(fresh)
    assert "no-such-option" in built.problems["@0"]
    assert after.window(built.windows["@0"]).options["@mine"] == "kept"
    assert after.pane(built.panes["%0"]).active


def test_a_session_that_would_end_unseen_stays(tmux: TmuxServer, fresh: TmuxServer) -> None:
    start(tmux, "-s", "work")
    snapshot = saved(tmux)
    session = replace(snapshot.topology.sessions[0], options={"destroy-unattached": "on"})
    snapshot = replace(snapshot, topology=replace(snapshot.topology, sessions=(session,)))
    built = build(snapshot, fresh)
    assert "destroy-unattached" in built.problems["$0"]
    assert [each.name for each in see(fresh).topology.sessions] == ["work"]


def test_everything_twice_changes_nothing(tmux: TmuxServer, fresh: TmuxServer) -> None:
    scene(tmux)
    snapshot = saved(tmux)
    build(snapshot, fresh)
    wait_for_the_same(snapshot, fresh, "after the first time")
    assert planned(snapshot, see(fresh).topology).is_done


def wait_for_the_same(snapshot: Snapshot, server: TmuxServer, when: str) -> None:
    """Panes die and go to their directories in their own time; in the end nothing may differ."""
    left: list[Change] = []

    def is_the_same() -> bool:
        left[:] = changes(snapshot.topology, see(server).topology)
        return not left

    try:
        wait_until(is_the_same, when)
    except AssertionError as error:
        raise AssertionError(f"{error}: {left}") from None


def scene(tmux: TmuxServer) -> None:
    """Something of everything."""
    home = os.environ["HOME"]
    os.mkdir(os.path.join(home, "away"))
    start(tmux, "-s", "work", "-n", "one", "-c", home)
    tmux.run(
        "split-window", "-h", ";", "split-window", "-v", "-c", os.path.join(home, "away"), ";", "resize-pane", "-Z"
    )
    tmux.run("new-window", "-t", "=work:4", "-n", "four", "-c", os.path.join(home, "away"))
    tmux.run("new-session", "-d", "-s", "again", "-t", "work", ";", "select-window", "-t", "=again:0")
    start(tmux, "-s", "alone")
    tmux.run("new-session", "-d", "-s", "left", "-t", "alone", ";", "kill-session", "-t", "=alone")
    start(tmux, "-s", "links", "-c", os.path.join(home, "away"))
    tmux.run(
        "link-window", "-k", "-s", "=work:4", "-t", "=links:0", ";", "link-window", "-s", "=work:0", "-t", "=links:1"
    )
    tmux.run(
        "set-option",
        "-w",
        "-t",
        "@0",
        "remain-on-exit",
        "on",
        ";",
        "split-window",
        "-d",
        "-t",
        "@0",
        f"{LETTING_GO}exit 3",
    )
    wait_until(lambda: ended(tmux) == 1, "one is dead")


class Interrupted(Exception):
    """The restore ends here."""


class Few:
    """A conversation that breaks off after some commands."""

    def __init__(self, control: Control, number: int) -> None:
        self._control = control
        self._left = number

    def ask(self, commands: Sequence[Sequence[str]]) -> Sequence[object]:
        some = commands[: self._left]
        replies = self._control.ask(some)
        self._left -= len(some)
        if len(some) < len(commands):
            raise Interrupted
        return replies


def build_some(snapshot: Snapshot, server: TmuxServer, number: int) -> bool:
    """Build until so many commands were given; say whether that was all."""
    pieces = Pieces(
        words=words_of(snapshot),
        directories={pane.id: pane.cwd or pane.start_path for pane in snapshot.topology.panes},
    )
    with control(server) as client:
        try:
            Builder(snapshot, planned(snapshot), pieces, None).build(Few(client, number))  # type: ignore[arg-type]
        except Interrupted:
            return False
        return True


def test_after_an_interruption_anywhere_the_rest_is_made(
    tmux: TmuxServer, tmux_server: Callable[[str], TmuxServer]
) -> None:
    scene(tmux)
    snapshot = saved(tmux)
    first = planned(snapshot)
    number = 0
    while True:
        server = tmux_server(f"n{number}")
        start(server, "-s", "theirs")
        if build_some(snapshot, server, number):
            break
        living = see(server).topology
        restore = Restore(
            id="r1",
            snapshot=snapshot.id,
            server=snapshot.server,
            began_at=at(0),
            making=first.making,
            links=first.links,
        )
        made = plan(snapshot, Living(topology=living, interrupted=restore), {}, Policy())
        assert build(snapshot, server, living=living, made=made).problems == {}, number
        server.run("kill-session", "-t", "=theirs")
        wait_for_the_same(snapshot, server, f"after {number} commands")
        assert lasts(see(server).topology) == lasts(snapshot.topology), number
        server.kill()
        # Sessions and windows come first, and nearly every command there leaves something else behind.
        number += 1 if number < 25 else 6
    assert number > 50
