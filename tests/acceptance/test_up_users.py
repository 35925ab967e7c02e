"""One daemon of root's for everybody: each sees what is theirs, and nobody else's."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import AbstractContextManager
from typing import Any

import httpx
import pytest

from perdure.daemon.protocol import socket_path
from perdure.model.event import EventKind
from tests.acceptance import accounts
from tests.acceptance.guests import Guest, Machine, interpreter
from tests.acceptance.kit import NOBODY, configure, run_unprivileged, sentence
from tests.acceptance.test_events import talk
from tests.acceptance.watching import Watching, watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import PATIENCE, TmuxServer

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root watches everybody's servers")

#: Connects, says one line and prints the first that comes back.
_ASK = """
import socket, sys
with socket.socket(socket.AF_UNIX) as asking:
    asking.connect(sys.argv[1])
    asking.sendall(sys.argv[2].encode() + b"\\n")
    print(asking.makefile().readline(), end="")
"""


@pytest.fixture
def machine(private_home: PrivateHome) -> Machine:
    """A machine whose guests are nobody's but the test's."""
    configure(private_home, f"roster = '{private_home.root}/no-roster'\n")
    return Machine(private_home)


def _environ(machine: Machine) -> dict[str, str]:
    """What lets the daemon, and whatever it starts, know the guests' accounts."""
    folder = os.path.join(machine.places.root, "site")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "sitecustomize.py"), "w") as file:
        file.write(
            f"import importlib.util as util\nspec = util.spec_from_file_location('accounts', {accounts.__file__!r})\n"
        )
        file.write("found = util.module_from_spec(spec)\nspec.loader.exec_module(found)\nfound.add_accounts()\n")
    return {accounts.PASSWD: os.path.join(machine.places.root, "passwd"), "PYTHONPATH": folder}


def _watching(machine: Machine, *args: str) -> AbstractContextManager[Watching]:
    return watching(Perdure(), "--all-users", *args, env=_environ(machine))


def _open_doors(machine: Machine) -> None:
    """Let others reach the socket, as whoever puts it elsewhere may: what they are told then is up to the daemon."""
    os.chmod(machine.places.state, 0o711)
    os.chmod(socket_path(machine.places.state), 0o666)


