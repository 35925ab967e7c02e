"""What Gemini CLI and Qwen Code, which was made of it, have in common.

Both are started twice: the process a person started runs the same command line again below itself, with more memory,
and that one does the work and runs the hooks. Both give a conversation a file of its own in a directory of its project,
and find it only from there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from os.path import basename, isabs, join
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from perdure.agents._calls import Call, detail_of
from perdure.agents._case import About, Candidate, Case, Trace, hook_records
from perdure.agents._json import mapping, text
from perdure.agents._options import Argument
from perdure.agents._program import head_of
from perdure.agents._spec import Ordinary
from perdure.agents._yargs import plain
from perdure.model.identity import Evidence, Identity
from perdure.model.observation import Reading
from perdure.model.process import Process
from perdure.ports import HostView, Sighting

if TYPE_CHECKING:
    from perdure.agents._told import Sign

#: SessionEnd reasons after which the process lives on in another conversation.
_MOVED_ON = frozenset({"clear", "resume"})
_SESSION_ID, _RESUME, _CONTINUE = "--session-id", "--resume", "--continue"


class Chat(Struct, frozen=True, kw_only=True):
    """A conversation as it lies on the disk."""

    id: str
    #: Where it is written, None while nothing was.
    path: str | None
    #: When the agent last wrote anything about it.
    written_at: datetime


class Store:
    """The conversations one process can see: those of its project first."""

    def __init__(self, home: str, directories: Sequence[str], host: HostView) -> None:
        self.home = home
        #: Where the process works, the likeliest first.
        self.directories = directories
        self.host = host

    @abstractmethod
    def find(self, conversation: str) -> Chat | None:
        """Return a conversation by its id, whichever project it is of."""

    @abstractmethod
    def touched(self, since: datetime) -> list[Chat]:
        """Return the project's conversations about which anything was written since, the latest first."""

    @abstractmethod
    def latest(self) -> Chat | None:
        """Return the project's conversation that was written to last."""

    @abstractmethod
    def is_prompted(self, chat: Chat) -> bool:
        """Return whether there is anything in it that the agent would resume."""

    @abstractmethod
    def started_in(self, chat: Chat) -> str | None:
        """Return the project it is of."""

    @abstractmethod
    def own_directories(self) -> list[str]:
        """Return where the project's conversations are written."""

    def switched_to(self, conversation: str, since: datetime) -> list[Candidate]:
        """Return conversations the process may have gone on to since its last hook record, which named this one."""
        return []

    def is_deaf(self, process: Process) -> bool:
        """Return whether the process leaves no trace of a conversation in which nothing was said."""
        return False

    def about(self, conversation: str, fresh: bool) -> About:
        """Return what is known of a conversation; with `fresh` its id may exist before anything was said."""
        chat = self.find(conversation)
        if chat is None or chat.path is None:
            return About(prompted=False if fresh else None)
        prompted = self.is_prompted(chat)
        return About(prompted=prompted, taken=not prompted, home=self._elsewhere(self.started_in(chat)))

    def _elsewhere(self, project: str | None) -> str | None:
        # What the process a person started says, not the one below it, for that is what a command is started with.
        here = self.directories[-1] if self.directories else None
        if project is None or here is None:
            return project
        return None if self.host.physical(project) == self.host.physical(here) else project


