"""OpenAI's Codex CLI: recognised, identified, described, read and brought back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import structs

from perdure.agents._program import head_of
from perdure.agents._spec import Ordinary
from perdure.agents.codex import details
from perdure.agents.codex.identity import Launch, Search
from perdure.agents.codex.rollout import is_packed, turns, turns_of
from perdure.model.agent import ID, PROMPT, AgentSpec
from perdure.model.identity import AgentDetails, Identity
from perdure.model.observation import Reading
from perdure.model.process import Command, Process
from perdure.model.screen import Screen, ScreenReading
from perdure.ports import AgentAdapter, HostView, Sighting

#: Subcommands in which nobody talks to it: `app-server` is the daemon all panes share, a child of whichever came first.
_NOT_AGENTS = """
    exec e review login logout mcp mcp-server plugin app-server remote-control completion update doctor sandbox debug
    apply a queue archive delete migrate-rollouts migrate-nfs-db unarchive cloud cloud-tasks exec-server features help
    execpolicy proto responses-api-proxy stdio-to-uds --help --version
""".split()

_KEPT = """
-c, --config <key=value>
--enable <FEATURE>
--disable <FEATURE>
--remote <ADDR>
--remote-auth-token-env <ENV_VAR>
--strict-config
-m, --model <MODEL>
--oss
--local-provider <OSS_PROVIDER>
-p, --profile <CONFIG_PROFILE>
-s, --sandbox <SANDBOX_MODE>
--approve-for-me
--full-auto
--yolo, --dangerously-bypass-approvals-and-sandbox
--dangerously-bypass-hook-trust
-C, --cd <DIR>
--add-dir <DIR>
-a, --ask-for-approval <APPROVAL_POLICY>
--search
--no-alt-screen
--no-daemon
"""
#: Pictures belong to the prompt they came with, a worktree to the thread it was made for.
_ONCE = """
-i, --image <FILE...>
--worktree
--last
--all
--include-non-interactive
-h, --help
-V, --version
"""

#: Where it lives, whom it asks. What it tells its own children (CODEX_THREAD_ID, CODEX_CI and the like) is left out.
_ENVIRONMENT = """
    CODEX_HOME CODEX_SQLITE_HOME CODEX_CA_CERTIFICATE CODEX_OSS_BASE_URL CODEX_OSS_PORT CODEX_CLOUD_TASKS_BASE_URL
    OPENAI_BASE_URL OPENAI_ORGANIZATION OPENAI_PROJECT SSL_CERT_FILE
""".split()

_DIRECTORY = "--cd"

_SPEC = AgentSpec(
    binaries=("codex",),
    prompt=(PROMPT,),
    packages=("/@openai/codex",),
    scripts=("codex.js",),
    not_agents=tuple(_NOT_AGENTS),
    environment=tuple(_ENVIRONMENT),
    keep=tuple(_KEPT.strip().splitlines()),
    drop=tuple(_ONCE.strip().splitlines()),
    named_by=("resume",),
    resume=("resume", ID),
    signs=(
        r"title:^\[ [!.] \] Action Required(?: \||$)",
        r"^ +>_ OpenAI Codex \(v\d",
        r"^\u203a Ask Codex to do anything",
        r"^\u203a \d\. ",
        r"^  \S+ (?:default|none|minimal|low|medium|high|xhigh)(?: \w+)? · [~/]",
        r"⚠ \d+ warnings? · f2 to view",
        r"^  Worked for <?\d.* • \d+:\d\d",
        r"\d+s • esc to interrupt\)",
        r"^  enter \w+ · esc ",
        r"^  Press enter to confirm or esc to cancel$",
        r"\| enter to submit answer\b",
        r"tell Codex what to do differently",
        r"^/ [A-Z](?: [A-Z])+ / / /",
    ),
)


class Codex(Ordinary):
    """The Codex CLI: its own program, found below the script that npm starts."""

    #: A wheel turns in it while busy; when somebody is asked, it says that instead.
    title_tells = True

    def __init__(self) -> None:
        super().__init__("codex", _SPEC)

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        """Return the identities by its locks, the daemon's and the title, the command line and guess."""
        return Search(self.name, sighting, host, self._launch(sighting.process)).identities()

    def _launch(self, process: Process) -> Launch:
        arguments = self.arguments(process)
        given = {argument.name: argument.values for argument in arguments if argument.name is not None}
        words = [argument.values[0] for argument in arguments if argument.name is None]
        forked = words[1] if len(words) > 1 and words[0] == "fork" and self.is_conversation(words[1]) else None
        return Launch(
            resumed=self.named(process),
            forked=forked,
            alone="--no-daemon" in given,
            remote="--remote" in given,
            directory=(given.get(_DIRECTORY) or (None,))[-1],
        )

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return what the thread's rollout and its row in the database say now."""
        return details.describe(identity, process, host)

    def resume(self, identity: Identity, launched: Command) -> Command | None:
        """Return `codex resume` with the flags it had, or a fresh start with them when nothing was ever said.

        Elsewhere than where the thread last worked it would stop and ask where to go on, so it is told.
        """
        command = super().resume(identity, launched)
        if command is None or identity.home is None or identity.prompted is False:
            return command
        head = head_of(self.program, command.argv)[1]
        arguments = self.grammar.parse(command.argv[head:])
        stay = [word for argument in arguments if argument.name != _DIRECTORY for word in argument.words]
        return structs.replace(command, argv=(*command.argv[:head], *stay, _DIRECTORY, identity.home))

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        """Return what title and bottom of the screen say, None when they cannot tell."""
        from perdure.agents.codex.screen import read_screen  # its patterns are dear, and nothing a save needs

        return read_screen(self.name, screen)

    def turns(self, conversation: str, host: HostView, transcript: str | None = None) -> Iterator[Mapping[str, object]]:
        """Yield the thread's turns, with those it was forked from before them and its sub-agents' behind."""
        if transcript is None:
            return turns_of(conversation, host) if self.is_conversation(conversation) else iter(())
        return iter(()) if is_packed(transcript) else turns(transcript, host)

    # -- what it says itself ------------------------------------------------------------------------------------

    def told(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[Reading]:
        """Return what the rollout of its own thread says; with a daemon only the title tells."""
        from perdure.agents.codex.told import told  # nothing a save needs

        return told(process, host)

    def telling(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[str]:
        """Return its thread's rollout, and where threads are loaded and left."""
        from perdure.agents.codex.told import telling  # nothing a save needs

        return telling(process, host)


ADAPTER: AgentAdapter = Codex()
