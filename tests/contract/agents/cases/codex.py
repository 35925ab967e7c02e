"""Codex 0.166.0 as recorded."""

from __future__ import annotations

from tests.contract.agents import samples
from tests.contract.agents.case import AgentCase, Transcript
from tests.unit.agents.hosts import HOME, DirectoryHost, process

ID = "01a1de5a-d3bd-7910-8d04-f387b46263a3"
COMPACTED = "01a1de60-4847-7c20-9c35-31c59e335b85"
FORKED, PARENT = "01a1de5e-2fff-7340-a8e8-6f95d469581a", "01a1de5c-82fc-7541-b400-456e788c0412"
KILLED = "01a1de5e-2cda-7f73-9e7b-324c500ceb9e"
SPAWNING, SPAWNED = "01a1dfa8-c543-76c1-a602-fdf0fd26fe01", "01a1dfa8-cf36-7231-8a85-ac7a6f1270f0"
VERSION = "codex-0.166.0"
DAY = f"{HOME}/.codex/sessions/2026/11/15"
_NPM = "/home/dev/npm/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
_RELEASE = "/home/dev/.codex/packages/app-server-daemon/releases/0.166.0-x86_64-unknown-linux-musl/bin/codex"


def rollout(thread: str, time: str = "08-37-36") -> str:
    """Return where a thread of that day is written."""
    return f"{DAY}/rollout-2026-11-15T{time}-{thread}.jsonl"


def _with_its_sub_agent(host: DirectoryHost) -> None:
    host.write(rollout(SPAWNED, "14-42-24"), samples.read(VERSION, "rollout-of-sub-agent.jsonl"))


def _transcript(conversation: str, name: str, begins: list[tuple[str, str]], turns: int) -> Transcript:
    return Transcript(conversation, samples.read(VERSION, name), rollout(conversation), begins, turns)


CASE = AgentCase(
    agent="codex",
    conversation=ID,
    mine=(
        process("node", "/home/dev/npm/node_modules/.bin/codex", "resume", ID),
        process(_NPM, "--no-daemon", "-m", "gpt-5", exe=_NPM, comm="codex"),
        process("codex", "resume", ID, "--search", exe="/opt/homebrew/bin/codex"),
        process("codex", "fork", "--last", exe=_NPM),
        process("codex", "agents", exe=_NPM),
        process("codex", "please review this", exe=_NPM),
        process("node", "/usr/lib/node_modules/@openai/codex/bin/codex.js"),
    ),
    others=(
        process(
            _RELEASE,
            "app-server",
            "--listen",
            "unix://",
            "--analytics-default-enabled",
            "--managed-daemon",
            exe=_RELEASE,
            comm="codex",
        ),
        process(_RELEASE, "app-server", "daemon", "pid-update-loop", exe=_RELEASE, comm="codex"),
        process("codex", "exec", "do it", exe=_NPM),
        process("codex", "e", "do it", exe=_NPM),
        process("codex", "-c", "model=x", "exec", "do it", exe=_NPM),
        process("node", "/home/dev/npm/node_modules/.bin/codex", "mcp", "list"),
        process("codex", "login", exe=_NPM),
        process("codex", "--version", exe=_NPM),
        process("codex", "review", exe=_NPM),
        process("codex", "cloud", exe=_NPM),
    ),
    words=(
        "resume",
        "fork",
        "--last",
        "-c",
        "tui.animations=false",
        "-m",
        "gpt-5",
        "-i",
        "--yolo",
        "--dangerously-bypass-approvals-and-sandbox",
        "-C",
        "--add-dir",
        "--no-daemon",
    ),
    transcripts=(
        _transcript(
            ID,
            "rollout-two-turns-tool.jsonl",
            [
                ("user", "first prompt alpha for codex"),
                ("assistant", "STUB-REPLY 2"),
                ("user", "please run it"),
                ("assistant", ""),
                ("tool", "Chunk ID"),
                ("assistant", "STUB-DONE 27"),
            ],
            12,
        ),
        _transcript(
            COMPACTED,
            "rollout-compacted-and-error.jsonl",
            [("user", "fifth prompt foxtrot"), ("assistant", "STUB-REPLY 52"), ("assistant", "STUB-REPLY 54")],
            6,
        ),
        _transcript(FORKED, "rollout-forked.jsonl", [("user", "after fork echo"), ("assistant", "STUB-REPLY 42")], 2),
        _transcript(KILLED, "rollout-tail-killed-midturn.jsonl", [("assistant", "STUB-REPLY 40")], 2),
        _transcript(SPAWNING, "rollout-with-sub-agent.jsonl", [("user", "spawn one"), ("assistant", "")], 10)._replace(
            around=_with_its_sub_agent
        ),
    ),
)
