"""What is done to runs over HTTP: real panes, simulated agents."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from perdure.model.run import Reason, Run, RunState
from tests.acceptance.simulants import Simulants
from tests.conftest import PrivateHome
from tests.integration.api_here import Api, api_here, caller
from tests.integration.watching_here import await_run
from tests.tmux_server import PATIENCE, TmuxServer


def with_api(work: Callable[[Api, httpx.AsyncClient], Awaitable[None]]) -> None:
    """Run something against the routes of a daemon that watches."""

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            client.timeout = httpx.Timeout(PATIENCE)
            await work(api, client)

    asyncio.run(go())


async def until(client: httpx.AsyncClient, path: str, is_it: Callable[[Any], bool]) -> Any:
    """Return what is at an address once it is as it should be."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not is_it(body := (await client.get(path)).json()):
        assert asyncio.get_running_loop().time() < deadline, body
        await asyncio.sleep(0.02)
    return body


def audited(home: PrivateHome) -> list[dict[str, Any]]:
    """Return what the audit log says was done."""
    with open(os.path.join(home.state, "audit.log"), "rb") as file:
        return [msgspec.json.decode(line) for line in file]


def agent(tmux: TmuxServer, agents: Simulants, *options: str) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", agents.path, "--think", "0.1", *options)
    agents.await_running(1, 0)


def is_idle(run: Run) -> bool:
    return run.agent is not None and run.status.state is RunState.IDLE


def asks(run: Run) -> bool:
    return run.status.reason is Reason.PERMISSION


def test_a_text_is_delivered_and_waited_for(private_home: PrivateHome, tmux: TmuxServer) -> None:
    agents = Simulants(private_home)
    agent(tmux, agents)

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0", is_idle)
        told = await client.post(
            f"/api/runs/{run.id}/input", json={"text": "hello pdr_" + "x" * 43, "timeout": PATIENCE}
        )
        assert told.status_code == 200, told.text
        assert (told.json()["result"], told.json()["run"], told.json()["target"]) == ("delivered", run.id, "work:0.0")
        reached = await client.get(f"/api/runs/{run.id}/wait", params={"until": "idle", "timeout": PATIENCE})
        assert (reached.status_code, reached.json()["reached"]) == (200, True), reached.text
        assert reached.json()["id"] == run.id
        async with asyncio.timeout(PATIENCE):
            # It is idle before it begins, too: that it began and ended may be noticed only now.
            while (await client.post(f"/api/runs/{run.id}/seen")).json()["state"] != "idle":
                await asyncio.sleep(0.02)
        missed = await client.get(f"/api/runs/{run.id}/wait", params={"until": "error", "timeout": 0})
        # That the time is up is no failure of anybody: what watches for failures has nothing to see.
        assert (missed.status_code, missed.json()["reached"]) == (200, False)
        assert (missed.json()["id"], missed.json()["state"]) == (run.id, "idle")
        timeline = (await client.get(f"/api/runs/{run.id}/timeline")).json()["items"]
        assert [each["kind"] for each in timeline].count("sent") == 1
        assert timeline[-1]["kind"] == "run_created"
        assert [each["seq"] for each in timeline] == sorted((each["seq"] for each in timeline), reverse=True)

    with_api(go)
    agents.await_running(1, 2)
    [entry] = [each for each in audited(private_home) if each["action"] == "send"]
    assert (entry["target"], entry["result"], entry["token"]) == ("r1", "delivered", "test")
    assert entry["text"] == "hello ***"


