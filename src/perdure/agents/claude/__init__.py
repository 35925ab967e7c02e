"""Claude Code: recognised, identified, described, read and brought back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perdure.agents._opening import opening
from perdure.agents.claude import argv, details
from perdure.agents.claude.home import find_transcript, homes, registry_path
from perdure.agents.claude.identity import Search
from perdure.agents.claude.transcript import turns
from perdure.model.agent import PROMPT
from perdure.model.identity import AgentDetails, Identity
from perdure.model.observation import Reading
from perdure.model.process import Command, Process
from perdure.model.screen import Screen, ScreenReading
from perdure.ports import AgentAdapter, HostView, Sighting

#: Where it lives, whom it asks, which model it asks for. Keys and tokens are none of our business, and what it tells
#: its own children (CLAUDECODE, CLAUDE_CODE_SESSION_ID and the like) would turn a restored agent into a child.
_ENVIRONMENT = frozenset(
    """
    CLAUDE_CONFIG_DIR
    ANTHROPIC_BASE_URL ANTHROPIC_BEDROCK_BASE_URL ANTHROPIC_VERTEX_BASE_URL ANTHROPIC_FOUNDRY_BASE_URL
    ANTHROPIC_FOUNDRY_RESOURCE ANTHROPIC_VERTEX_PROJECT_ID
    CLAUDE_CODE_USE_BEDROCK CLAUDE_CODE_USE_VERTEX CLAUDE_CODE_USE_FOUNDRY
    AWS_PROFILE AWS_REGION CLOUD_ML_REGION
    ANTHROPIC_MODEL ANTHROPIC_SMALL_FAST_MODEL CLAUDE_CODE_SUBAGENT_MODEL
    ANTHROPIC_DEFAULT_OPUS_MODEL ANTHROPIC_DEFAULT_SONNET_MODEL ANTHROPIC_DEFAULT_HAIKU_MODEL
    CLAUDE_CODE_DISABLE_1M_CONTEXT CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC DISABLE_AUTOUPDATER
    NODE_EXTRA_CA_CERTS IS_SANDBOX
    """.split()
)

#: What stands on its screens and hardly anybody else's; as `AgentSpec.signs`.
_SIGNS = (
    r"title:^(?:✳ |[⠀-⣿] Claude Code$)",
    r"\bClaude Code v\d",
    r"^\u276f\xa0",
    r"^  (?:⏸|⏵⏵) .+ on\b",
    r" · ← for agents",
    r"[○◐◑●◉] \w+ · /effort",
    r"^[·✢✳✶✻✽*] \w+ for \d+[hms]",
    r"^[·✢✳✶✻✽*] \S+…",
    r"^  ⎿[ \xa0]",
    r"^╌{20}",
    r"^ *Enter to .* · Esc to (?:cancel|clear)$",
)


class Claude:
    """Anthropic's Claude Code, native or run by node."""

    name = "claude"
    programs = argv.PROGRAM.programs
    same_directory = False
    environment = _ENVIRONMENT
    signs = _SIGNS
    #: Older versions turn a wheel in it while busy, and only then.
    title_tells = True

    def score(self, process: Process) -> float:
        """Return 1 for the program itself, less for a script of its name, 0 for `-p` runs and subcommands."""
        return argv.recognise(process)

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        """Return the identities by registry, hook record, command line and guess."""
        return Search(self.name, sighting, host).identities()

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return what the transcript and the registry say now."""
        return details.describe(identity, process, host)

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        """Return what the bottom of the screen says, None when it cannot tell."""
        # Here, for its patterns take longer to compile than a save takes to look at a pane.
        from perdure.agents.claude.screen import read_screen

        return read_screen(screen)

    def resume(self, identity: Identity, launched: Command) -> Command | None:
        """Return the command that resumes the conversation, or begins it when nothing was ever said in it."""
        return argv.resume(identity, launched)

    def begin(self, prompt: str = "") -> tuple[tuple[str, ...], bool]:
        """Return the words that start it, and whether they ask for `prompt`."""
        return opening((self.name,), (PROMPT,), prompt)

    def turns(self, conversation: str, host: HostView, transcript: str | None = None) -> Iterator[Mapping[str, object]]:
        """Yield the main conversation's turns, then those of its sub-agents."""
        if transcript is not None:
            yield from turns(transcript, host)
            return
        if not argv.is_conversation(conversation):
            return
        for home in homes(host):
            path = find_transcript(home, conversation, None, host)
            if path is not None:
                yield from turns(path, host)
                return

    # -- what it says itself ------------------------------------------------------------------------------------

    def told(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[Reading]:
        """Return what the registry says, else what its hooks do."""
        from perdure.agents.claude.told import told  # nothing a save needs

        return told(self.name, process, host)

    def telling(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[str]:
        """Return its registry entry, which names the conversation too."""
        return (registry_path(process, host),)


ADAPTER: AgentAdapter = Claude()
