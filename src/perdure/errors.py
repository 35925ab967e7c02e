"""Expected failures, each with the sentence a person reads and the exit code a script sees.

Anything a user can cause derives from `PerdureError`; programming mistakes use the built-ins.
"""

from __future__ import annotations

import os
from typing import ClassVar


class PerdureError(Exception):
    """The request could not be carried out."""

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500

    def __init__(self, message: str | None = None, **data: object) -> None:
        #: One sentence, ready to be shown; the class docstring when the raiser had nothing to add.
        self.message = message or (type(self).__doc__ or "").strip()
        #: Facts for `--json` and logs. Never a secret.
        self.data = data
        super().__init__(self.message)


class UsageError(PerdureError):
    """The arguments do not make sense together."""

    exit_code = 2
    http_status = 400


class ConfigError(UsageError):
    """The configuration file cannot be used."""


class NotFound(PerdureError):
    """There is no such thing."""

    exit_code = 3
    http_status = 404


class SnapshotNotFound(NotFound):
    """There is no such snapshot."""


class AmbiguousSnapshot(UsageError):
    """More than one snapshot begins with these characters."""


class ScrollbackNotFound(NotFound):
    """The scrollback of this pane was not kept."""


class ImportFailed(PerdureError):
    """The file is not in the format it was said to be in."""


class Unanswered(PerdureError):
    """A tmux server did not answer."""

    exit_code = 4
    http_status = 504


class StoreUnusable(PerdureError):
    """The store cannot be used."""

    exit_code = 5
    http_status = 503


class StoreDamaged(StoreUnusable):
    """The database is damaged; `perdure check --repair` sets it aside and rebuilds it from the manifests."""


class StoreTooNew(StoreUnusable):
    """The store was written by a newer perdure than this one; it was left alone."""


class SnapshotDamaged(StoreUnusable):
    """This snapshot cannot be read back; the others are not affected."""


class Refused(PerdureError):
    """Refused for safety."""

    exit_code = 6
    http_status = 403


class TmuxMissing(PerdureError):
    """tmux is not installed."""


class NoDaemon(PerdureError):
    """No daemon is at work here; `perdure up` starts one."""

    http_status = 503


class RunNotFound(NotFound):
    """There is no such run."""


class AmbiguousRun(UsageError):
    """More than one run may be meant."""


class ChatNotFound(NotFound):
    """There is no such chat."""


class AmbiguousChat(UsageError):
    """More than one chat may be meant."""


class ChatDamaged(StoreUnusable):
    """This chat cannot be read back as it was written; the others are not affected."""


class JobNotFound(NotFound):
    """There is no such job."""


class AmbiguousJob(UsageError):
    """More than one job may be meant."""


class JobOver(PerdureError):
    """The job has ended."""

    http_status = 409


class Conflict(PerdureError):
    """Something was written in between; look again."""

    http_status = 409


class TitleTaken(UsageError):
    """Another chat has this title already."""

    http_status = 409


class RunReplaced(Refused):
    """Another is in the pane than the one who was recorded under the run's id."""

    http_status = 409


class NotReached(PerdureError):
    """The run did not come into that state in time."""

    exit_code = 4


class RunEnded(PerdureError):
    """The run ended without coming into that state."""

    http_status = 409


def failure_of(error: OSError) -> PerdureError:
    """Return what the operating system refused, as a sentence."""
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return PerdureError(f"{where}{error.strerror or error}.")
