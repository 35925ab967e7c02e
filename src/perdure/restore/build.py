"""Sessions, windows and panes, made in one conversation with tmux.

A few rounds, each sent as a whole: sessions, their windows, the panes of these, then what all of them are given. What
was made in one round is spoken of by its id in the next: names and indexes may turn out to be somebody else's. A
command that tmux refuses costs what it was for, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from perdure.model.plan import Plan
from perdure.model.snapshot import Snapshot
from perdure.model.topology import Link, Pane, Session, Topology, Window
from perdure.restore.match import PLACEHOLDER, by_window
from perdure.restore.places import NewSession, Places, arrange
from perdure.restore.settings import (
    Words,
    arrangement,
    is_set_before_panes,
    left_out,
    named,
    pane_settings,
    session_settings,
    session_size,
    shown,
    window_settings,
)
from perdure.tmux.quote import literal

#: A pane that only keeps its place: several words, so that no shell is between.
WAITING = ("/bin/cat", "-")
_MADE = "#{session_id} #{window_id} #{window_index} #{pane_id}"
_SECOND = "perdure-second-"


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


class _Asked(NamedTuple):
    """A command, what it is about, and what to do with tmux's answer or with its refusal."""

    words: Words
    about: str
    note: Callable[[list[str]], None] | None = None
    otherwise: Callable[[], None] | None = None


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
        #: The panes of each window that was there, by their ids now, in their order.
        self._inside = by_window(living.panes) if living else {}
        self._settled: set[str] = set()
        self._problems: dict[str, str] = {}
        #: Sessions, by their ids now, with the index at which a placeholder stands; then with that at which it ends.
        self._placeholders: list[tuple[str, int]] = []
        #: Panes that got a window of their own, as there was no room in theirs.
        self._apart: set[str] = set()
        self._queue: list[_Asked] = []

    def build(self, control: Asks) -> Built:
        """Make everything, and return what came of it."""
        places = arrange(self._saved, self._plan, self._living)
        for new in places.sessions:
            if new.shares is None:
                self._session(new)
        self._flush(control)
        self._fill(places)
        self._learn(control)
        for link in (*(link for new in places.sessions for link in new.makes), *places.makes):
            self._split_new(self._window[link.window])
        self._learn(control)
        tried: set[str] = set()
        while self._split_living(tried):
            self._flush(control)
        self._settle(places)
        self._tidy(places)
        self._flush(control)
        return Built(sessions=self._sessions, windows=self._windows, panes=self._now, problems=self._problems)

    # Sessions

    def _session(self, new: NewSession) -> None:
        """Make a session with its first window, or with a placeholder where that would not come out as it was."""
        session = new.session
        words = ["new-session", "-d", "-E", "-P", "-F", _MADE, "-s", named(new.name)]
        first = next(iter(new.makes), None)
        pane = None if first is None else self._wanted(self._window[first.window])[0]
        directory = self._pieces.directories.get(pane.id, "") if pane else ""
        path = session.path or directory
        words += ["-c", literal(path)] if path else []
        # `-c` is the directory of both the session and its first pane, and the pane comes before any option.
        if first is None or pane is None or directory not in ("", path) or is_set_before_panes(session):
            self._put((*words, *PLACEHOLDER), session.id, lambda made: self._note_placeholder(session, made))
            return
        for name, value in session.environment.items():
            words += ["-e", f"{name}={value}"]
        window = self._window[first.window]
        words += ["-x", str(window.width), "-y", str(window.height), *self._named(window), *self._words(pane)]
        self._put(words, session.id, lambda made: self._note_first(session, first, pane, made))

    def _note_placeholder(self, session: Session, made: list[str]) -> None:
        self._sessions[session.id] = made[0]
        self._placeholders.append((made[0], int(made[2])))

    def _note_called(self, new: NewSession) -> None:
        if new.called != new.session.name:
            said = f"its session is called {new.called}: another is called {new.session.name} now"
            self._problems.setdefault(new.session.id, said)

    def _note_first(self, session: Session, link: Link, pane: Pane, made: list[str]) -> None:
        self._sessions[session.id], self._windows[link.window], index, self._now[pane.id] = made
        if int(index) != link.index:
            self._move(made[0], link)

    # Windows

    def _fill(self, places: Places) -> None:
        self._move_placeholders()
        for link in self._plan.moves:
            self._move(self._plan.sessions[link.session], link)
        self._group(places)
        for session in self._saved.sessions:
            self._settle_session(session)
        for link in (*(link for new in places.sessions for link in new.makes), *places.makes):
            if link.window not in self._windows and link.session in self._sessions:
                self._make_window(self._sessions[link.session], link)

    def _move_placeholders(self) -> None:
        """Put placeholders where nothing else will be."""
        living = self._living.links if self._living else ()
        used = [link.index for link in (*self._saved.links, *self._plan.links, *living)]
        beyond = max(used, default=0) + 1
        left = [(each.session, each.index) for each in living if each.window in self._plan.placeholders]
        self._placeholders += left
        for session, index in self._placeholders:
            self._put(("move-window", "-s", f"{session}:{index}", "-t", f"{session}:{beyond}"), "")
        self._placeholders = [(session, beyond) for session, _ in self._placeholders]

    def _move(self, session: str, link: Link) -> None:
        # With -s, so that no other window is given another index.
        window = f"{session}:{self._windows[link.window]}"
        self._put(("move-window", "-s", window, "-t", f"{session}:{link.index}"), link.window)

    def _group(self, places: Places) -> None:
        """Let sessions share their windows, while the first still has the group's name; then give them their own."""
        for new in places.sessions:
            leader = self._sessions.get(new.shares or "")
            if leader is not None:
                self._follow(new, leader)
        for number, id in enumerate(places.alone):
            if id in self._sessions:
                self._put(("new-session", "-d", "-E", "-s", f"{_SECOND}{number}", "-t", self._sessions[id]), id)
        names = {session.name for session in self._living.sessions} if self._living else set()
        for session in self._saved.sessions:
            if session.id in self._plan.unfinished and session.name not in names:
                self._rename(session, session.name)
        for new in places.sessions:
            if new.shares is None and new.name != new.called:
                self._rename(new.session, new.called)
            self._note_called(new)

    def _follow(self, new: NewSession, leader: str) -> None:
        session = new.session
        words = ["new-session", "-d", "-E", "-P", "-F", _MADE, "-s", named(new.called), "-t", leader]
        words += ["-c", literal(session.path)] if session.path else []

        def note(made: list[str]) -> None:
            self._sessions[session.id] = made[0]

        self._put(words, session.id, note)

    def _rename(self, session: Session, name: str) -> None:
        if session.id in self._sessions:
            words = ("rename-session", "-t", self._sessions[session.id], "--", named(name))
            self._put(words, session.id)

    def _settle_session(self, session: Session) -> None:
        """Give a session what it gives to its panes, before it has them."""
        id = self._sessions.get(session.id)
        if id is not None and self._is_ours(session.id) and session.id not in self._settled:
            self._settled.add(session.id)
            self._put_all(session_settings(session, id), session.id)
            if problem := left_out(session):
                self._problems.setdefault(session.id, problem)

    def _make_window(self, session: str, link: Link) -> None:
        window = self._window[link.window]
        pane = self._wanted(window)[0]
        if self._is_ours(link.session):
            # A window nobody looks at gets this size.
            size = f"{window.width}x{window.height}"
            self._put(("set-option", "-t", session, "default-size", size), window.id)
        words = ["new-window", "-d", "-P", "-F", _MADE, "-t", f"{session}:{link.index}", *self._named(window)]

        def note(made: list[str]) -> None:
            self._windows[window.id], self._now[pane.id] = made[1], made[3]

        self._put((*words, *self._placed(pane)), window.id, note)

    # Panes

    def _split_new(self, window: Window) -> None:
        """Add the other panes of a new window. The first stays the active one, so `-` is the last of them."""
        id = self._windows.get(window.id)
        if id is None:
            return
        for number, pane in enumerate(self._wanted(window)[1:]):
            if number:
                # However small the last one has become, there is room again.
                self._put(("select-layout", "-t", id, "tiled"), window.id)
            self._split(f"{id}.-", pane)

    def _split_living(self, tried: set[str]) -> bool:
        """Add to each window that was there the next pane it lacks, behind the one it followed; say whether any did."""
        before_any = len(tried)
        for window in self._saved.windows:
            own = self._panes[window.id]
            missing = [pane for pane in own if pane.id in self._plan.making and pane.id not in {*tried, *self._now}]
            if window.id not in self._plan.windows or not missing:
                continue
            tried.add(missing[0].id)
            there = self._at_home(window)
            before = [pane for pane in there if own.index(pane) < own.index(missing[0])]
            if window.id in self._plan.unfinished or self._will_be_whole(window):
                # However small the others are, there is room; and it gets the layout it had.
                self._put(("select-layout", "-t", self._plan.windows[window.id], "tiled"), window.id)
            if before:
                self._split(self._now[before[-1].id], missing[0])
            elif there:
                self._split(self._now[there[0].id], missing[0], "-b")
            else:
                # Somebody put others there in exchange for all it had.
                self._split(self._inside[self._plan.windows[window.id]][-1].id, missing[0])
        return len(tried) > before_any

    def _at_home(self, window: Window) -> list[Pane]:
        """The panes of a window that are in it: others that live may be elsewhere by now."""
        id = self._windows.get(window.id, "")
        inside = {pane.id for pane in self._inside.get(id, ())}
        there = [pane for pane in self._panes[window.id] if pane.id in self._now]
        living = self._plan.panes.keys() | self._apart
        return [pane for pane in there if pane.id not in living or self._now[pane.id] in inside]

    def _is_whole(self, window: Window) -> bool:
        """Whether a window has all the panes it had, and no other."""
        return len(self._at_home(window)) == len(self._panes[window.id]) and not self._has_strangers(window)

    def _will_be_whole(self, window: Window) -> bool:
        there = {pane.id for pane in (*self._at_home(window), *self._wanted(window))}
        return len(there) == len(self._panes[window.id]) and not self._has_strangers(window)

    def _has_strangers(self, window: Window) -> bool:
        own = {self._now[pane.id] for pane in self._at_home(window)}
        return any(pane.id not in own for pane in self._inside.get(self._windows.get(window.id, ""), ()))

    def _split(self, place: str, pane: Pane, *flags: str) -> None:
        words = ["split-window", "-d", *flags, "-P", "-F", _MADE, "-t", place, *self._placed(pane)]

        def note(made: list[str]) -> None:
            self._now[pane.id] = made[3]

        self._queue.append(_Asked(words, pane.id, note, lambda: self._set_apart(pane)))

    def _set_apart(self, pane: Pane) -> None:
        """Give a pane that has no room a window of its own, in a session that shows the one it should be in."""
        self._apart.add(pane.id)
        window = self._window[pane.window]
        living = self._living.links if self._living else ()
        sessions = [link.session for link in living if link.window == self._windows[window.id]]
        sessions += [self._sessions.get(link.session, "") for link in self._plan.links if link.window == window.id]
        place = f"{next(filter(None, sessions), '')}:"
        words = ["new-window", "-d", "-P", "-F", _MADE, "-t", place, *self._named(window), *self._placed(pane)]

        def note(made: list[str]) -> None:
            self._now[pane.id] = made[3]
            self._problems.setdefault(pane.id, "it is in a window of its own, for there was no room in the one it had")

        self._put(words, pane.id, note)

    # What they are given

    def _settle(self, places: Places) -> None:
        leaders = {new.session.id: new.shares for new in places.sessions}
        for window in self._saved.windows:
            self._settle_window(window)
        for link in (*(link for new in places.sessions for link in new.links), *places.links):
            if link.window in self._windows and link.session in self._sessions:
                place = f"{self._sessions[link.session]}:{link.index}"
                self._put(("link-window", "-d", "-s", self._windows[link.window], "-t", place), link.session)
        for session in self._saved.sessions:
            id = self._sessions.get(session.id)
            if id is not None and self._is_ours(session.id):
                self._settle_session(session)
                self._put(session_size(session, id), session.id)
                own = self._shown_by(session, leaders.get(session.id))
                links = [link for link in self._saved.links if link.session == session.id]
                links = [link for link in links if self._windows.get(link.window) in own]
                self._put_all(shown(links, id, self._windows, is_alone=len(own) == 1), session.id)

    def _shown_by(self, session: Session, leader: str | None) -> set[str]:
        """The windows, by their ids now, that a session shows: its own, or those of whom it shares them with."""
        source = leader or session.id
        id = self._sessions.get(source)
        living = {link.window for link in self._living.links if link.session == id} if self._living else set()
        new = {link.window for link in self._plan.links if link.session == source}
        return living | {self._windows[window] for window in new if window in self._windows}

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
                self._put_all(pane_settings(pane, self._now[pane.id], self._last_words(pane)), pane.id)
        if any(self._is_ours(pane.id) for pane in panes):
            there = [(pane, self._now[pane.id]) for pane in self._at_home(window)]
            self._put_all(arrangement(window, id, there, is_whole=self._is_whole(window)), window.id)

    def _last_words(self, pane: Pane) -> Words:
        """What lets a dead pane end; nothing when an interrupted restore has, for its text is printed only once."""
        living = self._living.panes if self._living else ()
        now = next((each for each in living if each.id == self._plan.panes.get(pane.id)), None)
        return self._pieces.words[pane.id] if now is None or now.start_command == " ".join(WAITING) else ()

    def _tidy(self, places: Places) -> None:
        """End what was only there for others to be made."""
        for session, index in self._placeholders:
            # Not kill-window, after which `renumber-windows` would close the gaps between the others.
            self._put(("unlink-window", "-k", "-t", f"{session}:{index}"), "")
        seconds = {f"{_SECOND}{number}" for number, id in enumerate(places.alone) if id in self._sessions}
        if self._living and self._plan.unfinished:
            seconds |= {each.name for each in self._living.sessions if each.name.startswith(_SECOND)}
        for name in sorted(seconds):
            self._put(("kill-session", "-t", f"={name}"), "")

    # What all rounds need

    def _is_ours(self, id: str) -> bool:
        return id in self._plan.making or id in self._plan.unfinished

    def _wanted(self, window: Window) -> list[Pane]:
        return [pane for pane in self._panes[window.id] if pane.id in self._plan.making]

    def _named(self, window: Window) -> tuple[str, str]:
        # Here, and only here, tmux takes a window's name as it is.
        return "-n", literal(window.name)

    def _placed(self, pane: Pane) -> tuple[str, ...]:
        directory = self._pieces.directories.get(pane.id, "")
        return (*(("-c", literal(directory)) if directory else ()), *self._words(pane))

    def _words(self, pane: Pane) -> tuple[str, ...]:
        return WAITING if pane.dead else self._pieces.words[pane.id]

    def _put(self, words: Words, about: str, note: Callable[[list[str]], None] | None = None) -> None:
        self._queue.append(_Asked(words, about, note))

    def _put_all(self, commands: Iterable[Words], about: str) -> None:
        self._queue += [_Asked(words, about) for words in commands]

    def _learn(self, control: Asks) -> None:
        """Ask for what is queued when an answer decides what comes next; what does not goes along with that."""
        if any(each.note or each.otherwise for each in self._queue):
            self._flush(control)

    def _flush(self, control: Asks) -> None:
        queue, self._queue = self._queue, []
        if not queue:
            return
        for asked, reply in zip(queue, control.ask([each.words for each in queue]), strict=True):
            if reply.error is None:
                if asked.note is not None and reply.lines:
                    asked.note(reply.lines[0].split(" "))
            elif asked.otherwise is not None:
                asked.otherwise()
            else:
                self._problems.setdefault(asked.about, f"tmux refused {asked.words[0]}: {reply.error}")
