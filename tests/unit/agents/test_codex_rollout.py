"""Codex's rollouts: what a person typed, and the turns of a thread with its forebears and sub-agents."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from perdure.agents.codex import Codex
from perdure.agents.codex.home import find_rollout, header, made_at, thread_of
from perdure.agents.codex.rollout import is_mid_turn, last_in, prompt_text
from tests.contract.agents import samples
from tests.contract.agents.cases.codex import DAY, FORKED, ID, KILLED, PARENT, SPAWNED, SPAWNING, VERSION, rollout
from tests.unit.agents.hosts import HOME, DirectoryHost, jsonl

CODEX = Codex()


def message(role: str, text: str, kind: str | None = None) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    more = {"internal_chat_message_metadata_passthrough": {"content_item_kinds": [kind]}} if kind else {}
    return {"type": "response_item", "payload": {"type": "message", "role": role, "content": content, **more}}


def meta(**fields: object) -> dict[str, Any]:
    return {"type": "session_meta", "payload": {"id": ID, **fields}}


@pytest.mark.parametrize(
    ("record", "typed"),
    [
        (message("user", "hello", "user.text"), "hello"),
        (message("user", "<b>bold?</b>", "user.text"), "<b>bold?</b>"),
        (message("user", "<environment_context>", "environments.environment_context"), None),
        (message("user", "hello"), "hello"),
        (message("user", "<environment_context>"), None),
        (message("user", "# AGENTS.md instructions for /x"), None),
        (message("assistant", "hello"), None),
        (message("developer", "hello"), None),
    ],
)
def test_only_what_a_person_typed_is_a_prompt(record: dict[str, Any], typed: str | None) -> None:
    assert prompt_text(record["payload"]) == typed


def test_a_fork_begins_with_what_its_parent_had_said_by_then(host: DirectoryHost) -> None:
    before = jsonl(meta(), message("user", "one"), message("assistant", "two"))
    host.write(rollout(PARENT), before + jsonl(message("user", "after the fork")))
    base = {"thread_id": PARENT, "end_byte_offset": len(before)}
    host.write(rollout(FORKED), jsonl(meta(forked_from_id=PARENT, history_base=base), message("user", "three")))
    assert [turn["text"] for turn in CODEX.turns(FORKED, host)] == ["one", "two", "three"]


def test_a_fork_that_copied_its_history_has_it_once(host: DirectoryHost) -> None:
    host.write(rollout(PARENT), jsonl(meta(), message("user", "one")))
    host.write(rollout(FORKED), jsonl(meta(forked_from_id=PARENT), message("user", "one"), message("user", "two")))
    assert [turn["text"] for turn in CODEX.turns(FORKED, host)] == ["one", "two"]


def test_threads_forked_from_each_other_come_to_an_end(host: DirectoryHost) -> None:
    for thread, other in ((PARENT, FORKED), (FORKED, PARENT)):
        base = {"thread_id": other, "end_byte_offset": 9999}
        host.write(rollout(thread), jsonl(meta(history_base=base), message("user", "x")))
    assert len(list(CODEX.turns(FORKED, host))) < 100


def test_sub_agents_are_kept_apart(host: DirectoryHost) -> None:
    host.write(rollout(SPAWNING), samples.read(VERSION, "rollout-with-sub-agent.jsonl"))
    assert {turn["agent"] for turn in CODEX.turns(SPAWNING, host)} == {None}
    host.write(rollout(SPAWNED), samples.read(VERSION, "rollout-of-sub-agent.jsonl"))
    assert Counter(turn["agent"] for turn in CODEX.turns(SPAWNING, host)) == {None: 8, SPAWNED: 2}


def test_an_answer_has_the_tokens_of_its_request(host: DirectoryHost) -> None:
    host.write(rollout(ID), samples.read(VERSION, "rollout-two-turns-tool.jsonl"))
    tokens = [(turn["role"], turn["tokens"]) for turn in CODEX.turns(ID, host)][:6]
    assert tokens == [
        ("user", None),
        ("assistant", 13457),
        ("user", None),
        ("assistant", 13577),
        ("tool", None),
        ("assistant", 13731),
    ]


def test_the_first_line_is_read_whole_however_long(host: DirectoryHost) -> None:
    path = host.write(rollout(ID), jsonl(meta(base_instructions={"text": "x" * 200_000}, cwd="/srv/a")))
    assert header(path, host)["cwd"] == "/srv/a"
    assert last_in(path, host) == "/srv/a"


def test_a_killed_turn_is_still_open(host: DirectoryHost) -> None:
    path = host.write(rollout(KILLED), samples.read(VERSION, "rollout-tail-killed-midturn.jsonl"))
    assert is_mid_turn(path, host)
    ended = host.write(rollout(ID), samples.read(VERSION, "rollout-two-turns-tool.jsonl"))
    assert not is_mid_turn(ended, host)
    host.write(rollout(ID), jsonl({"type": "event_msg", "payload": {"type": "turn_aborted"}}))
    assert not is_mid_turn(ended, host)


@pytest.mark.parametrize("day", ["14", "15", "16"])
def test_a_rollout_is_found_by_the_day_on_the_wall(host: DirectoryHost, day: str) -> None:
    path = f"{HOME}/.codex/sessions/2026/11/{day}/rollout-2026-11-{day}T23-59-59-{ID}.jsonl"
    host.write(path, b"")
    assert find_rollout(f"{HOME}/.codex", ID, host) == path
    assert find_rollout(f"{HOME}/.codex", PARENT, host) is None


def test_names_tell_threads_and_their_beginning() -> None:
    assert thread_of(f"{DAY}/rollout-2026-11-15T08-37-36-{ID}.jsonl") == ID
    assert thread_of(f"{DAY}/rollout-2026-11-15T08-37-36-{ID}.jsonl.zst") == ID
    assert thread_of(f"{DAY}/rollout-2026-11-15T08-37-36-{ID}.txt") is None
    assert thread_of(f"{HOME}/{ID}.jsonl") is None
    assert made_at("not hexadecimal") is None
    assert find_rollout(f"{HOME}/.codex", "ffffffff-ffff-7fff-8fff-ffffffffffff", DirectoryHost("/nonexistent")) is None


def test_a_compressed_rollout_has_no_turns_to_read(host: DirectoryHost) -> None:
    path = host.write(f"{rollout(ID)}.zst", b"\x28\xb5\x2f\xfd")
    assert list(CODEX.turns(ID, host)) == []
    assert list(CODEX.turns(ID, host, path)) == []
    assert list(CODEX.turns("../../etc", host)) == []
