"""An agent that is data alone, as a user would add one."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents import Roster, adapters, agent_of, clashes
from perdure.agents._spec import Ordinary
from perdure.model.agent import AgentSpec, ScreenRule
from perdure.model.agent_check import mistakes
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Command
from perdure.model.screen import Screen, State
from tests.unit.agents.hosts import BEFORE, CWD, LATER, LATEST, DirectoryHost, Seen, process

ID = "99f3a7b0-1818-4f10-a351-0358ee18ba5c"
OTHER = "991d8052-f962-4cb1-8de9-ae620d3138d3"
SPEC = AgentSpec(
    binaries=("ren", "ren-agent"),
    packages=("/@ren/cli/",),
    scripts=("main.js",),
    not_agents=("serve", "--version", "-p"),
    environment=("REN_HOME",),
    keep=("-m, --model <name>", "--tools <names...>", "--yes"),
    drop=("-p, --prompt <text>", "--fork"),
    resume=("--resume", "{id}"),
    fresh=("--session-id", "{id}"),
    transcripts=("$REN_HOME/chats/*/{id}.jsonl", "~/.ren/chats/*/{id}.jsonl"),
    screen=(
        ScreenRule(id="viewer", region="last", match=r"^q to close$"),
        ScreenRule(id="approval", match=r"^Allow\?", state="attention", reason="permission", unless=r"^ren>"),
        ScreenRule(id="busy", region="last", match=r"^\S+ working$", state="busy", confidence=0.5),
        ScreenRule(id="title", region="title", match=r"^idle$", state="idle"),
    ),
)
REN = Ordinary("ren", SPEC)


@pytest.fixture
def host(tmp_path: object) -> DirectoryHost:
    return DirectoryHost(str(tmp_path))


@pytest.mark.parametrize(
    "argv",
    [
        ("ren",),
        ("/opt/bin/ren-agent", "--model", "x"),
        ("node", "/usr/lib/@ren/cli/main.js"),
        ("python3", "-m", "ren.cli", "say hello"),
        ("sh", "/usr/local/bin/ren"),
        ("ren", "--resume", ID),
    ],
)
def test_its_program_is_recognised_through_wrappers(argv: tuple[str, ...]) -> None:
    assert REN.score(process(*argv)) > 0
    found = agent_of([process("bash", pid=9), process(*argv, pid=10, ppid=9)], Roster({}, [REN]))
    assert found is not None
    assert found[1].pid == 10


@pytest.mark.parametrize(
    "argv",
    [
        ("ren", "serve"),
        ("ren", "--version"),
        ("ren", "--prompt", "hello"),
        ("ren", "-phello"),
        ("node", "/srv/main.js"),
        ("vim", "ren"),
        ("node", "-e", "ren"),
        (),
    ],
)
def test_what_is_no_conversation_with_a_person_is_not(argv: tuple[str, ...]) -> None:
    assert REN.score(process(*argv)) == 0


def resumed(*argv: str, prompted: bool | None = True, taken: bool = False) -> tuple[str, ...] | None:
    identity = Identity(agent="ren", conversation=ID, prompted=prompted, taken=taken)
    command = REN.resume(identity, Command(argv=argv, cwd=CWD))
    return command.argv if command else None


def test_flags_come_back_and_what_acts_once_does_not() -> None:
    assert resumed("ren", "-m", "big", "--fork", "--resume", OTHER, "--yes", "fix it") == (
        "ren",
        "-m",
        "big",
        "--yes",
        "--resume",
        ID,
    )
    assert resumed("node", "/x/@ren/cli/main.js", "--tools", "a", "b", "--prompt=x") == (
        "node",
        "/x/@ren/cli/main.js",
        "--tools",
        "a",
        "b",
        "--resume",
        ID,
    )


def test_a_conversation_never_prompted_begins_under_its_id_unless_that_is_taken() -> None:
    assert resumed("ren", "--session-id", ID, prompted=False) == ("ren", "--session-id", ID)
    assert resumed("ren", "--session-id", ID, prompted=False, taken=True) == ("ren",)


def test_a_subcommand_that_resumes_comes_right_after_the_program() -> None:
    spec = AgentSpec(binaries=("sub",), keep=("-v", "--dirs <d...>"), resume=("continue", "{id}", "--quiet"))
    sub = Ordinary("sub", spec)
    identity = Identity(agent="sub", conversation=ID)
    command = sub.resume(identity, Command(argv=("sub", "continue", OTHER, "--dirs", "a"), cwd="/"))
    assert command is not None
    assert command.argv == ("sub", "continue", ID, "--dirs", "a", "--quiet")
    assert sub.named(process(*command.argv)) == ID


def test_what_cannot_be_an_id_never_reaches_a_command_line() -> None:
    identity = Identity(agent="ren", conversation="--yes", prompted=True)
    assert REN.resume(identity, Command(argv=("ren",), cwd="/")) is None


@given(st.lists(st.sampled_from(["--model", "-m", "x", "--resume", "-r", ID, "--fork", "--", "-mx", "-p", "serve"])))
def test_resuming_twice_is_resuming_once(words: list[str]) -> None:
    once = resumed("ren", *words)
    assert once is not None
    assert resumed(*once) == once


@pytest.mark.parametrize("form", [("--resume", "{id}"), ("--resume={id}",), ("-r", "{id}")])
def test_the_id_is_found_again_where_resuming_puts_it(form: tuple[str, ...]) -> None:
    agent = Ordinary("ren", AgentSpec(binaries=("ren",), drop=("-r, --resume <id>",), resume=form))
    command = agent.resume(Identity(agent="ren", conversation=ID), Command(argv=("ren",), cwd="/"))
    assert command is not None
    assert agent.named(process(*command.argv)) == ID


def test_the_command_line_s_conversation_is_certain_until_another_was_written_since(host: DirectoryHost) -> None:
    host.write(f"/home/dev/.ren/chats/a/{ID}.jsonl", "x", at=BEFORE)
    first, last = REN.identify(Seen(process("ren", "--resume", ID)), host)
    assert (first.conversation, first.evidence, first.certain, first.prompted) == (ID, Evidence.ARGV, True, True)
    assert last.conversation is None
    host.write(f"/home/dev/.ren/chats/b/{OTHER}.jsonl", "x", at=LATER)
    found = REN.identify(Seen(process("ren", "--resume", ID)), host)
    assert [(each.conversation, each.evidence) for each in found] == [
        (ID, Evidence.ARGV),
        (OTHER, Evidence.GUESS),
        (None, None),
    ]


def test_without_a_name_what_was_written_since_is_a_guess_newest_first(host: DirectoryHost) -> None:
    host.write(f"/home/dev/.ren/chats/a/{ID}.jsonl", "x", at=LATER)
    host.write(f"/srv/ren/chats/b/{OTHER}.jsonl", "x", at=LATEST)
    host.write("/srv/ren/chats/b/notes.jsonl", "x", at=LATEST)
    found = REN.identify(Seen(process("ren", environ={"REN_HOME": "/srv/ren"})), host)
    assert [each.conversation for each in found] == [OTHER, ID, None]
    assert not any(each.certain for each in found)


def test_what_it_resumes_but_nobody_wrote_is_doubtful(host: DirectoryHost) -> None:
    spec = AgentSpec(binaries=("ren",), resume=("--resume", "{id}"), transcripts=("~/.ren/{id}.jsonl",))
    (first, _) = Ordinary("ren", spec).identify(Seen(process("ren", "--resume", ID)), host)
    assert (first.conversation, first.certain) == (ID, False)
    assert "it has no transcript" in first.because


def test_details_are_where_and_when_it_was_written(host: DirectoryHost) -> None:
    path = host.write(f"/home/dev/.ren/chats/a/{ID}.jsonl", "x", at=LATER)
    details = REN.describe(Identity(agent="ren", conversation=ID), process("ren"), host)
    assert details.transcript == path
    assert details.last_activity_at == host.modified_at(path)
    assert REN.describe(Identity(agent="ren"), process("ren"), host).transcript is None


@pytest.mark.parametrize(
    ("lines", "title", "said"),
    [
        (("Allow?  y/n",), "", ("ren.approval", State.ATTENTION, "permission", False, 0.9)),
        (("Allow?  y/n", "ren>"), "idle", ("ren.title", State.IDLE, None, False, 0.9)),
        (("* working", "", "  "), "", ("ren.busy", State.BUSY, None, False, 0.5)),
        (("* working", "done"), "", None),
        (("* working", "q to close"), "", ("ren.viewer", None, None, True, 0.9)),
        (("Allow?", *"abcdefg"), "", None),
        ((), "", None),
    ],
)
def test_a_screen_is_judged_by_the_first_rule_that_fits(
    lines: tuple[str, ...], title: str, said: tuple[object, ...] | None
) -> None:
    reading = REN.read_screen(Screen(lines=lines, title=title))
    found = reading and (reading.rule, reading.state, reading.reason, reading.frozen, reading.confidence)
    assert found == said
    assert reading is None or "says" in reading.because[-1]


def test_an_added_agent_stands_behind_those_that_come_with_the_program() -> None:
    known = adapters({"ren": SPEC})
    assert known[:-1] == adapters()
    assert known[-1].name == "ren"


def test_one_that_clashes_is_said_and_stands_back() -> None:
    twice = msgspec.structs.replace(SPEC, binaries=("ren", "claude"))
    assert adapters({"claude": SPEC}) == adapters()
    assert list(clashes({"ren": SPEC})) == []
    assert ["left out" in each for each in clashes({"claude": SPEC})] == [True]
    assert ["that is the agent claude" in each for each in clashes({"ren": twice})] == [True]


@pytest.mark.parametrize(
    "form",
    [
        ("{id}",),
        ("--open", "{id}", "--no-banner"),
        ("--resume", "--id", "{id}"),
        ("--mode", "chat", "--open={id}"),
        ("threads", "continue", "{id}", "--quiet"),
    ],
)
def test_any_form_that_is_allowed_is_found_again_and_put_in_once(form: tuple[str, ...]) -> None:
    spec = AgentSpec(binaries=("ren",), keep=("-m <name>",), resume=form)
    assert list(mistakes("ren", spec)) == []
    agent = Ordinary("ren", spec)
    identity = Identity(agent="ren", conversation=ID)
    first = agent.resume(identity, Command(argv=("ren", "-m", "x", "--resume", "--no-banner"), cwd="/"))
    assert first is not None
    assert agent.resume(identity, first) == first
    assert agent.named(process(*first.argv)) == ID
    assert "-m" in first.argv


def test_many_transcripts_are_all_looked_at_and_too_many_are_doubted(
    host: DirectoryHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = AgentSpec(binaries=("ren",), id=r"\d+", resume=("--open", "{id}"), transcripts=("~/.ren/{id}.log",))
    agent = Ordinary("ren", spec)
    for number in range(50):
        host.write(f"/home/dev/.ren/{number}.log", "x", at=BEFORE)
    seen = Seen(process("ren", "--open", "7"))
    assert agent.identify(seen, host)[0].certain
    monkeypatch.setattr("perdure.agents._globs.MOST", 20)
    doubtful = agent.identify(seen, host)[0]
    assert (doubtful.conversation, doubtful.certain) == ("7", False)
    assert "there are too many transcripts to look at all" in doubtful.because


def test_an_id_never_leads_out_of_its_directory(host: DirectoryHost) -> None:
    spec = AgentSpec(binaries=("ren",), id=r"[^-].*", resume=("--open", "{id}"), transcripts=("~/.ren/{id}",))
    host.write("/home/dev/secret", "x")
    host.write("/home/dev/.ren/a", "x")
    agent = Ordinary("ren", spec)
    assert agent.transcripts("../secret", process("ren"), host) == []
    assert agent.transcripts("..", process("ren"), host) == []
    assert len(agent.transcripts("a", process("ren"), host)) == 1


def test_a_subcommand_of_several_words_is_known_by_all_of_them() -> None:
    spec = AgentSpec(binaries=("ren",), not_agents=("threads list",), resume=("threads", "continue", "{id}"))
    agent = Ordinary("ren", spec)
    assert agent.score(process("ren", "threads", "continue", ID)) > 0
    assert agent.score(process("ren", "threads")) > 0
    assert agent.score(process("ren", "threads", "list")) == 0
    assert agent.named(process("ren", "threads", "continue", ID)) == ID
    assert agent.named(process("ren", "threads", ID)) is None
    assert agent.named(process("ren", ID)) is None


def test_a_conversation_of_several_files_is_one_guess(host: DirectoryHost) -> None:
    spec = AgentSpec(binaries=("ren",), transcripts=("~/.ren/{id}/store", "~/.ren/{id}/log"))
    host.write(f"/home/dev/.ren/{ID}/store", "x")
    host.write(f"/home/dev/.ren/{ID}/log", "x", at=LATEST)
    found = Ordinary("ren", spec).identify(Seen(process("ren")), host)
    assert [each.conversation for each in found] == [ID, None]
    assert found[0].written_at == host.modified_at(f"/home/dev/.ren/{ID}/log")
