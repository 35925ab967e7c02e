"""Every interface, with the contract its implementer keeps. Typing only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from perdure.model.chat import Chat, CloseReason, Found, Transcript, Turn
from perdure.model.chat_import import Arrived
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.identity import AgentDetails, Identity
from perdure.model.job import Job
from perdure.model.observation import Reading
from perdure.model.plan import Outcome, Restore
from perdure.model.process import Command, Process
from perdure.model.run import Run
from perdure.model.screen import Screen, ScreenReading
from perdure.model.server import Server
from perdure.model.snapshot import CAPTURED, Capture, Problem, Saved, Snapshot, SnapshotSummary, Whereabouts

#: Reads rows of somebody else's SQLite file without ever writing to it; None when that cannot be done.
ForeignQuery = Callable[[str, str, Sequence[object]], "Sequence[tuple[object, ...]] | None"]


class HostView(Protocol):
    """The files of the user a pane belongs to, read-only. Adapters see nothing else of the machine.

    Nothing here raises for something missing, unreadable or odd: a broken file costs only itself. Paths are
    text in the sense of `model.text`.
    """

    @property
    def home(self) -> str:
        """The user's home directory."""

    def read(self, path: str, *, limit: int = 1 << 20, tail: bool = False) -> bytes | None:
        """Return at most `limit` bytes from the start (or the end, with `tail`) of a regular file, else None."""

    def names(self, directory: str) -> Sequence[str]:
        """Return the names in a directory, in no order; () when there is none."""

    def modified_at(self, path: str) -> datetime | None:
        """Return when the file was last written, None when there is no such file."""

    def created_at(self, path: str) -> datetime | None:
        """Return when the file appeared, None when that is not known."""

    def size(self, path: str) -> int | None:
        """Return the file's size in bytes, None when there is no such file."""

    def physical(self, path: str) -> str:
        """Return the path with every symlink resolved, as far as it exists."""

    def open_files(self, pid: int) -> Sequence[str]:
        """Return the paths a process holds open, () when we may not know."""

    def hooks(self, agent: str, process: Process) -> Sequence[tuple[datetime, bytes]]:
        """Return when and what was recorded by hooks of that very process since it began, newest first."""

    def query(self, path: str, sql: str, parameters: Sequence[object] = ()) -> Sequence[tuple[object, ...]] | None:
        """Return rows of an SQLite file opened read-only, None when it cannot be read."""


@runtime_checkable
class RecentView(HostView, Protocol):
    """A view for whoever wants only what was said last: long files are cut, and sub-agents' turns are left out."""

    @property
    def rows(self) -> int:
        """How many of its latest messages a database is to be asked for."""


class Sighting(Protocol):
    """An agent seen in a pane: all the evidence there is, apart from files."""

    @property
    def process(self) -> Process:
        """The agent's own process."""

    @property
    def tree(self) -> Sequence[Process]:
        """Every process of the pane, parents before children."""

    @property
    def title(self) -> str:
        """The pane's title as it was read."""

    @property
    def pane(self) -> str:
        """The pane's tmux id."""

    @property
    def server(self) -> Server:
        """The tmux server the pane is on."""

    @property
    def at(self) -> datetime | None:
        """When it was seen; None when that is not known, or is not now."""


