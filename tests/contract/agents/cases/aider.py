"""Aider 0.86.2 as recorded."""

from __future__ import annotations

from tests.contract.agents import samples
from tests.contract.agents.case import AgentCase, Transcript
from tests.unit.agents.hosts import CWD, process

VERSION = "aider-0.86.2"
HISTORY = f"{CWD}/.aider.chat.history.md"
_PYTHON = "/usr/bin/python3.11"
_SCRIPT = "/home/dev/venv/bin/aider"

CASE = AgentCase(
    agent="aider",
    conversation=HISTORY,
    mine=(
        process("/home/dev/venv/bin/python3", _SCRIPT, "--model", "openai/stub", exe=_PYTHON, comm="aider"),
        process("python", "-m", "aider", "main.py", "--read", "notes.md", exe=_PYTHON),
        process(
            "python3", _SCRIPT, "--chat-history-file", HISTORY, "--restore-chat-history", exe=_PYTHON, comm="aider"
        ),
        process("python3", _SCRIPT, "--no-gui", "--openai-api-key", "made-up", exe=_PYTHON, comm="aider"),
    ),
    others=(
        process("python3", _SCRIPT, "--message", "hello", exe=_PYTHON, comm="aider"),
        process("python3", _SCRIPT, "--msg=hello", exe=_PYTHON, comm="aider"),
        process("python3", _SCRIPT, "-m", "hello", "main.py", exe=_PYTHON, comm="aider"),
        process("python3", _SCRIPT, "--message-f", "prompt.txt", exe=_PYTHON, comm="aider"),
        process("python3", _SCRIPT, "--version", exe=_PYTHON, comm="aider"),
        process("python3", _SCRIPT, "--list-models", "gpt", exe=_PYTHON, comm="aider"),
        process("python3", _SCRIPT, "--gui", exe=_PYTHON, comm="aider"),
        process("python3", _SCRIPT, "--browser", exe=_PYTHON, comm="aider"),
        process("python3", _SCRIPT, "--commit", exe=_PYTHON, comm="aider"),
    ),
    words=(
        "--chat-history-file",
        "--chat-history-file=x.md",
        "--chat-h",
        "--restore-chat-history",
        "--no-restore-chat-history",
        "--rest",
        "--message",
        "-m",
        "main.py",
        "--read",
        "--model",
        "openai/stub",
        "--api-key",
        "openai=made-up",
        "--load",
        "--no-git",
    ),
    transcripts=(
        Transcript(
            HISTORY,
            samples.read(VERSION, "chat.history.md"),
            HISTORY,
            [
                ("system", "aider chat started at 2026-11-15 08:37:02"),
                ("system", "Update git name with"),
                ("user", "aider prompt one"),
                ("assistant", "STUB-REPLY 14:"),
                ("system", "Tokens: 599 sent, 20 received."),
                ("user", "/run sleep 4"),
            ],
            19,
        ),
    ),
)
