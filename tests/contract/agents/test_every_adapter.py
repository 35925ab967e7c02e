"""What every adapter keeps to, whichever agent it knows."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.agents import adapters, environment_names
from perdure.agents.generic import Generic
from perdure.model.identity import Identity
from perdure.model.process import Command, Process
from perdure.model.screen import Screen
from perdure.ports import AgentAdapter
from tests.unit.agents.hosts import DirectoryHost, Seen, process

EVERY = (*adapters(), Generic())
each = pytest.mark.parametrize("adapter", EVERY, ids=lambda adapter: adapter.name)
ID = "99f3a7b0-1818-4f10-a351-0358ee18ba5c"


class Recorded(NamedTuple):
    """A process as it was seen, and whose it is."""

    agent: str | None
    process: Process


NPM = "/home/dev/npm/node_modules/@anthropic-ai/claude-code/bin/claude.exe"
PROCESSES = [
    Recorded("claude", process("/home/dev/npm/node_modules/.bin/claude", "--name", "my name", exe=NPM, comm="claude")),
    Recorded("claude", process("claude", "--resume", ID, exe=NPM)),
    Recorded(None, process("claude", "-p", "hello", exe=NPM)),
    Recorded(None, process("/bin/bash", "-c", "source ~/.claude/shell-snapshots/snapshot-bash-1.sh")),
    Recorded(None, process("sh", "-c", "/home/dev/hook.sh")),
    Recorded(None, process("-bash")),
    Recorded(None, process("vim", "claude.md")),
    Recorded(None, process("node", "server.js")),
]


@pytest.mark.parametrize("seen", PROCESSES)
def test_a_recorded_process_is_claimed_by_its_agent_alone(seen: Recorded) -> None:
    claimed = [adapter.name for adapter in EVERY if adapter.score(seen.process) > 0]
    assert claimed == ([seen.agent] if seen.agent else [])


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


WORDS = st.lists(
    st.text(max_size=10) | st.sampled_from(["claude", "node", "--resume", "-r", ID, "--", "-p"]), max_size=6
)


@each
@given(WORDS)
def test_scores_lie_between_0_and_1(adapter: AgentAdapter, argv: list[str]) -> None:
    assert 0 <= adapter.score(process(*argv)) <= 1


@each
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WORDS)
def test_an_identity_is_always_there_and_the_last_has_no_conversation(
    adapter: AgentAdapter, tmp_path: object, argv: list[str]
) -> None:
    found = adapter.identify(Seen(process(*argv)), DirectoryHost(str(tmp_path)))
    assert found
    assert found[-1].conversation is None
    assert {identity.agent for identity in found} == {adapter.name}


@each
@given(WORDS, st.sampled_from([True, False, None]), st.booleans())
def test_resuming_gives_argv_keeps_place_and_environment_and_is_idempotent(
    adapter: AgentAdapter, words: list[str], prompted: bool | None, taken: bool
) -> None:
    identity = Identity(agent=adapter.name, conversation=ID, prompted=prompted, taken=taken)
    launched = Command(argv=("program", *words), cwd="/srv/a b", environ={"LANG": "C"})
    command = adapter.resume(identity, launched)
    assert command is not None
    assert command.argv[0] == "program"
    assert (command.cwd, command.environ) == (launched.cwd, launched.environ)
    assert not {word for word in command.argv if "dangerous" in word} - set(words)
    assert adapter.resume(identity, command) == command


@each
@given(st.lists(st.text(alphabet="─▔\u276f●✻…· 1.esc to interrupt", max_size=30), max_size=12), st.text(max_size=5))
def test_any_screen_is_read_without_a_raise(adapter: AgentAdapter, lines: list[str], title: str) -> None:
    reading = adapter.read_screen(Screen(lines=tuple(lines), title=title))
    assert reading is None or reading.rule
