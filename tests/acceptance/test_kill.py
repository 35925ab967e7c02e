from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from msgspec import structs

from perdure.cli._setup import Setup
from perdure.host.clock import now
from perdure.host.users import current_user
from perdure.live.recognise import found_in
from perdure.model.event import EventKind
from perdure.model.run import Run, Status
from perdure.snapshots.ask import ask
from perdure.snapshots.look import Looked
from perdure.store.store import Store
from perdure.tmux.act import Spot, end
from tests.acceptance.boxing import screen
from tests.acceptance.kit import only_json, sentence, wait_for
from tests.acceptance.simulants import Simulants
from tests.acceptance.test_send import OTHER, await_only, begun, interposed, is_known, replaced, replacing
from tests.acceptance.watching import stored_runs, watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure, Ran
from tests.tmux_server import TmuxServer


def _panes(tmux: TmuxServer) -> list[str]:
    return tmux.run("list-panes", "-a", "-F", "#{session_name}:#{window_index}.#{pane_index}").decode().split()


@pytest.fixture
def crowd(tmux: TmuxServer) -> TmuxServer:
    for name in ("a", "ab", "b"):
        tmux.run("new-session", "-d", "-s", name, "-n", "w", "cat", "-")
    tmux.run("split-window", "-d", "-t", "b:0", "cat", "-")
    tmux.run("new-window", "-d", "-t", "b:1", "-n", "x", "cat", "-")
    return tmux


@pytest.mark.parametrize("words", [["=-dash"], ["--", "-dash"], ["=-dash:0"], ["--", "-dash:0.0"]])
def test_a_name_that_looks_like_an_option_can_be_given(tmux: TmuxServer, perdure: Perdure, words: list[str]) -> None:
    for name in ("-dash", "=-dash", "dash"):
        # As somebody else may have called it: we would not.
        tmux.run("new-session", "-d", f"-s{name}x", "cat", "-")
        tmux.run("rename-session", "-t", f"={name}x:", "--", name)
    if words[0].startswith("="):
        # That is the very name of another: neither is ended before it is said which.
        assert perdure("kill", "--json", *words).code == 2
        perdure.ok("kill", "--json", f"={words[0]}")
        assert _panes(tmux) == ["-dash:0.0", "dash:0.0"]
    perdure.ok("kill", "--json", *words)
    assert "-dash:0.0" not in _panes(tmux)
    assert "dash:0.0" in _panes(tmux)


@pytest.mark.parametrize(
    ("target", "kind", "left"),
    [
        ("a", "session", ["ab:0.0", "b:0.0", "b:0.1", "b:1.0"]),
        ("b", "session", ["a:0.0", "ab:0.0"]),
        ("b:0", "window", ["a:0.0", "ab:0.0", "b:1.0"]),
        ("b:0.1", "pane", ["a:0.0", "ab:0.0", "b:0.0", "b:1.0"]),
        ("b:1", "pane", ["a:0.0", "ab:0.0", "b:0.0", "b:0.1"]),
    ],
)
def test_what_is_named_goes_and_nothing_else(
    crowd: TmuxServer, perdure: Perdure, target: str, kind: str, left: list[str]
) -> None:
    told = only_json(perdure.ok("kill", "--json", target))
    assert (told["result"], told["kind"]) == ("killed", kind)
    assert _panes(crowd) == left
    again = perdure("kill", target)
    assert again.code == 3
    sentence(again)


def test_a_conversation_that_was_killed_comes_back(
    private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure
) -> None:
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "other", "-n", "w", "cat", "-")
    perdure.ok("new", "work", "--agent", "simulant", "--prompt", "remember this")
    agents.await_running(1, 2)
    (conversation,) = agents.running()
    told = only_json(perdure.ok("kill", "--json", "work"))
    wait_for(lambda: not agents.running(), "the end of the agent")
    perdure.ok("restore", "--from", told["snapshot"], "work")
    wait_for(lambda: list(agents.running()) == [conversation], "the same conversation")
    wait_for(lambda: "remember this" in screen(tmux, "work:"), "what was said before")
    agents.end_all()


def test_nothing_is_ended_that_could_not_be_kept(
    crowd: TmuxServer, private_home: PrivateHome, perdure: Perdure
) -> None:
    with open(private_home.state, "w") as file:
        file.write("in the way")
    ran = perdure("kill", "a")
    assert ran.code == 5
    assert "nothing was ended" in ran.err
    assert "a:0.0" in _panes(crowd)
    assert perdure("kill", "a", "--anyway").code == 0
    assert "a:0.0" not in _panes(crowd)


