"""Amp as others have seen it run."""

from __future__ import annotations

from tests.contract.agents.case import AgentCase
from tests.unit.agents.hosts import process

ID = "T-9d254d73-e01d-4520-a1e0-6f6c4111696c"

CASE = AgentCase(
    agent="amp",
    conversation=ID,
    mine=(
        process("amp"),
        process("/home/dev/.amp/bin/amp", "threads", "continue", ID, "--dangerously-allow-all"),
        process("node", "/usr/lib/node_modules/@sourcegraph/amp/dist/main.js", "--no-ide"),
    ),
    others=(
        process("amp", "-x", "hello"),
        process("amp", "threads", "list"),
        process("amp", "login"),
        process("amp", "notes.txt"),
        process("node", "/srv/app/dist/main.js"),
    ),
    words=("threads", "continue", "--no-ide", "-m", "deep", "-x", "--dangerously-allow-all"),
)
