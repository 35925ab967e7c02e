from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents import agent_of
from perdure.agents.claude import Claude
from perdure.agents.claude.argv import is_conversation, read_launch
from perdure.model.identity import Identity
from perdure.model.process import Command, Process
from tests.unit.agents.hosts import CWD, process

A = "11111111-1111-4111-8111-111111111111"
B = "22222222-2222-4222-8222-222222222222"
PACKAGE = "/usr/lib/node_modules/@anthropic-ai/claude-code"

CLAUDE = Claude()
SAID = Identity(agent="claude", conversation=B, prompted=True)
UNSAID = Identity(agent="claude", conversation=B, prompted=False)


def resumed(line: str, identity: Identity = SAID) -> str:
    command = CLAUDE.resume(identity, Command(argv=tuple(line.split()), cwd=CWD, environ={"LANG": "C"}))
    assert command is not None
    assert (command.cwd, command.environ) == (CWD, {"LANG": "C"})
    return " ".join(command.argv)


@pytest.mark.parametrize(
    "seen",
    [
        process("claude"),
        process("/home/dev/.local/bin/claude", "--model", "opus", "fix the build"),
        process(f"{PACKAGE}/bin/claude.exe", comm="claude"),
        process("node", f"{PACKAGE}/cli.js", "--continue"),
        process("node", "--max-old-space-size=4096", "/usr/local/bin/claude"),
        process("/bin/sh", "/opt/claude", "--resume", A, comm="claude"),
        process("agent", exe=f"{PACKAGE}/bin/claude.exe"),
        process(comm="claude"),
        process("claude", "--append-system-prompt", "-p"),
        process("claude", "--", "mcp"),
        process("claude", "attach", "12ab34cd"),
        process("claude", "--debug", "mcp"),
    ],
)
def test_an_interactive_run_is_recognised(seen: Process) -> None:
    assert 0 < CLAUDE.score(seen) <= 1


@pytest.mark.parametrize(
    "seen",
    [
        process("vim", "claude"),
        process("bash", "-c", "claude"),
        process("claude-squad"),
        process("node", "/x/server.js", "claude"),
        process("node", f"{PACKAGE}/cli-wrapper.cjs"),
        process("node"),
        process("claude", "-p", "hello"),
        process("claude", "--model", "opus", "--print", "hello"),
        process("claude", "-cp", "hello"),
        process("claude", "mcp", "serve"),
        process("claude", "--debug=x", "doctor"),
        process("claude", "update"),
        process("claude", "agents", "--json"),
        process("claude", "--bg", "do it"),
        process(f"{PACKAGE}/bin/claude.exe", "daemon", "run", "--origin", "transient"),
        process("claude bg-spare", "--bg-spare", "/x.sock", exe=f"{PACKAGE}/bin/claude.exe"),
        process(
            "claude bg-pty-host", "--bg-pty-host", "/x", "80", "24", "--", "claude", exe=f"{PACKAGE}/bin/claude.exe"
        ),
        process("claude", "--version"),
        process("tail", "-f", comm="tail"),
        process(),
    ],
)
def test_anything_else_is_not(seen: Process) -> None:
    assert CLAUDE.score(seen) == 0


@pytest.mark.parametrize(
    ("line", "conversation"),
    [
        (f"--resume {A}", A),
        (f"--resume={A}", A),
        (f"-r {A}", A),
        (f"-r{A}", A),
        (f"--session-id {A}", A),
        (f"--session-id={A}", A),
        (f"--resume {A} continue please", A),
        (f"--resume {A} --resume {B}", B),
        (f"--resume {A} --fork-session", None),
        (f"--resume {A} --fork-session --session-id {B}", B),
        (f"--resume /home/dev/.claude/projects/-x/{A}.jsonl", A),
        (f"--resume {A.upper()}", A.upper()),
        ("--resume notes.jsonl", None),
        ("--resume my-title", None),
        ("--resume", None),
        ("--continue", None),
        ("-c", None),
        ("--session-id nonsense", None),
        (f"--append-system-prompt --resume={A}", None),
        (f"look at {A}", None),
        (f"-- --resume {A}", None),
    ],
)
def test_a_command_line_names_a_conversation_or_does_not(line: str, conversation: str | None) -> None:
    assert read_launch(process("claude", *line.split())).conversation == conversation


