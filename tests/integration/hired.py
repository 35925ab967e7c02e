"""Real jobs in a private directory, and what is asked about them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from perdure.jobs import control, hiring, output
from perdure.jobs.place import Began, Ended, JobPlace, job_path
from perdure.model.job import JobStatus, Terminal
from tests.waiting import wait_for

CAP = 1 << 20

until = wait_for


class Jobs:
    """Jobs of one directory; `end` leaves none of their processes."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._ids: list[str] = []

    def start(
        self,
        *argv: str,
        terminal: Terminal | None = None,
        cap: int = CAP,
        env: dict[str, str] | None = None,
        cwd: str = "/",
        id: str | None = None,
    ) -> Job:
        """Start a job and return it."""
        # Nobody else's: those of a job are known by its id, whoever else is tested at the same time.
        id = id or f"job{len(self._ids)}-{os.urandom(4).hex()}"
        path = job_path(self.directory, id)
        self._ids.append(id)
        hiring.start(
            self.directory,
            id,
            argv=argv,
            cwd=cwd,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **(env or {})},
            terminal=terminal,
            cap=cap,
        )
        return Job(path)

    def shell(self, text: str, **more: object) -> Job:
        """Start a job of the shell's."""
        return self.start("/bin/sh", "-c", text, **more)  # type: ignore[arg-type]

    def python(self, text: str, *words: str, **more: object) -> Job:
        """Start a job of Python's."""
        return self.start(sys.executable, "-I", "-S", "-c", text, *words, **more)  # type: ignore[arg-type]

    def of(self, id: str) -> Job:
        """Return a job that somebody else may have started; `end` ends it too."""
        self._ids.append(id)
        return Job(job_path(self.directory, id))

    def foremen(self) -> list[int]:
        """Return the foreman and who stands by: those that have not gone into a job's directory, nor belong to one that has.

        The foreman first, then its child, then that one's: numbers begin anew at times, and tell no order.
        """
        free = [pid for pid in self._programs() if self._is_free(pid) and self._is_free(parent_of(pid))]
        parents = {pid: parent_of(pid) for pid in free}

        def depth(pid: int) -> int:
            return 1 + depth(parents[pid]) if parents.get(pid) in parents else 0

        return sorted(free, key=depth)

    def _is_free(self, pid: int) -> bool:
        try:
            return not os.readlink(f"/proc/{pid}/cwd").startswith(self.directory)
        except OSError:
            return True

    def end(self) -> None:
        """End everything."""
        for id in self._ids:
            control.kill(job_path(self.directory, id), 0.0)
        for pid in self._programs():
            kill(pid)

    def _programs(self) -> list[int]:
        wanted = [b"foreman.py", os.fsencode(self.directory)]
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if len(words) > 4 and words[3].endswith(wanted[0]) and words[4] == wanted[1]:
                found.append(int(name))
        return found


class Job:
    """A job that was started."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.place = JobPlace(path)

    @property
    def began(self) -> Began:
        """How it began; it has."""
        began = self.place.began()
        assert began is not None
        return began

    @property
    def status(self) -> JobStatus:
        """What became of it."""
        return self.place.judgement().status

    def ended(self) -> Ended:
        """Wait for its end."""
        until(lambda: self.place.ended() is not None, f"the end of {self.path}: {self.said()!r}")
        ended = self.place.ended()
        assert ended is not None
        return ended

    def said(self) -> bytes:
        """All of it that is kept, in one piece."""
        return output.read(self.path, 0, 1 << 30).data

    def until_said(self, text: bytes) -> None:
        """Wait until it has printed this."""
        until(lambda: text in self.said(), f"{text!r} in {self.said()!r}")

    def write(self, data: bytes) -> int:
        """Write to it."""
        return control.write(self.path, data)


def is_there(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def kill(pid: int) -> None:
    """End a process at once, if it is there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def parent_of(pid: int) -> int:
    """Return the parent of a process; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def children_of(pid: int) -> list[tuple[int, str]]:
    """Return the children of a process, and what each is doing: `Z` for one that was not reaped."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append((int(name), fields[0].decode()))
    return found


def in_another_process(program: str, *words: str) -> subprocess.Popen[bytes]:
    """Start a Python program that has us to import."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen([sys.executable, "-c", program, *words], env=environ, stdout=subprocess.PIPE)
