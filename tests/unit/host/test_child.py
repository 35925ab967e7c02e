"""Programs that run beside everything else: followed line by line, and ended with whoever wanted them."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from perdure.host.child import follow_aside, run_aside
from tests.acceptance.kit import wait_for

SAYS = (
    "import sys\nprint('one')\nprint('x' * 300_000)\nprint('three', end='')\nprint('why', file=sys.stderr)\nsys.exit(3)"
)
WAITS = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(1000)"


def words(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_lines_are_handed_on_as_they_come_however_long() -> None:
    lines: list[bytes] = []
    ran = asyncio.run(follow_aside(words(SAYS), environ={}, cwd="/", take=lines.append))
    assert lines == [b"one\n", b"x" * 300_000 + b"\n", b"three"]
    assert (ran.status, ran.out, ran.err) == (3, b"three", "why\n")


def test_everything_it_printed_is_given_in_the_end() -> None:
    ran = asyncio.run(run_aside(words("print('one')\nprint('two')"), environ={}, cwd="/"))
    assert (ran.status, ran.out, ran.err) == (0, b"one\ntwo\n", "")


@pytest.mark.parametrize("is_followed", [True, False])
def test_it_does_not_go_on_without_whoever_wanted_it(is_followed: bool, tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "pid")
    program = f"import os\nopen({path!r}, 'w').write(str(os.getpid()))\n{WAITS}"

    async def go() -> int:
        if is_followed:
            running = follow_aside(words(program), environ={}, cwd="/", take=lambda line: None)
        else:
            running = run_aside(words(program), environ={}, cwd="/")
        task = asyncio.get_running_loop().create_task(running)
        while not (os.path.exists(path) and os.path.getsize(path)):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with open(path) as file:
            return int(file.read())

    pid = asyncio.run(go())
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "its end")


def test_what_is_wrong_with_a_line_ends_it() -> None:
    def take(line: bytes) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(follow_aside(words(WAITS), environ={}, cwd="/", take=take))
