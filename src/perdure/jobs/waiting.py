"""Waiting for a job to end: as long as is allowed, by a clock nobody can set, by as many as like."""

from __future__ import annotations

import select
from collections.abc import Callable

from msgspec import Struct

from perdure.errors import UsageError
from perdure.host.clock import pause, ticking
from perdure.host.exits import Exits
from perdure.jobs.place import JobPlace
from perdure.jobs.reading import Printed
from perdure.model.job import Job

#: How often it is looked whether a job has ended, and whether whoever waits has something else to do, in seconds.
_EVERY = 0.2
#: The same once its process is gone, and only its end has to be written down.
_SOON = 0.01
#: How long what leads to a backend may take to end after the command in it.
_DRAIN = 3.0


class Waited(Struct, frozen=True, kw_only=True):
    """How a job stands after waiting for it."""

    job: Job
    #: The last of what it printed.
    printed: Printed
    #: Whoever waited was told to stop.
    interrupted: bool = False
    #: Something to be said: that it was not waited as long as asked, that the job still runs.
    note: str | None = None


def allowed(timeout: float | None, limit: float) -> tuple[float, str | None]:
    """Return how long is waited, and the sentence to say when that is less than was asked for.

    None is for as long as is allowed, 0 is not at all. Raises `UsageError` for what is no time.
    """
    if timeout is None:
        return limit, None
    if not timeout >= 0:
        raise UsageError("A job can be waited for so many seconds, and that must not be less than none.")
    if timeout > limit:
        return limit, f"Asked to wait {timeout:g} s; no more than {limit:g} s are waited at once (jobs.wait_seconds)."
    return timeout, None


def wait_for(look: Callable[[], Job], seconds: float, is_interrupted: Callable[[], bool]) -> tuple[Job, bool]:
    """Look until a job has ended or the time is up; return how it stands then, and whether it was interrupted."""
    deadline = ticking() + seconds
    exits: Exits[str] = Exits()
    try:
        while True:
            job = look()
            if not job.is_running:
                return job, False
            left = deadline - ticking()
            if left <= 0:
                return job, False
            if is_interrupted():
                return job, True
            _let_pass(job, exits, left)
    finally:
        exits.close()


def _let_pass(job: Job, exits: Exits[str], left: float) -> None:
    """Let a moment pass: until the job's process is gone, but not long."""
    if job.process is None:
        pause(min(_SOON, left))
        return
    exits.add(job.process.pid, job.process.started, job.id)
    if exits.needs_polling:
        pause(min(_EVERY, left))
        return
    ready, _, _ = select.select([exits], [], [], min(_EVERY, left))
    if ready:
        exits.read()
        pause(min(_SOON, left))


def let_end(place: JobPlace) -> None:
    """Wait until the end of a job is written down whose command is known to have ended, but not for ever."""
    deadline = ticking() + _DRAIN
    while place.ended() is None and ticking() < deadline:
        pause(_SOON)


def still_running(seconds: float) -> str:
    """Return what is said when the time is up."""
    return f"Waited {seconds:g} s, and it is still running."
