"""What a repository says of the work in it."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class GitFacts(Struct, frozen=True, kw_only=True):
    """A repository as of `at`."""

    at: datetime
    #: The top of the work tree.
    root: str
    #: None when no branch is checked out.
    branch: str | None = None
    #: Files that differ from the last commit; a new directory counts as one.
    dirty: int = 0
    #: None before the first commit.
    committed_at: datetime | None = None
    subject: str | None = None
    #: Commits that the branch it follows does not have; None when it follows none.
    ahead: int | None = None
