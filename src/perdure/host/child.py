"""Running another program beside everything else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

from perdure.host.run import Ran


async def run_aside(words: Sequence[str], *, environ: Mapping[str, str], cwd: str) -> Ran:
    """Run a program to its end, however long that takes, and return how it ended; told to end, it is given a moment to.

    Its number is negative when a signal ended it.
    """
    process = await asyncio.create_subprocess_exec(
        *words,
        env=dict(environ),
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise
    return Ran(process.returncode or 0, out, err.decode(errors="replace"))
