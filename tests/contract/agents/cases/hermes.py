"""Hermes Agent 0.19.0 as recorded."""

from __future__ import annotations

from tests.contract.agents import samples
from tests.contract.agents.case import AgentCase, Transcript
from tests.unit.agents.hosts import HOME, process

COMPACTED, BRANCH, CHILD = "20261115_153124_138c91", "20261115_153234_413eaf", "20261115_153224_5d463a"
LEFT, AFTER_NEW = "20261115_150737_ad516d", "20261115_151126_04ffac"
VERSION = "hermes-0.19.0"
DATABASE = f"{HOME}/.hermes/state.db"
_BIN = "/home/dev/.local/share/hermes/bin"
_PYTHON = "/usr/bin/python3.11"


def _transcript(conversation: str, begins: list[tuple[str, str]], turns: int) -> Transcript:
    return Transcript(conversation, samples.read(VERSION, "state.db"), DATABASE, begins, turns)


CASE = AgentCase(
    agent="hermes",
    conversation=COMPACTED,
    mine=(
        process(f"{_BIN}/python3", f"{_BIN}/hermes", exe=_PYTHON, comm="hermes"),
        process(f"{_BIN}/python3", f"{_BIN}/hermes", "chat", "--checkpoints", exe=_PYTHON, comm="hermes"),
        process(f"{_BIN}/python3", f"{_BIN}/hermes", "--resume", COMPACTED, "--yolo", exe=_PYTHON, comm="hermes"),
        process(f"{_BIN}/python3", f"{_BIN}/hermes", "--accept-hooks", "--tui", exe=_PYTHON, comm="hermes"),
        process("python3", "-m", "hermes_cli.main", "-p", "coder", exe=_PYTHON, comm="hermes"),
    ),
    others=(
        process(f"{_BIN}/python3", f"{_BIN}/hermes", "gateway", "run", exe=_PYTHON, comm="hermes"),
        process(f"{_BIN}/python3", f"{_BIN}/hermes", "-z", "hello", exe=_PYTHON, comm="hermes"),
        process(f"{_BIN}/python3", f"{_BIN}/hermes", "chat", "-q", "hello", exe=_PYTHON, comm="hermes"),
        process(f"{_BIN}/python3", f"{_BIN}/hermes", "-p", "coder", "sessions", "list", exe=_PYTHON, comm="hermes"),
        process(f"{_BIN}/python3", f"{_BIN}/hermes", "setup", exe=_PYTHON, comm="hermes"),
        process(f"{_BIN}/python3", f"{_BIN}/hermes", "cron", "run", exe=_PYTHON, comm="hermes"),
        process(f"{_BIN}/python3", f"{_BIN}/hermes-acp", exe=_PYTHON),
        process("/usr/bin/node", "--expose-gc", "/home/dev/lib/hermes_cli/tui_dist/entry.js", exe="/usr/bin/node"),
        process(f"{_BIN}/python3", "-m", "tui_gateway.entry", exe=_PYTHON),
        process(f"{_BIN}/python3", "-m", "tui_gateway.slash_worker", "--session-key", COMPACTED, exe=_PYTHON),
    ),
    words=(
        "chat",
        "--resume",
        "-r",
        "--res",
        "-c",
        "--continue",
        "-p",
        "coder",
        "-m",
        "stub-model",
        "--yolo",
        "-s",
        "-w",
        "-q",
        "--max-turns",
    ),
    transcripts=(
        _transcript(
            COMPACTED,
            [("user", "question number 1"), ("assistant", "STUB-REPLY 232"), ("user", "question number 2")],
            27,
        ),
        _transcript(BRANCH, [("user", "question number 1"), ("assistant", "STUB-REPLY 232")], 22),
    ),
)