def test_only_a_whole_uuid_is_an_id() -> None:
    assert is_conversation(A)
    assert not is_conversation(A + "0")
    assert not is_conversation("../" + A)


@pytest.mark.parametrize(
    ("line", "again"),
    [
        ("claude", f"claude --resume {B}"),
        (f"/opt/claude --resume {A}", f"/opt/claude --resume {B}"),
        (f"claude -r{A} --model opus", f"claude --model opus --resume {B}"),
        (f"claude -c{'d'} --effort high", f"claude -d --effort high --resume {B}"),
        (f"claude --session-id={A} --fork-session", f"claude --resume {B}"),
        ("claude --from-pr 12 --teleport", f"claude --resume {B}"),
        ("claude fix the build", f"claude --resume {B}"),
        ("claude --model opus -- --model", f"claude --model opus --resume {B}"),
        ("claude -w tree --tmux --verbose", f"claude --verbose --resume {B}"),
        (
            "claude --add-dir /a /b --permission-mode plan prompt",
            f"claude --add-dir /a /b --permission-mode plan --resume {B}",
        ),
        (
            "claude --mcp-config a.json b.json --settings s",
            f"claude --mcp-config a.json b.json --settings s --resume {B}",
        ),
        ("claude --allowedTools Bash Edit", f"claude --allowedTools Bash Edit --resume {B}"),
        ("claude --disallowed-tools=Bash word", f"claude --disallowed-tools=Bash --resume {B}"),
        ("claude --dangerously-skip-permissions", f"claude --dangerously-skip-permissions --resume {B}"),
        ("claude --prefill text --file a:b", f"claude --resume {B}"),
        ("claude --model", f"claude --resume {B}"),
        (f"node {PACKAGE}/cli.js --continue --model opus", f"node {PACKAGE}/cli.js --model opus --resume {B}"),
        ("/bin/sh /opt/claude --verbose", f"/bin/sh /opt/claude --verbose --resume {B}"),
    ],
)
def test_flags_come_back_and_what_chose_the_conversation_does_not(line: str, again: str) -> None:
    assert resumed(line) == again


def test_a_value_with_spaces_stays_one_word() -> None:
    launched = Command(argv=("claude", "--append-system-prompt", "be brief & kind"), cwd=CWD)
    command = CLAUDE.resume(SAID, launched)
    assert command is not None
    assert command.argv == ("claude", "--append-system-prompt", "be brief & kind", "--resume", B)


@pytest.mark.parametrize(
    ("line", "again"),
    [
        ("claude --newer --model opus", f"claude --newer --model opus --resume {B}"),
        ("claude --newer=1 prompt", f"claude --newer=1 --resume {B}"),
        ("claude --newer", f"claude --newer --resume {B}"),
        ("claude --newer word --model opus", f"claude --model opus --resume {B}"),
    ],
)
def test_an_unknown_flag_is_kept_only_when_no_prompt_can_hide_behind_it(line: str, again: str) -> None:
    assert resumed(line) == again


def test_a_name_is_not_passed_again_where_it_would_undo_a_rename() -> None:
    assert resumed("claude -n first") == f"claude --resume {B}"
    assert resumed("claude -n first", UNSAID) == f"claude -n first --session-id {B}"


def test_a_conversation_nobody_spoke_in_begins_again_under_its_id() -> None:
    assert resumed("claude --model opus", UNSAID) == f"claude --model opus --session-id {B}"
    assert resumed(f"claude --session-id {B}", UNSAID) == f"claude --session-id {B}"


