"""Many who append at once, one commit: whoever comes while one is at work is taken along by the next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from time import sleep

from perdure import errors
from perdure.store.chat_rows import Ready

#: How many bytes of turns go into one transaction, so that nobody waits for too many others.
_BYTES = 4 << 20


class Append:
    """Some turns on their way into a chat, and what became of them."""

    __slots__ = ("_waking", "at", "batch", "chat", "error", "expect", "is_done", "known", "position", "turns")

    def __init__(
        self, chat: str, turns: Sequence[Ready], expect: int | None, at: datetime, known: tuple[int, int] | None = None
    ) -> None:
        self.chat = chat
        self.turns = turns
        self.expect = expect
        self.at = at
        #: Of another process's: the number of the chat, and where that process believes it goes on.
        self.known = known
        #: The position of the last of them, once they are written.
        self.position = 0
        self.error: BaseException | None = None
        self.is_done = False
        #: What its thread writes, once that leads.
        self.batch: list[Append] = []
        self._waking: threading.Lock | None = None

    def will_wait(self) -> None:
        """Be ready to wait: nobody who wakes it from now on does so in vain."""
        self._waking = threading.Lock()
        self._waking.acquire()

    def wait(self) -> None:
        """Wait to be woken."""
        assert self._waking is not None
        self._waking.acquire()

    def wake(self) -> None:
        """Wake whoever waits, if anybody will; once more does no harm."""
        if self._waking is not None:
            try:
                self._waking.release()
            except RuntimeError:
                pass

    @property
    def size(self) -> int:
        """How many bytes there are to write."""
        return sum(len(turn.body) for turn in self.turns)


class Appends:
    """Commits the appends of all threads of a process, those that wait together in one transaction.

    `commit` writes some of them, all or nothing, and notes in each its position, or the error that is its own. Once it
    is its turn to write, it may call `top_up`, so that those who came while it waited are written too.
    """

    def __init__(self, commit: Callable[[list[Append]], None]) -> None:
        self._commit = commit
        self.begin_anew()

    def begin_anew(self) -> None:
        """Have nobody waiting: in a child, those who did are still in the parent, and are written there."""
        self._guard = threading.Lock()
        self._waiting: list[Append] = []
        #: Whose thread writes, or was woken to.
        self._leader: Append | None = None
        #: What the leader writes.
        self._batch: list[Append] = []
        #: How many were written together the last time.
        self._usual = 1

    def run(self, append: Append) -> int:
        """Return the position of the last turn once it is on disk, or raise what became of it instead."""
        try:
            self._see_to(append)
        except BaseException:
            # Interrupted, wherever that was: others wait for what only this thread would have done.
            self._step_back(append)
            raise
        if append.error is not None:
            raise append.error
        return append.position

    def top_up(self, batch: list[Append]) -> None:
        """Add to what the leader writes those that wait by now; nothing to anything else."""
        if batch is self._batch and self._waiting:
            self._take(sum(each.size for each in batch))

    def _see_to(self, append: Append) -> None:
        """Write it, alone or with others, or have it written."""
        with self._guard:
            is_alone = self._leader is None and not self._waiting and self._usual == 1
            if not is_alone:
                append.will_wait()
                self._waiting.append(append)
            if self._leader is None:
                self._leader = append
            leads = self._leader is append
        if is_alone:
            # Nearly always.
            self._lead(append, [append])
            return
        if not leads:
            append.wait()
        if not append.is_done:
            self._gather()
            self._lead(append, [])

    def _lead(self, append: Append, batch: list[Append]) -> None:
        """Write some, with those that wait where there are none yet, and let another lead."""
        append.batch = self._batch = batch
        if not batch:
            self._take(0)
        self._write(batch)
        self._usual = len(batch)
        self._end(batch)

    def _end(self, batch: Sequence[Append]) -> None:
        """Tell everybody what became of what the leader wrote, and let another lead."""
        for each in batch:
            each.is_done = True
        for each in batch:
            # The leader's own is released too, which nobody waits for any more.
            each.wake()
        with self._guard:
            self._pass_on()

    def _step_back(self, append: Append) -> None:
        """Let others do without whoever was interrupted. What it was about to write for them, nobody can know of."""
        batch = append.batch
        with self._guard:
            self._waiting = [each for each in self._waiting if each is not append and each not in batch]
            is_leader = self._leader is append
            if not is_leader and self._leader is not None:
                # It may have been about to.
                self._leader.wake()
        if is_leader:
            _blame([each for each in batch if not each.is_done], _interrupted())
            self._end(batch)

    def _gather(self) -> None:
        """Let those run who were written together the last time, and are about to come again; nobody is waited for."""
        came = -1
        # No longer than anybody comes: after a crowd, one who is alone would wait for it a millisecond long.
        while came < len(self._waiting) < self._usual:
            came = len(self._waiting)
            sleep(0)

    def _pass_on(self) -> None:
        self._leader = self._waiting[0] if self._waiting else None
        if self._leader is not None:
            self._leader.wake()

    def _take(self, size: int) -> None:
        """Add those that wait to what the leader writes: as many as go into one transaction beside so many bytes.

        One at least where there are none.
        """
        with self._guard:
            count = 0
            for each in self._waiting:
                size += each.size
                if size > each.size and size > _BYTES:
                    break
                count += 1
            self._batch += self._waiting[:count]
            del self._waiting[:count]

    def _write(self, batch: list[Append]) -> None:
        try:
            self._commit(batch)
        except Exception as error:
            if len(batch) == 1 or isinstance(error, errors.StoreUnusable):
                _blame(batch, error)
                return
            # One of them is at fault for the rest: each for itself.
            for each in batch:
                each.error = None
                self._write([each])
                each.is_done = True


def _interrupted() -> errors.StoreUnusable:
    return errors.StoreUnusable("Writing was interrupted: look what is there before writing again.")


def _blame(batch: Sequence[Append], error: Exception) -> None:
    for each in batch:
        # Each thread gets one of its own to raise.
        each.error = type(error)(error.message, **error.data) if isinstance(error, errors.PerdureError) else error
