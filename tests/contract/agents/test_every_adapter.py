"""What every adapter keeps to, whichever agent it knows."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.agents import adapters, environment_names, roster
from perdure.agents.generic import Generic
from perdure.model.agent import AgentSpec
from perdure.model.agent_check import mistakes
from perdure.model.identity import Identity
from perdure.model.process import Command, Process
from perdure.model.screen import Screen
from perdure.ports import AgentAdapter
from tests.contract.agents.case import AgentCase, every_case
from tests.unit.agents.hosts import DirectoryHost, Seen, process

CASES = every_case()
EVERY = (*adapters(), Generic())
#: Nobody's, though an agent's name may be in them.
PLAIN = [
    process("sh", "-c", "/home/dev/hook.sh"),
    process("-bash"),
    process("node", "server.js"),
    process("python3", "manage.py"),
    *(process("vim", f"{case.agent}.md") for case in CASES),
    *(process("tail", "-f", f"/var/log/{case.agent}") for case in CASES),
    *(process("bash", "-c", f"echo {case.agent}") for case in CASES),
    *(process("grep", "-r", case.agent, ".") for case in CASES),
]
each = pytest.mark.parametrize("adapter", EVERY, ids=lambda adapter: adapter.name)
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.agent)


def claimants(seen: Process) -> list[str]:
    return [adapter.name for adapter in EVERY if adapter.score(seen) > 0]


def test_every_agent_has_its_case() -> None:
    assert {case.agent for case in CASES} == {adapter.name for adapter in adapters()}


@pytest.mark.parametrize(
    ("agent", "seen"), [(case.agent, seen) for case in CASES for seen in case.mine], ids=lambda each: str(each)[:40]
)
def test_a_recorded_process_is_claimed_by_its_agent_alone(agent: str, seen: Process) -> None:
    assert claimants(seen) == [agent]


@pytest.mark.parametrize(
    "seen", [*(seen for case in CASES for seen in case.others), *PLAIN], ids=lambda seen: " ".join(seen.argv)[:60]
)
def test_what_is_no_pane_s_agent_is_claimed_by_none(seen: Process) -> None:
    assert claimants(seen) == []


@each_case
def test_an_adapter_names_every_program_it_claims(case: AgentCase) -> None:
    for seen in case.mine:
        words = (seen.comm, seen.exe or "", *seen.argv[:6])
        assert {word.rpartition("/")[2] for word in words} & case.adapter.programs


def test_the_registry_knows_every_program_its_adapters_do() -> None:
    """It has to before any of them is imported."""
    for adapter in adapters():
        for program in adapter.programs:
            assert adapter in roster().possible(program, None, ()), (adapter.name, program)
            assert adapter in roster().possible("node", None, ("node", f"/opt/{program}"))


def test_nobody_is_imported_for_processes_that_are_nobodys() -> None:
    program = "import sys, perdure.agents as a; a.roster().possible('bash', '/bin/bash', ('-bash',)); " + (
        f"print([name for name in sys.modules if name.removeprefix('perdure.agents.') in {[adapter.name for adapter in adapters()]!r}])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_names_are_unique() -> None:
    assert len({adapter.name for adapter in EVERY}) == len(EVERY)


def test_no_variable_that_is_read_can_hold_a_secret() -> None:
    secret = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH(?!OR)")
    assert [name for name in environment_names() if secret.search(name)] == []


def test_nothing_that_marks_a_child_of_an_agent_or_a_pane_is_read() -> None:
    assert not environment_names() & {"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PID", "TMUX", "TMUX_PANE"}


@each
def test_an_adapter_has_the_agreed_shape(adapter: AgentAdapter) -> None:
    assert isinstance(adapter, AgentAdapter)


@each_case
def test_an_agent_has_signs_that_do_not_fit_just_anything(case: AgentCase) -> None:
    assert case.adapter.signs
    assert list(mistakes(case.agent, AgentSpec(binaries=("x",), signs=case.adapter.signs))) == []


def words_of(case: AgentCase) -> st.SearchStrategy[list[str]]:
    own = ["node", "--", "-", case.agent, case.conversation, *case.words]
    return st.lists(st.text(max_size=10) | st.sampled_from(own), max_size=6)


@each_case
@given(st.data())
def test_scores_lie_between_0_and_1(case: AgentCase, data: st.DataObject) -> None:
    assert 0 <= case.adapter.score(process(*data.draw(words_of(case)))) <= 1


@each_case
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_an_identity_is_always_there_and_the_last_has_no_conversation(
    case: AgentCase, tmp_path: object, data: st.DataObject
) -> None:
    argv = data.draw(words_of(case))
    found = case.adapter.identify(Seen(process(*argv)), DirectoryHost(str(tmp_path)))
    assert found
    assert found[-1].conversation is None
    assert {identity.agent for identity in found} == {case.agent}


@each_case
@given(st.data(), st.sampled_from([True, False, None]), st.booleans())
def test_resuming_gives_argv_keeps_place_and_environment_and_is_idempotent(
    case: AgentCase, data: st.DataObject, prompted: bool | None, taken: bool
) -> None:
    words = data.draw(words_of(case))
    identity = Identity(agent=case.agent, conversation=case.conversation, prompted=prompted, taken=taken)
    launched = Command(argv=(case.agent, *words), cwd="/srv/a b", environ={"LANG": "C"})
    command = case.adapter.resume(identity, launched)
    assert command is not None
    assert command.argv[0] == case.agent
    assert (command.cwd, command.environ) == (launched.cwd, launched.environ)
    assert not {word for word in command.argv if "dangerous" in word} - set(words)
    assert case.adapter.resume(identity, command) == command


@each_case
def test_a_recorded_command_is_brought_back_as_the_same_program(case: AgentCase) -> None:
    """What resumes a conversation is itself recognised, and names that conversation."""
    for seen in case.mine:
        launched = Command(argv=seen.argv, cwd=seen.cwd or "/")
        identity = Identity(agent=case.agent, conversation=case.conversation, prompted=True)
        command = case.adapter.resume(identity, launched)
        assert command is not None
        assert claimants(process(*command.argv, exe=seen.exe, comm=seen.comm)) == [case.agent]
        assert any(case.conversation in word for word in command.argv)


@each
@given(
    st.lists(st.text(alphabet="─▔\u276f\u203a●✻…·│╭╰⠋■ 1.esc to interrupt", max_size=30), max_size=12),
    st.text(max_size=5),
)
def test_any_screen_is_read_without_a_raise(adapter: AgentAdapter, lines: list[str], title: str) -> None:
    reading = adapter.read_screen(Screen(lines=tuple(lines), title=title))
    assert reading is None or (reading.rule and 0 <= reading.confidence <= 1)
    assert reading is None or reading.frozen == (reading.state is None)
