"""Gemini CLI: which conversation a process is in, what is known of it, and how it comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from perdure.agents import Roster, agent_of
from perdure.agents.gemini import Gemini
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Command, Process
from perdure.ports import DeletesTranscripts
from tests.contract.agents.cases.gemini import LONG, RESUMED, chat
from tests.unit.agents.hosts import CWD, HOME, LATER, LATEST, STARTED, DirectoryHost, Seen, jsonl, process

BIN = "/home/dev/npm/node_modules/.bin/gemini"
A, B = "aaaaaaaa-1111-4222-8333-444444444444", "bbbbbbbb-1111-4222-8333-444444444444"
PROJECT = f"{HOME}/.gemini/tmp/proj1"
CONTEXT = {
    "id": "d0",
    "timestamp": "2026-11-15T08:30:02.000Z",
    "type": "user",
    "content": [{"text": "<session_context>"}],
}
gemini = Gemini()


class Host(DirectoryHost):
    """A machine on which hooks recorded something for some processes only."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.by_pid: dict[int, list[tuple[float, Mapping[str, object]]]] = {}

    def hooks(self, agent: str, process: Process) -> Sequence[tuple[datetime, bytes]]:
        found = self.by_pid.get(process.pid, [])
        return [(at_second(at), msgspec.json.encode(record)) for at, record in reversed(found)]


def at_second(at: float) -> datetime:
    return STARTED + timedelta(seconds=at)


def stamp(at: float) -> str:
    return at_second(at).isoformat().replace("+00:00", "Z")


def header(id: str, at: float = 2.0) -> dict[str, Any]:
    return {"sessionId": id, "projectHash": "0", "startTime": stamp(at), "lastUpdated": stamp(at), "kind": "main"}


def user(text: str, at: float = LATER, id: str = "u1") -> dict[str, Any]:
    return {"id": id, "timestamp": stamp(at), "type": "user", "content": [{"text": text}]}


def answer(text: str, at: float = LATER, id: str = "g1") -> dict[str, Any]:
    tokens = {"input": 100, "output": 10, "total": 110}
    return {"id": id, "timestamp": stamp(at), "type": "gemini", "content": text, "tokens": tokens, "model": "pro"}


def context(at: float = 2.0) -> dict[str, Any]:
    return {"$set": {"messages": [CONTEXT], "lastUpdated": stamp(at)}}


def event(id: str, name: str = "SessionStart", **more: object) -> dict[str, object]:
    return {"session_id": id, "hook_event_name": name, **more}


@pytest.fixture
def host(tmp_path: object) -> Host:
    made = Host(str(tmp_path))
    made.write(f"{HOME}/.gemini/projects.json", msgspec.json.encode({"projects": {CWD: "proj1"}}))
    made.write(f"{PROJECT}/.project_root", CWD)
    return made


def write(host: DirectoryHost, id: str, *records: Mapping[str, Any], at: float = LATER, minute: str = "30") -> str:
    lines = records or (header(id), context(), user("hello"), answer("hi"))
    return host.write(f"{PROJECT}/chats/session-2026-11-15T08-{minute}-{id[:8]}.jsonl", jsonl(*lines), at=at)


def launched(*argv: str, child_cwd: str = CWD, **more: Any) -> Seen:
    """Return gemini as it is seen: a process, and below it the one it started with the same command line."""
    parent = process("node", BIN, *argv, pid=100, **more)
    child = process("/usr/bin/node", "--max-old-space-size=99", BIN, *argv, pid=101, ppid=100, cwd=child_cwd)
    return Seen(parent, child)


def claims(seen: Seen, host: DirectoryHost) -> list[tuple[str | None, Evidence | None, bool]]:
    return [(each.conversation, each.evidence, each.certain) for each in gemini.identify(seen, host)]


def first(seen: Seen, host: DirectoryHost) -> Identity:
    return gemini.identify(seen, host)[0]


# -- which process, which conversation ------------------------------------------------------------------------------


