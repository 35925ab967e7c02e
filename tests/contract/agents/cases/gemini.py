"""Gemini CLI 0.61.0 as recorded."""

from __future__ import annotations

from tests.contract.agents import samples
from tests.contract.agents.case import AgentCase, Transcript
from tests.unit.agents.hosts import HOME, DirectoryHost, process

VERSION = "gemini-0.61.0"
FAILED = "11111111-2222-4333-8444-555555555555"
RESUMED = "cccccccc-2222-4333-8444-555555555555"
LONG = "5a3c1f00-1111-4222-8333-444444444444"
SUBAGENT = "e91d508e-3f7c-4cc4-a1c4-666cacf28211"
PROJECTS = f"{HOME}/.gemini/tmp"
_BIN = "/home/dev/npm/node_modules/.bin/gemini"
_SCRIPT = "/usr/lib/node_modules/@google/gemini-cli/bundle/gemini.js"


def chat(name: str) -> bytes:
    """Return a recorded transcript."""
    return samples.read(VERSION, f"chats/{name}")


def _companion(host: DirectoryHost) -> None:
    path = f"{PROJECTS}/gem4/chats/session-2026-11-15T08-56-cccccccc.jsonl"
    host.write(path, chat("resumed_session-2026-11-15T08-56-cccccccc.jsonl"), at=600)


def _subagent(host: DirectoryHost) -> None:
    host.write(f"{PROJECTS}/gem5/chats/{LONG}/{SUBAGENT}.jsonl", chat(f"subagent_{SUBAGENT}.jsonl"))


CASE = AgentCase(
    agent="gemini",
    conversation=RESUMED,
    mine=(
        process("node", _BIN),
        process("/usr/bin/node", "--max-old-space-size=12052", _BIN, "--session-id", RESUMED, comm="node"),
        process("node", _SCRIPT, "--resume", "latest"),
        process("node", _BIN, "fix the build", "--approval-mode", "auto_edit"),
        process("node", _BIN, "-i", "fix the build", "-y"),
    ),
    others=(
        process("node", _BIN, "-p", "hello"),
        process("node", _BIN, "--prompt=hello"),
        process("node", _BIN, "--list-sessions"),
        process("node", _BIN, "--delete-session", "1"),
        process("node", _BIN, "--acp"),
        process("node", _BIN, "--experimentalAcp"),
        process("node", _BIN, "-l"),
        process("node", _BIN, "mcp", "list"),
        process("node", _BIN, "extension", "list"),
        process("node", _BIN, "-d", "hooks", "migrate"),
    ),
    words=(
        "--resume",
        "-r",
        "latest",
        "--session-id",
        "--sessionId",
        "-p",
        "-i",
        "--model",
        "flash",
        "--yolo",
        "false",
        "--include-directories",
        "--worktree",
        "--no-sandbox",
        "-s=true",
    ),
    transcripts=(
        Transcript(
            FAILED,
            chat("session-2026-11-15T08-41-11111111.jsonl"),
            f"{PROJECTS}/gem1/chats/session-2026-11-15T08-41-11111111.jsonl",
            [("user", "gem two"), ("assistant", "STUB-REPLY 34"), ("user", "[[error=400]]"), ("system", "[API Error")],
            5,
            header=True,
        ),
        Transcript(
            RESUMED,
            chat("resumed_session-2026-11-15T08-55-cccccccc.jsonl"),
            f"{PROJECTS}/gem4/chats/session-2026-11-15T08-55-cccccccc.jsonl",
            [("user", "gem4 keep me november"), ("assistant", "STUB-REPLY 103: ")],
            2,
            around=_companion,
            header=True,
        ),
        Transcript(
            LONG,
            chat("session-2026-11-15T15-40-5a3c1f00.jsonl"),
            f"{PROJECTS}/gem5/chats/session-2026-11-15T15-40-5a3c1f00.jsonl",
            [
                ("user", "first thing"),
                ("assistant", "STUB-REPLY 1: first thing"),
                ("user", "[[tool=echo hello]] run it"),
                ("assistant", ""),
                ("tool", "<untrusted_context>"),
                ("assistant", "STUB-DONE 3: "),
                ("user", "[[tool=rm -rf zzz]] cancel it"),
                ("assistant", ""),
            ],
            25,
            around=_subagent,
            header=True,
        ),
    ),
)