@runtime_checkable
class AgentAdapter(Protocol):
    """Our knowledge of one agent CLI. Pure: judged on evidence handed to it, it runs and writes nothing."""

    @property
    def name(self) -> str:
        """The agent's name, stored in snapshots: never renamed."""

    @property
    def programs(self) -> frozenset[str]:
        """What its process may be called: as comm, or as the base name of exe, argv[0] or a script.

        A process with none of these names is not shown to `score`.
        """

    @property
    def same_directory(self) -> bool:
        """Whether a conversation can be resumed only where it was started."""

    @property
    def environment(self) -> frozenset[str]:
        """Names of the variables that decide where the agent lives and whom it talks to; never secrets."""

    @property
    def signs(self) -> tuple[str, ...]:
        """Patterns of what stands on most of its screens and on hardly any other agent's, as `AgentSpec` has them."""

    def score(self, process: Process) -> float:
        """Return 0 for "not mine" up to 1; the highest score wins. A raise counts as 0 and is logged."""

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        """Return every identity the evidence allows, best first, never empty.

        The first one whose conversation no other pane holds by better evidence is taken; so an adapter lists a
        weaker claim only when it would be right if the stronger one fell to another pane. The last has no
        conversation. Guesses are listed behind a command line that is taken for certain too, with `written_at`:
        those that turn out to be nobody else's make it doubtful.
        """

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return what is known of the conversation now. Unknown is None."""

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        """Return what the screen says, None when it cannot tell. Never a guess."""

    def resume(self, identity: Identity, launched: Command) -> Command | None:
        """Return the command that brings this conversation back, None when there is no way.

        Keeps cwd and environment, keeps the flags that made the agent what it was, never adds a dangerous one,
        and is idempotent: resuming a resumed command gives the same command.
        """


@runtime_checkable
class ReadsTranscripts(AgentAdapter, Protocol):
    """An agent whose conversations can be read back."""

    def turns(self, conversation: str, host: HostView, transcript: str | None = None) -> Iterator[Mapping[str, object]]:
        """Yield the turns of a conversation in order, skipping what cannot be read.

        A turn has `role` (user, assistant, tool or system), `text`, `tool` (names, or None), `tokens` (or None),
        `time` (an aware datetime, or None) and `agent` (a sub-agent's id, None for the main conversation).
        Where the transcript tells, it also has `detail` (what a tool was called with: a file, a command; a line of its
        own for each of several tools), `failed` (of a tool's answer: whether it came to nothing; None when that is not
        said) and `final` (of an answer: whether the agent says nothing more until it is spoken to).
        `transcript` is where `describe` found it last; without, the agent's usual places are searched.
        """


@runtime_checkable
class DeletesTranscripts(AgentAdapter, Protocol):
    """An agent that may delete the transcript of a conversation that was resumed: copies are made before."""

    def is_whole(self, transcript: bytes) -> bool:
        """Return whether the agent would find a conversation to resume in a file of this content."""


@runtime_checkable
class BeginsAnew(AgentAdapter, Protocol):
    """An agent that begins anew, without a word, in a transcript from which all that was said is gone."""

    def has_turns(self, transcript: str, host: HostView) -> bool:
        """Return whether anything that was said is left in a file that is there; True where that cannot be told."""


@runtime_checkable
class TellsState(AgentAdapter, Protocol):
    """An agent that says itself what it is doing: in what it keeps about itself, or through our hooks."""

    def told(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[Reading]:
        """Return what its registry and its hooks say, at most one reading of each, dated when it was written down.

        `tree` are the processes of its pane, parents before children: some agents run their hooks in a process below the
        one they were started as, and without it are not heard. A registry of high confidence tells all that can happen;
        of less, it does not tell when somebody is asked, which the screen does. Hooks can go quiet.
        """

    def telling(self, process: Process, host: HostView, tree: Sequence[Process] = ()) -> Sequence[str]:
        """Return the files and directories that change when what it says, or its conversation, does.

        Not the hooks' records, which the host keeps. A file may not be there yet, and may be replaced as a whole.
        """


@runtime_checkable
class ShowsState(AgentAdapter, Protocol):
    """An agent whose title alone may tell what it is doing."""

    @property
    def title_tells(self) -> bool:
        """Whether `busy`, said by `read_screen` of a title without lines, holds whatever the lines are.

        Of anything else that a title alone says, the lines may say more, or better.
        """


@runtime_checkable
class Begins(AgentAdapter, Protocol):
    """An agent that can be started anew."""

    def begin(self, prompt: str = "") -> tuple[tuple[str, ...], bool]:
        """Return the words that start it, and whether `prompt` is asked for in them.

        It is not where the agent has no words for that, or might take it for something else: then it has to be typed
        once the agent waits for it.
        """


class SnapshotStore(Protocol):
    """Where snapshots are kept. Every verb is all or nothing."""

    def save_snapshot(
        self, capture: Capture, scrollback: Mapping[str, bytes] | None, *, origin: str = CAPTURED
    ) -> Saved:
        """Keep `capture`, and the scrollback texts by digest.

        None means that scrollback was not looked at: what is known of the same panes, from the same server
        process, stays known. An empty mapping means that there is none.

        The same topology as this server's latest snapshot of that origin moves `last_seen_at` and the details
        forward; anything else becomes a new snapshot. A capture older than the latest never takes its place.
        For captures the server's manifest is written before this returns. When this raises, what was there
        before is still there.
        """

    def latest_snapshot(self, server: Server) -> Snapshot | None:
        """Return the last good captured snapshot that can be read, None when there never was one."""

    def servers(self, *, host: str, uid: int, seen_since: datetime) -> tuple[Server, ...]:
        """Return the servers of a user on a machine that were captured since then."""

    def get_snapshot(self, id: str) -> Snapshot:
        """Return a snapshot by its id or an unambiguous beginning of it."""

    def whereabouts(self, ids: Iterable[str]) -> Iterator[Whereabouts]:
        """Yield who was where in those of these snapshots that can be read, each when it is asked for."""

    def list_snapshots(
        self, *, server: Server | None = None, before: datetime | None = None, limit: int | None = None
    ) -> tuple[SnapshotSummary, ...]:
        """Return summaries, newest (`last_seen_at`) first; damaged snapshots are listed too."""

    def read_scrollback(self, digest: str) -> bytes:
        """Return a pane's scrollback as captured."""

    def absent_scrollback(self, digests: Collection[str]) -> set[str]:
        """Return those of `digests` the store does not hold yet."""

    def prune_snapshots(
        self, doomed: Collection[str], now: datetime, *, restores_before: datetime | None = None
    ) -> int:
        """Delete these snapshots and whatever scrollback only they used; return how many there were.

        The last good snapshot of a server stays, and so does that of a restore that has not ended. Restores that
        have ended go when their snapshot is gone or when they began before `restores_before`.
        """

    def pruned_at(self) -> datetime | None:
        """Return when `prune_snapshots` last ran."""

    def check(self) -> tuple[Problem, ...]:
        """Read everything back and say what is wrong."""

    def close(self) -> None:
        """Let go of the database; the store cannot be used afterwards."""


class RestoreJournal(Protocol):
    """Where restores are written down before they begin, so that one that was killed can be gone on with."""

    def begin_restore(self, restore: Restore) -> None:
        """Write a restore down, durably before this returns. The same id again replaces what was said of it.

        Another restore of the same server that has not ended has now: only the latest is gone on with.
        """

    def note_outcomes(self, id: str, outcomes: Mapping[str, Outcome]) -> None:
        """Add what came of steps, by pane of the snapshot; a later word about a pane replaces an earlier one.

        Durable before this returns. Raises `NotFound` when there is no such restore, as `end_restore` does.
        """

    def end_restore(self, id: str, now: datetime, outcomes: Mapping[str, Outcome]) -> None:
        """Say that a restore has come to its end, and what came of steps: nobody goes on with it.

        All or nothing. Saying again that it has ended changes nothing.
        """

    def open_restore(self, server: Server) -> Restore | None:
        """Return the latest restore of this server when it has not ended, else None."""

    def list_restores(self, *, limit: int | None = None) -> tuple[Restore, ...]:
        """Return restores, the one that was begun last first; those that cannot be read are left out."""


class RunStore(Protocol):
    """Where runs are kept, and what has happened to them."""

    def new_runs(self, count: int) -> tuple[str, ...]:
        """Return ids that were never given before and never will be again, whoever asks, and whatever was deleted."""

    def record(self, runs: Sequence[Run], events: Sequence[Event]) -> tuple[StoredEvent, ...]:
        """Keep these runs as they are now, and append what has happened, all or nothing and durable.

        Events are numbered in their order, above every number there ever was, and become visible in that order: who
        has read up to a number never finds a smaller one later.
        """

    def list_runs(
        self, *, host: str | None = None, over: bool | None = None, ended_after: datetime | None = None
    ) -> tuple[Run, ...]:
        """Return runs by their numbers: of a host, and those whose panes are gone (`over`), are not, or both.

        With `ended_after` only those whose panes were gone later than then. What cannot be read back is left out.
        """

    def get_run(self, id: str) -> Run:
        """Return a run. Raises `NotFound`."""

    def forget_runs(self, before: datetime) -> int:
        """Forget the runs whose panes were gone before then, and return how many; their ids stay given."""


class EventLog(Protocol):
    """What has happened, in order."""

    def read_events(
        self, *, after: int = 0, limit: int = 500, run: str | None = None, kinds: Collection[EventKind] = ()
    ) -> tuple[StoredEvent, ...]:
        """Return the first events behind a number; of one run, or of some kinds, when asked. Unreadable ones are left out."""

    def last_event(self) -> int:
        """Return the number of the last event, 0 when there never was one."""

    def forget_events(self, before: datetime) -> int:
        """Forget the events before then and return how many; numbers are not given again."""


class ChatStore(Protocol):
    """Where chats are kept, and what was said in them.

    Every verb is all or nothing, and durable before it returns; with a store that was opened for threads, several may
    use it at once. Whatever cannot be read back as it was written is `ChatDamaged`, never less than was said; only
    lists leave such a chat out. `ChatNotFound` is raised for an id that no chat has. `reaches` and `owner`, of
    `model.chat_owner`, are whose chats are meant: those they reach and those the owner was granted; None for all.
    """

    def open_chat(self, key: str) -> Chat | None:
        """Return the one open chat of a key, in the same time however many chats there are."""

    def get_chat(self, id: str) -> Chat:
        """Return a chat."""

    def last_closed(self, key: str) -> Chat | None:
        """Return the chat of a key that was closed last, also where the clock was ahead when an earlier one was closed."""

    def continuation_of(self, id: str) -> Chat | None:
        """Return the chat that goes on with one that was made shorter."""

    def chats_beginning(self, prefix: str, *, limit: int = 2) -> tuple[Chat, ...]:
        """Return chats whose ids begin like this."""

    def chats_titled(self, owner: str | None, title: str) -> tuple[Chat, ...]:
        """Return the owner's chats with a title, or with one that goes on with ` #` behind it; everybody's for None."""

    def taken_titles(self, owner: str, title: str) -> tuple[str, ...]:
        """Return the titles of the same chats of an owner, and of those that cannot be read back: what they have is taken."""

    def list_chats(
        self,
        *,
        reaches: Collection[str] | None = None,
        owner: str | None = None,
        key: str | None = None,
        is_open: bool | None = None,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> tuple[Chat, ...]:
        """Return chats that were used since then, the one that was used last first."""

    def chats_owed(self) -> tuple[Chat, ...]:
        """Return the chats that were closed by themselves before what was said in them was handed on."""

    def count_chats(self) -> int:
        """Return how many chats there are, closed ones too."""

    def begin_chat(
        self,
        chat: Chat,
        *,
        instead_of: Chat | None = None,
        reason: CloseReason = CloseReason.ASKED,
        copy: str | None = None,
        before: int | None = None,
        turns: Sequence[Turn] = (),
        expect: int | None = None,
    ) -> Chat | None:
        """Write a chat down, and close the open one of its key for a reason.

        None, and nothing done, when the open chat of the key is not `instead_of`, or was used since that was read: look
        again. What was said in the chat `copy` before a position comes first, then the turns. Raises `Conflict` when
        `instead_of` goes on elsewhere than at the position that is expected, and for an id that is taken; `TitleTaken`
        when another chat of its owner has its title.
        """

    def import_chat(
        self,
        chat: Chat,
        turns: Sequence[Turn],
        *,
        next: int | None = None,
        change: Callable[[Chat], Chat] | None = None,
    ) -> Arrived:
        """Write down a chat that comes from elsewhere, and what was said in it, with what was taken back.

        Of one that is here, by its id, only the turns behind those that are here are written; nothing, when those before
        differ, or when it was held elsewhere (`CHANGED`). `change` tells what such a one is to be, as in `change_chat`.
        A new one comes in closed when its key has an open chat. Turns keep their positions, which have to grow; `next`
        is that of the turn to come. Raises `TitleTaken`.
        """

    def switch_chat(self, chat: Chat, key: str, at: datetime, *, instead_of: Chat | None) -> Chat | None:
        """Let a chat be the open one of a key, and close the one that was, which is `instead_of`.

        None, and nothing is changed, when another one is open there by now, or the chat was opened, closed or moved
        since it was looked at. Raises `ChatNotFound`.
        """

    def change_chat(
        self,
        id: str,
        change: Callable[[Chat], Chat],
        *,
        over: Collection[str] = (),
        at: datetime | None = None,
        expect: int | None = None,
    ) -> Chat:
        """Let a chat be what `change` makes of it, and return that. `at` is when; else when it was last used.

        `change` is called while nobody else changes anything, so it only reckons. It leaves id, turns and positions alone.
        The chats `over` give up their title when it takes it; `TitleTaken` is raised when another one has it. With
        `expect`, `Conflict` is raised, and nothing changed, when the next turn goes elsewhere than to that position.
        """

    def touch_chat(self, id: str, at: datetime) -> bool:
        """Note that an open chat was used; False when it is not open any more. Time never goes back."""

    def grant_chat(self, id: str, owner: str) -> None:
        """Let an owner see a chat of somebody else, and go on with a copy of it."""

    def revoke_chat(self, id: str, owner: str) -> None:
        """Take that back, and what was passed on by it to chats that continue it, or that it continues."""

    def is_granted(self, id: str, owner: str) -> bool:
        """Return whether an owner was granted a chat."""

    def forget_chat(self, id: str, *, before: datetime | None = None, at: datetime | None = None) -> None:
        """Delete a closed chat and all that was said in it; an open one is `Refused`.

        So is, with `before`, one that was used or closed since then. `at` is when; else when it was closed.
        """

    def append_turns(self, id: str, turns: Sequence[Turn], at: datetime, *, expect: int | None = None) -> int:
        """Write turns behind the last one, whatever positions they say, and return the position of the last of them.

        Positions only grow, from 1 on. With `expect` the first of them has that position, or nothing is written and
        `Conflict` raised, whose `position` it would have had; so it is for a closed chat, whatever is expected. Without
        it a closed chat takes what comes late, and is to be handed on again if it was.
        """

    def load_turns(
        self, id: str, *, start: int = 1, limit: int | None = None, hidden: bool = False, partly: bool = False
    ) -> Transcript:
        """Return what was said from a position on, as of one moment; what was taken back only when it is asked for.

        With `partly` what cannot be read back is left out and counted as `missing`, for whoever wants what is left.
        """

    def rewrite_turns(
        self, id: str, start: int, turns: Sequence[Turn], at: datetime, *, expect: int | None = None
    ) -> int:
        """Take back everything from a position on and write turns in its place, at once; return the last position.

        What was taken back stays, hidden. A position is left out, so whoever expects the one before learns of it. A
        closed chat is a `Conflict`.
        """

    def undo_turns(self, id: str, count: int, at: datetime) -> Turn:
        """Take back everything from the user's last turn but `count` - 1 on, and return that turn.

        A closed chat is a `Conflict`.
        """

    def search_turns(
        self,
        query: str,
        *,
        reaches: Collection[str] | None = None,
        owner: str | None = None,
        platform: str | None = None,
        participant: str | None = None,
        chat: str | None = None,
        role: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
    ) -> tuple[Found, ...]:
        """Return the turns that best match, of everything that was said by now; those that were taken back not.

        Of very many that match, the best of the latest are meant: of the chats that were begun last.
        The query is words, "phrases", beginnings*, alternatives with OR, and -words that are not to be there; anything
        else in it is taken for words. Raises `UsageError` when there is no word in it.
        """

    def index_turns(self, limit: int = 200) -> bool:
        """Make some more turns ready to be searched; False when all are. A search does it by itself."""


class JobStore(Protocol):
    """Where jobs are written down. What they print is not here, but in their directories.

    Every verb is all or nothing, and durable before it returns. What cannot be read back is not there.
    """

    def add_job(self, job: Job, *, limit: int | None = None, of_owner: int | None = None) -> None:
        """Write a job down before it is started, for good.

        `Refused`, and nothing written, when so many jobs are running already: of its place, or of its owner. Raises
        `Conflict` when there is one of that id.
        """

    def get_job(self, id: str) -> Job:
        """Return a job. Raises `JobNotFound`."""

    def jobs_beginning(self, prefix: str, *, limit: int = 2) -> tuple[Job, ...]:
        """Return jobs whose ids begin like this."""

    def list_jobs(
        self, *, owner: str | None = None, place: str | None = None, is_running: bool | None = None
    ) -> tuple[Job, ...]:
        """Return jobs, the one that was ordered last first."""

    def change_job(self, id: str, change: Callable[[Job], Job]) -> Job:
        """Let a job be what `change` makes of it, with the events of that in one transaction, and return that.

        `change` is called while nobody else changes anything, so it only reckons. One that has ended stays as it ended.
        Events say that it began, and that it ended: each once.
        """

    def watch_job(self, id: str, change: Callable[[Job], tuple[Job, Sequence[Event]]]) -> Job:
        """As `change_job`, with what its owner is to be told: before that the job has ended, in the same transaction."""

    def undelivered(self, owner: str, *, limit: int = 100) -> tuple[StoredEvent, ...]:
        """Return the first events that are to be delivered to an owner and were not, in order. Unreadable ones are left out."""

    def deliver(self, owner: str, seq: int) -> None:
        """Note that everything up to this number has been delivered to an owner."""

    def forget_jobs(
        self, place: str, ended_before: datetime, *, keep: int, is_spared: Callable[[str], bool] = ...
    ) -> tuple[str, ...]:
        """Delete ended jobs of a place: those that ended before then, and the earliest beyond so many; return their ids.

        One that runs is never deleted, nor one whose id `is_spared`.
        """


class Leases(Protocol):
    """Who may do what only one may do."""

    def take_lease(self, name: str, holder: str, now: datetime, *, until: datetime) -> str | None:
        """Take or prolong a lease; return None when it is ours, else who holds it: it has not run out.

        Two who ask at the same moment never both get it.
        """

    def drop_lease(self, name: str, holder: str) -> None:
        """Give a lease back. Nothing happens when it is another's, or nobody's."""