def test_the_process_a_person_started_is_the_agent_and_not_the_one_it_starts_again() -> None:
    seen = launched("--yolo")
    found = agent_of(seen.tree, Roster({}, [gemini]))
    assert found is not None
    assert found[1].pid == 100


def test_records_of_the_process_it_started_again_are_its_own(host: Host) -> None:
    write(host, A)
    host.by_pid[101] = [(1, event(A)), (60, event(A, "BeforeAgent"))]
    assert claims(launched(), host) == [(A, Evidence.HOOK, True), (None, None, False)]


def test_records_of_a_gemini_that_a_tool_runs_are_not(host: Host) -> None:
    seen = launched()
    other = process("node", BIN, "--model", "flash", pid=102, ppid=101)
    host.by_pid[102] = [(60, event(B))]
    assert claims(Seen(*seen.tree, other), host) == [(None, None, False)]


def test_after_clear_the_hook_names_the_new_conversation_and_the_command_line_does_not(host: Host) -> None:
    write(host, A)
    write(host, B, header(B, 70), context(70), at=70)
    host.by_pid[101] = [(1, event(A)), (70, event(A, "SessionEnd", reason="clear")), (70.1, event(B, source="clear"))]
    found = first(launched("--session-id", A), host)
    assert (found.conversation, found.evidence, found.certain) == (B, Evidence.HOOK, True)
    assert (found.prompted, found.taken) == (False, True)


def test_a_conversation_taken_up_within_the_program_makes_the_last_hook_doubtful(host: Host) -> None:
    rejoined = ({"$set": {"sessionId": B}}, {"$set": {"messages": [CONTEXT, user("old")], "lastUpdated": stamp(80)}})
    write(host, A)
    write(host, B, header(B, -900), user("old", -800), answer("yes", -790), *rejoined, at=80)
    host.by_pid[101] = [(60, event(A, "AfterAgent"))]
    assert claims(launched(), host) == [
        (B, Evidence.GUESS, False),
        (A, Evidence.HOOK, False),
        (None, None, False),
    ]


def test_so_does_one_that_was_begun_only_a_moment_ago(host: Host) -> None:
    rejoined = ({"$set": {"sessionId": B}}, {"$set": {"messages": [CONTEXT, user("old")], "lastUpdated": stamp(80)}})
    write(host, A)
    write(host, B, header(B, 78), user("old", 79), *rejoined, at=80)
    host.by_pid[101] = [(79.5, event(A, "AfterAgent"))]
    assert claims(launched(), host)[:2] == [(B, Evidence.GUESS, False), (A, Evidence.HOOK, False)]


def test_one_that_another_program_was_started_with_does_not(host: Host) -> None:
    rejoined = ({"$set": {"sessionId": B}}, {"$set": {"messages": [CONTEXT, user("old")], "lastUpdated": stamp(80)}})
    write(host, A)
    write(host, B, header(B, -900), user("old", -800), answer("yes", -790), *rejoined, at=80)
    write(host, B, header(B, 79), context(79), at=80, minute="31")
    host.by_pid[101] = [(60, event(A, "AfterAgent"))]
    assert claims(launched(), host)[0] == (A, Evidence.HOOK, True)


def test_nor_does_one_that_was_resumed_within_the_minute_it_was_begun_in(host: Host) -> None:
    rejoined = ({"$set": {"sessionId": B}}, {"$set": {"messages": [CONTEXT, user("old")], "lastUpdated": stamp(80)}})
    write(host, A)
    write(host, B, header(B, 50), user("old", 55), header(B, 79), context(79), *rejoined, at=80)
    host.by_pid[101] = [(60, event(A, "AfterAgent"))]
    assert claims(launched(), host)[0] == (A, Evidence.HOOK, True)


def test_what_was_asked_in_it_since_does_not_tell_who_took_it_up(host: Host) -> None:
    rejoined = ({"$set": {"sessionId": B}}, {"$set": {"messages": [CONTEXT], "lastUpdated": stamp(80)}})
    write(host, A)
    write(host, B, header(B, -900), user("old", -800), *rejoined, user("new", 90, "u9"), at=90)
    host.by_pid[101] = [(60, event(A, "AfterAgent"))]
    assert (A, Evidence.HOOK, False) in claims(launched(), host)
    # What it did itself since is where it is.
    host.by_pid[101] = [(95, event(A, "AfterAgent"))]
    assert claims(launched(), host)[0] == (A, Evidence.HOOK, True)


