"""Amp, from what is published of it. Its threads live on its servers, so nothing here was measured on the program."""

from __future__ import annotations

from perdure.agents._spec import Ordinary
from perdure.model.agent import ID, UUID, AgentSpec, ScreenRule
from perdure.model.process import Process
from perdure.ports import AgentAdapter

#: Rules others go by. They are no recordings of ours, so they are not to be trusted like those that are.
_HEARSAY = 0.6

_CONTINUE = ("threads", "continue")

SPEC = AgentSpec(
    binaries=("amp",),
    packages=("/@sourcegraph/amp/",),
    scripts=("main.js",),
    not_agents=("-x", "--orb-execute", "--stream-json", "-V", "-h"),
    environment=("AMP_URL", "AMP_SETTINGS_FILE", "AMP_TOOLBOX"),
    id=f"T-{UUID}",
    keep=(
        "--dangerously-allow-all",
        "--no-ide",
        "--jetbrains",
        "--no-notifications",
        "-m, --mode <mode>",
        "--visibility <visibility>",
        "--settings-file <path>",
        "--mcp-config <value>",
        "--log-level <level>",
        "--log-file <path>",
        "--executor <where>",
        "--runner-dir <path>",
    ),
    drop=(
        "-x, --execute [message]",
        "--orb-execute [message]",
        "--stream-json",
        "--stream-json-input",
        "-V, --version",
        "-h, --help",
    ),
    resume=(*_CONTINUE, ID),
    # Not every thread has a file here; one that has none is doubtful.
    transcripts=("$XDG_DATA_HOME/amp/threads/{id}.json", "~/.local/share/amp/threads/{id}.json"),
    signs=(r"title: - amp - ",),
    screen=(
        ScreenRule(
            id="attention.approval",
            match=r"(?i)waiting for approval|run this command\?|allow (?:editing|creating) file:|allow all for this session",
            lines=10,
            state="attention",
            reason="permission",
            confidence=_HEARSAY,
        ),
        ScreenRule(
            id="attention.title",
            region="title",
            match=r"Plugin confirmation needed",
            state="attention",
            reason="permission",
            confidence=_HEARSAY,
        ),
        ScreenRule(id="busy.title", region="title", match=r"^[⠀-⣿] ", state="busy", confidence=_HEARSAY),
        ScreenRule(
            id="busy.frame",
            match=r"(?i)^\s*╰.*(?:thinking|streaming|running tools)\b.*─",
            lines=3,
            state="busy",
            confidence=_HEARSAY,
        ),
        ScreenRule(id="idle.title", region="title", match=r" - amp - ", state="idle", confidence=_HEARSAY),
    ),
)


class Amp(Ordinary):
    """`amp` alone or continuing a thread."""

    def __init__(self) -> None:
        super().__init__("amp", SPEC)

    def score(self, process: Process) -> float:
        """Return 0 for other subcommands, and for other programs of that name, which are given files and commands."""
        words = [argument.values[0] for argument in self.arguments(process) if argument.name is None]
        return super().score(process) if not words or tuple(words[:2]) == _CONTINUE else 0.0


ADAPTER: AgentAdapter = Amp()
