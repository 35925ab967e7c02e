"""Chats for a gateway: which one a message belongs to, whether it is fresh, what it is called, who may go on with it.

Everything is in the store by the time a verb returns. Several threads and processes may use the same store at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from perdure import errors
from perdure.chats import titles
from perdure.chats.key import is_shared
from perdure.chats.naming import meant, new_id, tip_of, with_free_title
from perdure.chats.ownership import MANY, Asker, Ownership
from perdure.chats.reset import AHEAD, JobCheck, policy_for, stale, zone_of
from perdure.chats.saying import MOST, a_source, checked, several, text_of, whole
from perdure.chats.selves import canonical, is_anothers, is_told, key_within, last_known, selves_of
from perdure.chats.source import admit_platforms, known_platform
from perdure.chats.whatsapp import NO_ALIASES, Aliases
from perdure.model.chat import BY_ITSELF, Chat, CloseReason, Kinship, ResetMode, Source, Tokens, Transcript, Turn
from perdure.model.chat_owner import owner_of
from perdure.model.config import Config
from perdure.model.text import is_storable
from perdure.ports import ChatStore

#: How long after an interruption a chat is still gone on with.
RESUME_MINUTES = 60
#: Whoever was not told of these would look in vain for what was said, whatever the policy says about telling.
_ALWAYS_TOLD = (CloseReason.SUSPENDED, CloseReason.RESUME_EXPIRED)


class Chats(Ownership):
    """The chats of a gateway over a `ChatStore`.

    `now` tells the time. `has_jobs` tells whether jobs of a key are running that keep its chat from being reset.
    Whoever asks for chats is a `Source`, and gets what is theirs: of the same account, chat and thread, and the same
    person unless the chat is everybody's there; else only what they were granted. Anything else is `Refused`.
    """

    def __init__(
        self,
        store: ChatStore,
        config: Config,
        now: Callable[[], datetime],
        *,
        has_jobs: JobCheck | None = None,
        aliases: Aliases = NO_ALIASES,
    ) -> None:
        super().__init__(store, now)
        self.config = config
        self.has_jobs = has_jobs
        self._aliases = aliases
        self._zone = zone_of(config)
        admit_platforms(config.chats.platforms)

    def key(self, source: Source) -> str:
        """Return the key of the conversation a message belongs to; raises `UsageError` when that cannot be told."""
        return key_within(self.store, a_source(source), self.config.chats.keys, self._aliases)

    def selves(self, source: Source) -> tuple[Source, ...]:
        """Return everything by which whoever wrote is known, the first being what they are known as for good."""
        there = None
        a_source(source)
        with suppress(errors.UsageError):
            # Whoever cannot be told a conversation has no scope of one either.
            there = last_known(self.store, self.key(source))
        return selves_of(source, self._aliases, None if there is None else there.source)

    def peek(self, source: Source) -> Chat | None:
        """Return the open chat of a conversation as it stands, for whoever only looks: it is neither used nor reset."""
        return self.store.open_chat(self.key(source))

    def open(self, source: Source, *, force_new: bool = False) -> Chat:
        """Return the chat a message belongs to, begun now if there is none, it went stale, or a new one is wanted.

        However many ask at once, in however many processes, a conversation has one open chat, and all get that one.
        A chat that was once closed for being stale stays closed. Raises `UsageError` for a platform nobody knows.
        """
        known_platform(a_source(source).platform)
        while True:
            now = self.now()
            key, current = self._place(source)
            if current is not None and self.put_right(current, now):
                continue
            reason = None if current is None else self.why_over(current, now)
            if current is not None and reason is None and not force_new:
                if self.store.touch_chat(current.id, now):
                    touched = replace(current, touched_at=max(now, current.touched_at))
                    return self._placed(touched, source)
                continue
            begun = self.store.begin_chat(
                self._successor(key, source, current, reason, now),
                instead_of=current,
                reason=reason or CloseReason.ASKED,
            )
            if begun is not None:
                return begun

    def reset(self, source: Source) -> Chat:
        """Begin another chat because somebody asked for it; the one before is kept, and can be resumed."""
        return self.open(source, force_new=True)

    def touch(self, id: str) -> bool:
        """Note that a chat was used; False when it is not open any more."""
        return self.store.touch_chat(id, self.now())

    def put_right(self, chat: Chat, now: datetime) -> bool:
        """Let an open chat count as used now that is said to be used more than a day from now; return whether it did.

        The clock was ahead when it was used, and has been put right: else it would not go stale until it gets there.
        """

        def back(found: Chat) -> Chat:
            return replace(found, touched_at=now) if _is_ahead(found, now) else found

        return _is_ahead(chat, now) and self.store.change_chat(chat.id, back, at=now).touched_at == now

    def why_over(self, chat: Chat, now: datetime) -> CloseReason | None:
        """Return why an open chat is not to be gone on with, None while it is."""
        if chat.suspended:
            return CloseReason.SUSPENDED
        policy = policy_for(self.config.chats, chat.source.platform, chat.source.chat_type)
        reason = stale(chat, policy, now, self._zone, self.has_jobs)
        if reason is None and chat.resume_pending_at is not None and policy.mode is not ResetMode.NONE:
            # As if it were idle since it was interrupted: so jobs that run keep it, too.
            since = replace(chat, touched_at=chat.resume_pending_at)
            fresh = replace(policy, mode=ResetMode.IDLE, idle_minutes=RESUME_MINUTES)
            return stale(since, fresh, now, self._zone, self.has_jobs) and CloseReason.RESUME_EXPIRED
        return reason

    def take_notice(self, id: str) -> CloseReason | None:
        """Return why a chat was begun by itself when somebody is to be told, to the first who asks and to nobody else."""
        taken: list[CloseReason | None] = []

        def take(chat: Chat) -> Chat:
            taken[:] = [chat.notice]
            return replace(chat, notice=None)

        self.store.change_chat(id, take)
        return taken[0]

    def suspend(self, id: str) -> Chat:
        """Let the next message begin another chat, whatever the policy."""
        return self.store.change_chat(id, lambda chat: replace(chat, suspended=True, resume_pending_at=None))

    def mark_resume_pending(self, id: str) -> Chat:
        """Note that a chat was interrupted and is to be gone on with. One that was suspended stays so."""
        now = self.now()
        return self.store.change_chat(
            id, lambda chat: chat if chat.suspended or not chat.is_open else replace(chat, resume_pending_at=now)
        )

    def clear_resume_pending(self, id: str) -> Chat:
        """Note that an interrupted chat was gone on with."""
        return self.store.change_chat(id, lambda chat: replace(chat, resume_pending_at=None))

    def has_any(self, *, besides: Chat | None = None) -> bool:
        """Return whether there was ever a chat, apart from one."""
        return self.store.count_chats() > (besides is not None)

    def renew(self, asker: Source | Asker, id: str) -> Chat:
        """Close the open chat of a conversation and begin another in its place, as `reset`, by the id of the chat.

        Raises `Conflict` when it is not open any more.
        """
        while True:
            current = self.owned(asker, id)
            if not current.is_open:
                raise errors.Conflict(f"Chat {id} is closed already.", chat=id)
            fresh = self._successor(current.key, current.source, current, None, self.now())
            begun = self.store.begin_chat(replace(fresh, shared=current.shared), instead_of=current)
            if begun is not None:
                return begun

    def switch(self, source: Source, id: str) -> Chat:
        """Go on with another chat of the same person in the conversation a message belongs to.

        The chat that was open is kept. Somebody else's chat that was granted is gone on with in a copy, so that nothing
        that is said from now on ends up in theirs. Whatever others do at the same time comes before or after it.
        """
        return self._go_on(source, lambda: self.get(source, id))

    def _go_on(self, source: Source, look: Callable[[], Chat]) -> Chat:
        """Go on with the chat that `look` finds; it is looked for again when anything has changed since."""
        while True:
            chat = look()
            key, current = self._place(source)
            if current is not None and current.id == chat.id:
                return current
            if not self.owns(source, chat):
                return self.branch(source, chat.id)
            switched = self.store.switch_chat(chat, key, self.now(), instead_of=current)
            if switched is not None:
                return switched

    def _place(self, source: Source) -> tuple[str, Chat | None]:
        """The key of a conversation and its open chat, which is not another's who has begun one since the key was found."""
        while True:
            key = self.key(source)
            current = self.store.open_chat(key)
            if current is None or not is_anothers(current.source, source, self._aliases) or self.key(source) == key:
                return key, current

    def branch(
        self,
        source: Source,
        id: str,
        *,
        before: int | None = None,
        asker: Source | Asker | None = None,
        key: str | None = None,
    ) -> Chat:
        """Begin a chat with a copy of what was said in another, before a position when one is given, and open it.

        `asker` is who wants it when that is not whose message it is; `key` is that of the conversation when it is known
        by another than its messages have by now.
        """
        parent = self.get(a_source(source) if asker is None else asker, id)
        if before is not None:
            before = max(1, whole(before, "A position"))
        if key is not None:
            text_of(key, "The key of a conversation")

        def begin(title: str | None) -> Chat | None:
            # Found anew each time: what was begun there meanwhile may be another's.
            where, current = self._place(source) if key is None else (key, self.store.open_chat(key))
            fresh = self._fresh(where, source, self.now(), follows=id, kinship=Kinship.BRANCH)
            return self.store.begin_chat(
                replace(fresh, title=title, model=parent.model),
                instead_of=current,
                reason=CloseReason.SWITCHED,
                copy=id,
                before=before,
            )

        def look() -> tuple[str, str | None]:
            return owner_of(canonical(source, self._aliases), shared=self._is_shared(source)), parent.title

        return with_free_title(self.store, look, begin)

    def compress(self, id: str, turns: Sequence[Turn], *, expect: int | None = None) -> Chat:
        """Go on with an open chat in a shorter form, and return the chat it goes on in; what was said before is kept.

        Raises `Conflict` when it is not the open chat of its conversation any more, or goes on elsewhere than expected.
        """
        several(turns)

        def begin(title: str | None) -> Chat | None:
            now = self.now()
            parent = self.store.get_chat(id)
            if not parent.is_open:
                raise errors.Conflict(f"Chat {id} was closed in between.", chat=id)
            shorter = replace(
                self._fresh(parent.key, parent.source, now, follows=id, kinship=Kinship.CONTINUATION),
                title=title,
                shared=parent.shared,
                notice=parent.notice,
                model=parent.model,
                extra=parent.extra,
            )
            return self.store.begin_chat(
                shorter, instead_of=parent, reason=CloseReason.COMPRESSED, turns=turns, expect=expect
            )

        def look() -> tuple[str, str | None]:
            # Anew each time: who writes there may have become known.
            parent = self.store.get_chat(id)
            return owner_of(parent.source, shared=parent.shared), parent.title

        return with_free_title(self.store, look, begin)

    def append(self, id: str, *turns: Turn, expect: int | None = None) -> int:
        """Write down what was said, for good before this returns, and return the position of the last turn.

        With `expect` (a transcript's `next`) nothing is written and `Conflict` raised when somebody else said or
        changed something in between, or the chat is closed: then it is to be opened again first. Without it a closed
        chat keeps what comes late, and is handed on once more if it was. What could not be read back as it is (bytes,
        NaN, a time without a zone, what is nested too deeply) is a `UsageError`. Of what was said before nothing is
        asked: a chat of which something is lost takes what is said, too. Any id is taken, whoever's it is: one that
        somebody typed goes through `get`, `find` or `resume` first.
        """
        return self.store.append_turns(text_of(id, "The id of a chat"), checked(turns), self.now(), expect=expect)

    def load(self, id: str, *, start: int = 1, limit: int | None = None, partly: bool = False) -> Transcript:
        """Return what was said in a chat, whoever's it is, in order. What cannot be read is an error, never less.

        With `partly`, what is left of a damaged chat, which says at how many positions something is `missing`.
        """
        # Positions end before that.
        start = max(1, min(whole(start, "A position"), 1 << 40))
        if limit is not None and whole(limit, "How many turns are read") < 0:
            raise errors.UsageError(f"There cannot be {limit} turns.")
        if not is_storable(id):
            raise errors.ChatNotFound(f"There is no chat {ascii(id)[:80]}.")
        limit = None if limit is None else min(limit, MANY)
        return self.store.load_turns(id, start=start, limit=limit, partly=partly)

    def history(self, asker: Source | Asker, id: str) -> tuple[Transcript, ...]:
        """Return what was said in a conversation from its beginning, as far as whoever asks may see it.

        One transcript for every chat that this one continues, the first first, and for this one. A chat that only came
        before, or that this one began as a copy of, is another conversation.
        """
        self.get(asker, id)
        seen = [id]
        for each in self._continued(id):
            if not self.may(asker, self.store.get_chat(each)):
                break
            seen.append(each)
        return tuple(self.load(each) for each in reversed(seen))

    def rewrite(self, id: str, start: int, *turns: Turn, expect: int | None = None) -> int:
        """Replace everything from a position on, at once; what it replaces is kept, hidden.

        Raises `UsageError` for a position that is neither in the chat nor right behind it, and `Conflict` for a chat
        that is closed by now.
        """
        start = whole(start, "A position")
        return self.store.rewrite_turns(id, start, checked(turns), self.now(), expect=expect)

    def undo(self, id: str, count: int = 1) -> Turn:
        """Take back the user's last turns, and everything since, and return the earliest of them to be said again.

        Raises `Conflict` for a chat that is closed by now.
        """
        return self.store.undo_turns(id, whole(count, "How many turns are taken back"), self.now())

    def add_tokens(self, id: str, model: str, *, input: int = 0, output: int = 0) -> Chat:
        """Count tokens of a model, in total and by model. They only ever grow; anything but whole numbers is a `UsageError`."""
        if whole(input, "A number of tokens") < 0 or whole(output, "A number of tokens") < 0:
            raise errors.UsageError("Tokens are only ever added.")
        name: object = model
        if not isinstance(name, str):
            raise errors.UsageError(f"The name of a model is a text, and not {ascii(name)[:80]}.")

        def added(chat: Chat) -> Chat:
            before = chat.by_model.get(model, Tokens())
            by_model = {**chat.by_model, model: _sum(before, input, output)}
            return replace(chat, tokens=_sum(chat.tokens, input, output), by_model=by_model, model=chat.model or model)

        return self.store.change_chat(id, added)

    def set_title(self, asker: Source | Asker, id: str, text: str) -> Chat:
        """Give a chat a title, none when nothing is left of the text. Raises `TitleTaken` when another one has it.

        A chat that this one continues is the same conversation, and gives it up.
        """
        self.owned(asker, id)
        title = titles.clean_title(text_of(text, "A title"))
        return self.store.change_chat(
            id, lambda chat: replace(chat, title=title), over=self._continued(id), at=self.now()
        )

    def auto_title(self, id: str, text: str) -> Chat:
        """Give a chat a title when it has none, numbered when another one has it."""
        chat = self.store.get_chat(id)
        # Nobody chose it: what is too long of it is left out.
        cut = text_of(text, "A title")[: titles.TITLE_CHARACTERS * 4]
        wanted = titles.clean_title(" ".join(cut.split())[: titles.TITLE_CHARACTERS])
        if wanted is None or chat.title is not None:
            return chat

        def begin(title: str | None) -> Chat:
            return self.store.change_chat(id, lambda chat: replace(chat, title=chat.title or title), at=self.now())

        def look() -> tuple[str, str | None]:
            # Anew each time: who writes there may have become known.
            chat = self.store.get_chat(id)
            return owner_of(chat.source, shared=chat.shared), wanted

        return with_free_title(self.store, look, begin, as_is=True)

    def resume(self, source: Source, text: str) -> Chat:
        """Go on with the chat that is meant by an id, a title or the beginning of an id, where it stands now.

        `My Project` is the latest of `My Project #2`, `My Project #3` …; one that was made shorter is gone on with where
        it goes on. Raises `ChatNotFound`, `AmbiguousChat`, and `Refused` for somebody else's.
        """
        return self._go_on(source, lambda: self.find(source, text))

    def find(self, source: Source, text: str) -> Chat:
        """Return the chat that is meant, without going on with it."""
        text = text_of(text, "What a chat is looked for by")
        return tip_of(self.store, meant(self, a_source(source), text), lambda chat: self.may(source, chat))

    def _continued(self, id: str) -> tuple[str, ...]:
        """The chats a chat continues, as far as that is known."""
        found: list[str] = []
        chat = self.store.get_chat(id)
        while chat.kinship is Kinship.CONTINUATION and chat.follows is not None and chat.follows not in found:
            found.append(chat.follows)
            try:
                chat = self.store.get_chat(chat.follows)
            except (errors.ChatNotFound, errors.ChatDamaged):
                break
        return tuple(found)

    def _placed(self, chat: Chat, source: Source) -> Chat:
        """Note the scope and the person of a chat that was begun by a message that did not tell them."""
        is_person_new = (
            (is_told(source) and not is_told(chat.source) and not chat.shared)
            # By the earlier rules it may be anybody.
            and not is_anothers(chat.source, source, self._aliases)
        )
        if not is_person_new and (not source.scope_id or chat.source.scope_id):
            return chat
        known_as = canonical(source, self._aliases)

        def place(found: Chat) -> Chat:
            there = replace(found.source, scope_id=found.source.scope_id or source.scope_id)
            if is_person_new and not is_told(there):
                there = replace(there, user_id=known_as.user_id, user_id_alt=known_as.user_id_alt)
            return replace(found, source=there)

        # Theirs has that title already: this one stays as it is.
        with suppress(errors.TitleTaken):
            return self.store.change_chat(chat.id, place)
        return chat

    def _successor(
        self, key: str, source: Source, current: Chat | None, reason: CloseReason | None, now: datetime
    ) -> Chat:
        before = current
        if before is None:
            # What came before is not known where that cannot be read: something else is not taken for it.
            with suppress(errors.ChatDamaged):
                before = self.store.last_closed(key)
        if before is None:
            return self._fresh(key, source, now)
        why = reason if current is not None else before.close_reason
        if not source.scope_id:
            # It goes on where the conversation was, whether or not this message tells.
            source = replace(source, scope_id=before.source.scope_id)
        fresh = self._fresh(key, source, now, follows=before.id, kinship=Kinship.SUCCESSOR)
        return replace(fresh, notice=why if self._is_to_be_told(before, why) else None)

    def _is_to_be_told(self, before: Chat, why: CloseReason | None) -> bool:
        if why not in BY_ITSELF:
            return False
        policy = policy_for(self.config.chats, before.source.platform, before.source.chat_type)
        is_quiet = not policy.notify or before.source.platform in policy.notify_exclude_platforms
        return why in _ALWAYS_TOLD or (before.turns > 0 and not is_quiet)

    def _fresh(
        self, key: str, source: Source, now: datetime, *, follows: str | None = None, kinship: Kinship | None = None
    ) -> Chat:
        return Chat(
            id=new_id(now),
            key=key,
            source=canonical(source, self._aliases),
            opened_at=now,
            touched_at=now,
            shared=self._is_shared(source),
            follows=follows,
            kinship=kinship,
        )

    def _is_shared(self, source: Source) -> bool:
        return is_shared(source, self.config.chats.keys)


def _is_ahead(chat: Chat, now: datetime) -> bool:
    return chat.is_open and chat.touched_at - now > AHEAD


def _sum(before: Tokens, input: int, output: int) -> Tokens:
    if max(before.input + input, before.output + output) > MOST:
        raise errors.UsageError("These are more tokens than can be counted.")
    return Tokens(input=before.input + input, output=before.output + output)