def _asked_by(machine: Machine, uid: int, **request: object) -> Any:
    done = subprocess.run(
        [interpreter(uid), "-I", "-c", _ASK, socket_path(machine.places.state), json.dumps({"id": 1, **request})],
        user=uid,
        group=uid,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _await_both(watcher: Watching) -> None:
    for target in ("anns:0.0", "bobs:0.0"):
        watcher.await_state(target, "idle")


def _guests(machine: Machine) -> tuple[Guest, Guest]:
    ann, bob = machine.guest("ann"), machine.guest("bob")
    ann.tmux("new-session", "-d", "-s", "anns", "-n", "one", "/bin/sh")
    bob.tmux("new-session", "-d", "-s", "bobs", "-n", "one", "/bin/sh")
    return ann, bob


def test_everybody_is_told_what_is_theirs(machine: Machine, tmux: TmuxServer) -> None:
    ann, bob = _guests(machine)
    tmux.run("new-session", "-d", "-s", "roots", "-n", "one", "/bin/sh")
    with _watching(machine) as watcher:
        _await_both(watcher)
        owners = {run.place.session: run.server.user for run in watcher.runs()}
        assert owners == {"anns": "ann", "bobs": "bob", "roots": "root"}
        ids = {run.place.session: run.id for run in watcher.runs()}

        _open_doors(machine)
        talk(1)
        assert watcher.events(0, EventKind.CHAT_SAID)
        for guest, own, other in ((ann, "anns", "bobs"), (bob, "bobs", "anns")):
            answer = _asked_by(machine, guest.uid, do="runs", over=True)
            assert [run["place"]["session"] for run in answer["ok"]] == [own]
            assert _asked_by(machine, guest.uid, do="run", run=ids[own])["ok"]["id"] == ids[own]
            for request in ({"do": "run"}, {"do": "seen"}, {"do": "wait", "until": ["idle"], "timeout": 1}):
                answer = _asked_by(machine, guest.uid, **request, run=ids[other])
                assert answer["error"]["exit_code"] == 3, answer
            events = _asked_by(machine, guest.uid, do="events", limit=5000)["ok"]["events"]
            assert {each["event"]["run"] for each in events if each["event"].get("run")} == {ids[own]}
            servers = {each["event"]["server"] for each in events if each["event"].get("server")}
            assert all(f"/{guest.uid}/" in server for server in servers)
            # Chats are whose store they are in.
            assert not [each for each in events if each["event"]["kind"].startswith("chat_")]


def test_everybody_sees_theirs_over_http(machine: Machine, tmux: TmuxServer) -> None:
    ann, bob = _guests(machine)
    tmux.run("new-session", "-d", "-s", "roots", "-n", "one", "/bin/sh")
    with _watching(machine, "--port", "0") as watcher:
        _await_both(watcher)
        ids = {run.place.session: run.id for run in watcher.runs()}
        talk(1)
        own = machine.ok("open", "--print").out.strip()
        url = own.partition("/login")[0]
        with httpx.Client(base_url=url, timeout=PATIENCE) as root:
            assert root.get(own).status_code == 303
            assert {each["session"] for each in root.get("/api/runs").json()["items"]} == {"anns", "bobs", "roots"}
            assert root.get("/api/chats").json()["items"]
        token = machine.ok("token", "new", "--user", "ann", "--name", "hers").out.strip()
        with httpx.Client(base_url=url, timeout=PATIENCE, headers={"authorization": f"Bearer {token}"}) as hers:
            assert hers.get("/api/me").json()["user"] == "ann"
            assert [each["session"] for each in hers.get("/api/runs").json()["items"]] == ["anns"]
            for path in ("", "/screen", "/timeline", "/wait?until=idle&timeout=0"):
                assert hers.get(f"/api/runs/{ids['bobs']}{path}").status_code == 404
            assert hers.post(f"/api/runs/{ids['bobs']}/input", json={"text": "x"}).status_code == 404
            events = hers.get("/api/events", params={"limit": 1000}).json()["items"]
            assert {each["run"] for each in events if each["run"]} == {ids["anns"]}
            assert hers.get("/api/chats").json().get("items", []) == []
            told = hers.post(f"/api/runs/{ids['anns']}/input", json={"text": "echo it was her"}).json()
            assert told["result"] == "delivered", told
            made = hers.post("/api/runs", json={"name": "more", "socket": ann.socket}).json()
            assert made["result"] == "ready", made
            for place in (bob.socket, tmux.socket, f"{machine.places.root}/new.sock"):
                other = hers.post("/api/runs", json={"name": "theirs", "socket": place})
                assert (other.status_code, other.json()["code"]) == (403, "REFUSED")
            _sees_nothing_of_others(hers, machine, ann, bob)
        link = machine.ok("open", "--print", "--user", "bob").out.strip()
        with httpx.Client(base_url=url, timeout=PATIENCE) as his:
            assert his.get(link).status_code == 303
            assert [each["session"] for each in his.get("/api/runs").json()["items"]] == ["bobs"]
    assert "it was her" in ann.shown("anns")
    assert {ann.uid} == {os.stat(f"/proc/{pid}").st_uid for pid in ann.processes()}
    assert "more" not in bob.tmux("list-sessions")


def _sees_nothing_of_others(hers: httpx.Client, machine: Machine, ann: Guest, bob: Guest) -> None:
    """Whatever a guest asks for over HTTP, nothing of anybody else's, and nothing of root's, is in it or is done to it."""
    saved = machine.ok("history", "--json").json["snapshots"]
    for each in saved:
        others = hers.get(f"/api/snapshots/{each['id']}")
        assert others.status_code == (200 if each["user"] == "ann" else 404), each
    for path in ("/api/snapshots", "/api/conversations", "/api/hosts", "/api/restores", "/api/jobs", "/api/settings"):
        told = hers.get(path)
        assert told.status_code in (200, 403), (path, told.text)
        assert not {"bobs", "roots", bob.socket, bob.home} & set(_texts(told.json())), (path, told.text)
    canary = os.path.join(machine.places.root, "canary")
    for refused in (
        hers.post("/api/jobs", json={"argv": ["touch", canary]}),
        hers.post("/api/jobs", json={"shell": f"touch {canary}"}),
        hers.patch("/api/settings", json={"live": {"restore": True}}),
        hers.post("/api/restores", json={"socket": bob.socket}),
    ):
        assert refused.status_code in (400, 403, 404), (refused.request.url, refused.text)
    assert not os.path.exists(canary)


def _texts(body: Any) -> list[str]:
    """Every text in an answer."""
    if isinstance(body, dict):
        return [text for each in (*body, *body.values()) for text in _texts(each)]
    if isinstance(body, list):
        return [text for each in body for text in _texts(each)]
    return [body] if isinstance(body, str) else []


def test_a_guest_who_comes_later_is_noticed(machine: Machine) -> None:
    with _watching(machine) as watcher:
        assert watcher.said["servers"] == 0
        ann, _ = _guests(machine)
        watcher.await_run("anns:0.0")
        ann.tmux("new-window", "-d", "-t", "anns", "-n", "two", "/bin/sh")
        watcher.await_run("anns:1.0")
        ann.kill9()
        died = watcher.await_event(EventKind.SERVER_DIED).event
        assert f"/{ann.uid}/" in (died.server or "")
        assert died.data["cause"] == "signal"
        watcher.await_run("bobs:0.0")


def test_guests_agents_are_known_and_brought_back_as_theirs(machine: Machine, private_home: PrivateHome) -> None:
    configure(private_home, f"roster = '{private_home.root}/no-roster'\n[live]\nrestore = true\n")
    ann = machine.guest("ann")
    ann.work("anns", "--session", "11111111-2222-4333-8444-555555555555")
    with _watching(machine) as watcher:
        before = watcher.await_run(
            "anns:1.0", lambda run: run.status.word in ("idle", "attention(done)") and run.agent == "simulant"
        )
        assert before.identity is not None
        assert before.identity.conversation == "11111111-2222-4333-8444-555555555555"
        ann.kill9()
        done = watcher.await_event(EventKind.RESTORED).event
        assert done.data["exit_code"] == 0, done.data
        after = watcher.await_run("anns:1.0", lambda run: run.program is not None and run.status.word == "idle")
        assert (after.id, after.identity and after.identity.conversation) == (
            before.id,
            before.identity.conversation,
        )
        assert os.stat(ann.socket).st_uid == ann.uid


def test_without_the_wish_only_roots_own_are_watched_and_others_are_not_taken_for_ended(machine: Machine) -> None:
    _guests(machine)
    with _watching(machine) as watcher:
        _await_both(watcher)
    with watching(Perdure(), env=_environ(machine)) as watcher:
        assert watcher.said["servers"] == 0
        assert watcher.events(0, EventKind.RUN_DELETED) == []
    with _watching(machine) as watcher:
        _await_both(watcher)
        assert watcher.events(0, EventKind.RUN_DELETED) == []


def test_nobody_but_root_may_watch_everybody(private_home: PrivateHome) -> None:
    os.makedirs(private_home.state, exist_ok=True)
    os.chmod(private_home.root, 0o711)
    os.chown(private_home.state, NOBODY, NOBODY)
    ran = run_unprivileged("up", "--all-users")
    assert ran.code == 6
    sentence(ran)
