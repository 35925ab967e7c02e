"""What is remembered of a server: when it is looked at next, and whether it can answer at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from perdure.daemon.known_servers import (
    AFTER_END,
    ASLEEP,
    AT_ONCE,
    LAST_GAP,
    LOOK_GAP,
    OUTLINE_GAP,
    RETRY_AT_MOST,
    SHORT_GAP,
    Known,
)
from perdure.host.processes import read_entry
from perdure.model.run import Program
from perdure.model.server import ServerProcess
from perdure.model.user import User
from tests.acceptance.kit import wait_for
from tests.builders import NOON, a_server


def _known(program: Program | None = None) -> Known:
    process = None if program is None else ServerProcess(pid=program.pid, started_at=NOON, version="3.4")
    return Known(server=a_server(), owner=User("dev", 1000, 1000, "/home/dev"), process=process, program=program)


def test_looks_are_taken_together_and_not_too_often() -> None:
    known = _known()
    assert known.next_look() is None
    known.look_by(5.0)
    known.look_by(3.0)
    assert known.next_look() == 3.0
    known.looked(4.0)
    assert known.next_look() == 5.0
    known.look_by(4.05)
    assert known.next_look() == 4.0 + SHORT_GAP
    for number in range(AT_ONCE):
        known.looked(5.0 + number * SHORT_GAP)
    known.look_by(0.0)
    # What changes all the time does not keep us busy.
    assert known.next_look() == known.looked_at + LOOK_GAP


def test_a_look_is_an_outline_too() -> None:
    known = _known()
    known.outline_at, known.outlined_at = 1.0, 0.9
    assert known.next_outline() == 0.9 + OUTLINE_GAP
    known.looked(2.0)
    assert known.next_outline() is None


def test_once_nothing_has_changed_that_is_seen_one_more_time_and_no_more() -> None:
    known = _known()
    known.outline_by(5.0)
    known.outline_by(7.0)
    assert known.next_outline() == 5.0
    known.outlined(5.0)
    assert known.next_outline() == 5.0 + LAST_GAP
    known.outlined(5.0 + LAST_GAP)
    assert known.next_outline() is None


def test_what_is_noticed_does_not_wait_for_the_last_time_and_begins_anew() -> None:
    known = _known()
    known.outline_by(5.0)
    known.outlined(5.0)
    known.outline_by(5.1)
    assert known.next_outline() == 5.0 + OUTLINE_GAP
    known.outlined(6.0)
    assert known.next_outline() == 6.0 + LAST_GAP


def test_what_nothing_that_was_printed_explains_is_outlined_almost_at_once() -> None:
    known = _known()
    known.outlined(5.0)
    known.printed_at = 5.0
    known.stirred(5.2)
    assert known.next_outline() == 5.0 + OUTLINE_GAP
    known.stirred(5.5)
    assert known.next_outline() == 5.2
    known.outlined(5.5)
    known.printed_at = 5.6
    known.stirred(5.6)
    assert known.next_outline() == 5.5 + OUTLINE_GAP


def test_where_something_is_over_the_outline_waits_for_nothing() -> None:
    known = _known()
    known.outlined(5.0)
    known.hurry(5.1)
    outline_at = known.next_outline()
    assert outline_at is not None
    assert outline_at <= 5.1
    assert known.next_look() == 5.1 + AFTER_END


def test_the_looks_of_two_servers_are_their_own() -> None:
    one, other = _known(), _known()
    one.look_by(1.0)
    assert other.next_look() is None


def test_the_longer_it_does_not_answer_the_later_it_is_asked() -> None:
    known, at, waits = _known(), 100.0, []
    for _ in range(8):
        known.did_not_answer(at)
        assert known.next_look() is not None
        waits.append((known.next_look() or 0.0) - at)
        at = known.next_look() or 0.0
        known.looked(at)
    assert waits == sorted(waits)
    assert waits[0] <= 1.0
    assert waits[-1] == ASLEEP


def test_one_that_does_not_answer_is_asked_again_once_whatever_else_was_to_be_looked_at() -> None:
    known = _known()
    for wait in (0.0, 0.3, 1.0, 3.0):
        known.look_by(wait)
    known.did_not_answer(0.0)
    known.did_not_answer(0.3)
    assert len(known.looks) == 1
    # What is noticed meanwhile still counts.
    known.look_by(0.4)
    assert known.next_look() == 0.4


@pytest.fixture
def sleeper() -> Iterator[Program]:
    """A process that does nothing at all."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import signal; print(flush=True); signal.pause()"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    entry = read_entry(process.pid)
    assert entry is not None
    try:
        yield Program(pid=process.pid, start_ticks=entry.start_ticks)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_one_that_does_nothing_is_asleep_until_it_does_something(sleeper: Program) -> None:
    known = _known(sleeper)
    os.kill(sleeper.pid, signal.SIGSTOP)
    wait_for(lambda: _state(sleeper.pid) == "T", "the process to be stopped")
    assert not known.is_asleep(10.0)
    known.did_not_answer(10.0)
    assert known.is_asleep(11.0)
    # Not for ever: it may be for another reason that it could not be asked.
    assert not known.is_asleep(10.0 + ASLEEP)
    known.did_not_answer(12.0)
    assert not known.is_asleep(10.0 + ASLEEP)
    os.kill(sleeper.pid, signal.SIGCONT)
    wait_for(lambda: not known.is_asleep(13.0), "the process to do something")
    assert (known.next_look() or 0.0) <= 12.0 + RETRY_AT_MOST


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_one_that_has_ended_is_as_if_it_had_never_been(sleeper: Program) -> None:
    known = _known(sleeper)
    known.outline, known.outline_at = "digest", 3.0
    known.did_not_answer(1.0)
    known.ended()
    left = [known.process, known.program, known.outline, known.next_outline(), known.failures]
    assert left == [None, None, None, None, 0]
    assert not known.is_asleep(1.0)
