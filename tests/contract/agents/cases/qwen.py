"""Qwen Code 0.15.10 as recorded."""

from __future__ import annotations

from tests.contract.agents import samples
from tests.contract.agents.case import AgentCase, Transcript
from tests.unit.agents.hosts import HOME, process

VERSION = "qwen-0.15.10"
FORKED = "79d05d48-96ff-46aa-95f2-8b638fb590b0"
FAILED = "22222222-2222-4333-8444-555555555555"
CLEARED = "b2d1c54c-e14d-4aa3-af9d-3e7fd591e95d"
CHATS = f"{HOME}/.qwen/projects/-home-dev-w-qwen1/chats"
_BIN = "/home/dev/npm/node_modules/.bin/qwen"
_SCRIPT = "/usr/lib/node_modules/@qwen-code/qwen-code/cli.js"


def _transcript(conversation: str, begins: list[tuple[str, str]], turns: int) -> Transcript:
    data = samples.read(VERSION, f"chats/{conversation}.jsonl")
    return Transcript(conversation, data, f"{CHATS}/{conversation}.jsonl", begins, turns)


CASE = AgentCase(
    agent="qwen",
    conversation=FORKED,
    mine=(
        process("node", _BIN),
        process("/usr/bin/node", _BIN, "--session-id", FORKED, comm="node"),
        process("node", _SCRIPT, "--continue"),
        process("node", _BIN, "--allowed-tools", "read_file", "edit", "-y"),
        process("node", _BIN, "-i", "fix the build"),
    ),
    others=(
        process("node", _BIN, "-p", "hello"),
        process("node", _BIN, "fix the build"),
        process("node", _BIN, "-y", "--", "fix the build"),
        process("node", _BIN, "--acp"),
        process("node", _BIN, "--input-format", "stream-json", "-o", "stream-json"),
        process("node", _BIN, "mcp", "list"),
        process("node", _BIN, "auth"),
        process("node", _BIN, "channel", "start"),
        process("node", _BIN, "--version"),
    ),
    words=(
        "--resume",
        "-r",
        "--continue",
        "-c=true",
        "--session-id",
        "--sessionId",
        "-p",
        "-i",
        "--model",
        "--yolo",
        "true",
        "--add-dir",
        "--allowed-tools",
        "edit",
        "--no-chat-recording",
    ),
    transcripts=(
        _transcript(FORKED, [("user", "first prompt alpha for qwen"), ("assistant", "STUB-REPLY 5: ")], 9),
        _transcript(FAILED, [("user", "qwen two"), ("assistant", "STUB-REPLY 33: ")], 4),
        _transcript(CLEARED, [("user", "post clear qwen"), ("assistant", "STUB-REPLY 59: ")], 2),
    ),
)