def test_an_answer_is_given_only_while_that_is_asked(private_home: PrivateHome, tmux: TmuxServer) -> None:
    agents = Simulants(private_home)
    agent(tmux, agents)

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0", is_idle)
        await client.post(f"/api/runs/{run.id}/input", json={"text": "run make test"})
        await await_run(api.world.daemon, "work:0.0", asks)
        asked = (await client.get(f"/api/runs/{run.id}/prompt")).json()
        assert "$ make test" in asked["prompt"]
        assert [(each["key"], each["label"]) for each in asked["choices"]] == [("y", "yes"), ("n", "no")]
        other = await client.post(
            f"/api/runs/{run.id}/answer",
            json={"prompt": asked["prompt"].replace("make test", "make tesT"), "choice": "y"},
        )
        assert (other.status_code, other.json()["code"]) == (409, "SCREEN_CHANGED")
        assert (await client.get(f"/api/runs/{run.id}/prompt")).json()["prompt"] == asked["prompt"]
        refused = await client.post(f"/api/runs/{run.id}/input", json={"text": "something else"})
        assert refused.json()["result"] == "refused"
        answer = {"prompt": asked["prompt"], "choice": "y", "timeout": PATIENCE}
        given = await client.post(f"/api/runs/{run.id}/answer", json=answer)
        assert (given.status_code, given.json()["result"]) == (200, "delivered"), given.text
        await await_run(api.world.daemon, "work:0.0", lambda run: run.status.waits)
        late = await client.post(f"/api/runs/{run.id}/answer", json={"prompt": asked["prompt"], "choice": "y"})
        assert (late.status_code, late.json()["code"]) == (409, "SCREEN_CHANGED")

    with_api(go)
    assert [each["choice"] for each in audited(private_home) if each["action"] == "answer"] == ["y"]


@asynccontextmanager
async def unnoticed(api: Api) -> AsyncIterator[None]:
    """The daemon notices nothing within the block."""
    over, held = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        held.set()
        over.wait(PATIENCE)

    holding = asyncio.ensure_future(api.world.daemon.in_order(hold))
    try:
        assert await asyncio.to_thread(held.wait, PATIENCE)
        yield
    finally:
        over.set()
        await holding


async def another(tmux: TmuxServer, agents: Simulants, *words: str) -> int:
    """Start another agent in the place of the one that is there; return its process once it is up."""
    before = set(agents.running().values())
    tmux.run("respawn-pane", "-k", "-t", "work:", agents.path, "--think", "0.1", *words)
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not (after := set(agents.running().values()) - before):
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.02)
    return after.pop()


def test_an_agent_the_daemon_has_not_seen_yet_is_not_who_is_told(private_home: PrivateHome, tmux: TmuxServer) -> None:
    agents = Simulants(private_home)
    agent(tmux, agents)

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0", is_idle)
        async with unnoticed(api):
            new = await another(tmux, agents)
            for told in ({"text": "for the first one"}, {"keys": ["Enter"]}, {"text": "for it", "anyway": True}):
                said = (await client.post(f"/api/runs/{run.id}/input", json=told)).json()
                assert (said["result"], said["enters"]) == ("refused", 0), said
                assert said["why"] == "another agent was started there meanwhile; look again"
        assert agents.turns() == 0
        await await_run(
            api.world.daemon,
            "work:0.0",
            lambda run: is_idle(run) and run.program is not None and run.program.pid == new,
        )
        said = (
            await client.post(f"/api/runs/{run.id}/input", json={"text": "for the second one", "timeout": PATIENCE})
        ).json()
        assert said["result"] == "delivered"

    with_api(go)
    agents.await_running(1, 2)
    assert [each["result"] for each in audited(private_home) if each["action"] == "send"] == [
        *("refused", "refused", "refused"),
        "delivered",
    ]
    agents.end_all()


def test_the_same_question_of_another_agent_is_not_answered(private_home: PrivateHome, tmux: TmuxServer) -> None:
    agents = Simulants(private_home)
    agent(tmux, agents)

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0", is_idle)
        await client.post(f"/api/runs/{run.id}/input", json={"text": "run make test"})
        await await_run(api.world.daemon, "work:0.0", asks)
        async with unnoticed(api):
            tmux.run("clear-history", "-t", "work:")
            await another(tmux, agents, "run make test")
            shown = await until(client, f"/api/runs/{run.id}/prompt", lambda body: "[y]" in body.get("prompt", ""))
            answer = {"prompt": shown["prompt"], "choice": "y"}
            given = (await client.post(f"/api/runs/{run.id}/answer", json=answer)).json()
            assert (given["result"], "look again" in given["why"]) == ("refused", True), given
        assert not any("Noted" in line for line in tmux.run("capture-pane", "-p", "-t", "work:").decode().split("\n"))

    with_api(go)
    agents.end_all()


