"""Processes that are on their way out, as they were before. Pure.

A process that ends gives its memory back first, which takes a moment where there is much of it; and with its memory go
its program, its arguments, its directory and its environment. It is still there, and whoever takes it for an agent that was
started without a word would forget its conversation, and what it was started with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from perdure.model.process import Process
from perdure.model.snapshot import Snapshot


def as_before(tree: Sequence[Process], earlier: Callable[[], Snapshot | None]) -> tuple[Process, ...]:
    """Return the processes, with those that are on their way out as the last snapshot has them.

    Number and time of start are enough to know one by: it cannot become another program any more. `earlier` is only
    asked when there is one.
    """
    if not any(process.is_wordless for process in tree):
        return tuple(tree)
    known = {(each.pid, each.start_ticks): each for each in _processes(earlier())}
    return tuple(_as_it_was(process, known.get((process.pid, process.start_ticks))) for process in tree)


def _processes(snapshot: Snapshot | None) -> list[Process]:
    return [process for pane in snapshot.details.panes.values() for process in pane.processes] if snapshot else []


def _as_it_was(process: Process, before: Process | None) -> Process:
    if before is None or not process.is_wordless:
        return process
    return structs.replace(
        process, comm=before.comm, exe=before.exe, argv=before.argv, cwd=before.cwd, environ=before.environ
    )
