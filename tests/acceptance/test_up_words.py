"""What the daemon says of a run, and its state: one never contradicts the other, in no event and at no moment."""

from __future__ import annotations

from collections.abc import Callable

from perdure.model.event import EventKind
from perdure.model.run import Run, RunState
from tests.acceptance.kit import wait_for
from tests.acceptance.simulants import Simulants
from tests.acceptance.watching import watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


def contradicts(run: Run) -> bool:
    """Whether a run is said to be through while it works, or at work while it waits."""
    text = run.thought.text if run.thought is not None else None
    if text is None:
        return False
    is_through = text.startswith("done: ")
    return is_through if run.status.state is RunState.BUSY else run.status.waits and not is_through


def test_what_is_said_of_a_run_changes_with_its_state(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", agents.path, "--think", "1")
    with watching(perdure) as watcher:
        watcher.await_state("work:0.0", "idle")
        perdure.ok("send", "--timeout", "60", "work", "count the files")
        seen: list[Run] = []

        def is_through() -> bool:
            seen.append(watcher.run("work:0.0"))
            return seen[-1].status.word == "attention(done)"

        watcher.wait_for(is_through, "the end of the turn")
        assert [run for run in seen if contradicts(run)] == []
        last = seen[-1]
        assert last.thought is not None
        assert (last.thought.text or "").startswith("done: ")
        changes = [each.event for each in watcher.events(0, EventKind.STATE_CHANGED) if each.event.run == last.id]
        told = [(event.data["to"], event.data["thought"]) for event in changes]
        assert told[-1] == ("attention(done)", last.thought.text)
        # Over and over: nobody is said to be through with what it has just begun.
        perdure.ok("send", "--timeout", "60", "work", "count them again")
        seen.clear()
        watcher.wait_for(is_through, "the end of the next turn")
        assert [run for run in seen if contradicts(run)] == []
    agents.end_all()


def test_what_was_asked_for_while_nobody_watched_is_what_is_said_afterwards(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    simulants = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", f"{simulants.path} --think 0 'count the files'")

    def says(text: str) -> Callable[[Run], bool]:
        return lambda run: run.status.waits and run.thought is not None and text in (run.thought.objective or "")

    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0", says("count the files"), "to say what it was asked for")
        perdure.ok("seen", "work")
    turns = simulants.turns()
    tmux.run("send-keys", "-t", "work:0", "mend the roof", "Enter")
    wait_for(lambda: simulants.turns() == turns + 2, "the answer")
    with watching(perdure) as watcher:
        watcher.await_run(run.id, says("mend the roof"), "to say what it was asked for since")
    simulants.end_all()


def test_what_runs_where_an_agent_was_is_said_to_do_nothing_that_was_asked_of_it(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    """Neither a command in the shell that is left nor the next agent there: not in a row, and not in an event."""
    simulants = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", "sh")
    tmux.run("send-keys", "-t", "work:0", f"{simulants.path} --think 0 'count the files'", "Enter")
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0", lambda run: bool(run.thought and run.thought.objective), "to be asked")
        tmux.run("send-keys", "-t", "work:0", "/quit", "Enter")
        ended = watcher.await_event(EventKind.STATE_CHANGED, lambda each: each.event.data["to"] == "exited")
        tmux.run("send-keys", "-t", "work:0", "clear; sleep 1000", "Enter")
        watcher.await_state(run.id, "busy")
        (row,) = perdure.ok("ls", "--json").json["panes"]
        assert (row["run"], row["agent"], row["objective"]) == (run.id, None, None)
        tmux.run("send-keys", "-t", "work:0", "C-c")
        tmux.run("send-keys", "-t", "work:0", simulants.path, "Enter")
        watcher.await_event(EventKind.IDENTITY_CHANGED, after=ended.seq)
        watcher.await_run(run.id, lambda run: run.program is not None and run.status.waits, "to wait")
        told = [each.event.data for each in watcher.events(ended.seq, EventKind.THOUGHT)]
        assert [data for data in told if data["objective"] is not None] == []
    simulants.end_all()
