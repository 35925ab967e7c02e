"""One at a time: what two type into a pane at once would become one message."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from perdure.host.lock import held_within
from perdure.model.digest import digest_of
from perdure.store.files import private_directory
from perdure.tmux.act import Spot

#: So many files keep sends apart, however many panes there are; none is ever removed.
_LOCKS = 16


@contextmanager
def alone(state_dir: str, spot: Spot, timeout: float) -> Iterator[None]:
    """Let nobody else of this state directory type into the same pane meanwhile. Raises `Refused` when that takes too long."""
    private_directory(state_dir)
    number = int(digest_of(f"{spot.socket} {spot.pane}".encode())[:8], 16) % _LOCKS
    with held_within(os.path.join(state_dir, f"send-{number}.lock"), "send", timeout):
        yield
