"""What was said in chats and is yet to be told as events: whoever appends does not wait for that.

A chat says up to which position it was told. Nothing else tells of a chat before that is made up for, and nobody who
may write reads events before: so events come late, but each once, and in the order in which things happened to a chat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from perdure.model.event import Event
from perdure.store import chat_events
from perdure.store.driver import Driver, Row
from perdure.store.queries import queries
from perdure.store.rows import UNREADABLE, moment_of

#: Writes down what has happened, inside the transaction in which it happens.
Tell = Callable[[Sequence[Event]], object]


def is_untold(driver: Driver) -> bool:
    """Return whether something was said that is yet to be told."""
    return any(map(_is_readable, driver.fetch_as_is(queries()["chats_to_tell_of"])))


def tell_said(driver: Driver, tell: Tell) -> None:
    """Tell all that was said, one event for each chat, inside a transaction that gives numbers."""
    rows = [row for row in driver.fetch_as_is(queries()["chats_to_tell_of"]) if _is_readable(row)]
    if rows:
        tell([chat_events.said(id, moment_of(at), told, next - 1) for _, id, told, next, at in rows])
        driver.execute_many(queries()["note_told"], [{"number": row[0]} for row in rows])


def _is_readable(row: Row) -> bool:
    """Whether it can be told which chat, and when: one that was spoilt is told of once it is mended, and holds up nobody."""
    _, id, _, _, at = row
    with suppress(*UNREADABLE):
        return type(id) is str and bool(moment_of(at))
    return False
