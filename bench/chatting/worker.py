"""`python -m bench.chatting.worker PEER DIRECTORY`: does to one store what it is told, a line of JSON each, and says how long it took.

It runs in the peer's own environment, which has nothing but Python's own library in common with ours.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.chatting import corpus
from bench.chatting.peers import PEERS, Peer

#: Some turns to append, over and over.
_SOME = 512


class Worker:
    """A peer's store, open."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._said = list(corpus.said(_SOME))
        self._place = 0

    def do(self, order: dict[str, Any]) -> Any:
        """Do one thing and return what came of it, most often the seconds it took."""
        verb: Callable[..., Any] = getattr(self, f"_{order.pop('do')}")
        return verb(**order)

    def _begin(self, chats: int) -> float:
        """So many chats, made as quickly as can be."""
        return _timed(lambda: self._peer.begin(chats))

    def _fill(self, turns: int, chats: int, long: int) -> float:
        """So many turns in so many chats, the first of which has `long` of them, made as quickly as can be."""
        return _timed(lambda: self._peer.fill(corpus.said(turns), turns, chats, long))

    def _append(self, chat: int, count: int) -> float:
        """Append turns to a chat, one after the other; the seconds for one."""
        return _timed(lambda: self._append_to(chat, self._next(count))) / count

    def _append_threads(self, threads: int, count: int) -> float:
        """The same by several threads at once, each to its own chat; the seconds until all are done, for each turn."""
        jobs = [(chat, self._next(count)) for chat in range(threads)]
        running = [threading.Thread(target=self._append_to, args=job) for job in jobs]

        def together() -> None:
            for each in running:
                each.start()
            for each in running:
                each.join()

        seconds = _timed(together)
        return seconds / (threads * count)

    def _settle(self) -> float:
        """Have everything indexed; the seconds that took."""
        return _timed(self._peer.settle)

    def _open(self, chats: Sequence[int]) -> float:
        """Open chats that are there; the seconds for one."""

        def each() -> None:
            for number in chats:
                self._peer.open(number)

        return _timed(each) / len(chats)

    def _load(self, turns: int) -> float:
        """Load the long chat."""
        found: list[int] = []
        seconds = _timed(lambda: found.append(self._peer.load()))
        assert found == [turns], f"{found} turns instead of {turns}"
        return seconds

    def _search(self, query: str, **filters: str) -> tuple[float, int]:
        """Search; the seconds, and how many were found."""
        found: list[int] = []
        seconds = _timed(lambda: found.append(self._peer.search(query, **filters)))
        return seconds, found[0]

    def _count(self) -> int:
        """How many turns there are."""
        return self._peer.count()

    def _append_to(self, chat: int, turns: Sequence[corpus.Said]) -> None:
        for turn in turns:
            self._peer.append(chat, turn)

    def _next(self, count: int) -> list[corpus.Said]:
        self._place += count
        return [self._said[place % _SOME] for place in range(self._place - count, self._place)]


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(peer: str, directory: str) -> None:
    """Serve until there is nothing more to do."""
    worker = Worker(PEERS[peer](directory))
    # What a peer's modules print is not for whoever asks.
    answers, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(worker.do(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
