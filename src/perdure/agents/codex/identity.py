"""Which thread a Codex process is in.

Without a daemon the process itself holds its threads' locks. It keeps those it went on from for a minute or so, but
whichever it goes to it loads anew, and it refuses to go anywhere in the middle of a turn: the lock written last is the
thread it is in. With a daemon only the terminal title can say which of the daemon's threads a pane shows.

Hook records are not asked. They are the daemon's as a rule, a new thread leaves none before its first prompt, and the
end of a session is recorded on the way into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from os.path import join

from msgspec import Struct

from perdure.agents._case import About, Case
from perdure.agents._globs import find_files
from perdure.agents._json import text
from perdure.agents.codex.home import (
    Loaded,
    codex_home,
    daemon_of,
    find_rollout,
    header,
    is_sub_agent,
    loaded_by,
    profile,
    root_of,
    state_database,
)
from perdure.agents.codex.rollout import is_mid_turn, is_packed, last_in
from perdure.model.agent import UUID
from perdure.model.identity import Evidence, Identity
from perdure.ports import HostView, Sighting

_SINCE = """
    SELECT id, cwd, source FROM threads WHERE updated_at >= ? AND archived = 0
    ORDER BY updated_at DESC LIMIT 500
"""
_BEGINNING = "SELECT id FROM threads WHERE id >= ? AND id < ? LIMIT 2"
_NAMES = "SELECT name FROM threads WHERE id = ?"
#: What is left of an id in a title that has no room for all of it.
_CUT = 29
_DASHES = (8, 13, 18, 23)


class Launch(Struct, frozen=True, kw_only=True):
    """What the command line says."""

    #: The thread after `resume`.
    resumed: str | None = None
    #: The thread after `fork`, in which the process is not.
    forked: str | None = None
    #: It has no daemon: `--no-daemon`.
    alone: bool = False
    #: Its threads are on another machine: `--remote`.
    remote: bool = False
    #: The directory after `--cd`.
    directory: str | None = None


class Search:
    """One look at one process."""

    def __init__(self, agent: str, sighting: Sighting, host: HostView, launch: Launch) -> None:
        self._process = sighting.process
        self._host = host
        self._launch = launch
        self._home = codex_home(sighting.process, host)
        self._title = sighting.title
        self._here = working_directory(sighting.process.cwd, launch)
        self._loaded: dict[str, Loaded] = {}
        self._case = Case(agent, self._about, profile=profile(sighting.process, host))

    def identities(self) -> Sequence[Identity]:
        """Return every identity the evidence allows, best first, the last without a conversation."""
        own = loaded_by(self._process.pid, self._host)
        if own:
            return self._case.closed(self._its_own(own))
        if own is not None and self._launch.alone:
            self._case.note("it has no thread loaded yet")
            return self._case.closed(self._not_loaded())
        daemon = None if self._launch.remote or self._launch.alone else daemon_of(self._home, self._host)
        served = loaded_by(daemon, self._host) if daemon is not None else None
        if served is None:
            self._case.note("which threads are loaded cannot be seen")
            return self._case.closed(self._unseen())
        return self._case.closed(self._served(served))

    # -- without a daemon ---------------------------------------------------------------------------------------

    def _its_own(self, loaded: list[Loaded]) -> list[Identity]:
        roots = self._roots(loaded)
        shown = self._shown(loaded)
        if shown is not None and any(each.id == shown for each in roots):
            self._case.note("it holds the lock of the thread its title names")
            return [self._case.claim(shown, Evidence.OPEN_FILE, certain=True)]
        if not roots:
            self._case.note("it holds the locks of sub-agents alone")
            return self._not_loaded()
        roots.sort(key=_when_loaded, reverse=True)
        if self._is_decided(roots, loaded):
            self._case.note("it holds the thread's lock, and no other that was written since")
            return [self._case.claim(roots[0].id, Evidence.OPEN_FILE, certain=True)]
        self._case.note("it holds the locks of several threads, and which came last is not decided")
        return [self._case.claim(each.id, Evidence.GUESS, certain=False, written_at=each.loaded_at) for each in roots]

    def _is_decided(self, roots: list[Loaded], loaded: list[Loaded]) -> bool:
        if len(roots) < 2:
            return True
        first, second = roots[:2]
        if first.loaded_at is None or _when_loaded(first) == _when_loaded(second):
            return False
        # A sub-agent has no file in its first moments, so that nothing tells it from a new thread but that somebody
        # who could have begun it is at work.
        others = (each.rollout for each in loaded if each.id != first.id)
        return first.rollout is not None or not any(path and is_mid_turn(path, self._host) for path in others)

    def _not_loaded(self) -> list[Identity]:
        named = self._launch.resumed
        return [self._case.claim(named, Evidence.ARGV, certain=False)] if named else []

    # -- with a daemon ------------------------------------------------------------------------------------------

    def _served(self, loaded: list[Loaded]) -> list[Identity]:
        roots = {each.id: each for each in self._roots(loaded)}
        shown = self._shown(loaded)
        if shown in roots:
            return self._titled(roots[shown], roots)
        stray = bool(ids_in(self._title))
        if stray:
            self._case.note("the title names a thread the daemon has not loaded")
        named = self._launch.resumed
        near = self._nearest_first([each for each in roots.values() if each.id != self._launch.forked])
        if named is None:
            self._case.note("the command line names none")
            return self._guesses([each for each in near if self._may_be_here(each)])
        self._case.note("the command line names a thread")
        held = named in roots
        if not held:
            self._case.note("the daemon does not have it loaded")
        # Any pane may go to any thread the daemon has, also to one that another pane is in; the name in the title is
        # all that tells.
        decided = len(roots) == 1 or self._is_named(named)
        if held and not decided:
            self._case.note("the daemon has other threads loaded, and the title does not tell which is in sight")
        certain = held and decided and not stray
        own = self._case.claim(named, Evidence.ARGV, certain=certain, written_at=self._written(named))
        titled = [each for each in near if each.id != named and self._is_named(each.id)]
        others = self._guesses([each for each in near if each.id != named and each not in titled])
        by_name = [self._case.claim(each.id, Evidence.TITLE, certain=False) for each in titled]
        return [own, *by_name, *others] if held else [*by_name, *others, own]

    def _titled(self, shown: Loaded, roots: dict[str, Loaded]) -> list[Identity]:
        since = shown.loaded_at is not None and shown.loaded_at >= self._process.started_at
        if since or shown.id == self._launch.resumed:
            self._case.note("the daemon has the thread loaded that the title names")
            return [self._case.claim(shown.id, Evidence.REGISTRY, certain=True)]
        # A program that was killed leaves its title to the next one in the pane, until that has set its own.
        self._case.note("the title names a thread that was loaded before this process began")
        own = self._case.claim(shown.id, Evidence.TITLE, certain=False, written_at=shown.loaded_at)
        others = self._nearest_first([each for each in roots.values() if each.id != shown.id])
        return [own, *self._guesses([each for each in others if self._may_be_here(each)])]

    def _guesses(self, near: list[Loaded]) -> list[Identity]:
        return self._case.guesses([(each.loaded_at or self._process.started_at, each.id) for each in near])

    def _nearest_first(self, roots: list[Loaded]) -> list[Loaded]:
        """Those that the title may name first, then those of this directory, then by how soon they followed its start."""
        began = self._process.started_at

        def distance(each: Loaded) -> tuple[bool, bool, bool, float]:
            since = (each.loaded_at - began).total_seconds() if each.loaded_at else 0.0
            directory = self._directory(each)
            elsewhere = directory is not None and not self._is_here(directory)
            return (not self._is_named(each.id), elsewhere, since < 0, abs(since))

        return sorted(roots, key=distance)

    def _may_be_here(self, each: Loaded) -> bool:
        directory = self._directory(each)
        return directory is None or self._is_here(directory) or self._is_named(each.id)

    def _directory(self, each: Loaded) -> str | None:
        return last_in(each.rollout, self._host) if each.rollout else None

    def _is_named(self, thread: str) -> bool:
        """Whether the title has the thread's name in it, as it does unless it is set otherwise."""
        database = state_database(self._process, self._home, self._host)
        rows = self._host.query(database, _NAMES, (thread,)) if database else None
        name = text(rows[0][0]) if rows else None
        return name is not None and any(part == name or part.endswith(f" {name}") for part in self._title.split(" | "))

    # -- by files alone -----------------------------------------------------------------------------------------

    def _unseen(self) -> list[Identity]:
        titled = [self._case.claim(each, Evidence.TITLE, certain=False) for each in self._known_by_title()]
        known = (self._launch.resumed, self._launch.forked, *(each.conversation for each in titled))
        others = [each for each in self._written_since() if each[1] not in known]
        named = self._launch.resumed
        if named is None:
            self._case.note("the command line names none")
            return [*titled, *self._case.guesses(others)]
        written = self._written(named)
        return [*titled, *self._case.launched(named, others, lost=written is None, written_at=written)]

    def _known_by_title(self) -> list[str]:
        """The thread the title names, when exactly one begins so."""
        database = state_database(self._process, self._home, self._host)
        found: set[str] = set()
        for beginning in ids_in(self._title):
            rows = self._host.query(database, _BEGINNING, (beginning, beginning + "~")) if database else None
            found.update(str(row[0]) for row in rows or ())
        return sorted(found) if len(found) == 1 else []

    def _written_since(self) -> list[tuple[datetime, str]]:
        """Threads of this directory that were written to since the process began, newest first."""
        database = state_database(self._process, self._home, self._host)
        began = self._process.started_at
        rows = self._host.query(database, _SINCE, (int(began.timestamp()),)) if database else None
        if rows is None:
            return self._found_since()
        found = []
        for thread, cwd, source in rows:
            path = find_rollout(self._home, str(thread), self._host)
            written = self._host.modified_at(path) if path else None
            here = isinstance(cwd, str) and self._is_here(cwd)
            if here and written and written >= began and not str(source).startswith("{"):
                found.append((written, str(thread)))
        return sorted(found, reverse=True)

    def _found_since(self) -> list[tuple[datetime, str]]:
        pattern = join(self._home, "sessions/*/*/*/rollout-*{id}.jsonl")
        every, _ = find_files((pattern,), UUID, home=self._home, environ={}, host=self._host)
        since = [each for each in every if each.written_at >= self._process.started_at]
        found = []
        for each in since:
            meta = header(each.path, self._host)
            cwd = text(meta.get("cwd"))
            if not is_sub_agent(meta) and (cwd is None or self._is_here(cwd)):
                found.append((each.written_at, each.id))
        return sorted(found, reverse=True)

    # -- what is known of a thread ------------------------------------------------------------------------------

    def _roots(self, loaded: list[Loaded]) -> list[Loaded]:
        """Those a person can talk to, not those begun by others."""
        self._loaded = {each.id: each for each in loaded}
        return [
            each
            for each in loaded
            if each.rollout is None or is_packed(each.rollout) or not is_sub_agent(header(each.rollout, self._host))
        ]

    def _shown(self, loaded: list[Loaded]) -> str | None:
        """The thread whose id is in the title; for a sub-agent, on which a person looks in, the one it works for."""
        begin = ids_in(self._title)
        matching = [each for each in loaded if any(each.id.startswith(beginning) for beginning in begin)]
        if len(matching) != 1:
            return None
        path = matching[0].rollout
        return root_of(matching[0].id, header(path, self._host) if path else {})

    def _rollout(self, thread: str) -> str | None:
        loaded = self._loaded.get(thread)
        return (loaded.rollout if loaded else None) or find_rollout(self._home, thread, self._host)

    def _written(self, thread: str) -> datetime | None:
        path = self._rollout(thread)
        return self._host.modified_at(path) if path else None

    def _about(self, conversation: str, evidence: Evidence) -> About:
        path = self._rollout(conversation)
        if path is None:
            # A thread that is loaded and has no file is one in which nothing was ever said.
            return About(prompted=False if conversation in self._loaded else None)
        place = None if is_packed(path) else last_in(path, self._host)
        return About(prompted=True, home=None if place is None or self._is_here(place) else place)

    def _is_here(self, path: str) -> bool:
        return self._here is not None and self._host.physical(path) == self._host.physical(self._here)


def working_directory(cwd: str | None, launch: Launch) -> str | None:
    """Return where a process works: it stays where it was started, whatever `--cd` says."""
    if launch.directory is None:
        return cwd
    return join(cwd, launch.directory) if cwd is not None else None


def ids_in(title: str) -> list[str]:
    """Return the ids in a title, or as much of them as there was room for."""
    words = (word.removesuffix("...").removesuffix("…") for word in title.split())
    return [word.lower() for word in words if len(word) >= _CUT and _begins_an_id(word)]


def _begins_an_id(word: str) -> bool:
    return len(word) <= 36 and all(
        character == "-" if at in _DASHES else character in "0123456789abcdefABCDEF"
        for at, character in enumerate(word)
    )


def _when_loaded(each: Loaded) -> float:
    return each.loaded_at.timestamp() if each.loaded_at else 0.0
