from __future__ import annotations

from perdure.agents.claude import Claude
from tests.unit.agents.hosts import HOME, DirectoryHost, jsonl

A = "aaaaaaaa-0000-4000-8000-00000000000a"
FOLDER = "projects/-home-dev-work-proj1"


def message(ident: str, block: dict[str, object], tokens: int) -> dict[str, object]:
    usage = {"input_tokens": tokens}
    return {"type": "assistant", "message": {"id": ident, "model": "m", "content": [block], "usage": usage}}


LINES: list[dict[str, object]] = [
    {"type": "user", "message": {"content": "list the files"}, "timestamp": "2026-11-15T08:00:00Z"},
    message("m1", {"type": "text", "text": "I will."}, 10),
    message("m1", {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}, 12),
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a b"}]}},
    message("m2", {"type": "text", "text": "Two files."}, 20),
    {"type": "user", "isMeta": True, "message": {"content": "<system-reminder>x"}},
    {"type": "assistant", "isApiErrorMessage": True, "message": {"content": [{"type": "text", "text": "API Error"}]}},
    {"type": "system", "subtype": "turn_duration"},
]


def turns(host: DirectoryHost) -> list[tuple[object, ...]]:
    return [tuple(turn[key] for key in ("role", "text", "tool", "tokens", "agent")) for turn in Claude().turns(A, host)]


def test_turns_in_order_with_each_answers_tokens_once(host: DirectoryHost) -> None:
    host.write(f"{HOME}/.claude/{FOLDER}/{A}.jsonl", jsonl(*LINES))
    assert turns(host) == [
        ("user", "list the files", None, None, None),
        ("assistant", "I will.", None, None, None),
        ("assistant", "", "Bash", 12, None),
        ("tool", "a b", "Bash", None, None),
        ("assistant", "Two files.", None, 20, None),
        ("system", "API Error", None, None, None),
    ]


def test_sub_agents_come_after_and_say_who_they_are(host: DirectoryHost) -> None:
    host.write(f"{HOME}/.claude/{FOLDER}/{A}.jsonl", jsonl(LINES[0]))
    said = {"type": "user", "isSidechain": True, "agentId": "a1", "message": {"content": "go"}}
    host.write(f"{HOME}/.claude/{FOLDER}/{A}/subagents/agent-a1.jsonl", jsonl(said))
    host.write(f"{HOME}/.claude/{FOLDER}/{A}/subagents/agent-a1.meta.json", b"{}")
    assert turns(host) == [
        ("user", "list the files", None, None, None),
        ("user", "go", None, None, "a1"),
    ]


def test_another_config_home_is_searched_too(host: DirectoryHost) -> None:
    host.write(f"{HOME}/.claude-work/{FOLDER}/{A}.jsonl", jsonl(LINES[0]))
    assert len(turns(host)) == 1


def test_what_does_not_exist_has_no_turns(host: DirectoryHost) -> None:
    assert turns(host) == []
    assert list(Claude().turns("../../etc/passwd", host)) == []
