"""Conversations when the evidence for them comes and goes: never lost, never another's, never more certain than known."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.fake_agent import FakeAgent
from tests.acceptance.kit import only_json, wait_for
from tests.at_rest import words_of
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the start time is read from /proc")

Make = Callable[..., FakeAgent]
Servers = Callable[[str], TmuxServer]


def conversation(number: int) -> str:
    return f"{number:08d}-2222-4333-8444-555555555555"


def known(perdure: Perdure, server: TmuxServer) -> dict[str, tuple[str | None, bool, str | None]]:
    """By session: conversation, whether it is certain, evidence; as the last snapshot of the server has it."""
    shown = only_json(perdure.ok("show", "latest", "--socket", server.socket, "--json"))["snapshot"]["topology"]
    windows = {link["window"]: link["session"] for link in shown["links"]}
    names = {session["id"]: session["name"] for session in shown["sessions"]}
    found = {}
    for pane in shown["panes"]:
        identity: dict[str, Any] = pane["identity"] or {}
        found[names[windows[pane["window"]]]] = (
            identity.get("conversation"),
            identity.get("certain", False),
            identity.get("evidence"),
        )
    return found


def contested(perdure: Perdure, tmux_server: Servers, fake_agent: Make) -> tuple[TmuxServer, TmuxServer, FakeAgent]:
    """Two servers, saved: an agent that holds a conversation, and on the other one an agent that was started with it."""
    one, two = tmux_server("default"), tmux_server("other")
    holder = fake_agent(one, "holder")
    holder.register(conversation(1))
    holder.write_transcript("work", conversation(1))
    fake_agent(two, "second", "--resume", conversation(1))
    perdure.ok("save")
    return one, two, holder


def unregister_all(home: PrivateHome) -> None:
    shutil.rmtree(os.path.join(home.home, ".claude", "sessions"))


def test_agents_that_lose_their_registries_together_keep_their_conversations(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make, private_home: PrivateHome
) -> None:
    for number in range(4):
        agent = fake_agent(tmux, f"s{number}")
        agent.register(conversation(number))
        agent.write_transcript("work", conversation(number))
    perdure.ok("save")
    unregister_all(private_home)
    for _ in range(3):
        perdure.ok("save")
        assert known(perdure, tmux) == {f"s{number}": (conversation(number), True, "remembered") for number in range(4)}


def test_a_memory_in_doubt_is_still_the_best_guess_and_comes_back(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make, private_home: PrivateHome
) -> None:
    agent = fake_agent(tmux, "s")
    agent.register(conversation(1))
    agent.write_transcript("before", conversation(1))
    perdure.ok("save")
    unregister_all(private_home)
    time.sleep(0.05)
    agent.write_transcript("somebody else, or after /clear", conversation(2))
    for _ in range(3):
        perdure.ok("save")
        assert known(perdure, tmux)["s"] == (conversation(1), False, "remembered")
    agent.register(conversation(2))
    perdure.ok("save")
    assert known(perdure, tmux)["s"] == (conversation(2), True, "registry")


def test_what_the_hooks_say_was_left_is_not_remembered(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make, private_home: PrivateHome
) -> None:
    agent = fake_agent(tmux, "s")
    spool = os.path.join(private_home.state, "spool", "claude")
    os.makedirs(spool)

    def hook(number: int, **payload: str) -> None:
        with open(os.path.join(spool, f"{agent.pid}-{number}"), "w") as file:
            json.dump({"session_id": conversation(1), **payload}, file)
        os.utime(os.path.join(spool, f"{agent.pid}-{number}"), (time.time() + number, time.time() + number))

    hook(1, hook_event_name="SessionStart")
    perdure.ok("save")
    assert known(perdure, tmux)["s"] == (conversation(1), True, "hook")
    hook(2, hook_event_name="SessionEnd", reason="clear")
    perdure.ok("save")
    assert not known(perdure, tmux)["s"][1]


def test_a_command_line_is_judged_anew_every_time(perdure: Perdure, tmux: TmuxServer, fake_agent: Make) -> None:
    agent = fake_agent(tmux, "s", "--resume", conversation(1))
    path = agent.write_transcript("work", conversation(1))
    for _ in range(2):
        perdure.ok("save")
        assert known(perdure, tmux)["s"] == (conversation(1), True, "argv")
    with open(path, "a") as file:
        file.write(json.dumps({"type": "cost-state", "sessionId": conversation(1)}) + "\n")
    perdure.ok("save")
    assert not known(perdure, tmux)["s"][1]


def test_many_agents_in_one_directory_do_not_hide_what_speaks_against_a_claim(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make, private_home: PrivateHome
) -> None:
    agents = [fake_agent(tmux, f"s{number}") for number in range(10)]
    for number, agent in enumerate(agents):
        agent.register(conversation(number))
    perdure.ok("save")
    os.unlink(os.path.join(private_home.home, ".claude", "sessions", f"{agents[0].pid}.json"))
    time.sleep(0.05)
    agents[0].write_transcript("perhaps by the first", conversation(99))
    for number, agent in enumerate(agents[1:], 1):
        agent.write_transcript("later", conversation(number))
    perdure.ok("save")
    assert known(perdure, tmux)["s0"][1] is False


def test_a_conversation_another_server_holds_is_not_claimed_though_only_one_is_looked_at(
    perdure: Perdure, tmux_server: Servers, fake_agent: Make
) -> None:
    one, two, holder = contested(perdure, tmux_server, fake_agent)
    assert known(perdure, one)["holder"] == (conversation(1), True, "registry")
    assert known(perdure, two)["second"][0] is None
    perdure.ok("save", "--socket", two.socket)
    assert known(perdure, two)["second"][0] is None
    hung = one.pid
    os.kill(hung, signal.SIGSTOP)
    try:
        ran = perdure("save", "--json", env={"PERDURE_CONFIG": _impatient(holder.home)})
    finally:
        os.kill(hung, signal.SIGCONT)
    assert ran.code == 4
    assert known(perdure, two)["second"][0] is None


def test_what_a_server_held_is_free_when_its_agents_are_gone(
    perdure: Perdure, tmux_server: Servers, fake_agent: Make
) -> None:
    one, two, holder = contested(perdure, tmux_server, fake_agent)
    one.kill9()
    # Without words: gone, or a zombie nobody has collected.
    wait_for(lambda: not words_of(holder.pid), "the end of the agent")
    perdure.ok("save")
    assert known(perdure, two)["second"][0] == conversation(1)


def _impatient(home: str) -> str:
    path = os.path.join(home, "impatient.toml")
    with open(path, "w") as file:
        file.write("[tmux]\ntimeout_seconds = 0.5\n")
    return path


def damage(home: PrivateHome) -> None:
    with open(os.path.join(home.state, "perdure.db"), "wb") as file:
        file.write(b"garbage " * 4096)


def test_a_damaged_database_does_not_cost_the_memory(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make, private_home: PrivateHome
) -> None:
    agents = [fake_agent(tmux, f"s{number}", "--resume", conversation(9)) for number in range(2)]
    for number, agent in enumerate(agents):
        agent.register(conversation(number))
        agent.write_transcript("work", conversation(number))
    perdure.ok("save")
    unregister_all(private_home)
    damage(private_home)
    assert perdure("save").code == 5
    # What could not be read is said for as long as it is there.
    assert perdure("check", "--repair").code == 4
    perdure.ok("save")
    assert known(perdure, tmux) == {f"s{number}": (conversation(number), True, "remembered") for number in range(2)}


def test_going_back_to_the_conversation_of_the_command_line_makes_a_memory_doubtful(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make, private_home: PrivateHome
) -> None:
    agent = fake_agent(tmux, "s", "--resume", conversation(1))
    agent.write_transcript("first", conversation(1))
    agent.register(conversation(2))
    perdure.ok("save")
    unregister_all(private_home)
    time.sleep(0.05)
    agent.write_transcript("back again", conversation(1))
    for _ in range(2):
        perdure.ok("save")
        assert known(perdure, tmux)["s"] == (conversation(2), False, "remembered")


def test_a_live_registry_outweighs_what_a_server_not_looked_at_held_before(
    perdure: Perdure, tmux_server: Servers, fake_agent: Make
) -> None:
    one, two = tmux_server("default"), tmux_server("other")
    first, second = fake_agent(one, "first"), fake_agent(two, "second")
    first.register(conversation(1))
    second.register(conversation(2))
    perdure.ok("save")
    first.register(conversation(3))
    second.register(conversation(1))
    perdure.ok("save", "--socket", two.socket)
    assert known(perdure, two)["second"] == (conversation(1), True, "registry")


def test_an_older_hook_record_is_no_news(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make, private_home: PrivateHome
) -> None:
    agent = fake_agent(tmux, "s")
    spool = os.path.join(private_home.state, "spool", "claude")
    os.makedirs(spool)
    with open(os.path.join(spool, f"{agent.pid}-1"), "w") as file:
        json.dump({"session_id": conversation(1), "hook_event_name": "SessionStart"}, file)
    time.sleep(0.05)
    agent.register(conversation(2))
    perdure.ok("save")
    assert known(perdure, tmux)["s"] == (conversation(2), True, "registry")
    with open(os.path.join(private_home.home, ".claude", "sessions", f"{agent.pid}.json"), "w") as file:
        file.write('{"pid":')
    perdure.ok("save")
    assert known(perdure, tmux)["s"] == (conversation(2), True, "remembered")


def test_a_neighbour_who_is_known_raises_no_doubt_and_nothing_flips(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make
) -> None:
    one, two = fake_agent(tmux, "one", "--resume", conversation(1)), fake_agent(tmux, "two")
    one.write_transcript("mine", conversation(1))
    two.register(conversation(2))
    results = []
    for number in range(3):
        two.write_transcript(f"theirs {number}", conversation(2))
        results.append(only_json(perdure.ok("save", "--json"))["servers"][0]["result"])
        assert known(perdure, tmux)["one"] == (conversation(1), True, "argv")
    assert results == ["saved", "unchanged", "unchanged"]


def test_doubt_stays_though_its_cause_is_out_of_sight(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make, private_home: PrivateHome
) -> None:
    agent = fake_agent(tmux, "s", "--resume", conversation(1))
    agent.write_transcript("mine", conversation(1))
    time.sleep(0.05)
    doubt = agent.write_transcript("whose?", conversation(2))
    perdure.ok("save")
    assert known(perdure, tmux)["s"] == (conversation(1), False, "argv")
    os.unlink(doubt)
    perdure.ok("save")
    assert known(perdure, tmux)["s"] == (conversation(1), False, "argv")


def test_one_server_under_two_names_does_not_contest_its_own_conversations(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make
) -> None:
    agent = fake_agent(tmux, "s")
    agent.register(conversation(1))
    os.link(tmux.socket, tmux.socket + "-hard")
    perdure.ok("save")
    assert known(perdure, tmux)["s"] == (conversation(1), True, "registry")
    os.unlink(tmux.socket + "-hard")


def test_what_runs_on_counts_though_its_socket_is_gone(
    perdure: Perdure, tmux_server: Servers, fake_agent: Make
) -> None:
    one, two, _ = contested(perdure, tmux_server, fake_agent)
    pid = one.pid
    os.rename(one.socket, os.path.join(os.path.dirname(os.path.dirname(one.socket)), "away"))
    try:
        perdure.ok("save")
        assert known(perdure, two)["second"][0] is None
    finally:
        os.kill(pid, signal.SIGTERM)


def test_what_a_server_not_looked_at_holds_raises_no_doubt(
    perdure: Perdure, tmux_server: Servers, fake_agent: Make, private_home: PrivateHome
) -> None:
    one, two = tmux_server("default"), tmux_server("other")
    busy, quiet = fake_agent(one, "busy"), fake_agent(two, "quiet")
    busy.register(conversation(1))
    quiet.register(conversation(2))
    perdure.ok("save")
    os.unlink(os.path.join(private_home.home, ".claude", "sessions", f"{quiet.pid}.json"))
    time.sleep(0.05)
    busy.write_transcript("in the same directory", conversation(1))
    perdure.ok("save", "--socket", two.socket)
    assert known(perdure, two)["quiet"] == (conversation(2), True, "remembered")
