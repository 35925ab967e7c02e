"""GitHub Copilot's command line agent: recognised, identified, described, read and brought back.

What a pane runs first is a node script that only starts the program proper; `/restart` has that start itself once more.
Locks and hooks tell which conversations a process has written to, not which is in sight: it may have several open. The
log does, so it comes first, and where it is turned off the rest is weighed with care.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from os.path import isabs, join

import msgspec

from perdure.agents._case import About, Candidate, Case, hook_records
from perdure.agents._json import decode_object, one_line, text
from perdure.agents._records import moment
from perdure.agents._spec import Ordinary
from perdure.agents._urls import host_of
from perdure.agents.copilot import events, files
from perdure.model.agent import ID, PROMPT, AgentSpec
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.observation import Reading
from perdure.model.process import Process
from perdure.model.screen import Screen, ScreenReading
from perdure.ports import AgentAdapter, HostView, Sighting

_KEPT = """
--disable-client-telemetry
--enable-memory
--model <model>
--effort, --reasoning-effort <level>
--context <tier>
--auto-tier <preference>
--agent <agent>
--allow-all-tools
--allow-all-paths
--allow-all-urls
--allow-all
--yolo
--allow-tool [<tools>...]
--deny-tool [<tools>...]
--available-tools [<tools>...]
--excluded-tools [<tools>...]
--allow-url [<urls>...]
--deny-url [<urls>...]
--secret-env-vars [<vars>...]
--add-dir <directory>
--disallow-temp-dir
--assisted-approval
--sandbox
--no-sandbox
--disable-mcp-server <server-name>
--enable-mcp-server <server-name>
--disable-builtin-mcps
--enable-all-github-mcp-tools
--add-github-mcp-toolset <toolset>
--add-github-mcp-tool <tool>
--additional-mcp-config <json>
--mcp-github-auth <server=origin>
--allow-all-mcp-server-instructions
--plugin-dir <directory>
--extension-sdk-path <directory>
--config-dir <directory>
--log-dir <directory>
--log-level <level>
--prefer-version <version>
--stream <mode>
--enable-reasoning-summaries
--max-autopilot-continues <count>
--max-ai-credits <credits>
--mode <mode>
--autopilot
--plan
--experimental
--no-experimental
--bash-env [<value>]
--no-bash-env
--mouse [<value>]
--no-mouse
--remote
--no-remote
--remote-export
--no-remote-export
--dynamic-retrieval <category=on|off>
--no-custom-instructions
--no-auto-update
--no-ask-user
--no-color
--no-eager-powershell-resolution
--banner
--screen-reader
--plain-diff
"""
#: The name is the conversation's own, and beside its id an error; -C is done, and would be done twice.
_DROPPED = """
-r, --resume [<value>]
--session-id <id>
--new-session-id <id>
--continue
--connect [<sessionId>]
--cloud
--worktree [<name>]
--workspace <directory>
-n, --name <name>
-C <directory>
-i, --interactive <prompt>
--fleet
--trust-folder
--attachment <path>
--usage-output-file <file>
-v, --version
-h, --help
-p, --prompt <text>
-s, --silent
--output-format <format>
--share [<path>]
--share-gist
--acp
--server
--headless
--stdio
--port <port>
--host <host>
--ui-server
--ahp-host
--embedded-host
--managed-server
--environment-host <name>
--environment-compute-id <id>
--print-debug-info
--collect-debug-logs <sessionId>
--binary-version
"""
_ONE_OFF = """
    --prompt --version --help --acp --server --headless --stdio --ui-server --ahp-host --embedded-host --managed-server
    --environment-host --print-debug-info --collect-debug-logs --binary-version
    """.split()
_ENVIRONMENT = """
    COPILOT_HOME COPILOT_CACHE_HOME COPILOT_CUSTOM_INSTRUCTIONS_DIRS COPILOT_SKILLS_DIRS
    COPILOT_MODEL COPILOT_AUTO_TIER COPILOT_OFFLINE COPILOT_AUTO_UPDATE COPILOT_API_URL COPILOT_GH_HOST GH_HOST
    COPILOT_PROVIDER_BASE_URL COPILOT_PROVIDER_TYPE COPILOT_PROVIDER_WIRE_API COPILOT_PROVIDER_TRANSPORT
    COPILOT_PROVIDER_AZURE_API_VERSION COPILOT_PROVIDER_MODEL_ID COPILOT_PROVIDER_WIRE_MODEL
    """.split()

SPEC = AgentSpec(
    binaries=("copilot",),
    prompt=(f"--interactive={PROMPT}",),
    packages=("/@github/copilot",),
    scripts=("npm-loader.js", "index.js"),
    environment=tuple(_ENVIRONMENT),
    keep=tuple(_KEPT.split("\n")[1:-1]),
    drop=tuple(_DROPPED.split("\n")[1:-1]),
    not_agents=tuple(_ONE_OFF),
    resume=(f"--resume={ID}",),
    # Unlike --resume it takes an id that nothing was said under, whether or not there is a directory of it.
    fresh=(f"--session-id={ID}",),
    signs=(
        r"title:^(?:.* - )?GitHub Copilot$",
        r"^  ╰─╯╰─╯ ",
        r"(?:^|│) \[?Current\]?  \[?Sessions\]?  ",
        r"(?:^|│) [~/].* \[⎇ [^\]]*\]",
        r" · / commands\b",
        r"\besc esc (?:interrupt|edit prompt)",
        r"tell Copilot what to do differently",
    ),
)
#: With fewer characters the beginning of an id is not taken for one.
_SHORTEST_BEGINNING = 7
_TITLE = " - GitHub Copilot"
#: How many conversations are looked through for a name.
_MOST_READ = 500


class Copilot(Ordinary):
    """GitHub Copilot CLI, started by node or on its own."""

    def __init__(self) -> None:
        super().__init__("copilot", SPEC)

    def score(self, process: Process) -> float:
        """Return 0 for whatever has a word that is no option: subcommands, and the other programs of this name."""
        score = super().score(process)
        return 0.0 if any(argument.name is None for argument in self.arguments(process)) else score

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        """Return the identities by log, lock, hook record, command line, title and guess."""
        return _Search(self, sighting, host).identities()

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return what the conversation's directory says now."""
        provider = host_of(process.environ.get("COPILOT_PROVIDER_BASE_URL", "")) or "github"
        if identity.conversation is None:
            return AgentDetails(provider=provider)
        home = self.home(process, host)
        about = files.workspace(home, identity.conversation, host)
        path = join(files.folder(home, identity.conversation), files.EVENTS)
        said = events.describe(path, host)
        return msgspec.structs.replace(
            said,
            title=one_line(about.name),
            provider=provider,
            model=said.model or one_line(self.chosen(process, "--model") or process.environ.get("COPILOT_MODEL")),
            branch=said.branch or one_line(about.branch),
            transcript=path if host.size(path) is not None else None,
            companions=(join(files.folder(home, identity.conversation), files.WORKSPACE),) if about.created_at else (),
            began_at=moment(about.created_at),
            last_activity_at=said.last_activity_at or host.modified_at(path),
        )

    def turns(self, conversation: str, host: HostView, transcript: str | None = None) -> Iterator[Mapping[str, object]]:
        """Yield the turns in order, a sub-agent's with its id."""
        if transcript is None:
            if not self.is_conversation(conversation):
                return
            transcript = join(files.folder(join(host.home, files.USUAL_HOME), conversation), files.EVENTS)
        yield from events.turns(transcript, host)

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        """Return what box and footer, or what covers them, say; None when they cannot tell."""
        from perdure.agents.copilot.screen import read_screen  # dear, and nothing a save needs

        return read_screen(self.name, screen)

    # -- what it says itself ------------------------------------------------------------------------------------

    def told(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[Reading]:
        """Return what the events of the conversation in sight and its hooks say."""
        from perdure.agents.copilot.told import told  # nothing a save needs

        home, logs = self.home(process, host), self.logs(process, host)
        return told(self.name, self.chain(process, tree), home, logs, host)

    def telling(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[str]:
        """Return its logs, which tell what is in sight, and the events of that."""
        from perdure.agents.copilot.told import in_sight  # nothing a save needs

        chain, logs = self.chain(process, tree), self.logs(process, host)
        conversation = in_sight(chain, logs, host)
        own = [path for each in chain if (path := files.log(each, logs, host)) is not None]
        if conversation is None:
            return own
        return [*own, join(files.folder(self.home(process, host), conversation), files.EVENTS)]

    def chain(self, process: Process, tree: Sequence[Process]) -> list[Process]:
        """Return the process and those of its pane it has started itself anew as, the one that is at work first."""
        chain = [process]
        for each in tree:
            if each.ppid == chain[0].pid and self.score(each):
                chain.insert(0, each)
        return chain

    def logs(self, process: Process, host: HostView) -> str:
        """Return the directory a process keeps its logs in."""
        chosen = self.chosen(process, "--log-dir") or join(self.home(process, host), "logs")
        return chosen if isabs(chosen) else join(process.cwd or "/", chosen)

    def home(self, process: Process, host: HostView) -> str:
        """Return the directory a process keeps its conversations in."""
        return files.config_home(process, self.chosen(process, "--config-dir"), host)

    def chosen(self, process: Process, option: str) -> str | None:
        """Return the value a command line gives an option, None when it gives none."""
        given = [each.values[-1] for each in self.arguments(process) if each.name == option and each.values]
        return given[-1] if given else None


class _Search:
    """One look at one process."""

    def __init__(self, copilot: Copilot, sighting: Sighting, host: HostView) -> None:
        self._copilot = copilot
        self._process = sighting.process
        self._title = sighting.title.removesuffix(_TITLE) if sighting.title.endswith(_TITLE) else None
        #: It has taken its title back.
        self._ends = self._title is None and sighting.at is not None
        self._host = host
        self._home = copilot.home(sighting.process, host)
        self._case = Case(copilot.name, self._about, profile=files.profile(self._home, host))
        self._chain = copilot.chain(sighting.process, sighting.tree)

    def identities(self) -> Sequence[Identity]:
        """Return every identity the evidence allows, best first, the last without a conversation."""
        return self._case.closed(self._logged() or self._locked() or self._hooked() or self._launched_or_guessed())

    # -- what this process does now -----------------------------------------------------------------------------

    def _logged(self) -> list[Identity]:
        logs = self._copilot.logs(self._process, self._host)
        for process in self._chain:
            found = files.in_sight(process, logs, self._host)
            if found is not None and self._copilot.is_conversation(found[0]):
                conversation, entered = found
                self._case.note(
                    "its log names the conversation in sight" if entered else "its log says that it was just left"
                )
                # Without a title it ends, and has gone on to no other.
                evidence = Evidence.GUESS if self._ends and not entered else Evidence.REGISTRY
                return [self._case.claim(conversation, evidence, certain=entered)]
        self._case.note("no log of this process names the conversation in sight")
        return []

    def _locked(self) -> list[Identity]:
        locked = [each for process in self._chain for each in files.held(process, self._host)]
        if not locked:
            self._case.note("it holds no conversation's lock")
            return []
        opened = files.opened_since(self._process, self._home, self._host)
        # Opened by whom is not told; what another process has written to is locked by that.
        unlocked = [each for each in opened or () if self._is_free(each) and each not in locked]
        # One that another process has locked may be in sight here too: then the title is that one's.
        in_sight = self._title is None or self._is_titled(locked[0])
        if len(locked) == 1 and opened is not None and not unlocked and in_sight:
            self._case.note("it holds one conversation's lock, and no other was opened since it started")
            return [self._case.claim(locked[0], Evidence.OPEN_FILE, certain=True)]
        self._case.note("it may have several conversations open, and which is in sight is not told")
        # Guesses, all of them: what was certain when there was but one lock must not stay so.
        titled = [each for each in (*locked, *unlocked) if self._is_titled(each)]
        others = [each for each in (*locked, *unlocked) if each not in titled]
        return [
            *(self._case.claim(each, Evidence.TITLE, certain=False) for each in titled),
            *(self._case.claim(each, Evidence.GUESS, certain=False) for each in others),
        ]

    def _is_free(self, conversation: str) -> bool:
        named = self._copilot.is_conversation(conversation)
        return named and not files.is_locked(self._home, conversation, self._host)

    def _hooked(self) -> list[Identity]:
        """The conversations something happened in, the last one first. Which is in sight hooks do not tell.

        A turn may end in one that was left, going to another runs none before its first prompt, and one that is cleared
        ends like one whose program is ended.
        """
        going_on: dict[str, datetime] = {}
        for at, raw in hook_records(self._copilot.name, self._chain, self._host):
            record = decode_object(raw) or {}
            if record.get("hook_event_name") == "SessionEnd":
                break
            conversation = text(record.get("session_id")) or text(record.get("sessionId")) or ""
            if self._copilot.is_conversation(conversation):
                going_on.setdefault(conversation, at)
        self._case.note(
            "hooks ran, perhaps in the conversation in sight" if going_on else "no hook ran since the last end"
        )
        return [self._case.claim(each, Evidence.HOOK, certain=False, written_at=at) for each, at in going_on.items()]

    # -- where it began -----------------------------------------------------------------------------------------

    def _launched_or_guessed(self) -> list[Identity]:
        named = self._named()
        # A title that fits the conversation named is no word for another one of that name.
        titled, written_here = self._candidates()
        fits = named is not None and self._is_titled(named)
        others = [each for each in (*(() if fits else titled), *written_here) if each[1] != named]
        if named is None:
            self._case.note("the command line names none by its id")
            return self._case.guesses(others)
        written = files.written_at(self._home, named, self._host)
        lost = named not in files.conversations(self._home, self._host)
        return self._case.launched(named, others, lost=lost, written_at=written)

    def _named(self) -> str | None:
        said = self._copilot.chosen(self._process, "--resume") or self._copilot.chosen(self._process, "--session-id")
        if said is None or self._copilot.is_conversation(said):
            return said
        if len(said) < _SHORTEST_BEGINNING:
            return None
        fitting = [each for each in files.conversations(self._home, self._host) if each.startswith(said.lower())]
        return fitting[0] if len(fitting) == 1 and self._copilot.is_conversation(fitting[0]) else None

    def _candidates(self) -> tuple[list[Candidate], list[Candidate]]:
        """Conversations nobody has locked: those the title names, and others written here since the process began."""
        titled, written_here = list[Candidate](), list[Candidate]()
        for conversation in sorted(files.conversations(self._home, self._host))[:_MOST_READ]:
            if not self._is_free(conversation):
                continue
            written = files.written_at(self._home, conversation, self._host)
            if written is None:
                continue
            if self._is_titled(conversation):
                titled.append((written, conversation))
            elif written >= self._process.started_at and self._is_here(conversation):
                written_here.append((written, conversation))
        return sorted(titled, reverse=True), sorted(written_here, reverse=True)

    def _is_titled(self, conversation: str) -> bool:
        name = files.workspace(self._home, conversation, self._host).name
        return bool(self._title and name) and "".join((name or "").splitlines()) == self._title

    def _is_here(self, conversation: str) -> bool:
        return self._elsewhere(conversation) is None

    def _elsewhere(self, conversation: str) -> str | None:
        """Where a conversation lives, None when that is where the process is, or not told."""
        started, cwd = files.workspace(self._home, conversation, self._host).cwd, self._process.cwd
        here = started is None or started == cwd
        if here or (cwd is not None and self._host.physical(started or "") == self._host.physical(cwd)):
            return None
        return started

    def _about(self, conversation: str, evidence: Evidence) -> About:
        size = self._host.size(join(files.folder(self._home, conversation), files.EVENTS))
        known = conversation in files.conversations(self._home, self._host)
        fresh = known or self._copilot.chosen(self._process, "--session-id") == conversation
        return About(prompted=bool(size) or (False if fresh else None), home=self._elsewhere(conversation))


ADAPTER: AgentAdapter = Copilot()
