"""What the daemon says and keeps to itself: of what is typed, in its log, and when it begins again."""

from __future__ import annotations

import re

from perdure.model.event import EventKind
from tests.acceptance.kit import wait_for
from tests.acceptance.simulants import Simulants
from tests.acceptance.watching import kinds_of, watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

#: A line of the log: when, how grave, where, what.
LINE = r"\d{4}-\d\d-\d\dT\S+ (info|warning|error) perdure[\w.]*: \S.*"
SECRET = "sk-ant-api03-" + "a" * 80


def test_a_key_alone_is_no_word_that_an_agent_was_told_something(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", agents.path, "--think", "3600")
    with watching(perdure) as watcher:
        watcher.await_state("work:0.0", "idle")
        after = watcher.last()
        for words in (["--key", "Left"], ["--no-enter", "half a sent"]):
            perdure("send", "--timeout", "1", "work", *words)
        # Whatever would have come of that comes before what comes of this, which is added to what stands there.
        perdure.ok("send", "--timeout", "60", "work", "ence", "--anyway")
        run = watcher.await_state("work:0.0", "busy")
        events = [each for each in watcher.events(after) if each.event.run == run.id]
        assert kinds_of(events).count(EventKind.SENT) == 1
        changes = [each for each in events if each.event.kind is EventKind.STATE_CHANGED]
        assert [each.event.data["to"] for each in changes] == ["busy"]
    agents.end_all()


def test_a_daemon_that_is_asked_to_says_what_it_does_and_nothing_that_is_private(
    perdure: Perdure, tmux: TmuxServer
) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", f"printf 'seen %s' {SECRET}; exec sleep 3600")
    with watching(perdure) as watcher:
        assert watcher.run("work:0.0").id == "r1"
    assert watcher.log == ""
    with watching(perdure, "--verbose") as watcher:
        tmux.run("new-session", "-d", "-s", "more", "-n", "w", "sleep 3600")
        watcher.await_run("more:0.0")
        watcher.wait_for(lambda: re.search(r" run_created r2$", watcher.log, re.M), "the line")
    lines = watcher.log.splitlines()
    assert [line for line in lines if not re.fullmatch(LINE, line)] == []
    told = [re.sub(r".* \d+ (\w+) .*", r"\1", line) for line in lines if "telling" in line]
    assert {"daemon_started", "run_created", "saved"} <= {word.split()[-1] for word in told}
    assert not any(word in watcher.log for word in (SECRET, "sleep", "printf"))


def test_a_server_that_was_there_before_does_not_appear_again(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", "sleep 3600")
    for _ in range(3):
        with watching(perdure) as watcher:
            assert [run.id for run in watcher.runs()] == ["r1"]
            (appeared,) = watcher.events(0, EventKind.SERVER_APPEARED)
            assert appeared.event.data["pid"] == tmux.pid
    tmux.kill9()
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", "sleep 3600")
    with watching(perdure) as watcher:
        wait_for(lambda: len(watcher.events(0, EventKind.SERVER_APPEARED)) == 2, "the other server")
