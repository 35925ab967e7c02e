"""Qwen Code: recognised, identified, described, read and brought back.

Hooks name its conversation and follow it at once. Without them there is the command line, until a log or a transcript
in the project tells of another conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os.path import isabs, join
from typing import TYPE_CHECKING, Any

from perdure.agents._json import decode_object, mapping, one_line, text
from perdure.agents._kin import Kin, home_of, profile_of
from perdure.agents._records import moment
from perdure.agents._urls import host_of
from perdure.agents._yargs import declared
from perdure.agents.qwen.store import QwenStore
from perdure.agents.qwen.transcript import Latest, first_line, turns
from perdure.model.agent import ID, PROMPT, AgentSpec
from perdure.model.identity import AgentDetails, Identity
from perdure.model.process import Process
from perdure.model.screen import Screen, ScreenReading
from perdure.ports import AgentAdapter, HostView

if TYPE_CHECKING:
    from perdure.agents._told import Sign

_USUAL_HOME = ".qwen"

_KEPT = declared(
    "--telemetry",
    "--telemetry-target [target]",
    "--telemetry-otlp-endpoint [url]",
    "--telemetry-otlp-protocol [protocol]",
    "--telemetry-log-prompts",
    "--telemetry-outfile [path]",
    "-d, --debug",
    "--bare",
    "--proxy [url]",
    "--chat-recording",
    "-m, --model [model]",
    "--system-prompt [prompt]",
    "--append-system-prompt [prompt]",
    "-s, --sandbox",
    "--sandbox-image [uri]",
    "-y, --yolo",
    "--approval-mode [mode]",
    "--checkpointing",
    "--experimental-skills",
    "--experimental-lsp",
    "--channel [channel]",
    "--allowed-mcp-server-names [names...]",
    "--mcp-config [config]",
    "--allowed-tools [tools...]",
    "-e, --extensions [names...]",
    "--add-dir, --include-directories [directories...]",
    "--openai-logging",
    "--openai-logging-dir [path]",
    "--openai-api-key [key]",
    "--openai-base-url [url]",
    "--screen-reader",
    "-o, --output-format [format]",
    "--json-file [path]",
    "--input-file [path]",
    "--max-session-turns [number]",
    "--core-tools [tools...]",
    "--exclude-tools [tools...]",
    "--disabled-slash-commands [commands...]",
    "--auth-type [type]",
)
#: A descriptor that was handed over once is not there again.
_DROPPED = declared(
    "-p, --prompt [prompt]",
    "-i, --prompt-interactive [prompt]",
    "--acp",
    "--experimental-acp",
    "-l, --list-extensions",
    "--input-format [format]",
    "--include-partial-messages",
    "--json-fd [number]",
    "--json-schema [schema]",
    "-c, --continue",
    "-r, --resume [session]",
    "--session-id [id]",
    "-v, --version",
    "-h, --help",
)
_NOT_AGENTS = """
    --prompt --acp --experimental-acp --list-extensions --json-schema --version --help
    mcp extensions auth hooks hook channel review
    """.split()
_ENVIRONMENT = """
    QWEN_HOME QWEN_RUNTIME_DIR QWEN_DEBUG_LOG_FILE QWEN_CODE_SYSTEM_SETTINGS_PATH QWEN_CODE_SYSTEM_DEFAULTS_PATH
    QWEN_CODE_TRUSTED_FOLDERS_PATH QWEN_CODE_MEMORY_BASE_DIR QWEN_CODE_LANG QWEN_SYSTEM_MD
    QWEN_SANDBOX QWEN_SANDBOX_IMAGE SANDBOX_FLAGS SANDBOX_MOUNTS
    OPENAI_BASE_URL OPENAI_MODEL ANTHROPIC_BASE_URL ANTHROPIC_MODEL GEMINI_MODEL GOOGLE_MODEL
    GOOGLE_GENAI_USE_VERTEXAI GOOGLE_CLOUD_PROJECT GOOGLE_CLOUD_LOCATION CLI_TITLE NODE_EXTRA_CA_CERTS
    """.split()

SPEC = AgentSpec(
    binaries=("qwen",),
    prompt=(f"--prompt-interactive={PROMPT}",),
    packages=("/@qwen-code/qwen-code/",),
    scripts=("cli.js", "index.js"),
    not_agents=tuple(_NOT_AGENTS),
    environment=tuple(_ENVIRONMENT),
    keep=_KEPT,
    drop=_DROPPED,
    resume=("--resume", ID),
    fresh=("--session-id", ID),
    same_directory=True,
    signs=(
        r"title:^Qwen - ",
        r">_ Qwen Code \(v\d",
        r"^[>!*]   Type your message or @path",
        r"^  ✦ ",
        r"^  .*\(\d+s · esc to cancel\)$",
        r"^  [⠀-⣿] Waiting for user confirmation\.\.\.",
        r"^  │ .* No, suggest changes \(esc\)",
        r"^  │ +\((?:Use|Press) \w+ to ",
    ),
)
#: Where requests go, by how the program signed in.
_ADDRESSES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}


class Qwen(Kin):
    """Alibaba's Qwen Code."""

    def __init__(self) -> None:
        super().__init__("qwen", SPEC)

    def score(self, process: Process) -> float:
        """Return how surely this is the agent at work with a person: a prompt without `-i` is answered, and that is all."""
        score = super().score(process)
        arguments = self.arguments(process) if score else []
        options = {argument.name for argument in arguments}
        if None in options and "--prompt-interactive" not in options:
            return 0.0
        return 0.0 if self.option(process, "--input-format") == "stream-json" else score

    def store(self, process: Process, directories: Sequence[str], host: HostView) -> QwenStore:
        """Return the conversations a process can see."""
        return QwenStore(_runtime_home(process, host), directories, host, self.is_conversation)

    def profile(self, process: Process, host: HostView) -> str | None:
        """Return the name of a home that is not the usual one."""
        return profile_of(_runtime_home(process, host), _USUAL_HOME, host)

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return what the transcript says now. How much the model can take in, qwen tells of models it knows."""
        directories = [each for each in (identity.home, process.cwd) if each]
        found = self.store(process, directories, host).find(identity.conversation) if identity.conversation else None
        asked = self.option(process, "--model") or process.environ.get("OPENAI_MODEL")
        if found is None or found.path is None:
            return AgentDetails(model=one_line(asked), provider=self._provider(process, None))
        latest = Latest(found.path, host)
        return AgentDetails(
            title=one_line(latest.title),
            task=one_line(latest.task),
            model=one_line(latest.model or asked),
            provider=self._provider(process, latest.served_by),
            branch=one_line(latest.branch),
            transcript=found.path,
            parent=latest.parent,
            version=one_line(latest.version),
            context_used=latest.used,
            context_limit=latest.limit,
            began_at=moment(text(first_line(found.path, host).get("timestamp"))),
            last_activity_at=latest.at or found.written_at,
        )

    def _provider(self, process: Process, served_by: str | None) -> str | None:
        """The host that is asked, else how the program signed in."""
        how = served_by or self.option(process, "--auth-type")
        given = self.option(process, "--openai-base-url") if how in (None, "openai") else None
        return host_of(given or process.environ.get(_ADDRESSES.get(how or "openai", ""), "")) or how

    def turns(self, conversation: str, host: HostView, transcript: str | None = None) -> Iterator[Mapping[str, object]]:
        """Yield the turns of the branch the last line ends. Of its sub-agents only what they came to is written."""
        if transcript is None and self.is_conversation(conversation):
            found = QwenStore(join(host.home, _USUAL_HOME), (), host, self.is_conversation).find(conversation)
            transcript = found.path if found else None
        if transcript is not None:
            yield from turns(transcript, host)

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        """Return what the bottom of the screen says, None when it cannot tell."""
        from perdure.agents.qwen.screen import read_screen  # dear, and nothing a save needs

        return read_screen(self.name, screen)

    def sign(self, record: Mapping[str, Any]) -> Sign | None:
        """Return what a hook record means, None when nothing."""
        from perdure.agents._told import common_sign  # nothing a save needs

        return common_sign(record)


def _runtime_home(process: Process, host: HostView) -> str:
    """Where its conversations are: settings may keep them elsewhere than themselves."""
    home = home_of(process, (("QWEN_RUNTIME_DIR", ""), ("QWEN_HOME", "")), _USUAL_HOME, host)
    if process.environ.get("QWEN_RUNTIME_DIR"):
        return home
    settings = mapping(decode_object(host.read(join(home, "settings.json"))))
    chosen = text(mapping(settings.get("advanced")).get("runtimeOutputDir"))
    if chosen is None:
        return home
    if chosen == "~" or chosen.startswith("~/"):
        return join(process.environ.get("HOME") or host.home, chosen[2:])
    return chosen if isabs(chosen) else join(process.cwd or home, chosen)


ADAPTER: AgentAdapter = Qwen()
