"""A program that is kept running and answers in lines what it is told in lines."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from perdure.errors import PerdureError
from perdure.model.text import encode

#: The longest line that is taken from it.
LONGEST = 8 << 20


class Dialogue:
    """One program, from its start to its end. Not for two threads at once, but `stop` may come from another."""

    def __init__(self, argv: Sequence[str], *, environ: Mapping[str, str], cwd: str) -> None:
        """Start it, in a process group of its own. Raises PerdureError when that cannot be done."""
        try:
            self._child = subprocess.Popen(
                [encode(word) for word in argv],
                env=dict(environ),
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # What it complains about may hold whatever it was told.
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            raise PerdureError(f"{argv[0]} cannot be started: {getattr(error, 'strerror', None) or error}.") from error
        self._name = argv[0]
        self._rest = b""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._to, self._from = self._child.stdin.fileno(), self._child.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._child.pid

    def tell(self, line: bytes, timeout: float) -> None:
        """Write a line. Raises PerdureError when it does not take it within `timeout` seconds, or has ended."""
        end = time.monotonic() + timeout
        left = memoryview(line + b"\n")
        while left:
            if not _is_ready(self._to, select.POLLOUT, end):
                raise PerdureError(f"{self._name} does not read what it is told.")
            try:
                left = left[os.write(self._to, left) :]
            except BlockingIOError:
                continue
            except OSError:
                raise PerdureError(f"{self._name} has ended.") from None

    def hear(self, timeout: float) -> bytes:
        """Return the next line. Raises PerdureError when there is none in time, it is too long, or the program has ended."""
        end = time.monotonic() + timeout
        while b"\n" not in self._rest:
            if len(self._rest) > LONGEST:
                raise PerdureError(f"{self._name} says too much in one line.")
            if not _is_ready(self._from, select.POLLIN, end):
                raise PerdureError(f"{self._name} did not answer within {timeout:.0f} s.")
            try:
                part = os.read(self._from, 1 << 16)
            except BlockingIOError:
                continue
            except OSError:
                part = b""
            if not part:
                raise PerdureError(f"{self._name} has ended.")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def stop(self) -> None:
        """End it, with everything it has started in its group; whoever waits for it hears that it has ended."""
        if self._child.poll() is None:
            with suppress(OSError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()

    def close(self) -> None:
        """End it and let go of it. Doing so again changes nothing."""
        self.stop()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _is_ready(handle: int, event: int, end: float) -> bool:
    """Wait for a handle until a moment. `poll`, for `select` knows no handle above 1023."""
    poll = select.poll()
    poll.register(handle, event)
    return bool(poll.poll(max(0.0, end - time.monotonic()) * 1000))
