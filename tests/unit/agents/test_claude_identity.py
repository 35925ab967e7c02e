from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec
import pytest

from perdure.agents.claude import Claude
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Process
from tests.unit.agents.hosts import BEFORE, CWD, HOME, LATER, LATEST, DirectoryHost, Seen, jsonl, process

A = "aaaaaaaa-0000-4000-8000-00000000000a"
B = "bbbbbbbb-0000-4000-8000-00000000000b"
C = "cccccccc-0000-4000-8000-00000000000c"
SLUG = "-home-dev-work-proj1"


def identify(host: DirectoryHost, seen: Process) -> Sequence[Identity]:
    found = Claude().identify(Seen(seen), host)
    assert found[-1].conversation is None
    assert found[-1].evidence is None
    assert all(identity.conversation for identity in found[:-1])
    assert all(identity.agent == "claude" and identity.because for identity in found)
    return found


def claims(host: DirectoryHost, seen: Process) -> list[tuple[str | None, Evidence | None, bool]]:
    return [(found.conversation, found.evidence, found.certain) for found in identify(host, seen)[:-1]]


def register(host: DirectoryHost, pid: int, conversation: str, other: dict[str, object] | None = None) -> None:
    entry = {"pid": pid, "sessionId": conversation, "cwd": CWD, "procStart": "5000", **(other or {})}
    entry = {key: value for key, value in entry.items() if value is not None}
    host.write(f"{HOME}/.claude/sessions/{pid}.json", msgspec.json.encode(entry))


def converse(
    host: DirectoryHost, conversation: str, *, at: float = LATER, cwd: str = CWD, slug: str = SLUG, closed: bool = False
) -> str:
    lines: list[dict[str, object]] = [
        {"type": "mode", "mode": "normal"},
        {"type": "user", "cwd": cwd, "message": {"role": "user", "content": "hello"}},
        {"type": "assistant", "cwd": cwd, "message": {"id": "m", "model": "x", "usage": {"input_tokens": 1}}},
    ]
    if closed:
        lines.append({"type": "cost-state"})
    return host.write(f"{HOME}/.claude/projects/{slug}/{conversation}.jsonl", jsonl(*lines), at=at)


def test_two_panes_in_one_directory_are_told_apart_by_the_registry(host: DirectoryHost) -> None:
    register(host, 100, A)
    register(host, 200, B)
    converse(host, A, at=LATEST)
    converse(host, B)
    assert claims(host, process("claude", pid=100)) == [(A, Evidence.REGISTRY, True)]
    assert claims(host, process("claude", pid=200)) == [(B, Evidence.REGISTRY, True)]


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"procStart": "4999"}, "an earlier process"),
        ({"procStart": None}, "does not say when"),
        ({"pid": 101}, "names another process"),
    ],
)
def test_an_entry_that_is_not_this_processes_is_rejected_and_said_so(
    host: DirectoryHost, other: dict[str, object], reason: str
) -> None:
    register(host, 100, A, other)
    (nothing,) = identify(host, process("claude", pid=100))
    assert reason in nothing.because[0]


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"pid":100,"procStart":"5000"}', b"\xff\x00"])
def test_a_damaged_entry_is_no_evidence(host: DirectoryHost, raw: bytes) -> None:
    host.write(f"{HOME}/.claude/sessions/100.json", raw)
    assert claims(host, process("claude", pid=100)) == []


def test_after_clear_the_registry_wins_over_the_command_line(host: DirectoryHost) -> None:
    register(host, 100, B)
    converse(host, A)
    assert claims(host, process("claude", "--resume", A, pid=100)) == [(B, Evidence.REGISTRY, True)]


def test_a_conversation_nobody_spoke_in_is_known_as_such(host: DirectoryHost) -> None:
    register(host, 100, A)
    first = identify(host, process("claude", pid=100))[0]
    assert (first.conversation, first.certain, first.prompted, first.taken) == (A, True, False, False)


def test_a_file_with_a_title_alone_is_no_conversation_but_takes_the_id(host: DirectoryHost) -> None:
    register(host, 100, A)
    title = jsonl({"type": "custom-title", "customTitle": "x"}, {"type": "mode", "mode": "normal"})
    host.write(f"{HOME}/.claude/projects/{SLUG}/{A}.jsonl", title)
    first = identify(host, process("claude", pid=100))[0]
    assert (first.prompted, first.taken) == (False, True)


def test_a_conversation_with_a_prompt_can_be_resumed(host: DirectoryHost) -> None:
    register(host, 100, A)
    converse(host, A)
    first = identify(host, process("claude", pid=100))[0]
    assert (first.prompted, first.taken, first.home) == (True, False, None)


def test_where_it_was_started_is_kept_when_that_is_elsewhere(host: DirectoryHost) -> None:
    register(host, 100, A)
    converse(host, A, cwd="/home/dev/other", slug="-home-dev-other")
    first = identify(host, process("claude", pid=100))[0]
    assert (first.prompted, first.home) == (True, "/home/dev/other")