class Kin(Ordinary):
    """The ground both stand on."""

    @abstractmethod
    def store(self, process: Process, directories: Sequence[str], host: HostView) -> Store:
        """Return the conversations a process can see."""

    @abstractmethod
    def profile(self, process: Process, host: HostView) -> str | None:
        """Return the name of a home that is not the usual one."""

    def arguments(self, process: Process) -> list[Argument]:
        """Return what its command line says."""
        return list(self.grammar.parse(self._words(process.argv)))

    def kept(self, words: Sequence[str]) -> list[str]:
        """Return the options that made the agent what it was, each flag in one spelling."""
        return super().kept(plain(self._declarations, words))

    @property
    def _declarations(self) -> tuple[str, ...]:
        return (*self.spec.drop, *self.spec.keep)

    def _words(self, argv: Sequence[str]) -> list[str]:
        return plain(self._declarations, argv[head_of(self.program, argv)[1] :])

    def option(self, process: Process, name: str) -> str | None:
        """Return what an option was given last, None when it was not given."""
        found = [each.values[-1] for each in self.arguments(process) if each.name == name and each.values]
        return found[-1] if found else None

    def workers(self, process: Process, tree: Sequence[Process]) -> list[Process]:
        """Return the agent's process and those of its pane that run the same command line below it."""
        found = [process]
        for each in tree:
            above = found[-1]
            if each.ppid == above.pid and self.score(each) and self._words(each.argv) == self._words(above.argv):
                found.append(each)
        return found

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        """Return the conversation by hook record, by the command line, then those written in its project."""
        return _Search(self, sighting, host).identities()

    # -- what it says itself ------------------------------------------------------------------------------------

    @abstractmethod
    def sign(self, record: Mapping[str, Any]) -> Sign | None:
        """Return what a hook record means, None when nothing."""

    def told(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[Reading]:
        """Return what its hooks say."""
        from perdure.agents._told import by_hooks  # nothing a save needs

        return by_hooks(self.name, self.workers(process, tree), host, self.sign)

    def telling(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[str]:
        """Return where the conversations of its project are written."""
        cwds = dict.fromkeys(worker.cwd for worker in reversed(self.workers(process, tree)) if worker.cwd)
        return self.store(process, [*cwds], host).own_directories()


class _Search:
    """One look at one process."""

    def __init__(self, kin: Kin, sighting: Sighting, host: HostView) -> None:
        self._kin = kin
        self._process = sighting.process
        self._host = host
        self._workers = kin.workers(sighting.process, sighting.tree)
        directories = dict.fromkeys(worker.cwd for worker in reversed(self._workers) if worker.cwd)
        self._store = kin.store(sighting.process, [*directories], host)
        self._options = {argument.name for argument in kin.arguments(sighting.process)}
        self._case = Case(kin.name, self._about, profile=kin.profile(sighting.process, host))

    def identities(self) -> Sequence[Identity]:
        """Return every identity the evidence allows, best first, the last without a conversation."""
        return self._case.closed(self._hooked() or self._launched_or_guessed())

    def _hooked(self) -> list[Identity]:
        records = hook_records(self._kin.name, self._workers, self._host)
        found = self._case.hooked(records, self._trace)
        if not found or found[0].conversation is None:
            return found
        others = self._store.switched_to(found[0].conversation, records[0][0])
        if not others:
            return found
        self._case.note("another conversation was taken up here since, which no hook tells of")
        doubtful = structs.replace(found[0], certain=False)
        return [*self._case.guesses(others), doubtful]

    def _trace(self, record: Mapping[str, Any]) -> Trace:
        conversation = text(record.get("session_id")) or ""
        left = record.get("hook_event_name") == "SessionEnd" and record.get("reason") in _MOVED_ON
        return Trace(conversation=conversation if self._kin.is_conversation(conversation) else None, left=left)

    def _launched_or_guessed(self) -> list[Identity]:
        named = self._kin.named(self._process)
        touched = self._store.touched(self._process.started_at)
        others = [(chat.written_at, chat.id) for chat in touched if chat.id != named]
        if named is None:
            self._case.note(self._why_not())
            return self._case.guesses(others or self._continued())
        found = self._store.find(named)
        lost = (found is None or found.path is None) and _SESSION_ID not in self._options
        # Without hooks nothing tells this process from another that wrote here: it may have gone where that one is.
        doubtful = bool(others) or self._store.is_deaf(self._process)
        return self._case.launched(
            named, others, lost=lost, doubtful=doubtful, written_at=found.written_at if found else None
        )

    def _continued(self) -> list[Candidate]:
        latest = self._store.latest() if self._options & {_RESUME, _CONTINUE} else None
        return [(latest.written_at, latest.id)] if latest else []

    def _why_not(self) -> str:
        if self._options & {_RESUME, _CONTINUE}:
            return "the command line does not say which conversation it goes on with"
        return "the command line names none"

    def _about(self, conversation: str, evidence: Evidence) -> About:
        given = evidence is Evidence.ARGV and _SESSION_ID in self._options
        # A guess without a transcript is of a conversation that has nothing but a log yet.
        return self._store.about(conversation, fresh=given or evidence in (Evidence.HOOK, Evidence.GUESS))


def home_of(process: Process, variables: Iterable[tuple[str, str]], usual: str, host: HostView) -> str:
    """Return the directory a process keeps its files in: the first variable that is set, with what comes below it.

    `~` and what is no absolute path are taken as the agents take them.
    """
    own = process.environ.get("HOME") or host.home
    for variable, below in variables:
        chosen = process.environ.get(variable)
        if chosen:
            if chosen == "~" or chosen.startswith("~/"):
                chosen = join(own, chosen[2:])
            return join(chosen if isabs(chosen) else join(process.cwd or own, chosen), below).rstrip("/")
    return join(own, usual)


def profile_of(home: str, usual: str, host: HostView) -> str | None:
    """Return the name of a home that is not the usual one."""
    if host.physical(home) == host.physical(join(host.home, usual)):
        return None
    name = basename(home)
    return name if name != usual else basename(home.removesuffix(f"/{usual}")) or name


def parts_of(content: object) -> list[dict[str, Any]]:
    """Return the parts of a message: a text alone is a part too."""
    if isinstance(content, str):
        return [{"text": content}]
    parts = content if isinstance(content, list) else [content]
    return [{"text": part} if isinstance(part, str) else part for part in parts if isinstance(part, str | dict)]


def said(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return what the parts say in words, thoughts left out."""
    return "\n".join(found for part in parts if not part.get("thought") and (found := text(part.get("text"))))


def called(parts: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return id and name of the tools that are called."""
    return [(id, name) for id, (name, _) in calls_in(parts)]


def calls_in(parts: Iterable[Mapping[str, Any]]) -> list[tuple[str, Call]]:
    """Return the calls by their ids: the tools' names, and what they are called with."""
    found = [mapping(part.get("functionCall")) for part in parts]
    return [
        (text(call.get("id")) or "", (text(call.get("name")) or "?", detail_of(call.get("args"))))
        for call in found
        if call
    ]


def answered(parts: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Return id and name of the tools that answered, and what they said."""
    found = []
    for part in parts:
        response = mapping(part.get("functionResponse"))
        if response:
            body = mapping(response.get("response"))
            output = text(body.get("output")) or text(body.get("error")) or ""
            found.append((text(response.get("id")) or "", text(response.get("name")) or "?", output))
    return found
