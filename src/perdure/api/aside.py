"""Work that takes its time, beside the loop, in threads that hold up nobody: the end of the daemon neither."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


class Aside:
    """So many at once; the others wait for their turn. Belongs to one loop.

    Not an executor: Python waits for the threads of one before it ends, for as long as an agent takes to start.
    """

    def __init__(self, most: int) -> None:
        self._turns = asyncio.Semaphore(most)

    async def run(self, work: Callable[[], T]) -> T:
        """Return what the work returns, or raise what it raises. It goes on when nobody waits for it any more."""
        await self._turns.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def finish(result: T | None, error: BaseException | None) -> None:
            self._turns.release()
            if done.cancelled():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]  # None is what such a work returns

        def go() -> None:
            result, error = None, None
            try:
                result = work()
            except BaseException as failed:
                error = failed
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(finish, result, error)

        Thread(target=go, daemon=True, name="api-do").start()
        return await done
