"""A run that somebody wants followed no longer: what is said of it is true, and it can be followed again."""

from __future__ import annotations

import asyncio

from msgspec import structs

from perdure.daemon.protocol import Detach, Follow
from perdure.live.meant import shown_in
from perdure.model.run import RunState
from tests.acceptance.kit import sentence
from tests.acceptance.simulants import Simulants
from tests.conftest import PrivateHome
from tests.integration.api_here import api_here, caller
from tests.integration.sockets_here import socket_here
from tests.integration.watching_here import await_run
from tests.perdure_cli import Perdure
from tests.tmux_server import PATIENCE, TmuxServer


def test_what_is_let_go_of_is_said_to_live_on_and_can_be_followed_again(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")
    tmux.run("new-session", "-d", "-s", "other", "-n", "one")

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            run = await await_run(api.world.daemon, "work:0.0", lambda run: run.status.state is RunState.IDLE)
            row = (await client.get(f"/api/runs/{run.id}")).json()
            assert (row["detached"], row["ended_at"]) == (False, None)
            # It has come and gone before: only how it went last counts.
            for _ in range(2):
                gone = await client.delete(f"/api/runs/{run.id}", params={"mode": "detach"})
                assert gone.json()["result"] == "detached"
                row = (await client.get(f"/api/runs/{run.id}")).json()
                assert row["detached"]
                assert row["ended_at"] is not None
                late = (await client.post(f"/api/runs/{run.id}/input", json={"text": "hello"})).json()["message"]
                assert "is not followed any more" in late
                assert run.pane in late
                assert "gone" not in late
                assert "restore" not in late
                waited = await client.get(f"/api/runs/{run.id}/wait", params={"until": "idle", "timeout": "0"})
                assert (waited.status_code, waited.json()["message"]) == (404, late)
                seen = await client.post(f"/api/runs/{run.id}/seen")
                assert (seen.status_code, seen.json()["message"]) == (404, late)
                [last, *_] = (await client.get(f"/api/runs/{run.id}/timeline")).json()["items"]
                assert last["data"]["because"] == "Somebody wanted it followed no longer; its pane was left as it was."
                said = sentence(await asyncio.to_thread(perdure, "send", run.id, "hello"))
                assert "is not followed any more" in said
                assert "gone" not in said
                assert "restore" not in said
                async with api.client(caller(uid=54321)) as stranger:
                    assert (await stranger.post(f"/api/runs/{run.id}/follow")).status_code == 404
                back = await client.post(f"/api/runs/{run.id}/follow")
                assert (back.status_code, back.json()["id"], back.json()["ended_at"]) == (200, run.id, None)
                assert not back.json()["detached"]
                assert run.id in [each["id"] for each in (await client.get("/api/runs")).json()["items"]]
            # What is followed stays so.
            assert (await client.post(f"/api/runs/{run.id}/follow")).status_code == 200

    asyncio.run(go())


def test_what_is_gone_cannot_be_followed_again(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")
    tmux.run("new-session", "-d", "-s", "other", "-n", "one")

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            run = await await_run(api.world.daemon, "work:0.0")
            await client.delete(f"/api/runs/{run.id}", params={"mode": "detach"})
            tmux.run("kill-session", "-t", "work")
            late = await client.post(f"/api/runs/{run.id}/follow")
            assert (late.status_code, "gone" in late.json()["message"]) == (404, True)
            assert not (await client.get(f"/api/runs/{run.id}")).json()["detached"]
            other = await await_run(api.world.daemon, "other:0.0")
            tmux.run("new-session", "-d", "-s", "third", "-n", "one")
            tmux.run("kill-session", "-t", "other")
            async with asyncio.timeout(PATIENCE):
                while (row := (await client.get(f"/api/runs/{other.id}")).json())["ended_at"] is None:
                    await asyncio.sleep(0.05)
            assert not row["detached"]
            late = await client.post(f"/api/runs/{other.id}/follow")
            assert (late.status_code, "gone" in late.json()["message"]) == (404, True)

    asyncio.run(go())


def test_a_run_of_another_machine_that_shares_the_store_is_not_said_to_be_ended(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            run = await await_run(api.world.daemon, "work:0.0")
            [id] = api.world.store().new_runs(1)
            server = structs.replace(run.server, host="elsewhere")
            api.world.store().record([structs.replace(run, id=id, server=server)], [])
            for mode in ("kill", "detach"):
                gone = await client.delete(f"/api/runs/{id}", params={"mode": mode, "anyway": "true"})
                assert (gone.status_code, gone.json()["code"]) == (404, "NOT_FOUND"), gone.json()
            assert (await client.get(f"/api/runs/{run.id}")).json()["ended_at"] is None
            assert tmux.show("#{pane_dead}", "work") == "0"

    asyncio.run(go())


def test_who_was_shown_a_pane_with_nobody_in_it_ends_nobody_who_was_started_there_since(
    tmux: TmuxServer, private_home: PrivateHome
) -> None:
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "other", "-n", "one")
    tmux.run("set-option", "-g", "remain-on-exit", "on")
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "exit 3")

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            run = await await_run(api.world.daemon, "work:0.0", lambda run: run.status.state is RunState.EXITED)
            who = (await client.get(f"/api/runs/{run.id}")).json()["who"]
            tmux.run("respawn-pane", "-t", "work:0", agents.path)
            run = await await_run(api.world.daemon, "work:0.0", lambda run: run.program is not None)
            for mode in ("kill", "detach"):
                gone = await client.delete(f"/api/runs/{run.id}", params={"mode": mode, "who": who})
                assert (gone.status_code, gone.json().get("code")) == (409, "RUN_REPLACED")
                assert "an agent was started there meanwhile; look again" in gone.json()["message"]
            assert tmux.show("#{pane_dead}", "work") == "0"
            row = (await client.get(f"/api/runs/{run.id}")).json()
            assert (row["ended_at"], row["agent"]) == (None, "simulant")
            # Nobody is ended by those who were shown that nobody is there.
            tmux.run("respawn-pane", "-k", "-t", "work:0", "exit 3")
            await await_run(api.world.daemon, "work:0.0", lambda run: shown_in(run).is_nobody)
            gone = await client.delete(f"/api/runs/{run.id}", params={"mode": "kill", "who": who})
            assert gone.json()["result"] == "killed"

    asyncio.run(go())
    agents.end_all()


def test_nothing_is_typed_into_the_terminal_of_what_was_let_go_of(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "cat")

    async def go() -> None:
        async with socket_here() as here, here.talk() as talk:
            run = await await_run(here.daemon, "work:0.0")
            await talk.say(op="open", run=run.id)
            await talk.told("screen", run=run.id)
            await here.world.answers.answer(Detach(run=run.id), caller().uid)
            await talk.say(op="input", run=run.id, id=1, text="not for it")
            # Whichever comes first.
            await talk.until(lambda _: {"ack", "closed"} <= {message["type"] for message in talk.heard})
            told = {message["type"]: message for message in talk.heard}
            assert told["ack"]["result"] == "refused"
            assert "is not followed any more" in told["closed"]["why"]
            assert f"perdure follow {run.id}" in told["closed"]["why"]
            # Nor can it be opened, and nobody says that it is gone.
            await talk.say(op="open", run=run.id)
            closed = await talk.told("closed", run=run.id)
            assert f"perdure follow {run.id}" in closed["why"]
            assert "gone" not in closed["why"]
            assert "not there" not in closed["why"]
            await here.world.answers.answer(Follow(run=run.id), caller().uid)
            await talk.say(op="open", run=run.id)
            await talk.told("screen", run=run.id)
            await talk.say(op="input", run=run.id, id=2, text="again\r")
            await talk.told("ack", id=2, result="sent")
            await talk.reads(run.id, "again\r\nagain")
            assert "not for it" not in talk.shown(run.id)

    asyncio.run(go())
