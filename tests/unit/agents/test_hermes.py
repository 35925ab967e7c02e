"""Hermes: which conversation, how it comes back, what it is about."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import pytest

from perdure.agents import agent_of
from perdure.agents.hermes import Hermes
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Command, Process
from tests.contract.agents import samples
from tests.contract.agents.cases import hermes as recorded
from tests.unit.agents.hosts import BEFORE, CWD, HOME, LATER, LATEST, STARTED, DirectoryHost, Seen, process

#: Ids hold local time: here that of Kathmandu, five hours and three quarters ahead of the 08:30 the processes start at.
MINE, LATE, OLD = "20261115_141502_aaaaaa", "20261115_142000_bbbbbb", "20261110_100000_cccccc"
DATABASE = f"{HOME}/.hermes/state.db"
HERMES = Hermes()

SCHEMA = """
CREATE TABLE sessions (id TEXT, source TEXT DEFAULT 'cli', parent_session_id TEXT, model_config TEXT, started_at REAL,
    ended_at REAL, end_reason TEXT, cwd TEXT, title TEXT, message_count INT DEFAULT 0, model TEXT, billing_provider TEXT,
    git_branch TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_calls TEXT, tool_name TEXT,
    timestamp REAL, active INT DEFAULT 1, compacted INT DEFAULT 0);
