"""GitHub Copilot CLI 1.0.102 as recorded."""

from __future__ import annotations

from tests.contract.agents import samples
from tests.contract.agents.case import AgentCase, Transcript
from tests.unit.agents.hosts import HOME, process

ID = "1e4e56c8-8dcc-4231-9fad-8c18d22f0908"
SUBAGENT = "d01d0917-fb36-49f8-91a3-a45b71b30360"
FORKED = "3c7c62c6-1425-47ab-ae51-a567de0f1a3a"
_VERSION = "copilot-1.0.102"
_NPM = "/home/dev/npm/node_modules"
_EXE = f"{_NPM}/@github/copilot-linux-x64/copilot"


def _transcript(conversation: str, name: str, begins: list[tuple[str, str]], turns: int) -> Transcript:
    path = f"{HOME}/.copilot/session-state/{conversation}/events.jsonl"
    return Transcript(conversation, samples.read(_VERSION, name), path, begins, turns)


CASE = AgentCase(
    agent="copilot",
    conversation=ID,
    mine=(
        process("node", f"{_NPM}/.bin/copilot", "--model", "stub-1", comm="node", exe="/usr/bin/node"),
        process(_EXE, "--resume=1e4e56c", comm="MainThread", exe=_EXE),
        process(_EXE, "-i", "look at this", "--allow-tool", "shell(git:*)", "write", comm="MainThread", exe=_EXE),
        process("copilot", "--session-id", ID, comm="MainThread", exe="/usr/local/bin/copilot"),
    ),
    others=(
        process(_EXE, "-p", "hello", "--allow-all-tools", comm="MainThread", exe=_EXE),
        process(_EXE, "mcp", "list", comm="MainThread", exe=_EXE),
        process(_EXE, "--acp", comm="MainThread", exe=_EXE),
        process(_EXE, "--server", "--port", "0", "--managed-server", comm="MainThread", exe=_EXE),
        process("node", f"{_NPM}/.bin/copilot", "--version", comm="node"),
        # Another program of this name.
        process("copilot", "svc", "logs", "--follow", exe="/usr/local/bin/copilot"),
    ),
    words=(
        "--resume",
        f"--resume={ID}",
        "--session-id",
        "--continue",
        "-C",
        "-i",
        "-n",
        "--model",
        "--allow-tool",
        "shell(git:*)",
        "--allow-all",
        "--add-dir",
        "--mode",
        "plan",
    ),
    transcripts=(
        _transcript(
            ID,
            "events.jsonl",
            [("user", "hello copilot"), ("assistant", "STUB-REPLY 5: "), ("user", "do tool"), ("assistant", "STUB-")],
            10,
        ),
        _transcript(
            SUBAGENT,
            "events_subagent_compaction.jsonl",
            [("user", "hello view"), ("assistant", "STUB-REPLY 42: hello view")],
            12,
        ),
        _transcript(
            FORKED,
            "events_forked.jsonl",
            [("user", "third talk"), ("assistant", "STUB-REPLY 3: "), ("user", "in the fork"), ("assistant", "STUB-")],
            4,
        ),
    ),
)
