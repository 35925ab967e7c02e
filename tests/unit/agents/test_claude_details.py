from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.agents.claude import Claude
from perdure.agents.claude.transcript import newest_first
from perdure.model.identity import AgentDetails, Identity
from perdure.model.process import Process
from tests.unit.agents.hosts import CWD, HOME, DirectoryHost, jsonl, process

A = "aaaaaaaa-0000-4000-8000-00000000000a"
PATH = f"{HOME}/.claude/projects/-home-dev-work-proj1/{A}.jsonl"
IN_A = Identity(agent="claude", conversation=A)
Line = dict[str, Any]


def user(said: object, **other: object) -> Line:
    return {"type": "user", "cwd": CWD, "message": {"role": "user", "content": said}, **other}


def assistant(
    ident: str, *, model: str = "claude-opus-5-5", used: tuple[int, ...] = (1, 2, 3, 4), **other: object
) -> Line:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    message = {"id": ident, "model": model, "usage": dict(zip(names, used, strict=False)), "content": []}
    return {"type": "assistant", "cwd": CWD, "version": "2.1.325", "message": message, **other}


def describe(host: DirectoryHost, *lines: Line, seen: Process | None = None) -> AgentDetails:
    host.write(PATH, jsonl(*lines))
    return Claude().describe(IN_A, seen or process("claude"), host)


def test_context_is_the_last_answers_input_cache_and_output(host: DirectoryHost) -> None:
    details = describe(host, assistant("m1", used=(9000, 0, 0, 1)), assistant("m2", used=(10, 200, 3000, 40)))
    assert details.context_used == 3250
    assert details.context_limit == 1_000_000
    assert details.context_pct == 0


def test_an_answer_spread_over_lines_is_counted_once_and_by_its_last(host: DirectoryHost) -> None:
    details = describe(host, assistant("m", used=(100, 0, 0, 1)), assistant("m", used=(100, 0, 0, 50)))
    assert details.context_used == 150


def test_sub_agents_errors_and_empty_answers_do_not_count(host: DirectoryHost) -> None:
    details = describe(
        host,
        assistant("m", used=(100, 0, 0, 5)),
        assistant("s", used=(7, 0, 0, 0), isSidechain=True),
        assistant("e", used=(7, 0, 0, 0), isApiErrorMessage=True),
        assistant("n", used=(0, 0, 0, 0), model="<synthetic>"),
        assistant("odd", used=()),
    )
    assert (details.context_used, details.model) == (105, "claude-opus-5-5")


def test_after_compaction_what_is_left_counts_until_the_next_answer(host: DirectoryHost) -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"preTokens": 9, "postTokens": 33}}
    before = assistant("m", used=(900, 0, 0, 5))
    assert describe(host, before, boundary).context_used == 33
    assert describe(host, before, boundary).model == "claude-opus-5-5"
    assert describe(host, before, boundary, assistant("n", used=(40, 0, 0, 2))).context_used == 42


@pytest.mark.parametrize(
    ("model", "argv", "environ", "limit"),
    [
        ("claude-haiku-5-5", (), {}, 1_000_000),
        ("claude-sonnet-5-5-20260901", (), {}, 1_000_000),
        ("claude-opus-5-51", (), {}, None),
        ("claude-opus-4-8", (), {}, None),
        ("claude-opus-4-8[1m]", (), {}, 1_000_000),
        ("claude-opus-4-8", ("--model", "opus[1m]"), {}, 1_000_000),
        ("claude-sonnet-4-6", ("--model", "opus[1m]"), {}, None),
        ("claude-opus-4-8", (), {"ANTHROPIC_MODEL": "opus[1m]"}, 1_000_000),
        ("claude-opus-5-5", (), {"CLAUDE_CODE_DISABLE_1M_CONTEXT": "1"}, None),
        ("some-other-model", (), {}, None),
    ],
)
def test_a_limit_is_given_only_where_it_is_known(
    host: DirectoryHost, model: str, argv: tuple[str, ...], environ: dict[str, str], limit: int | None
) -> None:
    details = describe(host, assistant("m", model=model), seen=process("claude", *argv, environ=environ))
    assert (details.model, details.context_limit) == (model, limit)