"""


def at(seconds: float) -> float:
    return STARTED.timestamp() + seconds


def row(ident: str, begun: float, *, ended: float | None = None, messages: int = 2, **more: str) -> str:
    facts: dict[str, Any] = {"id": ident, "started_at": at(begun), "message_count": messages, "cwd": CWD, **more}
    if ended is not None:
        facts["ended_at"] = at(ended)
    values = ", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in facts.values())
    return f"INSERT INTO sessions ({', '.join(facts)}) VALUES ({values});".replace("''", "NULL")


def said(session: str, role: str, content: str, when: float, **more: object) -> str:
    facts: dict[str, Any] = {"session_id": session, "role": role, "content": content, "timestamp": at(when), **more}
    values = ", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in facts.values())
    return f"INSERT INTO messages ({', '.join(facts)}) VALUES ({values});"


def keep(host: DirectoryHost, *rows: str, path: str = DATABASE) -> None:
    host.make_database(path, SCHEMA + "".join(rows))


def record(host: DirectoryHost, *records: tuple[str, str] | tuple[str, str, str]) -> None:
    """Let hooks have recorded these events and conversations (and platforms), the last one last."""
    host.hook_records = [
        msgspec.json.encode(
            {"hook_event_name": event, "session_id": ident, "extra": {"platform": platform[0] if platform else "cli"}}
        )
        for event, ident, *platform in reversed(records)
    ]


def hermes(*argv: str, pid: int = 100, environ: dict[str, str] | None = None) -> Process:
    words = ("/home/dev/venv/bin/python3", "/home/dev/venv/bin/hermes", *argv)
    return process(*words, pid=pid, comm="hermes", exe="/usr/bin/python3.11", environ=environ)


def found(host: DirectoryHost, *argv: str) -> list[tuple[str | None, Evidence | None, bool]]:
    claims = HERMES.identify(Seen(hermes(*argv)), host)
    return [(each.conversation, each.evidence, each.certain) for each in claims[:-1]]


# -- hooks ----------------------------------------------------------------------------------------------------------


def test_a_record_names_the_conversation(host: DirectoryHost) -> None:
    record(host, ("on_session_start", MINE), ("on_session_end", MINE))
    assert found(host) == [(MINE, Evidence.HOOK, True)]
    keep(host, row(MINE, LATER))
    assert found(host) == [(MINE, Evidence.HOOK, True)]


def test_an_approval_names_it_in_words_of_its_own(host: DirectoryHost) -> None:
    approval = {"hook_event_name": "pre_approval_request", "session_id": "", "extra": {"session_key": MINE}}
    host.hook_records = [msgspec.json.encode(approval)]
    assert found(host) == [(MINE, Evidence.HOOK, True)]
    host.hook_records = [msgspec.json.encode({**approval, "extra": {}})]
    assert found(host) == []


def test_new_is_followed_at_once(host: DirectoryHost) -> None:
    keep(host, row(MINE, LATER, ended=LATEST, end_reason="new_session"), row(LATE, LATEST, messages=0, cwd=""))
    record(host, ("on_session_end", MINE), ("on_session_finalize", MINE), ("on_session_reset", LATE))
    (first, last) = HERMES.identify(Seen(hermes()), host)
    assert (first.conversation, first.evidence, first.certain, first.prompted) == (LATE, Evidence.HOOK, True, False)
    assert last.conversation is None


def test_what_is_finalized_is_left(host: DirectoryHost) -> None:
    keep(host, row(MINE, LATER))
    record(host, ("on_session_end", MINE), ("on_session_finalize", MINE))
    claims = HERMES.identify(Seen(hermes()), host)
    assert MINE in claims[-1].left
    assert not any(each.certain for each in claims)


def test_what_was_closed_because_the_program_ended_may_be_where_it_was(host: DirectoryHost) -> None:
    record(host, ("on_session_end", MINE), ("on_session_finalize", MINE))
    keep(host, row(MINE, LATER, ended=LATEST, end_reason="cli_close"))
    assert found(host) == [(MINE, Evidence.GUESS, False)]
    os.unlink(host.real(DATABASE))
    keep(host, row(MINE, LATER, ended=LATEST, end_reason="new_session"))
    assert found(host) == []


def test_what_is_finalized_by_the_end_of_the_program_is_where_it_is_until_then(host: DirectoryHost) -> None:
    ended = {"hook_event_name": "on_session_end", "session_id": MINE, "extra": {"platform": "cli"}}
    extra = {"platform": "cli", "reason": "shutdown"}
    host.hook_records = [
        msgspec.json.encode({**ended, "hook_event_name": "on_session_finalize", "extra": extra}),
        msgspec.json.encode(ended),
    ]
    for mine in (row(MINE, LATER), row(MINE, LATER, ended=LATEST, end_reason="cli_close")):
        keep(host, mine)
        claims = HERMES.identify(Seen(hermes()), host)
        assert [(each.conversation, each.certain) for each in claims[:-1]] == [(MINE, True)]
        assert claims[-1].left == ()
        os.unlink(host.real(DATABASE))


def test_a_guess_outlives_the_row_that_the_end_of_the_program_closes(host: DirectoryHost) -> None:
    keep(host, row(MINE, LATER, ended=LATEST, end_reason="cli_close"), row(LATE, LATEST), said(LATE, "user", "x", 99))
    # The other one is open, and was written to later; but this one began with the process.
    assert found(host) == [(MINE, Evidence.GUESS, False), (LATE, Evidence.GUESS, False)]
    os.unlink(host.real(DATABASE))
    keep(host, row(MINE, LATER, ended=LATEST, end_reason="new_session"), row(LATE, LATEST, cwd="/elsewhere"))
    assert found(host) == []


def test_a_sub_agent_s_record_is_its_caller_s(host: DirectoryHost) -> None:
    child = row(LATE, LATEST, source="subagent", parent_session_id=MINE, model_config=f'{{"_delegate_from": "{MINE}"}}')
    keep(host, row(MINE, LATER), child)
    record(host, ("on_session_start", LATE, "subagent"), ("on_session_end", LATE, "subagent"))
    assert found(host) == [(MINE, Evidence.HOOK, True)]


def test_a_sub_agent_that_the_database_does_not_have_says_nothing(host: DirectoryHost) -> None:
    record(host, ("on_session_start", MINE), ("on_session_end", LATE, "subagent"))
    assert found(host) == [(MINE, Evidence.HOOK, True)]


def test_a_background_task_says_nothing(host: DirectoryHost) -> None:
    record(host, ("on_session_start", MINE), ("on_session_end", "bg_141600_abcdef"))
    assert found(host) == [(MINE, Evidence.HOOK, True)]


def test_what_was_resumed_without_a_hook_is_not_known_but_what_was_left_is(host: DirectoryHost) -> None:
    keep(host, row(MINE, LATER, ended=LATEST, end_reason="resumed_other"), row(OLD, -9000))
    record(host, ("on_session_end", MINE))
    claims = HERMES.identify(Seen(hermes()), host)
    assert [each.conversation for each in claims] == [None]
    assert claims[-1].left == (MINE,)


def test_a_row_closed_by_somebody_else_does_not_take_a_record_back(host: DirectoryHost) -> None:
    keep(host, row(MINE, LATER, ended=LATEST, end_reason="cli_close"))
    record(host, ("on_session_end", MINE))
    assert found(host) == [(MINE, Evidence.HOOK, True)]


def test_a_compacted_one_goes_on_in_the_next(host: DirectoryHost) -> None:
    keep(host, row(MINE, LATER, ended=LATEST, end_reason="compression"), row(LATE, LATEST, parent_session_id=MINE))
    record(host, ("on_session_end", MINE))
    assert found(host) == [(LATE, Evidence.HOOK, True)]


def test_a_record_of_a_row_that_is_gone_is_doubted(host: DirectoryHost) -> None:
    keep(host, row(OLD, -9000))
    record(host, ("on_session_end", MINE))
    assert found(host) == [(MINE, Evidence.HOOK, False)]


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]"])
def test_a_record_that_cannot_be_read_makes_older_ones_uncertain(host: DirectoryHost, raw: bytes) -> None:
    record(host, ("on_session_end", MINE))
    host.hook_records.insert(0, raw)
    assert found(host) == [(MINE, Evidence.HOOK, False)]


@pytest.mark.parametrize(
    ("stage", "conversation"),
    [
        ("first_prompt", "20261115_150038_8ea8ae"),
        ("cleared", "20261115_150154_e11249"),
        ("approval", "20261115_150154_e11249"),
    ],
)
def test_recorded_hooks_are_followed(host: DirectoryHost, stage: str, conversation: str) -> None:
    lines = samples.read(recorded.VERSION, f"hook_records/{stage}.jsonl").splitlines()
    host.hook_records = [msgspec.json.encode(msgspec.json.decode(line)["record"]) for line in reversed(lines)]
    assert found(host) == [(conversation, Evidence.HOOK, True)]


# -- the terminal interface -----------------------------------------------------------------------------------------


def tui(*keys: str) -> list[Process]:
    gateway = process("/home/dev/venv/bin/python3", "-m", "tui_gateway.entry", pid=102, ppid=101)
    words = ("/home/dev/venv/bin/python3", "-m", "tui_gateway.slash_worker", "--session-key")
    workers = [process(*words, key, "--model", "m", pid=103 + place, ppid=102) for place, key in enumerate(keys)]
    return [
        process("/usr/bin/node", "/home/dev/lib/hermes_cli/tui_dist/entry.js", pid=101, ppid=100),
        gateway,
        *workers,
    ]


def test_a_worker_names_the_conversation(host: DirectoryHost) -> None:
    keep(host, row(MINE, LATER))
    (first, _) = HERMES.identify(Seen(hermes("--tui", "--resume", OLD), *tui(MINE)), host)
    assert (first.conversation, first.evidence, first.certain, first.prompted) == (MINE, Evidence.REGISTRY, True, True)


def test_several_workers_name_several(host: DirectoryHost) -> None:
    claims = HERMES.identify(Seen(hermes("--tui"), *tui(MINE, LATE)), host)
    assert [(each.conversation, each.certain) for each in claims] == [(MINE, False), (LATE, False), (None, False)]


def test_the_terminal_interface_is_one_agent() -> None:
    seen = hermes("--tui")
    agent = agent_of([seen, *tui(MINE)])
    assert agent is not None
    assert (agent[0].name, agent[1]) == ("hermes", seen)


# -- the command line -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv", [("--resume", MINE), ("-r", MINE), (f"--resume={MINE}",), ("chat", "-r", MINE), ("--res", MINE)]
)
def test_the_command_line_names_it_while_it_is_open(host: DirectoryHost, argv: tuple[str, ...]) -> None:
    keep(host, row(MINE, -9000), row(LATE, LATER))
    # What was written here since may be where it went: whoever takes up what it left opens that again.
    assert found(host, *argv) == [(MINE, Evidence.ARGV, True), (LATE, Evidence.GUESS, False)]


def test_an_id_that_does_not_exist_is_neither_certain_nor_prompted(host: DirectoryHost) -> None:
    keep(host, row(OLD, -9000))
    (first, _) = HERMES.identify(Seen(hermes("--resume", MINE)), host)
    assert (first.conversation, first.evidence, first.certain, first.prompted) == (MINE, Evidence.ARGV, False, False)
    # It goes on under that id; once something is said there, it exists.
    keep(host, row(MINE, LATER))
    (first, _) = HERMES.identify(Seen(hermes("--resume", MINE)), host)
    assert (first.certain, first.prompted) == (True, True)


def test_without_a_database_the_command_line_is_all_there_is(host: DirectoryHost) -> None:
    (first, _) = HERMES.identify(Seen(hermes("--resume", MINE)), host)
    assert (first.conversation, first.certain, first.prompted) == (MINE, True, None)


@pytest.mark.parametrize("reason", ["new_session", "branched", "resumed_other"])
def test_it_is_left_when_its_row_says_so(host: DirectoryHost, reason: str) -> None:
    branch = f'{{"_branched_from": "{MINE}"}}' if reason == "branched" else ""
    begun = LATEST + 0.003 if reason != "resumed_other" else LATEST + 60
    after = row(LATE, begun, cwd="", model_config=branch, parent_session_id=MINE if branch else "")
    keep(host, row(MINE, -9000, ended=LATEST, end_reason=reason), after)
    claims = HERMES.identify(Seen(hermes("--resume", MINE)), host)
    assert [(each.conversation, each.evidence, each.certain) for each in claims[:-1]] == [(LATE, Evidence.GUESS, False)]
    assert claims[-1].left == (MINE,)


def test_a_branch_comes_before_what_another_process_began_at_the_same_time(host: DirectoryHost) -> None:
    branch = row(LATE, LATEST + 0.5, parent_session_id=MINE, model_config=f'{{"_branched_from": "{MINE}"}}', cwd="")
    other = row("20261115_141907_dddddd", LATEST + 0.1, cwd="")
    keep(host, row(MINE, -9000, ended=LATEST, end_reason="branched"), other, branch)
    assert [each[0] for each in found(host, "--resume", MINE)] == [LATE, "20261115_141907_dddddd"]


def test_one_that_was_left_before_this_process_resumed_it_is_not_left(host: DirectoryHost) -> None:
    keep(host, row(MINE, -9000, ended=BEFORE, end_reason="new_session"))
    assert found(host, "--resume", MINE) == [(MINE, Evidence.ARGV, True)]


def test_one_that_another_process_closed_may_have_been_left_without_a_trace(host: DirectoryHost) -> None:
    keep(host, row(MINE, -9000, ended=LATER, end_reason="cli_close"))
    assert found(host, "--resume", MINE) == [(MINE, Evidence.ARGV, False)]


def test_a_compacted_one_is_resumed_in_what_it_went_on_in(host: DirectoryHost) -> None:
    fork = row(OLD, BEFORE, parent_session_id=MINE, model_config=f'{{"_branched_from": "{MINE}"}}')
    onward = row(LATE, BEFORE, parent_session_id=MINE)
    keep(host, row(MINE, -9000, ended=BEFORE, end_reason="compression"), fork, onward)
    assert found(host, "--resume", MINE) == [(LATE, Evidence.ARGV, True)]


def test_a_title_names_one_too(host: DirectoryHost) -> None:
    keep(host, row(MINE, -9000, title="my project"), row(OLD, -9000, title="other"))
    # Titles move on, so that one says no more than where it may be.
    assert found(host, "-c", "my project") == [(MINE, Evidence.ARGV, False)]
    assert found(host, "-c") == []


# -- guesses --------------------------------------------------------------------------------------------------------


def test_what_began_with_the_process_comes_first_whatever_the_zone(host: DirectoryHost) -> None:
    keep(host, row(LATE, LATEST), row(MINE, LATER))
    assert found(host) == [(MINE, Evidence.GUESS, False), (LATE, Evidence.GUESS, False)]


def test_and_what_came_after_that(host: DirectoryHost) -> None:
    other = row("20261115_141907_dddddd", LATEST + 30)
    keep(host, row(MINE, LATER, ended=LATEST, end_reason="new_session"), row(LATE, LATEST + 0.001, cwd=""), other)
    assert [each[0] for each in found(host)] == [LATE, "20261115_141907_dddddd"]


def test_what_is_elsewhere_or_over_or_a_sub_agent_s_is_no_guess(host: DirectoryHost) -> None:
    keep(
        host,
        row(MINE, LATER, cwd="/elsewhere"),
        row(LATE, LATER, ended=LATEST, end_reason="cli_close"),
        row("20261115_141600_dddddd", LATER, source="subagent", parent_session_id=MINE),
        row(OLD, -9000),
    )
    assert found(host) == []


def test_an_old_one_that_is_written_to_again_is_a_guess(host: DirectoryHost) -> None:
    keep(host, row(OLD, -9000), said(OLD, "user", "again", LATER))
    assert found(host) == [(OLD, Evidence.GUESS, False)]


# -- profiles -------------------------------------------------------------------------------------------------------

CODER = f"{HOME}/.hermes/profiles/coder"


@pytest.mark.parametrize(
    ("argv", "environ", "chosen"),
    [
        (("-p", "coder"), {}, ""),
        (("--profile=coder",), {}, "other"),
        ((), {"HERMES_HOME": CODER}, "other"),
        ((), {}, "coder\n"),
        ((), {"HERMES_HOME": f"{HOME}/.hermes"}, "coder"),
        (("-p", "coder"), {"HERMES_HOME": f"{HOME}/.hermes/profiles/other"}, ""),
    ],
)
def test_a_profile_has_its_own_conversations(
    host: DirectoryHost, argv: tuple[str, ...], environ: dict[str, str], chosen: str
) -> None:
    keep(host, row(MINE, LATER), path=f"{CODER}/state.db")
    keep(host, row(LATE, LATER))
    if chosen:
        host.write(f"{HOME}/.hermes/active_profile", chosen)
    (first, _) = HERMES.identify(Seen(hermes(*argv, environ=environ)), host)
    assert (first.conversation, first.profile) == (MINE, "coder")


def test_the_database_it_holds_open_is_the_one(host: DirectoryHost) -> None:
    keep(host, row(MINE, LATER), path=f"{CODER}/state.db")
    host.opened[100] = ["/dev/null", f"{CODER}/state.db", f"{CODER}/state.db-wal"]
    (first, _) = HERMES.identify(Seen(hermes()), host)
    assert (first.conversation, first.profile) == (MINE, "coder")
    details = HERMES.describe(first, hermes(), host)
    assert details.transcript == f"{CODER}/state.db"


def test_the_usual_home_is_no_profile(host: DirectoryHost) -> None:
    keep(host, row(MINE, LATER))
    host.write(f"{HOME}/.hermes/active_profile", "default")
    assert HERMES.identify(Seen(hermes()), host)[0].profile is None
    assert HERMES.identify(Seen(hermes("-p", "default")), host)[0].profile is None


def test_turns_are_found_in_a_profile_too(host: DirectoryHost) -> None:
    keep(host, row(OLD, LATER))
    keep(host, row(MINE, LATER), said(MINE, "user", "hello", LATER), path=f"{CODER}/state.db")
    assert [turn["text"] for turn in HERMES.turns(MINE, host)] == ["hello"]


# -- coming back ----------------------------------------------------------------------------------------------------

HEAD = ("python3", "/home/dev/venv/bin/hermes")


@pytest.mark.parametrize(
    ("launched", "resumed"),
    [
        ([], ["--resume", MINE]),
        (["-r", OLD], ["--resume", MINE]),
        (["--resume=my title", "--yolo"], ["--yolo", "--resume", MINE]),
        (["-c", "my title", "-m", "stub"], ["-m", "stub", "--resume", MINE]),
        (["-w", "--accept-hooks", "-s", "one,two"], ["--accept-hooks", "-s", "one,two", "--resume", MINE]),
        (["-m", "a", "chat", "--max-turns", "9"], ["chat", "-m", "a", "--max-turns", "9", "--resume", MINE]),
        (["-p", "coder", "--tui"], ["-p", "coder", "--tui", "--resume", MINE]),
        (["--prov", "custom", "--cont"], ["--prov", "custom", "--resume", MINE]),
    ],
)
def test_it_comes_back_with_what_made_it_what_it_was(launched: list[str], resumed: list[str]) -> None:
    identity = Identity(agent="hermes", conversation=MINE, prompted=True)
    command = HERMES.resume(identity, Command(argv=(*HEAD, *launched), cwd=CWD))
    assert command == Command(argv=(*HEAD, *resumed), cwd=CWD)


@pytest.mark.parametrize(
    ("profile", "environ", "resumed"),
    [
        ("coder", {}, ("--profile", "coder", "--resume", MINE)),
        ("coder", {"HERMES_HOME": "/home/dev/.hermes"}, ("--resume", MINE)),
        (".hermes", {}, ("--resume", MINE)),
        (None, {}, ("--resume", MINE)),
    ],
)
def test_a_profile_chosen_for_good_is_named_by_then(
    profile: str | None, environ: dict[str, str], resumed: tuple[str, ...]
) -> None:
    identity = Identity(agent="hermes", conversation=MINE, prompted=True, profile=profile)
    command = HERMES.resume(identity, Command(argv=HEAD, cwd=CWD, environ=environ))
    assert command is not None
    assert command.argv == (*HEAD, *resumed)
    assert HERMES.resume(identity, command) == command


def test_one_in_which_nothing_was_said_starts_afresh() -> None:
    identity = Identity(agent="hermes", conversation=MINE, prompted=False)
    command = HERMES.resume(identity, Command(argv=(*HEAD, "chat", "--resume", MINE, "--checkpoints"), cwd=CWD))
    assert command is not None
    assert command.argv == (*HEAD, "chat", "--checkpoints")


def test_one_in_no_conversation_is_started_as_it_was() -> None:
    launched = Command(argv=(*HEAD, "chat", "--checkpoints"), cwd=CWD)
    assert HERMES.resume(Identity(agent="hermes", prompted=False), launched) == launched
    assert HERMES.resume(Identity(agent="hermes"), launched) is None


def test_that_nothing_was_said_is_known_where_nothing_was_written(host: DirectoryHost) -> None:
    """Beside others in its directory it is in none of theirs, and in none of its own."""
    keep(host, row(LATE, LATER))
    *_, last = HERMES.identify(Seen(hermes("--yolo")), host)
    assert (last.conversation, last.prompted) == (None, False)


@pytest.mark.parametrize("argv", [("--continue",), ("-c", "some title"), ("--resume", "some title"), ("--resume", OLD)])
def test_one_that_was_told_to_go_on_may_be_in_something_old(host: DirectoryHost, argv: tuple[str, ...]) -> None:
    keep(host, row(OLD, -9000))
    *_, last = HERMES.identify(Seen(hermes(*argv)), host)
    assert (last.conversation, last.prompted) == (None, None)


@pytest.mark.parametrize("hooked", [True, False])
def test_one_that_left_a_conversation_may_be_in_something_old(host: DirectoryHost, hooked: bool) -> None:
    keep(host, row(MINE, LATER, ended=LATEST, end_reason="resumed_other"), row(OLD, -9000))
    record(host, *([("on_session_end", MINE)] if hooked else []))
    assert HERMES.identify(Seen(hermes()), host)[-1].prompted is None


def test_nothing_is_known_where_the_database_cannot_be_asked(host: DirectoryHost) -> None:
    assert HERMES.identify(Seen(hermes()), host)[-1].prompted is None


# -- what it is about -----------------------------------------------------------------------------------------------


def test_a_branch_is_described(host: DirectoryHost) -> None:
    host.write(DATABASE, samples.read(recorded.VERSION, "state.db"))
    details = HERMES.describe(Identity(agent="hermes", conversation=recorded.BRANCH), hermes(), host)
    assert (details.title, details.task, details.parent) == ("side", "on the branch", recorded.COMPACTED)
    assert (details.model, details.provider, details.branch) == ("stub-model", "custom", None)
    # It keeps sums over all requests, not what the last one held.
    assert (details.context_used, details.context_limit) == (None, None)
    assert details.began_at is not None
    assert details.last_activity_at is not None


def test_what_a_compaction_copies_is_said_once(host: DirectoryHost) -> None:
    host.write(DATABASE, samples.read(recorded.VERSION, "state.db"))
    turns = list(HERMES.turns(recorded.COMPACTED, host))
    prompts = [turn["text"] for turn in turns if turn["role"] == "user" and turn["agent"] is None]
    assert prompts[:8] == [
        *(f"question number {n}" for n in range(1, 7)),
        "run it [[tool=echo one two]]",
        "after compress",
    ]
    assert [str(turn["text"])[:19] for turn in turns if turn["role"] == "system"] == [
        "[CONTEXT COMPACTION",
        "[ASYNC DELEGATION B",
    ]
    assert [turn["text"] for turn in turns if turn["agent"] == recorded.CHILD][:1] == ["child goal sample"]


def test_one_that_went_on_elsewhere_is_read_whole(host: DirectoryHost) -> None:
    keep(
        host,
        row(MINE, 0, ended=5, end_reason="compression"),
        row(LATE, 5, parent_session_id=MINE),
        said(MINE, "user", "before", 1),
        said(LATE, "assistant", "", 6, tool_calls='[{"function": {"name": "terminal"}}, 5]'),
        said(LATE, "tool", "done", 7, tool_name="terminal"),
        said(LATE, "user", "taken back", 8, active=0),
        said(LATE, "session_meta", "nothing", 9),
        said(LATE, "user", "x", 10).replace("'x'", 'char(0) || \'json:[{"type": "text", "text": "a picture"}]\''),
    )
    turns = [(turn["role"], turn["text"], turn["tool"]) for turn in HERMES.turns(LATE, host)]
    assert turns == [
        ("user", "before", None),
        ("system", "The conversation was compacted.", None),
        ("assistant", "", "terminal, ?"),
        ("tool", "done", "terminal"),
        ("user", "a picture", None),
    ]
