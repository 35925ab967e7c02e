"""Handing an order to somebody who looks after it: the foreman of a jobs directory, who is started when there is none."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress

from perdure.errors import PerdureError, Refused
from perdure.host.clock import now, pause, ticking
from perdure.host.unix_socket import connected
from perdure.jobs import answering, ending, foreman, keeping, kin, launching, orders, slimming, supervisor
from perdure.jobs.place import Began, JobPlace, job_path, this_boot
from perdure.model.job import JobProcess, Terminal
from perdure.model.text import encode

#: How long the whole of it may take, in seconds.
PATIENCE = 30.0
#: How long a foreman stays whom nobody asks for anything, in seconds.
IDLE = 300.0
#: How long to wait before asking once more, in seconds.
_MOMENT = 0.02
#: What is told of a job that began: the number and the start of its supervisor, and of its own process.
_NUMBERS = 4


def start(
    jobs_dir: str,
    id: str,
    *,
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    terminal: Terminal | None = None,
    cap: int,
    outside: tuple[str, ...] = (),
    patience: float = PATIENCE,
) -> Began | None:
    """Start a job, and return how it began: its command is running then, or was, or `JobPlace.ended` says why not.

    A command that cannot be started is a job that ended: code 127 when there is no such program or directory, 126 when
    it may not be run. None: somebody has it, and has not begun in all that time. PERDURE_JOB=ID is added to `env`, which
    is otherwise all the command gets. The job outlives this process and, by the words `outside`
    (`host.scope.outside_service`), the service it belongs to. Asked a second time with the same id nothing is started
    twice: `Refused`. Raises PerdureError when nobody could be found to start it; then it will never run.
    """
    if not sys.platform.startswith("linux"):
        raise Refused("Jobs need Linux: how a job ended cannot be told for certain elsewhere.")
    place, deadline = JobPlace(job_path(jobs_dir, id)), ticking() + patience
    # Before it is written down: whoever stands by wakes up meanwhile.
    with closing(_Foreman(jobs_dir, deadline)) as called:
        place.write_order(argv=argv, cwd=cwd, env=env, terminal=terminal, cap=cap)
        try:
            return _hand_over(called, jobs_dir, id, place, outside, deadline)
        except PerdureError as error:
            if not place.give_up(error.message, now()):
                return place.began()
            raise


def _hand_over(
    called: _Foreman, jobs_dir: str, id: str, place: JobPlace, outside: tuple[str, ...], deadline: float
) -> Began | None:
    """Ask until somebody has it. However often that is, it is begun once: `supervisor.look_after` sees to that."""
    while ticking() < deadline:
        said = called.ask(id)
        word = said.split()[0] if said.split() else b""
        if word in (b"began", b"ended"):
            return place.began() or _told(said)
        if word == b"taken":
            return _await(place, deadline)
        if word == b"failed":
            raise PerdureError(f"The job could not be started: {os.strerror(int(said.split()[1]))}.")
        if word == b"order":
            raise PerdureError(f"The order in {place.directory} cannot be read.")
        if place.began() is not None:
            return place.began()
        if not said:
            _start_foreman(jobs_dir, outside, deadline)
    raise PerdureError(f"Nobody in {jobs_dir} started the job in time.")


def _told(said: bytes) -> Began | None:
    """Return how a job began by the answer alone: the first thing it did may have been to remove its directory."""
    if len(said.split()) != _NUMBERS + 1:
        return None
    pid, started, own_pid, own_started = map(int, said.split()[1:])
    return Began(
        supervisor=JobProcess(pid=pid, started=started, boot=this_boot()),
        process=JobProcess(pid=own_pid, started=own_started, boot=this_boot()),
        at=now(),
    )


class _Foreman:
    """Whoever stands by in a jobs directory, called before there is something to ask."""

    def __init__(self, jobs_dir: str, deadline: float) -> None:
        self._path = os.path.join(jobs_dir, "foreman")
        self._deadline = deadline
        self._connection = self._connected()

    def _connected(self) -> socket.socket | None:
        with suppress(OSError):
            return connected(self._path, timeout=max(self._deadline - ticking(), _MOMENT))
        return None

    def ask(self, id: str) -> bytes:
        """Return what is answered; b"" when there is nobody, or not any more. The next time somebody else is asked."""
        with suppress(OSError), closing(self):
            self._connection = self._connection or self._connected()
            if self._connection is None:
                return b""
            self._connection.sendall(b"hire %s %s\n" % (encode(id), _stamp()))
            said = b""
            while not said.endswith(b"\n") and (part := self._connection.recv(100)):
                said += part
            return said
        return b""

    def close(self) -> None:
        """Let go of whoever was called."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _await(place: JobPlace, deadline: float) -> Began | None:
    """Wait for somebody who had it before we asked again."""
    while ticking() < deadline:
        if place.began() is not None or place.ended() is not None:
            break
        pause(_MOMENT)
    return place.began()


def _start_foreman(jobs_dir: str, outside: tuple[str, ...], deadline: float) -> None:
    """Start a foreman, and return when one listens: this one, or one that somebody else has started meanwhile."""
    words: list[str | bytes] = [*outside, sys.executable, "-I", "-S", foreman.__file__, encode(jobs_dir)]
    try:
        # Nothing of our environment: what we were started with is not for those who do not ask for it, and a mark of a
        # job we run in would make the foreman a part of that job.
        process = subprocess.Popen(
            [*words, str(IDLE), _stamp()],
            env={b"PATH": encode(os.environ.get("PATH", os.defpath)), **dict([kin.FOREMAN.split(b"=")])},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise PerdureError(f"{sys.executable}: {error.strerror or error}.") from error
    try:
        said, _ = process.communicate(timeout=max(deadline - ticking(), _MOMENT))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise PerdureError(f"Nobody could be started in {jobs_dir} in time.") from None
    if said.startswith(b"failed"):
        raise PerdureError(f"Nobody can be reached in {jobs_dir}: {os.strerror(int(said.split()[1]))}.")
    if not said and process.returncode > 0:
        raise PerdureError(f"Nobody could be started in {jobs_dir}: {sys.executable} ended with {process.returncode}.")
    if not said.startswith(b"ready"):
        # Another is about to listen, or about to leave; or somebody ended this one.
        pause(_MOMENT)


def _stamp() -> bytes:
    """What tells this version of the program from another, to which a foreman may belong who still runs."""
    stamp = 0
    for module in (foreman, supervisor, answering, ending, keeping, kin, launching, orders, slimming):
        with suppress(OSError):
            status = os.stat(str(module.__file__))
            stamp = hash((stamp, status.st_ino, status.st_mtime_ns, status.st_size))
    return b"%x" % (stamp & (1 << 64) - 1)
