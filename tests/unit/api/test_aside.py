"""Work beside the loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from perdure.api.aside import Aside
from tests.tmux_server import PATIENCE


def test_what_it_returns_and_raises_comes_back() -> None:
    async def go() -> None:
        aside = Aside(2)
        assert await aside.run(lambda: 42) == 42
        with pytest.raises(ZeroDivisionError):
            await aside.run(lambda: 1 / 0)

    asyncio.run(go())


def test_only_so_many_at_once_and_one_nobody_waits_for_keeps_its_turn_until_it_is_done() -> None:
    async def go() -> None:
        aside, may_end = Aside(1), threading.Event()
        first = asyncio.get_running_loop().create_task(aside.run(may_end.wait))
        await asyncio.sleep(0)
        second = asyncio.get_running_loop().create_task(aside.run(lambda: "second"))
        first.cancel()
        await asyncio.wait({second}, timeout=0.05)
        assert not second.done()
        may_end.set()
        assert await asyncio.wait_for(second, PATIENCE) == "second"

    asyncio.run(go())


def test_nobody_waits_for_it_in_the_end() -> None:
    program = """
import asyncio, time
from perdure.api.aside import Aside
async def go():
    working = asyncio.get_running_loop().create_task(Aside(1).run(lambda: time.sleep(3600)))
    await asyncio.sleep(0.1)
    working.cancel()
asyncio.run(go())
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=PATIENCE, check=False).returncode == 0
