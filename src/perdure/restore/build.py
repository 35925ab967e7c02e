"""Sessions, windows and panes, made in one conversation with tmux.

Three rounds, each sent as a whole: sessions, for only tmux knows which index their first window gets; then all other
windows and panes; then what they are given. A command that tmux refuses costs what it was for, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from perdure.model.plan import Plan
from perdure.model.snapshot import Snapshot
from perdure.model.topology import Link, Pane, Session, Topology, Window
from perdure.restore.match import by_window
from perdure.restore.places import NewSession, Places, arrange
from perdure.restore.settings import (
    Words,
    arrangement,
    pane_settings,
    session_settings,
    shown,
    window_settings,
)
from perdure.tmux.quote import literal

#: A pane that only keeps its place: several words, so that no shell is between.
WAITING = ("/bin/cat", "-")
_MADE = "#{session_id} #{window_id} #{window_index} #{pane_id}"
_SECOND = "perdure-second"


class Reply(Protocol):
    """What tmux answers to one command."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What it printed."""

    @property
    def error(self) -> str | None:
        """Why it refused, None when it did not."""


class Asks(Protocol):
    """A conversation with a server."""

    def ask(self, commands: Sequence[Sequence[str]]) -> Sequence[Reply]:
        """Return what each command was answered, in order."""


class Pieces(Struct, frozen=True, kw_only=True):
    """What is put into the panes, by pane of the snapshot."""

    #: The words each starts with; () for the shell tmux starts by itself.
    words: Mapping[str, tuple[str, ...]]
    #: Where each starts.
    directories: Mapping[str, str]


class Built(Struct, frozen=True, kw_only=True):
    """What there is now, by the snapshot's ids, and what tmux refused, in its own words."""

    sessions: Mapping[str, str]
    windows: Mapping[str, str]
    panes: Mapping[str, str]
    problems: Mapping[str, str]