def test_a_conversation_that_is_named_is_the_only_one_that_is_told(private_home: PrivateHome, tmux: TmuxServer) -> None:
    agents = Simulants(private_home)
    agent(tmux, agents)

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0", is_idle)
        assert run.identity is not None
        first = run.identity.conversation
        async with unnoticed(api):
            tmux.run("send-keys", "-t", "work:", "/new", "Enter")
            deadline = asyncio.get_running_loop().time() + PATIENCE
            while first in agents.running():
                assert asyncio.get_running_loop().time() < deadline
                await asyncio.sleep(0.02)
            told = {"text": "for the first one", "conversation": first}
            said = (await client.post(f"/api/runs/{run.id}/input", json=told)).json()
            assert (said["result"], said["why"]) == ("refused", "it is not in that conversation any more; look again")
        told["conversation"] = next(iter(agents.running()))
        assert (await client.post(f"/api/runs/{run.id}/input", json=told)).json()["result"] == "delivered"

    with_api(go)
    agents.await_running(1, 2)
    agents.end_all()


async def noticed(api: Api, pid: int, is_it: Callable[[Run], bool] = is_idle) -> Run:
    """Return the run once the daemon has seen that this process is the agent."""
    return await await_run(
        api.world.daemon,
        "work:0.0",
        lambda run: run.program is not None and run.program.pid == pid and is_it(run),
    )


def test_a_text_for_who_was_shown_reaches_nobody_else(private_home: PrivateHome, tmux: TmuxServer) -> None:
    agents = Simulants(private_home)
    agent(tmux, agents)

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0", is_idle)
        shown = (await client.get(f"/api/runs/{run.id}")).json()["who"]
        [listed] = (await client.get("/api/runs")).json()["items"]
        assert (listed["who"], bool(shown)) == (shown, True)
        told = {"text": "for the first one", "who": shown, "timeout": PATIENCE}
        assert (await client.post(f"/api/runs/{run.id}/input", json=told)).json()["result"] == "delivered"
        await await_run(api.world.daemon, "work:0.0", lambda run: run.status.waits)
        new = await another(tmux, agents)
        assert (await noticed(api, new)).id == run.id
        for late in (told, {"keys": ["Enter"], "who": shown}, {**told, "anyway": True}):
            said = (await client.post(f"/api/runs/{run.id}/input", json=late)).json()
            assert (said["result"], said["enters"]) == ("refused", 0), said
            assert said["why"] == "another agent was started there meanwhile; look again"
        now = (await client.get(f"/api/runs/{run.id}")).json()["who"]
        assert now != shown
        said = (await client.post(f"/api/runs/{run.id}/input", json={**told, "who": now})).json()
        assert said["result"] == "delivered", said
        odd = await client.post(f"/api/runs/{run.id}/input", json={**told, "who": "somebody"})
        assert (odd.status_code, odd.json()["result"]) == (200, "refused")

    with_api(go)
    agents.end_all()


