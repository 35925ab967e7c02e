"""A server that lived on, and on which people moved things about since it was saved. tmux itself is the judge."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

import pytest

from perdure.model.snapshot import Snapshot
from perdure.restore.build import Built
from perdure.restore.plan import Living, Policy, plan
from tests.integration.looking import see
from tests.integration.test_build import build, saved, start
from tests.tmux_server import TmuxServer

#: How often somebody does something between a save and a restore.
_DEEDS = 8


def everything_back(
    snapshot: Snapshot, tmux: TmuxServer, known: dict[str, str] | None = None
) -> tuple[set[str], Built]:
    """Restore; fails unless what lived is left alone, every pane is there once, and nothing is left to do.

    `known` are the panes earlier restores made; those this one makes are added.
    """
    known = {} if known is None else known
    before = _processes(tmux)
    living = see(tmux).topology
    made = plan(snapshot, Living(topology=living, made=known), {}, Policy())
    built = build(snapshot, tmux, living=living, made=made)
    after = _processes(tmux)
    assert {pane: after.get(pane) for pane in before} == before
    assert {built.panes.get(pane.id) for pane in snapshot.topology.panes} <= after.keys()
    assert len(set(built.panes.values())) == len(snapshot.topology.panes)
    assert len(after) == len(before) + sum(1 for id in made.making if id.startswith("%"))
    known |= {now: pane for pane, now in built.panes.items() if pane in made.making}
    again = plan(snapshot, Living(topology=see(tmux).topology, made=known), {}, Policy())
    assert again.is_done, (again.making, again.links)
    return set(made.making), built


def _processes(tmux: TmuxServer) -> dict[str, str]:
    rows = tmux.run("list-panes", "-a", "-F", "#{pane_id} #{pane_pid}").decode().splitlines()
    return dict(row.split(" ") for row in rows)


def _windows(tmux: TmuxServer) -> dict[str, list[str]]:
    """The panes of every window that is shown, by session and index."""
    found: dict[str, list[str]] = {}
    for row in tmux.run("list-panes", "-a", "-F", "#{session_name}:#{window_index} #{pane_id}").decode().splitlines():
        place, _, pane = row.rpartition(" ")
        found.setdefault(place, []).append(pane)
    return found


def test_a_pane_that_was_joined_elsewhere_is_where_somebody_wants_it(tmux: TmuxServer) -> None:
    start(tmux, "-s", "a")
    start(tmux, "-s", "b")
    start(tmux, "-s", "c")
    snapshot = saved(tmux)
    tmux.run("join-pane", "-d", "-s", "b:0.0", "-t", "a:0.0")
    assert everything_back(snapshot, tmux)[0] == set()
    tmux.run("kill-session", "-t", "c")
    made, built = everything_back(snapshot, tmux)
    assert made == {"$2", "@2", "%2"}
    assert _windows(tmux) == {"a:0": ["%0", "%1"], "c:0": [built.panes["%2"]]}


def test_a_window_is_made_without_the_panes_that_live_elsewhere(tmux: TmuxServer) -> None:
    start(tmux, "-s", "a")
    start(tmux, "-s", "b")
    tmux.run("split-window", "-d", "-t", "b:0", ";", "split-window", "-d", "-t", "b:0")
    tmux.run("new-window", "-d", "-t", "b:4")
    snapshot = saved(tmux)
    tmux.run("join-pane", "-d", "-s", "%1", "-t", "a:0.0", ";", "kill-session", "-t", "b")
    made, built = everything_back(snapshot, tmux)
    assert built.problems == {}
    assert made == {"$1", "@1", "%2", "%3", "@2", "%4"}
    assert {place: len(panes) for place, panes in _windows(tmux).items()} == {"a:0": 2, "b:0": 2, "b:4": 1}


def test_a_window_that_holds_no_pane_of_its_own_gets_it_back(tmux: TmuxServer) -> None:
    start(tmux, "-s", "a")
    tmux.run("split-window", "-d", "-t", "a:0", ";", "new-window", "-d", "-t", "a:1")
    snapshot = saved(tmux)
    tmux.run("swap-pane", "-d", "-s", "%1", "-t", "%2", ";", "kill-pane", "-t", "%2")
    made, built = everything_back(snapshot, tmux)
    assert (made, built.problems) == ({"%2"}, {})
    assert _windows(tmux) == {"a:0": ["%0"], "a:1": ["%1", built.panes["%2"]]}


def test_a_pane_is_put_into_its_window_though_the_one_before_it_left(tmux: TmuxServer) -> None:
    start(tmux, "-s", "a")
    tmux.run("split-window", "-d", "-t", "%0", ";", "split-window", "-d", "-t", "%1", ";", "new-window", "-d")
    snapshot = saved(tmux)
    tmux.run("swap-pane", "-d", "-s", "%1", "-t", "%3", ";", "kill-pane", "-t", "%2", ";", "select-pane", "-t", "%1")
    _, built = everything_back(snapshot, tmux)
    assert built.problems == {}
    assert _windows(tmux) == {"a:0": ["%0", built.panes["%2"], "%3"], "a:1": ["%1"]}


def test_what_somebody_looks_at_elsewhere_stays_in_front(tmux: TmuxServer) -> None:
    start(tmux, "-s", "a")
    tmux.run("split-window", "-t", "%0", ";", "split-window", "-d", "-t", "%1", ";", "new-window", "-d")
    snapshot = saved(tmux)
    tmux.run("join-pane", "-d", "-s", "%1", "-t", "%3", ";", "select-pane", "-t", "%3", ";", "kill-pane", "-t", "%2")
    everything_back(snapshot, tmux)
    assert tmux.show("#{pane_id}", "a:1") == "%3"


def test_a_name_that_is_another_session_s_now_stops_nothing(tmux: TmuxServer) -> None:
    start(tmux, "-s", "a")
    start(tmux, "-s", "b")
    tmux.run("split-window", "-d", "-t", "b:0")
    snapshot = saved(tmux)
    tmux.run("kill-session", "-t", "b", ";", "rename-session", "-t", "a", "b")
    made, built = everything_back(snapshot, tmux)
    assert made == {"$1", "@1", "%1", "%2"}
    assert "b" in built.problems["$1"]
    assert {place: len(panes) for place, panes in _windows(tmux).items()} == {"b:0": 1, "b-2:0": 2}


def test_a_pane_that_has_no_room_any_more_gets_a_window_of_its_own(tmux: TmuxServer) -> None:
    start(tmux, "-s", "a")
    tmux.run("split-window", "-d", "-t", "%0")
    snapshot = saved(tmux)
    tmux.run("kill-pane", "-t", "%1")
    while tmux.run("split-window", "-d", "-P", "-t", "%0", check=False):
        pass
    _, built = everything_back(snapshot, tmux)
    assert "no room" in built.problems["%1"]
    assert _windows(tmux)["a:1"] == [built.panes["%1"]]


def test_many_panes_come_back_into_a_window_though_the_others_fill_it(tmux: TmuxServer) -> None:
    start(tmux, "-s", "a")
    for _ in range(11):
        tmux.run("split-window", "-d", "-t", "a:0", ";", "select-layout", "-t", "a:0", "tiled")
    snapshot = saved(tmux)
    for pane in range(2, 11):
        tmux.run("kill-pane", "-t", f"%{pane}")
    tmux.run("select-layout", "-t", "a:0", "even-vertical")
    _, built = everything_back(snapshot, tmux)
    assert built.problems == {}
    sizes = [
        sorted((pane.index, pane.width, pane.height) for pane in each.panes)
        for each in (snapshot.topology, see(tmux).topology)
    ]
    assert sizes[0] == sizes[1]


class _Somebody:
    """Whoever moves, renames and ends things, without much sense."""

    def __init__(self, tmux: TmuxServer, seed: int) -> None:
        self._tmux = tmux
        self._random = random.Random(seed)
        self._safe = ""
        self.done: list[Sequence[str]] = []
        self._deeds: list[Callable[[], Sequence[str]]] = [
            lambda: ("swap-pane", "-d", "-s", self._any("%"), "-t", self._any("%")),
            lambda: ("join-pane", "-d", "-s", self._any("%"), "-t", self._any("%")),
            lambda: ("break-pane", "-d", "-s", self._any("%")),
            lambda: ("move-window", "-d", "-s", self._any("@"), "-t", self._place()),
            lambda: ("link-window", "-d", "-s", self._any("@"), "-t", self._place()),
            lambda: ("unlink-window", "-t", self._any("@")),
            lambda: ("swap-window", "-d", "-s", self._any("@"), "-t", self._any("@")),
            lambda: ("rename-session", "-t", self._any("$"), self._random.choice(["a", "b", "grp", "z"])),
            lambda: ("new-session", "-d", "-s", self._random.choice(["a", "b", "c"])),
            lambda: ("new-session", "-d", "-t", self._any("$")),
            lambda: ("kill-session", "-t", self._any("$")),
            lambda: ("kill-window", "-t", self._any("@")),
            lambda: ("kill-pane", "-t", self._any("%")),
            lambda: ("kill-pane", "-t", self._any("%")),
        ]

    def prepare(self) -> None:
        for name in ("a", "b", "c"):
            start(self._tmux, "-s", name)
            for _ in range(2):
                words = self._random.choice((("split-window",), ("new-window",)))
                self._tmux.run(*words, "-d", "-t", f"{name}:")
        self._tmux.run("new-session", "-d", "-t", "a", "-s", "grp")
        self._tmux.run("link-window", "-d", "-s", "b:0", "-t", "c:7")
        # What nobody ends: without any session the server would end too.
        start(self._tmux, "-s", "stays")
        self._safe = self._tmux.show("#{session_id}#{window_id}#{pane_id}", "stays:")

    def act(self) -> None:
        for _ in range(_DEEDS):
            words = self._random.choice(self._deeds)()
            self.done.append(words)
            self._tmux.run(*words, check=False)

    def _any(self, kind: str) -> str:
        format = {"$": "session_id", "@": "window_id", "%": "pane_id"}[kind]
        found = self._tmux.run("list-panes", "-a", "-F", f"#{{{format}}}").decode().split()
        return self._random.choice(sorted(set(found) - set(re.findall(r"\W\d+", self._safe))) or ["nothing"])

    def _place(self) -> str:
        return f"{self._any('$')}:{self._random.randint(0, 9)}"


@pytest.mark.parametrize("seed", range(20))
def test_whatever_was_moved_nothing_is_lost_and_nothing_is_touched(tmux: TmuxServer, seed: int) -> None:
    somebody = _Somebody(tmux, seed)
    somebody.prepare()
    snapshot = saved(tmux)
    somebody.act()
    print(*(" ".join(words) for words in somebody.done), sep="\n")
    known: dict[str, str] = {}
    _, built = everything_back(snapshot, tmux, known)
    assert not [said for said in built.problems.values() if said.startswith("tmux refused")], built.problems
    somebody.act()
    everything_back(snapshot, tmux, known)
