"""Cursor's agent as others have seen it run."""

from __future__ import annotations

from tests.contract.agents.case import AgentCase
from tests.unit.agents.hosts import process

ID = "99f3a7b0-1818-4f10-a351-0358ee18ba5c"
_PLACE = "/home/dev/.local/share/cursor-agent/versions/2026.09.18"
_NODE, _SCRIPT = f"{_PLACE}/node", f"{_PLACE}/index.js"
_BIN = "/home/dev/.local/bin"

CASE = AgentCase(
    agent="cursor",
    conversation=ID,
    mine=(
        process(f"{_BIN}/cursor-agent", "--use-system-ca", _SCRIPT, exe=_NODE, comm="node"),
        process(f"{_BIN}/agent", "--use-system-ca", _SCRIPT, "--resume", ID, exe=_NODE, comm="node"),
        process("node", "--use-system-ca", _SCRIPT, f"--resume={ID}"),
        process("bash", f"{_BIN}/cursor-agent"),
    ),
    others=(
        process(f"{_BIN}/cursor-agent", "--use-system-ca", _SCRIPT, "-p", "hello", exe=_NODE, comm="node"),
        process(f"{_BIN}/agent", "--use-system-ca", _SCRIPT, "login", exe=_NODE, comm="node"),
        process("/opt/other/agent", "--port", "80"),
        process("node", "/srv/app/index.js"),
        process("vim", _SCRIPT),
    ),
    words=("--resume", f"--resume={ID}", "--continue", "--model", "auto", "-f", "--print", "-n", "--worktree"),
)
