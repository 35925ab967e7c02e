"""A store of chats that tells what has happened to them, for whoever keeps a copy."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from perdure.model.chat import ChatNews
from perdure.ports import ChatStore


class FollowedStore(ChatStore, Protocol):
    """A `ChatStore`, as every store of ours is, and what has changed in it since."""

    def chat_news(self, after: int | None, mark: str | None = None) -> ChatNews:
        """Return what has happened to chats behind a number of `ChatNews`; for None, all that is known, of which not all is.

        With the `mark` that came with the number, a store that was put back is noticed though it gave the number again.
        What was said just now is in it, whether or not an event tells of it yet.
        """

    def next_positions(self, ids: Collection[str]) -> dict[str, int]:
        """Return the positions of the next turns of those chats that are there, damaged or not.

        Whatever is said in a chat or taken back from it moves that on: as long as it stays, so does the transcript.
        """
