"""Where jobs run: each backend makes of an order what is started on this machine for it.

What runs here for a job of another backend is only what talks to it. A command never runs on this machine because a
backend is missing: that is an error, before anything is started.
"""

from __future__ import annotations

from perdure.errors import UsageError
from perdure.jobs.backends.backend import Backend
from perdure.jobs.backends.local import Local
from perdure.model.job import LOCAL


def find_backend(name: str, shell: str) -> Backend:
    """Return the backend of a name; `shell` is the user's, on this machine. Raises `UsageError` when there is none."""
    if name == LOCAL:
        return Local(shell)
    raise UsageError(f"There is no backend {name!r}; there is {LOCAL}.")
