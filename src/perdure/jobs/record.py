"""What was ordered, beside the output: so that a job is known by its directory alone, should the store be lost."""

from __future__ import annotations

import os
from contextlib import suppress

import msgspec

from perdure.model.job import Job
from perdure.store.files import write_atomically

_NAME = "job.json"


def write_record(directory: str, job: Job) -> None:
    """Write a job's record into its directory; where that fails, only the store knows it."""
    with suppress(OSError):
        write_atomically(os.path.join(directory, _NAME), msgspec.json.encode(job))


def read_record(directory: str) -> Job | None:
    """Return the job a directory is of, None when that cannot be told."""
    try:
        with open(os.path.join(directory, _NAME), "rb") as file:
            job = msgspec.json.decode(file.read(), type=Job)
    except (OSError, msgspec.MsgspecError, UnicodeError, ValueError):
        return None
    return job if job.id == os.path.basename(directory) else None
