from __future__ import annotations

import json
from datetime import timedelta, timezone

import msgspec
import pytest

from perdure.compat.tmux_state import to_json, to_manifest
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.snapshot import Snapshot
from perdure.model.text import decode
from perdure.model.topology import Details, PaneDetails, SessionDetails
from tests.unit.compat.topologies import (
    UUID,
    WHEN,
    a_link,
    a_pane,
    a_session,
    a_snapshot,
    a_topology,
    single,
)

HERMES = Identity(agent="hermes", conversation=UUID, evidence=Evidence.REGISTRY, certain=True, profile="burn")


def two_sessions(details: Details) -> Snapshot:
    """`BURN` with a hermes pane beside a shell in window 2, and `dev` with a shell."""
    return a_snapshot(
        a_topology(
            [a_session(4, "dev"), a_session(0, "BURN", group="fire")],
            {"$4": [a_link(4, 1)], "$0": [a_link(0, 0, 2)]},
            [
                a_pane(3, window="@0", index=1, active=False),
                a_pane(1, window="@0", index=0, title="⠋ hermes", command="hermes", identity=HERMES),
                a_pane(9, window="@1"),
            ],
        ),
        details,
    )


def test_the_manifest_has_exactly_the_fields_of_the_original() -> None:
    agent = AgentDetails(task="fix the\n  build", model="m-1", provider="nous", context_used=450, context_limit=1000)
    snapshot = two_sessions(
        Details(
            sessions={"$0": SessionDetails(attached=2), "$4": SessionDetails(activity_at=WHEN)},
            panes={"%1": PaneDetails(title="⠙ hermes", agent=agent)},
        )
    )
    shell = {
        "size": "120x40",
        "command": "bash",
        "title": "box",
        "profile": None,
        "model": None,
        "provider": None,
        "session_id": None,
        "task": None,
        "context_pct": None,
        "is_hermes": False,
    }
    expected = {
        "version": 1,
        "timestamp": "2026-04-13T21:26:03+00:00",
        "timestamp_epoch": 1776115563,
        "hostname": "box",
        "sessions": [
            {
                "name": "BURN",
                "windows": 1,
                "created_epoch": 1776115563,
                "created": "2026-04-13T21:26:03+00:00",
                "attached": True,
                "group": "fire",
                "id": "$0",
            },
            {
                "name": "dev",
                "windows": 1,
                "created_epoch": 1776115563,
                "created": "2026-04-13T21:26:03+00:00",
                "attached": False,
                "group": "",
                "id": "$4",
            },
        ],
        "panes": [
            {
                "address": "BURN:2.0",
                "pane_id": "%1",
                "pid": 4001,
                "size": "120x40",
                "active": True,
                "command": "hermes",
                "title": "⠙ hermes",
                "profile": "burn",
                "model": "m-1",
                "provider": "nous",
                "session_id": UUID,
                "task": "fix the build",
                "context_pct": 45,
                "is_hermes": True,
            },
            {"address": "BURN:2.1", "pane_id": "%3", "pid": 4003, "active": False} | shell,
            {"address": "dev:0.0", "pane_id": "%9", "pid": 4009, "active": True} | shell,
        ],
        "summary": {
            "total_sessions": 2,
            "total_panes": 3,
            "hermes_panes": 1,
            "active_pane": "BURN:2.0",
            "active_model": "m-1",
            "active_provider": "nous",
        },
    }
    manifest = to_manifest(snapshot, hostname="box")
    assert manifest == expected
    first = json.loads(to_json(manifest))["panes"][0]
    assert list(first) == list(expected["panes"][0])  # type: ignore[index]


def test_the_file_is_indented_by_two_in_ascii_without_a_last_newline() -> None:
    text = to_json(to_manifest(single(a_pane(0, title="café")), hostname="box"))
    assert text.startswith('{\n  "version": 1,\n  "timestamp": ')
    assert text.isascii()
    assert text.endswith("}")


def test_the_time_is_when_the_state_was_last_seen_in_utc() -> None:
    later = (WHEN + timedelta(hours=1)).astimezone(timezone(timedelta(hours=5)))
    snapshot = msgspec.structs.replace(single(a_pane(0)), last_seen_at=later)
    manifest = to_manifest(snapshot, hostname="box")
    assert manifest["timestamp"] == "2026-04-13T22:26:03+00:00"
    assert manifest["timestamp_epoch"] == 1776115563 + 3600


def first_pane(snapshot: Snapshot) -> dict[str, object]:
    panes = to_manifest(snapshot, hostname="box")["panes"]
    assert isinstance(panes, list)
    pane = panes[0]
    assert isinstance(pane, dict)
    return pane


@pytest.mark.parametrize(
    "identity",
    [
        Identity(agent="hermes", conversation=UUID, evidence=Evidence.GUESS),
        Identity(agent="hermes", conversation=UUID, evidence=Evidence.REGISTRY, certain=True, prompted=False),
        Identity(agent="hermes"),
    ],
)
def test_an_id_that_would_not_resume_is_not_given(identity: Identity) -> None:
    pane = first_pane(single(a_pane(0, identity=identity)))
    assert (pane["session_id"], pane["is_hermes"], pane["profile"]) == (None, True, "default")


def test_words_on_the_screen_make_no_hermes() -> None:
    claude = Identity(agent="claude", conversation=UUID, evidence=Evidence.REGISTRY, certain=True)
    pane = first_pane(single(a_pane(0, title="hermes gpt", command="hermes", identity=claude)))
    assert (pane["is_hermes"], pane["session_id"], pane["profile"]) == (False, UUID, None)


def test_secrets_stay_out_of_task_and_title() -> None:
    agent = AgentDetails(task=f"use --api-key hunter2 {'x' * 300}")
    snapshot = msgspec.structs.replace(
        single(a_pane(0)), details=Details(panes={"%0": PaneDetails(title="TOKEN=hunter2", agent=agent)})
    )
    pane = first_pane(snapshot)
    assert "hunter2" not in to_json(to_manifest(snapshot, hostname="box"))
    assert len(str(pane["task"])) == 200


def test_bytes_that_are_no_text_do_not_end_the_export() -> None:
    pane = first_pane(single(a_pane(0, title=decode(b"a\xff")), name=decode("\uef81".encode())))
    assert pane["title"] == "a\ufffd"
    assert pane["address"] == "\uef81:0.0"


def active_pane(snapshot: Snapshot) -> object:
    summary = to_manifest(snapshot, hostname="box")["summary"]
    assert isinstance(summary, dict)
    return summary["active_pane"]


def test_without_a_client_the_session_active_last_is_the_one_in_use() -> None:
    sessions = {
        "$0": SessionDetails(activity_at=WHEN),
        "$4": SessionDetails(activity_at=WHEN + timedelta(seconds=1)),
    }
    assert active_pane(two_sessions(Details(sessions=sessions))) == "dev:0.0"
    sessions["$0"] = SessionDetails(attached=1, activity_at=WHEN)
    assert active_pane(two_sessions(Details(sessions=sessions))) == "BURN:2.0"


def test_no_active_window_means_no_active_pane() -> None:
    topology = a_topology([a_session(0, "work")], {"$0": [a_link(0, 0, active=False)]}, [a_pane(0)])
    assert active_pane(a_snapshot(topology)) is None
