"""Which session a goose process is in, what is known of it, and how it comes back."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from perdure.agents.goose import Goose
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.process import Command
from tests.contract.agents import samples
from tests.contract.agents.cases.goose import COMPACTED, DATABASE, DELEGATING, FRESH, INTERRUPTED, VERSION
from tests.unit.agents.hosts import CWD, HOME, DirectoryHost, Seen, jsonl, process

GOOSE = Goose()
LOG = f"{HOME}/.local/state/goose/logs/cli/2026-11-15/20261115_083000.log"
SCHEMA = """
    CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, session_type TEXT, working_dir TEXT, created_at TIMESTAMP,
        updated_at TIMESTAMP, total_tokens INTEGER, provider_name TEXT, model_config_json TEXT);
    CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT,
        created_timestamp INTEGER, metadata_json TEXT);
"""
BEGAN = {"fields": {"message": "CLI command executed", "command": "session"}, "target": "goose_cli::cli"}


def session(
    id: str, *, began: str = "08:30:00", wrote: str = "08:31:00", kind: str = "user", name: str = "n", cwd: str = CWD
) -> str:
    times = f"'2026-11-15 {began}', '2026-11-15 {wrote}'"
    return f"INSERT INTO sessions VALUES ('{id}', '{name}', '{kind}', '{cwd}', {times}, NULL, 'openai', '{{}}');"


def keep(host: DirectoryHost, *sessions: str, path: str = DATABASE) -> None:
    host.make_database(path, SCHEMA + "".join(sessions))


def said(session: str, *inner: str) -> dict[str, object]:
    spans = [{"session.id": each, "name": "reply_stream"} for each in (session, *inner)]
    return {"fields": {"trace_output": "x"}, "span": spans[-1], "spans": spans}


def hold_log(host: DirectoryHost, *records: Mapping[str, object]) -> None:
    host.write(LOG, jsonl(*records))
    host.opened[100] = ["/dev/pts/1", DATABASE, LOG]


def first(host: DirectoryHost, *argv: str, **more: str) -> Identity:
    return GOOSE.identify(Seen(process("goose", *(argv or ("session",)), environ=more)), host)[0]


def everything(host: DirectoryHost, *argv: str) -> list[str | None]:
    return [each.conversation for each in GOOSE.identify(Seen(process("goose", *argv)), host)]


def test_the_log_it_holds_open_makes_the_session_certain(host: DirectoryHost) -> None:
    keep(host, session("20261115_1"), session("20261115_2"))
    hold_log(host, BEGAN, said("20261115_2"))
    found = first(host)
    assert (found.conversation, found.evidence, found.certain) == ("20261115_2", Evidence.OPEN_FILE, True)


def test_a_sub_agent_s_session_is_not_the_process_s(host: DirectoryHost) -> None:
    keep(host, session("20261115_1"), session("20261115_2", kind="sub_agent"))
    hold_log(host, BEGAN, said("20261115_1"), said("20261115_2"), said("20261115_1", "20261115_2"))
    assert first(host).conversation == "20261115_1"
    hold_log(host, BEGAN, said("20261115_1"), said("20261115_2"))
    assert first(host).conversation == "20261115_1"


def test_the_recorded_log_names_the_session_that_delegated(host: DirectoryHost) -> None:
    host.write(DATABASE, samples.read(VERSION, "sessions.db"))
    host.write(LOG, samples.read(VERSION, "cli.log"))
    host.opened[100] = [LOG]
    found = first(host)
    assert (found.conversation, found.certain, found.prompted) == (DELEGATING, True, True)


def test_a_log_two_processes_began_makes_nothing_certain(host: DirectoryHost) -> None:
    keep(host, session("20261115_1"), session("20261115_2"))
    hold_log(host, BEGAN, BEGAN, said("20261115_2"))
    claims = GOOSE.identify(Seen(process("goose", "session")), host)
    assert [each.conversation for each in claims] == ["20261115_1", "20261115_2", None]
    assert not any(each.certain for each in claims)
    assert "shared with another" in claims[0].because[0]


def test_its_own_tool_servers_write_into_its_log_and_share_nothing(host: DirectoryHost) -> None:
    keep(host, session("20261115_1"))
    server = {"fields": {"message": "CLI command executed", "command": "mcp"}, "target": "goose_cli::cli"}
    hold_log(host, BEGAN, server, said("20261115_1"))
    assert first(host).certain


def test_a_log_that_does_not_tell_who_began_it_makes_nothing_certain(host: DirectoryHost) -> None:
    keep(host, session("20261115_1"))
    hold_log(host, said("20261115_1"))
    assert not first(host).certain


def test_before_anything_was_said_the_session_that_began_with_it_is_a_guess(host: DirectoryHost) -> None:
    keep(
        host,
        session("20261115_1", began="08:00:00", wrote="08:29:00"),
        session("20261115_2", began="08:29:59"),
        session("20261115_3", began="08:30:05"),
        session("20261115_4", began="08:30:00", cwd="/home/dev/work/proj2"),
        session("20261115_5", began="08:30:00", kind="acp"),
    )
    hold_log(host, BEGAN)
    claims = GOOSE.identify(Seen(process("goose", "session")), host)
    assert [each.conversation for each in claims] == ["20261115_2", "20261115_3", None]
    assert {each.evidence for each in claims[:-1]} == {Evidence.GUESS}
    assert not claims[0].certain


def test_a_new_session_s_name_tells_it_from_others_begun_with_it(host: DirectoryHost) -> None:
    keep(host, session("20261115_1"), session("20261115_2", began="08:30:01", name="mine"))
    assert everything(host, "session", "--name", "mine") == ["20261115_2", "20261115_1", None]


def test_the_session_it_was_told_to_resume_is_certain(host: DirectoryHost) -> None:
    keep(host, session("20261115_1", began="08:00:00"))
    for argv in (("--resume", "--session-id", "20261115_1"), ("-r", "--path", "/old/20261115_1.jsonl")):
        found = first(host, "session", *argv)
        assert (found.conversation, found.evidence, found.certain) == ("20261115_1", Evidence.ARGV, True)


def test_what_was_written_since_speaks_against_a_name_unless_its_own_log_is_silent(host: DirectoryHost) -> None:
    keep(host, session("20261115_1", began="08:00:00", name="mine"), session("20261115_2"))
    argv = ("session", "-r", "--name", "mine")
    assert everything(host, *argv) == ["20261115_1", "20261115_2", None]
    hold_log(host, BEGAN)
    assert everything(host, *argv) == ["20261115_1", None]


def test_nothing_speaks_against_an_id_because_goose_stays_where_it_began(host: DirectoryHost) -> None:
    """Two that a restore starts in one directory and in the same second share a log, and are told apart all the same."""
    keep(host, session("20261115_1", began="08:00:00"), session("20261115_2", began="08:00:00"))
    hold_log(host, BEGAN, BEGAN, said("20261115_2"), said("20261115_1"))
    for mine in ("20261115_1", "20261115_2"):
        claims = GOOSE.identify(Seen(process("goose", "session", "-r", "--session-id", mine)), host)
        assert [(each.conversation, each.certain) for each in claims] == [(mine, True), (None, False)]


def test_a_session_nobody_knows_is_doubtful(host: DirectoryHost) -> None:
    keep(host)
    assert not first(host, "session", "-r", "--session-id", "20261115_9").certain


def test_a_resumed_name_is_looked_up_and_doubtful_when_several_bear_it(host: DirectoryHost) -> None:
    keep(host, session("20261115_1", began="08:00:00", name="mine"))
    found = first(host, "session", "-r", "-n", "mine")
    assert (found.conversation, found.certain) == ("20261115_1", True)
    assert first(host, "session", "-r", "-n", "20261115_1").conversation == "20261115_1"
    assert first(host, "session", "-r", "-n", "theirs").evidence is not Evidence.ARGV
    both = [session(f"20261115_{each}", began="08:00:00", wrote=f"08:4{each}:00", name="mine") for each in (1, 2)]
    keep(host, *both)
    found = first(host, "session", "-r", "-n", "mine")
    assert (found.conversation, found.certain) == ("20261115_2", False)


@pytest.mark.parametrize("argv", [("-r",), ("-r", "--session-id", "20261115_1", "--fork")])
def test_the_latest_and_a_fork_are_guesses(host: DirectoryHost, argv: tuple[str, ...]) -> None:
    keep(host, session("20261115_1", began="08:00:00", wrote="08:30:00"), session("20261115_2"))
    found = first(host, "session", *argv)
    assert (found.conversation, found.evidence) == ("20261115_2", Evidence.GUESS)


def test_its_home_is_where_the_variables_say(host: DirectoryHost) -> None:
    resumed = ("session", "-r", "--session-id", "20261115_1")
    keep(host, session("20261115_1"), path="/srv/place/data/sessions/sessions.db")
    found = first(host, *resumed, GOOSE_PATH_ROOT="/srv/place")
    assert (found.certain, found.profile) == (True, "place")
    keep(host, session("20261115_1"), path="/srv/xdg/goose/sessions/sessions.db")
    found = first(host, *resumed, XDG_DATA_HOME="/srv/xdg")
    assert (found.certain, found.profile) == (True, "xdg")
    assert first(host, *resumed, GOOSE_PATH_ROOT="relative").profile is None
    assert first(host, *resumed, XDG_DATA_HOME=f"{HOME}/.local/share").profile is None


def test_what_the_database_says_is_told(host: DirectoryHost) -> None:
    host.write(DATABASE, samples.read(VERSION, "sessions.db"))
    details = GOOSE.describe(Identity(agent="goose", conversation=COMPACTED), process("goose", "session"), host)
    assert details == AgentDetails(
        title="Stub aside 39",
        task="more [[delay=5]]",
        model="gpt-4o",
        provider="openai",
        transcript=DATABASE,
        context_used=4003,
        context_limit=128000,
        began_at=details.began_at,
        last_activity_at=details.last_activity_at,
    )
    assert str(details.began_at) == "2026-11-15 14:51:31+00:00"
    assert str(details.last_activity_at) == "2026-11-15 14:51:38+00:00"
    fresh = GOOSE.describe(Identity(agent="goose", conversation=FRESH), process("goose", "session"), host)
    assert (fresh.title, fresh.task, fresh.context_used) == (None, None, None)
    assert GOOSE.describe(Identity(agent="goose"), process("goose"), host) == AgentDetails()
    assert GOOSE.describe(Identity(agent="goose", conversation="20260101_1"), process("goose"), host) == AgentDetails()


def test_a_session_cleared_or_never_prompted_says_so(host: DirectoryHost) -> None:
    host.write(DATABASE, samples.read(VERSION, "sessions.db"))
    for conversation, prompted in ((FRESH, False), (INTERRUPTED, True)):
        assert first(host, "session", "-r", "--session-id", conversation).prompted is prompted


def test_sub_agents_are_kept_apart(host: DirectoryHost) -> None:
    host.write(DATABASE, samples.read(VERSION, "sessions.db"))
    turns = list(GOOSE.turns(DELEGATING, host))
    assert [(turn["role"], turn["tool"], turn["agent"]) for turn in turns] == [
        ("user", None, None),
        ("assistant", "delegate", None),
        ("tool", "delegate", None),
        ("assistant", None, None),
        ("user", None, "20261115_21"),
        ("assistant", None, "20261115_21"),
    ]


def test_a_session_of_another_directory_comes_back_there(host: DirectoryHost) -> None:
    keep(host, session("20261115_1", cwd="/home/dev/work/proj2"))
    found = first(host, "session", "-r", "--session-id", "20261115_1")
    assert found.home == "/home/dev/work/proj2"
    command = GOOSE.resume(found, Command(argv=("goose",), cwd=CWD))
    assert command is not None
    assert command.cwd == "/home/dev/work/proj2"


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("", ""),
        ("session --name mine", ""),
        ("session -r --session-id 20261115_1 --history --fork", ""),
        (
            "s --with-builtin developer --with-builtin=memory --no-profile",
            "--with-builtin developer --with-builtin=memory --no-profile",
        ),
        ("run -t hello -s --model gpt-4.1 --max-turns 5 --debug", "--max-turns 5 --debug"),
        ("run --recipe r.yaml --params a=b -s --container c1", "--container c1"),
    ],
)
def test_what_made_it_what_it_was_comes_back_and_what_acts_once_does_not(words: str, kept: str) -> None:
    identity = Identity(agent="goose", conversation="20261115_2")
    command = GOOSE.resume(identity, Command(argv=("goose", *words.split()), cwd=CWD))
    assert command is not None
    tail = ["--resume", "--session-id", "20261115_2", "--history"]
    assert list(command.argv) == ["goose", "session", *kept.split(), *tail]


def test_it_holds_for_a_session_in_which_nothing_was_said() -> None:
    identity = Identity(agent="goose", conversation="20261115_2", prompted=False)
    command = GOOSE.resume(identity, Command(argv=("goose",), cwd=CWD))
    assert command is not None
    assert command.argv == ("goose", "session", "--resume", "--session-id", "20261115_2", "--history")
