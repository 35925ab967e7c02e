"""Several processes recording at once, and processes that are killed at it. Every process is a real one."""

from __future__ import annotations

import random
import signal
import subprocess
import time

import pytest

from perdure.model.run import number_of
from perdure.store.store import Store
from tests.contract.store.conftest import Place
from tests.contract.store.test_processes import a_process_running, until_alone

#: Takes an id, then records it <count> times with two events, and says each number of its last event once it is kept.
RECORDER = """
import sys
from perdure.store import open_store
from tests.builders import a_server
from tests.contract.store.runs import a_run, an_event
url, state_dir, host, count = sys.argv[1:]
store = open_store(url, state_dir=state_dir)
(id,) = store.new_runs(1)
for number in range(1, int(count) + 1):
    run = a_run(id, server=a_server(host=host), title=str(number))
    events = [an_event(run=id, data={"number": number, "part": part}) for part in (0, 1)]
    print(number, id, *(each.seq for each in store.record([run], events)), flush=True)
"""


def recorder(place: Place, host: str, count: int) -> subprocess.Popen[str]:
    return a_process_running(RECORDER, place.url, place.state_dir, host, str(count))


def seen_by_a_follower(store: Store, recorders: list[subprocess.Popen[str]]) -> list[int]:
    """The numbers of the events as they become visible to whoever reads on behind the last."""
    seen: list[int] = []
    is_over = False
    while not is_over:
        # Looked at before reading: what was recorded last is read too.
        is_over = all(process.poll() is not None for process in recorders)
        seen += [each.seq for each in store.read_events(after=seen[-1] if seen else 0, limit=7)]
        is_over = is_over and seen[-1:] == [store.last_event()]
    return seen


def test_many_record_at_once_and_whoever_follows_misses_nothing(place: Place) -> None:
    store = place.open()
    recorders = [recorder(place, f"host{number}", 60) for number in range(3)]
    seen = seen_by_a_follower(store, recorders)
    said = [line.split() for process in recorders for line in process.communicate()[0].splitlines()]
    assert [process.returncode for process in recorders] == [0, 0, 0]
    # No number twice, none left out, and none seen after a higher one.
    assert seen == list(range(1, 361))
    assert sorted(int(seq) for line in said for seq in line[2:]) == seen
    assert {line[1] for line in said} == {"r1", "r2", "r3"}
    runs = store.list_runs()
    assert sorted(run.server.host for run in runs) == ["host0", "host1", "host2"]
    assert {run.title for run in runs} == {"60"}
    for run in runs:
        events = [each.event.data for each in store.read_events(run=run.id)]
        assert [(data["number"], data["part"]) for data in events] == [
            (n, part) for n in range(1, 61) for part in (0, 1)
        ]
    assert store.check() == ()
    store.close()


def test_a_recorder_killed_at_any_moment_leaves_runs_and_events_that_agree(place: Place) -> None:
    chance = random.Random(13)
    given: set[str] = set()
    last_seq = 0
    for _ in range(8):
        process = recorder(place, "laptop", 10_000)
        assert process.stdout is not None
        said = [process.stdout.readline()]
        time.sleep(chance.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        said += process.communicate()[0].splitlines()
        # The last line may have been cut short.
        lines = [line.split() for line in said if len(line.split()) == 4]
        id = lines[0][1]
        assert id not in given
        given.add(id)
        store = place.open()
        until_alone(store)
        assert store.check() == ()
        run = store.get_run(id)
        events = store.read_events(run=id, limit=100_000)
        # Both events of one call and the run as of then, or none of it; nothing that was said to be kept is missing.
        assert len(events) == 2 * int(run.title)
        assert [each.event.data["number"] for each in events[-2:]] == [int(run.title)] * 2
        assert len(events) >= 2 * len(lines)
        assert events[0].seq > last_seq
        last_seq = store.last_event()
        assert last_seq == events[-1].seq
        store.close()
    assert len({number_of(id) for id in given}) == 8


@pytest.mark.parametrize("moment", ["keep_runs", "keep_events"])
def test_a_kill_inside_record_leaves_nothing_of_it(place: Place, moment: str) -> None:
    program = RECORDER.replace(
        "for number",
        "if int(count) == 1:\n"
        "    import os, signal\n"
        f"    inner = store.{moment}\n"
        f"    store.{moment} = lambda these: (inner(these), os.kill(os.getpid(), signal.SIGKILL))\n"
        "for number",
    )
    first = a_process_running(program, place.url, place.state_dir, "laptop", "2")
    assert "2 r1 3 4" in first.communicate()[0]
    second = a_process_running(program, place.url, place.state_dir, "laptop", "1")
    assert second.communicate()[0] == ""
    assert second.returncode == -signal.SIGKILL
    store = place.open()
    assert [run.id for run in store.list_runs()] == ["r1"]
    assert [each.seq for each in store.read_events()] == [1, 2, 3, 4]
    assert store.last_event() == 4
    assert store.new_runs(1) == ("r3",)
    assert store.check() == ()
    store.close()
