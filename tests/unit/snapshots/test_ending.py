"""Processes that are on their way out are what they were before."""

from __future__ import annotations

import msgspec
import pytest

from perdure.agents import agent_of
from perdure.model.process import Process
from perdure.model.snapshot import Snapshot
from perdure.snapshots.ending import as_before
from tests.builders import a_capture, a_pane, a_process, a_snapshot

SHELL = a_process(10, argv=("bash",))
AGENT = a_process(
    11, ppid=10, comm="claude", argv=("claude", "--fast"), exe="/bin/claude", cwd="/work", environ={"LANG": "C"}
)


def ending(process: Process, **changes: object) -> Process:
    return msgspec.structs.replace(process, exe=None, argv=(), cwd=None, environ={}, **changes)


def saved(*processes: Process) -> Snapshot:
    capture = a_capture([a_pane(0)])
    pane = msgspec.structs.replace(capture.details.panes["%0"], processes=processes)
    details = msgspec.structs.replace(capture.details, panes={"%0": pane})
    return a_snapshot(msgspec.structs.replace(capture, details=details))


def test_it_has_the_words_it_had() -> None:
    now = (SHELL, ending(AGENT, foreground=False))
    assert as_before(now, lambda: saved(SHELL, AGENT)) == (SHELL, msgspec.structs.replace(AGENT, foreground=False))


@pytest.mark.parametrize("change", [{"pid": 12}, {"start_ticks": 1}])
def test_another_process_has_none(change: dict[str, int]) -> None:
    gone = ending(AGENT, **change)
    assert as_before((SHELL, gone), lambda: saved(SHELL, AGENT)) == (SHELL, gone)
    assert as_before((SHELL, gone), lambda: None) == (SHELL, gone)


def test_whoever_has_words_keeps_them_and_nobody_is_asked() -> None:
    other = msgspec.structs.replace(AGENT, argv=("claude", "--slow"))
    assert as_before((SHELL, other), lambda: pytest.fail("asked")) == (SHELL, other)
    assert as_before((ending(SHELL), other), lambda: saved(SHELL, AGENT)) == (SHELL, other)


def test_of_whom_nothing_is_known_is_no_agent() -> None:
    """A name alone may be that of a program that answers once and ends."""
    assert agent_of((SHELL, AGENT)) is not None
    assert agent_of((SHELL, ending(AGENT))) is None
