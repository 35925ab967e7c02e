"""What of a snapshot is there already. Pure.

Within one server process tmux's ids tell; a new server numbers everything anew, so there a session is known by its
exact name, a window by its index in that session, and panes by their order in that window.

What an interrupted restore made is known by the words its panes were started with, since an agent waits in them for
one step and no other. Only a pane that was given no words is taken by its place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count
from typing import Final

from msgspec import Struct

from perdure.model.topology import Link, Pane, Topology

#: What a session shows until it can show its own windows, as tmux prints the words it was started with.
PLACEHOLDER: Final = ("/bin/cat", "--", "-")


class There(Struct, frozen=True, kw_only=True):
    """Ids of the snapshot's sessions, windows and panes that are there, with what they are called now."""

    sessions: Mapping[str, str] = {}
    windows: Mapping[str, str] = {}
    panes: Mapping[str, str] = {}


class Begun(Struct, frozen=True, kw_only=True):
    """What an interrupted restore was about to make, by the snapshot's ids."""

    making: frozenset[str] = frozenset()
    #: Where it was going to put windows, when that is not where they were.
    links: tuple[Link, ...] = ()
    #: Panes it started with words that tell whose they are, though they are only shells.
    worded: frozenset[str] = frozenset()
    #: Living panes that carry its words, and the pane of the snapshot each is for.
    marked: Mapping[str, str] = {}


def match(saved: Topology, living: Topology | None, begun: Begun | None = None) -> There:
    """Return what of `saved` lives. Nothing living stands for two things of the snapshot."""
    if living is None:
        return There()
    return _Matching(saved, living, begun or Begun()).there()


def is_same_process(saved: Topology, living: Topology) -> bool:
    """Say whether the server still is the one that was saved, so that ids mean what they meant."""
    return (saved.process.pid, saved.process.started_at) == (living.process.pid, living.process.started_at)


#: What is put into a pane in place of a step has the step's number and this.
INSTEAD: Final = 1_000_000


def step_in(words: str, restore: str) -> int | None:
    """Return the number of the step whose files a pane was started with, None when none of this restore's are named.

    Captured text comes behind our own words: the first that is found is ours.
    """
    found = re.search(rf"/restores/{re.escape(restore)}/([0-9]+)\.[a-z]", words)
    return int(found[1]) % INSTEAD if found else None


def placeholders(living: Topology) -> frozenset[str]:
    """Return the windows that hold nothing but a placeholder."""
    words = " ".join(PLACEHOLDER)
    panes = by_window(living.panes)
    return frozenset(window for window, own in panes.items() if len(own) == 1 and own[0].start_command == words)