def test_the_task_is_the_last_thing_a_person_asked_for(host: DirectoryHost) -> None:
    noise = [
        user("<local-command-stdout>x</local-command-stdout>"),
        user("<command-name>/compact</command-name>"),
        user("secret caveat", isMeta=True),
        user([{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
        user([{"type": "tool_result", "tool_use_id": "t", "content": "out"}]),
        user("out", toolUseResult={}),
        user("summary of it all", isCompactSummary=True),
        user("<task-notification>", origin={"kind": "task-notification"}),
        user("to a sub-agent", isSidechain=True),
    ]
    assert describe(host, user("old"), user([{"type": "text", "text": "new\n one"}]), *noise).task == "new one"
    assert describe(host, user("old"), {"type": "last-prompt", "lastPrompt": "typed"}, *noise).task == "typed"
    assert describe(host, {"type": "last-prompt", "lastPrompt": "typed"}, user("newer"), *noise).task == "newer"
    assert describe(host, *noise).task is None
    long = describe(host, user("word " * 100)).task
    assert long is not None
    assert len(long) <= 200


def test_title_branch_version_and_time_are_the_latest(host: DirectoryHost) -> None:
    details = describe(
        host,
        {"type": "custom-title", "customTitle": "first"},
        assistant("m", gitBranch="main", timestamp="2026-11-15T08:39:31.376Z"),
        {"type": "custom-title", "customTitle": "second"},
        user("hi", gitBranch="fix", timestamp="2026-11-15T08:40:00.000Z"),
    )
    assert (details.title, details.branch, details.version) == ("second", "fix", "2.1.325")
    assert details.last_activity_at == datetime(2026, 11, 15, 8, 40, tzinfo=UTC)
    assert details.transcript == PATH


def test_no_branch_is_none(host: DirectoryHost) -> None:
    assert describe(host, assistant("m", gitBranch="HEAD")).branch is None
    assert describe(host, assistant("m", gitBranch="")).branch is None


def test_before_the_first_prompt_the_registry_and_the_command_line_say_what_there_is(host: DirectoryHost) -> None:
    entry = {"pid": 100, "procStart": "5000", "version": "2.1.197", "name": "mine", "nameSource": "user"}
    host.write(f"{HOME}/.claude/sessions/100.json", msgspec.json.encode(entry))
    details = Claude().describe(IN_A, process("claude", "--model", "haiku"), host)
    assert details == AgentDetails(title="mine", model="haiku", provider="anthropic", version="2.1.197")
    host.write(f"{HOME}/.claude/sessions/100.json", msgspec.json.encode({**entry, "nameSource": "derived"}))
    assert Claude().describe(Identity(agent="claude"), process("claude"), host).title is None


@pytest.mark.parametrize(
    ("environ", "provider"),
    [
        ({}, "anthropic"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "bedrock"),
        ({"CLAUDE_CODE_USE_VERTEX": "true", "ANTHROPIC_BASE_URL": "http://x"}, "vertex"),
        ({"CLAUDE_CODE_USE_FOUNDRY": "1", "CLAUDE_CODE_USE_BEDROCK": "0"}, "foundry"),
        ({"ANTHROPIC_BASE_URL": "https://api.anthropic.com/v1"}, "anthropic"),
        ({"ANTHROPIC_BASE_URL": "https://notanthropic.com"}, "notanthropic.com"),
        ({"ANTHROPIC_BASE_URL": "http://me:hunter2@Gateway.corp:8080/key/abc?t=1"}, "gateway.corp"),
        ({"ANTHROPIC_BASE_URL": "http://[::1]:9/"}, "::1"),
        ({"ANTHROPIC_BASE_URL": "nonsense"}, "anthropic"),
    ],
)
def test_the_provider_is_a_name_and_never_a_secret(host: DirectoryHost, environ: dict[str, str], provider: str) -> None:
    assert Claude().describe(IN_A, process("claude", environ=environ), host).provider == provider


def test_huge_lines_cut_lines_and_foreign_lines_cost_only_themselves(host: DirectoryHost) -> None:
    huge = {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "content": "x" * 300_000}]},
        "toolUseResult": 1,
    }
    bulk = {"type": "api-request-shape", "shape": "y" * 150_000}
    lines = jsonl(user("asked"), assistant("m", used=(5, 0, 0, 1)), huge, bulk, huge)
    host.write(PATH, lines + b'[1]\nnot json\n{"type":"assistant","message":{"id":"cut')
    details = Claude().describe(IN_A, process("claude"), host)
    assert (details.task, details.context_used) == ("asked", 6)


