"""Jobs: how soon one prints, how much it can print, and what those cost that do nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.processes import cpu, held
from bench.results import CAT, KEPT, Jobs
from bench.sandbox import BenchFailed, Sandbox
from bench.timing import Step, Timing, interleave, timed
from perdure.jobs import control, hiring, output
from perdure.jobs.place import JobPlace, job_path

BARE = "subprocess.Popen, to its first output"
WARM = "a job, to its first output"
COLD = "a job, to its first output, nobody there to start it"

CROWD = 200
#: How much is printed to see how fast that goes, in bytes; and how much of it is kept.
PRINTED = 256 << 20
_CAP = 64 << 20
#: Prints so much as fast as it can.
_PRINT = (
    "import os, sys\npart = b'0123456789abcde\\n' * 4096\nfor _ in range(int(sys.argv[1]) >> 16): os.write(1, part)"
)
_FIRST = ["/bin/echo", "x"]
#: Between two measurements, in seconds, so that the one does not pay for what the other has left to do.
_BREATH = 0.05
_PATIENCE = 60.0


class _Crew:
    """Jobs in a directory of their own."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._environ = dict(sandbox.environ)
        self.directory = sandbox.directory("jobs")
        self._count = 0

    def start(self, argv: list[str]) -> str:
        """Start a job, and return its directory."""
        self._count += 1
        id = f"job{self._count}"
        hiring.start(self.directory, id, argv=argv, cwd="/", env=self._environ, cap=_CAP)
        return job_path(self.directory, id)

    def to_output(self, argv: list[str]) -> None:
        """Start a job, and return when something it printed can be read."""
        path = self.start(argv)
        _await(lambda: output.size(path), "a job printed nothing")

    def to_end(self, argv: list[str]) -> None:
        """Start a job, and return when its end can be read."""
        place = JobPlace(self.start(argv))
        _await(lambda: place.ended() is not None, "a job did not end")

    def dismiss(self) -> None:
        """End all of them, and whoever stands by."""
        for number in range(1, self._count + 1):
            control.kill(job_path(self.directory, f"job{number}"), 0.0)
        os.unlink(os.path.join(self.directory, "foreman"))


def measure(sandbox: Sandbox, *, rounds: int, seconds: float) -> Jobs:
    """Measure everything there is about jobs."""
    with _crew(sandbox) as crew:
        soon = interleave(_starts(crew, sandbox), rounds)
        fast = interleave(_floods(crew, sandbox), max(rounds // 3, 3))
    cold = Timing(samples=tuple(_cold(sandbox) for _ in range(rounds)))
    with _crew(sandbox) as crew:
        share, rss, pss = _idle(crew, seconds)
    return Jobs(
        timings={**soon, COLD: cold, **fast},
        printed=PRINTED,
        crowd=CROWD,
        idle=share,
        rss=max(rss),
        pss=sum(pss) // len(pss),
    )


@contextmanager
def _crew(sandbox: Sandbox) -> Iterator[_Crew]:
    crew = _Crew(sandbox)
    crew.to_end(["/bin/true"])
    try:
        yield crew
    finally:
        crew.dismiss()


def _starts(crew: _Crew, sandbox: Sandbox) -> dict[str, Step]:
    def bare() -> float:
        time.sleep(_BREATH)
        begin = time.perf_counter()
        with subprocess.Popen(_FIRST, stdout=subprocess.PIPE, cwd="/", env=sandbox.environ) as process:
            assert process.stdout is not None
            process.stdout.read(1)
            return time.perf_counter() - begin

    def warm() -> float:
        time.sleep(_BREATH)
        return timed(lambda: crew.to_output(_FIRST))

    return {BARE: bare, WARM: warm}


def _floods(crew: _Crew, sandbox: Sandbox) -> dict[str, Step]:
    flood = [sys.executable, "-I", "-S", "-c", _PRINT, str(PRINTED)]
    target = os.path.join(sandbox.directory("cat"), "kept")

    def piped() -> None:
        with (
            open(target, "wb") as file,
            subprocess.Popen(flood, stdout=subprocess.PIPE) as printing,
            subprocess.Popen(["cat"], stdin=printing.stdout, stdout=file) as keeping,
        ):
            keeping.wait()
        os.unlink(target)

    return {CAT: lambda: timed(piped), KEPT: lambda: timed(lambda: crew.to_end(flood))}


def _cold(sandbox: Sandbox) -> float:
    crew = _Crew(sandbox)
    taken = timed(lambda: crew.to_output(_FIRST))
    crew.dismiss()
    return taken


def _idle(crew: _Crew, seconds: float) -> tuple[float, list[int], list[int]]:
    """Return what a crowd of jobs that do nothing uses of a core, in hundredths, and what each holds, in KiB."""
    print(f"{CROWD} jobs …", file=sys.stderr, flush=True)
    pids = [_supervisor(crew.start(["/bin/sleep", "100000"])) for _ in range(CROWD)]
    time.sleep(1.0)
    before = sum(map(cpu, pids))
    time.sleep(seconds)
    used = sum(map(cpu, pids)) - before
    return 100 * used / seconds, [held(pid) for pid in pids], [_share(pid) for pid in pids]


def _supervisor(path: str) -> int:
    began = JobPlace(path).began()
    if began is None:
        raise BenchFailed(f"the job in {path} has not begun")
    return began.supervisor.pid


def _share(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        found = re.search(r"^Pss:\s+(\d+) kB$", file.read(), re.MULTILINE)
    if found is None:
        raise BenchFailed("the kernel does not tell what processes hold together")
    return int(found[1])


def _await(condition: Callable[[], object], complaint: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise BenchFailed(complaint)
        # Short against what is measured, and the processor is needed by those who are waited for.
        time.sleep(0.0002)
