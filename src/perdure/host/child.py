"""Running another program beside everything else."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from perdure.host.run import Ran

#: No line of a program that is followed is longer.
_LONGEST_LINE = 64 << 20
#: How a program ends that has taken Ctrl-C for its end.
_INTERRUPTED = 130


async def run_aside(words: Sequence[str], *, environ: Mapping[str, str], cwd: str) -> Ran:
    """Run a program to its end, however long that takes, and return how it ended; told to end, it is given a moment to.

    Its number is negative when a signal ended it.
    """
    async with _running(words, environ, cwd) as process:
        out, err = await process.communicate()
    return Ran(process.returncode or 0, out, err.decode(errors="replace"))


def was_interrupted(ran: Ran) -> bool:
    """Return whether a program did not come to its end because a signal ended it, or because it heard one (Ctrl-C)."""
    return ran.status < 0 or ran.status == _INTERRUPTED


async def follow_aside(
    words: Sequence[str], *, environ: Mapping[str, str], cwd: str, take: Callable[[bytes], None]
) -> Ran:
    """Run a program as `run_aside` does, and hand on every line it prints as it comes; only the last is in `Ran.out`."""
    last = b""

    async def hand_on(lines: asyncio.StreamReader) -> None:
        nonlocal last
        async for line in lines:
            last = line
            take(line)

    async with _running(words, environ, cwd) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        _, err, _ = await asyncio.gather(hand_on(process.stdout), process.stderr.read(), process.wait())
    return Ran(process.returncode or 0, last, err.decode(errors="replace"))


@contextlib.asynccontextmanager
async def _running(words: Sequence[str], environ: Mapping[str, str], cwd: str) -> AsyncIterator[Process]:
    """A program with nothing to read, which does not go on without whoever wanted it."""
    process = await asyncio.create_subprocess_exec(
        *words,
        env=dict(environ),
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_LONGEST_LINE,
    )
    try:
        yield process
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise
