"""Which conversation a Copilot process shows, what is known of it, and how it comes back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents import Roster, agent_of
from perdure.agents.copilot import Copilot
from perdure.agents.copilot.files import workspace
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.process import Command, Process
from tests.contract.agents import samples
from tests.contract.agents.cases.copilot import FORKED, ID, SUBAGENT
from tests.unit.agents.hosts import BEFORE, CWD, HOME, LATER, STARTED, DirectoryHost, Seen, process

COPILOT = Copilot()
VERSION = "copilot-1.0.102"
STATE = f"{HOME}/.copilot/session-state"
A = "77e6c827-a908-42fc-9342-21030c5b9a4d"
B = "7f0efd0a-6389-4c27-990b-0fd766e6811e"
C = "59451f0a-acfc-478a-9130-2253ebda8d8e"
MS = int(STARTED.timestamp() * 1000)
LOG = f"{HOME}/.copilot/logs/process-{MS + 700}-100.log"
EXE = "/opt/node_modules/@github/copilot-linux-x64/copilot"


def native(*argv: str, pid: int = 100, ppid: int = 1, environ: Mapping[str, str] | None = None) -> Process:
    return process(EXE, *argv, pid=pid, ppid=ppid, comm="MainThread", exe=EXE, environ=environ)


def begin(
    host: DirectoryHost, id: str, *, name: str = "", said: bool = True, cwd: str = CWD, at: float = LATER
) -> None:
    named = f"name: {name}\n" if name else ""
    text = f"id: {id}\ncwd: {cwd}\nbranch: trunk\n{named}created_at: 2026-11-15T08:30:01.000Z\n"
    host.write(f"{STATE}/{id}/workspace.yaml", text, at=at)
    if said:
        host.write(f"{STATE}/{id}/events.jsonl", b'{"type":"session.start","data":{}}\n', at=at)


def log(host: DirectoryHost, *lines: tuple[str, str], path: str = LOG, more: str = "") -> None:
    text = "".join(f"2026-11-15T08:30:02.000Z [INFO] {verb} foreground session: {id}\n" for verb, id in lines)
    host.write(path, text + more)


def hold(host: DirectoryHost, *ids: str, pid: int = 100, owner: int | None = None) -> None:
    for id in ids:
        host.write(f"{STATE}/{id}/inuse.{owner or pid}.lock", str(owner or pid))
    host.opened[pid] = [f"{STATE}/{id}/inuse.{owner or pid}.hold" for id in ids]


def opened(host: DirectoryHost, **times: str) -> None:
    entries = {id.replace("_", "-"): {"schemaVersion": 1, "openedAt": at} for id, at in times.items()}
    host.write(f"{HOME}/.copilot/open-sessions-state.json", msgspec.json.encode(entries))


def identify(host: DirectoryHost, *argv: str, title: str = "GitHub Copilot", **environ: str) -> list[Identity]:
    return list(COPILOT.identify(Seen(native(*argv, environ=environ), title=title), host))


def told(found: Identity) -> tuple[str | None, Evidence | None, bool]:
    return found.conversation, found.evidence, found.certain


# -- the process -------------------------------------------------------------------------------------------------


def test_the_program_proper_is_the_agent_and_not_the_script_that_starts_it() -> None:
    loader = process("node", "/opt/node_modules/.bin/copilot", "--yolo", pid=90, exe="/usr/bin/node")
    found = agent_of((process("-bash", pid=80), loader, native("--yolo", pid=100, ppid=90)), Roster({}, [COPILOT]))
    assert found is not None
    assert found[1].pid == 100


# -- the log -----------------------------------------------------------------------------------------------------


def test_the_recorded_log_is_followed_from_one_conversation_to_the_next(host: DirectoryHost) -> None:
    text = samples.read(VERSION, "process-1794753703756-9632.log")
    lines = text.splitlines(keepends=True)
    seen = []
    for end in range(len(lines) + 1):
        host.write(LOG, b"".join(lines[:end]))
        seen.append(identify(host)[0].conversation)
    assert list(dict.fromkeys(seen))[:5] == [None, A, B, C, FORKED]
    assert told(identify(host)[0])[1:] == (Evidence.REGISTRY, False)


def test_the_log_is_the_one_that_is_held_open_wherever_it_is(host: DirectoryHost) -> None:
    log(host, ("Registering", A))
    log(host, ("Registering", B), path=f"/srv/logs/process-{MS + 800}-100.log")
    host.opened[100] = [f"/srv/logs/process-{MS + 800}-100.log"]
    assert told(identify(host)[0]) == (B, Evidence.REGISTRY, True)
    host.opened.clear()
    assert identify(host)[0].conversation == A
    assert identify(host, "--log-dir", "/srv/logs")[0].conversation == B


def test_a_log_of_an_earlier_process_of_this_number_counts_for_nothing(host: DirectoryHost) -> None:
    log(host, ("Registering", A), path=f"{HOME}/.copilot/logs/process-{MS - 60_000}-100.log")
    log(host, ("Registering", A), path=f"{HOME}/.copilot/logs/process-{MS + 700}-1100.log")
    log(host, ("Registering", A), path=f"{HOME}/.copilot/logs/other-{MS + 700}-100.log")
    assert [each.conversation for each in identify(host)] == [None]


def test_a_conversation_that_was_just_left_is_doubtful_and_not_said_to_be_left(host: DirectoryHost) -> None:
    """As when its terminal goes away: the next save must still find it."""
    log(host, ("Registering", A), ("Unregistering", A))
    found = identify(host)
    assert told(found[0]) == (A, Evidence.REGISTRY, False)
    assert all(each.left == () for each in found)


@pytest.mark.parametrize(("title", "evidence"), [("box", Evidence.GUESS), ("work - GitHub Copilot", Evidence.REGISTRY)])
def test_one_that_was_left_to_end_says_nothing_against_what_was_known(
    host: DirectoryHost, title: str, evidence: Evidence
) -> None:
    """Whoever goes on to another keeps its title; a registry that is not certain shakes every memory."""
    log(host, ("Registering", A), ("Unregistering", A))
    found = COPILOT.identify(Seen(native(), title=title, at=STARTED), host)
    assert told(found[0]) == (A, evidence, False)


@pytest.mark.parametrize(
    "more",
    [
        f"2026-11-15T08:31:00.000Z [DEBUG] prompt: Registering foreground session: {B}\n",
        f"2026-11-15T08:31:00.000Z [INFO] said: Registering foreground session: {B} and so on\n",
        f"Registering foreground session: {B}\n",
        f"2026-11-15T08:31:00.000Z [INFO] Registering foreground session: {B}",
        "2026-11-15T08:31:00.000Z [INFO] Registering foreground session: 7f0e",
        "\xff\xfe egistering foreground session: \n",
    ],
)
def test_only_a_whole_line_of_its_own_counts(host: DirectoryHost, more: str) -> None:
    log(host, ("Registering", A), more=more)
    assert told(identify(host)[0]) == (A, Evidence.REGISTRY, True)


def test_the_line_may_be_far_up_in_the_log(host: DirectoryHost) -> None:
    log(host, ("Registering", A), more="2026-11-15T08:31:00.000Z [INFO] something else\n" * 50_000)
    assert identify(host)[0].conversation == A


def test_what_has_restarted_itself_is_asked_first(host: DirectoryHost) -> None:
    outer, inner = native("--yolo"), native("--session-id", B, pid=200, ppid=100)
    tool = process("bash", "-c", "sleep 1", pid=300, ppid=200)
    log(host, ("Registering", A), ("Unregistering", A))
    log(host, ("Registering", B), path=f"{HOME}/.copilot/logs/process-{MS + 9000}-200.log")
    found = COPILOT.identify(Seen(outer, inner, tool), host)
    assert told(found[0]) == (B, Evidence.REGISTRY, True)


# -- locks, where there is no log --------------------------------------------------------------------------------


def test_one_lock_and_nothing_else_opened_makes_it_certain(host: DirectoryHost) -> None:
    begin(host, A)
    hold(host, A)
    opened(host, **{A.replace("-", "_"): "2026-11-15T08:30:01.000Z", B.replace("-", "_"): "2026-11-15T07:00:00.000Z"})
    found = identify(host)
    assert told(found[0]) == (A, Evidence.OPEN_FILE, True)
    assert found[0].prompted is True
    assert found[-1].conversation is None


def test_a_lock_with_another_s_number_is_no_lock_of_this_process(host: DirectoryHost) -> None:
    begin(host, A, cwd="/elsewhere")
    hold(host, A, owner=999)
    assert [each.conversation for each in identify(host)] == [None]


def test_several_locks_tell_not_which_is_in_sight_and_the_title_comes_first(host: DirectoryHost) -> None:
    begin(host, A, name="alpha")
    begin(host, B, name="beta")
    hold(host, A, B)
    found = identify(host, title="beta - GitHub Copilot")
    assert [told(each) for each in found[:2]] == [(B, Evidence.TITLE, False), (A, Evidence.GUESS, False)]


def test_a_conversation_opened_but_not_written_to_makes_the_lock_doubtful(host: DirectoryHost) -> None:
    """After /fork and /resume the lock is the old one's until the first prompt."""
    begin(host, A, name="alpha")
    begin(host, B, name="alpha (fork)")
    hold(host, A)
    opened(host, **{A.replace("-", "_"): "2026-11-15T08:30:01.000Z", B.replace("-", "_"): "2026-11-15T08:35:00.000Z"})
    found = identify(host, title="alpha (fork) - GitHub Copilot")
    assert [told(each) for each in found[:2]] == [(B, Evidence.TITLE, False), (A, Evidence.GUESS, False)]
    # Written to by another process it is that one's.
    host.write(f"{STATE}/{B}/inuse.555.lock", "555")
    assert told(identify(host)[0]) == (A, Evidence.OPEN_FILE, True)


def test_a_list_of_open_conversations_that_cannot_be_read_makes_the_lock_doubtful(host: DirectoryHost) -> None:
    begin(host, A)
    hold(host, A)
    host.write(f"{HOME}/.copilot/open-sessions-state.json", b'{"77e6')
    assert told(identify(host)[0]) == (A, Evidence.GUESS, False)


# -- hooks, the command line, the title --------------------------------------------------------------------------


def recorded(stage: str) -> list[bytes]:
    lines = samples.read(VERSION, f"hook_records/{stage}.jsonl").splitlines()
    return [msgspec.json.encode(msgspec.json.decode(line)["record"]) for line in reversed(lines)]


def test_hooks_are_never_certain_for_they_do_not_tell_what_is_in_sight(host: DirectoryHost) -> None:
    host.hook_records = recorded("first_prompt")
    first = identify(host)[0]
    assert told(first)[1:] == (Evidence.HOOK, False)
    host.hook_records = recorded("approval")
    assert told(identify(host)[0])[1:] == (Evidence.HOOK, False)
    assert identify(host)[0].conversation != first.conversation


def test_after_an_end_hooks_say_nothing_and_nothing_counts_as_left(host: DirectoryHost) -> None:
    host.hook_records = recorded("cleared")
    assert [(each.conversation, each.left) for each in identify(host)] == [(None, ())]


