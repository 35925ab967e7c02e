"""This machine."""

from __future__ import annotations

from collections.abc import Mapping

from perdure.jobs.backends.backend import Wrapped
from perdure.jobs.environment import shell_words
from perdure.model.job import Job, Order


class Local:
    """The `Backend` that is this machine: the words of an order are what is started."""

    def __init__(self, shell: str) -> None:
        self._shell = shell

    def check(self) -> None:
        """Nothing can be missing."""

    def wrap(self, id: str, order: Order, *, env: Mapping[str, str], directory: str) -> Wrapped:
        """Return the order itself; a text goes to the user's shell."""
        argv = order.argv or ()
        if order.shell is not None:
            argv = shell_words(self._shell, order.cwd, order.shell, has_terminal=order.terminal is not None)
        return Wrapped(argv=argv, cwd=order.cwd, env=env)

    def kill(self, job: Job, grace: float) -> int:
        """There is nothing besides what was started here."""
        return 0
