"""Records the hooks of real agents left, in the order they came: after a prompt, after /clear or /new, at an approval.

One file a stage, with all there was in the spool then; each line has the record's name and when it was written.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from perdure.agents import hook_facts
from tests.contract.agents.samples import names, read

STAGES = ("first_prompt", "cleared", "approval")
VERSIONS = {
    "claude": "claude-code-2.1.325",
    "copilot": "copilot-1.0.102",
    "gemini": "gemini-0.61.0",
    "hermes": "hermes-0.19.0",
    "opencode": "opencode-1.18.33",
    "qwen": "qwen-0.15.10",
}
#: Agents whose hooks tell of a new conversation as soon as it is there; the others with its first prompt.
AT_ONCE = ("claude", "gemini", "hermes", "qwen")


def records(agent: str, stage: str) -> list[dict[str, Any]]:
    """Return the recorded records, oldest first."""
    raw = read(VERSIONS[agent], f"hook_records/{stage}.jsonl")
    return [msgspec.json.decode(line) for line in raw.splitlines()]


def conversation(record: dict[str, Any]) -> str | None:
    """Return whom a record is about. Approvals of some agents say it in words of their own."""
    found: str | None = (
        record.get("session_id") or record.get("sessionId") or record.get("extra", {}).get("session_key")
    )
    return found


def events(agent: str) -> set[str]:
    """Return what the agent's hooks are asked to record."""
    texts = "".join(msgspec.json.encode(file).decode() for file in hook_facts()[agent].files("/spool"))
    return set(re.findall(r"f=\$p-(\w+)", texts)) or {"message.updated", "session.status", "permission.asked"}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("agent", VERSIONS)
def test_every_record_is_one_that_was_asked_for_and_names_its_conversation(agent: str, stage: str) -> None:
    found = records(agent, stage)
    assert found
    pids = set()
    for each in found:
        name = re.fullmatch(r"(\d+)-([\w.]+)\.(\d+)\.(\d+)", each["name"])
        assert name
        pid, event, server, pane = name.groups()
        pids.add((pid, server, pane))
        assert event in events(agent)
        assert each["record"]["hook_event_name"] == event
        assert conversation(each["record"])
    assert len(pids) == 1
    assert [each["written"] for each in found] == sorted(each["written"] for each in found)


@pytest.mark.parametrize("agent", VERSIONS)
def test_the_newest_record_follows_the_process_into_its_next_conversation(agent: str) -> None:
    before, after, later = (conversation(records(agent, stage)[-1]["record"]) for stage in STAGES)
    assert later != before
    assert after == (later if agent in AT_ONCE else before)


def test_everybody_who_records_was_recorded() -> None:
    assert {agent for agent, facts in hook_facts().items() if facts.records} == set(VERSIONS)
    for version in VERSIONS.values():
        assert names(f"{version}/hook_records", "") == sorted(f"{stage}.jsonl" for stage in STAGES)
