"""Which conversations of a snapshot cannot be resumed, because what was said in them is nowhere any more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from perdure.agents import roster
from perdure.host.users import current_user
from perdure.model.identity import AgentDetails
from perdure.model.snapshot import Snapshot
from perdure.restore.living import living, lost_now
from tests.builders import a_capture, a_pane, a_process, a_snapshot, an_identity
from tests.unit.agents.hosts import CWD, HOME, DirectoryHost
from tests.unit.restore.test_refresh import a_table

replace = msgspec.structs.replace

HISTORY = f"{CWD}/mine.md"
BEGUN = "\n# aider chat started at 2026-11-16 08:31:02\n\n> Aider v0.86.2  \n"
SAID = f"{BEGUN}\n#### rename it everywhere  \n\nDone.\n"
#: What aider writes when its terminal is gone, if it gets to it before it is ended.
LAST_WORDS = "> [Errno 5] Input/output error  \n"

MESSAGES = f"{HOME}/.cline/data/sessions/1794821340000_abcde/1794821340000_abcde.messages.json"
TOLD = json.dumps({"version": 1, "messages": [{"role": "user", "content": "rename it"}]})


def saved(agent: str, conversation: str, transcript: str, *, prompted: bool = True) -> Snapshot:
    """A snapshot of one agent with something, or nothing, said in its conversation."""
    identity = an_identity(agent=agent, conversation=conversation, prompted=prompted)
    capture = a_capture([a_pane(identity=identity)])
    process = a_process(4000, argv=(agent, "--chat-history-file", transcript), cwd=CWD)
    details = replace(
        capture.details.panes["%0"],
        agent_pid=4000,
        agent=AgentDetails(task="rename it everywhere", transcript=transcript),
        processes=(process,),
    )
    return a_snapshot(replace(capture, details=replace(capture.details, panes={"%0": details})))


def lost(snapshot: Snapshot, host: DirectoryHost) -> Mapping[str, str]:
    """What a plan is told, which is what is said once more when an agent is about to start."""
    me = current_user()
    known = roster({})
    found = living(snapshot, [], a_table, known, host, me, me)[0].lost
    adapter = known.called([snapshot.topology.panes[0].identity.agent])  # type: ignore[union-attr]
    assert found.get("%0", "") == lost_now(snapshot, "%0", adapter, host, me, me)
    return found


@pytest.fixture
def host(tmp_path: Path) -> DirectoryHost:
    return DirectoryHost(str(tmp_path))


AIDER = saved("aider", HISTORY, HISTORY)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "is gone"),
        ("", "is empty"),
        (LAST_WORDS, "has nothing of what was said"),
        (BEGUN, "has nothing of what was said"),
        (BEGUN + LAST_WORDS, "has nothing of what was said"),
    ],
)
def test_a_history_without_what_was_said(host: DirectoryHost, text: str | None, why: str) -> None:
    """Aider would begin anew in it, without a word."""
    if text is not None:
        host.write(HISTORY, text)
    assert lost(AIDER, host) == {"%0": f"the transcript of {HISTORY} {why} ({HISTORY})"}


@pytest.mark.parametrize("text", [SAID, SAID + LAST_WORDS, SAID + BEGUN, BEGUN + SAID])
def test_a_history_with_anything_said(host: DirectoryHost, text: str) -> None:
    host.write(HISTORY, text)
    assert lost(AIDER, host) == {}


@pytest.mark.parametrize("text", [BEGUN, SAID, ""])
def test_one_in_which_nothing_was_ever_said_has_lost_nothing(host: DirectoryHost, text: str) -> None:
    host.write(HISTORY, text)
    assert lost(saved("aider", HISTORY, HISTORY, prompted=False), host) == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [("{}\n", "has nothing of what was said"), ('{"messages": []}', "has nothing of what was said"), ("", "is empty")],
)
def test_messages_without_any(host: DirectoryHost, text: str, why: str) -> None:
    """Cline would open a conversation with nothing in it, without a word."""
    host.write(MESSAGES, text)
    found = lost(saved("cline", "1794821340000_abcde", MESSAGES), host)
    assert found == {"%0": f"the transcript of 1794821340000_abcde {why} ({MESSAGES})"}


@pytest.mark.parametrize("text", [TOLD, "[", TOLD[:20], '{"messages": "x"}'])
def test_messages_that_cannot_be_read_are_the_agent_s_to_judge(host: DirectoryHost, text: str) -> None:
    host.write(MESSAGES, text)
    assert lost(saved("cline", "1794821340000_abcde", MESSAGES), host) == {}