async def go_on_to_another(tmux: TmuxServer, agents: Simulants) -> None:
    """Have the agent leave its conversation for another, and wait until it has."""
    [first] = agents.running()
    tmux.run("send-keys", "-t", "work:", "/new", "Enter")
    async with asyncio.timeout(PATIENCE):
        while not agents.running() or first in agents.running():
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("is_noticed", [True, False])
def test_who_went_on_to_another_conversation_is_not_who_was_shown(
    private_home: PrivateHome, tmux: TmuxServer, *, is_noticed: bool
) -> None:
    agents = Simulants(private_home)
    agent(tmux, agents)

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0", is_idle)
        told = {"text": "for it", "who": (await client.get(f"/api/runs/{run.id}")).json()["who"]}
        async with unnoticed(api):
            await go_on_to_another(tmux, agents)
            if not is_noticed:
                said = (await client.post(f"/api/runs/{run.id}/input", json=told)).json()
        if is_noticed:
            [second] = agents.running()
            path = f"/api/runs/{run.id}"
            await until(client, path, lambda body: (body["conversation"], body["certain"]) == (second, True))
            said = (await client.post(f"/api/runs/{run.id}/input", json=told)).json()
        assert (said["result"], said["why"]) == ("refused", "it is not in that conversation any more; look again")

    with_api(go)
    assert agents.turns() == 0
    agents.end_all()


def test_the_same_conversation_in_a_new_process_is_who_was_shown(private_home: PrivateHome, tmux: TmuxServer) -> None:
    agents = Simulants(private_home)
    agent(tmux, agents)

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0", is_idle)
        told = {"text": "for it", "timeout": PATIENCE, "who": (await client.get(f"/api/runs/{run.id}")).json()["who"]}
        assert (await client.post(f"/api/runs/{run.id}/input", json=told)).json()["result"] == "delivered"
        await await_run(api.world.daemon, "work:0.0", lambda run: run.status.waits)
        [conversation] = agents.running()
        assert run.program is not None
        tmux.run("set-option", "-g", "remain-on-exit", "on")
        os.kill(run.program.pid, signal.SIGKILL)
        # Nobody else may be in its conversation as long as it lives.
        async with asyncio.timeout(PATIENCE):
            while tmux.run("display-message", "-p", "-t", "work:", "#{pane_dead}").strip() != b"1":
                await asyncio.sleep(0.02)
        tmux.run("respawn-pane", "-k", "-t", "work:", agents.path, "--think", "0.1", "--resume", conversation)
        again = await await_run(
            api.world.daemon,
            "work:0.0",
            lambda now: now.program not in (None, run.program) and now.status.waits,
        )
        assert (again.id, again.identity and again.identity.conversation) == (run.id, conversation)
        said = (await client.post(f"/api/runs/{run.id}/input", json=told)).json()
        assert said["result"] == "delivered", said

    with_api(go)
    agents.end_all()


def test_what_one_agent_asked_is_not_answered_to_another(private_home: PrivateHome, tmux: TmuxServer) -> None:
    agents = Simulants(private_home)
    agent(tmux, agents)

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0", is_idle)
        await client.post(f"/api/runs/{run.id}/input", json={"text": "run make test"})
        await await_run(api.world.daemon, "work:0.0", asks)
        read = (await client.get(f"/api/runs/{run.id}/prompt")).json()
        assert read["who"] == (await client.get(f"/api/runs/{run.id}")).json()["who"]
        tmux.run("clear-history", "-t", "work:")
        new = await another(tmux, agents, "run make test")
        await noticed(api, new, asks)
        shown = await until(client, f"/api/runs/{run.id}/prompt", lambda body: "[y]" in body.get("prompt", ""))
        # The same question, word for word, of somebody else.
        answer = {"prompt": shown["prompt"], "choice": "y", "who": read["who"], "timeout": PATIENCE}
        given = (await client.post(f"/api/runs/{run.id}/answer", json=answer)).json()
        assert (given["result"], given["why"]) == ("refused", "another agent was started there meanwhile; look again")
        given = (await client.post(f"/api/runs/{run.id}/answer", json={**answer, "who": shown["who"]})).json()
        assert given["result"] == "delivered", given

    with_api(go)
    answers = [(each["choice"], each["result"]) for each in audited(private_home) if each["action"] == "answer"]
    assert answers == [("y", "refused"), ("y", "delivered")]
    agents.end_all()


