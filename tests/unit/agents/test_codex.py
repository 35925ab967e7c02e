"""How Codex's command line is read, and how it comes back."""

from __future__ import annotations

import pytest

from perdure.agents import agent_of
from perdure.agents.codex import Codex
from perdure.model.identity import Identity
from perdure.model.process import Command
from tests.contract.agents.cases.codex import ID
from tests.unit.agents.hosts import CWD, process

CODEX = Codex()
OTHER = "01a1de5c-82fc-7541-b400-456e788c0412"
NATIVE = "/opt/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"


def resumed(*argv: str, prompted: bool | None = True, home: str | None = None) -> list[str]:
    identity = Identity(agent="codex", conversation=ID, prompted=prompted, home=home)
    command = CODEX.resume(identity, Command(argv=argv, cwd=CWD, environ={"CODEX_HOME": "/srv/codex"}))
    assert command is not None
    assert (command.cwd, command.environ) == (CWD, {"CODEX_HOME": "/srv/codex"})
    return list(command.argv)


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("", ""),
        ("resume {other}", ""),
        ("resume --last", ""),
        ("fork {other} --no-daemon", "--no-daemon"),
        ("--no-daemon resume {other} prompt", "--no-daemon"),
        ("agents", ""),
        ("-m o3 -s read-only -a never prompt", "-m o3 -s read-only -a never"),
        ("-p work -c model_provider=x --config=a=b", "-p work -c model_provider=x --config=a=b"),
        ("--add-dir /a --add-dir=/b -C ../c", "--add-dir /a --add-dir=/b -C ../c"),
        (
            "--search --no-alt-screen --oss --local-provider ollama",
            "--search --no-alt-screen --oss --local-provider ollama",
        ),
        ("--enable x --disable y --strict-config", "--enable x --disable y --strict-config"),
        ("--yolo", "--yolo"),
        ("-i a.png b.png --search", "--search"),
        ("-ia.png prompt", ""),
        ("--worktree --approve-for-me", "--approve-for-me"),
        ("--remote unix:///x --remote-auth-token-env NAME", "--remote unix:///x --remote-auth-token-env NAME"),
        ("resume --all --include-non-interactive", ""),
        ("-- exec", ""),
    ],
)
def test_what_comes_back_and_what_does_not(words: str, kept: str) -> None:
    launched = words.format(other=OTHER).split()
    assert resumed("codex", *launched) == ["codex", "resume", ID, *kept.split()]
    assert resumed("codex", *launched, prompted=False) == ["codex", *kept.split()]


def test_the_launcher_of_npm_comes_back_too() -> None:
    assert resumed("node", "/n/.bin/codex", "--no-daemon", "hi") == [
        "node",
        "/n/.bin/codex",
        "resume",
        ID,
        "--no-daemon",
    ]


def test_a_thread_that_last_worked_elsewhere_is_told_where_so_that_it_need_not_ask() -> None:
    argv = resumed("codex", "-C", "../b", "--search", home="/srv/worktree")
    assert argv == ["codex", "resume", ID, "--search", "--cd", "/srv/worktree"]
    assert resumed(*argv, home="/srv/worktree") == argv
    assert resumed("codex", "-C", "../b", prompted=False, home="/srv/x") == ["codex", "-C", "../b"]


def test_nothing_is_resumed_without_an_id() -> None:
    launched = Command(argv=("codex",), cwd=CWD)
    for conversation in (None, "my thread", ID + "x"):
        assert CODEX.resume(Identity(agent="codex", conversation=conversation), launched) is None


def test_of_the_processes_in_a_pane_the_agent_is_the_program_not_its_launcher_nor_the_daemon() -> None:
    tree = [
        process("-bash", pid=1, ppid=0, foreground=False),
        process("node", "/n/.bin/codex", pid=2, ppid=1),
        process(NATIVE, exe=NATIVE, pid=3, ppid=2, pgid=2),
        process("codex", "app-server", "--listen", "unix://", exe=NATIVE, pid=4, ppid=3, foreground=False),
        process("codex-linux-sandbox", "--", "sleep", "9", exe=NATIVE, pid=5, ppid=3, foreground=False),
    ]
    found = agent_of(tree)
    assert found is not None
    assert (found[0].name, found[1].pid) == ("codex", 3)
