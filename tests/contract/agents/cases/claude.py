"""Claude Code 2.1.325 as recorded."""

from __future__ import annotations

from tests.contract.agents import samples
from tests.contract.agents.case import AgentCase, Transcript
from tests.unit.agents.hosts import HOME, process

ID = "99f3a7b0-1818-4f10-a351-0358ee18ba5c"
CRASHED = "991d8052-f962-4cb1-8de9-ae620d3138d3"
_VERSION = "claude-code-2.1.325"
_NPM = "/home/dev/npm/node_modules/@anthropic-ai/claude-code/bin/claude.exe"
_PROJECT = f"{HOME}/.claude/projects/-home-dev-work-proj1"


def _transcript(conversation: str, name: str, begins: list[tuple[str, str]], turns: int) -> Transcript:
    return Transcript(conversation, samples.read(_VERSION, name), f"{_PROJECT}/{conversation}.jsonl", begins, turns)


CASE = AgentCase(
    agent="claude",
    conversation=ID,
    mine=(
        process("/home/dev/npm/node_modules/.bin/claude", "--name", "my name", exe=_NPM, comm="claude"),
        process("claude", "--resume", ID, exe=_NPM),
        process("node", "/opt/@anthropic-ai/claude-code/cli.js", "--model", "opus"),
        process(_NPM, "attach", "12ab34cd"),
    ),
    others=(
        process("claude", "-p", "hello", exe=_NPM),
        process("claude", "mcp", "list", exe=_NPM),
        process(_NPM, "daemon", "run", "--origin", "transient"),
        process("claude bg-spare", "--bg-spare", "/tmp/cc-daemon/x.claim.sock", exe=_NPM),
        process("/bin/bash", "-c", "source ~/.claude/shell-snapshots/snapshot-bash-1.sh"),
    ),
    words=(
        "--resume",
        "-r",
        ID,
        "--session-id",
        "attach",
        "-p",
        "--model",
        "opus",
        "--add-dir",
        "--dangerously-skip-permissions",
    ),
    transcripts=(
        _transcript(
            ID,
            "transcript_clear_subagent_rename_compact.jsonl",
            [("system", "<command-name>/clear"), ("user", "after clear prompt alpha"), ("assistant", "STUB-REPLY 4: ")],
            15,
        ),
        _transcript(
            CRASHED,
            "transcript_crash_resume_two_holders.jsonl",
            [("user", "CRASH-MARKER-ONE"), ("assistant", "STUB-REPLY 27: "), ("user", "CRASH-MARKER-TWO")],
            12,
        ),
    ),
)
