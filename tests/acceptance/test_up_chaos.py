"""Whatever happens to panes, servers, agents and the daemon itself: no event is lost, no id is given twice, nothing leaks.

Twenty seconds of it; `PERDURE_TEST_CHAOS_SECONDS=600` makes it ten minutes, `PERDURE_TEST_CHAOS_SEED` another storm.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from perdure.model.event import EventKind, StoredEvent
from perdure.model.identity import Evidence
from perdure.model.run import Run
from tests.acceptance.kit import configure, is_whole, only_json, wait_for
from tests.acceptance.simulants import Simulants
from tests.acceptance.storm import Follower, Sample, Storm, last_of
from tests.acceptance.watching import stored_events, stored_runs
from tests.at_rest import descendants, words_of
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

SECONDS = float(os.environ.get("PERDURE_TEST_CHAOS_SECONDS", "20"))
NOT_THERE = (Evidence.KEPT, Evidence.LAUNCH)
SEED = int(os.environ.get("PERDURE_TEST_CHAOS_SEED", "1"))


@pytest.fixture
def storm(perdure: Perdure, tmux_server: Callable[[str], TmuxServer], private_home: PrivateHome) -> Iterator[Storm]:
    """Three servers, a daemon that brings back what dies, and agents that can be started."""
    configure(private_home, "[live]\nrestore = true\n[tmux]\ntimeout_seconds = 3\n[restore]\nverify_seconds = 20\n")
    simulants = Simulants(private_home)
    found = Storm(perdure, [tmux_server(name) for name in ("one", "two", "three")], simulants, SEED)
    try:
        yield found
    finally:
        found.end()
        simulants.end_all()


def test_a_storm(storm: Storm, perdure: Perdure, private_home: PrivateHome) -> None:
    follower = Follower()
    follower.start()
    try:
        storm.rage(SECONDS / 2, kills_daemon=True)
        # The last daemon lives through the other half: what it takes is compared over a long time.
        storm.rage(SECONDS, kills_daemon=False)
        storm.settle()
        last = last_of(storm.daemon)
        storm.sample()
        _is_mapped(storm, perdure)
        wait_for(lambda: follower.heard and follower.heard[-1].seq >= last, "whoever listens to have heard everything")
        runs = storm.daemon.runs()
    except BaseException:
        follower.is_over = True
        print(*storm.done[-40:], sep="\n")
        print(storm.daemon.log)
        raise
    assert storm.daemon.end() == 0, storm.daemon.log
    follower.is_over = True
    follower.join(60)
    for daemon in storm.daemons:
        assert "Traceback" not in daemon.log, daemon.log

    events = stored_events()
    print(f"{len(storm.done)} deeds, {len(storm.daemons)} daemons, {len(events)} events, {len(stored_runs())} runs")
    print(Counter(each.event.kind for each in events))
    _is_unbroken(events, follower.heard)
    _is_replayed(events, stored_runs())
    _is_in_one_place(runs)
    _is_the_same_run(storm, events)
    _is_flat(storm.samples)
    assert _left_over(private_home, storm.servers) == []
    assert is_whole(perdure)


def _is_unbroken(events: Sequence[StoredEvent], heard: Sequence[StoredEvent]) -> None:
    numbers = [each.seq for each in events]
    assert numbers == sorted(set(numbers))
    # Who listened all the time, to whichever daemon was there, has heard exactly what is stored, in this order.
    assert [each.seq for each in heard] == numbers[: len(heard)]
    assert list(heard) == list(events[: len(heard)])
    assert len(events) - len(heard) <= 5


def _is_replayed(events: Sequence[StoredEvent], runs: dict[str, Run]) -> None:
    """What is told of a run, from its beginning on, leads to what is stored of it."""
    states: dict[str, str] = {}
    there: dict[str, bool] = {}
    for each in events:
        event, id = each.event, each.event.run
        if id is None:
            continue
        if event.kind is EventKind.RUN_CREATED:
            assert id not in there, (id, each)
            states[id], there[id] = "unknown", True
        elif event.kind is EventKind.RUN_DELETED:
            assert there[id], each
            there[id] = False
        elif event.kind is EventKind.RUN_RETURNED:
            states[id], there[id] = event.data["to"], True
        elif event.kind is EventKind.STATE_CHANGED:
            assert event.data["from"] == states[id], (each, states[id])
            states[id] = event.data["to"]
    assert set(there) == set(runs)
    assert {id: run.status.word for id, run in runs.items()} == states
    assert {id: not run.is_over for id, run in runs.items()} == there


def _is_in_one_place(runs: Sequence[Run]) -> None:
    assert len({run.id for run in runs}) == len(runs)
    assert len({(run.server.key, run.pane) for run in runs}) == len(runs)


def _is_the_same_run(storm: Storm, events: Sequence[StoredEvent]) -> None:
    """A conversation is never in two runs, however often its server died.

    Unless its run has gone on to another one, and it was brought back from before that.
    """
    left = {each.event.data["was"] for each in events if each.event.kind is EventKind.IDENTITY_CHANGED}
    for conversation, ids in storm.runs.items():
        if len(ids) > 1 and conversation not in left:
            story = [f"{each.seq} {each.event}" for each in events if each.event.run in ids]
            raise AssertionError("\n".join([f"{conversation} was in {ids}", *story]))


def _is_mapped(storm: Storm, perdure: Perdure) -> None:
    """Every agent that lives is found in its pane, in the conversation it says it is in, under the id of its run."""
    found: list[object] = []
    odd: list[dict[str, Any]] = []

    def is_mapped() -> bool:
        panes = only_json(perdure.ok("ls", "--json"))["panes"]
        # What is kept for a pane that was brought back, and whose agent has ended since, is no agent that lives; nor is
        # what waits there for a person, since its conversation was never certain.
        live = [pane for pane in panes if pane["agent"] and not pane["dead"] and pane["evidence"] not in NOT_THERE]
        shown = {pane["conversation"]: pane["run"] for pane in live}
        told = {
            run.identity.conversation: run.id
            for run in storm.daemon.runs()
            if run.identity is not None and run.program is not None and run.identity.evidence not in NOT_THERE
        }
        running = set(storm.simulants.running())
        found[:] = [shown, told, running]
        odd[:] = [pane for pane in panes if pane["conversation"] in (set(told) ^ running) | (set(shown) ^ set(told))]
        return shown == told and set(told) == running and None not in shown.values()

    try:
        wait_for(is_mapped, "every agent to be known")
    except AssertionError:
        records = [each for each in storm.simulants.records() if each["id"] in {pane["conversation"] for pane in odd}]
        processes = [_words_below(server.pid) for server in storm.servers if server.alive]
        why = "\n".join(map(str, [*found, "", *odd, "", *records, "", *processes]))
        raise AssertionError(f"shown, told and running are not the same:\n{why}") from None


def _words_below(pid: int) -> str:
    """The processes below a server, a line each, for whoever reads why a test failed."""
    return "\n".join(f"{each} {words_of(each)[-200:]!r}" for each in descendants(pid))


def _is_flat(samples: Sequence[Sample]) -> None:
    """Of every daemon: files and watches follow the panes, and memory does not grow with what has been."""
    for each in samples:
        assert each.files <= 40 + 4 * each.panes, each
        assert each.watches <= 40 + 6 * each.panes, each
    last = [each for each in samples if each.daemon == samples[-1].daemon]
    print("first and last of the last daemon:", last[0], last[-1])
    # The first seconds are not compared: whatever is loaded later is loaded once.
    settled = [each for each in last if each.seconds - last[0].seconds > 5]
    if len(settled) >= 8:
        quarter = len(settled) // 4
        begun = statistics.median(each.kilobytes for each in settled[:quarter])
        ended = statistics.median(each.kilobytes for each in settled[-quarter:])
        print(f"memory: {begun:.0f} kB -> {ended:.0f} kB in {settled[-1].seconds - settled[0].seconds:.0f} s")
        assert ended - begun < 16_000, [each.kilobytes for each in settled]


def _left_over(home: PrivateHome, servers: Sequence[TmuxServer]) -> list[str]:
    """Return the words of processes of ours that still run and are in nobody's pane: the program, and clients of tmux."""
    living = [server.pid for server in servers if server.alive]
    theirs = {os.getpid(), *living, *(below for pid in living for below in descendants(pid))}
    deadline = time.monotonic() + 60
    while True:
        found = []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    is_of_test = home.root.encode() in file.read()
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().decode(errors="replace").split("\0")
            except OSError:
                continue
            is_program = "perdure" in words[:4] or os.path.basename(words[0]) == "tmux"
            if is_of_test and is_program and int(name) not in theirs:
                found.append(" ".join(words))
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)
