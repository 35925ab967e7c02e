"""Simulant 1.0 as recorded."""

from __future__ import annotations

from tests.contract.agents import samples
from tests.contract.agents.case import AgentCase, Transcript
from tests.unit.agents.hosts import HOME, process

ID = "5a1d7e2c-0b43-4f6e-9c38-2f1a6b7c8d90"
_SCRIPT = "/usr/lib/python3/dist-packages/perdure/demo/agent.py"

CASE = AgentCase(
    agent="simulant",
    conversation=ID,
    mine=(
        process("/usr/bin/python3", "-I", _SCRIPT, "--model", "big"),
        process("/usr/bin/python3", "-I", _SCRIPT, "--resume", ID, "--boot", "2"),
        process("simulant", "--session", ID, "look at the parser"),
    ),
    others=(
        process("/usr/bin/python3", "-I", _SCRIPT, "--version"),
        process("simulant", "--help"),
        process("python3", "/srv/app/agent.py"),
    ),
    words=("--session", "--resume", "--model", "big", "--boot", "1", "--think", "--lazy-death", "a prompt"),
    transcripts=(
        Transcript(
            ID,
            samples.read("simulant-1.0", "conversation.jsonl"),
            f"{HOME}/.simulant/conversations/{ID}.jsonl",
            [("user", "why does the parser"), ("assistant", "Noted as number 1"), ("user", "run make test")],
            4,
        ),
    ),
)
