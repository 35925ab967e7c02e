"""The service against a plain model of it: whatever is done in whatever order, both say the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from perdure import errors
from perdure.chats.ownership import Asker
from perdure.chats.service import Chats
from perdure.model.chat import Chat, CloseReason, Kinship, ResetMode, ResetPolicy, Source, Turn
from perdure.model.config import ChatsConfig, Config
from perdure.model.event import Event, EventKind
from perdure.store import open_store, search
from perdure.store.store import Store
from tests.contract.store.chats import Clock, a_source, a_turn
from tests.contract.store.conftest import Place

PEOPLE = {name: a_source(name) for name in ("alice", "bob")}
WHO = st.sampled_from(sorted(PEOPLE))
WHICH = st.integers(0, 6)
TITLE = st.sampled_from(["Roof", "Roof #2", "Roof #7", "Wall", ""])
SAID = st.sampled_from(["tiles", "slate", "copper"])
IDLE = timedelta(minutes=60)


class Known:
    """A chat as the model has it."""

    def __init__(self, chat: Chat, who: str, turns: list[tuple[int, str, object]] | None = None) -> None:
        self.id = chat.id
        self.who = who
        self.touched_at: datetime = chat.touched_at
        self.closed: CloseReason | None = None
        self.closed_at: datetime | None = None
        self.title: str | None = None
        self.follows: str | None = None
        self.kinship: Kinship | None = None
        self.turns = turns or []
        self.next = self.turns[-1][0] + 1 if self.turns else 1
        self.tokens = 0
        self.suspended = False
        self.pending: datetime | None = None
        self.notice: CloseReason | None = None

    def say(self, role: str, content: object) -> None:
        self.turns.append((self.next, role, content))
        self.next += 1


class Told:
    """Chats as whoever only follows the events knows them."""

    def __init__(self) -> None:
        self.open: dict[str, bool] = {}
        self.titles: dict[str, str] = {}
        #: Not of those that began with turns: which ones only the chat tells.
        self.next: dict[str, int] = {}

    def take(self, event: Event) -> None:
        data, chat = event.data, event.data["chat"]
        if event.kind in (EventKind.CHAT_OPENED, EventKind.CHAT_TITLED):
            self.titles |= {chat: data["title"]} if "title" in data else {}
            if "title" not in data:
                self.titles.pop(chat, None)
        if event.kind is EventKind.CHAT_OPENED and not data["turns"]:
            self.next[chat] = 1
        if event.kind in (EventKind.CHAT_OPENED, EventKind.CHAT_RESUMED, EventKind.CHAT_CLOSED):
            self.open[chat] = event.kind is not EventKind.CHAT_CLOSED
        if event.kind in (EventKind.CHAT_SAID, EventKind.CHAT_TAKEN_BACK):
            expected = self.next.get(chat, data.get("first", 1) - 1) + (event.kind is EventKind.CHAT_TAKEN_BACK)
            assert chat not in self.next or data.get("first", expected) == expected
            if chat in self.next:
                self.next[chat] = data.get("last", expected - 1) + 1


class Conversations(RuleBasedStateMachine):
    """Two people, hours that pass, processes that come and go."""

    place: Place

    def __init__(self) -> None:
        super().__init__()
        self.store = self._opened()
        self.clock = Clock()
        self.known: list[Known] = []
        #: What was told before.
        self.after = 0

    def _opened(self) -> Store:
        return open_store(self.place.url, state_dir=self.place.state_dir, threads=True)

    @property
    def chats(self) -> Chats:
        policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
        return Chats(self.store.chats, Config(chats=ChatsConfig(reset=policy)), self.clock)

    @initialize()
    def nothing_was_said(self) -> None:
        with self.store.driver.transaction():
            arriving = ("arrivals",) if self.store.driver.dialect == "sqlite" else ()
            for table in (*arriving, "turns", "chat_grants", "chats"):
                self.store.driver.execute(f"DELETE FROM {table}")
        self.store.chats.rebuild_index()
        self.after = self.store.last_event()

    def teardown(self) -> None:
        self.store.close()

    def open_of(self, who: str) -> Known | None:
        return next((known for known in self.known if known.who == who and known.closed is None), None)

    def pick(self, which: int) -> Known | None:
        return self.known[which % len(self.known)] if self.known else None

    def close(self, known: Known, reason: CloseReason) -> None:
        known.closed, known.closed_at, known.notice, known.pending = reason, self.clock(), None, None

    def why_over(self, known: Known) -> CloseReason | None:
        if known.suspended:
            return CloseReason.SUSPENDED
        if self.clock() > known.touched_at + IDLE:
            return CloseReason.IDLE
        if known.pending is not None and self.clock() > known.pending + IDLE:
            return CloseReason.RESUME_EXPIRED
        return None

    def begun(self, chat: Chat, who: str, **facts: object) -> Known:
        known = Known(chat, who, facts.pop("turns", None))  # type: ignore[arg-type]
        for name, value in facts.items():
            setattr(known, name, value)
        self.known.append(known)
        return known

    def next_title(self, who: str, title: str | None) -> str | None:
        if title is None:
            return None
        base = title.partition(" #")[0]
        theirs = [known.title for known in self.known if known.who == who and known.title]
        numbers = [int(each.partition(" #")[2] or 1) for each in theirs if each.partition(" #")[0] == base]
        return f"{base} #{max(numbers) + 1}" if numbers else base

    @contextmanager
    def refused(self, kind: type[errors.PerdureError], when: bool) -> Iterator[bool]:
        if not when:
            yield False
            return
        with pytest.raises(kind):
            yield True

    @rule(minutes=st.sampled_from([1, 30, 60, 61]))
    def time_passes(self, minutes: int) -> None:
        self.clock.later(minutes=minutes)

    @rule()
    def another_process(self) -> None:
        self.store.close()
        self.store = self._opened()

    @rule(who=WHO, force=st.booleans())
    def open(self, who: str, force: bool) -> None:
        chat = self.chats.open(PEOPLE[who], force_new=force)
        current = self.open_of(who)
        reason = None if current is None else self.why_over(current)
        if current is not None and reason is None and not force:
            assert chat.id == current.id
            current.touched_at = self.clock()
            return
        assert chat.id not in {known.id for known in self.known}
        before = current
        if current is not None:
            self.close(current, reason or CloseReason.ASKED)
        told = reason in (CloseReason.SUSPENDED, CloseReason.RESUME_EXPIRED) or (
            reason is CloseReason.IDLE and current is not None and bool(current.turns)
        )
        self.begun(
            chat,
            who,
            follows=before and before.id,
            kinship=before and Kinship.SUCCESSOR,
            notice=reason if told else None,
        )

    @rule(which=WHICH)
    def take_notice(self, which: int) -> None:
        if known := self.pick(which):
            assert self.chats.take_notice(known.id) == known.notice
            known.notice = None

    @rule(which=WHICH, text=SAID, role=st.sampled_from(["user", "assistant"]), off=st.sampled_from([None, 0, 1]))
    def append(self, which: int, text: str, role: str, off: int | None) -> None:
        if known := self.pick(which):
            expect = None if off is None else known.next + off
            is_late = known.closed is not None and off is not None
            with self.refused(errors.Conflict, is_late or bool(off)) as is_refused:
                assert self.chats.append(known.id, a_turn(text, role), expect=expect) == known.next
            if not is_refused:
                known.say(role, text)
                known.touched_at = max(known.touched_at, self.clock())

    @rule(which=WHICH, count=st.integers(1, 2))
    def undo(self, which: int, count: int) -> None:
        if known := self.pick(which):
            asked = [place for place, (_, role, _) in enumerate(known.turns) if role == "user"]
            kind = errors.UsageError if known.closed is None else errors.Conflict
            with self.refused(kind, known.closed is not None or len(asked) < count) as is_refused:
                turn = self.chats.undo(known.id, count)
            if not is_refused:
                assert turn.content == known.turns[asked[-count]][2]
                del known.turns[asked[-count] :]
                known.next += 1
                known.touched_at = max(known.touched_at, self.clock())

    @rule(which=WHICH, start=st.integers(1, 4), texts=st.lists(SAID, max_size=2))
    def rewrite(self, which: int, start: int, texts: list[str]) -> None:
        if known := self.pick(which):
            start = min(start, known.next)
            with self.refused(errors.Conflict, known.closed is not None) as is_refused:
                self.chats.rewrite(known.id, start, *(a_turn(text, "assistant") for text in texts))
            if is_refused:
                return
            known.turns = [turn for turn in known.turns if turn[0] < start]
            known.next += 1
            for text in texts:
                known.say("assistant", text)
            known.touched_at = max(known.touched_at, self.clock())

    @rule(which=WHICH)
    def compress(self, which: int) -> None:
        if known := self.pick(which):
            with self.refused(errors.Conflict, known.closed is not None) as is_refused:
                chat = self.chats.compress(known.id, [a_turn("copper", "system")])
            if not is_refused:
                title, notice = self.next_title(known.who, known.title), known.notice
                self.close(known, CloseReason.COMPRESSED)
                shorter = self.begun(chat, known.who, follows=known.id, kinship=Kinship.CONTINUATION)
                shorter.title, shorter.notice = title, notice
                shorter.say("system", "copper")

    @rule(which=WHICH, before=st.none() | st.integers(1, 4))
    def branch(self, which: int, before: int | None) -> None:
        if known := self.pick(which):
            chat = self.chats.branch(PEOPLE[known.who], known.id, before=before)
            title = self.next_title(known.who, known.title)
            if current := self.open_of(known.who):
                self.close(current, CloseReason.SWITCHED)
            turns = [turn for turn in known.turns if before is None or turn[0] < before]
            self.begun(chat, known.who, turns=turns, follows=known.id, kinship=Kinship.BRANCH, title=title)

    @rule(which=WHICH, title=TITLE)
    def set_title(self, which: int, title: str) -> None:
        if known := self.pick(which):
            wanted = title or None
            holder = next(
                (
                    other
                    for other in self.known
                    if wanted and other.title == wanted and other.who == known.who and other is not known
                ),
                None,
            )
            gives_up = holder is not None and holder.id in self.continued(known)
            with self.refused(errors.TitleTaken, holder is not None and not gives_up) as is_refused:
                self.chats.set_title(PEOPLE[known.who], known.id, title)
            if not is_refused:
                if holder is not None:
                    holder.title = None
                known.title = wanted

    def continued(self, known: Known) -> list[str]:
        found: list[str] = []
        by_id = {each.id: each for each in self.known}
        while known.kinship is Kinship.CONTINUATION and known.follows is not None:
            known = by_id[known.follows]
            found.append(known.id)
        return found

    @rule(which=WHICH, who=WHO)
    def resume(self, which: int, who: str) -> None:
        if known := self.pick(which):
            with self.refused(errors.Refused, known.who != who) as is_refused:
                chat = self.chats.resume(PEOPLE[who], known.id)
            if not is_refused:
                self.resumed(chat, known)

    @rule(who=WHO, title=st.sampled_from(["Roof", "Wall", "Roof #2"]))
    def resume_by_title(self, who: str, title: str) -> None:
        theirs = [known for known in self.known if known.who == who and known.title]
        numbered = [known for known in theirs if known.title and known.title.startswith(f"{title} #")]
        exact = [known for known in theirs if known.title == title]
        meant = max(numbered, key=lambda known: int((known.title or "").partition("#")[2]), default=None)
        if meant is None or title == "Roof #2":
            meant = exact[0] if exact else None
        with self.refused(errors.ChatNotFound, meant is None):
            chat = self.chats.resume(PEOPLE[who], title)
        if meant is not None:
            self.resumed(chat, meant)

    def resumed(self, chat: Chat, known: Known) -> None:
        while further := [
            each for each in self.known if each.follows == known.id and each.kinship is Kinship.CONTINUATION
        ]:
            known = further[-1]
        assert chat.id == known.id
        if known.closed is not None:
            if current := self.open_of(known.who):
                self.close(current, CloseReason.SWITCHED)
            known.closed = known.closed_at = None
            known.touched_at, known.suspended, known.pending, known.notice = self.clock(), False, None, None

    @rule(which=WHICH)
    def suspend(self, which: int) -> None:
        if known := self.pick(which):
            self.chats.suspend(known.id)
            known.suspended, known.pending = True, None

    @rule(which=WHICH, is_pending=st.booleans())
    def interrupt(self, which: int, is_pending: bool) -> None:
        if known := self.pick(which):
            if is_pending:
                self.chats.mark_resume_pending(known.id)
                if not known.suspended and known.closed is None:
                    known.pending = self.clock()
            else:
                self.chats.clear_resume_pending(known.id)
                known.pending = None

    @rule(which=WHICH, count=st.integers(0, 5))
    def add_tokens(self, which: int, count: int) -> None:
        if known := self.pick(which):
            known.tokens += count
            assert self.chats.add_tokens(known.id, "m", input=count).tokens.total == known.tokens

    @rule(who=WHO, text=SAID)
    def search(self, who: str, text: str) -> None:
        found = {(each.chat, each.position) for each in self.chats.search(PEOPLE[who], text, limit=1000)}
        assert found == {
            (known.id, position)
            for known in self.known
            if known.who == who
            for position, _, content in known.turns
            if content == text
        }

    @invariant()
    def both_say_the_same(self) -> None:
        chats = self.chats
        listed = {chat.id: chat for chat in chats.list(Asker.OPERATOR)}
        assert listed.keys() == {known.id for known in self.known}
        for known in self.known:
            self.agrees(known, listed[known.id])
        for who, source in PEOPLE.items():
            self.sees_their_own(who, source)

    @invariant()
    def what_was_told_says_the_same(self) -> None:
        told = Told()
        for stored in self.store.read_events(after=self.after, limit=10_000):
            told.take(stored.event)
        assert told.open == {known.id: known.closed is None for known in self.known}
        assert told.titles == {known.id: known.title for known in self.known if known.title}
        for known in self.known:
            assert told.next.get(known.id) in (None, known.next)

    def agrees(self, known: Known, chat: Chat) -> None:
        transcript = self.chats.load(known.id)
        assert [_plain(turn) for turn in transcript.turns] == known.turns
        assert transcript.next == known.next
        said = (chat.close_reason, chat.closed_at, chat.title, chat.follows, chat.kinship, chat.touched_at)
        assert said == (known.closed, known.closed_at, known.title, known.follows, known.kinship, known.touched_at)
        more = (chat.turns, chat.tokens.total, chat.suspended, chat.resume_pending_at, chat.notice)
        assert more == (len(known.turns), known.tokens, known.suspended, known.pending, known.notice)

    def sees_their_own(self, who: str, source: Source) -> None:
        mine = {known.id for known in self.known if known.who == who}
        assert {chat.id for chat in self.chats.list(source)} == mine
        current, expected = self.chats.peek(source), self.open_of(who)
        assert (current and current.id) == (expected and expected.id)


def _plain(turn: Turn) -> tuple[int, str, object]:
    return turn.position, turn.role, turn.content


@pytest.mark.parametrize("gathering", [pytest.param(0.3, id="settled soon"), pytest.param(3600.0, id="settled late")])
def test_the_service_does_what_the_model_says(place: Place, gathering: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not what was said is told, indexed and put in its place meanwhile."""
    monkeypatch.setattr(search, "_GATHERING", gathering)
    machine = type("Placed", (Conversations,), {"place": place})
    # Where every step is many questions to a server, fewer have to do.
    examples = 25 if place.url.startswith("sqlite") else 6
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=30, deadline=None))