def test_what_is_gone_counts_as_ended_and_another_server_is_spared(crowd: TmuxServer) -> None:
    spot = Spot(crowd.socket, current_user(), "%0", crowd.pid)
    assert end(spot, "pane", "%0")
    assert not end(spot, "pane", "%0")
    assert not end(spot._replace(server=1), "pane", "%1")
    assert len(_panes(crowd)) == 4
    crowd.kill()
    assert not end(spot, "session", "$1")


def test_only_what_is_followed_can_be_let_go_of(crowd: TmuxServer, perdure: Perdure) -> None:
    for target in ("a", "r1"):
        ran = perdure("kill", "--detach", target)
        assert ran.code == 3
        sentence(ran)
    assert "a:0.0" in _panes(crowd)


def test_a_run_of_another_machine_that_shares_the_store_is_nobody_here(crowd: TmuxServer, perdure: Perdure) -> None:
    setup = Setup()
    run = _followed(setup, setup.store, crowd)
    elsewhere = structs.replace(run, server=structs.replace(run.server, host="elsewhere"))
    setup.store.record([elsewhere], [])
    for words in (("kill",), ("kill", "--detach"), ("follow",), ("seen",)):
        ran = perdure(*words, run.id)
        assert ran.code == 3, ran
        sentence(ran)
    assert setup.store.get_run(run.id) == elsewhere
    assert "a:0.0" in _panes(crowd)
    setup.close()


@pytest.mark.parametrize("by_id", [True, False])
def test_a_run_that_is_let_go_of_lives_on_in_tmux(crowd: TmuxServer, perdure: Perdure, by_id: bool) -> None:
    setup = Setup()
    run = _followed(setup, setup.store, crowd)
    told = only_json(perdure.ok("kill", "--json", "--detach", run.id if by_id else "a"))
    assert (told["result"], told["run"]) == ("detached", run.id)
    assert "a:0.0" in _panes(crowd)
    assert setup.store.get_run(run.id).is_over
    (event,) = setup.store.read_events()
    assert (event.event.kind, event.event.run) == (EventKind.RUN_DELETED, run.id)
    assert (event.event.data["reason"], event.event.data["mode"]) == ("api_delete", "detach")
    setup.close()


def test_a_run_is_named_by_its_id(crowd: TmuxServer, perdure: Perdure) -> None:
    setup = Setup()
    run = _followed(setup, setup.store, crowd)
    setup.close()
    assert only_json(perdure.ok("send", "--json", run.id, "hello"))["run"] == run.id
    assert only_json(perdure.ok("kill", "--json", run.id))["id"] == run.pane
    assert "a:0.0" not in _panes(crowd)
    # What is gone already counts as killed; who was never there does not.
    told = only_json(perdure.ok("kill", "--json", run.id))
    assert told == {
        "result": "gone",
        "kind": "pane",
        "id": run.pane,
        "panes": 1,
        "target": "a:0.0",
        "shared": [],
        "socket": crowd.socket,
        "snapshot": None,
    }
    assert perdure.ok("kill", run.id).out == "pane a:0.0 (1 pane): gone already.\n"
    assert perdure("kill", "r99").code == 3


def test_a_run_whose_pane_is_gone_is_killed_already_and_followed_by_nobody(crowd: TmuxServer, perdure: Perdure) -> None:
    with watching(perdure) as watcher:
        run = watcher.await_run("a:0.0")
        crowd.run("kill-session", "-t", "=a:")
        watcher.await_gone(run.id)
        assert only_json(perdure.ok("kill", "--json", run.id))["result"] == "gone"
        ran = perdure("kill", "--detach", run.id)
        assert (ran.code, f"The pane of {run.id} is gone" in sentence(ran)) == (3, True), ran
        # What was let go of is there, and its id means nobody.
        other = watcher.await_run("ab:0.0")
        perdure.ok("kill", "--detach", other.id)
        for words in (("kill",), ("kill", "--detach")):
            ran = perdure(*words, other.id)
            assert (ran.code, f"{other.id} is not followed any more" in sentence(ran)) == (3, True), ran
    assert "ab:0.0" in _panes(crowd)