@pytest.mark.parametrize("argv", [(f"--resume={A}",), ("--resume", A), ("-r", A), (f"-r{A}",), ("--resume=77e6c827",)])
def test_before_the_first_prompt_the_command_line_names_it(host: DirectoryHost, argv: tuple[str, ...]) -> None:
    begin(host, A, at=BEFORE)
    begin(host, B, at=BEFORE)
    assert told(identify(host, *argv)[0]) == (A, Evidence.ARGV, True)


@pytest.mark.parametrize("argv", [("--resume",), ("--resume=7",), ("--resume=77e6c82",), ("--resume=beta",)])
def test_a_beginning_that_fits_two_or_a_name_is_no_id(host: DirectoryHost, argv: tuple[str, ...]) -> None:
    begin(host, A, at=BEFORE)
    begin(host, A[:-1] + "e", at=BEFORE)
    begin(host, B, name="beta", at=BEFORE)
    found = identify(host, *argv, title="beta - GitHub Copilot")
    assert told(found[0]) == (B, Evidence.GUESS, False)
    assert not any(each.certain for each in found)


def test_a_title_of_another_conversation_is_listed_against_the_command_line(host: DirectoryHost) -> None:
    begin(host, A, name="alpha", at=BEFORE)
    begin(host, B, name="beta", at=BEFORE)
    assert [each.conversation for each in identify(host, f"--resume={A}", title="beta - GitHub Copilot")] == [
        A,
        B,
        None,
    ]
    # Its own title is no word for another one that is called the same.
    begin(host, B, name="alpha", at=BEFORE)
    assert [each.conversation for each in identify(host, f"--resume={A}", title="alpha - GitHub Copilot")] == [A, None]