class _Matching:
    """Pairs of what was and what is; each side is used once."""

    def __init__(self, saved: Topology, living: Topology, begun: Begun) -> None:
        self._saved = saved
        self._living = living
        self._begun = begun
        self._by_id = is_same_process(saved, living)
        self._then, self._now = by_window(saved.panes), by_window(living.panes)

    def there(self) -> There:
        marked = self._marked()
        sessions = self._sessions(marked)
        windows = self._windows(sessions, marked)
        return There(sessions=sessions, windows=windows, panes=self._panes(windows, marked))

    def _marked(self) -> dict[str, str]:
        """Panes of the snapshot whose own words stand in a pane that is there; the first of two is taken."""
        alive = {pane.id for pane in self._living.panes}
        found: dict[str, str] = {}
        for now, pane in sorted(self._begun.marked.items()):
            if now in alive:
                found.setdefault(pane, now)
        return found

    # Sessions

    def _sessions(self, marked: Mapping[str, str]) -> dict[str, str]:
        ids = {session.id for session in self._living.sessions} if self._by_id else set()
        found = {each.id: each.id for each in self._saved.sessions if each.id in ids}
        names = {each.name: each.id for each in self._living.sessions if each.id not in found}
        for each in self._saved.sessions:
            if each.id not in found and each.name in names:
                found[each.id] = names.pop(each.name)
        # A group is called after its first session, which has the group's name until it is given its own.
        for each in self._saved.sessions:
            if each.id not in found and each.id in self._begun.making and each.group in names:
                found[each.id] = names.pop(each.group)
        for id, name in list(self._renamed(found, marked)):
            if id not in found and name in names:
                found[id] = names.pop(name)
        return found

    def _renamed(self, found: Mapping[str, str], marked: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Sessions that may have been made under another name, as theirs was taken, with that name."""
        taken = {session.name for session in self._living.sessions}
        shown = self._shown(marked)
        for session in self._saved.sessions:
            if session.id in found or session.name not in taken:
                continue
            siblings = {
                found[each.id]
                for each in self._saved.sessions
                if each.group and each.id in found and each.group == session.group
            }
            groups = {each.group for each in self._living.sessions if each.id in siblings} - {""}
            for each in self._living.sessions:
                is_it = each.id in shown.get(session.id, ()) or each.group in groups
                if is_it and is_other_name(each.name, session.name):
                    yield session.id, each.name

    def _shown(self, marked: Mapping[str, str]) -> dict[str, set[str]]:
        """The living sessions that show a pane of each session, by its id."""
        homes = {pane.id: pane.window for pane in self._living.panes}
        places: dict[str, set[str]] = {}
        for link in self._living.links:
            places.setdefault(link.window, set()).add(link.session)
        shown: dict[str, set[str]] = {}
        for link in self._saved.links:
            for pane in self._then.get(link.window, ()):
                now = marked.get(pane.id, pane.id if self._by_id else "")
                shown.setdefault(link.session, set()).update(places.get(homes.get(now, ""), ()))
        return shown

    # Windows

    def _windows(self, sessions: Mapping[str, str], marked: Mapping[str, str]) -> dict[str, str]:
        found: dict[str, str] = {}
        taken: set[str] = set(placeholders(self._living)) if self._begun.making else set()
        for saved, now in (
            *self._windows_by_id(),
            *self._windows_by_mark(marked),
            *self._only_windows(sessions),
            *self._windows_by_place(sessions),
        ):
            if saved not in found and now not in taken:
                found[saved] = now
                taken.add(now)
        return found

    def _windows_by_id(self) -> Iterator[tuple[str, str]]:
        now = {window.id for window in self._living.windows} if self._by_id else set()
        return ((window.id, window.id) for window in self._saved.windows if window.id in now)

    def _windows_by_mark(self, marked: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        homes = {pane.id: pane.window for pane in self._living.panes}
        return ((pane.window, homes[marked[pane.id]]) for pane in self._saved.panes if pane.id in marked)

    def _only_windows(self, sessions: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """The only window of a session that is being made is the first it brings, wherever it stands."""
        places: dict[str, list[str]] = {}
        for link in self._living.links:
            places.setdefault(link.session, []).append(link.window)
        first = self._first_windows()
        for session in self._saved.sessions:
            only = places.get(sessions.get(session.id, ""), [])
            window = first.get(session.id)
            if session.id in self._begun.making and len(only) == 1 and window and self._is_plain(window):
                yield window, only[0]

    def _first_windows(self) -> dict[str, str]:
        """The first window each session brings when it is made: none that another brings (see places.py)."""
        making = self._begun.making
        leaders: dict[tuple[str, str], str] = {}
        for session in sorted(self._saved.sessions, key=lambda each: (each.id in making, each.name != each.group)):
            # A group may be called as an id looks.
            leaders.setdefault((session.group, "" if session.group else session.id), session.id)
        places = {session.id: place for place, session in enumerate(self._saved.sessions)}
        order = sorted(leaders.values(), key=lambda id: (id in making, places[id]))
        owners: dict[str, str] = {}
        for session_id in order:
            for link in self._saved.links:
                if link.session == session_id and link.window in making:
                    owners.setdefault(link.window, session_id)
        first: dict[str, str] = {}
        for link in self._saved.links:
            if owners.get(link.window) == link.session:
                first.setdefault(link.session, link.window)
        return first

    def _windows_by_place(self, sessions: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        now = {(link.session, link.index): link.window for link in self._living.links}
        chosen = chosen_indexes(self._saved, self._begun)
        for link in self._saved.links:
            session = sessions.get(link.session)
            if session is None:
                continue
            is_begun = link.window in self._begun.making
            # A session that lived on has kept its ids: another window in this place was made by somebody since.
            if not is_begun and self._by_id and session == link.session:
                continue
            if is_begun and not self._is_plain(link.window):
                continue
            window = now.get((session, chosen.get((link.session, link.window), link.index)))
            if window is not None:
                yield link.window, window

    def _is_plain(self, window: str) -> bool:
        """Whether a window that a restore makes may begin with a pane that has no words of ours."""
        first = next((pane for pane in self._then[window] if pane.id in self._begun.making), None)
        return first is None or self._needs_no_words(first)

    # Panes

    def _panes(self, windows: Mapping[str, str], marked: Mapping[str, str]) -> dict[str, str]:
        ids = {pane.id for pane in self._living.panes} if self._by_id else set()
        found = {pane.id: pane.id for pane in self._saved.panes if pane.id in ids}
        found |= {pane: now for pane, now in marked.items() if pane not in found}
        # Of what a restore made here every pane is known: another in one of its windows is somebody's own.
        made = {pane.window for pane in self._living.panes if pane.id in marked.values()}
        for window, panes in self._then.items():
            there = windows.get(window)
            if there is not None:
                lived_on = (self._by_id and there == window) or there in made
                found |= self._in_order(panes, self._now.get(there, []), found, lived_on=lived_on)
        return found

    def _in_order(
        self, then: list[Pane], now: list[Pane], known: Mapping[str, str], *, lived_on: bool
    ) -> dict[str, str]:
        """Pair what is left between panes that are known, each with the first that may be it."""
        taken = {*known.values(), *self._begun.marked}
        found: dict[str, str] = {}
        at = 0
        for pane in then:
            if pane.id in known:
                places = [place for place, each in enumerate(now) if each.id == known[pane.id]]
                at = places[0] + 1 if places else at
                continue
            is_begun = pane.id in self._begun.making
            if (lived_on and not is_begun) or (is_begun and not self._needs_no_words(pane)):
                continue
            if at < len(now) and now[at].id not in taken:
                found[pane.id] = now[at].id
                at += 1
        return found

    def _needs_no_words(self, pane: Pane) -> bool:
        """Whether a restored pane may be a plain shell, without anything in its words that tells whose it is."""
        is_plain = pane.dead or (pane.identity is None and pane.program is None)
        return is_plain and pane.id not in self._begun.worded


def chosen_indexes(saved: Topology, begun: Begun) -> dict[tuple[str, str], int]:
    """Return where a restore was going to put windows, by session and window.

    One that a session shows twice is always put where it was.
    """
    times = Counter((link.session, link.window) for link in saved.links)
    places = ((link.session, link.window, link.index) for link in begun.links)
    return {(session, window): index for session, window, index in places if times[session, window] == 1}


def other_name(name: str, taken: Collection[str]) -> str:
    """Return the name itself when it is free, else one that tells which it was."""
    if name not in taken:
        return name
    return next(other for number in count(2) if (other := f"{name}-{number}") not in taken)


def is_other_name(other: str, name: str) -> bool:
    """Say whether `other_name` may have made the one of the other."""
    return other.startswith(f"{name}-") and other[len(name) + 1 :].isdecimal()


def free_index(wanted: int, used: Iterable[int]) -> int:
    """Return the index itself when it is free, else the first one above all that are used."""
    taken = set(used)
    return wanted if wanted not in taken else max(taken) + 1


def by_window(panes: Iterable[Pane]) -> dict[str, list[Pane]]:
    """Return the panes of each window in their order."""
    found: dict[str, list[Pane]] = {}
    for pane in sorted(panes, key=lambda pane: pane.index):
        found.setdefault(pane.window, []).append(pane)
    return found