def test_the_command_line_names_the_conversation_and_others_speak_against_it(host: Host) -> None:
    write(host, A)
    assert claims(launched("--session-id", A), host) == [(A, Evidence.ARGV, True), (None, None, False)]
    write(host, B, header(B, 70), context(70), at=LATEST)
    assert claims(launched("--sessionId", A), host)[1] == (B, Evidence.GUESS, False)


def test_a_resumed_conversation_without_a_transcript_is_doubtful_and_a_given_id_is_not(host: Host) -> None:
    assert claims(launched("--resume", A), host)[0] == (A, Evidence.ARGV, False)
    given = first(launched("--session-id", A), host)
    assert (given.certain, given.prompted, given.taken) == (True, False, False)


@pytest.mark.parametrize("words", [("--resume", "latest"), ("-r", "3"), ("--resume",), ()])
def test_without_a_name_there_are_guesses_only(host: Host, words: tuple[str, ...]) -> None:
    write(host, A, at=LATER)
    write(host, B, at=LATEST)
    assert claims(launched(*words), host) == [
        (B, Evidence.GUESS, False),
        (A, Evidence.GUESS, False),
        (None, None, False),
    ]


def test_what_was_resumed_before_it_began_to_write_is_guessed_too(host: Host) -> None:
    write(host, A, at=-600)
    write(host, B, header(B), context(), at=-500)
    assert claims(launched("--resume"), host)[0] == (A, Evidence.GUESS, False)
    assert claims(launched(), host) == [(None, None, False)]


def test_both_files_of_a_resumed_conversation_are_one(host: Host) -> None:
    write(host, A, at=LATER)
    write(host, A, header(A, 70), context(70), at=LATEST, minute="31")
    assert claims(launched(), host) == [(A, Evidence.GUESS, False), (None, None, False)]
    assert first(launched(), host).prompted is True


def test_a_word_of_the_user_s_own_can_be_an_id(host: Host) -> None:
    write(host, "my-session")
    assert claims(launched("--session-id", "my-session"), host)[0] == ("my-session", Evidence.ARGV, True)


def test_a_first_prompt_that_failed_is_taken_back_and_cannot_be_resumed(host: Host) -> None:
    error = {"id": "e1", "timestamp": stamp(61), "type": "error", "content": "[API Error: 400]"}
    write(host, A, header(A), context(), user("boom"), context(61), error)
    found = first(launched("--session-id", A), host)
    assert (found.prompted, found.taken) == (False, True)


def test_a_transcript_that_lost_its_header_is_found_by_what_was_typed(host: Host) -> None:
    write(host, A, user("hello"), answer("hi"))
    assert claims(launched(), host) == [(None, None, False)]
    host.write(f"{PROJECT}/logs.json", msgspec.json.encode([{"sessionId": A, "message": "hello"}]))
    assert claims(launched(), host)[0] == (A, Evidence.GUESS, False)
    assert first(launched("--session-id", A), host).prompted is True


def test_a_project_is_known_by_the_mark_in_its_directory_when_the_list_is_wrong(host: Host) -> None:
    host.write(f"{HOME}/.gemini/projects.json", msgspec.json.encode({"projects": {CWD: "other"}}))
    host.write(f"{HOME}/.gemini/tmp/other/.project_root", "/home/dev/elsewhere")
    host.write(f"{HOME}/.gemini/tmp/other/chats/session-2026-11-15T08-30-{B[:8]}.jsonl", jsonl(header(B), user("x")))
    write(host, A)
    assert claims(launched(), host) == [(A, Evidence.GUESS, False), (None, None, False)]


