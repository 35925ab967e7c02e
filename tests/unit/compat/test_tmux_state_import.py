from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.compat.tmux_state import to_json, to_manifest
from perdure.compat.tmux_state_import import from_manifest
from perdure.errors import ImportFailed
from perdure.model.identity import Evidence
from perdure.model.secrets import redact_text
from perdure.model.text import encode
from tests.unit.compat.topologies import SERVER, UUID, as_snapshot

Manifest = dict[str, Any]


def a_manifest() -> Manifest:
    """As the script writes it: `main` and `side` are a group, `BURN` has two panes in one window."""

    def session(id: str, name: str, group: str = "", *, attached: bool = False) -> Manifest:
        return {
            "name": name,
            "windows": 1,
            "created_epoch": 1776000000,
            "created": "2026-04-12T13:20:00+00:00",
            "attached": attached,
            "group": group,
            "id": id,
        }

    def pane(address: str, id: str, **other: object) -> Manifest:
        return {
            "address": address,
            "pane_id": id,
            "pid": 4000,
            "size": "80x24",
            "active": True,
            "command": "bash",
            "title": "box",
            "profile": None,
            "model": None,
            "provider": None,
            "session_id": None,
            "task": None,
            "context_pct": None,
            "is_hermes": False,
        } | other

    return {
        "version": 1,
        "timestamp": "2026-04-13T21:26:03.123456+00:00",
        "timestamp_epoch": 1776115563,
        "hostname": "box",
        "sessions": [session("$2", "BURN", attached=True), session("$0", "main", "g"), session("$1", "side", "g")],
        "panes": [
            pane("BURN:2.0", "%5", size="100x30", active=False),
            pane(
                "BURN:2.3",
                "%6",
                size="50x40",
                command="hermes",
                profile="burn",
                model="m-1",
                provider="nous",
                session_id=UUID,
                task="go on with --token abc",
                context_pct=45,
                is_hermes=True,
            ),
            pane("main:0.0", "%0"),
            pane("side:0.0", "%0"),
        ],
        "summary": {
            "total_sessions": 3,
            "total_panes": 4,
            "hermes_panes": 1,
            "active_pane": "BURN:2.3",
            "active_model": "m-1",
            "active_provider": "nous",
        },
    }


def raw(manifest: Manifest) -> bytes:
    return json.dumps(manifest, indent=2).encode()


def test_sessions_and_panes_come_back_at_their_addresses() -> None:
    capture = from_manifest(raw(a_manifest()), server=SERVER)
    topology = capture.topology
    assert capture.server == SERVER
    assert capture.taken_at == datetime(2026, 4, 13, 21, 26, 3, 123456, tzinfo=UTC)
    assert [(session.id, session.name, session.group) for session in topology.sessions] == [
        ("$2", "BURN", ""),
        ("$0", "main", "g"),
        ("$1", "side", "g"),
    ]
    assert [(window.id, window.name, window.width, window.height) for window in topology.windows] == [
        ("@0", "hermes", 100, 40),
        ("@1", "bash", 80, 24),
    ]
    assert [(link.session, link.window, link.index, link.active) for link in topology.links] == [
        ("$2", "@0", 2, True),
        ("$0", "@1", 0, False),
        ("$1", "@1", 0, False),
    ]
    assert [(pane.id, pane.window, pane.index, pane.active) for pane in topology.panes] == [
        ("%5", "@0", 0, False),
        ("%6", "@0", 3, True),
        ("%0", "@1", 0, True),
    ]
    assert capture.details.sessions["$2"].attached == 1


def test_a_conversation_comes_back_as_a_guess() -> None:
    capture = from_manifest(raw(a_manifest()), server=SERVER)
    shell, hermes, _ = capture.topology.panes
    assert shell.identity is None
    assert hermes.identity is not None
    assert (hermes.identity.agent, hermes.identity.conversation) == ("hermes", UUID)
    assert (hermes.identity.certain, hermes.identity.evidence) == (False, Evidence.GUESS)
    assert hermes.identity.profile == "burn"
    agent = capture.details.panes["%6"].agent
    assert agent is not None
    assert (agent.model, agent.provider, agent.task) == ("m-1", "nous", "go on with --token ***")


def test_the_order_of_the_file_does_not_matter() -> None:
    manifest = a_manifest()
    manifest["panes"].reverse()
    windows = {pane.id: pane.index for pane in from_manifest(raw(manifest), server=SERVER).topology.panes}
    assert windows == {"%0": 0, "%5": 0, "%6": 3}


def set_in(*path: str | int, to: object) -> Callable[[Manifest], None]:
    def change(manifest: Manifest) -> None:
        holder: Any = manifest
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = to

    return change


def drop(*path: str | int) -> Callable[[Manifest], None]:
    def change(manifest: Manifest) -> None:
        holder: Any = manifest
        for step in path[:-1]:
            holder = holder[step]
        del holder[path[-1]]

    return change


