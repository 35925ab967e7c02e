"""Answering what real agents ask over HTTP: the choice that is read off the screen does what it says, and nothing else."""

from __future__ import annotations

import os
import time
from typing import Any

import httpx
import pytest

from tests.conftest import PrivateHome
from tests.integration.api_served import ServedApi, serving
from tests.perdure_cli import Perdure
from tests.real_agents.kit import PATIENCE, Stage

#: Of each agent: what makes it ask, how it is started, and what the answer that allows it is called by its first word.
ASKING: dict[str, tuple[str, tuple[str, ...], dict[str, str], str]] = {
    "claude": ("[[tool=touch asked]] run it", ("--permission-mode", "default"), {}, "Yes"),
    "codex": ("[[tool=touch asked]] [[escalate]] run it", ("--no-daemon",), {}, "Yes"),
    "gemini": ("[[tool=touch asked]] run it", ("--approval-mode", "default"), {}, "Allow"),
    "qwen": ("[[tool=touch asked]] run it", ("--approval-mode", "default"), {}, "Yes"),
    "copilot": ("[[tool=touch asked]] run it", (), {}, "Yes"),
    "cline": ("[[tool=touch asked]] run it", (), {}, "Approve"),
    "goose": ("[[tool=touch asked]] run it", (), {"GOOSE_MODE": "approve"}, "Allow"),
    "aider": ("[[tool=touch asked]] run it", ("--edit-format", "diff"), {}, "Yes"),
}


def ask_until(client: httpx.Client, path: str, is_it: Any) -> Any:
    """Return what is at an address once it is as it should be."""
    deadline = time.monotonic() + PATIENCE
    while not is_it(body := client.get(path).json()):
        assert time.monotonic() < deadline, body
        time.sleep(0.1)
    return body


def allow(api: ServedApi, begins: str) -> dict[str, Any]:
    """Answer the one run that asks with the first choice that begins so; return what it asked."""
    with api.client() as client:
        runs = ask_until(client, "/api/runs?reason=permission", lambda body: body["items"])
        run = runs["items"][0]["id"]
        asked: dict[str, Any] = ask_until(
            client,
            f"/api/runs/{run}/prompt",
            lambda body: any(each["label"].startswith(begins) for each in body["choices"]),
        )
        key = next(each["key"] for each in asked["choices"] if each["label"].startswith(begins))
        other = f"{asked['prompt']} and more"
        refused = client.post(f"/api/runs/{run}/answer", json={"prompt": other, "choice": key})
        assert (refused.status_code, refused.json()["code"]) == (409, "SCREEN_CHANGED")
        given = client.post(f"/api/runs/{run}/answer", json={"prompt": asked["prompt"], "choice": key})
        assert (given.status_code, given.json()["result"]) == (200, "delivered"), given.text
        return asked


@pytest.mark.parametrize("name", ASKING)
def test_what_is_allowed_is_what_was_read(stage: Stage, perdure: Perdure, private_home: PrivateHome, name: str) -> None:
    prompt, args, env, begins = ASKING[name]
    agent = stage.start(name, *args, env=env)
    made = os.path.join(stage.directory("alpha"), "asked")
    with serving(perdure, private_home.state) as api:
        agent.type(prompt)
        asked = allow(api, begins)
        assert "touch asked" in asked["prompt"]
        deadline = time.monotonic() + PATIENCE
        while not os.path.exists(made):
            assert time.monotonic() < deadline, agent.screen()
            time.sleep(0.1)


def test_a_numbered_answer_is_heard_without_enter(stage: Stage, perdure: Perdure, private_home: PrivateHome) -> None:
    agent = stage.start("hermes")
    with serving(perdure, private_home.state) as api:
        agent.type("[[tool=rm -rf /nowhere/at/all]] run it")
        asked = allow(api, "Allow once")
        assert "rm -rf /nowhere/at/all" in asked["prompt"]
        agent.wait_for("STUB-DONE")
