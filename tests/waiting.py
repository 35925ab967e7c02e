"""Waiting for what programs do in their own time."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.tmux_server import PATIENCE

#: Seconds between two looks, at least and at most.
_PAUSE, _LONGEST = 0.01, 0.5


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait until something is so; fails the test when it never is.

    Whoever looks by starting programs looks a quarter of the time: what is waited for needs the machine too, and so do
    the tests beside this one.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        begun = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        assert now < deadline, f"in vain: {what}"
        time.sleep(min(max(_PAUSE, 3 * (now - begun)), _LONGEST))