def test_only_who_was_shown_is_ended(private_home: PrivateHome, tmux: TmuxServer) -> None:
    agents = Simulants(private_home)
    agent(tmux, agents)

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0", is_idle)
        shown = (await client.get(f"/api/runs/{run.id}")).json()["who"]
        new = await another(tmux, agents)
        await noticed(api, new)
        for mode in ("kill", "detach"):
            late = await client.delete(f"/api/runs/{run.id}", params={"mode": mode, "who": shown})
            assert (late.status_code, late.json()["code"]) == (409, "RUN_REPLACED"), late.text
            assert "another agent was started there meanwhile; look again" in late.json()["message"]
        os.kill(new, 0)
        now = (await client.get(f"/api/runs/{run.id}")).json()["who"]
        ended = await client.delete(f"/api/runs/{run.id}", params={"mode": "kill", "who": now})
        assert (ended.status_code, ended.json()["result"]) == (200, "killed"), ended.text

    with_api(go)


def test_who_went_on_to_another_conversation_a_moment_ago_is_not_ended(
    private_home: PrivateHome, tmux: TmuxServer
) -> None:
    agents = Simulants(private_home)
    agent(tmux, agents)

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0", is_idle)
        meant = {"mode": "kill", "who": (await client.get(f"/api/runs/{run.id}")).json()["who"]}
        async with unnoticed(api):
            await go_on_to_another(tmux, agents)
            # It is asked for while the daemon knows of the first one only, and done once it can be saved.
            ending = asyncio.ensure_future(client.delete(f"/api/runs/{run.id}", params=meant))
            await asyncio.wait([ending], timeout=0.5)
        ended = await ending
        assert (ended.status_code, ended.json()["code"]) == (409, "RUN_REPLACED"), ended.text
        assert "it is not in that conversation any more; look again" in ended.json()["message"]

    with_api(go)
    assert tmux.run("list-sessions", "-F", "#{session_name}") == b"work\n"
    agents.end_all()


def test_who_was_started_can_be_told_something_at_once(private_home: PrivateHome, tmux: TmuxServer) -> None:
    """Also where the daemon has seen the pane long before the agent."""
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "other", "-n", "one")
    gate = os.path.join(private_home.root, "gate")
    os.mkfifo(gate)
    words = ["sh", "-c", f"read -r _ <{gate}; {agents.path} --think 0.1; :"]

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        asked = {"name": "work", "cwd": private_home.home, "agent": "simulant", "argv": words}
        starting = asyncio.ensure_future(client.post("/api/runs", json=asked))
        run = await await_run(api.world.daemon, "work:0.0", lambda run: run.program is None)
        async with unnoticed(api):
            with open(gate, "w") as file:
                file.write("now\n")
            # It would not be long before it was answered, were nobody waited for.
            await asyncio.wait([starting], timeout=1.5)
        made = (await starting).json()
        assert (made["result"], made["run"]) == ("ready", run.id), made
        said = (await client.post(f"/api/runs/{run.id}/input", json={"text": "and now this"})).json()
        assert said["result"] == "delivered", said

    with_api(go)
    agents.await_running(1, 2)
    agents.end_all()


def test_what_a_pane_shows_and_what_scrolled_away_can_be_read(tmux: TmuxServer) -> None:
    tmux.run(
        "new-session",
        "-d",
        "-s",
        "work",
        "-n",
        "one",
        "-x",
        "60",
        "-y",
        "10",
        "seq 1 50; printf '\\033[31mred\\033[0m '; exec cat",
    )

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0")
        shown = await until(client, f"/api/runs/{run.id}/screen", lambda body: "red" in " ".join(body["lines"]))
        assert (shown["cols"], shown["rows"], shown["cursor"]) == (60, 10, {"x": 4, "y": 9})
        assert (len(shown["lines"]), shown["history"]) == (10, 41)
        above = (await client.get(f"/api/runs/{run.id}/scrollback", params={"lines": 1000})).json()
        assert above["lines"][:2] == ["1", "2"]
        colours = (await client.get(f"/api/runs/{run.id}/screen", params={"colours": True})).json()
        assert "\x1b[31mred" in colours["lines"][-1]

    with_api(go)


