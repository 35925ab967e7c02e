"""Which session a Cline process shows, what is known of it, and how it comes back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from perdure.agents import Roster, agent_of
from perdure.agents.cline import Cline
from perdure.agents.cline.sessions import last_prompt
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.process import Command
from perdure.model.screen import Screen, State
from perdure.snapshots.remember import Memory, remembered
from tests.contract.agents import samples
from tests.contract.agents.cases.cline import DELEGATING, ID
from tests.unit.agents.hosts import BEFORE, CWD, HOME, LATER, LATEST, STARTED, DirectoryHost, Seen, jsonl, process

CLINE = Cline()
VERSION = "cline-3.0.65"
DATA = f"{HOME}/.cline/data"
SESSIONS = f"{DATA}/sessions"
MS = int(STARTED.timestamp() * 1000)
A, B, C = f"{MS + 1000}_aaaaa", f"{MS + 60_000}_bbbbb", f"{MS - 60_000}_ccccc"
EXE = "/opt/node_modules/@cline/cli-linux-x64/bin/cline"


def at(seconds: float) -> str:
    return (STARTED + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def keep(
    host: DirectoryHost, id: str, *prompts: str, status: str = "idle", pid: int = 9, cwd: str = CWD, when: float = LATER
) -> None:
    began = (int(id.partition("_")[0]) - MS) / 1000
    own = {"session_id": id, "pid": pid, "status": status, "started_at": at(began), "cwd": cwd}
    wrapped = [f'<user_input mode="act">{each}</user_input>' for each in prompts]
    host.write(f"{SESSIONS}/{id}/{id}.json", msgspec.json.encode({**own, "prompt": wrapped[0] if wrapped else ""}))
    said = [{"role": "user", "content": [{"type": "text", "text": each}]} for each in wrapped]
    rest = {"system_prompt": 'wrapped in a <user_input mode="..."> tag'}
    host.write(
        f"{SESSIONS}/{id}/{id}.messages.json",
        msgspec.json.format(msgspec.json.encode({"messages": said, **rest})),
        at=when,
    )


def event(id: str, name: str = "session.started", *, pid: int = 100, when: float = 2) -> dict[str, Any]:
    return {"time": at(when), "pid": pid, "event": name, "properties": {"sessionId": id}}


def log(host: DirectoryHost, *events: dict[str, Any], path: str = f"{DATA}/logs/cline.log") -> None:
    host.write(path, jsonl(*events))


def identify(host: DirectoryHost, *argv: str, title: str = "Cline", **environ: str) -> list[Identity]:
    return list(CLINE.identify(Seen(process("cline", *argv, exe=EXE, environ=environ), title=title), host))


def told(found: Identity) -> tuple[str | None, Evidence | None, bool]:
    return found.conversation, found.evidence, found.certain


def test_the_hub_below_a_process_is_not_the_agent() -> None:
    hub = process(EXE, "--cline-hub-daemon", "--port", "25463", pid=200, ppid=100, comm="cline", exe=EXE)
    seen = agent_of((process("-bash", pid=50), process("cline", "--tui", exe=EXE, ppid=50), hub), Roster({}, [CLINE]))
    assert seen is not None
    assert seen[1].pid == 100


# -- the log and the title ---------------------------------------------------------------------------------------


def test_the_session_the_log_names_is_certain_when_the_title_has_its_last_prompt(host: DirectoryHost) -> None:
    keep(host, A, "hello one", "and two")
    log(host, event(A), event(B, pid=101, when=60))
    found = identify(host, title="> and two")
    assert told(found[0]) == (A, Evidence.REGISTRY, True)
    assert (found[0].prompted, found[-1].conversation) == (True, None)


def test_its_own_file_names_the_hub_and_that_counts_for_nothing(host: DirectoryHost) -> None:
    """Two panes of one directory, both run by a hub that has the number of neither."""
    keep(host, A, "one", pid=500)
    keep(host, B, "two", pid=500)
    log(host, event(A), event(B, pid=101, when=60))
    assert told(identify(host, title="> one")[0]) == (A, Evidence.REGISTRY, True)
    other = Seen(process("cline", exe=EXE, pid=101), title="> two")
    assert told(CLINE.identify(other, host)[0]) == (B, Evidence.REGISTRY, True)


def test_before_anything_was_said_there_is_an_id_already(host: DirectoryHost) -> None:
    log(host, event(A))
    found = identify(host)[0]
    assert (told(found), found.prompted) == ((A, Evidence.REGISTRY, True), False)


def test_after_new_the_log_still_names_the_old_one_and_the_title_tells(host: DirectoryHost) -> None:
    keep(host, A, "hello one")
    log(host, event(A))
    found = identify(host, title="Cline")
    assert told(found[0]) == (A, Evidence.REGISTRY, False)
    assert found[-1].left == (A,)


def test_in_the_moment_before_the_log_hears_of_the_next_one_the_title_has_its_prompt(host: DirectoryHost) -> None:
    keep(host, A, "hello one")
    log(host, event(A))
    found = identify(host, title="> something else")
    assert (told(found[0]), found[-1].left) == ((A, Evidence.REGISTRY, False), (A,))


@pytest.mark.parametrize("status", ["running", "pending"])
def test_what_it_is_at_work_on_is_in_the_title_and_not_yet_in_the_file(host: DirectoryHost, status: str) -> None:
    keep(host, A, "hello one", status=status)
    log(host, event(A))
    assert told(identify(host, title="> the next one")[0]) == (A, Evidence.REGISTRY, True)
    # A session that began since, and that nobody was seen to begin, may be this process's.
    keep(host, B, "the next one", status="running")
    found = identify(host, title="> the next one")
    assert [told(each) for each in found[:2]] == [(A, Evidence.REGISTRY, False), (B, Evidence.GUESS, False)]
    log(host, event(A), event(B, pid=101, when=60))
    assert told(identify(host, title="> the next one")[0]) == (A, Evidence.REGISTRY, True)
    # Nor is one of another prompt, begun by somebody who writes no log.
    log(host, event(A))
    keep(host, B, "unlike", status="running")
    assert told(identify(host, title="> the next one")[0]) == (A, Evidence.REGISTRY, True)


def test_a_title_that_was_taken_back_says_nothing_against_what_was_known(host: DirectoryHost) -> None:
    """The program ends, which takes it some seconds. A registry that is not certain would shake every memory."""
    keep(host, A, "hello one")
    log(host, event(A))
    found = CLINE.identify(Seen(process("cline", exe=EXE), title="", at=STARTED), host)
    assert (told(found[0]), found[-1].left) == ((A, Evidence.GUESS, False), ())
    memory = Memory(identity=identify(host, title="> hello one")[0], at=STARTED)
    kept = remembered(memory, found, held=())
    assert kept is not None
    assert told(kept) == (A, Evidence.REMEMBERED, True)


def test_a_title_that_is_somebody_else_s_leaves_doubt(host: DirectoryHost) -> None:
    keep(host, A, "hello one")
    log(host, event(A))
    found = identify(host, title="box")
    assert (told(found[0]), found[-1].left) == ((A, Evidence.REGISTRY, False), ())


def test_a_session_that_was_stopped_is_doubtful_and_not_said_to_be_left(host: DirectoryHost) -> None:
    """As when its terminal goes away: the next save must still find it."""
    keep(host, A, "hello one")
    log(host, event(A), event(A, "session.stopped", when=50))
    found = identify(host, title="> hello one")
    assert (told(found[0]), found[-1].left) == ((A, Evidence.REGISTRY, False), ())
    assert identify(host, title="Cline")[-1].left == (A,)


def test_the_recorded_log_is_followed_for_both_its_processes(host: DirectoryHost) -> None:
    text = samples.read(VERSION, "cline.log")
    lines = text.splitlines(keepends=True)
    seen: dict[int, list[str | None]] = {9514: [], 14914: []}
    for end in range(len(lines) + 1):
        host.write(f"{DATA}/logs/cline.log", b"".join(lines[:end]))
        for pid, conversations in seen.items():
            mine = msgspec.structs.replace(
                process("cline", exe=EXE, pid=pid), started_at=datetime(2026, 11, 15, 15, 26, 27, tzinfo=UTC)
            )
            conversations.append(CLINE.identify(Seen(mine, title="Cline"), host)[0].conversation)
    first, second, third = "1794756389074_fn0dy", "1794756418610_oyiij", "1794756437504_3zu47"
    hub, later = "1794756483808_fx0r4", "1794756568903_4joze"
    assert [each for at, each in enumerate(seen[9514]) if at == 0 or each != seen[9514][at - 1]] == [
        None,
        first,
        second,
        third,
        second,
    ]
    assert list(dict.fromkeys(seen[14914])) == [None, hub, later]
    assert seen[14914][-1] == hub


def test_only_what_was_logged_since_it_began_counts(host: DirectoryHost) -> None:
    log(host, event(C, when=BEFORE))
    assert [each.conversation for each in identify(host)] == [None]


def test_the_log_is_where_it_is_held_open_or_told_to_be(host: DirectoryHost) -> None:
    log(host, event(A), path="/srv/log/cline.log")
    host.opened[100] = ["/srv/log/cline.log"]
    assert identify(host)[0].conversation == A
    host.opened.clear()
    assert identify(host, CLINE_LOG_PATH="/srv/log/cline.log")[0].conversation == A
    assert identify(host)[0].conversation is None


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("short", "> short"),
        ("first line\n  and more", "> first line"),
        ("word " * 30, "> " + ("word " * 30)[:77] + "..."),
        ("one two\n\nthree\nfour\nfive", "> [one two three... Pasted +5 lines]"),
        ('with "quotes" and \\ and \u20ac', '> with "quotes" and \\ and \u20ac'),
    ],
)
def test_a_title_is_known_for_a_prompt_s(host: DirectoryHost, prompt: str, title: str) -> None:
    keep(host, A, "before", prompt)
    log(host, event(A))
    assert identify(host, title=title)[0].certain


# -- where there is no log ---------------------------------------------------------------------------------------


def test_without_a_log_one_open_session_of_its_number_is_certain(host: DirectoryHost) -> None:
    keep(host, A, "one", pid=100)
    keep(host, B, "two", pid=100, status="completed")
    # The number was another process's before.
    keep(host, C, "three", pid=100)
    assert told(identify(host, title="> one")[0]) == (A, Evidence.REGISTRY, True)
    keep(host, B, "two", pid=100)
    assert told(identify(host, title="> two")[0]) == (B, Evidence.GUESS, False)


def test_without_a_log_the_title_of_the_home_screen_tells_that_every_session_was_left(host: DirectoryHost) -> None:
    keep(host, A, "one", pid=100, status="completed")
    keep(host, B, "two", pid=500)
    found = identify(host, title="Cline")
    assert not any(each.certain for each in found)
    assert found[-1].left == (A, B)


def test_the_command_line_names_what_was_resumed_until_something_else_was_written(host: DirectoryHost) -> None:
    keep(host, C, "old", when=BEFORE)
    assert told(identify(host, "--tui", "--id", C, title="> old")[0]) == (C, Evidence.ARGV, True)
    assert told(identify(host, "--id", C, title="Cline")[-2]) == (C, Evidence.ARGV, False)
    keep(host, B, "new", when=LATEST)
    assert [each.conversation for each in identify(host, "--id", C, title="> old")] == [C, B, None]
    assert told(identify(host, "--id", f"{MS}_zzzzz")[0]) == (f"{MS}_zzzzz", Evidence.ARGV, False)


def test_guesses_are_of_this_directory_open_and_the_title_s_first(host: DirectoryHost) -> None:
    keep(host, A, "one", when=LATEST)
    keep(host, B, "two", when=LATER)
    keep(host, C, "elsewhere", cwd="/srv", when=LATEST)
    found = identify(host, title="> two")
    assert [told(each) for each in found] == [
        (B, Evidence.GUESS, False),
        (A, Evidence.GUESS, False),
        (None, None, False),
    ]
    assert identify(host, "--cwd", "/srv", title="x")[0].conversation == C
    assert [each.home for each in identify(host, "--id", C, title="x")[:1]] == ["/srv"]


@pytest.mark.parametrize(
    ("argv", "environ", "home"),
    [
        ((), {"CLINE_DIR": "/srv/work"}, "/srv/work/data"),
        (("--config", "/srv/work"), {}, "/srv/work/data"),
        ((), {"CLINE_DATA_DIR": "/srv/work"}, "/srv/work"),
        (("--data-dir", "work"), {"CLINE_SESSION_DATA_DIR": "/nowhere"}, f"{CWD}/work"),
    ],
)
def test_a_home_of_its_own_is_found_and_named(
    host: DirectoryHost, argv: tuple[str, ...], environ: dict[str, str], home: str
) -> None:
    host.write(f"{home}/logs/cline.log", jsonl(event(A)))
    found = identify(host, *argv, **environ)[0]
    assert (found.conversation, found.profile) == (A, "work")
    assert identify(host)[0].profile is None


# -- what is known of it -----------------------------------------------------------------------------------------


def describe(host: DirectoryHost, id: str, own: str, messages: str) -> AgentDetails:
    host.write(f"{SESSIONS}/{id}/{id}.json", samples.read(VERSION, own))
    host.write(f"{SESSIONS}/{id}/{id}.messages.json", samples.read(VERSION, messages))
    return CLINE.describe(Identity(agent="cline", conversation=id), process("cline", exe=EXE), host)


def test_the_recorded_session_is_described(host: DirectoryHost) -> None:
    assert describe(host, ID, "session.json", "messages.json") == AgentDetails(
        title="tool [bash=sleep 2; env > /home/dev/ce_env.txt]",
        task="again cline [delay=3]",
        model="stub-1",
        provider="openai-compatible",
        transcript=f"{SESSIONS}/{ID}/{ID}.messages.json",
        companions=(f"{SESSIONS}/{ID}/{ID}.json",),
        version="3.0.65",
        context_used=5599,
        began_at=datetime(2026, 11, 15, 8, 48, 37, 848000, UTC),
        last_activity_at=STARTED + timedelta(seconds=LATER),
    )


def test_a_compacted_one_has_a_file_more_and_a_fork_its_parent(host: DirectoryHost) -> None:
    found = describe(host, DELEGATING, "session_compacted.json", "messages_subagent.json")
    assert (found.branch, found.context_used, found.parent) == ("trunk", 5763, None)
    assert found.companions[1].endswith(f"/{DELEGATING}.compaction.json")
    assert describe(host, "1794757956183_iobn9", "session_forked.json", "messages.json").parent == DELEGATING


def test_nothing_known_is_nothing_said(host: DirectoryHost) -> None:
    assert CLINE.describe(Identity(agent="cline"), process("cline"), host) == AgentDetails()
    assert CLINE.describe(Identity(agent="cline", conversation=A), process("cline"), host) == AgentDetails()


def test_a_sub_agent_s_turns_come_after_and_carry_its_id(host: DirectoryHost) -> None:
    folder = f"{SESSIONS}/{DELEGATING}"
    host.write(f"{folder}/{DELEGATING}.messages.json", samples.read(VERSION, "messages_subagent.json"))
    host.write(f"{folder}/agent_1794757932395_hhz4o7.messages.json", samples.read(VERSION, "agent.messages.json"))
    found = list(CLINE.turns(DELEGATING, host))
    assert [(each["agent"], each["role"]) for each in found[-3:]] == [
        (None, "assistant"),
        ("agent_1794757932395_hhz4o7", "user"),
        ("agent_1794757932395_hhz4o7", "assistant"),
    ]


def test_a_prompt_quoted_in_an_answer_is_no_prompt(host: DirectoryHost) -> None:
    quoted = {
        "role": "assistant",
        "content": [{"type": "text", "text": '"text": "<user_input mode="act">x</user_input>'}],
    }
    asked = {"role": "user", "content": [{"type": "text", "text": '<user_input mode="act">asked</user_input>'}]}
    path = host.write("/m.json", msgspec.json.format(msgspec.json.encode({"messages": [asked, quoted]})))
    assert last_prompt(path, host) == "asked"
    assert last_prompt(host.write("/n.json", b'"text": "<user_input mode=\\"act\\">cut o'), host) is None


# -- bringing it back --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("launched", "prompted", "resumed"),
    [
        ((), True, ("--tui", "--id", A)),
        (("--tui", "--auto-approve", "false"), True, ("--auto-approve", "false", "--tui", "--id", A)),
        (("--auto-approve=false", "--id", B), None, ("--auto-approve=false", "--tui", "--id", A)),
        # A new one cannot be given an id.
        (("--tui", "--auto-approve", "false"), False, ("--auto-approve", "false", "--tui")),
        (("-i", "do it", "-p", "-c", "sub"), True, ("-p", "-c", "sub", "--tui", "--id", A)),
        (("--thinking", "high", "-m", "m", "--worktree"), True, ("--thinking", "high", "-m", "m", "--tui", "--id", A)),
        (("--data-dir", "/d", "-k", "made-up"), True, ("--data-dir", "/d", "-k", "made-up", "--tui", "--id", A)),
    ],
)
def test_it_comes_back_with_what_made_it_what_it_was(
    launched: tuple[str, ...], prompted: bool | None, resumed: tuple[str, ...]
) -> None:
    identity = Identity(agent="cline", conversation=A, prompted=prompted)
    command = CLINE.resume(identity, Command(argv=("cline", *launched), cwd=CWD))
    assert command is not None
    assert command.argv == ("cline", *resumed)


# -- its screen --------------------------------------------------------------------------------------------------

WIDE = "─" * 120
BOX = (
    WIDE,
    "\u276f Ask anything...",
    WIDE,
    " stub-1 (0) $0.00      ○ Plan ● Act (Tab)",
    " clp (trunk)",
    " Auto-approve all disabled (Shift+Tab)",
)


@pytest.mark.parametrize("empty", range(20))
def test_a_hint_at_the_end_of_an_answer_is_no_menu(empty: int) -> None:
    answer = (" * Press these:", "", "   up and down", "", "   ↑/↓ navigate, Enter to select, Esc to close")
    rows = (*[""] * empty, *answer, *[""] * (28 - empty), *BOX)
    reading = CLINE.read_screen(Screen(lines=rows, title="> hello"))
    assert reading is not None
    assert reading.state is State.IDLE


def test_an_answer_whose_beginning_is_out_of_sight_may_be_going_on() -> None:
    assert CLINE.read_screen(Screen(lines=(*["   more of the answer"] * 30, "", *BOX))) is None


def test_without_a_log_the_title_of_another_session_tells_that_it_was_left(host: DirectoryHost) -> None:
    keep(host, A, "one", pid=100)
    keep(host, B, "two")
    found = identify(host, title="> two")
    assert not any(each.certain for each in found)
    assert A in found[-1].left
    assert B not in found[-1].left


def test_without_a_log_the_command_line_is_certain_while_the_title_is_its_own(host: DirectoryHost) -> None:
    keep(host, A, "one")
    assert told(identify(host, "--id", A, title="> one")[0]) == (A, Evidence.ARGV, True)
    assert not identify(host, "--id", A, title="> two")[0].certain
