"""Goose 1.34.0 as recorded."""

from __future__ import annotations

from tests.contract.agents import samples
from tests.contract.agents.case import AgentCase, Transcript
from tests.unit.agents.hosts import HOME, process

COMPACTED, DELEGATING, INTERRUPTED, FRESH = "20261115_19", "20261115_20", "20261115_12", "20261115_23"
VERSION = "goose-1.34.0"
DATABASE = f"{HOME}/.local/share/goose/sessions/sessions.db"
_NPM = "/home/dev/npm/node_modules/@aaif/goose-binary-linux-x64/bin/goose"


def _transcript(conversation: str, begins: list[tuple[str, str]], turns: int) -> Transcript:
    return Transcript(conversation, samples.read(VERSION, "sessions.db"), DATABASE, begins, turns)


CASE = AgentCase(
    agent="goose",
    conversation=DELEGATING,
    mine=(
        process("goose", "session", exe=_NPM),
        process("goose", exe=_NPM),
        process("/home/dev/.local/bin/goose", "s", "--with-builtin", "developer", "--debug"),
        process("goose", "session", "-r", "--session-id", DELEGATING, "--history", exe=_NPM),
        process("goose", "run", "-t", "hello", "-s", exe=_NPM),
    ),
    others=(
        process("goose", "run", "-t", "hello", exe=_NPM),
        process("goose", "session", "list", exe=_NPM),
        process("goose", "session", "--help", exe=_NPM),
        process("goose", "--version", exe=_NPM),
        process("goose", "acp", exe=_NPM),
        process("goose", "mcp", "developer", exe=_NPM),
        process("goose", "serve", exe=_NPM),
        process("goose", "project", exe=_NPM),
        process("goose", "term", "run", "hello", exe=_NPM),
        process("node", "/home/dev/npm/node_modules/.bin/goose-tui"),
        process("goose", "postgres", "user=dev dbname=app", "up", exe="/home/dev/go/bin/goose"),
        process("goose", "-dir", "migrations", "up", exe="/home/dev/go/bin/goose"),
    ),
    words=(
        "session",
        "run",
        "--resume",
        "-r",
        "--session-id",
        "--name",
        "-n",
        "--fork",
        "--history",
        "--with-builtin",
        "developer",
        "-t",
        "-s",
        "--no-profile",
    ),
    transcripts=(
        _transcript(
            DELEGATING,
            [("user", "[[call=delegate"), ("assistant", ""), ("tool", "STUB-REPLY 72"), ("assistant", "STUB-DONE 73")],
            6,
        ),
        _transcript(
            COMPACTED,
            [
                ("user", "big"),
                ("assistant", "STUB-REPLY 69"),
                ("system", "Stub aside 40"),
                ("system", "Your context was compacted"),
                ("user", "more"),
            ],
            6,
        ),
    ),
)
