"""The simulated agent's conversation, by its registry, its command line and its files."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from perdure.agents.simulant import ADAPTER
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Command
from tests.contract.agents.cases.simulant import ID
from tests.unit.agents.hosts import CWD, HOME, DirectoryHost, Seen, jsonl, process

OTHER = "99999999-8888-4777-8666-555555555555"
SCRIPT = "/usr/lib/python3/dist-packages/perdure/demo/agent.py"


@pytest.fixture
def host(tmp_path: object) -> DirectoryHost:
    return DirectoryHost(str(tmp_path))


def register(host: DirectoryHost, changed: Mapping[str, object] | None = None, home: str = f"{HOME}/.simulant") -> None:
    entry = {"id": ID, "pid": 100, "started": 5000, "cwd": CWD, **(changed or {})}
    host.write(f"{home}/running/100.json", msgspec.json.encode(entry))


def said(host: DirectoryHost, conversation: str, *prompts: str) -> None:
    records = [{"role": "user", "text": prompt, "model": "big", "time": 1794764575.5} for prompt in prompts]
    host.write(f"{HOME}/.simulant/conversations/{conversation}.jsonl", jsonl({"version": "1.0"}, *records))


def best(host: DirectoryHost, *argv: str, **environ: str) -> Identity:
    return ADAPTER.identify(Seen(process("python3", "-I", SCRIPT, *argv, environ=environ)), host)[0]


def test_the_registry_tells_what_the_command_line_does_not_know(host: DirectoryHost) -> None:
    register(host)
    said(host, ID, "hello")
    found = best(host, "--session", OTHER)
    assert (found.conversation, found.evidence, found.certain, found.prompted) == (ID, Evidence.REGISTRY, True, True)


def test_a_conversation_without_a_transcript_was_never_prompted(host: DirectoryHost) -> None:
    register(host)
    found = best(host)
    assert (found.conversation, found.certain, found.prompted) == (ID, True, False)


@pytest.mark.parametrize("changed", [{"started": 4999}, {"pid": 99}, {"started": None}, {"id": "../x"}, {"id": 7}])
def test_an_entry_of_another_process_or_without_sense_counts_for_nothing(
    host: DirectoryHost, changed: dict[str, object]
) -> None:
    register(host, changed)
    found = best(host)
    assert found.conversation is None
    assert found.because[0].startswith("the registry entry")


def test_without_an_entry_the_command_line_tells(host: DirectoryHost) -> None:
    said(host, ID, "hello")
    found = best(host, "--resume", ID)
    assert (found.conversation, found.evidence, found.certain) == (ID, Evidence.ARGV, True)


def test_another_home_is_looked_at_when_the_process_has_one(host: DirectoryHost) -> None:
    register(host, home="/srv/sims")
    found = best(host, SIMULANT_HOME="/srv/sims")
    assert (found.conversation, found.profile) == (ID, "sims")
    assert best(host).conversation is None


def test_a_conversation_is_described_by_its_transcript(host: DirectoryHost) -> None:
    said(host, ID, "first", "second")
    found = ADAPTER.describe(Identity(agent="simulant", conversation=ID), process("simulant"), host)
    assert (found.title, found.task, found.model, found.version) == ("first", "second", "big", "1.0")
    assert found.began_at is not None


@pytest.mark.parametrize(("prompted", "option"), [(True, "--resume"), (False, "--session")])
def test_it_comes_back_with_its_flags_and_without_its_prompt(prompted: bool, option: str) -> None:
    launched = Command(argv=("python3", "-I", SCRIPT, "--model", "big", "--boot", "2", "hello"), cwd=CWD)
    command = ADAPTER.resume(Identity(agent="simulant", conversation=ID, prompted=prompted), launched)
    assert command is not None
    assert command.argv == ("python3", "-I", SCRIPT, "--model", "big", "--boot", "2", option, ID)
