"""Forgetting a chat: gone for everybody at once, and what was said in it bit by bit, so that nobody waits for long.

Of a very long chat it takes many seconds to take all words out of the search index. So the chat goes first, with some of
its turns, in one short transaction that notes which it was, unless that was all; its turns belong to no chat then, and
nobody finds them. They go behind that, some at a time, each time with the words they were found by. Whoever comes next
goes on with what somebody left who was killed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perdure.store import arrivals
from perdure.store.chat_rows import SPAN
from perdure.store.steps import AT_ONCE, step

if TYPE_CHECKING:
    from perdure.store.search import Search

#: What stands before the number and the id of a chat in the name of the fact that notes it, and how many digits.
MARK, _DIGITS = "forgetting ", 20


def note(book: Search, chat: str, number: int, searchable: int) -> str:
    """Note that the turns of a chat are to go, and which of them were indexed; return the name of that fact."""
    name = f"{MARK}{number:0{_DIGITS}} {chat}"
    book.driver.execute(book.sql["set_fact"], name=name, value=str(searchable))
    return name


def begin(book: Search, chat: str, number: int, searchable: int) -> None:
    """Let the first turns of a chat go, inside the transaction in which it goes, and note it where there are more."""
    arrivals.settle(book, number)
    name = note(book, chat, number, searchable)
    _let_some_go(book, name, number, chat, searchable)


def marked(name: str) -> tuple[int, str] | None:
    """Return the number and the id of the chat that a fact of this name notes; None for one that was damaged."""
    number, _, chat = name.removeprefix(MARK).partition(" ")
    return (int(number), chat) if number.isdecimal() and len(number) == _DIGITS else None


def is_any_left(book: Search) -> bool:
    """Return whether there are turns of forgotten chats."""
    return bool(book.driver.fetch(book.sql["forgetting"]))


def go_on(book: Search) -> bool:
    """Let some turns of a forgotten chat go; return whether there may be more."""
    if not is_any_left(book):
        return False
    with book.changing():
        # Again: another may have been here, or made the search index anew.
        for name, searchable in book.driver.fetch(book.sql["forgetting"])[:1]:
            found = marked(name)
            if found is None or book.driver.fetch(book.sql["is_chat_there"], number=found[0]):
                # No chat that is there is ever noted: something else was damaged, and nothing is touched.
                book.driver.execute(book.sql["forgotten"], name=name)
            else:
                _let_some_go(book, name, *found, int(searchable) if searchable.isdecimal() else 1)
    return True


def _let_some_go(book: Search, name: str, number: int, chat: str, searchable: int) -> None:
    low, high = number * SPAN, (number + 1) * SPAN
    # Only how long they are: all of them may be more than anybody should wait for, or have in memory at once.
    sizes = book.driver.fetch(book.sql["sizes_between"], low=low, high=high, limit=AT_ONCE)
    count = step(size for _, size in sizes)
    if count >= len(sizes) < AT_ONCE:
        book.driver.execute(book.sql["forgotten"], name=name)
    else:
        high = sizes[count - 1][0] + 1
    indexed = min(high, low + searchable)
    rows = book.driver.fetch_as_is(book.sql["turns_between"], low=low, high=indexed, limit=AT_ONCE)
    book.forget_words(chat, number, rows)
    book.driver.execute(book.sql["delete_turns"], low=low, high=high)