def test_a_run_is_started_explained_and_ended_and_can_be_brought_back(
    private_home: PrivateHome, tmux: TmuxServer
) -> None:
    tmux.run("new-session", "-d", "-s", "other", "-n", "one")

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        made = await client.post("/api/runs", json={"name": "fresh", "cwd": private_home.home})
        assert made.status_code == 201, made.text
        assert (made.json()["result"], made.json()["name"]) == ("ready", "fresh")
        taken = await client.post("/api/runs", json={"name": "fresh", "cwd": private_home.home})
        assert (taken.status_code, taken.json()["code"]) == (409, "NAME_TAKEN")
        wrong = await client.post("/api/runs", json={"cwd": "relative"})
        assert (wrong.status_code, wrong.json()["code"]) == (400, "USAGE_ERROR")
        for place in ("relative.sock", f"{private_home.root}/nowhere/deep/x.sock"):
            nowhere = await client.post("/api/runs", json={"cwd": private_home.home, "socket": place})
            assert (nowhere.status_code, nowhere.json()["code"]) == (400, "USAGE_ERROR")
        assert not os.path.exists(f"{private_home.root}/nowhere")
        nobody = await client.post("/api/runs", json={"agent": "nobody", "cwd": private_home.home})
        assert nobody.status_code == 404
        run = await await_run(api.world.daemon, "fresh:0.0")
        explained = await client.get(f"/api/runs/{run.id}/explain")
        assert explained.status_code == 200, explained.text
        assert (explained.json()["pane_id"], explained.json()["agent"]) == (run.pane, None)
        ended = await client.delete(f"/api/runs/{run.id}", params={"mode": "kill"})
        assert (ended.status_code, ended.json()["result"]) == (200, "killed"), ended.text
        assert ended.json()["snapshot"]
        kept = await api.world.read(lambda store: store.get_snapshot(ended.json()["snapshot"]))
        assert "fresh" in [session.name for session in kept.topology.sessions]
        await until(client, f"/api/runs/{run.id}", lambda body: body["ended_at"] is not None)
        gone = await client.get(f"/api/runs/{run.id}/screen")
        assert (gone.status_code, gone.json()["code"]) == (404, "NOT_FOUND")
        over = (await client.get("/api/runs", params={"over": True})).json()["items"]
        assert run.id in [each["id"] for each in over]

    with_api(go)
    assert tmux.run("list-sessions", "-F", "#{session_name}") == b"other\n"
    assert [(each["action"], each["result"]) for each in audited(private_home)] == [
        ("new", "ready"),
        ("new", "failed: NameTaken"),
        ("kill", "killed"),
    ]


def test_what_is_started_at_home_is_there_however_home_is_written(private_home: PrivateHome, tmux: TmuxServer) -> None:
    os.mkdir(os.path.join(private_home.home, "roof"))

    async def work(api: Api, client: httpx.AsyncClient) -> None:
        for cwd, place in (("~", ""), ("~/", ""), ("~/roof", "roof")):
            made = await client.post("/api/runs", json={"argv": ["cat"], "cwd": cwd})
            assert made.status_code == 201, made.text
            where = tmux.show("#{pane_current_path}", made.json()["pane"])
            assert where == os.path.realpath(os.path.join(private_home.home, place)).rstrip("/")
        for cwd in ("~/cellar", "~nobody", "roof", "./roof"):
            refused = await client.post("/api/runs", json={"argv": ["cat"], "cwd": cwd})
            assert refused.status_code == 400, refused.text
            assert refused.json()["message"] == (
                f"{cwd} is no directory that can be entered; it has to begin with / or ~/."
            )

    with_api(work)


