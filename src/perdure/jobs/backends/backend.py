"""What a backend is: the one interface between jobs and where they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from perdure.model.job import Job, Order


class Wrapped(Struct, frozen=True, kw_only=True):
    """What is started on this machine for an order: words, a directory of this machine, a whole environment."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]


class Backend(Protocol):
    """One place for jobs to run."""

    def check(self) -> None:
        """Raise PerdureError, in one sentence, when no job can be run there now."""

    def wrap(self, id: str, order: Order, *, env: Mapping[str, str], directory: str) -> Wrapped:
        """Return what to start here so that the order is carried out there.

        `order.env` is what was asked for, all a job elsewhere gets; `env` is the whole environment of a job of this machine.
        `directory` will be the job's own. Raises PerdureError when the order cannot be carried out there.
        """

    def kill(self, job: Job, grace: float) -> int:
        """End what the job has running inside the backend and return how many processes that was.

        What was started here for it is ended by others. Raises PerdureError when it is not certain that all have ended.
        """