def test_a_registry_of_another_config_home_is_found_there(host: DirectoryHost) -> None:
    entry = {"pid": 100, "sessionId": A, "procStart": "5000"}
    host.write(f"{HOME}/.claude-work/sessions/100.json", msgspec.json.encode(entry))
    register(host, 100, B)
    seen = process("claude", pid=100, environ={"CLAUDE_CONFIG_DIR": f"{HOME}/.claude-work"})
    first = identify(host, seen)[0]
    assert (first.conversation, first.profile) == (A, ".claude-work")


def hook(conversation: str, event: str = "UserPromptSubmit", **other: str) -> bytes:
    return msgspec.json.encode({"session_id": conversation, "hook_event_name": event, **other})


def test_the_newest_hook_record_decides_without_a_registry(host: DirectoryHost) -> None:
    host.hook_records = [hook(B), hook(A), b"junk"]
    assert claims(host, process("claude", "--resume", A)) == [(B, Evidence.HOOK, True)]


@pytest.mark.parametrize("newest", [b"", b"junk", hook("no id")])
def test_a_newer_hook_record_that_cannot_be_read_may_tell_of_another(host: DirectoryHost, newest: bytes) -> None:
    host.hook_records = [newest, hook(B), hook(A)]
    assert claims(host, process("claude", "--resume", A)) == [(B, Evidence.HOOK, False)]


def test_the_end_of_a_conversation_whose_beginning_was_missed_comes_after_the_one_before(host: DirectoryHost) -> None:
    host.hook_records = [hook(A, "SessionEnd", reason="clear"), hook(B, "SessionStart")]
    assert claims(host, process("claude")) == []


def test_the_end_of_a_conversation_does_not_hide_the_next(host: DirectoryHost) -> None:
    """Hooks run side by side: the end of the old one may be recorded after the start of the new."""
    host.hook_records = [hook(A, "SessionEnd", reason="clear"), hook(B, "SessionStart"), hook(A)]
    assert claims(host, process("claude")) == [(B, Evidence.HOOK, True)]


def test_a_conversation_taken_up_again_counts(host: DirectoryHost) -> None:
    host.hook_records = [hook(A, "SessionStart"), hook(B, "SessionEnd", reason="resume"), hook(A, "SessionEnd")]
    assert claims(host, process("claude")) == [(A, Evidence.HOOK, True)]


def test_a_process_on_its_way_out_is_still_in_its_conversation(host: DirectoryHost) -> None:
    host.hook_records = [hook(A, "SessionEnd", reason="other"), hook(A)]
    assert claims(host, process("claude")) == [(A, Evidence.HOOK, True)]


def test_a_conversation_that_was_left_is_not_claimed_for_certain(host: DirectoryHost) -> None:
    host.hook_records = [hook(A, "SessionEnd", reason="clear"), hook(A)]
    converse(host, A)
    assert claims(host, process("claude", "--resume", A)) == [(A, Evidence.ARGV, False)]


@pytest.mark.parametrize("words", [("--resume", A), (f"--resume={A}",), ("-r", A), (f"-r{A}",), ("--session-id", A)])
def test_the_command_line_is_believed_while_nothing_speaks_against_it(
    host: DirectoryHost, words: tuple[str, ...]
) -> None:
    converse(host, A)
    converse(host, B, at=BEFORE)
    assert claims(host, process("claude", *words)) == [(A, Evidence.ARGV, True)]


def test_a_new_id_on_the_command_line_is_known_before_the_first_prompt(host: DirectoryHost) -> None:
    first = identify(host, process("claude", "--session-id", A))[0]
    assert (first.conversation, first.certain, first.prompted) == (A, True, False)


def test_resuming_what_has_no_transcript_is_not_certain(host: DirectoryHost) -> None:
    first = identify(host, process("claude", "--resume", A))[0]
    assert (first.conversation, first.certain, first.prompted) == (A, False, None)


def test_what_may_speak_against_the_command_line_is_listed_behind_it(host: DirectoryHost) -> None:
    """Whether it does depends on whose it is, which is not for an adapter to know."""
    converse(host, A)
    converse(host, B, at=LATEST)
    assert claims(host, process("claude", "--resume", A)) == [(A, Evidence.ARGV, True), (B, Evidence.GUESS, False)]


def test_a_conversation_closed_since_the_start_was_probably_left_for_the_newer_one(host: DirectoryHost) -> None:
    converse(host, A, closed=True)
    converse(host, B, at=LATEST)
    assert claims(host, process("claude", "--resume", A)) == [(B, Evidence.GUESS, False), (A, Evidence.ARGV, False)]


def test_a_conversation_closed_before_the_start_was_closed_by_an_earlier_process(host: DirectoryHost) -> None:
    converse(host, A, at=BEFORE, closed=True)
    assert claims(host, process("claude", "--resume", A)) == [(A, Evidence.ARGV, True)]


def test_continue_is_no_evidence(host: DirectoryHost) -> None:
    converse(host, A, at=LATEST)
    converse(host, B)
    assert claims(host, process("claude", "--continue")) == [(A, Evidence.GUESS, False), (B, Evidence.GUESS, False)]


