"""What was ordered, beside the output: so that a job is known by its directory alone, should the store be lost."""

from __future__ import annotations

import os
from contextlib import suppress

import msgspec

from perdure.model.decoding import decoder_of
from perdure.model.job import Job

_NAME = "job.json"


def write_record(directory: str, job: Job) -> None:
    """Write a job's record into its directory; where that fails, only the store knows it."""
    path = os.path.join(directory, _NAME)
    with suppress(OSError):
        # Whole or not at all, but not waited for until it is on the disk: the store has it there already.
        handle = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(handle, "wb") as file:
            file.write(msgspec.json.encode(job))
        os.rename(f"{path}.new", path)


def read_record(directory: str) -> Job | None:
    """Return the job a directory is of, None when that cannot be told."""
    try:
        with open(os.path.join(directory, _NAME), "rb") as file:
            job = decoder_of(Job).decode(file.read())
    except (OSError, msgspec.MsgspecError, UnicodeError, ValueError):
        return None
    return job if job.id == os.path.basename(directory) else None