def test_a_pane_that_takes_no_input_is_told_nothing(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "cat")
    tmux.run("select-pane", "-d", "-t", "work:0.0")

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0")
        told = (await client.post(f"/api/runs/{run.id}/input", json={"text": "hello", "anyway": True})).json()
        assert (told["result"], "no input" in told["why"]) == ("refused", True)

    with_api(go)


def test_a_run_that_is_let_go_of_lives_on(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0")
        gone = await client.delete(f"/api/runs/{run.id}", params={"mode": "detach"})
        assert (gone.status_code, gone.json()["result"]) == (200, "detached")
        for late in (
            await client.post(f"/api/runs/{run.id}/input", json={"text": "hello"}),
            await client.get(f"/api/runs/{run.id}/screen"),
            await client.delete(f"/api/runs/{run.id}", params={"mode": "kill"}),
        ):
            # Its pane is there: nothing has to be brought back.
            said = late.json()["message"]
            assert (late.status_code, "not followed" in said, "restore" in said) == (404, True, False)
        assert (await client.get(f"/api/runs/{run.id}")).json()["ended_at"] is not None
        assert (await client.get("/api/runs")).json()["items"] == []

    with_api(go)
    assert tmux.alive


def test_nobody_does_anything_to_what_is_anothers(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")

    async def go(api: Api, _: httpx.AsyncClient) -> None:
        run = await await_run(api.world.daemon, "work:0.0")
        async with api.client(caller(uid=54321)) as other:
            tried = [
                await other.post(f"/api/runs/{run.id}/input", json={"text": "x"}),
                await other.post(f"/api/runs/{run.id}/answer", json={"prompt": "x", "choice": "y"}),
                await other.post(f"/api/runs/{run.id}/seen"),
                await other.delete(f"/api/runs/{run.id}", params={"mode": "kill"}),
                *[
                    await other.get(f"/api/runs/{run.id}{path}")
                    for path in (
                        *("", "/screen", "/scrollback", "/timeline", "/thought", "/explain", "/prompt"),
                        "/wait?until=idle",
                    )
                ],
            ]
            assert {each.status_code for each in tried} == {404}
            assert (await other.post("/api/runs", json={"name": "mine"})).status_code == 403

    with_api(go)
    assert tmux.run("list-sessions", "-F", "#{session_name}") == b"work\n"


def test_the_list_is_narrowed_and_read_page_by_page(tmux: TmuxServer) -> None:
    for name in ("alpha", "beta", "gamma"):
        tmux.run("new-session", "-d", "-s", name, "-n", "one", "exec cat")

    async def go(api: Api, client: httpx.AsyncClient) -> None:
        for name in ("alpha", "beta", "gamma"):
            await await_run(api.world.daemon, f"{name}:0.0")

        async def sessions(**params: Any) -> list[str]:
            listed = await client.get("/api/runs", params=params)
            assert listed.status_code == 200, listed.text
            return [each["session"] for each in listed.json()["items"]]

        assert await sessions(session="beta") == ["beta"]
        async with asyncio.timeout(PATIENCE):
            # A pane is there before its program is.
            while (found := await sessions(q="GAMM cat")) != ["gamma"]:
                assert found == []
                await asyncio.sleep(0.02)
        assert await sessions(state="error") == []
        assert await sessions(reason=["permission", "done"]) == []
        assert await sessions(agent="nobody") == []
        first = (await client.get("/api/runs", params={"limit": 2})).json()
        rest = (await client.get("/api/runs", params={"limit": 2, "cursor": first["next"]})).json()
        assert [each["session"] for each in first["items"] + rest["items"]] == ["alpha", "beta", "gamma"]
        assert rest["next"] is None
        for wrong in ({"cursor": "!"}, {"cursor": "bm8"}, {"limit": 0}, {"limit": 5000}, {"state": "sleepy"}):
            refused = await client.get("/api/runs", params=wrong)
            assert (refused.status_code, refused.json()["code"]) == (400, "USAGE_ERROR"), refused.text

    with_api(go)
