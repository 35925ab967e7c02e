"""Telling a running job something: what its supervisor is asked for, and what is done when that one is gone."""

from __future__ import annotations

import math
import os

from msgspec import Struct

from perdure.errors import JobOver, PerdureError, Refused
from perdure.host.clock import pause, ticking
from perdure.host.unix_socket import connected
from perdure.jobs import kin
from perdure.jobs.answering import MOST
from perdure.jobs.place import Began, JobPlace, is_same_process
from perdure.jobs.plain import signal
from perdure.model.job import JobProcess
from perdure.model.text import encode

#: How long a job may take to end by itself when it is asked to, in seconds.
GRACE = 2.0
#: How long a supervisor may take to answer, in seconds.
_PATIENCE = 20.0
#: How long to wait before looking once more, in seconds.
_MOMENT = 0.05
#: When to believe that something cannot be ended.
_HOPELESS = 5.0
#: How long a supervisor may take to leave whose job has ended.
_LEAVING = 2.0

#: What a supervisor may say instead of doing what it is asked for.
_NO: dict[bytes, tuple[type[PerdureError], str]] = {
    b"over": (JobOver, "The job has ended."),
    b"stdin": (Refused, "The standard input of the job is closed."),
    b"terminal": (Refused, "The job has no terminal."),
    b"size": (Refused, "A terminal cannot have that size."),
}
_NOT_UNDERSTOOD = (PerdureError, "What looks after the job did not understand what it was told.")


class Killed(Struct, frozen=True, kw_only=True):
    """What came of ending a job."""

    #: How many of its processes were there, and were told to end.
    found: int
    #: How many are still there: what no signal ends.
    left: int = 0


class Standing(Struct, frozen=True, kw_only=True):
    """How things stand with a running job."""

    #: Bytes printed so far, and how many of them could not be kept because the disk is full.
    printed: int
    dropped: int
    #: Bytes written to it that it has not read.
    unread: int


def write(directory: str, data: bytes, *, patience: float = 5.0) -> int:
    """Write to the job's standard input, with or without a terminal, and return how many bytes were taken.

    Less than all when the job does not read and what may wait for it is full. Raises `JobOver` when it has ended,
    `Refused` when its standard input was closed, PerdureError when its supervisor is gone.
    """
    taken = 0
    deadline = ticking() + patience
    while taken < len(data):
        part = data[taken : taken + MOST]
        (done,) = _ask(directory, b"write %d\n%s" % (len(part), part))
        taken += done
        if done < len(part):
            if ticking() >= deadline:
                break
            pause(_MOMENT)
    return taken


def close_stdin(directory: str) -> None:
    """Let the job's standard input end after what was written; to a terminal, write what means that there (`^D`).

    Nothing happens the second time. Raises as `write` does.
    """
    _ask(directory, b"close\n")


def resize(directory: str, rows: int, columns: int) -> None:
    """Give the job's terminal another size; the job is told by SIGWINCH. Raises as `write` does; `Refused` without one."""
    if not (0 < rows < 1 << 16 and 0 < columns < 1 << 16):
        raise _refusal(b"size")
    _ask(directory, b"resize %d %d\n" % (rows, columns))


def standing(directory: str) -> Standing:
    """Return how things stand with a running job. Raises as `write` does."""
    printed, dropped, unread = _ask(directory, b"standing\n")
    return Standing(printed=printed, dropped=dropped, unread=unread)


def kill(directory: str, grace: float = GRACE, *, seen: Began | None = None) -> Killed:
    """End the job with everything it started, also what changed its group or session: SIGTERM, `grace` seconds, SIGKILL.

    Returns when that is done and, if it was running, its end is written down. Of a job that has ended, ends what it
    left behind, which changes nothing about how it ended. Works without its supervisor too, and where that one does
    not answer, and without its directory, if somebody has `seen` how it began; never ends a process that cannot be
    shown to belong to the job.
    """
    grace = max(grace, 0.0) if math.isfinite(grace) else GRACE
    began = JobPlace(directory).began() or seen
    if began is not None:
        # One that was stopped would not hear of it.
        _tell(began.supervisor, signal.SIGCONT)
    try:
        found, left = _ask(directory, b"kill %.3f\n" % grace, patience=grace + _PATIENCE)
    except (_NobodyThere, _NoAnswer):
        return _kill_without(directory, began, grace)
    return Killed(found=found, left=left)


def left_behind(id: str, began: Began) -> int:
    """Return how many processes go on of a job that has ended, as long as they are looked after."""
    if not is_same_process(began.supervisor):
        return 0
    return len(kin.members(encode(id), supervisor=began.supervisor.pid, leader=None, by_mark=False))


class _NobodyThere(PerdureError):
    """What looked after the job is gone; it cannot be told anything any more."""


class _NoAnswer(PerdureError):
    """What looks after the job is there, and says nothing."""


def _ask(directory: str, request: bytes, *, patience: float = _PATIENCE) -> tuple[int, ...]:
    said = b""
    try:
        with connected(os.path.join(directory, "ctl"), timeout=patience) as connection:
            connection.sendall(request)
            while not said.endswith(b"\n") and (part := connection.recv(100)):
                said += part
    except TimeoutError:
        raise _NoAnswer("What looks after the job does not answer.") from None
    except OSError:
        said = b""
    words = said.split()
    if not words:
        # It may have left between two words.
        if request.startswith(b"kill"):
            raise _NobodyThere
        raise JobOver if JobPlace(directory).ended() is not None else _NobodyThere
    if words[0] != b"ok":
        raise _refusal(words[-1])
    return tuple(map(int, words[1:]))


def _refusal(word: bytes) -> PerdureError:
    kind, sentence = _NO.get(word, _NOT_UNDERSTOOD)
    return kind(sentence)


def _kill_without(directory: str, began: Began | None, grace: float) -> Killed:
    """End what is left of a job without its supervisor: its own process if it still is that, whoever has its mark or is
    below its supervisor, should that one be there; and wait until it is gone too, for then nothing is left to be done.
    """
    if began is None:
        return Killed(found=0)
    id = encode(os.path.basename(directory))

    def there() -> list[tuple[int, int]]:
        same = is_same_process(began.process)
        leader = (began.process.pid, began.process.started) if same else None
        supervisor = began.supervisor.pid if is_same_process(began.supervisor) else None
        return kin.members(id, supervisor=supervisor, leader=leader, by_mark=True)

    first = left = there()
    kin.ask_to_end(first)
    ending = ticking() + grace
    while left and ticking() < ending + _HOPELESS:
        if ticking() >= ending:
            kin.end(left)
        pause(_MOMENT)
        left = there()
    leaving = ticking() + _LEAVING
    while not left and is_same_process(began.supervisor) and ticking() < leaving:
        pause(_MOMENT)
    return Killed(found=len(first), left=len(left))


def _tell(process: JobProcess, number: int) -> None:
    if is_same_process(process):
        kin.tell((process.pid, process.started), number)