def test_continue_without_a_word_since_guesses_the_newest_there_was(host: DirectoryHost) -> None:
    converse(host, A, at=BEFORE)
    converse(host, B, at=BEFORE - 10)
    assert claims(host, process("claude", "-c")) == [(A, Evidence.GUESS, False)]
    assert claims(host, process("claude")) == []


def test_a_fork_is_not_its_parent(host: DirectoryHost) -> None:
    converse(host, A, at=LATEST)
    assert claims(host, process("claude", "--resume", A, "--fork-session")) == []
    converse(host, B)
    assert claims(host, process("claude", "--resume", A, "--fork-session")) == [(B, Evidence.GUESS, False)]


def test_a_conversation_of_a_directory_with_the_same_slug_is_rejected(host: DirectoryHost) -> None:
    converse(host, A, cwd="/home/dev/work-proj1")
    (nothing,) = identify(host, process("claude"))
    assert any("another directory" in why for why in nothing.because)
    converse(host, B)
    assert claims(host, process("claude")) == [(B, Evidence.GUESS, False)]


def test_a_conversation_through_a_symlink_is_in_the_same_directory(host: DirectoryHost) -> None:
    os.makedirs(host.real(CWD))
    os.symlink("proj1", host.real("/home/dev/work/link"))
    converse(host, A)
    assert claims(host, process("claude", cwd="/home/dev/work/link")) == [(A, Evidence.GUESS, False)]


def test_files_that_are_no_conversations_are_not_guessed(host: DirectoryHost) -> None:
    converse(host, "notes")
    host.write(f"{HOME}/.claude/projects/{SLUG}/{C}.json", b"{}")
    assert claims(host, process("claude")) == []


@pytest.mark.parametrize("begun", [b"", b'{"type":"custom-ti', b'{"type":"custom-title","customTitle":"x"}\n'])
def test_a_conversation_that_has_only_just_begun_counts(host: DirectoryHost, begun: bytes) -> None:
    host.write(f"{HOME}/.claude/projects/{SLUG}/{C}.jsonl", begun)
    assert claims(host, process("claude")) == [(C, Evidence.GUESS, False)]


def test_a_process_whose_directory_is_hidden_has_no_guess(host: DirectoryHost) -> None:
    converse(host, A)
    assert claims(host, process("claude", cwd=None)) == []
    register(host, 100, A)
    first = identify(host, process("claude", pid=100, cwd=None))[0]
    assert (first.conversation, first.home) == (A, CWD)


def hand_over(host: DirectoryHost, successor: str) -> None:
    register(host, 100, A, {"parkedJobId": "12ab34cd"})
    host.write(f"{HOME}/.claude/jobs/12ab34cd/state.json", msgspec.json.encode({"resumeSessionId": successor}))


def test_a_conversation_handed_to_the_background_goes_on_under_another_id(host: DirectoryHost) -> None:
    """One key does that, and the entry keeps the old id: it would be wrong and certain."""
    hand_over(host, B)
    converse(host, A)
    converse(host, B)
    found = identify(host, process("claude", pid=100))
    assert [(each.conversation, each.evidence, each.certain) for each in found[:-1]] == [(B, Evidence.REGISTRY, False)]
    assert found[-1].left == (A,)


def test_before_anything_is_said_in_the_background_only_the_old_one_can_come_back(host: DirectoryHost) -> None:
    hand_over(host, B)
    converse(host, A)
    found = identify(host, process("claude", pid=100))
    assert [(each.conversation, each.certain) for each in found[:-1]] == [(A, False)]
    # What was certain before must not be remembered as certain.
    assert found[-1].left == (A,)


def test_what_a_terminal_is_attached_to_is_the_jobs_conversation(host: DirectoryHost) -> None:
    host.write(f"{HOME}/.claude/jobs/12ab34cd/state.json", msgspec.json.encode({"resumeSessionId": B}))
    converse(host, B)
    assert claims(host, process("claude", "attach", "12ab34cd")) == [(B, Evidence.ARGV, True)]
    converse(host, C)
    assert claims(host, process("claude", "attach", "12ab34cd")) == [
        (B, Evidence.ARGV, True),
        (C, Evidence.GUESS, False),
    ]
    converse(host, C, at=LATEST)
    assert claims(host, process("claude", "attach", "some name")) == [
        (C, Evidence.GUESS, False),
        (B, Evidence.GUESS, False),
    ]


def test_a_conversation_may_be_resumed_by_its_file(host: DirectoryHost) -> None:
    path = converse(host, A, at=BEFORE)
    assert claims(host, process("claude", "--resume", path)) == [(A, Evidence.ARGV, True)]


def test_an_id_in_capitals_is_another_id(host: DirectoryHost) -> None:
    """The program never puts them in other letters, neither in names of files nor when it looks for one."""
    converse(host, A, at=BEFORE)
    assert claims(host, process("claude", "--resume", A.upper())) == [(A.upper(), Evidence.ARGV, False)]
    register(host, 100, A.upper())
    assert claims(host, process("claude", pid=100)) == [(A.upper(), Evidence.REGISTRY, True)]
