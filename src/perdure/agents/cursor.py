"""Cursor's agent in the terminal, from what is published of it. Nothing here was measured on the program itself."""

from __future__ import annotations

from perdure.agents._program import Program
from perdure.agents._spec import Ordinary
from perdure.model.agent import ID, PROMPT, AgentSpec, ScreenRule
from perdure.ports import AgentAdapter

#: Rules others go by. They are no recordings of ours, so they are not to be trusted like those that are.
_HEARSAY = 0.6

_OTHER_RUNS = """
    -p --list-models -v -h about acp create-chat generate-rule help install-shell-integration login logout mcp models
    rule status uninstall-shell-integration update upgrade whoami worker
    """.split()

SPEC = AgentSpec(
    binaries=("cursor-agent",),
    prompt=(PROMPT,),
    packages=("/cursor-agent/",),
    scripts=("index.js",),
    not_agents=tuple(_OTHER_RUNS),
    environment=("CURSOR_CONFIG_DIR",),
    keep=(
        "--model <model>",
        "--mode <mode>",
        "--plan",
        "--yolo, -f, --force",
        "--sandbox <mode>",
        "--trust",
        "--approve-mcps",
        "--workspace <path>",
        "--api-key <key>",
        "-H, --header <header>",
    ),
    drop=(
        "--resume [id]",
        "--continue",
        "-p, --print",
        "--output-format <format>",
        "--stream-partial-output",
        "-c, --cloud",
        "-w, --worktree [name]",
        "--worktree-base <ref>",
        "--skip-worktree-setup",
        "-n, --name <name>",
        "--list-models",
        "-v, --version",
        "-h, --help",
    ),
    resume=("--resume", ID),
    # A conversation may be left for another in the program; what was written since tells.
    transcripts=(
        "~/.cursor/chats/*/{id}/store.db",
        "~/.cursor/chats/*/{id}/store.db-wal",
        "~/.cursor/chats/*/{id}/meta.json",
    ),
    signs=(
        r"^\s*Cursor Agent$",
        r"^\s*→ (?:Plan, search, build anything|Add a follow-up)",
    ),
    screen=(
        ScreenRule(
            id="attention.approval",
            match=r"(?i)run \(once\) \(y\)|skip \(esc or n\)|proceed \(y\)|\(y\) \(enter\)|keep \(n\)",
            lines=10,
            state="attention",
            reason="permission",
            confidence=_HEARSAY,
        ),
        ScreenRule(id="busy.hint", match=r"(?i)ctrl\+c to stop", state="busy", confidence=_HEARSAY),
        ScreenRule(id="busy.spinner", match=r"^\s*[⬡⬢⠀-⣿]\s+[A-Z]\w*ing\b", state="busy", confidence=_HEARSAY),
    ),
)


class Cursor(Ordinary):
    """`cursor-agent`, also called `agent`: a script that puts its name before those of its node and its program."""

    def __init__(self) -> None:
        super().__init__("cursor", SPEC)
        names = frozenset(SPEC.binaries)
        self.program = Program(
            names=names, packages=SPEC.packages, scripts=frozenset(SPEC.scripts), shared=frozenset({"agent"})
        )
        self.programs = self.program.programs


ADAPTER: AgentAdapter = Cursor()
