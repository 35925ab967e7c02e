"""Qwen Code: which conversation a process is in, what is known of it, and how it comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from perdure.agents.qwen import Qwen
from perdure.agents.qwen.store import slug
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Command
from tests.unit.agents.hosts import CWD, HOME, LATER, LATEST, DirectoryHost, Seen, jsonl, process

BIN = "/home/dev/npm/node_modules/.bin/qwen"
A, B = "aaaaaaaa-1111-4222-8333-444444444444", "bbbbbbbb-1111-4222-8333-444444444444"
OWN = "projects/-home-dev-work-proj1/chats"
HOMES = f"{HOME}/.qwen"
qwen = Qwen()


def line(uuid: str, parent: str | None, kind: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "parentUuid": parent,
        "timestamp": "2026-11-15T08:31:00.000Z",
        "type": kind,
        "cwd": CWD,
        "version": "0.15.10",
        "message": {"parts": [{"text": text}]},
        **more,
    }


def write(host: DirectoryHost, id: str, *records: Mapping[str, Any], at: float = LATER, home: str = HOMES) -> str:
    lines = records or (line("1", None, "user", "hello"), line("2", "1", "assistant", "hi", model="q"))
    return host.write(f"{home}/{OWN}/{id}.jsonl", jsonl(*lines), at=at)


def log(host: DirectoryHost, id: str, *, at: float = LATER, cwd: str | None = CWD) -> None:
    place = f"[DEBUG] [SKILL_MANAGER] Loading project level skills from: {cwd}/.qwen/skills\n" if cwd else "cleared\n"
    host.write(f"{HOMES}/debug/{id}.txt", place, at=at)


def launched(*argv: str, **more: Any) -> Seen:
    child = process("/usr/bin/node", BIN, *argv, pid=101, ppid=100, **more)
    return Seen(process("node", BIN, *argv, **more), child)


def claims(seen: Seen, host: DirectoryHost) -> list[tuple[str | None, Evidence | None, bool]]:
    return [(each.conversation, each.evidence, each.certain) for each in qwen.identify(seen, host)]


# -- which conversation -----------------------------------------------------------------------------------------------


def test_hooks_follow_the_conversation(host: DirectoryHost) -> None:
    write(host, A)
    left = {"session_id": A, "hook_event_name": "SessionEnd", "reason": "clear"}
    begun = {"session_id": B, "hook_event_name": "SessionStart", "source": "clear"}
    host.hook_records = [msgspec.json.encode(begun), msgspec.json.encode(left)]
    found = qwen.identify(launched("--session-id", A), host)[0]
    assert (found.conversation, found.evidence, found.certain) == (B, Evidence.HOOK, True)
    assert (found.prompted, found.taken) == (False, False)


def test_a_log_of_another_conversation_speaks_against_the_command_line(host: DirectoryHost) -> None:
    write(host, A)
    log(host, A)
    assert claims(launched("--session-id", A), host) == [(A, Evidence.ARGV, True), (None, None, False)]
    log(host, B, at=LATEST, cwd=None)
    assert claims(launched("--session-id", A), host)[1] == (B, Evidence.GUESS, False)


def test_one_that_was_never_prompted_is_guessed_by_its_log(host: DirectoryHost) -> None:
    log(host, A)
    log(host, B, at=-60)
    found = qwen.identify(launched(), host)
    assert [(each.conversation, each.evidence, each.prompted) for each in found] == [
        (A, Evidence.GUESS, False),
        (None, None, None),
    ]


def test_logs_and_transcripts_of_other_projects_are_not_its_own(host: DirectoryHost) -> None:
    log(host, A, cwd="/home/dev/other")
    write(host, B, line("1", None, "user", "x", cwd="/home/dev/work.proj1"))
    host.write(f"{HOMES}/projects/-srv/chats/{A[:-1]}5.jsonl", jsonl(line("1", None, "user", "x", cwd="/srv")))
    log(host, A[:-1] + "5", cwd=None)
    assert claims(launched(), host) == [(None, None, False)]


def test_an_older_conversation_taken_up_again_is_seen_by_its_log(host: DirectoryHost) -> None:
    write(host, A, at=LATER)
    write(host, B, at=-900)
    log(host, B, at=LATEST, cwd=None)
    assert claims(launched(), host)[:2] == [(B, Evidence.GUESS, False), (A, Evidence.GUESS, False)]


@pytest.mark.parametrize("words", [("--continue",), ("-c",), ("--resume",), ("--resume", "a title")])
def test_what_is_continued_is_guessed_before_it_is_written_to(host: DirectoryHost, words: tuple[str, ...]) -> None:
    write(host, A, at=-600)
    write(host, B, at=-60)
    assert claims(launched(*words), host)[0] == (B, Evidence.GUESS, False)
    assert claims(launched(), host) == [(None, None, False)]


def test_a_resumed_one_without_a_transcript_is_doubtful(host: DirectoryHost) -> None:
    host.write(f"{HOMES}/{OWN}/{A}.jsonl", b"")
    assert claims(launched("--resume", A), host)[0] == (A, Evidence.ARGV, False)


@pytest.mark.parametrize(
    ("environ", "home", "profile"),
    [
        ({"QWEN_HOME": "/srv/qw"}, "/srv/qw", "qw"),
        ({"QWEN_HOME": "/srv/qw", "QWEN_RUNTIME_DIR": "/srv/run"}, "/srv/run", "run"),
        ({"QWEN_HOME": "~/second"}, f"{HOME}/second", "second"),
        ({"QWEN_RUNTIME_DIR": "rel"}, f"{CWD}/rel", "rel"),
        ({"QWEN_HOME": f"{HOME}/.qwen"}, HOMES, None),
    ],
)
def test_a_home_of_its_own_is_a_profile(
    host: DirectoryHost, environ: dict[str, str], home: str, profile: str | None
) -> None:
    write(host, A, home=home)
    found = qwen.identify(launched(environ=environ), host)[0]
    assert (found.conversation, found.profile) == (A, profile)


@pytest.mark.parametrize(
    ("chosen", "home"), [("/srv/run", "/srv/run"), ("~/run", f"{HOME}/run"), ("run", f"{CWD}/run")]
)
def test_settings_may_keep_conversations_elsewhere(host: DirectoryHost, chosen: str, home: str) -> None:
    host.write(f"{HOMES}/settings.json", msgspec.json.encode({"advanced": {"runtimeOutputDir": chosen}}))
    write(host, A, home=home)
    assert claims(launched(), host)[0] == (A, Evidence.GUESS, False)


def test_a_project_s_directory_is_named_as_javascript_counts() -> None:
    assert slug("/home/dev/my project_1") == "-home-dev-my-project-1"
    assert slug("/ä/😀x") == "-----x"


def test_one_that_was_started_elsewhere_is_resumed_there(host: DirectoryHost) -> None:
    host.write(f"{HOMES}/projects/-srv-app/chats/{A}.jsonl", jsonl(line("1", None, "user", "x", cwd="/srv/app")))
    found = qwen.identify(launched("--resume", A), host)[0]
    assert found.home == "/srv/app"
    command = qwen.resume(found, Command(argv=("node", BIN, "--resume", A), cwd=CWD))
    assert command == Command(argv=("node", BIN, "--resume", A), cwd="/srv/app")


# -- what is known of it ----------------------------------------------------------------------------------------------


def test_the_end_of_the_transcript_describes_it(host: DirectoryHost) -> None:
    usage = {"promptTokenCount": 90, "totalTokenCount": 100}
    fork = {"forkedFrom": {"sessionId": B, "messageUuid": "1"}}
    event = {"uiEvent": {"event.name": "qwen-code.api_response", "auth_type": "openai"}}
    path = write(
        host,
        A,
        line("1", None, "user", "first", **fork),
        line("2", "1", "assistant", "one", model="q", usageMetadata=usage, contextWindowSize=262144, **fork),
        line("3", "2", "system", "", subtype="custom_title", systemPayload={"customTitle": "My title"}),
        line("4", "3", "user", "a notice", subtype="notification"),
        line("5", "4", "user", "second", gitBranch="trunk"),
        line("6", "5", "system", "", subtype="ui_telemetry", systemPayload=event),
    )
    seen = process("node", BIN, environ={"OPENAI_BASE_URL": "https://models.example/v1"})
    found = qwen.describe(Identity(agent="qwen", conversation=A), seen, host)
    assert (found.title, found.task, found.model, found.branch) == ("My title", "second", "q", "trunk")
    assert (found.provider, found.version, found.parent) == ("models.example", "0.15.10", B)
    assert (found.context_used, found.context_limit) == (100, 262144)
    assert found.transcript == path


def test_a_compression_says_how_much_is_left_in_the_context(host: DirectoryHost) -> None:
    usage = {"totalTokenCount": 100}
    payload = {"info": {"newTokenCount": 7}, "compressedHistory": [{"parts": [{"text": "in short"}]}]}
    write(
        host,
        A,
        line("1", None, "user", "first"),
        line("2", "1", "assistant", "one", model="q", usageMetadata=usage),
        line("3", "2", "system", "", subtype="chat_compression", systemPayload=payload),
    )
    found = qwen.describe(Identity(agent="qwen", conversation=A), process("node", BIN), host)
    assert found.context_used == 7
    assert [(turn["role"], turn["text"]) for turn in qwen.turns(A, host)][-1] == ("system", "in short")


def test_turns_follow_the_branch_the_last_line_ends(host: DirectoryHost) -> None:
    write(
        host,
        A,
        line("1", None, "user", "root"),
        line("2", "1", "user", "mine"),
        line("3", "1", "user", "theirs"),
        line("4", "2", "assistant", "to mine"),
        line("5", "3", "assistant", "to theirs"),
    )
    assert [turn["text"] for turn in qwen.turns(A, host)] == ["root", "theirs", "to theirs"]


def test_a_missing_line_does_not_cost_those_before_it_and_a_circle_ends(host: DirectoryHost) -> None:
    write(host, A, line("1", None, "user", "root"), line("3", "2", "user", "after the gap"))
    assert [turn["text"] for turn in qwen.turns(A, host)] == ["root", "after the gap"]
    write(host, B, line("1", "2", "user", "one"), line("2", "1", "user", "two"))
    assert [turn["text"] for turn in qwen.turns(B, host)] == ["one", "two"]


# -- how it comes back ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ([], []),
        (["--session-id", B, "-y"], ["-y"]),
        (["-c=true", "--model", "q"], ["--model", "q"]),
        (["--continue", "--yolo", "false"], ["--no-yolo"]),
        (["--allowed-tools", "a", "b", "--resume", B], ["--allowed-tools", "a", "b"]),
        (["--add-dir", "/x", "/y", "-i", "fix it"], ["--add-dir", "/x", "/y"]),
        (["--includeDirectories", "/x", "--json-fd", "3"], ["--includeDirectories", "/x"]),
        (
            ["--openai-base-url", "http://h", "--auth-type", "openai"],
            ["--openai-base-url", "http://h", "--auth-type", "openai"],
        ),
        (["--chat-recording", "false"], ["--no-chat-recording"]),
        (["-r", "my title", "--approvalMode", "plan"], ["--approvalMode", "plan"]),
    ],
)
def test_flags_come_back_and_prompts_and_old_ids_do_not(words: list[str], kept: list[str]) -> None:
    launched = Command(argv=("node", BIN, *words), cwd=CWD)
    command = qwen.resume(Identity(agent="qwen", conversation=A, prompted=True), launched)
    assert command == Command(argv=("node", BIN, *kept, "--resume", A), cwd=CWD)


def test_without_its_log_nothing_tells_of_a_switch(host: DirectoryHost) -> None:
    write(host, A)
    assert claims(launched("--resume", A), host)[0] == (A, Evidence.ARGV, True)
    deaf = launched("--resume", A, environ={"QWEN_DEBUG_LOG_FILE": "0"})
    assert claims(deaf, host)[0] == (A, Evidence.ARGV, False)


def test_without_hooks_what_another_pane_writes_may_be_where_it_went(host: DirectoryHost) -> None:
    write(host, A)
    write(host, B, at=LATEST)
    assert claims(launched("--resume", A), host)[:2] == [(A, Evidence.ARGV, False), (B, Evidence.GUESS, False)]
