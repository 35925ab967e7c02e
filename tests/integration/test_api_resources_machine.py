"""Events, conversations, servers and settings over HTTP."""

from __future__ import annotations

import asyncio
import os

import msgspec
import pytest

from perdure.model.event import Event, EventKind
from tests.acceptance.gateway import ANN, Gateway
from tests.acceptance.simulants import Simulants
from tests.conftest import PrivateHome
from tests.integration.api_here import api_here, caller
from tests.integration.test_api_resources_snapshots import OTHER
from tests.integration.watching_here import await_run
from tests.perdure_cli import Perdure
from tests.tmux_server import PATIENCE, TmuxServer

CONFIG = """\
# mine
[retention]
daily_days = 365  # a year
"""


def test_events_are_read_behind_a_number_and_waited_for(private_home: PrivateHome) -> None:
    gateway = Gateway(private_home)

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            for n in range(5):
                await api.world.note(
                    Event(kind=EventKind.SAVED, at=api.world.now(), server=f"h/{OTHER}/x", data={"n": n})
                )
            first = (await client.get("/api/events", params={"limit": 2})).json()
            assert first["items"][0]["kind"] == "daemon_started"
            seen, after = [*first["items"]], first["after"]
            while first["next"] is not None:
                first = (await client.get("/api/events", params={"after": after, "limit": 2})).json()
                seen, after = [*seen, *first["items"]], first["after"]
            assert [each["data"].get("n") for each in seen] == [None, 0, 1, 2, 3, 4]
            assert first["last"] == after == seen[-1]["seq"]
            kinds = (await client.get("/api/events?kind=daemon_started&kind=saved&limit=1000")).json()["items"]
            assert len(kinds) == 6
            none = (await client.get("/api/events", params={"kind": "thought"})).json()
            assert (none["items"], none["next"], none["after"]) == ([], None, after)
            async with api.client(caller(uid=OTHER)) as theirs:
                assert len((await theirs.get("/api/events", params={"limit": 1000})).json()["items"]) == 6
            async with api.client(caller(uid=OTHER + 1)) as theirs:
                told = (await theirs.get("/api/events", params={"limit": 1})).json()
                assert [each["kind"] for each in told["items"]] == ["daemon_started"]
            # Somebody else writes it down, and nobody tells the daemon.
            params = {"after": after, "wait": 30, "kind": "chat_opened"}
            waiting = asyncio.get_running_loop().create_task(client.get("/api/events", params=params))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            chat = await asyncio.to_thread(gateway.open, ANN, "hello")
            (told_of,) = (await waiting).json()["items"]
            assert told_of["data"]["chat"] == chat
            nothing = (await client.get("/api/events", params={"after": told_of["seq"] + 99, "wait": 0.01})).json()
            assert nothing["items"] == []
            # The last number there is, however far behind it was asked.
            assert told_of["seq"] <= nothing["last"] < told_of["seq"] + 50
            # As with every other list, `next` given as `cursor` goes on.
            page = (await client.get("/api/events", params={"limit": 2})).json()
            found = [*page["items"]]
            while page["next"] is not None:
                page = (await client.get("/api/events", params={"limit": 2, "cursor": page["next"]})).json()
                found += page["items"]
            assert [each["seq"] for each in found] == sorted({each["seq"] for each in found})
            assert found[-1]["seq"] >= told_of["seq"]
            for wrong in ("after=-1", "kind=bogus", "run=x", "wait=61", "limit=0", "cursor=x", "cursor=-1"):
                refused = await client.get(f"/api/events?{wrong}")
                assert (refused.status_code, refused.json()["code"]) == (400, "USAGE_ERROR"), wrong

    asyncio.run(go())


def test_conversations_and_where_they_live(private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure) -> None:
    simulants = Simulants(private_home)
    repository = os.path.join(private_home.home, "repo")
    os.makedirs(os.path.join(repository, ".git"))
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "-c", repository, simulants.path)
    tmux.run("set-option", "-g", "remain-on-exit", "on")
    try:
        simulants.await_running(1, 0)
        tmux.run("send-keys", "-t", "work:0.0", "fix the parser", "Enter")
        simulants.await_running(1, 2)
        (id,) = simulants.running()

        async def go() -> None:
            async with api_here() as api, api.client() as client:
                run = await await_run(
                    api.world.daemon,
                    "work:0.0",
                    lambda run: run.identity is not None and run.identity.conversation == id,
                )
                async with asyncio.timeout(PATIENCE):
                    # It is known before it is saved.
                    while not (rows := (await client.get("/api/conversations")).json()["items"]) or not rows[0]["kept"]:
                        await asyncio.sleep(0.02)
                (row,) = rows
                assert (row["conversation"], row["certain"], row["runs"]) == (id, True, [run.id])
                assert (row["now"]["run"], row["now"]["target"]) == (run.id, "work:0.0")
                assert row["kept"]["pane_id"] == run.pane
                found = (await client.get("/api/conversations", params={"q": f"{id[:6]} {repository}"})).json()
                assert len(found["items"]) == 1
                for nothing in ({"q": "nobody said this"}, {"agent": "other"}, {"live": "false"}):
                    assert (await client.get("/api/conversations", params=nothing)).json()["items"] == []
                async with api.client(caller(uid=OTHER)) as theirs:
                    assert (await theirs.get("/api/conversations")).json()["items"] == []
                    (host,) = (await theirs.get("/api/hosts")).json()["items"]
                    assert host["users"] == []
                await await_run(api.world.daemon, "work:0.0", lambda run: run.theme == repository)
                async with asyncio.timeout(PATIENCE):
                    while not (host := (await client.get("/api/hosts")).json()["items"][0])["themes"]:
                        await asyncio.sleep(0.02)
                assert [(theme["root"], theme["generated"]) for theme in host["themes"]] == [(repository, True)]
                (user,) = host["users"]
                (server,) = user["servers"]
                assert (server["alive"], server["panes"], server["agents"]) == (True, 1, 1)
                assert server["key"] == run.server.key
                tmux.kill9()
                async with asyncio.timeout(PATIENCE):
                    while (await client.get("/api/conversations", params={"live": "false"})).json()["items"] == []:
                        await asyncio.sleep(0.02)
                async with asyncio.timeout(PATIENCE):
                    while (host := (await client.get("/api/hosts")).json()["items"][0])["users"][0]["servers"][0][
                        "alive"
                    ]:
                        await asyncio.sleep(0.02)
                assert host["users"][0]["servers"][0]["snapshot"] is not None

        asyncio.run(go())
    finally:
        simulants.end_all()


