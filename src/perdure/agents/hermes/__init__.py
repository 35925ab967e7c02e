"""Hermes Agent: its own hooks tell where it is, and its database tells what it has left.

Its classic interface is one process. `--tui` starts a node program, a gateway below it, and below that a worker whose
command line always names the conversation that is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from os.path import join
from typing import Any

from msgspec import structs

from perdure.agents._case import About, Candidate, Case, Trace, hook_records
from perdure.agents._json import mapping, one_line, text
from perdure.agents._options import Grammar
from perdure.agents._program import head_of
from perdure.agents._spec import Ordinary
from perdure.agents.hermes import store
from perdure.agents.hermes.store import Session
from perdure.model.agent import ID, AgentSpec
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.observation import Reading
from perdure.model.process import Command, Process
from perdure.model.screen import Screen, ScreenReading
from perdure.ports import AgentAdapter, HostView, Sighting

#: By `hermes --help` and `hermes chat --help` of 0.19.0; `chat` takes all of them. --profile is in no help.
_KEPT = (
    "-p, --profile <name>",
    "-m, --model <model>",
    "--provider <provider>",
    "-t, --toolsets <toolsets>",
    "-s, --skills <skills>",
    "--no-restore-cwd",
    "--accept-hooks",
    "--yolo",
    "--pass-session-id",
    "--ignore-user-config",
    "--ignore-rules",
    "--safe-mode",
    "--tui",
    "--cli",
    "--dev",
    "-v, --verbose",
    "-Q, --quiet",
    "--checkpoints",
    "--max-turns <n>",
    "--source <source>",
)
_ONCE = (
    "-h, --help",
    "-V, --version",
    "-z, --oneshot <prompt>",
    "--usage-file <path>",
    "-q, --query <query>",
    "--image <image>",
    "-r, --resume <session>",
    "-c, --continue [name]",
    # A worktree of its own is made at every start; the conversation remembers the one it is in.
    "-w, --worktree",
)
_CHAT, _PROFILE = "chat", "--profile"
_SUBCOMMANDS = """
    model moa fallback secrets migrate gateway proxy lsp setup postinstall whatsapp whatsapp-cloud slack send login logout
    auth status cron webhook portal kanban project hooks doctor security dump debug backup checkpoints import config console
    pairing skills bundles plugins curator pets journey learning memory-graph memory tools computer-use mcp sessions
    insights claw version update uninstall acp profile completion dashboard serve desktop gui logs prompt-size
    """.split()
_ENVIRONMENT = """
    HERMES_HOME HERMES_INFERENCE_MODEL HERMES_INFERENCE_PROVIDER HERMES_MODEL HERMES_TIMEZONE HERMES_ACCEPT_HOOKS
    HERMES_YOLO_MODE HERMES_SAFE_MODE HERMES_IGNORE_USER_CONFIG HERMES_IGNORE_RULES HERMES_MAX_ITERATIONS
    HERMES_CA_BUNDLE HERMES_PORTAL_BASE_URL HERMES_XAI_BASE_URL HERMES_MANAGED_DIR
    OPENAI_BASE_URL ANTHROPIC_BASE_URL OPENROUTER_BASE_URL OLLAMA_HOST AWS_PROFILE AWS_REGION
    """.split()

SPEC = AgentSpec(
    binaries=("hermes", "hermes_cli"),
    not_agents=(*_SUBCOMMANDS, "--help", "--version", "--oneshot", "--query"),
    environment=tuple(_ENVIRONMENT),
    id=r"\d{8}_\d{6}_[0-9a-f]{6,8}",
    keep=_KEPT,
    drop=_ONCE,
    named_by=("--resume",),
    resume=("--resume", ID),
    signs=(
        r"title:^[✓⏳⚠] (?:.+ · )?\S+ · [~/]",
        r"\bHermes Agent v\d",
        r"^ ⚕ \S+ [│·] ",
        r"│ \[[█▓▒░]{10}\] \d+% │",
        r"^(?:╭─| ─ ) ⚕ Hermes ",
        r"^[⚕⚠?] \u276f",
        r"^ {1,3}┊ ",
        r"^╭─ Hermes needs your input ─",
        r"^ ?[╔╚]═{20,}[╗╝]",
    ),
)

#: Why a conversation is finalized when the whole program ends.
_SHUTDOWN = "shutdown"
_GATEWAY, _WORKER = "tui_gateway.entry", "tui_gateway.slash_worker"
#: Ids hold local time, and nobody tells us the zone; but zones differ by whole quarters of an hour.
_QUARTER = 900
#: A conversation has its id so many seconds after the process started, on a busy machine.
_STARTING = 60
#: How many conversations one after the other are followed.
_MOST_FOLLOWED = 100


@cache
def _grammar() -> Grammar:
    return Grammar("\n".join((*_KEPT, *_ONCE)), abbreviated=True)


class Hermes(Ordinary):
    """Hermes at work with a person, as `hermes` or `hermes chat`."""

    #: That of the terminal interface; the classic one sets none.
    title_tells = True

    def __init__(self) -> None:
        super().__init__("hermes", SPEC)

    # -- its command line ---------------------------------------------------------------------------------------

    @property
    def grammar(self) -> Grammar:
        """Its options, which may be abbreviated."""
        return _grammar()

    def resume(self, identity: Identity, launched: Command) -> Command | None:
        """Return the command that brings the conversation back, in the profile it belongs to.

        A profile that was chosen for good is not on the command line, and by then another one may be.
        """
        name = identity.profile or ""
        head = head_of(self.program, launched.argv)[1]
        words = launched.argv[head:]
        named = any(argument.name == _PROFILE for argument in self.grammar.parse(words))
        if named or launched.environ.get("HERMES_HOME") or not _is_profile(name):
            return super().resume(identity, launched)
        argv = (*launched.argv[:head], _PROFILE, name, *words)
        return super().resume(identity, structs.replace(launched, argv=argv))

    def kept(self, words: Sequence[str]) -> list[str]:
        """Return the options that made the agent what it was, after the subcommand some of them belong to."""
        first = next((each for each in self.grammar.parse(words) if each.name is None), None)
        chat = first is not None and first.words == (_CHAT,)
        return [*((_CHAT,) if chat else ()), *super().kept(words)]

    # -- its conversations --------------------------------------------------------------------------------------

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        """Return the conversation by its worker, by hook record, by command line and by guess."""
        return _Search(self, sighting, host).identities()

    def database(self, process: Process, host: HostView) -> str:
        """Return where a process keeps its conversations."""
        return join(store.home(process, self.arguments(process), host), store.DATABASE)

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return what the database says now."""
        path = self.database(process, host)
        session = store.find(path, identity.conversation, host) if identity.conversation else None
        if session is None:
            return AgentDetails()
        model, provider, branch = store.whom(path, session.id, host)
        log = path + "-wal"
        return AgentDetails(
            title=one_line(session.title),
            task=one_line(store.last_prompt(path, session.id, host)),
            model=one_line(model),
            provider=one_line(provider),
            branch=one_line(branch),
            transcript=path,
            companions=(log,) if host.size(log) else (),
            parent=session.branched_from,
            began_at=session.started_at,
            last_activity_at=session.written_at,
        )

    def turns(self, conversation: str, host: HostView, transcript: str | None = None) -> Iterator[Mapping[str, object]]:
        """Yield the conversation's turns, then those of its sub-agents."""
        return store.turns(transcript or store.holding(conversation, host), conversation, host)

    # -- its screen ---------------------------------------------------------------------------------------------

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        """Return what the bottom of the screen says, None when it cannot tell."""
        from perdure.agents.hermes.screen import read_screen  # dear, and nothing a save needs

        return read_screen(self.name, screen)

    # -- what it says itself ------------------------------------------------------------------------------------

    def told(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[Reading]:
        """Return what its hooks say."""
        from perdure.agents._told import by_hooks  # nothing a save needs
        from perdure.agents.hermes.told import sign

        return by_hooks(self.name, _hooking(process, tree), host, sign)

    def telling(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[str]:
        """Return nothing: its database is written to whatever any of its processes does."""
        return ()


class _Search:
    """One look at one process."""

    def __init__(self, hermes: Hermes, sighting: Sighting, host: HostView) -> None:
        self._hermes = hermes
        self._process = sighting.process
        self._tree = sighting.tree
        self._host = host
        home = store.home(sighting.process, hermes.arguments(sighting.process), host)
        self._database = join(home, store.DATABASE)
        self._case = Case(hermes.name, self._about, profile=store.profile(home, host))

    def identities(self) -> Sequence[Identity]:
        """Return every identity the evidence allows, best first, the last without a conversation."""
        found = self._open() or self._hooked() or self._launched()
        return self._case.closed(found, fresh=self._is_fresh())

    def _open(self) -> list[Identity]:
        """What workers below it have open: one, unless several conversations are held at once."""
        keys = dict.fromkeys(key for process in self._tree if (key := _worker_key(process)))
        found = [self._own(key)[0] for key in keys if self._hermes.is_conversation(key)]
        if not found:
            return []
        alone = len(found) == 1
        self._case.note("its worker names the conversation" if alone else "its workers name several conversations")
        evidence = Evidence.REGISTRY if alone else Evidence.GUESS
        return [self._case.claim(each, evidence, certain=alone) for each in found]

    def _hooked(self) -> list[Identity]:
        records = hook_records(self._hermes.name, _hooking(self._process, self._tree), self._host)
        claim = next(iter(self._case.hooked(records, self._trace)), None)
        if claim is None or claim.conversation is None:
            return []
        session = store.find(self._database, claim.conversation, self._host)
        if session is not None and _left_since(session, claim.written_at or self._process.started_at):
            return self._gone(session)
        if session is None and store.is_readable(self._database, self._host):
            self._case.note("its database does not have it")
            return [structs.replace(claim, certain=False), *self._case.guesses(self._candidates())]
        return [claim]

    def _trace(self, record: Mapping[str, Any]) -> Trace | None:
        if not record:
            return Trace(conversation=None)
        extra = mapping(record.get("extra"))
        named = text(record.get("session_id")) or text(extra.get("session_key")) or ""
        # Background tasks have ids of another form, and approvals sometimes none.
        if not self._hermes.is_conversation(named):
            return None
        conversation, session = self._own(named)
        if extra.get("platform") == "subagent" and (session is None or conversation == named):
            return None
        # The program's own end finalizes what it is in too. That leads nowhere else.
        left = record.get("hook_event_name") == "on_session_finalize" and extra.get("reason") != _SHUTDOWN
        return Trace(conversation=conversation, left=left)

    def _launched(self) -> list[Identity]:
        by_id = self._hermes.named(self._process)
        named = by_id or self._called()
        if named is None:
            self._case.note("the command line names none")
            return self._case.guesses(self._candidates(closed=True))
        conversation, session = self._own(named)
        if session is not None and _left_since(session, self._process.started_at):
            self._case.note("the command line names a conversation")
            return self._gone(session)
        written = session.written_at if session else None
        if session is None or not _closed_since(session, self._process.started_at):
            # /new, /resume and /branch close what they leave; but whoever takes it up again opens it again.
            lost = session is None and store.is_readable(self._database, self._host)
            others = [each for each in self._candidates() if each[1] != conversation]
            # Titles move on: to the newest of a line, and to other conversations.
            by_title = by_id is None
            return self._case.launched(conversation, others, lost=lost, doubtful=by_title, written_at=written)
        # What another process that had it too has closed cannot be closed again: leaving it would leave no trace.
        self._case.note("the command line names a conversation that another process has closed since")
        own = self._case.claim(conversation, Evidence.ARGV, certain=False, written_at=written)
        return [own, *self._case.guesses([each for each in self._candidates() if each[1] != conversation])]

    def _is_fresh(self) -> bool:
        """Whether it is in no conversation when it is in none that is known: then nothing was ever said in it.

        What it was told to go on with, or went on to by `/resume`, leaves no trace before the next prompt.
        """
        told = {each.name for each in self._hermes.arguments(self._process)} & {"--resume", "--continue"}
        if told or self._case.left or not store.is_readable(self._database, self._host):
            return False
        return not any(last.was_left for each in self._begun() if (last := self._last(each)) is not None)

    def _called(self) -> str | None:
        """The conversation the command line names by its title, which is no other's."""
        options = [each for each in self._hermes.arguments(self._process) if each.name in ("--resume", "--continue")]
        title = next((each.values[-1] for each in options if each.values), None)
        found = store.titled(self._database, title, self._host) if title else []
        return found[0].id if len(found) == 1 else None

    def _gone(self, session: Session) -> list[Identity]:
        self._case.note("its database says that it was left")
        self._case.left.add(session.id)
        return self._case.guesses(self._candidates())

    def _own(self, named: str) -> tuple[str, Session | None]:
        """The conversation a person is in where this one is named, and its row."""
        session = store.own(self._database, named, self._host)
        return (session.id if session else named), session

    def _candidates(self, *, closed: bool = False) -> list[Candidate]:
        """Conversations this process may be in: those that began with it or came after those, then the others here.

        `closed`: also what began with it and is closed by now, for it may be about to end.
        """
        since, begun = self._process.started_at, self._begun()
        left = [store.find(self._database, each, self._host) for each in sorted(self._case.left)]
        line = [self._last(each) for each in (*(each for each in left if each), *begun)]
        touched = sorted(
            store.touched_since(self._database, since, self._host), key=lambda each: str(each.written_at), reverse=True
        )
        likely = [*line, *(each for each in touched if self._is_here(each))]
        found = {
            each.id: each.written_at
            for each in likely
            if each is not None and (each.ended_at is None or (closed and each in line and not each.was_left))
        }
        found = {ident: at for ident, at in found.items() if ident not in self._case.left}
        # A program that ends closes what it is in as well; only the reason is another.
        over = (each for each in left if each is not None and each.ended_at is not None and not each.was_left)
        found |= {each.id: each.written_at for each in over}
        return [(at, ident) for ident, at in found.items() if at is not None]

    def _begun(self) -> list[Session]:
        """Conversations that may have begun with this process, and are held here."""
        begun = store.begun_since(self._database, self._process.started_at, self._host)
        return [each for each in begun if self._began_with(each)]

    def _last(self, session: Session) -> Session | None:
        """The last of the conversations that were begun in place of each other."""
        for _ in range(_MOST_FOLLOWED):
            onward = store.went_on(self._database, session, self._host)
            if onward is None:
                break
            session = onward
        return session if self._is_here(session) else None

    def _began_with(self, session: Session) -> bool:
        """Whether its id was given while this process started, whatever the zone."""
        try:
            given = datetime.strptime(session.id[:15], "%Y%m%d_%H%M%S").replace(tzinfo=UTC)
        except ValueError:
            return False
        after = given - self._process.started_at.replace(microsecond=0)
        return after % timedelta(seconds=_QUARTER) <= timedelta(seconds=_STARTING) and self._is_here(session)

    def _is_here(self, session: Session) -> bool:
        """Whether it may be held in this directory; one that was begun by `/new` does not say where."""
        cwd = self._process.cwd
        if session.cwd is None or cwd is None:
            return True
        return self._host.physical(session.cwd) == self._host.physical(cwd)

    def _about(self, conversation: str, evidence: Evidence) -> About:
        session = store.find(self._database, conversation, self._host)
        if session is None:
            # It goes on under any id it is given, and keeps nothing under one that does not exist.
            return About(prompted=False if store.is_readable(self._database, self._host) else None)
        return About(prompted=session.messages > 0, home=None if self._is_here(session) else session.cwd)


def _hooking(process: Process, tree: Sequence[Process]) -> list[Process]:
    """The processes that run its hooks: with the terminal interface its gateway. What tools start has nothing to say."""
    return [process, *(each for each in tree if _GATEWAY in each.argv[:4])]


def _closed_since(session: Session, since: datetime) -> bool:
    return session.ended_at is not None and session.ended_at >= since


def _left_since(session: Session, since: datetime) -> bool:
    return session.was_left and _closed_since(session, since)


def _is_profile(name: str) -> bool:
    """Whether a name is one Hermes gives to profiles, and not that of some directory."""
    return name[:1].isalnum() and name.isascii() and name.replace("-", "").replace("_", "").isalnum()


def _worker_key(process: Process) -> str | None:
    """The conversation a worker of the terminal interface serves."""
    words = process.argv
    if _WORKER not in words[:4]:
        return None
    at = words.index("--session-key") + 1 if "--session-key" in words else len(words)
    return words[at] if at < len(words) else None


ADAPTER: AgentAdapter = Hermes()
