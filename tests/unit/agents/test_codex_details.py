"""What is known of a Codex thread now."""

from __future__ import annotations

from datetime import UTC, datetime

from perdure.agents.codex import Codex
from perdure.model.identity import AgentDetails, Identity
from tests.contract.agents import samples
from tests.contract.agents.cases.codex import COMPACTED, FORKED, ID, PARENT, SPAWNED, SPAWNING, VERSION, rollout
from tests.unit.agents.hosts import HOME, DirectoryHost, jsonl, process

CODEX = Codex()
THREADS = """
    CREATE TABLE threads (id TEXT PRIMARY KEY, rollout_path TEXT, name TEXT, title TEXT, git_branch TEXT, model TEXT,
        model_provider TEXT, cli_version TEXT);
    CREATE TABLE thread_spawn_edges (parent_thread_id TEXT, child_thread_id TEXT PRIMARY KEY, status TEXT);
"""


def described(host: DirectoryHost, thread: str, **environ: str) -> AgentDetails:
    return CODEX.describe(Identity(agent="codex", conversation=thread), process("codex", environ=environ), host)


def keep(host: DirectoryHost, thread: str, name: str) -> str:
    return host.write(rollout(thread), samples.read(VERSION, name))


def test_a_recorded_thread_is_described(host: DirectoryHost) -> None:
    path = keep(host, ID, "rollout-two-turns-tool.jsonl")
    details = described(host, ID)
    assert details.last_activity_at is not None
    assert details.last_activity_at.date() == datetime(2026, 11, 15, tzinfo=UTC).date()
    assert details == AgentDetails(
        task="approval please [[tool=touch /home/dev/w/x1]] [[escalate]]",
        model="gpt-5-stub",
        provider="stub",
        branch="main",
        transcript=path,
        version="0.166.0",
        context_used=14068,
        context_limit=258400,
        began_at=datetime(2026, 11, 15, 8, 37, 36, 829000, tzinfo=UTC),
        last_activity_at=details.last_activity_at,
    )


def test_the_database_knows_the_name_and_the_branch_of_now(host: DirectoryHost) -> None:
    keep(host, ID, "rollout-two-turns-tool.jsonl")
    row = f"INSERT INTO threads VALUES ('{ID}', NULL, 'Fix the\nbug', 'first prompt', 'topic', 'm', 'p', '0.167.0');"
    host.make_database(f"{HOME}/.codex/state_5.sqlite", THREADS + row)
    details = described(host, ID)
    assert (details.title, details.branch, details.provider, details.version) == (
        "Fix the bug",
        "topic",
        "p",
        "0.167.0",
    )
    assert details.model == "gpt-5-stub"


def test_the_database_may_be_elsewhere(host: DirectoryHost) -> None:
    row = f"INSERT INTO threads (id, title) VALUES ('{ID}', 'first prompt');"
    host.make_database("/srv/fast/state_6.sqlite", THREADS + row)
    assert described(host, ID, CODEX_SQLITE_HOME="/srv/fast").title == "first prompt"


def test_without_a_database_the_list_of_names_is_asked_from_its_end(host: DirectoryHost) -> None:
    names = [{"id": ID, "thread_name": "old"}, {"id": COMPACTED, "thread_name": "x"}, {"id": ID, "thread_name": "new"}]
    host.write(f"{HOME}/.codex/session_index.jsonl", jsonl(*names))
    assert described(host, ID).title == "new"


def test_a_fork_needs_its_parent_s_file_too(host: DirectoryHost) -> None:
    keep(host, FORKED, "rollout-forked.jsonl")
    assert (described(host, FORKED).parent, described(host, FORKED).companions) == (PARENT, ())
    parent = keep(host, PARENT, "rollout-two-turns-tool.jsonl")
    assert described(host, FORKED).companions == (parent,)


def test_sub_agents_belong_to_the_thread(host: DirectoryHost) -> None:
    keep(host, SPAWNING, "rollout-with-sub-agent.jsonl")
    path = keep(host, SPAWNED, "rollout-of-sub-agent.jsonl")
    edge = f"INSERT INTO thread_spawn_edges VALUES ('{SPAWNING}', '{SPAWNED}', 'open');"
    child = f"INSERT INTO threads (id, rollout_path) VALUES ('{SPAWNED}', '{path}');"
    host.make_database(f"{HOME}/.codex/state_5.sqlite", THREADS + edge + child)
    assert described(host, SPAWNING).companions == (path,)


def test_a_failed_turn_does_not_hide_what_was_known(host: DirectoryHost) -> None:
    keep(host, COMPACTED, "rollout-compacted-and-error.jsonl")
    details = described(host, COMPACTED)
    assert details.task == "[[error=400]] boom"
    assert details.context_limit == 258400
    assert details.context_used


def test_archived_and_compressed_threads_are_found(host: DirectoryHost) -> None:
    path = host.write(
        f"{HOME}/.codex/archived_sessions/rollout-2026-11-15T08-37-36-{ID}.jsonl.zst", b"\x28\xb5\x2f\xfd"
    )
    details = described(host, ID)
    assert details.transcript == path
    assert details.last_activity_at is not None
    assert details.model is None


def test_a_thread_in_which_nothing_was_said_has_only_its_beginning(host: DirectoryHost) -> None:
    assert described(host, ID) == AgentDetails(began_at=datetime(2026, 11, 15, 8, 37, 36, 829000, tzinfo=UTC))
    assert CODEX.describe(Identity(agent="codex"), process("codex"), host) == AgentDetails()
