"""Several processes at once, and processes that are killed. Every process is a real one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from perdure.store.manifest import Manifest, read_manifests
from perdure.store.store import Store
from tests.builders import a_server
from tests.contract.store.conftest import Place

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))

#: Saves states <start>, <start>+<step>, … at those seconds and says each number once it is saved.
SAVER = """
import sys
from perdure.store import open_store
from tests.builders import a_capture, a_pane, a_server
url, state_dir, start, step, count, socket = sys.argv[1:]
store = open_store(url, state_dir=state_dir)
for number in range(int(start), int(start) + int(step) * int(count), int(step)):
    texts = {f"{number}-{pane}": bytes(str(number), "ascii") * 500 for pane in range(4)}
    panes = [a_pane(pane, title=f"{number // 3}") for pane in range(4)]
    scrollback = {f"%{pane}": f"{number}-{pane}" for pane in range(4)}
    store.save_snapshot(a_capture(panes, seconds=number, server=a_server(socket), scrollback=scrollback), texts)
    print(number, flush=True)
"""


def a_process_running(program: str, *arguments: str) -> subprocess.Popen[str]:
    paths = os.pathsep.join([os.path.join(ROOT, "src"), ROOT])
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


def saver(place: Place, start: int, step: int, count: int, socket: str = "default") -> subprocess.Popen[str]:
    return a_process_running(SAVER, place.url, place.state_dir, str(start), str(step), str(count), socket)


def until_alone(store: Store) -> None:
    """Wait until nobody else is at work: a server goes on with what a process has asked for that was killed."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    deadline = time.monotonic() + 60
    while store.driver.dialect != "sqlite" and store.driver.fetch(f"{others} AND backend_type = 'client backend'") != [
        (0,)
    ]:
        assert time.monotonic() < deadline, "somebody is still at work"
        time.sleep(0.01)


def assert_whole(store: Store) -> None:
    """Everything reads back; at most a manifest is ahead, which the next save mends."""
    assert [problem for problem in store.check() if "does not have all of" not in problem.what] == []


def test_two_processes_saving_one_server_are_both_right(place: Place) -> None:
    savers = [saver(place, start, 2, 20) for start in (0, 1)]
    for process in savers:
        process.communicate()
    assert [process.returncode for process in savers] == [0, 0]
    store = place.open()
    assert store.check() == ()
    latest = store.latest_snapshot(a_server())
    assert latest is not None
    assert latest.topology.panes[0].title == str(39 // 3)
    assert latest.details.panes["%0"].scrollback == "39-0"
    (manifest,) = read_manifests(place.state_dir)
    assert isinstance(manifest, Manifest)
    assert manifest.snapshot == latest
    # Every state is there, and no state is there twice in a row in time.
    titles = {store.get_snapshot(line.id).topology.panes[0].title for line in store.list_snapshots()}
    assert titles == {str(number) for number in range(14)}
    store.close()


def test_many_servers_at_once_do_not_wait_in_circles(place: Place) -> None:
    # All save texts of the same digests.
    savers = [saver(place, 0, 1, 10, socket) for socket in ("a", "b", "c")]
    for process in savers:
        process.communicate()
    assert [process.returncode for process in savers] == [0, 0, 0]
    store = place.open()
    assert store.check() == ()
    assert len(list(read_manifests(place.state_dir))) == 3
    store.close()


def test_a_save_killed_at_any_moment_leaves_a_whole_store(place: Place) -> None:
    chance = random.Random(7)
    last = -1
    for _ in range(12):
        process = saver(place, last + 1, 1, 10_000)
        assert process.stdout is not None
        # Start the clock at the first save, so that the kill falls among saves and not among imports.
        said = [process.stdout.readline()]
        time.sleep(chance.random() * 0.08)
        process.send_signal(signal.SIGKILL)
        said += process.communicate()[0].splitlines()
        last = max(int(line) for line in said if line.strip())
        store = place.open()
        until_alone(store)
        assert_whole(store)
        latest = store.latest_snapshot(a_server())
        assert latest is not None
        number = int((latest.details.panes["%0"].scrollback or "").split("-")[0])
        # What was said to be saved is; what was being saved may be.
        assert number in (last, last + 1)
        assert latest.topology.panes[3].title == str(number // 3)
        for pane in latest.details.panes.values():
            assert store.read_scrollback(pane.scrollback or "") == str(number).encode() * 500
        last = number
        store.close()


def test_a_kill_between_manifest_and_commit_leaves_the_manifest_ahead(place: Place) -> None:
    program = SAVER.replace(
        "for number",
        "if int(start):\n"
        "    import os, signal\n"
        "    put = store.shelf.put\n"
        "    store.shelf.put = lambda *these: (put(*these), os.kill(os.getpid(), signal.SIGKILL))\n"
        "for number",
    )
    for start, expected in (("0", 0), ("10", -signal.SIGKILL)):
        arguments = [place.url, place.state_dir, start, "1", "1", "default"]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.join(ROOT, "src"), ROOT])}
        done = subprocess.run([sys.executable, "-c", program, *arguments], env=env, capture_output=True, check=False)
        assert done.returncode == expected
    store = place.open()
    assert len(store.list_snapshots()) == 1
    latest = store.latest_snapshot(a_server())
    assert latest is not None
    assert latest.topology.panes[0].title == "3"
    assert store.read_scrollback("10-0") == b"10" * 500
    assert [problem.repairable for problem in store.check()] == [True]
    store.close()
    process = saver(place, 20, 1, 1)
    process.communicate()
    store = place.open()
    assert [store.get_snapshot(line.id).topology.panes[0].title for line in store.list_snapshots()] == ["6", "3", "0"]
    assert store.check() == ()
    store.close()


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_reader_is_not_kept_waiting_by_a_writer(place: Place) -> None:
    process = saver(place, 0, 1, 1)
    process.communicate()
    writer, reader = place.open(), place.open()
    with writer.driver.transaction():
        assert len(reader.list_snapshots()) == 1
    writer.close()
    reader.close()


