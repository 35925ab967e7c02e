"""What is read for a thought: the end of the conversation, the repository, its colours. All of it is kept for a while."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct, structs

from perdure.agents import Roster
from perdure.errors import PerdureError
from perdure.host import git
from perdure.host.users import run_as, user_by_uid
from perdure.live.story import Story, Work, story_of
from perdure.live.tail import TailView
from perdure.live.theme import theme_of
from perdure.model.decoding import decoder_of
from perdure.model.git import GitFacts
from perdure.model.identity import Identity
from perdure.model.run import Run
from perdure.model.theme import RepoTheme
from perdure.ports import HostView, ReadsTranscripts

#: How long what a repository said is good for.
GIT_FOR = timedelta(seconds=10)
THEME_FOR = timedelta(minutes=10)
_MOST_KEPT = 1000

#: What a transcript is known by without reading it: sizes and times of the file and of a database's log.
_Stamp = tuple[str, object, object, object, object]


T = TypeVar("T")


class Heard(Struct, frozen=True, kw_only=True):
    """What there is to think about."""

    story: Story = Story()
    git: GitFacts | None = None


class _Kept(Generic[T]):
    """What was found, for as long as it is good."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[datetime, T]] = {}

    def get(self, key: str, now: datetime, good_for: timedelta) -> T | None:
        found = self._found.get(key)
        return found[1] if found is not None and timedelta() <= now - found[0] < good_for else None

    def last(self, key: str) -> T | None:
        """What was found, however long ago."""
        found = self._found.get(key)
        return found[1] if found is not None else None

    def put(self, key: str, now: datetime, value: T) -> T:
        if len(self._found) >= _MOST_KEPT:
            self._found.clear()
        self._found[key] = (now, value)
        return value


class Ears:
    """Reads what thoughts are made of, for the worker thread; nothing twice that has not changed."""

    def __init__(self, view_of: Callable[[Run], HostView | None], roster: Roster) -> None:
        """`view_of` returns the files of the user a run belongs to, None when they are not to be read."""
        self._view_of = view_of
        self._roster = roster
        self._stories: dict[str, tuple[_Stamp, Story]] = {}
        self._git: _Kept[tuple[GitFacts | None]] = _Kept()
        self._themes: _Kept[tuple[RepoTheme | None]] = _Kept()

    def hear(self, run: Run, now: datetime, *, quickly: bool = False) -> Heard:
        """Return what a run's conversation and repository tell now; what cannot be read tells nothing.

        `quickly` is for those others wait for: git, which may take its time, is not asked. What it last said will do, and
        where it was never asked nothing is known of the work.
        """
        story = self._story(run)
        # The only question to the repository is whether something is left to commit.
        if not story.work.edited or story.work.committed:
            return Heard(story=story)
        if not quickly:
            return Heard(story=story, git=self._git_of(run.cwd, now))
        kept = self._git.last(run.cwd)
        return Heard(story=structs.replace(story, work=Work())) if kept is None else Heard(story=story, git=kept[0])

    def theme(self, run: Run, now: datetime) -> RepoTheme | None:
        """Return the colours of the repository a run works in, None when it works in none."""
        kept = self._themes.get(run.cwd, now, THEME_FOR)
        view = self._view_of(run) if kept is None and run.cwd else None
        if kept is None:
            found = None if view is None else self._as_user(run, RepoTheme, lambda: theme_of(run.cwd, view))
            kept = self._themes.put(run.cwd, now, (found,))
        return kept[0]

    def forget(self, run: str) -> None:
        """Let go of what was kept of a run."""
        self._stories.pop(run, None)

    def _git_of(self, directory: str, now: datetime) -> GitFacts | None:
        kept = self._git.get(directory, now, GIT_FOR)
        if kept is None and directory:
            kept = self._git.put(directory, now, (git.facts(directory, now),))
        return kept[0] if kept else None

    def _story(self, run: Run) -> Story:
        identity, view = run.occupant, self._view_of(run)
        # A guess may be somebody else's conversation, and what an agent left is no word of what runs in its place.
        if identity is None or identity.conversation is None or not identity.certain or view is None:
            return Story()
        reader = self._roster.called([identity.agent]).get(identity.agent)
        if not isinstance(reader, ReadsTranscripts):
            return Story()
        path = run.details.transcript if run.details else None
        stamp = _stamp(identity, path, view)
        known = self._stories.get(run.id)
        if path is not None and known is not None and known[0] == stamp:
            return known[1]
        conversation, tail = identity.conversation, TailView(view)
        story = self._as_user(run, Story, lambda: story_of(reader.turns(conversation, tail, path))) or Story()
        self._stories[run.id] = (stamp, story)
        return story

    def _as_user(self, run: Run, kind: type[T], work: Callable[[], T | None]) -> T | None:
        """Do the reading as the user whose files these are: a link of theirs must not show what only root may read."""
        if os.geteuid() != 0 or run.server.uid == 0:
            return work()
        user = user_by_uid(run.server.uid)
        if user is None:
            return None
        try:
            found: T | None = decoder_of(kind | None).decode(run_as(user, lambda: msgspec.json.encode(work())))
        except (PerdureError, msgspec.DecodeError):
            return None
        return found


def _stamp(identity: Identity, path: str | None, view: HostView) -> _Stamp:
    conversation = f"{identity.agent}:{identity.conversation}"
    if path is None:
        return (conversation, None, None, None, None)
    log = f"{path}-wal"
    return (conversation, view.size(path), view.modified_at(path), view.size(log), view.modified_at(log))
