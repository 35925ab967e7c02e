"""What an agent has done is to be seen, whoever was killed, restarted and brought back before anybody looked."""

from __future__ import annotations

import signal

import pytest

from perdure.model.run import Run
from tests.acceptance.restoring import restored
from tests.acceptance.simulants import Simulants
from tests.acceptance.watching import watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

SHELL = "/bin/sh"


def is_back(run: Run) -> bool:
    """Whether an agent was started in it and is known to wait."""
    return run.program is not None and not run.stale and run.status.observed_at is not None and run.status.waits


def test_done_is_done_until_it_is_seen(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", SHELL)
    tmux.run("send-keys", "-t", "work:0", f"{agents.path} --think 1.5 --boot 1", "Enter")
    with watching(perdure) as watcher:
        watcher.await_state("work:0.0", "idle")
        perdure.ok("send", "--timeout", "60", "work", "count the files")
        run = watcher.await_state("work:0.0", "attention(done)")
        watcher.end(signal.SIGKILL)
    with watching(perdure) as watcher:
        assert watcher.await_run(run.id, is_back, "to be seen again").status.word == "attention(done)"
        # The server dies while it is watched, and everything is brought back …
        tmux.kill9()
        restored(perdure)
        assert watcher.await_run(run.id, is_back, "to be back").status.word == "attention(done)"
    # … or while nobody watches.
    tmux.kill9()
    restored(perdure)
    with watching(perdure) as watcher:
        assert watcher.await_run(run.id, is_back, "to be back").status.word == "attention(done)"
        perdure.ok("seen", "work")
        assert watcher.run(run.id).status.word == "idle"
    tmux.kill9()
    restored(perdure)
    with watching(perdure) as watcher:
        assert watcher.await_run(run.id, is_back, "to be back").status.word == "idle"
    agents.end_all()


@pytest.mark.parametrize("through_us", [True, False])
def test_a_turn_too_short_to_be_seen_at_work_is_done(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, through_us: bool
) -> None:
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", f"{agents.path} --think 0")
    with watching(perdure) as watcher:
        # Known beyond doubt, so that its transcript is read.
        run = watcher.await_run(
            "work:0.0", lambda run: run.status.word == "idle" and bool(run.identity and run.identity.certain), "to wait"
        )
        for text in ("count the files", "count them again"):
            if through_us:
                perdure.ok("send", "--timeout", "60", "work", text)
            else:
                tmux.run("send-keys", "-t", "work:0", text, "Enter")
            watcher.await_state(run.id, "attention(done)")
            perdure.ok("seen", "work")
            assert watcher.run(run.id).status.word == "idle"
    agents.end_all()


def test_a_fresh_agent_in_the_pane_of_one_that_is_done_is_not_done(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", f"{agents.path} --think 3")
    with watching(perdure) as watcher:
        watcher.await_state("work:0.0", "idle")
        perdure.ok("send", "--timeout", "60", "work", "count the files")
        done = watcher.await_state("work:0.0", "attention(done)")
        tmux.run("respawn-pane", "-k", "-t", "work:0", str(agents.path))
        fresh = watcher.await_run(
            done.id, lambda run: is_back(run) and run.program != done.program, "to be another's, and to wait"
        )
        assert (fresh.status.word, fresh.unseen) == ("idle", False)
    agents.end_all()