@pytest.fixture
def config(private_home: PrivateHome) -> str:
    path = os.path.join(private_home.home, ".config", "perdure", "config.toml")
    os.makedirs(os.path.dirname(path))
    with open(path, "w") as file:
        file.write(CONFIG)
    os.chmod(path, 0o640)
    return path


def test_settings_are_changed_in_the_users_own_file(config: str) -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            before = (await client.get("/api/settings")).json()
            assert (before["file"], before["retention"]["daily_days"], before["live"]) == (
                config,
                365,
                {"restore": False},
            )
            assert {hook["state"] for hook in before["hooks"]} == {"not there"}
            change = {"version": before["version"], "retention": {"daily_days": 30}, "live": {"restore": True}}
            changed = await client.patch("/api/settings", json=change)
            assert changed.status_code == 200, changed.text
            assert (changed.json()["retention"]["daily_days"], changed.json()["live"]["restore"]) == (30, True)
            assert api.world.config.retention.daily_days == 30
            with open(config) as file:
                assert file.read() == CONFIG.replace("365", "30") + "\n[live]\nrestore = true\n"
            assert os.stat(config).st_mode & 0o777 == 0o640
            again = await client.patch("/api/settings", json=change)
            assert (again.status_code, again.json()["code"]) == (409, "CONFLICT")
            back = {"version": changed.json()["version"], "retention": {"daily_days": None}}
            assert (await client.patch("/api/settings", json=back)).json()["retention"]["daily_days"] == 90
            async with api.client(caller(uid=OTHER)) as theirs:
                assert (await theirs.get("/api/settings")).status_code == 403
                assert (await theirs.patch("/api/settings", json=change)).status_code == 403

    asyncio.run(go())


def test_settings_that_were_changed_by_hand_are_seen_before_they_are_changed_again(config: str) -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            known = (await client.get("/api/settings")).json()
            with open(config, "a") as file:
                file.write("\n[restore]\nmax_parallel = 7\n")
            change = {"version": known["version"], "restore": {"max_parallel": 3}}
            assert (await client.patch("/api/settings", json=change)).status_code == 409
            again = (await client.get("/api/settings")).json()
            assert (known["restore"]["max_parallel"], again["restore"]["max_parallel"]) == (4, 7)

    asyncio.run(go())


def test_settings_that_would_not_hold_change_nothing(config: str) -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            version = (await client.get("/api/settings")).json()["version"]
            mistakes: list[object] = [
                {"version": version, "retention": {"daily_days": -1}},
                {"version": version, "restore": {"max_parallel": 65}},
                {"version": version, "restore": {"programs": ["/bin/sh"]}},
                {"version": version, "restore": {"environment": ["HOME"]}},
                {"version": version, "scrollback": {"enabled": True}},
                {"retention": {"daily_days": 1}},
            ]
            for wrong in mistakes:
                assert (await client.patch("/api/settings", json=wrong)).status_code == 400, wrong
            with open(config) as file:
                assert file.read() == CONFIG
            with open(config, "a") as file:
                file.write("nonsense\n")
            version = (await client.get("/api/settings")).json()["version"]
            broken = await client.patch("/api/settings", json={"version": version, "retention": {"daily_days": 1}})
            assert broken.status_code == 400
            with open(config) as file:
                assert file.read() == CONFIG + "nonsense\n"

    asyncio.run(go())


def test_a_file_is_made_where_there_is_none(private_home: PrivateHome) -> None:
    async def go() -> str:
        async with api_here() as api, api.client() as client:
            shown = (await client.get("/api/settings")).json()
            assert shown["version"] == "none"
            change = {"version": "none", "restore": {"programs": ["vim", "less"]}}
            changed = (await client.patch("/api/settings", json=change)).json()
            assert changed["restore"]["programs"] == ["vim", "less"]
            return str(shown["file"])

    with open(asyncio.run(go())) as file:
        assert file.read() == '[restore]\nprograms = ["vim", "less"]\n'
    with open(os.path.join(private_home.state, "audit.log"), "rb") as lines:
        (line,) = (msgspec.json.decode(each) for each in lines)
    assert (line["action"], line["target"]) == ("settings", "restore.programs")
