"""What was appended last: written where it arrives, at the end of a table of its own, and put in its place afterwards.

Only in SQLite, where a turn's place is in the midst of a tree. Whoever reads sees both as one (`statements`); whoever
changes what was said settles the chat first; what can be searched is always in its place. Nothing is taken away from
where it arrived but in the transaction that puts it in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from perdure import errors
from perdure.store.chat_rows import SPAN, is_turn_of
from perdure.store.queries import queries
from perdure.store.steps import BYTES, step

if TYPE_CHECKING:
    from perdure.store.turns import Turns

#: How many turns are put in their places in one transaction, and how many bytes of them: it takes a few milliseconds.
_AT_ONCE, _BYTES = 1000, 4 * BYTES
#: Before every id, damaged or not, and behind them.
_BEGINNING, _END = -(1 << 63), (1 << 63) - 1
#: What statements call both together, and by which columns: where something is only counted, SQLite would read what was
#: said, too, were it among them. No views: where there are some, its own check of a database leaves something out.
_BOTH = {"all_turns": "id, role, at, hidden, seal, body", "all_places": "id, role, hidden, seal"}


@cache
def statements(dialect: str) -> dict[str, str]:
    """Return every named statement, as a database of this kind takes it."""
    return {name: _spelled_out(sql, dialect) for name, sql in queries().items()}


def _spelled_out(sql: str, dialect: str) -> str:
    for name, columns in _BOTH.items():
        both = f"(SELECT {columns} FROM turns UNION ALL SELECT {columns} FROM arrivals)"
        sql = sql.replace(f"FROM {name}", f"FROM {both if dialect == 'sqlite' else 'turns'} AS {name}")
    return sql


def settle(book: Turns, number: int) -> int:
    """Put all that has arrived in a chat in its place, inside a transaction; return how many were set aside instead."""
    return _put_in_place(book, number * SPAN, (number + 1) * SPAN, _END) if book.has_arrivals else 0


def settle_all(book: Turns) -> None:
    """Put all that has arrived by now in its place, some at a time. What cannot be put there stays, and can be read."""
    after = 0
    while book.has_arrivals:
        rows = book.driver.fetch(book.sql["arrivals"], after=after, limit=_AT_ONCE)
        if not rows:
            return
        some = rows[: step((size for _, _, size in rows), _BYTES)]
        after = some[-1][0]
        try:
            with book.changing():
                _put_in_place(book, _BEGINNING, _END, after)
        except errors.StoreDamaged:
            # One chat's damaged page holds up none of the others.
            for number in {id // SPAN for _, id, _ in some}:
                with suppress(errors.StoreDamaged), book.changing():
                    settle(book, number)


def _put_in_place(book: Turns, low: int, high: int, last: int) -> int:
    which = {"low": low, "high": high, "last": last}
    ((count, known),) = book.driver.fetch(book.sql["count_arrivals"], **which)
    if not count:
        return 0
    strays = _set_strays_aside(book, which) if known != count else 0
    if book.driver.execute(book.sql["place_arrivals"], **which) != count - strays:
        # No two ever have the same place, unless one's was damaged: neither is to be lost.
        book.driver.execute(book.sql["set_arrivals_aside"], **which)
    book.driver.execute(book.sql["forget_arrivals"], **which)
    return strays


def _set_strays_aside(book: Turns, which: Mapping[str, int]) -> int:
    """Keep apart what says that its place is where its chat has not been yet, or in none; return how many there are.

    Its id is a column like any other, in which nobody notices a flipped bit: the chat would go on behind that place, and
    all before it would be missing. One that is sealed with its place is right, and then the chat is wrong.
    """
    strays = 0
    for arrival, chat, *turn in book.driver.fetch_as_is(book.sql["stray_arrivals"], **which):
        if chat is None or not is_turn_of(chat, turn[0] // SPAN, tuple(turn)):
            book.driver.execute(book.sql["set_arrival_aside"], arrival=arrival)
            book.driver.execute(book.sql["forget_arrival"], arrival=arrival)
            strays += 1
    return strays