def test_what_is_not_there_is_not_certain(host: DirectoryHost) -> None:
    assert told(identify(host, f"--resume={A}")[0]) == (A, Evidence.ARGV, False)


def test_a_home_of_its_own_is_found_and_named(host: DirectoryHost) -> None:
    log(host, ("Registering", A), path=f"/srv/copilot/logs/process-{MS + 700}-100.log")
    for argv, environ in (((), {"COPILOT_HOME": "/srv/copilot"}), (("--config-dir", "/srv/copilot"), {})):
        found = identify(host, *argv, **environ)
        assert (found[0].conversation, found[0].profile) == (A, "copilot")
    log(host, ("Registering", B), path=f"{CWD}/own/logs/process-{MS + 700}-100.log")
    assert identify(host, COPILOT_HOME="own")[0].conversation == B
    assert identify(host, COPILOT_HOME=f"{HOME}/.copilot")[0].profile is None


def test_what_was_never_said_anything_in_is_known_and_so_is_where_it_lives(host: DirectoryHost) -> None:
    begin(host, A, said=False, cwd="/home/dev/work/elsewhere")
    log(host, ("Registering", A))
    found = identify(host)[0]
    assert (found.prompted, found.taken, found.home) == (False, False, "/home/dev/work/elsewhere")


# -- what is known of it -----------------------------------------------------------------------------------------


def describe(host: DirectoryHost, id: str, data: bytes, **environ: str) -> AgentDetails:
    host.write(f"{STATE}/{id}/events.jsonl", data)
    return COPILOT.describe(Identity(agent="copilot", conversation=id), native(environ=environ), host)


def test_the_recorded_conversation_is_described(host: DirectoryHost) -> None:
    host.write(f"{STATE}/{ID}/workspace.yaml", samples.read(VERSION, "workspace.yaml"))
    assert describe(host, ID, samples.read(VERSION, "events.jsonl")) == AgentDetails(
        title="hello copilot [delay=3] [drip=3]",
        task="msg from g4",
        model="stub-1",
        provider="github",
        branch="trunk",
        transcript=f"{STATE}/{ID}/events.jsonl",
        companions=(f"{STATE}/{ID}/workspace.yaml",),
        version="1.0.102",
        context_used=14636,
        context_limit=128000,
        began_at=datetime(2026, 11, 15, 8, 37, 21, 930000, UTC),
        last_activity_at=datetime(2026, 11, 15, 8, 45, 13, 524000, UTC),
    )


def test_sub_agents_do_not_count_and_compaction_does(host: DirectoryHost) -> None:
    data = samples.read(VERSION, "events_subagent_compaction.jsonl")
    asked, compacted = data.index(b"STUB-DONE 60"), data.index(b'"queue [[')
    found = describe(host, SUBAGENT, data[:compacted], COPILOT_PROVIDER_BASE_URL="http://127.0.0.1:1")
    assert (found.context_used, found.context_limit, found.provider) == (15081, 128000, "127.0.0.1")
    found = describe(host, SUBAGENT, data[:asked])
    assert (found.context_used, (found.task or "")[:11]) == (20206, "[[call=task")


