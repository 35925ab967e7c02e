"""Gemini CLI: recognised, identified, described, read and brought back.

Hooks name its conversation, except after `/resume` within the program, of which none tells until the next prompt.
Without hooks there is the command line, until another conversation is written in the project.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os.path import join
from typing import TYPE_CHECKING, Any

from perdure.agents._json import one_line, text
from perdure.agents._kin import Kin, home_of, profile_of
from perdure.agents._records import moment
from perdure.agents._urls import host_of
from perdure.agents._yargs import declared
from perdure.agents.gemini.store import GeminiStore, real_first, siblings
from perdure.agents.gemini.transcript import Latest, header, is_whole, turns
from perdure.model.agent import ID, PROMPT, AgentSpec
from perdure.model.identity import AgentDetails, Identity
from perdure.model.process import Process
from perdure.model.screen import Screen, ScreenReading
from perdure.ports import AgentAdapter, HostView

if TYPE_CHECKING:
    from perdure.agents._told import Sign

_USUAL_HOME = ".gemini"

#: Of those that take several values each takes one at a time. The last three are for its makers' own tests.
_KEPT = declared(
    "-d, --debug",
    "-m, --model <model>",
    "--skip-trust",
    "-s, --sandbox",
    "-y, --yolo",
    "--approval-mode <mode>",
    "--policy <path>",
    "--admin-policy <path>",
    "--allowed-mcp-server-names <names>",
    "--allowed-tools <tools>",
    "-e, --extensions <names>",
    "--include-directories <directories>",
    "--screen-reader",
    "-o, --output-format <format>",
    "--raw-output",
    "--accept-raw-output-risk",
    "--fake-responses [path]",
    "--fake-responses-non-strict [path]",
    "--record-responses [path]",
)
#: A worktree is made once: its conversations belong to it, and are resumed in it.
_DROPPED = declared(
    "-p, --prompt <prompt>",
    "-i, --prompt-interactive <prompt>",
    "-w, --worktree [name]",
    "--acp",
    "--experimental-acp",
    "-l, --list-extensions",
    "-r, --resume [session]",
    "--session-file <path>",
    "--session-id <id>",
    "--list-sessions",
    "--delete-session [index]",
    "-v, --version",
    "-h, --help",
)
_NOT_AGENTS = """
    --prompt --acp --experimental-acp --list-extensions --list-sessions --delete-session --version --help
    mcp extensions extension skills skill hooks hook gemma
    """.split()
_ENVIRONMENT = """
    GEMINI_CLI_HOME GEMINI_CLI_SYSTEM_SETTINGS_PATH GEMINI_CLI_SYSTEM_DEFAULTS_PATH GEMINI_CLI_TRUSTED_FOLDERS_PATH
    GEMINI_CLI_TRUST_WORKSPACE GEMINI_MODEL GEMINI_SYSTEM_MD GEMINI_SANDBOX GEMINI_SANDBOX_IMAGE
    GOOGLE_GEMINI_BASE_URL GOOGLE_VERTEX_BASE_URL GOOGLE_GENAI_USE_VERTEXAI GOOGLE_GENAI_USE_GCA
    GOOGLE_GENAI_API_VERSION GOOGLE_CLOUD_PROJECT GOOGLE_CLOUD_PROJECT_ID GOOGLE_CLOUD_LOCATION GOOGLE_CLOUD_REGION
    GOOGLE_CLOUD_QUOTA_PROJECT GOOGLE_CLOUD_UNIVERSE_DOMAIN CLOUDSDK_CONFIG CODE_ASSIST_ENDPOINT
    SANDBOX_FLAGS SANDBOX_MOUNTS CLI_TITLE NODE_EXTRA_CA_CERTS
    """.split()

SPEC = AgentSpec(
    binaries=("gemini",),
    prompt=(f"--prompt-interactive={PROMPT}",),
    packages=("/@google/gemini-cli/",),
    scripts=("gemini.js", "index.js"),
    not_agents=tuple(_NOT_AGENTS),
    environment=tuple(_ENVIRONMENT),
    # --session-id takes any word; after --resume `latest` and a number mean others.
    id=r"(?!latest$)(?!\d+$)[A-Za-z0-9_][A-Za-z0-9_-]*",
    keep=_KEPT,
    drop=_DROPPED,
    resume=("--resume", ID),
    fresh=("--session-id", ID),
    same_directory=True,
    signs=(
        r"title:^[◇✦✋⏲]  \S.*\(.*\)$",
        r"^ ▝▜▄ +Gemini CLI v\d",
        r"^ [>!*]   Type your message or @path",
        r"^ workspace \(/directory\) ",
        r"^ Shift\+Tab to accept edits",
        r"^✦ (?!Tip: )",
        r"^│.* No, suggest changes \(esc\)",
        r"^│ +\((?:Use|Press) \w+ to ",
    ),
)
_ON = frozenset({"1", "true"})


class Gemini(Kin):
    """Google's Gemini CLI."""

    def __init__(self) -> None:
        super().__init__("gemini", SPEC)

    def store(self, process: Process, directories: Sequence[str], host: HostView) -> GeminiStore:
        """Return the conversations a process can see."""
        return GeminiStore(_home(process, host), directories, host)

    def profile(self, process: Process, host: HostView) -> str | None:
        """Return the name of a home that is not the usual one."""
        return profile_of(_home(process, host), _USUAL_HOME, host)

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return what the transcript says now. How much the model can take in, gemini does not tell."""
        model, provider = self.option(process, "--model") or process.environ.get("GEMINI_MODEL"), _provider(process)
        directories = [each for each in (identity.home, process.cwd) if each]
        store = self.store(process, directories, host)
        files = store.files(identity.conversation) if identity.conversation else []
        if not files:
            return AgentDetails(model=one_line(model), provider=provider)
        latest = Latest(files[0], host)
        head = header(files[0], host) or {}
        return AgentDetails(
            title=one_line(latest.title),
            task=one_line(latest.task),
            model=one_line(latest.model or model),
            provider=provider,
            transcript=files[0],
            companions=tuple(files[1:]),
            context_used=latest.used,
            began_at=moment(text(head.get("startTime"))),
            last_activity_at=latest.at or host.modified_at(files[0]),
        )

    def turns(self, conversation: str, host: HostView, transcript: str | None = None) -> Iterator[Mapping[str, object]]:
        """Yield the main conversation's turns, then those of its sub-agents."""
        if transcript is not None:
            files = real_first(siblings(transcript, host), conversation, host) or [transcript]
        elif self.is_conversation(conversation):
            files = GeminiStore(join(host.home, _USUAL_HOME), (), host).files(conversation)
        else:
            files = []
        if files:
            yield from turns(files[0], host)

    def is_whole(self, transcript: bytes) -> bool:
        """Return whether a file of this content can be resumed.

        Whenever gemini starts, it deletes every conversation of the project that has a file with nothing said in it;
        and resuming a conversation makes such a file of its id.
        """
        return is_whole(transcript)

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        """Return what title and bottom of the screen say, None when they cannot tell."""
        from perdure.agents.gemini.screen import read_screen  # dear, and nothing a save needs

        return read_screen(self.name, screen)

    def sign(self, record: Mapping[str, Any]) -> Sign | None:
        """Return what a hook record means, None when nothing."""
        from perdure.agents.gemini.told import sign  # nothing a save needs

        return sign(record)


def _home(process: Process, host: HostView) -> str:
    return home_of(process, (("GEMINI_CLI_HOME", _USUAL_HOME),), _USUAL_HOME, host)


def _provider(process: Process) -> str:
    """Who answers: Google, its cloud, or the name of the host that is asked instead."""
    if process.environ.get("GOOGLE_GENAI_USE_VERTEXAI", "").lower() in _ON:
        return "vertex"
    host = host_of(process.environ.get("GOOGLE_GEMINI_BASE_URL", ""))
    return "google" if not host or host == "googleapis.com" or host.endswith(".googleapis.com") else host


ADAPTER: AgentAdapter = Gemini()