def test_an_id_that_is_taken_without_a_conversation_is_not_passed_at_all() -> None:
    taken = Identity(agent="claude", conversation=B, prompted=False, taken=True)
    assert resumed(f"claude --session-id {B} --model opus", taken) == "claude --model opus"


@pytest.mark.parametrize("conversation", [None, "--dangerously-skip-permissions", "title"])
def test_without_an_id_there_is_no_way_back(conversation: str | None) -> None:
    identity = Identity(agent="claude", conversation=conversation)
    assert CLAUDE.resume(identity, Command(argv=("claude",), cwd=CWD)) is None
    assert CLAUDE.resume(SAID, Command(argv=(), cwd=CWD)) is None


def test_a_restored_agent_does_not_take_itself_for_a_child() -> None:
    environ = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": A, "CLAUDE_CODE_CHILD_SESSION": "1", "CLAUDE_PID": "1"}
    kept = {"CLAUDE_CONFIG_DIR": "/c", "CLAUDE_CODE_USE_VERTEX": "1"}
    command = CLAUDE.resume(SAID, Command(argv=("claude",), cwd=CWD, environ={**environ, **kept}))
    assert command is not None
    assert command.environ == kept


FLAGS = st.sampled_from(
    [
        ("--model", "opus"),
        ("--effort=high",),
        ("--add-dir", "/a", "/b"),
        ("--permission-mode", "plan"),
        ("--verbose",),
        ("--settings", "-odd"),
        ("--allowed-tools", "Bash(git *)"),
        ("--debug",),
        ("--dangerously-skip-permissions",),
    ]
)
SELECTORS = st.sampled_from(
    [
        ("--resume", A),
        (f"-r{A}",),
        (f"--resume={A}",),
        ("--session-id", A),
        ("--fork-session",),
        ("-c",),
        ("--from-pr=3",),
    ]
)


@given(st.lists(FLAGS | SELECTORS), st.booleans(), st.booleans())
def test_flags_keep_their_order_and_no_old_id_survives(
    groups: list[tuple[str, ...]], prompted: bool, taken: bool
) -> None:
    identity = Identity(agent="claude", conversation=B, prompted=prompted, taken=taken)
    argv = ("claude", *(word for group in groups for word in group), "--", "prompt")
    command = CLAUDE.resume(identity, Command(argv=argv, cwd=CWD))
    assert command is not None
    selectors = ("--resume", "--session-id", "--fork-session", "-c", "-r", "--from-pr")
    flags = [word for group in groups if not group[0].startswith(selectors) for word in group]
    chosen = ["--resume", B] if prompted else [] if taken else ["--session-id", B]
    assert list(command.argv) == ["claude", *flags, *chosen]


@given(st.lists(st.text(max_size=8) | st.sampled_from(["--resume", "-r", "-cp", "--", "--model", "--new", A])))
def test_resuming_a_resumed_command_changes_nothing(words: list[str]) -> None:
    once = CLAUDE.resume(SAID, Command(argv=("claude", *words), cwd=CWD))
    assert once is not None
    assert CLAUDE.resume(SAID, once) == once


@given(st.lists(st.text(max_size=8), max_size=8))
def test_no_command_line_raises(argv: list[str]) -> None:
    seen = process(*argv)
    assert 0 <= CLAUDE.score(seen) <= 1
    read_launch(seen)


def test_the_list_of_background_agents_is_the_panes_agent_and_none_of_them() -> None:
    """What it starts below itself has a registry entry of its own, and would be taken for what is in sight."""
    listing = process("claude", "agents", pid=10)
    worker = process("claude", "--session-id", A, "--agent", "claude", pid=12, ppid=10)
    found = agent_of([listing, worker])
    assert found is not None
    assert found[1].pid == 10
    assert CLAUDE.score(process("claude", "agents", "--json")) == 0
