from __future__ import annotations

import pytest

from perdure.agents import program_of
from perdure.agents.generic import Generic, is_waiting_shell
from perdure.model.process import Command
from tests.unit.agents.hosts import DirectoryHost, Seen, process


@pytest.mark.parametrize(
    "line",
    [
        "bash",
        "-bash",
        "bash -l",
        "bash --norc",
        "bash -i --rcfile /etc/x",
        "/usr/bin/zsh -il",
        "sh",
        "fish -C init",
        "zsh -o vi",
        "bash +O globstar",
        "bash -",
    ],
)
def test_a_shell_at_its_prompt(line: str) -> None:
    assert is_waiting_shell(line.split())
    assert program_of([process(*line.split())]) is None


@pytest.mark.parametrize(
    "line",
    [
        "bash ./build.sh",
        "bash -c x",
        "bash -lc x",
        "sh -ec x",
        "fish --command x",
        "bash -- script",
        "vim",
        "bashful",
        "pwsh -File x.ps1",
    ],
)
def test_a_program(line: str) -> None:
    assert not is_waiting_shell(line.split())
    command = program_of([process("-bash", pid=5, foreground=False), process(*line.split(), pid=9, ppid=5)])
    assert command == Command(argv=tuple(line.split()), cwd="/home/dev/work/proj1")


def test_no_command_line_is_no_shell() -> None:
    assert not is_waiting_shell(())


def test_the_leader_of_the_foreground_group_is_the_program() -> None:
    tree = [
        process("-bash", pid=5, foreground=False),
        process("less", pid=8, ppid=5, pgid=9),
        process("git", "log", pid=9, ppid=5),
    ]
    command = program_of(tree)
    assert command is not None
    assert command.argv == ("git", "log")


def test_a_pipeline_whose_first_program_ended_is_known_by_the_oldest_left() -> None:
    tree = [
        process("-bash", pid=5, foreground=False),
        process("less", pid=12, ppid=5, pgid=9),
        process("sort", pid=11, ppid=5, pgid=9),
    ]
    command = program_of(tree)
    assert command is not None
    assert command.argv == ("sort",)


def test_what_cannot_be_known_is_none() -> None:
    assert program_of([]) is None
    assert program_of([process("vim", foreground=False)]) is None
    assert program_of([process(comm="kworker")]) is None


def test_a_program_that_hides_its_directory_starts_where_its_parent_is() -> None:
    shell = process("-bash", pid=5, foreground=False, cwd="/srv")
    command = program_of([shell, process("sudo", "top", pid=9, ppid=5, cwd=None, environ={"LANG": "C"})])
    assert command == Command(argv=("sudo", "top"), cwd="/srv", environ={"LANG": "C"})
    orphan = program_of([process("top", pid=9, ppid=1, cwd=None)])
    assert orphan is not None
    assert orphan.cwd == ""


def test_a_plain_program_comes_back_as_it_was(host: DirectoryHost) -> None:
    generic = Generic()
    top = process("top")
    (identity,) = generic.identify(Seen(top), host)
    launched = Command(argv=("top",), cwd="/")
    assert generic.score(top) == 0
    assert identity.conversation is None
    assert generic.resume(identity, launched) is launched
