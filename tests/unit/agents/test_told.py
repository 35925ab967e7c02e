"""What agents say themselves of what they are doing: by hook records, and by the files they keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents import adapters
from perdure.agents._told import by_hooks, common_sign
from perdure.model.observation import Reading, Source
from perdure.model.process import Process
from perdure.model.run import Confidence
from perdure.ports import AgentAdapter, TellsState
from tests.contract.agents import samples
from tests.unit.agents.hosts import CWD, HOME, STARTED, DirectoryHost, jsonl, process

TELLING = {each.name: each for each in adapters() if isinstance(each, TellsState)}


class Spool(DirectoryHost):
    """A machine with these hook records: (seconds after the start, pid, record)."""

    def __init__(self, root: str, *records: tuple[float, int, Mapping[str, Any] | bytes]) -> None:
        super().__init__(root)
        self.records = records

    def hooks(self, agent: str, process: Process) -> Sequence[tuple[datetime, bytes]]:
        found = [
            (STARTED + timedelta(seconds=at), each if isinstance(each, bytes) else msgspec.json.encode(each))
            for at, pid, each in self.records
            if pid == process.pid
        ]
        return sorted(found, key=lambda each: each[0], reverse=True)


def event(name: str, **more: object) -> dict[str, object]:
    return {"hook_event_name": name, **more}


def told(name: str, host: DirectoryHost, *argv: str, below: Sequence[Process] = ()) -> Sequence[Reading]:
    adapter: AgentAdapter = TELLING[name]
    assert isinstance(adapter, TellsState)
    agent = process(*(argv or (name,)))
    return adapter.told(agent, host, (agent, *below))


def word(readings: Sequence[Reading]) -> str:
    """What the readings say, which is one: `source:rule state(reason) seconds`."""
    (reading,) = readings
    state = f"{reading.state}({reading.reason})" if reading.reason else str(reading.state)
    return f"{reading.cause} {state} {(reading.at - STARTED).total_seconds():g}"


def of_hooks(*records: tuple[float, Mapping[str, Any] | bytes]) -> str:
    host = Spool("/nonexistent", *((at, 100, record) for at, record in records))
    return word(by_hooks("some", [process("some")], host, common_sign))


# -- hooks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "state"),
    [
        (event("UserPromptSubmit"), "busy"),
        (event("PermissionRequest", tool_name="Bash"), "attention(permission)"),
        (event("PermissionRequest", tool_name="Bash", agent_id="a1"), "attention(permission)"),
        (event("PermissionRequest", tool_name="AskUserQuestion"), "attention(question)"),
        (event("Notification", notification_type="permission_prompt"), "attention(permission)"),
        (event("Notification", notification_type="elicitation_dialog"), "attention(question)"),
        (event("Notification", notification_type="ToolPermission", details={"type": "exec"}), "attention(permission)"),
        (
            event("Notification", notification_type="ToolPermission", details={"type": "ask_user"}),
            "attention(question)",
        ),
        (event("Notification", notification_type="idle_prompt"), "idle"),
        (event("Notification", message="Claude needs your permission to use Bash"), "attention(permission)"),
        (event("Notification", message="Claude is waiting for your input"), "idle"),
        (event("Stop"), "idle"),
        (event("SessionStart", source="startup"), "idle"),
        (event("SessionEnd", reason="other"), "None"),
    ],
)
def test_what_an_event_means(record: dict[str, object], state: str) -> None:
    assert of_hooks((5, record)) == f"hook:{record['hook_event_name']} {state} 5"


@pytest.mark.parametrize(
    "record",
    [
        event("Stop", agent_id="a1"),
        event("UserPromptSubmit", agent_id="a1"),
        event("SubagentStop"),
        event("SessionStart", source="compact"),
        event("Notification", notification_type="auth_success"),
        event("SomethingNew"),
    ],
)
def test_what_says_nothing_leaves_what_was_said_before(record: dict[str, object]) -> None:
    assert of_hooks((5, event("UserPromptSubmit")), (9, record)) == "hook:UserPromptSubmit busy 5"


def test_a_record_that_cannot_be_read_makes_what_was_said_before_doubtful() -> None:
    assert of_hooks((5, event("Stop")), (9, b"{cut")) == "hook None 9"


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        # What was typed ahead is sent as soon as the turn ends.
        ("Stop", "UserPromptSubmit", "busy"),
        ("SessionEnd", "SessionStart", "idle"),
        ("SessionStart", "UserPromptSubmit", "busy"),
        ("UserPromptSubmit", "PermissionRequest", "attention(permission)"),
    ],
)
def test_records_of_one_moment_are_in_the_order_in_which_things_happen(first: str, second: str, state: str) -> None:
    for apart in (0.0, 0.03, -0.03):
        assert f" {state} " in of_hooks((5, event(first)), (5 + apart, event(second)))
    assert f"hook:{first} " in of_hooks((5, event(first)), (4.9, event(second)))


def test_where_the_agent_says_when_that_counts_and_not_when_it_was_written() -> None:
    def stamped(name: str, seconds: float) -> dict[str, object]:
        return event(name, timestamp=(STARTED + timedelta(seconds=seconds)).isoformat())

    slow = (7.2, stamped("PermissionRequest", 6)), (7.1, stamped("Stop", 7))
    assert of_hooks(*slow) == "hook:Stop idle 7"
    # One that cannot be right is not taken.
    assert of_hooks((5, stamped("Stop", 500))) == "hook:Stop idle 5"
    assert of_hooks((5, stamped("Stop", -500))) == "hook:Stop idle 5"


def test_records_of_other_processes_and_of_earlier_ones_do_not_count() -> None:
    host = Spool("/nonexistent", (5, 101, event("Stop")), (-5, 100, event("UserPromptSubmit")))
    assert told("qwen", host, "node", "/usr/bin/qwen") == []


@pytest.mark.parametrize(("agent", "name"), [("gemini", "BeforeAgent"), ("qwen", "UserPromptSubmit")])
def test_hooks_of_the_process_it_runs_as_below_itself_count(agent: str, name: str) -> None:
    host = Spool("/nonexistent", (5, 101, event(name)))
    argv = ("node", f"/usr/bin/{agent}")
    worker = process(*argv, pid=101, ppid=100)
    assert word(told(agent, host, *argv, below=[worker])) == f"hook:{name} busy 5"
    # A tool that runs another one does not.
    another = process(*argv, "--model", "other", pid=101, ppid=100)
    assert told(agent, host, *argv, below=[another]) == []


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (event("on_session_start", extra={"platform": "cli"}), "busy"),
        (event("on_session_end", extra={"platform": "cli"}), "idle"),
        (event("on_session_reset", extra={}), "idle"),
        (event("on_session_finalize", extra={}), "None"),
        (event("pre_approval_request", extra={"surface": "cli"}), "attention(permission)"),
        (event("pre_approval_request", extra={"surface": "smart"}), "busy"),
    ],
)
def test_hermes_is_asked_by_its_own_names(record: dict[str, object], said: str) -> None:
    assert f" {said} " in word(told("hermes", Spool("/nonexistent", (5, 100, record))))


def test_hermes_sub_agents_do_not_end_the_turn() -> None:
    ended = event("on_session_end", extra={"platform": "subagent"})
    host = Spool("/nonexistent", (5, 100, event("on_session_start", extra={})), (6, 100, ended))
    assert word(told("hermes", host)) == "hook:on_session_start busy 5"


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (event("message.updated"), "busy"),
        (event("session.status", status="retry"), "busy"),
        (event("session.status", status="idle"), "idle"),
        (event("session.status", status="new"), "None"),
        (event("permission.asked"), "attention(permission)"),
        (event("permission.replied"), "busy"),
        (event("question.asked"), "attention(question)"),
        (event("question.rejected"), "busy"),
    ],
)
def test_opencode_is_asked_by_its_own_names(record: dict[str, object], said: str) -> None:
    assert f" {said} " in word(told("opencode", Spool("/nonexistent", (5, 100, record))))


@given(
    raw=st.binary(max_size=60)
    | st.dictionaries(
        st.sampled_from(["hook_event_name", "timestamp", "extra", "details", "status", "source", "agent_id"]),
        st.none() | st.integers() | st.text(max_size=20) | st.sampled_from(["Stop", "Notification", "session.status"]),
    ).map(msgspec.json.encode)
)
def test_no_record_breaks_anybody(raw: bytes) -> None:
    host = Spool("/nonexistent", (5, 100, raw), (6, 100, event("Stop")))
    for name in TELLING:
        assert len([each for each in told(name, host) if each.source is Source.HOOK]) <= 1


# -- what they keep ---------------------------------------------------------------------------------------------------


def stamp(seconds: float) -> str:
    return (STARTED + timedelta(seconds=seconds)).isoformat()


@pytest.mark.parametrize(
    ("status", "waiting", "said"),
    [
        ("idle", None, "registry:idle idle 7"),
        ("shell", None, "registry:shell idle 7"),
        ("busy", None, "registry:busy busy 7"),
        ("waiting", "permission prompt", "registry:permission prompt attention(permission) 7"),
        ("waiting", "input needed", "registry:input needed attention(question) 7"),
        ("waiting", "dialog open", "registry:dialog open None 7"),
        ("waiting", None, "registry:waiting None 7"),
        ("dancing", None, "registry:dancing None 7"),
    ],
)
def test_claudes_registry(host: DirectoryHost, status: str, waiting: str | None, said: str) -> None:
    entry = msgspec.json.decode(samples.read("claude-code-2.1.325", "registry_waiting.json"))
    dated = (STARTED + timedelta(seconds=7)).timestamp() * 1000
    entry |= {"pid": 100, "procStart": "5000", "status": status, "waitingFor": waiting, "statusUpdatedAt": dated}
    path = host.write(f"{HOME}/.claude/sessions/100.json", msgspec.json.encode(entry))
    assert word(told("claude", host)) == said
    assert told("claude", host)[0].confidence is Confidence.HIGH
    assert list(TELLING["claude"].telling(process("claude"), host)) == [path]


def test_claudes_registry_of_another_process_is_not_its_word(host: DirectoryHost) -> None:
    entry = {"pid": 100, "procStart": "4000", "status": "busy", "statusUpdatedAt": 1}
    host.write(f"{HOME}/.claude/sessions/100.json", msgspec.json.encode(entry))
    assert told("claude", host) == []


def test_claudes_entry_without_a_date_is_of_when_it_was_written(host: DirectoryHost) -> None:
    entry = {"pid": 100, "procStart": "5000", "status": "busy"}
    host.write(f"{HOME}/.claude/sessions/100.json", msgspec.json.encode(entry), at=33)
    assert word(told("claude", host)) == "registry:busy busy 33"


THREAD = "01a1de5a-d3bd-7910-8d04-f387b46263a3"


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([(5, {"type": "task_started"})], "registry:task_started busy 5"),
        ([(5, {"type": "task_started"}), (9, {"type": "task_complete"})], "registry:task_complete idle 9"),
        ([(5, {"type": "task_started"}), (9, {"type": "turn_aborted"})], "registry:turn_aborted idle 9"),
        ([(5, {"type": "task_complete", "error": {"message": "400"}})], "registry:task_complete error 5"),
        ([(-5, {"type": "task_started"})], ""),
        ([], ""),
    ],
)
def test_codex_by_the_rollout_it_holds_open(host: DirectoryHost, events: list[Any], said: str) -> None:
    lock = host.write(f"{HOME}/.codex/thread-writer-locks/{THREAD}.lock", "")
    records = [{"timestamp": stamp(at), "type": "event_msg", "payload": payload} for at, payload in events]
    meta = {"type": "session_meta", "payload": {"id": THREAD, "source": "cli"}}
    rollout = host.write(
        f"{HOME}/.codex/sessions/2026/11/15/rollout-2026-11-15T08-37-36-{THREAD}.jsonl", jsonl(meta, *records)
    )
    assert told("codex", host) == [], "a daemon's thread may be in any pane"
    host.opened[100] = [lock, rollout]
    readings = told("codex", host)
    assert (word(readings) if readings else "") == said
    assert all(each.confidence is Confidence.MEDIUM for each in readings)
    assert rollout in TELLING["codex"].telling(process("codex"), host)


CONVERSATION = "f45e36ee-e4df-4906-ae00-deca542215d2"


def copilots(host: DirectoryHost, *records: tuple[float, str, dict[str, object]]) -> Sequence[Reading]:
    began = int(STARTED.timestamp() * 1000)
    line = f"{stamp(0)} [INFO] Registering foreground session: {CONVERSATION}\n"
    host.write(f"{HOME}/.copilot/logs/process-{began}-100.log", line)
    lines = [{"timestamp": stamp(at), "type": kind, **more} for at, kind, more in records]
    host.write(f"{HOME}/.copilot/session-state/{CONVERSATION}/events.jsonl", jsonl(*lines))
    return told("copilot", host)


ASKED = (7, "permission.requested", {"data": {"requestId": "p1"}})
ANSWERED = (8, "permission.completed", {"data": {"requestId": "p1"}})
TURN: list[Any] = [(5, "user.message", {}), (6, "assistant.turn_start", {})]
RAN: Any = (9, "tool.execution_complete", {})


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (TURN, "assistant.turn_start busy 6"),
        ([*TURN, ASKED], "permission.requested attention(permission) 7"),
        ([*TURN, ASKED, (7.5, "tool.execution_start", {})], "permission.requested attention(permission) 7"),
        ([*TURN, ASKED, ANSWERED], "permission.completed busy 8"),
        ([*TURN, (8, "assistant.message", {}), (9, "assistant.turn_end", {})], "assistant.turn_end idle 9"),
        # The model hears of what a tool did in a turn that begins at once.
        ([*TURN, ASKED, ANSWERED, RAN, (10, "assistant.turn_end", {})], "assistant.turn_end busy 10"),
        ([*TURN, (8, "assistant.turn_end", {"agentId": "a1"})], "assistant.turn_start busy 6"),
        ([*TURN, (8, "assistant.turn_end", {}), (9, "abort", {})], "abort idle 9"),
        ([*TURN, (8, "assistant.turn_end", {}), (9, "session.error", {})], "session.error error 9"),
        ([(5, "session.resume", {})], "session.resume idle 5"),
    ],
)
def test_copilot_by_the_events_of_the_conversation_in_sight(host: DirectoryHost, records: list[Any], said: str) -> None:
    assert word(copilots(host, *records)) == f"registry:{said}"


def test_copilots_events_from_before_it_began_say_nothing(host: DirectoryHost) -> None:
    assert copilots(host, (-9, "assistant.turn_start", {})) == []


def test_a_turn_that_ends_in_a_conversation_copilot_has_left_says_nothing(tmp_path: object) -> None:
    host = Spool(str(tmp_path), (5, 100, event("Stop", session_id="another")), (4, 100, event("UserPromptSubmit")))
    assert word([each for each in copilots(host) if each.source is Source.HOOK]) == "hook:UserPromptSubmit busy 4"


@pytest.mark.parametrize(("status", "said"), [("running", "busy"), ("idle", "idle"), ("pending", "None")])
def test_cline_by_the_session_its_log_names(host: DirectoryHost, status: str, said: str) -> None:
    id = "1794732517843_37uq1"
    entered = {"time": stamp(2), "pid": 100, "event": "session.started", "properties": {"sessionId": id}}
    log = host.write(f"{HOME}/.cline/data/logs/cline.log", jsonl(entered))
    path = host.write(f"{HOME}/.cline/data/sessions/{id}/{id}.json", msgspec.json.encode({"status": status}), at=9)
    assert word(told("cline", host)) == f"registry:{status} {said} 9"
    assert list(TELLING["cline"].telling(process("cline"), host)) == [path, log]
    host.write(f"{HOME}/.cline/data/logs/cline.log", jsonl({**entered, "pid": 99}))
    assert told("cline", host) == []


@pytest.mark.parametrize(
    ("role", "content", "said"),
    [
        ("user", '[{"type":"text","text":"go"}]', "registry:asked busy 9"),
        ("assistant", '[{"type":"text","text":"so be it"}]', "registry:answered idle 9"),
        ("assistant", '[{"type":"toolRequest","id":"1"}]', "registry:asked busy 9"),
        ("user", '[{"type":"toolResponse","id":"1"}]', "registry:asked busy 9"),
        ("assistant", r'[{"type":"text","text":"\"type\":\"toolRequest\""}]', "registry:answered idle 9"),
    ],
)
def test_goose_by_who_has_the_last_word(host: DirectoryHost, role: str, content: str, said: str) -> None:
    log = host.write(
        f"{HOME}/.local/state/goose/logs/cli/2026-11-15/20261115_083000.log",
        jsonl({"fields": {"message": "CLI command executed"}}, {"span": {"session.id": "20261115_1"}}),
    )
    database = f"{HOME}/.local/share/goose/sessions/sessions.db"
    when = (STARTED + timedelta(seconds=9)).strftime("%Y-%m-%d %H:%M:%S")
    quoted = content.replace("'", "''")
    host.make_database(
        database,
        f"""
        CREATE TABLE sessions (id, name, session_type, working_dir, created_at, updated_at, total_tokens, provider_name,
            model_config_json);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id, role, content_json, timestamp);
        INSERT INTO sessions VALUES ('20261115_1', 'n', 'user', '{CWD}', '{when}', '{when}', 1, 'p', '{{}}');
        INSERT INTO messages VALUES (1, '20261115_1', '{role}', '{quoted}', '{when}');
        """,
    )
    assert told("goose", host) == []
    host.opened[100] = [log]
    assert word(told("goose", host)) == said
    assert list(TELLING["goose"].telling(process("goose"), host)) == [log, f"{database}-wal"]


def test_who_has_nothing_says_nothing(host: DirectoryHost) -> None:
    for name, adapter in TELLING.items():
        assert list(told(name, host)) == []
        assert all(path.startswith("/") for path in adapter.telling(process(name), host))