#: Begins <id> on <socket>, then says 4 panes' outcomes, each time with a higher number, and each number once it is kept.
RESTORER = """
import sys
from perdure.store import open_store
from tests.builders import a_server
from tests.contract.store.restores import a_restore, an_outcome
url, state_dir, id, socket, count = sys.argv[1:]
store = open_store(url, state_dir=state_dir)
store.begin_restore(a_restore(id, server=a_server(socket)))
print(0, flush=True)
for number in range(1, int(count) + 1):
    store.note_outcomes(id, {f"%{pane}": an_outcome(pane, why=str(number)) for pane in range(4)})
    print(number, flush=True)
"""


def restorer(place: Place, id: str, socket: str, count: int) -> subprocess.Popen[str]:
    return a_process_running(RESTORER, place.url, place.state_dir, id, socket, str(count))


def said_last(store: Store, server: str) -> set[int]:
    """The numbers an open restore has of its panes; {0} before the first."""
    restore = store.open_restore(a_server(server))
    assert restore is not None
    return {int(outcome.why) for outcome in restore.outcomes.values()} or {0}


@pytest.mark.parametrize("sockets", [("a", "b", "c"), ("a", "a", "a")])
def test_many_write_into_the_journal_at_once(place: Place, sockets: tuple[str, ...]) -> None:
    restorers = [restorer(place, f"r{n}", socket, 20) for n, socket in enumerate(sockets)]
    for process in restorers:
        process.communicate()
    assert [process.returncode for process in restorers] == [0] * len(sockets)
    store = place.open()
    assert store.check() == ()
    found = store.list_restores()
    assert {restore.id for restore in found} == {"r0", "r1", "r2"}
    assert {outcome.why for restore in found for outcome in restore.outcomes.values()} == {"20"}
    # One is open per server, whoever came last.
    assert sum(restore.ended_at is None for restore in found) == len(set(sockets))
    assert {said_last(store, socket) == {20} for socket in sockets} == {True}
    store.close()


def test_a_restorer_killed_at_any_moment_leaves_what_it_said(place: Place) -> None:
    chance = random.Random(11)
    for turn in range(8):
        process = restorer(place, f"r{turn}", "default", 10_000)
        assert process.stdout is not None
        said = [process.stdout.readline()]
        time.sleep(chance.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        said += process.communicate()[0].splitlines()
        last = max(int(line) for line in said if line.strip())
        store = place.open()
        until_alone(store)
        assert store.check() == ()
        restore = store.open_restore(a_server())
        assert restore is not None
        assert restore.id == f"r{turn}"
        # All four panes of one call or none, and nothing that was said to be kept is missing.
        (number,) = said_last(store, "default")
        assert number in (last, last + 1)
        assert len(restore.outcomes) == (4 if number else 0)
        store.close()
