"""How `perdure up` begins, goes on and ends: alone, with a configuration that changes, and with a store that fails."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import time
from contextlib import closing

import pytest

from perdure.daemon import protocol
from perdure.daemon.call import stream
from perdure.errors import NoDaemon
from perdure.model.event import EventKind, StoredEvent
from tests.acceptance.kit import configure, is_whole, only_json, sentence, settle
from tests.acceptance.simulants import Simulants
from tests.acceptance.watching import (
    PATIENCE,
    begin,
    dispose,
    is_watched,
    kinds_of,
    stored_events,
    stored_runs,
    watching,
)
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

_SHELL = "/bin/sh"


def _session(tmux: TmuxServer, name: str = "work") -> None:
    tmux.run("new-session", "-d", "-s", name, "-n", "one", _SHELL)
    settle(tmux)


# -- what is removed under it ----------------------------------------------------------------------------------------


def _remove(directory: str) -> None:
    # Moved away first: who is at work in it puts something into what is just being emptied.
    os.rename(directory, f"{directory}-removed")
    shutil.rmtree(f"{directory}-removed")


def _number(heard: object) -> int:
    assert isinstance(heard, StoredEvent)
    return heard.seq


def test_a_daemon_whose_state_directory_is_removed_is_found_again_and_goes_on_counting(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    _session(tmux)
    with watching(perdure) as watcher:
        with closing(stream(private_home.state, protocol.Events(follow=True))) as follower:
            last = _number(next(follower))
            while last < watcher.last():
                last = _number(next(follower))
            _remove(private_home.state)
            _session(tmux, "later")
            watcher.wait_for(stored_events, "what has happened since")
            assert all(each.seq > last for each in stored_events())
            assert _number(next(follower)) > last
        watcher.wait_for(is_watched, "the socket")
        assert [run.id for run in watcher.runs()] == ["r1", "r2"]
        assert perdure("up").code == 6
    assert not is_watched()


def test_who_has_begun_where_a_state_directory_was_removed_is_the_one_to_be_found(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    _session(tmux)
    with watching(perdure) as first:
        # It notices nothing before the other is there.
        first.process.send_signal(signal.SIGSTOP)
        _remove(private_home.state)
        with watching(perdure) as second:
            os.kill(first.pid, signal.SIGCONT)
            assert first.process.wait(PATIENCE) == 6
            assert str(second.pid) in first.log
            assert is_watched()
            assert [run.place.target for run in second.runs()] == ["work:0.0"]
            assert "removed" not in second.log


# -- one at a time ----------------------------------------------------------------------------------------------------


def test_a_second_daemon_refuses(perdure: Perdure, tmux: TmuxServer) -> None:
    _session(tmux)
    with watching(perdure) as watcher:
        ran = perdure("up")
        assert ran.code == 6
        assert ran.out == ""
        assert str(watcher.pid) in sentence(ran)
        assert [run.place.target for run in watcher.runs()] == ["work:0.0"]
        assert kinds_of(stored_events()).count(EventKind.DAEMON_STARTED) == 1


def test_a_second_daemon_with_a_store_of_its_own_refuses_too(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    """There is one socket in a state directory, and whoever asks there has to reach the one that is there."""
    _session(tmux)
    with watching(perdure) as watcher:
        ran = perdure("up", env={"PERDURE_STORE": f"sqlite:///{private_home.home.lstrip('/')}/other.db"})
        assert ran.code == 6
        assert ran.out == ""
        assert str(watcher.pid) in sentence(ran)
        assert [run.place.target for run in watcher.runs()] == ["work:0.0"]


def test_the_place_of_a_daemon_that_was_killed_is_taken_at_once(perdure: Perdure, tmux: TmuxServer) -> None:
    _session(tmux)
    for _ in range(3):
        watcher = begin(perdure)
        try:
            watcher.process.kill()
            watcher.process.wait(PATIENCE)
        finally:
            dispose(watcher)
        with pytest.raises(NoDaemon):
            watcher.runs()
    with watching(perdure) as watcher:
        assert [run.id for run in watcher.runs()] == ["r1"]


def test_a_daemon_whose_lease_went_to_another_ends(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    """As after a night in which the machine slept, and another machine with its name took the store over."""
    _session(tmux)
    watcher = begin(perdure)
    try:
        database = sqlite3.connect(os.path.join(private_home.state, "perdure.db"), timeout=30)
        with database:
            database.execute("UPDATE leases SET holder = 'elsewhere:1:1', held_until = '2999-01-01T00:00:00.000000Z'")
        database.close()
        os.kill(watcher.pid, signal.SIGHUP)
        assert watcher.process.wait(PATIENCE) == 6
        assert "Another perdure" in watcher.log
        assert "Traceback" not in watcher.log
    finally:
        dispose(watcher)


# -- ending -----------------------------------------------------------------------------------------------------------


def _untouched(tmux: TmuxServer) -> list[bytes]:
    return [
        tmux.run(*words)
        for words in (
            ("show-options", "-s"),
            ("show-options", "-g"),
            ("show-options", "-gw"),
            ("show-options", "-t", "work"),
            ("show-hooks", "-g"),
            ("show-environment", "-g"),
            ("show-environment", "-t", "work"),
            ("list-sessions", "-F", "#{session_id} #{session_name} #{session_attached} #{session_last_attached}"),
            ("list-windows", "-a", "-F", "#{window_id} #{window_name} #{window_layout} #{window_activity_flag}"),
            ("list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{pane_pipe} #{pane_in_mode} #{pane_title}"),
            ("list-clients",),
            ("list-buffers",),
            ("list-keys",),
        )
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_it_is_told_to_and_leaves_tmux_untouched(
    perdure: Perdure, tmux: TmuxServer, number: signal.Signals
) -> None:
    _session(tmux)
    before = _untouched(tmux)
    with watching(perdure) as watcher:
        watcher.await_state("work:0.0", "idle")
        assert _untouched(tmux) == before
        assert watcher.end(number) == 0
        assert watcher.log == ""
    assert _untouched(tmux) == before
    assert kinds_of(stored_events())[-1] is EventKind.DAEMON_STOPPED
    assert not is_watched()
    assert not os.path.exists(protocol.socket_path(os.environ["PERDURE_STATE_DIR"]))
    assert is_whole(perdure)


def test_a_server_that_hangs_does_not_keep_it_from_ending(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    configure(private_home, "[tmux]\ntimeout_seconds = 2\n")
    _session(tmux)
    pid = tmux.pid
    with watching(perdure) as watcher:
        os.kill(pid, signal.SIGSTOP)
        try:
            assert watcher.end() == 0
        finally:
            os.kill(pid, signal.SIGCONT)
    assert kinds_of(stored_events())[-1] is EventKind.DAEMON_STOPPED
    assert not stored_runs()["r1"].is_over


def test_what_others_follow_they_get_to_the_end(perdure: Perdure, tmux: TmuxServer) -> None:
    _session(tmux)
    with watching(perdure) as watcher:
        following = stream(os.environ["PERDURE_STATE_DIR"], protocol.Events(follow=True))
        seen = [next(following)]
        os.kill(watcher.pid, signal.SIGTERM)
        with pytest.raises(NoDaemon):
            seen.extend(following)
        watcher.process.wait(PATIENCE)
    assert seen == stored_events()


# -- the configuration ------------------------------------------------------------------------------------------------


def test_the_configuration_is_read_again(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    apart = os.path.join(private_home.root, "apart")
    tmux.run("-S", apart, "new-session", "-d", "-s", "apart", "-n", "one", _SHELL)
    try:
        with watching(perdure, "--verbose") as watcher:
            assert watcher.runs() == []
            configure(private_home, f'[tmux]\nsockets = ["{apart}"]\n')
            os.kill(watcher.pid, signal.SIGHUP)
            watcher.await_run("apart:0.0")
            watcher.wait_for(lambda: "read again" in watcher.log, "a word about the configuration")

            configure(private_home, "[tmux\nthis is no configuration")
            os.kill(watcher.pid, signal.SIGHUP)
            watcher.wait_for(lambda: "stays what it was" in watcher.log, "a word about the configuration")
            tmux.run("-S", apart, "new-window", "-d", "-t", "apart", "-n", "two", _SHELL)
            watcher.await_run("apart:1.0")

            configure(private_home, f'host = "another"\n[tmux]\nsockets = ["{apart}"]\n')
            os.kill(watcher.pid, signal.SIGHUP)
            watcher.wait_for(lambda: watcher.log.count("stays what it was") == 2, "a word about the name")
            assert len(watcher.runs()) == 2

            path = os.path.join(private_home.home, ".config", "perdure", "config.toml")
            os.unlink(path)
            os.mkfifo(path)
            os.kill(watcher.pid, signal.SIGHUP)
            watcher.wait_for(lambda: "is not a regular file" in watcher.log, "a word about the fifo")
            assert len(watcher.runs()) == 2
    finally:
        tmux.run("-S", apart, "kill-server", check=False)


def test_a_configuration_that_is_wrong_from_the_beginning(perdure: Perdure, private_home: PrivateHome) -> None:
    configure(private_home, "[tmux\nthis is no configuration")
    ran = perdure("up")
    assert ran.code == 2
    sentence(ran)


# -- the store --------------------------------------------------------------------------------------------------------


def test_a_store_that_is_repaired_under_it(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    """`check --repair` sets the database aside and makes another."""
    _session(tmux)
    with watching(perdure) as watcher:
        watcher.await_state("work:0.0", "idle")
        _spoil(os.path.join(private_home.state, "perdure.db"))
        ran = perdure("check", "--repair", "--json")
        # What was spoilt may be in the log as well, and then all of it was read.
        assert ran.code in (0, 4)
        tmux.run("new-window", "-d", "-t", "work", "-n", "two", _SHELL)
        made = watcher.await_run("work:1.0")
        assert made.id not in ("r1",)
        watcher.await_event(EventKind.RUN_CREATED, lambda each: each.event.run == made.id)
        watcher.wait_for(lambda: {"r1", made.id} <= set(stored_runs()), "both runs in the new store")
        assert len(_complaints(watcher.log)) <= 2, watcher.log
        # It still holds the place: in the new store too.
        assert perdure("up").code == 6
    assert kinds_of(stored_events())[-1] is EventKind.DAEMON_STOPPED
    for problem in only_json(ran)["problems"]:
        os.unlink(problem["where"])
    assert is_whole(perdure)


def test_a_store_that_is_taken_away_under_it(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    _session(tmux)
    with watching(perdure) as watcher:
        watcher.await_state("work:0.0", "idle")
        before = watcher.last()
        for name in os.listdir(private_home.state):
            if name.startswith("perdure.db"):
                os.rename(os.path.join(private_home.state, name), os.path.join(private_home.home, name))
        tmux.run("new-window", "-d", "-t", "work", "-n", "two", _SHELL)
        made = watcher.await_run("work:1.0")
        created = watcher.await_event(EventKind.RUN_CREATED, lambda each: each.event.run == made.id)
        # Numbers go on in the new one, and it has everybody who is there.
        assert created.seq > before
        assert made.id not in ("r1",)
        watcher.wait_for(
            lambda: {run.place.target for run in stored_runs().values()} == {"work:0.0", "work:1.0"}, "everybody"
        )
    assert is_whole(perdure)


def _spoil(path: str) -> None:
    """Break the database in the middle, as a disk does."""
    with open(path, "r+b") as file:
        file.seek(0, os.SEEK_END)
        size = file.tell()
        for offset in range(4096, size, 4096):
            file.seek(offset)
            file.write(b"\0" * 64)


def _complaints(log: str) -> list[str]:
    return [line for line in log.splitlines() if "the store can be used again" in line]


def test_a_disk_that_is_full_for_a_while(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    """Everything that happens meanwhile is written down afterwards, once and in order."""
    _session(tmux)
    with watching(perdure) as watcher:
        watcher.await_state("work:0.0", "idle")
        watcher.wait_for(lambda: stored_runs()["r1"].status.word == "idle", "the state to be stored")
        after = watcher.last()
        # No file can grow beyond this: for a database that is the same as a disk without room.
        _limit_files(watcher.pid, 4096)
        try:
            tmux.run("send-keys", "-t", "work:0", "sleep 1000", "Enter")
            watcher.await_state("work:0.0", "busy")
            watcher.wait_for(lambda: _complaints(watcher.log), "a word about the store")
            tmux.run("send-keys", "-t", "work:0", "C-c", "")
            watcher.await_state("work:0.0", "idle")
            tmux.run("new-window", "-d", "-t", "work", "-n", "two", _SHELL)
            time.sleep(1)
            assert stored_events(after) == []
        finally:
            _limit_files(watcher.pid, resource.RLIM_INFINITY)
        # One without an id is not there yet, and is not lost either.
        made = watcher.await_run("work:1.0")
        watcher.await_event(EventKind.RUN_CREATED, lambda each: each.event.run == made.id)
        changes = watcher.events(after, EventKind.STATE_CHANGED)
        assert [each.event.data["to"] for each in changes if each.event.run == "r1"] == ["busy", "idle"]
        watcher.wait_for(lambda: len(_complaints(watcher.log)) == 2, "a word that it is over")
    numbers = [each.seq for each in stored_events()]
    assert numbers == sorted(set(numbers))
    assert kinds_of(stored_events())[-1] is EventKind.DAEMON_STOPPED
    assert is_whole(perdure)


def test_what_only_a_daemon_without_room_knows_is_not_said_to_be_kept(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    agents = Simulants(private_home)
    for name in ("one", "two"):
        tmux.run("new-session", "-d", "-s", name, "-n", "w", agents.path)
    with watching(perdure) as watcher:
        for name in ("one", "two"):
            watcher.await_state(f"{name}:0.0", "idle")
            tmux.run("send-keys", "-t", f"={name}:", f"Tell me about {name}.", "Enter")
            watcher.await_state(f"{name}:0.0", "attention(done)")
        watcher.wait_for(
            lambda: [run.status.word for run in stored_runs().values()] == ["attention(done)"] * 2, "both to be stored"
        )
        assert only_json(perdure.ok("--json"))["daemon"]["problem"] is None
        _limit_files(watcher.pid, 4096)
        try:
            seen, let_go = perdure("seen", "one", "--json"), perdure("kill", "two", "--detach")
            told, said = only_json(perdure("--json")), perdure().out
            again = perdure("seen", "one")
        finally:
            _limit_files(watcher.pid, resource.RLIM_INFINITY)
        for ran in (seen, let_go):
            assert ran.code == 5
            assert "only until the daemon ends" in sentence(ran)
        assert "seen" not in only_json(seen)
        # What it is now it is, and nothing more was to be kept.
        assert again.code == 0
        assert (told["daemon"]["panes"], told["daemon"]["since"] is not None) == (1, True)
        assert "kept in memory" in told["daemon"]["problem"]
        assert "Daemon:  watching 1 pane of 1 server" in said
        assert "; what happens is kept in memory" in said
        watcher.wait_for(lambda: stored_runs()["r1"].status.word == "idle", "what was seen to be stored")
        watcher.wait_for(lambda: only_json(perdure.ok("--json"))["daemon"]["problem"] is None, "nothing to be wrong")
    agents.end_all()


def _limit_files(pid: int, size: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_a_daemon_that_is_told_to_end_while_the_disk_is_full_ends(perdure: Perdure, tmux: TmuxServer) -> None:
    _session(tmux)
    with watching(perdure) as watcher:
        _limit_files(watcher.pid, 4096)
        tmux.run("new-window", "-d", "-t", "work", "-n", "two", _SHELL)
        watcher.wait_for(lambda: _complaints(watcher.log), "a word about the store")
        assert watcher.end() == 0
        assert "Traceback" not in watcher.log
    # The next one finds what this one could not write down.
    with watching(perdure) as watcher:
        assert {run.place.target for run in watcher.runs()} == {"work:0.0", "work:1.0"}


def test_a_daemon_that_cannot_open_its_store_says_so(perdure: Perdure, private_home: PrivateHome) -> None:
    os.makedirs(private_home.state, mode=0o700)
    os.mkdir(os.path.join(private_home.state, "perdure.db"))
    ran = perdure("up")
    assert ran.code == 5
    sentence(ran)


def test_who_watches_already_is_not_told_to(perdure: Perdure) -> None:
    assert "perdure up" in perdure.ok().out
    with watching(perdure):
        said = perdure.ok().out
    assert ("start tmux" in said, "perdure up" in said) == (True, False), said
