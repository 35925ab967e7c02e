"""Cline CLI 3.0.65 as recorded."""

from __future__ import annotations

from tests.contract.agents import samples
from tests.contract.agents.case import AgentCase, Transcript
from tests.unit.agents.hosts import HOME, process

ID = "1794732517843_37uq1"
DELEGATING = "1794757899784_pcc54"
_VERSION = "cline-3.0.65"
_EXE = "/home/dev/npm/node_modules/@cline/cli-linux-x64/bin/cline"
_SESSIONS = f"{HOME}/.cline/data/sessions"


CASE = AgentCase(
    agent="cline",
    conversation=ID,
    mine=(
        process("cline", "--tui", "--auto-approve", "false", exe=_EXE),
        process("cline", "--tui", "--id", ID, exe=_EXE),
        process("cline", exe=_EXE),
        process("cline", "-i", "look at this", "-p", exe=_EXE),
        process("node", "/home/dev/npm/node_modules/cline/bin/cline", "--plan", exe="/usr/bin/node"),
        process("/opt/node_modules/cline/bin/.cline", "--thinking", exe="/opt/node_modules/cline/bin/.cline"),
    ),
    others=(
        process(_EXE, "--cline-hub-daemon", "--cwd", "/home/dev/work/cl1", "--port", "25463", exe=_EXE, comm="cline"),
        process("cline", "do it and end", exe=_EXE),
        process("cline", "--json", "do it", "--tui", exe=_EXE),
        process("cline", "auth", "-p", "openai-compatible", exe=_EXE),
        process("cline", "history", exe=_EXE),
        process("cline", "--acp", exe=_EXE),
        process("cline", "-z", "work on it", exe=_EXE),
    ),
    words=("--tui", "-i", "--id", "--auto-approve", "false", "-p", "-c", "--thinking", "-k", "--worktree", "-m"),
    transcripts=(
        Transcript(
            ID,
            samples.read(_VERSION, "messages.json"),
            f"{_SESSIONS}/{ID}/{ID}.messages.json",
            [("user", "tool [bash=sleep 2"), ("assistant", "STUB-REPLY 59"), ("tool", "["), ("assistant", "STUB-DONE")],
            6,
        ),
        Transcript(
            DELEGATING,
            samples.read(_VERSION, "messages_subagent.json"),
            f"{_SESSIONS}/{DELEGATING}/{DELEGATING}.messages.json",
            [("user", "[[tool=sleep 12]]"), ("assistant", ""), ("tool", "[{")],
            12,
        ),
    ),
)
