"""The claude adapter against recordings of the real program."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
import pytest

from perdure.agents.claude import Claude
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.process import Process
from tests.contract.agents import samples
from tests.unit.agents.hosts import CWD, HOME, DirectoryHost, Seen, process

NEW, OLD = "claude-code-2.1.325", "claude-code-2.1.197"
COMPACTED = "99f3a7b0-1818-4f10-a351-0358ee18ba5c"
CRASHED = "991d8052-f962-4cb1-8de9-ae620d3138d3"
CLAUDE = Claude()


@pytest.fixture
def host(tmp_path: object) -> DirectoryHost:
    return DirectoryHost(str(tmp_path))


@pytest.mark.parametrize(
    ("version", "name"),
    [(NEW, "registry_idle.json"), (NEW, "registry_waiting.json"), (OLD, "registry_waiting.json")],
)
def test_a_recorded_registry_entry_is_believed_for_its_own_process(
    host: DirectoryHost, version: str, name: str
) -> None:
    entry = register(host, version, name)
    seen = process("claude", pid=entry.pid, ticks=int(entry.procStart))
    first = CLAUDE.identify(Seen(seen), host)[0]
    assert first.conversation == entry.sessionId
    assert (first.evidence, first.certain, first.prompted) == (Evidence.REGISTRY, True, False)


def test_a_stale_entry_is_not_believed_for_the_next_process_with_its_pid(host: DirectoryHost) -> None:
    entry = register(host, NEW, "registry_stale_after_kill9.json")
    reused = process("claude", pid=entry.pid, ticks=int(entry.procStart) + 1)
    (nothing,) = CLAUDE.identify(Seen(reused), host)
    assert nothing.conversation is None


class Entry(msgspec.Struct):
    pid: int
    procStart: str
    sessionId: str


def register(host: DirectoryHost, version: str, name: str) -> Entry:
    raw = samples.read(version, name)
    entry = msgspec.json.decode(raw, type=Entry)
    host.write(f"{HOME}/.claude/sessions/{entry.pid}.json", raw)
    return entry


def test_recorded_hooks_follow_clear_branch_and_resume(host: DirectoryHost) -> None:
    lines = [msgspec.json.decode(line) for line in samples.read(NEW, "hook_events.jsonl").splitlines()]
    payloads = [line["payload"] for line in lines if line["tmux_pane"] == "%3"]
    current = []
    for payload in payloads:
        host.hook_records.insert(0, msgspec.json.encode(payload))
        first = CLAUDE.identify(Seen(process("claude")), host)[0]
        current.append((payload["hook_event_name"], first.conversation and first.conversation[:8]))
    first_ids = [ident for event, ident in current if event != "SessionEnd"]
    assert [ident for at, ident in enumerate(first_ids) if at == 0 or first_ids[at - 1] != ident] == [
        "7da4c9ba",
        "99f3a7b0",
        "10a10923",
        "7da4c9ba",
    ]
    left = [ident for event, ident in current if event == "SessionEnd"]
    # Cleared, branched: gone from the old one, not yet known to be in the next. The last one is the exit itself.
    assert left == [None, None, "7da4c9ba"]


def keep(host: DirectoryHost, name: str, conversation: str, raw: bytes | None = None) -> Identity:
    path = f"{HOME}/.claude/projects/-home-dev-work-proj1/{conversation}.jsonl"
    host.write(path, samples.read(NEW, name) if raw is None else raw)
    return Identity(agent="claude", conversation=conversation)


def test_a_compacted_and_renamed_conversation_is_described(host: DirectoryHost) -> None:
    identity = keep(host, "transcript_clear_subagent_rename_compact.jsonl", COMPACTED)
    details = CLAUDE.describe(identity, process("claude"), host)
    assert details == AgentDetails(
        title="renamed-one",
        task="gamma after compact",
        model="claude-sonnet-5-5",
        provider="anthropic",
        branch="trunk",
        transcript=f"{HOME}/.claude/projects/-home-dev-work-proj1/{COMPACTED}.jsonl",
        version="2.1.325",
        context_used=13862,
        context_limit=1_000_000,
        began_at=datetime(2026, 11, 15, 8, 39, 31, 376000, tzinfo=UTC),
        last_activity_at=details.last_activity_at,
    )
    assert details.last_activity_at is not None
    assert (
        datetime(2026, 11, 15, 8, 39, tzinfo=UTC) < details.last_activity_at < datetime(2026, 11, 15, 8, 41, tzinfo=UTC)
    )


def test_a_branch_is_described_with_what_it_was_branched_from(host: DirectoryHost) -> None:
    branch = "10a10923-37b9-43ee-a0b8-2707af2e4c71"
    identity = keep(host, "transcript_branch_excerpt.jsonl", branch)
    assert CLAUDE.describe(identity, process("claude"), host).parent == COMPACTED


def test_between_compaction_and_the_next_answer_the_summary_is_all_there_is(host: DirectoryHost) -> None:
    raw = samples.read(NEW, "transcript_clear_subagent_rename_compact.jsonl")
    identity = keep(host, "", COMPACTED, raw[: raw.index(b"gamma after compact")])
    assert CLAUDE.describe(identity, process("claude"), host).context_used == 3023


def test_a_conversation_resumed_elsewhere_remembers_where_it_began(host: DirectoryHost) -> None:
    keep(host, "transcript_crash_resume_two_holders.jsonl", CRASHED)
    seen = process("claude", "--resume", CRASHED, cwd="/home/dev/work/oc1")
    first = CLAUDE.identify(Seen(seen), host)[0]
    assert (first.conversation, first.home, first.prompted) == (CRASHED, CWD, True)
    details = CLAUDE.describe(first, seen, host)
    assert (details.task, details.context_used) == ("hello from wrong cwd", 13301)


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("transcript_one_turn.jsonl", {"user": 1, "assistant": 1}),
        ("transcript_branch_excerpt.jsonl", {"system": 1, "user": 2, "assistant": 2}),
        ("transcript_clear_subagent_rename_compact.jsonl", {"user": 3, "assistant": 6, "tool": 1, "system": 5}),
        ("transcript_crash_resume_two_holders.jsonl", {"user": 5, "assistant": 4, "system": 3}),
    ],
)
def test_a_recorded_transcript_yields_its_turns(host: DirectoryHost, name: str, roles: dict[str, int]) -> None:
    keep(host, name, CRASHED)
    assert Counter(turn["role"] for turn in CLAUDE.turns(CRASHED, host)) == roles


def test_a_recorded_sub_agent_is_kept_apart(host: DirectoryHost) -> None:
    keep(host, "transcript_clear_subagent_rename_compact.jsonl", COMPACTED)
    below = f"{HOME}/.claude/projects/-home-dev-work-proj1/{COMPACTED}/subagents"
    for name in samples.names(NEW, "subagents_"):
        host.write(os.path.join(below, name.removeprefix("subagents_")), samples.read(NEW, name))
    turns = list(CLAUDE.turns(COMPACTED, host))
    assert [turn["text"] for turn in turns if turn["agent"] == "a9948b8eee9003e46"] == [
        "hi from parent",
        "STUB-REPLY 9: you said: hi from parent",
    ]
    assert (
        CLAUDE.describe(Identity(agent="claude", conversation=COMPACTED), process("claude"), host).context_used == 13862
    )


@pytest.mark.parametrize("name", samples.names(NEW, "transcript_"))
def test_cut_off_anywhere_nothing_raises(name: str) -> None:
    raw = samples.read(NEW, name)
    cut = Cut()
    identity = Identity(agent="claude", conversation=CRASHED)
    # Only the last line is ever cut, so whole lines before it are tried once each, and places within a line.
    begin = 0
    for line in raw.splitlines(keepends=True):
        for end in (*samples.ends(line), len(line)):
            cut.data = raw[begin : begin + end]
            judge(identity, cut)
        cut.data = raw[:begin]
        judge(identity, cut)
        begin += len(line)


def judge(identity: Identity, host: Cut) -> None:
    seen = process("claude", "--resume", CRASHED)
    CLAUDE.identify(Seen(seen), host)
    CLAUDE.describe(identity, seen, host)
    list(CLAUDE.turns(CRASHED, host))


class Cut(DirectoryHost):
    """One transcript, held in memory so that thousands of cuts are quick."""

    def __init__(self) -> None:
        super().__init__("/nonexistent")
        self.data = b""

    def _is_it(self, path: str) -> bool:
        return path == f"{HOME}/.claude/projects/-home-dev-work-proj1/{CRASHED}.jsonl"

    def read(self, path: str, *, limit: int = 1 << 20, tail: bool = False) -> bytes | None:
        if not self._is_it(path):
            return None
        return self.data[-limit:] if tail else self.data[:limit]

    def names(self, directory: str) -> list[str]:
        return ["-home-dev-work-proj1"] if directory.endswith("projects") else []

    def size(self, path: str) -> int | None:
        return len(self.data) if self._is_it(path) else None

    def modified_at(self, path: str) -> datetime | None:
        return datetime(2026, 11, 15, tzinfo=UTC) if self._is_it(path) else None

    def physical(self, path: str) -> str:
        return path

    def hooks(self, agent: str, process: Process) -> Sequence[tuple[datetime, bytes]]:
        return []