def test_a_run_that_goes_on_in_another_pane_is_not_said_to_be_killed(
    private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure
) -> None:
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "other", "-n", "w", "cat", "-")
    perdure.ok("new", "work", "--agent", "simulant", "--prompt", "remember this")
    agents.await_running(1, 2)
    (conversation,) = agents.running()
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0", lambda run: run.identity is not None and run.identity.certain)
    told = only_json(perdure.ok("kill", "--json", "work"))
    wait_for(lambda: not agents.running(), "the end of the agent")
    perdure.ok("restore", "--from", told["snapshot"], "work")
    wait_for(lambda: list(agents.running()) == [conversation], "the same conversation")
    # Nobody has noted that it is the run it was.
    ran = perdure("kill", run.id)
    assert (ran.code, f"The pane of {run.id} is gone" in sentence(ran)) == (3, True), ran
    assert list(agents.running()) == [conversation]
    agents.end_all()


# -- another agent in the pane of a run -------------------------------------------------------------------------------


@pytest.fixture
def agents(private_home: PrivateHome) -> Iterator[Simulants]:
    agents = Simulants(private_home)
    yield agents
    agents.end_all()


def _is_spared(agents: Simulants, tmux: TmuxServer, ran: Ran) -> None:
    assert ran.code == 6, ran
    assert "another agent was started there meanwhile; look again" in sentence(ran)
    assert list(agents.running()) == [OTHER]
    assert tmux.show("#{pane_dead}", "work:") == "0"


@pytest.mark.parametrize("words", [("kill",), ("kill", "--anyway"), ("seen",), ("wait", "--until", "idle")])
def test_who_came_after_the_run_was_recorded_is_not_it(
    agents: Simulants, tmux: TmuxServer, perdure: Perdure, words: tuple[str, ...]
) -> None:
    pane = begun(agents, tmux)
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0", is_known, "with its agent")
    before = stored_runs()[run.id]
    replaced(agents, tmux, "--session", OTHER)
    await_only(agents, tmux, OTHER)
    _is_spared(agents, tmux, perdure(*words, run.id))
    assert stored_runs()[run.id] == before
    if words == ("kill",):
        # Whoever names the place means whoever is there.
        assert only_json(perdure.ok("kill", "--json", pane))["result"] == "killed"
        agents.await_gone()


@pytest.mark.parametrize("word", ["kill", "seen", "wait"])
def test_who_came_just_now_is_not_the_run_the_daemon_knows(
    agents: Simulants, tmux: TmuxServer, perdure: Perdure, word: str
) -> None:
    begun(agents, tmux)
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0", is_known, "with its agent")
        watcher.process.send_signal(signal.SIGSTOP)
        try:
            replaced(agents, tmux, "--session", OTHER)
            await_only(agents, tmux, OTHER)
            if word == "kill":
                _is_spared(agents, tmux, perdure("kill", run.id))
        finally:
            watcher.process.send_signal(signal.SIGCONT)
        # From when it is seen, the run is this agent's.
        watcher.await_run(run.id, lambda run: run.identity is not None and run.identity.conversation == OTHER)
        perdure.ok(word, run.id, *(("--until", "idle", "--timeout", "60") if word == "wait" else ()))


def test_who_comes_in_the_last_moment_is_not_ended(
    private_home: PrivateHome, agents: Simulants, tmux: TmuxServer, perdure: Perdure
) -> None:
    begun(agents, tmux)
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0", is_known, "with its agent")
    ran = perdure("kill", run.id, env=interposed(private_home, tmux, "kill-pane", replacing(agents)))
    assert ran.code == 6, ran
    assert "another program was started there meanwhile; look again" in sentence(ran)
    await_only(agents, tmux, OTHER)


def test_what_is_left_of_an_agent_is_its_run_still(agents: Simulants, tmux: TmuxServer, perdure: Perdure) -> None:
    perdure.ok("new", "work", "--agent", "simulant")
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0", lambda run: run.program is not None, "with its agent")
    tmux.run("send-keys", "-t", "work:", "/quit", "Enter")
    agents.await_gone()
    assert only_json(perdure.ok("kill", "--json", run.id))["result"] == "killed"


def _followed(setup: Setup, store: Store, tmux: TmuxServer) -> Run:
    """The run of session `a`, as a daemon would keep it."""
    (looked,) = setup.look([ask(tmux.socket, setup.me)], now())
    assert isinstance(looked, Looked)
    found = next(each for each in found_in(looked.capture) if each.place.session == "a")
    run = Run(
        id=store.new_runs(1)[0],
        server=found.server,
        process=found.process,
        place=found.place,
        pane=found.pane,
        status=Status(since=now()),
        created_at=now(),
    )
    store.record([run], [])
    return run