def test_in_a_worktree_the_conversation_belongs_there(host: Host) -> None:
    tree = f"{CWD}/.gemini/worktrees/fix"
    host.write(f"{HOME}/.gemini/tmp/fix/.project_root", tree)
    host.write(f"{HOME}/.gemini/tmp/fix/chats/session-2026-11-15T08-30-{A[:8]}.jsonl", jsonl(header(A), user("x")))
    host.by_pid[101] = [(60, event(A))]
    found = first(launched("--worktree", "fix", child_cwd=tree), host)
    assert found.home == tree
    command = gemini.resume(found, Command(argv=("node", BIN, "--worktree", "fix", "-y"), cwd=CWD))
    assert command == Command(argv=("node", BIN, "-y", "--resume", A), cwd=tree)


def test_a_home_of_its_own_is_a_profile(host: Host) -> None:
    root = "/srv/second/.gemini/tmp/proj1"
    host.write(f"{root}/.project_root", CWD)
    host.write(f"{root}/chats/session-2026-11-15T08-30-{A[:8]}.jsonl", jsonl(header(A), user("x")))
    found = first(launched(environ={"GEMINI_CLI_HOME": "/srv/second"}), host)
    assert (found.conversation, found.profile) == (A, "second")
    usual = first(launched(environ={"GEMINI_CLI_HOME": HOME}), host)
    assert usual.profile is None


# -- what is known of it ----------------------------------------------------------------------------------------------


def test_the_real_transcript_is_described_and_its_companion_named(host: Host) -> None:
    real = write(host, RESUMED)
    host.write(real, chat("resumed_session-2026-11-15T08-55-cccccccc.jsonl"))
    other = write(host, RESUMED, minute="56")
    host.write(other, chat("resumed_session-2026-11-15T08-56-cccccccc.jsonl"), at=LATEST)
    found = gemini.describe(Identity(agent="gemini", conversation=RESUMED), process("node", BIN), host)
    assert (found.transcript, found.companions) == (real, (other,))
    assert (found.task, found.model, found.context_used) == ("gem4 keep me november", "gemini-3.1-pro-preview", 12683)
    assert (found.provider, found.context_limit) == ("google", None)
    assert found.title is not None
    assert found.title.startswith("STUB-REPLY 105")
    assert found.began_at == datetime.fromisoformat("2026-11-15T08:55:26.392Z")
    told = [turn["text"] for turn in gemini.turns(RESUMED, host, other)]
    assert told == [turn["text"] for turn in gemini.turns(RESUMED, host)]
    assert told[0] == "gem4 keep me november"


def test_a_cancelled_request_is_still_what_was_asked_last(host: Host) -> None:
    copies = [user("first", 80, "c1"), {**answer("one", 80, "c2"), "tokens": None}]
    patch = {"$set": {"messages": copies, "lastUpdated": stamp(80)}}
    lines: list[dict[str, Any]] = [
        header(A),
        context(),
        user("first", 60),
        answer("one", 61),
        user("second", 70, "u2"),
        *copies,
        patch,
    ]
    write(host, A, *lines)
    found = gemini.describe(Identity(agent="gemini", conversation=A), process("node", BIN), host)
    assert (found.task, found.context_used) == ("second", 110)
    assert [turn["text"] for turn in gemini.turns(A, host)] == ["first", "one", "second"]


def test_a_rewind_takes_turns_back_and_the_last_of_one_id_counts(host: Host) -> None:
    lines: list[dict[str, Any]] = [
        header(A),
        user("one", id="u1"),
        answer("draft"),
        answer("final"),
        user("two", id="u2"),
        {"$rewindTo": "u2"},
    ]
    write(host, A, *lines, user("three", id="u3"))
    assert [turn["text"] for turn in gemini.turns(A, host)] == ["one", "final", "three"]


def test_turns_of_a_long_conversation_come_once_and_sub_agents_apart(host: Host) -> None:
    write(host, LONG)
    host.write(
        f"{PROJECT}/chats/session-2026-11-15T08-30-{LONG[:8]}.jsonl", chat("session-2026-11-15T15-40-5a3c1f00.jsonl")
    )
    asked = [turn["text"] for turn in gemini.turns(LONG, host) if turn["role"] == "user"]
    assert [str(text).rpartition("]] ")[2] for text in asked] == [
        "first thing",
        "run it",
        "cancel it",
        "ask an agent",
        "fail",
        "Stub aside 8",
        "last thing",
    ]