@pytest.mark.parametrize("size", [10, 65_000, 65_536, 70_000, 300_000, 1_100_000])
def test_reading_back_meets_every_line_once_in_any_size_of_file(host: DirectoryHost, size: int) -> None:
    line = len(jsonl({"n": 100_000, "pad": "x" * 80}))
    host.write(PATH, jsonl(*({"n": 100_000 + at, "pad": "x" * 80} for at in range(size // line + 1))))
    numbers = [record["n"] for record in newest_first(PATH, host)]
    assert numbers == list(range(100_000 + size // line, 99_999, -1))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
KEYS = st.sampled_from(
    "type message isSidechain timestamp cwd origin subtype compactMetadata lastPrompt customTitle".split()
)
TYPES = st.sampled_from("user assistant system last-prompt custom-title agent-name cost-state".split())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(KEYS, JSON) | st.fixed_dictionaries({"type": TYPES, "message": JSON, "cwd": JSON})))
def test_lines_of_any_shape_raise_nothing(host: DirectoryHost, lines: list[Line]) -> None:
    describe(host, *lines)
    list(Claude().turns(A, host))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=40)))
def test_random_bytes_raise_nothing(host: DirectoryHost, lines: list[bytes]) -> None:
    host.write(PATH, b"\n".join(lines))
    Claude().describe(IN_A, process("claude"), host)
    assert list(Claude().turns(A, host)) == []


def test_it_began_with_its_first_turn(host: DirectoryHost) -> None:
    mode = {"type": "mode", "timestamp": "2026-11-15T08:00:00Z"}
    first = user("hello", timestamp="2026-11-15T08:31:00.5Z")
    details = describe(host, mode, first, assistant("m", timestamp="2026-11-15T08:32:00Z"))
    assert details.began_at == datetime(2026, 11, 15, 8, 31, 0, 500000, tzinfo=UTC)
    assert details.parent is None
    assert describe(host, {"type": "mode"}).began_at is None


def test_a_branch_names_its_parent_and_began_when_it_was_made(host: DirectoryHost) -> None:
    """What it begins with are copies, which keep the times of their originals."""
    origin = {"sessionId": "cccccccc-0000-4000-8000-00000000000c", "messageUuid": "x"}
    copied = user("hello", timestamp="2026-11-15T08:31:00Z", forkedFrom=origin)
    made = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
    host.created_at = lambda path: made  # type: ignore[method-assign]
    details = describe(host, copied, user("on", timestamp="2026-11-15T09:05:00Z"))
    assert (details.parent, details.began_at) == (origin["sessionId"], made)


def test_what_lies_beside_a_conversation_belongs_to_it(host: DirectoryHost) -> None:
    assert describe(host, user("hello")).companions == ()
    beside = PATH.removesuffix(".jsonl")
    host.write(f"{beside}/subagents/agent-1.jsonl", b"")
    host.write(f"{HOME}/.claude/file-history/{A}/x@v1", b"")
    assert describe(host, user("hello")).companions == (beside, f"{HOME}/.claude/file-history/{A}")
