"""A mirror that keeps itself up to date while a gateway runs: in the background, at most once a second."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from functools import wraps
from types import TracebackType
from typing import Any, cast

from perdure import errors
from perdure.chats.mirror import Mirror
from perdure.host.clock import ticking
from perdure.ports import ChatStore
from perdure.store import forking

#: The least seconds from one round to the next, and from one that failed to the next that nobody asked for.
EVERY, AGAIN = 1.0, 30.0
#: How many times as long as a round took there is rest behind it: a mirror of very many chats costs little, too.
_REST = 10
#: What changes a chat.
_CHANGING = frozenset(
    """
    begin_chat import_chat switch_chat change_chat touch_chat append_turns rewrite_turns undo_turns
    """.split()
)
_FORGETTING = "forget_chat"
log = logging.getLogger(__name__)


class Mirroring:
    """Follows what is changed through `store`, which is as good as the one it was given.

    Nobody who changes a chat waits for the mirror, and its failure is theirs in no way: it is logged, and made up for
    later, by this process or by any other that mirrors the same store. The store has to have been opened for threads.
    Used as a context, or closed by `close`, which writes what is still to be written.
    """

    def __init__(self, store: ChatStore, mirror: Mirror) -> None:
        self.store = cast("ChatStore", _Noting(store, self._note, self._note_forgotten))
        self._mirror = mirror
        self._closing = threading.Event()
        #: What was logged of the last round that failed.
        self._logged: frozenset[str] = frozenset()
        self.begin_anew()
        forking.begins_anew(self)

    def begin_anew(self) -> None:
        """Have no thread yet: in a child, the parent's follows what the parent changes."""
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._changed = threading.Event()
        is_closing, self._closing = self._closing.is_set(), threading.Event()
        if is_closing:
            self._closing.set()
        #: The ids of chats that were forgotten, and whose files may still be there.
        self._forgotten: set[str] = set()

    def __enter__(self) -> Mirroring:
        self._note()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Write what is still to be written, and follow no more."""
        self._closing.set()
        self._changed.set()
        with self._guard:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _note(self) -> None:
        self._changed.set()
        if self._thread is None and not self._closing.is_set():
            with self._guard:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._follow, name="chats-mirror", daemon=True)
                    self._thread.start()

    def _note_forgotten(self, id: str) -> None:
        self._forgotten.add(id)
        self._note()

    def _follow(self) -> None:
        is_well = True
        while True:
            self._changed.wait(None if is_well else AGAIN)
            is_last = self._closing.is_set()
            self._changed.clear()
            begun = ticking()
            is_well = self._round()
            if is_last:
                return
            self._closing.wait(max(EVERY, _REST * (ticking() - begun)))

    def _round(self) -> bool:
        # Those of now: there may be more by the time these are gone.
        forgotten = frozenset(self._forgotten)
        try:
            done = self._mirror.catch_up(forgotten=forgotten)
        except errors.PerdureError as error:
            self._log("could not be written", [error.message])
            return False
        except Exception:
            log.exception("the mirror of chats could not be written")
            return False
        self._forgotten.difference_update(forgotten)
        self._log("is not up to date", done.failures)
        return not done.failures

    def _log(self, what: str, sentences: Sequence[str]) -> None:
        """Log what was not logged of the round before: what goes wrong may do so every second."""
        for sentence in sentences:
            if sentence not in self._logged:
                log.warning("the mirror of chats %s: %s", what, sentence)
        self._logged = frozenset(sentences)


class _Noting:
    """A store whose changes are noted."""

    def __init__(self, store: ChatStore, note: Any, note_forgotten: Any) -> None:
        self._store = store
        self._note = note
        self._note_forgotten = note_forgotten

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name in _CHANGING:
            found = _noting(found, self._note)
        elif name == _FORGETTING:
            found = _noting_which(found, self._note_forgotten)
        # Looked up once.
        setattr(self, name, found)
        return found


def _noting(verb: Any, note: Any) -> Any:
    @wraps(verb)
    def noted(*args: Any, **settings: Any) -> Any:
        result = verb(*args, **settings)
        note()
        return result

    return noted


def _noting_which(verb: Any, note: Any) -> Any:
    @wraps(verb)
    def noted(id: str, **settings: Any) -> Any:
        result = verb(id, **settings)
        note(id)
        return result

    return noted