def test_an_old_transcript_of_one_document_is_read_too(host: Host) -> None:
    document = {**header(A), "messages": [CONTEXT, user("hello"), answer("hi")]}
    path = host.write(f"{PROJECT}/chats/session-2026-11-15T08-30-{A[:8]}.json", msgspec.json.encode(document))
    assert [turn["text"] for turn in gemini.turns(A, host)] == ["hello", "hi"]
    found = gemini.describe(Identity(agent="gemini", conversation=A), process("node", BIN), host)
    assert (found.transcript, found.task) == (path, "hello")


def test_before_anything_was_written_the_command_line_describes(host: Host) -> None:
    seen = process("node", BIN, "-m", "flash", environ={"GOOGLE_GEMINI_BASE_URL": "http://u:p@proxy.example:1/k"})
    found = gemini.describe(Identity(agent="gemini"), seen, host)
    assert (found.model, found.provider, found.transcript) == ("flash", "proxy.example", None)


# -- how it comes back ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ([], []),
        (["--session-id", B, "-y"], ["-y"]),
        (["--resume=" + B, "--model", "flash"], ["--model", "flash"]),
        (["-r", "latest", "-m=flash"], ["-m", "flash"]),
        (["--yolo", "false", "fix it"], ["--no-yolo"]),
        (["-i", "fix it", "--approval-mode=plan"], ["--approval-mode=plan"]),
        (["--include-directories", "a", "fix it"], ["--include-directories", "a"]),
        (["--extensions", "one", "--extensions", "two", "-s"], ["--extensions", "one", "--extensions", "two", "-s"]),
        (["--session-file", "x.json", "--skip-trust"], ["--skip-trust"]),
        (["-d", "--", "a prompt"], ["-d"]),
        (["--promptInteractive", "x", "--allowedTools", "t"], ["--allowedTools", "t"]),
    ],
)
def test_flags_come_back_and_prompts_and_old_ids_do_not(words: list[str], kept: list[str]) -> None:
    launched = Command(argv=("node", BIN, *words), cwd=CWD)
    command = gemini.resume(Identity(agent="gemini", conversation=A, prompted=True), launched)
    assert command == Command(argv=("node", BIN, *kept, "--resume", A), cwd=CWD)


def test_one_in_which_nothing_was_said_begins_anew_under_its_id_unless_that_is_taken() -> None:
    launched = Command(argv=("node", BIN, "-y", "--resume", B), cwd=CWD)
    fresh = gemini.resume(Identity(agent="gemini", conversation=A, prompted=False), launched)
    taken = gemini.resume(Identity(agent="gemini", conversation=A, prompted=False, taken=True), launched)
    assert fresh is not None
    assert fresh.argv == ("node", BIN, "-y", "--session-id", A)
    assert taken is not None
    assert taken.argv == ("node", BIN, "-y")


def test_a_transcript_is_whole_with_its_header_and_something_said_in_it() -> None:
    head, said = header(A), user("fix it")
    assert gemini.is_whole(jsonl(head, said))
    assert gemini.is_whole(jsonl(head, said)[:-1])
    assert gemini.is_whole(msgspec.json.encode({**head, "messages": [said]}))
    for broken in (
        b"",
        b"\n",
        jsonl(head),
        jsonl(said),
        jsonl(said, head),
        jsonl(head, CONTEXT),
        jsonl(head, user("/clear")),
        msgspec.json.encode({**head, "messages": []}),
        msgspec.json.encode({"messages": [said]}),
    ):
        assert not gemini.is_whole(broken), broken
    assert isinstance(gemini, DeletesTranscripts)


def test_a_long_transcript_without_its_header_is_not_whole() -> None:
    talk = [user("again " * 100, id=str(number)) for number in range(200)]
    assert gemini.is_whole(jsonl(header(A), *talk))
    assert not gemini.is_whole(jsonl(*talk))
