"""opencode: which conversation, how it comes back, what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import msgspec
import pytest

from perdure.agents.opencode import OpenCode
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Command
from tests.contract.agents import samples
from tests.unit.agents.hosts import BEFORE, CWD, HOME, LATER, LATEST, STARTED, DirectoryHost, Seen, process

A, B, CHILD = "ses_aaaaaaaaaaaaaaaaaaaaaaaaaa", "ses_bbbbbbbbbbbbbbbbbbbbbbbbbb", "ses_cccccccccccccccccccccccccc"
DATABASE = f"{HOME}/.local/share/opencode/opencode.db"
NAMELESS = "New session - 2026-11-15T08:42:19.010Z"
OPENCODE = OpenCode()

SCHEMA = """
CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT, time_created INT, time_updated INT);
CREATE TABLE message (id TEXT, session_id TEXT, time_created INT, data TEXT);
CREATE TABLE part (id TEXT, message_id TEXT, data TEXT);
"""


def at(seconds: float) -> int:
    return int((STARTED.timestamp() + seconds) * 1000)


def row(
    ident: str,
    title: str,
    *,
    parent: str | None = None,
    directory: str = CWD,
    begun: float = LATER,
    updated: float = LATER,
) -> str:
    up = f"'{parent}'" if parent else "NULL"
    return f"INSERT INTO session VALUES ('{ident}', {up}, '{directory}', '{title}', '1.18.33', {at(begun)}, {at(updated)});"


def message(ident: str, session: str, when: float, data: Mapping[str, object], *parts: Mapping[str, object]) -> str:
    said = msgspec.json.encode(data).decode().replace("'", "''")
    rows = [f"INSERT INTO message VALUES ('{ident}', '{session}', {at(when)}, '{said}');"]
    for place, part in enumerate(parts):
        text = msgspec.json.encode(part).decode().replace("'", "''")
        rows.append(f"INSERT INTO part VALUES ('{ident}-{place}', '{ident}', '{text}');")
    return "".join(rows)


def keep(host: DirectoryHost, *rows: str) -> None:
    host.make_database(DATABASE, SCHEMA + "".join(rows))


def record(host: DirectoryHost, *conversations: str) -> None:
    """Let the plugin have recorded these, the last one last."""
    host.hook_records = [
        msgspec.json.encode({"session_id": each, "hook_event_name": "message.updated", "timestamp": 1})
        for each in reversed(conversations)
    ]


def found(host: DirectoryHost, *argv: str, title: str = "") -> list[tuple[str | None, Evidence | None, bool]]:
    claims = OPENCODE.identify(Seen(process("opencode", *argv), title=title), host)
    return [(each.conversation, each.evidence, each.certain) for each in claims[:-1]]


# -- the plugin's records -------------------------------------------------------------------------------------------


def test_a_record_names_the_conversation(host: DirectoryHost) -> None:
    keep(host, row(A, "First"), row(B, "Second"))
    record(host, A, B)
    assert found(host, title="OC | Second") == [(B, Evidence.HOOK, True)]


def test_without_its_title_nothing_tells_of_a_switch_so_nothing_is_certain(host: DirectoryHost) -> None:
    keep(host, row(A, "First"), row(B, "Second"))
    assert found(host, "-s", A)[0] == (A, Evidence.ARGV, False)
    record(host, A, B)
    assert found(host) == [(B, Evidence.HOOK, False)]


def test_between_conversations_of_one_title_one_may_go_unseen(host: DirectoryHost) -> None:
    keep(host, row(A, "Same"), row(B, "Same", begun=BEFORE, updated=BEFORE))
    assert not any(certain for _, _, certain in found(host, "-s", A, title="OC | Same"))
    record(host, A)
    assert found(host, title="OC | Same") == [(A, Evidence.HOOK, False)]


def test_a_record_counts_where_the_database_cannot_be_read(host: DirectoryHost) -> None:
    record(host, A)
    assert found(host, title="OC | First") == [(A, Evidence.HOOK, False)]


def test_a_sub_agent_s_record_is_its_caller_s(host: DirectoryHost) -> None:
    keep(host, row(A, "First"), row(CHILD, "look (@general subagent)", parent=A))
    record(host, A, CHILD)
    assert found(host, title="OC | First") == [(A, Evidence.HOOK, True)]


def test_looking_at_a_sub_agent_is_no_leaving(host: DirectoryHost) -> None:
    keep(host, row(A, "First"), row(CHILD, "look (@general subagent)", parent=A))
    record(host, A)
    assert found(host, title="OC | look (@general subagent)") == [(A, Evidence.HOOK, True)]


def test_after_new_there_is_no_conversation_until_a_prompt(host: DirectoryHost) -> None:
    keep(host, row(A, "First"))
    record(host, A)
    claims = OPENCODE.identify(Seen(process("opencode"), title="OpenCode"), host)
    assert [each.conversation for each in claims] == [None]
    assert claims[-1].left == (A,)
    # So it is known that nothing was said, and it can begin anew.
    assert claims[-1].prompted is False


def test_one_that_shows_no_page_of_its_own_may_be_anywhere(host: DirectoryHost) -> None:
    keep(host, row(A, "First", updated=BEFORE))
    for argv, title in (((), "vim"), ((), "OC | a viewer"), (("-s", A), "OpenCode")):
        last = OPENCODE.identify(Seen(process("opencode", *argv), title=title), host)[-1]
        assert (last.conversation, last.prompted) == (None, None)


def test_one_in_no_conversation_is_started_as_it_was() -> None:
    launched = Command(argv=("opencode", "--agent", "plan", "--prompt", "hello"), cwd=CWD)
    command = OPENCODE.resume(Identity(agent="opencode", prompted=False), launched)
    assert command == Command(argv=("opencode", "--agent", "plan"), cwd=CWD)
    assert OPENCODE.resume(Identity(agent="opencode"), launched) is None


def test_on_the_first_page_whatever_has_a_title_was_left_if_it_was_ever_shown(host: DirectoryHost) -> None:
    keep(host, row(A, "First"), row(B, "Second", updated=BEFORE), row("ses_dddddddddddddddddddddddddd", NAMELESS))
    claims = OPENCODE.identify(Seen(process("opencode"), title="OpenCode"), host)
    assert claims[-1].left == (A, B)


def claims(host: DirectoryHost, title: str, seconds: float) -> list[tuple[str | None, Evidence | None, bool]]:
    """What is known some seconds after the process has started."""
    seen = Seen(process("opencode"), title=title, at=STARTED + timedelta(seconds=seconds))
    return [(each.conversation, each.evidence, each.certain) for each in OPENCODE.identify(seen, host)[:-1]]


@pytest.mark.parametrize("hooked", [True, False])
def test_a_title_is_in_the_database_before_it_is_in_sight(host: DirectoryHost, hooked: bool) -> None:
    """It need not have been left in that moment."""
    keep(host, row(A, "First"))
    record(host, *([A] if hooked else []))
    assert claims(host, "OpenCode", LATER + 0.2) == [(A, Evidence.GUESS, False)]
    assert claims(host, "OpenCode", LATER + 60) == []


@pytest.mark.parametrize("hooked", [True, False])
def test_the_first_page_may_mean_that_what_had_a_title_was_left(host: DirectoryHost, hooked: bool) -> None:
    keep(host, row(A, "First"), row(B, NAMELESS))
    record(host, *([A] if hooked else []))
    seen = Seen(process("opencode"), title="OpenCode", at=STARTED + timedelta(seconds=LATER + 0.2))
    assert OPENCODE.identify(seen, host)[-1].perhaps_left == (A,)


def test_a_title_that_was_taken_back_says_nothing_against_what_was_known(host: DirectoryHost) -> None:
    """The program ends. A record that is not certain would shake every memory."""
    keep(host, row(A, "First"))
    record(host, A)
    assert claims(host, "", LATER + 60) == [(A, Evidence.GUESS, False)]
    assert claims(host, "box", LATER + 60) == [(A, Evidence.HOOK, False)]


def test_not_even_that_of_the_command_line(host: DirectoryHost) -> None:
    keep(host, row(A, "First"), row(B, "Second", updated=BEFORE))
    record(host, A)
    assert found(host, "-s", B, title="OpenCode") == []


def test_a_switch_that_nobody_reports_is_seen_in_the_title(host: DirectoryHost) -> None:
    keep(host, row(A, "First"), row(B, "Second", begun=BEFORE, updated=BEFORE))
    record(host, A)
    claims = OPENCODE.identify(Seen(process("opencode"), title="OC | Second"), host)
    assert (claims[0].conversation, claims[0].evidence, claims[0].certain) == (B, Evidence.TITLE, True)
    assert claims[-1].left == (A,)


def test_a_title_two_conversations_have_is_not_certain(host: DirectoryHost) -> None:
    other = "ses_dddddddddddddddddddddddddd"
    keep(host, row(A, "First"), row(B, "Same", directory="/elsewhere", updated=LATEST), row(other, "Same"))
    record(host, A)
    assert found(host, title="OC | Same") == [(other, Evidence.TITLE, False), (B, Evidence.TITLE, False)]


def test_a_cut_title_fits_what_begins_so(host: DirectoryHost) -> None:
    long = "Explain the whole build and everything that hangs on it"
    keep(host, row(A, long), row(B, "Explain the whole test"))
    record(host, A)
    assert found(host, title=f"OC | {long[:37]}…") == [(A, Evidence.HOOK, True)]


def test_a_viewer_s_title_leaves_doubt_but_says_nothing_else(host: DirectoryHost) -> None:
    keep(host, row(A, "First"))
    record(host, A)
    claims = OPENCODE.identify(Seen(process("opencode"), title="OC | diff"), host)
    assert [(each.conversation, each.certain) for each in claims] == [(A, False), (None, False)]
    assert claims[-1].left == ()


@pytest.mark.parametrize(
    ("last", "certain"),
    [
        ({"role": "user"}, True),
        ({"role": "assistant", "time": {"created": 1}}, True),
        ({"role": "assistant", "time": {"created": 1, "completed": 2}, "finish": "tool-calls"}, True),
        ({"role": "assistant", "time": {"created": 1, "completed": 2}, "finish": "stop"}, False),
    ],
)
def test_a_conversation_without_a_title_looks_like_the_first_page_once_it_should_have_one(
    host: DirectoryHost, last: dict[str, object], certain: bool
) -> None:
    keep(host, row(A, NAMELESS), message("m1", A, LATER, last))
    record(host, A)
    assert found(host, title="OpenCode") == [(A, Evidence.HOOK, certain)]


def test_a_record_of_a_conversation_that_was_deleted_is_doubted(host: DirectoryHost) -> None:
    keep(host, row(B, "Second"))
    record(host, A)
    assert found(host) == [(A, Evidence.HOOK, False)]
    assert found(host, title="OpenCode") == []


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"session_id": "x"}'])
def test_a_record_that_cannot_be_read_makes_older_ones_uncertain(host: DirectoryHost, raw: bytes) -> None:
    keep(host, row(A, "First"))
    record(host, A)
    host.hook_records.insert(0, raw)
    assert found(host) == [(A, Evidence.HOOK, False)]


def test_a_record_without_a_conversation_says_nothing(host: DirectoryHost) -> None:
    keep(host, row(A, "First"))
    record(host, A)
    host.hook_records.insert(0, b'{"hook_event_name": "plugin.init"}')
    assert found(host, title="OC | First") == [(A, Evidence.HOOK, True)]


@pytest.mark.parametrize(
    ("stage", "conversation"),
    [
        ("first_prompt", "ses_e204599abffewWFsnpVFQyIkoV"),
        ("cleared", "ses_e204599abffewWFsnpVFQyIkoV"),
        ("approval", "ses_e2044f4ccffeFj54ob3ukN7W1E"),
    ],
)
def test_recorded_records_are_followed(host: DirectoryHost, stage: str, conversation: str) -> None:
    lines = samples.read("opencode-1.18.33", f"hook_records/{stage}.jsonl").splitlines()
    host.hook_records = [msgspec.json.encode(msgspec.json.decode(line)["record"]) for line in reversed(lines)]
    assert found(host) == [(conversation, Evidence.HOOK, False)]
    keep(host, row(conversation, "First"))
    assert found(host, title="OC | First") == [(conversation, Evidence.HOOK, True)]


# -- the command line -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [("-s", A), ("--session", A), (f"--session={A}",), (f"-s={A}",), (f"-s{A}",)])
def test_the_command_line_names_it(host: DirectoryHost, argv: tuple[str, ...]) -> None:
    keep(host, row(A, "First", begun=BEFORE, updated=BEFORE))
    assert found(host, *argv, title="OC | First") == [(A, Evidence.ARGV, True)]
    assert found(host, *argv) == [(A, Evidence.GUESS, False)]


def test_a_fork_is_not_the_one_the_command_line_names(host: DirectoryHost) -> None:
    keep(host, row(A, "First"), row(B, "First (fork #1)"))
    assert found(host, "-s", A, "--fork", title="OC | First (fork #1)") == [(B, Evidence.TITLE, True)]
    assert {each[1] for each in found(host, "-s", A, "--fork")} == {Evidence.GUESS}


def test_what_is_written_here_beside_it_may_speak_against_it(host: DirectoryHost) -> None:
    keep(host, row(A, "First"), row(B, "Second"), row(CHILD, "look", parent=A))
    assert found(host, "-s", A) == [(A, Evidence.ARGV, False), (B, Evidence.GUESS, False)]
    assert found(host, "-s", A, title="OC | First") == [(A, Evidence.ARGV, True)]


def test_it_is_left_for_what_the_title_shows(host: DirectoryHost) -> None:
    keep(host, row(A, "First"), row(B, "Second"))
    assert found(host, "-s", A, title="OC | Second") == [(B, Evidence.TITLE, True)]
    assert found(host, "-s", A, title="OpenCode") == []


def test_while_it_starts_the_title_may_be_that_of_a_killed_one(host: DirectoryHost) -> None:
    """Nothing was written by this process yet, so nothing here is certain."""
    keep(host, row(A, "First", begun=BEFORE, updated=BEFORE), row(B, "Second", begun=BEFORE, updated=BEFORE))
    assert found(host, "-s", A, title="OC | Second") == [(B, Evidence.TITLE, False), (A, Evidence.GUESS, False)]
    assert found(host, "-s", A, title="OpenCode") == [(A, Evidence.GUESS, False)]
    # A doubt about the command line would be remembered, and outlive the moment in which there is no title yet.
    assert found(host, "-s", A, title="box") == [(A, Evidence.GUESS, False)]
    assert found(host, title="OC | Second") == [(B, Evidence.TITLE, False)]


def test_a_conversation_that_is_not_there_is_not_certain(host: DirectoryHost) -> None:
    keep(host, row(B, "Second", updated=BEFORE))
    (first, _) = OPENCODE.identify(Seen(process("opencode", "-s", A)), host)
    assert (first.conversation, first.certain, first.prompted) == (A, False, False)


# -- title and guess ------------------------------------------------------------------------------------------------


def test_a_title_only_one_has_is_enough(host: DirectoryHost) -> None:
    keep(host, row(A, "First"), row(B, "Second"))
    assert found(host, title="OC | First") == [(A, Evidence.TITLE, True)]


def test_without_a_title_of_its_own_it_is_guessed_by_directory_and_time(host: DirectoryHost) -> None:
    elsewhere = row("ses_eeeeeeeeeeeeeeeeeeeeeeeeee", "Third", directory="/elsewhere", updated=LATEST)
    old = row("ses_ffffffffffffffffffffffffff", "Fourth", begun=BEFORE, updated=BEFORE)
    keep(host, row(A, "First"), row(B, "Second", updated=LATEST), elsewhere, old)
    assert found(host, title="box") == [(B, Evidence.GUESS, False), (A, Evidence.GUESS, False)]


def test_on_the_first_page_only_one_without_a_title_can_be_it(host: DirectoryHost) -> None:
    keep(host, row(A, "First"), row(B, NAMELESS))
    assert found(host, title="OpenCode") == [(B, Evidence.GUESS, False)]


def test_another_data_directory_is_another_profile(host: DirectoryHost) -> None:
    host.make_database("/home/dev/alt/opencode/opencode.db", SCHEMA + row(A, "First"))
    seen = process("opencode", environ={"XDG_DATA_HOME": "/home/dev/alt"})
    (first, _) = OPENCODE.identify(Seen(seen, title="OC | First"), host)
    assert (first.conversation, first.profile, first.prompted) == (A, "alt", True)
    named = process("opencode", environ={"OPENCODE_DB": "/home/dev/alt/opencode/opencode.db"})
    assert OPENCODE.identify(Seen(named, title="OC | First"), host)[0].profile == "opencode.db"


def test_it_remembers_where_it_was_begun(host: DirectoryHost) -> None:
    keep(host, row(A, "First", directory="/home/dev/other"))
    (first, _) = OPENCODE.identify(Seen(process("opencode", "-s", A), title="OC | First"), host)
    assert first.home == "/home/dev/other"


# -- coming back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("launched", "resumed"),
    [
        ([], ["-s", A]),
        (["-s", B], ["-s", A]),
        (["--continue", "--fork", "--prompt", "do it"], ["-s", A]),
        (
            ["-m", "stub/one", "--agent", "plan", "--port", "4096"],
            ["-m", "stub/one", "--agent", "plan", "--port", "4096", "-s", A],
        ),
        (["--auto"], ["--auto", "-s", A]),
        (["--mini", "--replay-limit", "5"], ["--mini", "--replay-limit", "5", "-s", A]),
        # It has moved into the directory: from there `sub` would be one below.
        (["sub"], ["-s", A]),
        (["/home/dev/work", "-m", "a/b"], ["/home/dev/work", "-m", "a/b", "-s", A]),
        (["--cors", "one", "two", "-s", B], ["--cors", "one", "two", "-s", A]),
        (["--mdns", "false"], ["--no-mdns", "-s", A]),
        (["--unknown", "/home/dev/work"], ["-s", A]),
    ],
)
def test_it_comes_back_with_what_made_it_what_it_was(launched: list[str], resumed: list[str]) -> None:
    identity = Identity(agent="opencode", conversation=A, prompted=True)
    command = OPENCODE.resume(identity, Command(argv=("opencode", *launched), cwd=CWD))
    assert command == Command(argv=("opencode", *resumed), cwd=CWD)


def test_one_in_which_nothing_was_said_starts_afresh() -> None:
    identity = Identity(agent="opencode", conversation=A, prompted=False)
    command = OPENCODE.resume(identity, Command(argv=("opencode", "-s", A, "--agent", "plan"), cwd=CWD))
    assert command is not None
    assert command.argv == ("opencode", "--agent", "plan")


# -- what it is about -----------------------------------------------------------------------------------------------


def test_a_conversation_is_described_by_its_last_messages(host: DirectoryHost) -> None:
    answer = {"role": "assistant", "modelID": "stub-1", "providerID": "stub", "tokens": {"input": 90, "output": 10}}
    cache = {"read": 5, "write": 1}
    later = {**answer, "modelID": "stub-2", "tokens": {"input": 3, "output": 2, "reasoning": 1, "cache": cache}}
    keep(
        host,
        row(A, "First"),
        message("m1", A, 1, {"role": "user"}, {"type": "text", "text": "do\nthis"}),
        message("m2", A, 2, answer, {"type": "text", "text": "done"}),
        message("m3", A, 3, {"role": "user"}, {"type": "text", "text": "by itself", "synthetic": True}),
        message("m4", A, 4, later),
        message("m5", A, 5, {"role": "assistant", "modelID": "stub-2", "providerID": "stub", "tokens": {"input": 0}}),
    )
    models = {"stub-2": {"limit": {"context": 100000}}}
    settings = msgspec.json.encode({"provider": {"stub": {"models": models}}})
    host.write(f"{HOME}/.config/opencode/opencode.json", settings)
    details = OPENCODE.describe(Identity(agent="opencode", conversation=A), process("opencode"), host)
    assert (details.title, details.task, details.version) == ("First", "do this", "1.18.33")
    assert (details.model, details.provider) == ("stub-2", "stub")
    assert (details.context_used, details.context_limit) == (12, 100000)
    assert (details.transcript, details.companions) == (DATABASE, ())


def test_a_conversation_without_a_title_has_none(host: DirectoryHost) -> None:
    keep(host, row(A, NAMELESS))
    details = OPENCODE.describe(Identity(agent="opencode", conversation=A), process("opencode"), host)
    assert (details.title, details.context_limit) == (None, None)


def test_many_messages_are_read_in_order(host: DirectoryHost) -> None:
    said = [
        message(f"m{place:04}", A, place, {"role": "user"}, {"type": "text", "text": f"prompt {place}"})
        for place in range(450)
    ]
    keep(host, row(A, "First"), *said)
    assert [turn["text"] for turn in OPENCODE.turns(A, host)] == [f"prompt {place}" for place in range(450)]


def test_a_sub_agent_that_is_its_own_parent_ends(host: DirectoryHost) -> None:
    keep(host, row(A, "First", parent=B), row(B, "Second", parent=A))
    record(host, A)
    assert found(host)[0][0] == A
    assert list(OPENCODE.turns(A, host)) == []
