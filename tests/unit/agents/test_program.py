"""Recognising a program through whatever starts it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents._program import Program, head_of, is_runner, locate, script_at, undisguised
from tests.unit.agents.hosts import process

REN = Program(names=frozenset({"ren", "ren.exe"}), packages=("/@ren/cli/",), scripts=frozenset({"main.js"}))
COMMON = Program(names=frozenset({"agent"}), packages=("/ren-agent/",), common=True)


@pytest.mark.parametrize(
    ("argv", "head"),
    [
        (("ren", "x"), 1),
        (("/opt/ren.exe",), 1),
        (("node", "/usr/bin/ren", "x"), 2),
        (("node", "--max-old-space-size=100", "/usr/bin/ren", "x"), 3),
        (("node20", "/opt/@ren/cli/main.js"), 2),
        (("python3.11", "-u", "/usr/bin/ren"), 3),
        (("python", "-m", "ren"), 3),
        (("python", "-m", "ren.cli.main", "x"), 3),
        (("bun", "run", "/usr/bin/ren"), 3),
        (("sh", "-e", "/usr/bin/ren"), 3),
    ],
)
def test_where_its_options_begin(argv: tuple[str, ...], head: int) -> None:
    score, found = head_of(REN, argv)
    assert score > 0
    assert found == head


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("node",),
        ("node", "main.js"),
        ("node", "/srv/main.js"),
        ("sh", "-c", "ren"),
        ("bash", "-lc", "ren"),
        ("node", "-e", "ren"),
        ("python", "-c", "ren"),
        ("python", "-m"),
        ("python", "-m", "rental"),
        ("vim", "ren"),
        ("rent",),
        ("node", "--inspect"),
    ],
)
def test_what_it_is_not(argv: tuple[str, ...]) -> None:
    assert locate(REN, process(*argv))[0] == 0


def test_a_binary_is_surer_than_its_wrapper_so_that_the_wrapper_steps_aside() -> None:
    binary = locate(REN, process("ren", exe="/opt/ren.exe"))[0]
    by_exe = locate(REN, process("MainThread", exe="/opt/@ren/cli/vendor/native", comm="MainThread"))[0]
    wrapper = locate(REN, process("node", "/usr/bin/ren", exe="/usr/bin/node"))[0]
    by_comm = locate(REN, process("something", comm="ren"))[0]
    assert binary > by_exe > wrapper > by_comm > 0


def test_a_name_anybody_might_use_counts_only_within_its_package() -> None:
    assert locate(COMMON, process("agent"))[0] == 0
    assert locate(COMMON, process("node", "/usr/bin/agent"))[0] == 0
    assert locate(COMMON, process("python", "-m", "agent"))[0] == 0
    assert locate(COMMON, process("/opt/ren-agent/bin/agent"))[0] == 1
    assert locate(COMMON, process("node", "/opt/ren-agent/agent"))[0] > 0
    assert locate(COMMON, process("agent", exe="/opt/ren-agent/1.2/agent"))[0] == 1


@given(
    st.lists(st.text(max_size=8) | st.sampled_from(["node", "python3", "-m", "-c", "run", "--x", "ren"]), max_size=6)
)
def test_any_command_line_has_an_answer(argv: list[str]) -> None:
    score, head = locate(REN, process(*argv))
    assert 0 <= score <= 1
    assert 0 <= head <= max(1, len(argv))
    assert 0 <= script_at(argv or [""]) < max(1, len(argv))
    assert is_runner(argv) in (True, False)


DISGUISED = Program(
    names=frozenset({"ren-agent"}),
    packages=("/ren-agent/",),
    scripts=frozenset({"index.js"}),
    shared=frozenset({"agent"}),
)
SCRIPT = "/home/dev/.local/share/ren-agent/versions/1/index.js"


@pytest.mark.parametrize("name", ["/home/dev/.local/bin/ren-agent", "/home/dev/.local/bin/agent", "agent"])
def test_a_launcher_s_name_before_its_interpreter_s_words_is_seen_through(name: str) -> None:
    argv = (name, "--use-system-ca", SCRIPT, "--resume", "x")
    assert head_of(DISGUISED, argv) == (1.0, 1)
    assert undisguised(DISGUISED, argv) == (name, "--resume", "x")


@pytest.mark.parametrize(
    "argv", [("agent",), ("/opt/agent", "x"), ("vim", SCRIPT), ("agent", "/srv/index.js"), ("agent", "--x"), ()]
)
def test_a_name_anybody_might_give_a_program_is_no_agent_s(argv: tuple[str, ...]) -> None:
    assert locate(DISGUISED, process(*argv))[0] == 0
    assert undisguised(DISGUISED, argv) == argv


def test_a_shared_name_counts_within_the_package_and_with_its_own_binary() -> None:
    assert head_of(DISGUISED, ("/opt/ren-agent/bin/agent",))[0] == 1
    assert locate(DISGUISED, process("agent", exe="/opt/ren-agent/node"))[0] > 0
    assert "agent" in DISGUISED.programs
