"""The plugin, run as it is by a JavaScript engine."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import msgspec
import pytest

from perdure.agents.opencode.plugin import plugin
from tests.conftest import PrivateHome

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

#: Sets the plugin up twice, as happens, and hands it events that come in.
DRIVER = """
import { Perdure } from "./perdure.mjs"
import { readFileSync } from "node:fs"
const hooks = [await Perdure({}), await Perdure({})]
for (const event of JSON.parse(readFileSync(0))) await hooks[1].event({ event })
"""


@pytest.fixture
def spool(private_home: PrivateHome) -> str:
    path = os.path.join(private_home.root, 'it\'s a "spool" 🦆')
    os.mkdir(path)
    return path


def play(root: str, spool: str, events: list[Any], **environ: str) -> dict[str, Any]:
    """Return the records after these events, by the names of the events."""
    for name, text in (("perdure.mjs", plugin(spool)), ("driver.mjs", DRIVER)):
        with open(os.path.join(root, name), "w") as file:
            file.write(text)
    done = subprocess.run(
        [NODE or "", "driver.mjs"],
        input=msgspec.json.encode(events),
        capture_output=True,
        cwd=root,
        env={"PATH": os.environ["PATH"], **environ},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    found = {}
    for name in os.listdir(spool) if os.path.isdir(spool) else ():
        with open(os.path.join(spool, name), "rb") as file:
            found[name.partition("-")[2]] = msgspec.json.decode(file.read())
    return found


def prompt(session: str, number: int = 1) -> dict[str, object]:
    """A prompt in a session. Later than any clock says, in the order of the numbers."""
    info = {"role": "user", "sessionID": session, "time": {"created": 9_000_000_000_000 + number}}
    return {"type": "message.updated", "properties": {"sessionID": session, "info": info}}


def status(session: str, kind: str) -> dict[str, object]:
    return {"type": "session.status", "properties": {"sessionID": session, "status": {"type": kind}}}


def child(session: str, parent: str) -> dict[str, object]:
    info = {"id": session, "parentID": parent}
    return {"type": "session.created", "properties": {"sessionID": session, "info": info}}


def test_a_prompt_names_the_conversation(private_home: PrivateHome, spool: str) -> None:
    found = play(private_home.root, spool, [prompt("ses_a"), status("ses_a", "busy"), status("ses_a", "idle")])
    assert {name: record["session_id"] for name, record in found.items()} == {
        "message.updated": "ses_a",
        "session.status": "ses_a",
    }
    assert found["session.status"]["status"] == "idle"
    assert found["message.updated"]["hook_event_name"] == "message.updated"


def test_another_conversation_still_at_work_does_not_take_over(private_home: PrivateHome, spool: str) -> None:
    events = [prompt("ses_a"), prompt("ses_b", 2), status("ses_a", "idle"), prompt("ses_a"), status("ses_b", "busy")]
    found = play(private_home.root, spool, events)
    assert {record["session_id"] for record in found.values()} == {"ses_b"}
    assert found["session.status"]["status"] == "busy"


def test_sub_agents_are_not_the_conversation_but_may_ask(private_home: PrivateHome, spool: str) -> None:
    asked = {"type": "permission.asked", "properties": {"sessionID": "ses_c"}}
    events = [prompt("ses_a"), child("ses_c", "ses_a"), prompt("ses_c", 2), status("ses_c", "busy"), asked]
    found = play(private_home.root, spool, events)
    assert {name: record["session_id"] for name, record in found.items()} == {
        "message.updated": "ses_a",
        "permission.asked": "ses_a",
    }


def test_an_old_prompt_that_is_reported_again_says_nothing(private_home: PrivateHome, spool: str) -> None:
    assert play(private_home.root, spool, [prompt("ses_a", -8_900_000_000_000), status("ses_a", "idle")]) == {}


def test_the_pane_is_in_the_name(private_home: PrivateHome, spool: str) -> None:
    found = play(private_home.root, spool, [prompt("ses_a")], TMUX="/tmp/a,b/x,4242,7", TMUX_PANE="%3")
    assert list(found) == ["message.updated.4242.3"]


@pytest.mark.parametrize("event", [{"type": "message.updated"}, {"type": "x", "properties": None}, {}, None, 1])
def test_events_it_does_not_understand_do_no_harm(private_home: PrivateHome, spool: str, event: object) -> None:
    assert list(play(private_home.root, spool, [event, prompt("ses_a")])) == ["message.updated"]


def test_without_its_directory_it_does_nothing(private_home: PrivateHome, spool: str) -> None:
    os.rmdir(spool)
    assert play(private_home.root, spool, [prompt("ses_a")]) == {}


@pytest.mark.parametrize("kind", ["question.asked", "question.replied", "question.rejected", "permission.replied"])
def test_questions_and_their_answers_are_recorded(private_home: PrivateHome, spool: str, kind: str) -> None:
    asked = [{"type": kind, "properties": {"sessionID": each}} for each in ("ses_b", "ses_c")]
    found = play(private_home.root, spool, [prompt("ses_a"), child("ses_c", "ses_a"), *asked])
    assert found[kind]["session_id"] == "ses_a"
    assert set(found) == {"message.updated", kind}
