"""Where jobs run: each backend makes of an order what is started on this machine for it.

What runs here for a job of another backend is only what talks to it. A command never runs on this machine because a
backend is missing: that is an error, before anything is started.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec.structs import replace

from perdure.errors import UsageError
from perdure.jobs.backends.backend import Backend
from perdure.jobs.backends.local import Local
from perdure.jobs.backends.ssh_log import LOG, OWN_CODE, was_cut_off
from perdure.model.backend_check import mistakes_in_backend
from perdure.model.config import JobsConfig
from perdure.model.job import LOCAL, Job, JobStatus


def find_backend(name: str, shell: str, config: JobsConfig, environ: Mapping[str, str]) -> Backend:
    """Return the backend of a name; `shell` is the user's, on this machine. Raises `UsageError` when there is none.

    `environ` is ours: what leads to a backend is given what it needs of it.
    """
    if name == LOCAL:
        return Local(shell)
    backend = config.backends.get(name)
    if backend is None:
        others = "".join(f", {each}" for each in config.backends)
        raise UsageError(f"There is no backend {name!r}; there is {LOCAL}{others}.")
    wrong = next(mistakes_in_backend(name, backend), None)
    if wrong is not None:
        raise UsageError(f"The backend {name!r} cannot be used: {wrong}.")
    if backend.kind == "ssh":
        from perdure.jobs.backends.ssh import Ssh

        return Ssh(name, backend, environ)
    from perdure.jobs.backends.container import Container

    return Container(name, backend, environ)


def true_end(job: Job, directory: str, config: JobsConfig) -> Job:
    """Return a job that has just ended as it did inside its backend, judged by what is in its directory.

    What leads to a backend may end for reasons of its own. Then nobody has seen how the command ended.
    """
    if job.order.backend == LOCAL or job.exit_code != OWN_CODE:
        return job
    backend = config.backends.get(job.order.backend)
    is_ssh = os.path.exists(os.path.join(directory, LOG)) or (backend is not None and backend.kind == "ssh")
    why = was_cut_off(directory) if is_ssh else None
    if why is None:
        return job
    if job.status is JobStatus.KILLED:
        return replace(job, exit_code=None)
    return replace(job, status=JobStatus.LOST, exit_code=None, why=why)