def test_a_fork_knows_its_parent_and_the_parent_no_fork(host: DirectoryHost) -> None:
    data = samples.read(VERSION, "events_forked.jsonl")
    assert describe(host, FORKED, data).parent == C
    assert describe(host, C, data).parent is None


def test_nothing_known_is_nothing_said(host: DirectoryHost) -> None:
    assert COPILOT.describe(Identity(agent="copilot"), native(), host) == AgentDetails(provider="github")
    found = COPILOT.describe(Identity(agent="copilot", conversation=A), native("--model", "m"), host)
    assert found == AgentDetails(provider="github", model="m")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("name: plain words\n", "plain words"),
        ("name: 'it''s: \"odd\" # name'\n", 'it\'s: "odd" # name'),
        ('name: "tab\\there"\n', "tab\there"),
        ("name: |-\n  two\n  lines: yes\n  - three\nuser_named: false\n", "two\nlines: yes\n- three"),
        ("  name: nested\n", None),
        ("name:\n", None),
        ("# name: x\n", None),
    ],
)
def test_a_workspace_s_name_is_read_in_every_form_it_is_written_in(
    host: DirectoryHost, text: str, name: str | None
) -> None:
    host.write(f"{STATE}/{A}/workspace.yaml", f"id: {A}\n{text}branch: trunk\n")
    found = workspace(f"{HOME}/.copilot", A, host)
    assert (found.name, found.branch) == (name, "trunk")


@given(st.text(alphabet="ab:'\"|>- #\n\\") | st.text(), st.binary(max_size=40))
def test_any_workspace_is_read_without_a_raise(text: str, raw: bytes) -> None:
    class Host(DirectoryHost):
        def read(self, path: str, *, limit: int = 1 << 20, tail: bool = False) -> bytes | None:
            return text.encode("utf-8", "replace") + raw

    workspace(HOME, A, Host("/nowhere"))


# -- bringing it back --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("launched", "prompted", "resumed"),
    [
        ((), True, (f"--resume={A}",)),
        ((), None, (f"--resume={A}",)),
        ((), False, (f"--session-id={A}",)),
        (("--resume", B, "--yolo"), True, ("--yolo", f"--resume={A}")),
        (("-n", "name", f"--session-id={B}"), True, (f"--resume={A}",)),
        # A name is refused beside the id of a conversation that exists.
        (("--name=x",), False, (f"--session-id={A}",)),
        (("--continue", "-i", "do it", "--model", "m"), True, ("--model", "m", f"--resume={A}")),
        (("--allow-tool", "write", "shell(git:*)", "--deny-tool=x"), True, None),
        (("--allow-tool", "--mode", "plan", "--add-dir", "/a", "--add-dir", "/b"), True, None),
        (("--effort", "high", "--agent", "mine", "--no-ask-user"), True, None),
        # The process is there already; from there a relative one would lead elsewhere.
        (("-C", "sub", "--banner"), True, ("--banner", f"--resume={A}")),
        (("--config-dir", "/srv/c", "--log-level=none"), True, None),
    ],
)
def test_it_comes_back_with_what_made_it_what_it_was(
    launched: tuple[str, ...], prompted: bool | None, resumed: tuple[str, ...] | None
) -> None:
    identity = Identity(agent="copilot", conversation=A, prompted=prompted)
    command = COPILOT.resume(identity, Command(argv=(EXE, *launched), cwd=CWD))
    assert command is not None
    assert command.argv == (EXE, *(resumed or (*launched, f"--resume={A}")))


def test_the_title_of_another_conversation_makes_the_lock_doubtful(host: DirectoryHost) -> None:
    """One that another process has locked can be in sight here too."""
    begin(host, A, name="alpha")
    hold(host, A)
    opened(host, **{A.replace("-", "_"): "2026-11-15T08:30:01.000Z"})
    assert told(identify(host, title="alpha - GitHub Copilot")[0]) == (A, Evidence.OPEN_FILE, True)
    assert not any(each.certain for each in identify(host, title="beta - GitHub Copilot"))
