"""opencode 1.18.33 as recorded."""

from __future__ import annotations

from tests.contract.agents import samples
from tests.contract.agents.case import AgentCase, Transcript
from tests.unit.agents.hosts import HOME, process

MAIN, CHILD = "ses_e20560c37ffe0d00ceqeVcLogZ", "ses_e204e58ceffenRGeUY8LVRHpvK"
SECOND, KILLED = "ses_e204a95fcffeOUCnkNG20ricnK", "ses_e20473281ffeJ5AxtqcbY69SDr"
VERSION = "opencode-1.18.33"
DATABASE = f"{HOME}/.local/share/opencode/opencode.db"
_NPM = "/home/dev/npm/node_modules/opencode-ai/bin/opencode.exe"


def _transcript(conversation: str, begins: list[tuple[str, str]], turns: int) -> Transcript:
    return Transcript(conversation, samples.read(VERSION, "opencode.db"), DATABASE, begins, turns)


CASE = AgentCase(
    agent="opencode",
    conversation=MAIN,
    mine=(
        process("opencode", exe=_NPM),
        process("opencode", "sub", "--agent", "plan", exe=_NPM),
        process("/home/dev/.opencode/bin/opencode", "-s", MAIN, "-m", "stub/stub-1"),
        process("opencode", "--mini", "--port", "4096", exe=_NPM),
        process("node", "/home/dev/npm/node_modules/.bin/opencode", "--continue"),
    ),
    others=(
        process("opencode", "run", "hello", exe=_NPM),
        process("opencode", "serve", "--port", "4096", exe=_NPM),
        process("opencode", "web", exe=_NPM),
        process("opencode", "acp", exe=_NPM),
        process("opencode", "attach", "http://localhost:4096", exe=_NPM),
        process("opencode", "auth", "login", exe=_NPM),
        process("opencode", "--print-logs", "session", "list", exe=_NPM),
        process("opencode", "-v", exe=_NPM),
    ),
    words=(
        "-s",
        "--session",
        f"--session={MAIN}",
        "-c",
        "--fork",
        "--prompt",
        "--model",
        "stub/stub-1",
        "--cors",
        "--auto",
        "--port",
        "/home/dev/work",
        "sub",
        "--mdns",
        "false",
    ),
    transcripts=(
        _transcript(
            MAIN,
            [
                ("user", "first prompt"),
                ("assistant", "STUB-REPLY 1"),
                ("user", "run it"),
                ("assistant", ""),
                ("tool", "finished"),
            ],
            24,
        ),
        # Killed before the first word of an answer.
        _transcript(KILLED, [("user", "in sub directory")], 1),
    ),
)