class Builder:
    """Makes what a plan lacks. `living` is what was there when the plan was made."""

    def __init__(self, snapshot: Snapshot, plan: Plan, pieces: Pieces, living: Topology | None) -> None:
        self._saved = snapshot.topology
        self._plan = plan
        self._pieces = pieces
        self._living = living
        self._panes = by_window(self._saved.panes)
        self._window = {window.id: window for window in self._saved.windows}
        self._sessions = dict(plan.sessions)
        self._windows = dict(plan.windows)
        self._now = dict(plan.panes)
        self._indexes: dict[tuple[str, str], int] = {}
        self._problems: dict[str, str] = {}
        self._placeholders: list[str] = []
        self._ends: list[Words] = []
        self._queue: list[tuple[Words, str, Callable[[list[str]], None] | None]] = []

    def build(self, control: Asks) -> Built:
        """Make everything, and return what came of it."""
        taken = frozenset(session.name for session in self._living.sessions) if self._living else frozenset()
        places = arrange(self._saved, self._plan, taken)
        for new in places.sessions:
            self._session(new)
        self._flush(control)
        self._fill(places)
        self._flush(control)
        self._settle(places)
        self._flush(control)
        for words in self._ends:
            # Each for itself: tmux 3.3a does not survive that a session ends in the moment its window changed.
            control.ask([words])
        return Built(sessions=self._sessions, windows=self._windows, panes=self._now, problems=self._problems)

    # First round

    def _session(self, new: NewSession) -> None:
        session = new.session
        words = ["new-session", "-d", "-E", "-P", "-F", _MADE, "-s", literal(new.name)]
        for name, value in session.environment.items():
            words += ["-e", f"{name}={value}"]
        if new.shares is not None:
            self._put((*words, "-t", new.shares), session.id, lambda made: self._note_session(session, made))
            return
        first = next(iter(new.makes), None)
        if first is None:
            # Nothing but windows that others make: it needs one of its own until it can show them.
            self._put((*words, *WAITING), session.id, lambda made: self._note_placeholder(session, made))
        else:
            window = self._window[first.window]
            pane = self._wanted(window)[0]
            size = ["-x", str(window.width), "-y", str(window.height)]
            command = [*words, *size, *self._named(window), *self._started(pane)]
            self._put(command, session.id, lambda made: self._note_first(session, first, pane, made))
        if new.needs_second:
            self._put(("new-session", "-d", "-s", _SECOND, "-t", f"={new.name}"), session.id)
            self._ends.append(("kill-session", "-t", f"={_SECOND}"))

    def _note_session(self, session: Session, made: list[str]) -> None:
        self._sessions[session.id] = made[0]

    def _note_placeholder(self, session: Session, made: list[str]) -> None:
        self._sessions[session.id] = made[0]
        self._placeholders.append(made[1])

    def _note_first(self, session: Session, link: Link, pane: Pane, made: list[str]) -> None:
        self._sessions[session.id], self._windows[link.window], index, self._now[pane.id] = made
        self._indexes[session.id, link.window] = int(index)

    # Second round

    def _fill(self, places: Places) -> None:
        self._finish_begun()
        for new in places.sessions:
            id = self._sessions.get(new.session.id)
            if id is None or new.shares is not None:
                continue
            if new.name != new.session.name:
                self._put(("rename-session", "-t", id, literal(new.session.name)), new.session.id)
            size = None
            for link in new.makes:
                window = self._window[link.window]
                if link.window not in self._windows:
                    size = self._sized(id, window, size)
                    self._make_window(id, link)
                elif self._indexes[link.session, link.window] != link.index:
                    self._put(
                        ("move-window", "-s", self._windows[link.window], "-t", f"{id}:{link.index}"), link.window
                    )
                if link.window not in self._windows or link.window in self._plan.making:
                    self._split_new(f"{id}:{link.index}", window)
        for link in places.makes:
            id = self._sessions[link.session]
            self._make_window(id, link)
            self._split_new(f"{id}:{link.index}", self._window[link.window])
        for window in self._saved.windows:
            if window.id in self._plan.windows:
                self._split_living(window)

    def _finish_begun(self) -> None:
        """Give what an interrupted restore made its name and its index, before others take them."""
        names = {session.id: session.name for session in self._living.sessions} if self._living else {}
        for session in self._saved.sessions:
            id = self._plan.sessions.get(session.id, "")
            if session.id in self._plan.unfinished and names.get(id) != session.name:
                self._put(("rename-session", "-t", id, literal(session.name)), session.id)
        for link in self._plan.moves:
            place = f"{self._plan.sessions[link.session]}:{link.index}"
            self._put(("move-window", "-s", self._plan.windows[link.window], "-t", place), link.window)

    def _sized(self, session: str, window: Window, before: str | None) -> str:
        """Let the next window of a session nobody looks at have the size it had."""
        size = f"{window.width}x{window.height}"
        if size != before:
            self._put(("set-option", "-t", session, "default-size", size), window.id)
        return size

    def _make_window(self, session: str, link: Link) -> None:
        window = self._window[link.window]
        pane = self._wanted(window)[0]
        words = ["new-window", "-d", "-P", "-F", _MADE, "-t", f"{session}:{link.index}", *self._named(window)]

        def note(made: list[str]) -> None:
            self._windows[window.id], self._now[pane.id] = made[1], made[3]

        self._put((*words, *self._started(pane)), window.id, note)

    def _split_new(self, place: str, window: Window) -> None:
        """Add the other panes of a new window: each is put behind the last, which is the active one."""
        for number, pane in enumerate(self._wanted(window)[1:]):
            if number:
                # However small the last one has become, there is room again.
                self._put(("select-layout", "-t", place, "tiled"), window.id)
            self._split(place, pane)

    def _split_living(self, window: Window) -> None:
        """Add the panes that a window which is there lacks, each behind the one it followed."""
        before: str | None = None
        fresh = False
        for pane in self._panes[window.id]:
            if pane.id in self._plan.panes:
                before, fresh = self._plan.panes[pane.id], False
            elif pane.id in self._plan.making:
                there = self._plan.windows[window.id]
                if fresh:
                    self._split(there, pane)
                elif before is not None:
                    self._split(before, pane)
                else:
                    first = next(
                        (self._plan.panes[p.id] for p in self._panes[window.id] if p.id in self._plan.panes), there
                    )
                    self._split(first, pane, "-b")
                fresh = True

    def _split(self, place: str, pane: Pane, *flags: str) -> None:
        words = ["split-window", *flags, "-P", "-F", _MADE, "-t", place, *self._started(pane)]

        def note(made: list[str]) -> None:
            self._now[pane.id] = made[3]

        self._put(words, pane.id, note)

    # Third round

    def _settle(self, places: Places) -> None:
        for window in self._saved.windows:
            self._settle_window(window)
        for new in places.sessions:
            for link in new.links:
                self._link(link)
        for link in places.links:
            self._link(link)
        for session in self._saved.sessions:
            if self._is_ours(session.id) and session.id in self._sessions:
                self._put_all(session_settings(session, self._sessions[session.id]), session.id)
                self._put_all(self._shown(session), session.id)
        for placeholder in self._placeholders:
            self._ends.append(("kill-window", "-t", placeholder))

    def _settle_window(self, window: Window) -> None:
        id = self._windows.get(window.id)
        if id is None:
            return
        panes = self._panes[window.id]
        if self._is_ours(window.id):
            self._put_all(window_settings(window, id), window.id)
        # Panes first: a dead one is dead before it is put into its place.
        for pane in panes:
            if pane.id in self._now and self._is_ours(pane.id):
                self._put_all(pane_settings(pane, self._now[pane.id], self._pieces.words[pane.id]), pane.id)
        if any(self._is_ours(pane.id) for pane in panes):
            self._put_all(arrangement(window, id, panes, self._now), window.id)

    def _link(self, link: Link) -> None:
        if link.window in self._windows and link.session in self._sessions:
            place = f"{self._sessions[link.session]}:{link.index}"
            self._put(("link-window", "-d", "-s", self._windows[link.window], "-t", place), link.session)

    def _shown(self, session: Session) -> Iterable[Words]:
        links = [link for link in self._saved.links if link.session == session.id and link.window in self._windows]
        places = {link.window: link.index for link in links}
        places |= {link.window: link.index for link in self._plan.links if link.session == session.id}
        return shown(links, self._sessions[session.id], places)

    # What all rounds need

    def _is_ours(self, id: str) -> bool:
        return id in self._plan.making or id in self._plan.unfinished

    def _wanted(self, window: Window) -> list[Pane]:
        return [pane for pane in self._panes[window.id] if pane.id in self._plan.making]

    def _named(self, window: Window) -> tuple[str, ...]:
        return ("-n", literal(window.name)) if window.name else ()

    def _started(self, pane: Pane) -> tuple[str, ...]:
        words = WAITING if pane.dead else self._pieces.words[pane.id]
        directory = self._pieces.directories.get(pane.id, "")
        return (*(("-c", literal(directory)) if directory else ()), *words)

    def _put(self, words: Words, about: str, note: Callable[[list[str]], None] | None = None) -> None:
        self._queue.append((words, about, note))

    def _put_all(self, commands: Iterable[Words], about: str) -> None:
        self._queue += [(words, about, None) for words in commands]

    def _flush(self, control: Asks) -> None:
        queue, self._queue = self._queue, []
        if not queue:
            return
        for (words, about, note), reply in zip(queue, control.ask([each[0] for each in queue]), strict=True):
            if reply.error is not None:
                self._problems.setdefault(about, f"tmux refused {words[0]}: {reply.error}")
            elif note is not None and reply.lines:
                note(reply.lines[0].split(" "))