# Lines of a_manifest() as indented: a session takes 9 of them and the first begins on 7, a pane takes 16 and
# the first begins on 36.
@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (set_in("version", to=2), 2, "version 1"),
        (set_in("version", to=True), 2, "version 1"),
        (drop("version"), 1, "version 1"),
        (set_in("timestamp", to="yesterday"), 3, "timestamp"),
        (set_in("timestamp", to="2026-04-13T21:26:03"), 3, "timestamp"),
        (set_in("sessions", to=[]), 6, "no session"),
        (set_in("sessions", to={}), 6, "array"),
        (set_in("sessions", 1, "name", to=""), 17, "name"),
        (set_in("sessions", 1, "name", to="BURN"), 16, "before"),
        (set_in("sessions", 1, "id", to="$2"), 16, "before"),
        (set_in("sessions", 1, "id", to="main"), 23, "id"),
        (set_in("sessions", 0, "created_epoch", to=10**15), 10, "created_epoch"),
        (drop("panes", 3), 25, "no pane"),
        (drop("panes", 1, "pid"), 52, "pid"),
        (set_in("panes", 1, "pid", to="4000"), 55, "pid"),
        (set_in("panes", 1, "size", to="wide"), 56, "size"),
        (set_in("panes", 1, "address", to="BURN:2"), 53, "SESSION:WINDOW.PANE"),
        (set_in("panes", 1, "address", to="BURN:2.0"), 53, "before"),
        (set_in("panes", 1, "pane_id", to="%0"), 68, "another place"),
        (set_in("panes", 1, "pane_id", to="%5"), 36, "another place"),
        (set_in("panes", 1, "pane_id", to="-x"), 54, "pane_id"),
        (set_in("panes", 1, "title", to="a\0b"), 59, "title"),
        (set_in("panes", 1, "session_id", to="--yolo"), 63, "session_id"),
        (set_in("panes", 2, "address", to="gone:0.0"), 68, "not in the list"),
        (set_in("summary", to=None), 101, "summary"),
        (drop("summary"), 1, "summary"),
    ],
)
def test_a_mistake_is_named_with_its_line(change: Callable[[Manifest], None], line: int, words: str) -> None:
    manifest = a_manifest()
    change(manifest)
    with pytest.raises(ImportFailed) as failure:
        from_manifest(raw(manifest), server=SERVER)
    assert failure.value.message.startswith(f"Line {line}: ")
    assert words in failure.value.message
    assert failure.value.data == {"line": line}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", 1),
        (b"\0\0\0\0", 1),
        (b'{\n  "version": 1,\n  "time', 3),
        (b'{\n"version": 1,\n"hostname": "\xff"}', 3),
        (b"[1,\n2]", 1),
        (b"null", 1),
        (b"[" * 100_000, 1),
        (b'{"version": ' + b"1" * 5000 + b"}", 1),
    ],
)
def test_a_damaged_file_is_named_with_its_line(content: bytes, line: int) -> None:
    with pytest.raises(ImportFailed, match=rf"\ALine {line}: .*\.\Z"):
        from_manifest(content, server=SERVER)


NAMES = st.text(
    st.one_of(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=":."), st.sampled_from("|'\"$` \\#{}")),
    min_size=1,
    max_size=8,
)


@given(
    names=st.lists(NAMES, min_size=1, max_size=4, unique=True),
    titles=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=4, max_size=4),
)
def test_what_was_imported_is_exported_the_same(names: list[str], titles: list[str]) -> None:
    manifest = a_manifest()
    template_session, template_pane = manifest["sessions"][0], manifest["panes"][0]
    manifest["sessions"] = [template_session | {"name": name, "id": f"${n}"} for n, name in enumerate(names)]
    manifest["panes"] = [
        template_pane | {"address": f"{name}:{n}.0", "pane_id": f"%{n}", "title": title, "active": True}
        for n, (name, title) in enumerate(zip(names, titles, strict=False))
    ]
    manifest["summary"]["active_pane"] = f"{names[-1]}:{len(names) - 1}.0"
    again = to_manifest(as_snapshot(from_manifest(raw(manifest), server=SERVER)), hostname="box")
    in_order = sorted(range(len(names)), key=lambda n: names[n].encode())
    expected = [manifest["panes"][n] for n in in_order]
    for pane in expected:
        pane["title"] = redact_text(pane["title"])
    assert again["panes"] == expected
    assert again["sessions"] == [manifest["sessions"][n] for n in in_order]
    assert json.loads(to_json(again))["summary"]["active_pane"] == manifest["summary"]["active_pane"]


def test_half_a_surrogate_pair_can_be_stored() -> None:
    manifest = a_manifest()
    manifest["panes"][0]["title"] = "\ud800x"
    title = from_manifest(raw(manifest), server=SERVER).topology.panes[0].title
    title.encode()
    assert encode(title) == b"\xed\xa0\x80x"


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with pytest.raises(ImportFailed):
        from_manifest(content, server=SERVER)
