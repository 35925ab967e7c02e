"""Telling a running job something: what its supervisor is asked for, and what is done when that one is gone."""

from __future__ import annotations

from msgspec import Struct

#: How long a job may take to end by itself when it is asked to, in seconds.
GRACE = 2.0


class Killed(Struct, frozen=True, kw_only=True):
    """What came of ending a job."""

    #: How many of its processes were there, and were told to end.
    found: int
    #: How many are still there: what no signal ends.
    left: int = 0


class Standing(Struct, frozen=True, kw_only=True):
    """How things stand with a running job."""

    #: Bytes printed so far, and how many of them could not be kept because the disk is full.
    printed: int
    dropped: int
    #: Bytes written to it that it has not read.
    unread: int


def write(directory: str, data: bytes, *, patience: float = 5.0) -> int:
    """Write to the job's standard input, with or without a terminal, and return how many bytes were taken.

    Less than all when the job does not read and what may wait for it is full. Raises `JobOver` when it has ended,
    `Refused` when its standard input was closed, PerdureError when its supervisor is gone.
    """
    raise NotImplementedError


def close_stdin(directory: str) -> None:
    """Let the job's standard input end after what was written; to a terminal, write what means that there (`^D`).

    Nothing happens the second time. Raises as `write` does.
    """
    raise NotImplementedError


def resize(directory: str, rows: int, columns: int) -> None:
    """Give the job's terminal another size; the job is told by SIGWINCH. Raises as `write` does; `Refused` without one."""
    raise NotImplementedError


def kill(directory: str, grace: float = GRACE) -> Killed:
    """End the job with everything it started, also what changed its group or session: SIGTERM, `grace` seconds, SIGKILL.

    Returns when that is done and, if it was running, its end is written down. Of a job that has ended, ends what it left behind,
    which changes nothing about how it ended. Works without its supervisor too; never ends a process that cannot be
    shown to belong to the job.
    """
    raise NotImplementedError


def standing(directory: str) -> Standing:
    """Return how things stand with a running job. Raises as `write` does."""
    raise NotImplementedError
