"""opencode: one process, one database for everything, and a title that says which conversation is on the screen.

The plugin tells which conversation was prompted last, the command line which one it began with. Neither hears of a
switch in the program itself, nor of `/new`, which shows an empty page and writes nothing. The title does: it follows what is
shown, so it is held against every other evidence, and where only one conversation has it, it is evidence itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from os.path import isabs, join
from typing import Any

from msgspec import Struct

from perdure.agents._case import About, Candidate, Case, Trace
from perdure.agents._homes import home_of
from perdure.agents._json import count, decode_object, mapping, one_line, text
from perdure.agents._options import Argument
from perdure.agents._program import locate, undisguised
from perdure.agents._spec import Ordinary
from perdure.agents._yargs import declared, plain
from perdure.agents.opencode import store
from perdure.agents.opencode.store import Session
from perdure.model.agent import ID, PROMPT, AgentSpec
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.observation import Reading
from perdure.model.process import Process
from perdure.model.screen import Screen, ScreenReading
from perdure.ports import AgentAdapter, HostView, Sighting

#: By `opencode --help` of 1.18.33; it marks --auto as dangerous itself.
_KEPT = declared(
    "--print-logs",
    "--log-level <level>",
    "--pure",
    "--port <port>",
    "--hostname <hostname>",
    "--mdns",
    "--mdns-domain <domain>",
    "--cors <domains...>",
    "-m, --model <provider/model>",
    "--agent <agent>",
    "--auto",
    "--mini",
    "--no-replay",
    "--replay-limit <messages>",
)
_ONCE = declared(
    "-h, --help",
    "-v, --version",
    "-c, --continue",
    "-s, --session <id>",
    "--fork",
    "--prompt <prompt>",
)
_SUBCOMMANDS = """
    completion acp mcp attach run debug providers auth agent upgrade uninstall serve web models stats export import
    github pr session plugin plug db generate console
    """.split()
_ENVIRONMENT = """
    OPENCODE_CONFIG OPENCODE_CONFIG_DIR OPENCODE_TUI_CONFIG OPENCODE_DB OPENCODE_DISABLE_CHANNEL_DB
    OPENCODE_DISABLE_PROJECT_CONFIG OPENCODE_PERMISSION OPENCODE_PURE OPENCODE_WORKSPACE_ID
    OPENCODE_MODELS_URL OPENCODE_MODELS_PATH OPENCODE_DISABLE_MODELS_FETCH OPENCODE_DISABLE_AUTOUPDATE
    OPENCODE_DISABLE_AUTOCOMPACT OPENCODE_DISABLE_TERMINAL_TITLE OPENCODE_DISABLE_DEFAULT_PLUGINS
    ANTHROPIC_BASE_URL OPENAI_BASE_URL AZURE_RESOURCE_NAME AWS_PROFILE AWS_REGION
    GOOGLE_CLOUD_PROJECT GOOGLE_CLOUD_LOCATION VERTEX_LOCATION
    """.split()

SPEC = AgentSpec(
    binaries=("opencode", "opencode.exe"),
    prompt=(f"--prompt={PROMPT}",),
    packages=("/opencode-ai/",),
    not_agents=(*_SUBCOMMANDS, "--help", "--version"),
    environment=tuple(_ENVIRONMENT),
    id=r"ses_[0-9A-Za-z]{10,}",
    keep=_KEPT,
    drop=_ONCE,
    named_by=("--session",),
    resume=("-s", ID),
    signs=(
        r"title:^(?:OC \| |OpenCode$)",
        r"^  ┃(?:  |$)",
        r"^  ╹▀{5}",
        r"^ *▣ +\w+ · ",
        r"\bctrl\+p commands",
        r"[■⬝]{8}",
    ),
)

#: The title of the empty page, and of a conversation that has no title yet.
_HOME = "OpenCode"
_BEFORE_TITLE = "OC | "
_CUT = "…"
#: What a conversation is called until the model has found a title: `New session - 2026-11-15T08:42:19.010Z`.
_NAMELESS = ("New session - ", "Child session - ")
_STAMP = len("2026-11-15T08:42:19.010Z")
#: A title is in the database this much before it is in sight, on a busy machine. Giving one is writing to it.
_LATE = timedelta(seconds=3)


class _Title(Enum):
    """What the title says about a conversation that other evidence names."""

    SILENT = "the title is not one of opencode's"
    AGREES = "the title is this conversation's"
    UNKNOWN = "the title is no conversation's"
    OTHER = "the title is not this conversation's"
    LATE = "the title is not this conversation's yet, which has just been given one"


class _Shown(Struct, frozen=True, kw_only=True):
    """A title as opencode writes it: empty for its first page, `cut` when it is only the beginning."""

    text: str
    cut: bool = False


class OpenCode(Ordinary):
    """opencode with its own screen; what it serves to others (`serve`, `attach`, `run`) is no pane's agent."""

    def __init__(self) -> None:
        super().__init__("opencode", SPEC)

    # -- its command line ---------------------------------------------------------------------------------------

    def arguments(self, process: Process) -> list[Argument]:
        """Return what its command line says."""
        head = locate(self.program, process)[1]
        return list(self.grammar.parse(_plain(undisguised(self.program, process.argv)[head:])))

    def named(self, process: Process) -> str | None:
        """Return the conversation the command line names; a fork of it is another."""
        forked = any(argument.name == "--fork" for argument in self.arguments(process))
        return None if forked else super().named(process)

    def kept(self, words: Sequence[str]) -> list[str]:
        """Return the options that made the agent what it was, and before them the directory it was given.

        That stays only as a whole path: opencode moves into it, and from there any other would lead further down.
        """
        words = _plain(words)
        return [*self._project(words), *super().kept(words)]

    def _project(self, words: Sequence[str]) -> list[str]:
        before_is_known = True
        for argument in self.grammar.parse(words):
            if argument.name is None:
                whole = argument.words[0] != "--" and isabs(argument.values[0])
                return [argument.values[0]] if whole and before_is_known else []
            before_is_known = argument.known
        return []

    # -- its conversations --------------------------------------------------------------------------------------

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        """Return the conversation by plugin record, command line, title and guess, each held against the title."""
        return _Search(self, sighting, host).identities()

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return what the database says now."""
        path = store.database(process, host)
        session = store.find(path, identity.conversation, host) if identity.conversation else None
        if session is None:
            return AgentDetails()
        latest = _Latest(path, session.id, host)
        log = path + "-wal"
        return AgentDetails(
            title=None if _is_nameless(session.title) else one_line(session.title),
            task=one_line(latest.task),
            model=one_line(latest.model),
            provider=one_line(latest.provider),
            transcript=path,
            companions=(log,) if host.size(log) else (),
            version=one_line(store.version(path, session.id, host)),
            context_used=latest.used,
            context_limit=_limit(latest.provider, latest.model, session, process, host),
            began_at=session.created_at,
            last_activity_at=session.updated_at,
        )

    def turns(self, conversation: str, host: HostView, transcript: str | None = None) -> Iterator[Mapping[str, object]]:
        """Yield the conversation's turns, then those of its sub-agents."""
        return store.turns(transcript or join(host.home, store.USUAL), conversation, host)

    # -- its screen ---------------------------------------------------------------------------------------------

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        """Return what the bottom of the screen says, None when it cannot tell."""
        from perdure.agents.opencode.screen import read_screen  # dear, and nothing a save needs

        return read_screen(self.name, screen)

    # -- what it says itself ------------------------------------------------------------------------------------

    def told(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[Reading]:
        """Return what its plugin says."""
        from perdure.agents._told import by_hooks  # nothing a save needs
        from perdure.agents.opencode.told import sign

        return by_hooks(self.name, [process], host, sign)

    def telling(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[str]:
        """Return nothing: its database is written to whatever any of its processes does."""
        return ()


class _Search:
    """One look at one process."""

    def __init__(self, opencode: OpenCode, sighting: Sighting, host: HostView) -> None:
        self._opencode = opencode
        self._process = sighting.process
        self._host = host
        self._database = store.database(sighting.process, host)
        self._shown = _shown(sighting.title)
        #: It has taken its title back: it is about to end.
        self._ends = sighting.title == "" and sighting.at is not None
        self._at = sighting.at
        self._records = host.hooks(opencode.name, sighting.process)
        self._case = Case(opencode.name, self._about, profile=store.profile(sighting.process, host))
        #: Its first page is in sight: where no conversation without a title is its own, it is in none.
        self._is_fresh = False

    def identities(self) -> Sequence[Identity]:
        """Return every identity the evidence allows, best first, the last without a conversation."""
        hooked = self._hooked()
        found = self._launched() if hooked is None else hooked
        return self._case.closed(found, fresh=self._is_fresh)

    def _hooked(self) -> list[Identity] | None:
        """Return what the plugin's records leave, None when there are none that say anything."""
        claim = next(iter(self._case.hooked(self._records, self._trace)), None)
        if claim is None or claim.conversation is None:
            return None
        says = self._says(claim.conversation)
        if says is _Title.OTHER:
            return self._gone(claim.conversation)
        if claim.certain and (says is _Title.LATE or (says is _Title.SILENT and self._ends)):
            # That the title does not agree says nothing against what was known before.
            return [self._case.claim(claim.conversation, Evidence.GUESS, certain=False, written_at=claim.written_at)]
        # Going to another conversation leaves no trace but in the title.
        certain = claim.certain and says is _Title.AGREES
        return [self._case.claim(claim.conversation, Evidence.HOOK, certain=certain, written_at=claim.written_at)]

    def _trace(self, record: Mapping[str, Any]) -> Trace | None:
        """A sub-agent's record is about the conversation that called it."""
        conversation = text(record.get("session_id")) or ""
        if record and not conversation:
            return None
        if not self._opencode.is_conversation(conversation):
            return Trace(conversation=None)
        found = store.root(self._database, conversation, self._host)
        return Trace(conversation=found.id if found else conversation)

    def _launched(self) -> list[Identity]:
        named = self._opencode.named(self._process)
        if named is None:
            self._case.note("the command line names none")
            return self._titled()
        session = store.root(self._database, named, self._host)
        conversation = session.id if session else named
        says = self._says(conversation)
        if says is _Title.OTHER:
            self._case.note("the command line names a conversation")
            return self._gone(conversation) if self._is_touched(session) else self._not_yet(conversation)
        if says in (_Title.UNKNOWN, _Title.LATE) or (
            says is _Title.SILENT and session and not self._is_touched(session)
        ):
            # Not as the command line's own evidence, of which a doubt is remembered: a viewer may be open just now, or
            # it has only just started and has not shown a title yet.
            return [self._case.claim(conversation, Evidence.GUESS, certain=False)]
        others = [each for each in self._others(says) if each[1] != conversation]
        written = session.updated_at if session else None
        return self._case.launched(conversation, others, doubtful=says is _Title.SILENT, written_at=written)

    def _gone(self, conversation: str) -> list[Identity]:
        self._case.left.add(conversation)
        return self._titled()

    def _not_yet(self, conversation: str) -> list[Identity]:
        """A program that was killed leaves its title behind, which stays until the next one has started up."""
        found = [*self._titled(), self._case.claim(conversation, Evidence.GUESS, certain=False)]
        self._is_fresh = False
        return found

    def _is_touched(self, session: Session | None) -> bool:
        """Whether this process can have written to it."""
        return bool(session and session.updated_at and session.updated_at >= self._process.started_at)

    def _others(self, says: _Title) -> list[Candidate]:
        """What may speak against the command line: where the title agrees with it, only what is titled alike."""
        if says is _Title.SILENT:
            return _candidates(self._touched())
        return _candidates([each for each in self._touched() if self._fits(each)])

    def _titled(self) -> list[Identity]:
        """Return what the title leaves: the only conversation it can be, or guesses."""
        if self._shown is None:
            return self._guesses(self._touched())
        if not self._shown.text:
            self._case.note("the title is that of the first page, or of a conversation that has none yet")
            self._is_fresh = True
            # Whatever has a title of its own is not what is shown, also where it was only looked at before.
            untitled = {each.id for each in self._everything() if _is_nameless(each.title) or self._is_late(each)}
            self._case.left.update(each.id for each in self._everything() if each.id not in untitled)
            # One that was known by its title before had it in sight.
            self._case.perhaps_left.update(each.id for each in self._everything() if not _is_nameless(each.title))
            since = self._process.started_at
            begun = [each for each in self._touched() if each.created_at and each.created_at >= since]
            return self._guesses([each for each in begun if each.id in untitled])
        named = self._called()
        if not named:
            self._case.note("the title is no conversation's")
            return self._guesses(self._touched())
        alone = len(named) == 1
        self._case.note("one conversation has the title" if alone else "several conversations have the title")
        # A process that has left a trace has shown its own title since.
        certain = alone and (bool(self._records) or self._is_touched(named[0]))
        own = sorted(named, key=lambda each: not self._is_here(each))
        return [self._case.claim(each.id, Evidence.TITLE, certain=certain) for each in own]

    def _guesses(self, found: Sequence[Session]) -> list[Identity]:
        return self._case.guesses([each for each in _candidates(found) if each[1] not in self._case.left])

    def _says(self, conversation: str) -> _Title:
        says = self._judged(conversation)
        self._case.note(says.value)
        return says

    def _judged(self, conversation: str) -> _Title:
        shown = self._shown
        session = store.find(self._database, conversation, self._host)
        if session is None and store.is_readable(self._database, self._host):
            return _Title.UNKNOWN if shown is None else _Title.OTHER
        if shown is None or session is None:
            return _Title.SILENT
        if self._fits(session):
            if shown.text:
                return _Title.UNKNOWN if len(self._called()) > 1 else _Title.AGREES
            return _Title.UNKNOWN if self._is_at_rest(session) else _Title.AGREES
        if not shown.text and self._is_late(session):
            # Nor can this be told from its first page, to which it may have gone back right after an answer.
            self._case.perhaps_left.add(conversation)
            return _Title.LATE
        named = self._called() if shown.text else [session]
        if conversation in (each.id for each in named) and shown.text:
            return _Title.AGREES  # one of its sub-agents is being looked at
        return _Title.OTHER if named else _Title.UNKNOWN

    def _called(self) -> list[Session]:
        """The conversations the title may be of: going from one to another of the same title leaves no trace."""
        shown = self._shown
        return list(store.called(self._database, shown.text, shown.cut, self._host)) if shown else []

    def _fits(self, session: Session) -> bool:
        shown = self._shown
        if shown is None or not shown.text:
            return shown is not None and _is_nameless(session.title)
        return session.title.startswith(shown.text) if shown.cut else session.title == shown.text

    def _is_late(self, session: Session) -> bool:
        """Whether it was written to so lately that its title may be newer than the one in sight."""
        return bool(self._at and session.updated_at and self._at - session.updated_at < _LATE)

    def _is_at_rest(self, session: Session) -> bool:
        """Whether its first answer is there, and with it the title should be: without one it looks like the first page."""
        _, last = next(store.newest_messages(self._database, session.id, self._host), ("", {}))
        finished = mapping(last.get("time")).get("completed") and last.get("finish") != "tool-calls"
        return last.get("role") == "assistant" and bool(finished)

    def _touched(self) -> list[Session]:
        """Conversations in this process's directory that were written to since it started, newest first."""
        touched = store.touched_since(self._database, self._process.started_at, self._host)
        return [each for each in touched if self._is_here(each)]

    def _everything(self) -> list[Session]:
        return store.touched_since(self._database, datetime.fromtimestamp(0, UTC), self._host)

    def _is_here(self, session: Session) -> bool:
        cwd, directory = self._process.cwd, session.directory
        return bool(cwd and directory) and self._host.physical(directory or "") == self._host.physical(cwd or "")

    def _about(self, conversation: str, evidence: Evidence) -> About:
        session = store.find(self._database, conversation, self._host)
        if session is None:
            return About(prompted=False if store.is_readable(self._database, self._host) else None)
        return About(prompted=True, home=None if self._is_here(session) else session.directory)


class _Latest:
    """What the last messages of a conversation say."""

    def __init__(self, path: str, conversation: str, host: HostView) -> None:
        self.task: str | None = None
        self.model: str | None = None
        self.provider: str | None = None
        self.used: int | None = None
        for ident, message in store.newest_messages(path, conversation, host):
            if message.get("role") == "user":
                self.task = self.task or store.prompt_of(path, ident, host)
            elif message.get("role") == "assistant":
                self.used = self.used or store.tokens(message)
                self.model = self.model or text(message.get("modelID"))
                self.provider = self.provider or text(message.get("providerID"))
            if self.task and self.used and self.model:
                break


def _plain(words: Sequence[str]) -> list[str]:
    return plain((*_KEPT, *_ONCE), words)


def _shown(title: str) -> _Shown | None:
    """Return what a pane's title shows, None when it is not opencode's."""
    if title == _HOME:
        return _Shown(text="")
    if not title.startswith(_BEFORE_TITLE):
        return None
    said = title.removeprefix(_BEFORE_TITLE)
    if not said.endswith(_CUT):
        return _Shown(text=said)
    # It is cut between the halves of a character beyond the first 65,536 as well, and half of one is not shown.
    return _Shown(text=said.removesuffix(_CUT).rstrip("\ufffd"), cut=True)


def _is_nameless(title: str) -> bool:
    return title.startswith(_NAMELESS) and len(title.partition(" - ")[2]) == _STAMP


def _candidates(sessions: Sequence[Session]) -> list[Candidate]:
    return [(each.updated_at, each.id) for each in sessions if each.updated_at is not None]


def _limit(provider: str | None, model: str | None, session: Session, process: Process, host: HostView) -> int | None:
    """The model's window as the user's own configuration has it; what the program knows itself it does not write down."""
    usual = join(home_of(process, "XDG_CONFIG_HOME", ".config", host), "opencode")
    settings = process.environ.get("OPENCODE_CONFIG_DIR") or usual
    places = (session.directory, settings)
    paths = [process.environ.get("OPENCODE_CONFIG"), *(join(place, "opencode.json") for place in places if place)]
    for path in paths:
        found = mapping((decode_object(host.read(path)) or {}).get("provider")) if path else {}
        models = mapping(mapping(found.get(provider or "")).get("models"))
        if limit := count(mapping(mapping(models.get(model or "")).get("limit")).get("context")):
            return limit
    return None


ADAPTER: AgentAdapter = OpenCode()
