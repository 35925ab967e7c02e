"""What is said to systemctl and launchctl, and what is made of their answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.host.service_manager import Answer, Launchd, Standing, Systemd, linger, run_program, span

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
DONE = Answer(0, "", "")


class Recorder:
    """Answers every command with the first that fits of what it was given, and keeps what it was asked."""

    def __init__(self, **answers: Answer) -> None:
        self.asked: list[str] = []
        self._answers = answers

    def __call__(self, argv: Sequence[str]) -> Answer:
        self.asked.append(" ".join(argv))
        return next((answer for word, answer in self._answers.items() if word in argv), DONE)


@pytest.mark.parametrize(("system", "begin"), [(False, "systemctl --user"), (True, "systemctl")])
def test_starting_enables_both_and_starts_the_timer_alone(system: bool, begin: str) -> None:
    run = Recorder()
    assert Systemd(system, run).start(["perdure-save.timer"]) is None
    assert run.asked == [
        f"{begin} daemon-reload",
        f"{begin} enable perdure-restore.service",
        f"{begin} enable --now perdure-save.timer",
    ]


def test_what_could_not_be_done_comes_with_the_line_that_does_it() -> None:
    run = Recorder(enable=Answer(1, "", "Failed to enable unit: Access denied\nSee the logs\n"))
    problem = Systemd(False, run).start([])
    assert problem is not None
    assert "Access denied; run later: systemctl --user daemon-reload && " in problem
    assert problem.endswith("systemctl --user enable --now perdure-save.timer")
    silent = Recorder(enable=Answer(7, "", ""))
    assert "systemctl enable perdure-restore.service ended with 7;" in (Systemd(True, silent).start([]) or "")


def test_stopping_never_stops_the_unit_that_tmux_lives_in() -> None:
    run = Recorder()
    assert Systemd(False, run).stop(["perdure-save.service", "perdure-save.timer", "perdure-restore.service"]) is None
    assert run.asked == [
        "systemctl --user disable --now perdure-save.timer",
        "systemctl --user disable perdure-restore.service",
    ]
    run = Recorder()
    assert Systemd(False, run).stop(["perdure-save.service"]) is None
    assert run.asked == []


# In the form of systemd 252: a paragraph for each unit, numbers that end in Monotonic as they are, lengths in words.
SHOWN = """\
Id=perdure-save.timer
LoadState=loaded
ActiveState=active
UnitFileState=enabled
Result=success
NextElapseUSecMonotonic={next}

Id=perdure-save.service
LoadState=loaded
ActiveState=inactive
UnitFileState=static
Result=exit-code
ExecMainStartTimestampMonotonic={last}

Id=perdure-restore.service
LoadState=not-found
ActiveState=inactive
UnitFileState=
Result=success
ExecMainStartTimestampMonotonic=0
"""


def test_what_systemd_says_is_understood() -> None:
    ticks = time.monotonic()
    text = SHOWN.format(next=f"{ticks + 30:.6f}s", last=int((ticks - 20) * 1_000_000))
    found = Systemd(False, Recorder(show=Answer(0, text, ""))).standings(NOW)
    timer, save = found["perdure-save.timer"], found["perdure-save.service"]
    assert (timer.enabled, timer.active, timer.last_run) == (True, True, None)
    assert timer.next_run is not None
    # On the clock of the answer, read a moment later.
    assert NOW < timer.next_run <= NOW + timedelta(seconds=30)
    assert (save.enabled, save.active, save.result, save.next_run) == (False, False, "exit-code", None)
    assert save.last_run is not None
    assert save.last_run <= NOW - timedelta(seconds=20)
    assert found["perdure-restore.service"] == Standing(enabled=False, active=False)


@pytest.mark.parametrize("answer", [Answer(1, "", "Failed to connect to bus"), Answer(None, "", ""), Answer(0, "", "")])
def test_no_answer_is_not_taken_for_one(answer: Answer) -> None:
    assert Systemd(False, Recorder(show=answer)).standings(NOW) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1min 30s", 90e6),
        ("1.5s", 1.5e6),
        ("2h 3ms 4us", 7_200_003_004),
        ("1month 1w 1d", 2_629_800e6 + 8 * 86_400e6),
        ("1y", 31_557_600e6),
        ("infinity", None),
        ("", None),
        ("1min soon", None),
    ],
)
def test_lengths_of_time(text: str, expected: float | None) -> None:
    assert span(text) == expected


@given(st.text())
def test_any_text_is_a_length_of_time_or_none(text: str) -> None:
    found = span(text)
    assert found is None or found >= 0


def test_launchd_loads_the_save_and_leaves_the_restore_to_the_next_login() -> None:
    run = Recorder(print=Answer(113, "", "Could not find service"))
    assert Launchd(True, "/Library/LaunchDaemons", run).start(["perdure.save.plist"]) is None
    assert run.asked == [
        "launchctl print system/perdure.save",
        "launchctl enable system/perdure.restore",
        "launchctl enable system/perdure.save",
        "launchctl bootstrap system /Library/LaunchDaemons/perdure.save.plist",
    ]


def test_launchd_loads_again_only_what_has_changed() -> None:
    run = Recorder()
    Launchd(True, "/d", run).start([])
    assert not [each for each in run.asked if "boot" in each]
    run = Recorder()
    Launchd(True, "/d", run).start(["perdure.save.plist"])
    assert run.asked[-2:] == [
        "launchctl bootout system/perdure.save",
        "launchctl bootstrap system /d/perdure.save.plist",
    ]


def test_launchd_unloads_the_save_alone() -> None:
    run = Recorder()
    assert Launchd(True, "/d", run).stop(["perdure.save.plist", "perdure.restore.plist"]) is None
    assert run.asked[1:] == ["launchctl bootout system/perdure.save"]
    gone = Answer(113, "", "")
    standings = Launchd(True, "/d", Recorder(print=gone)).standings(NOW)
    assert standings == dict.fromkeys(("perdure.save.plist", "perdure.restore.plist"), Standing(active=False))


def test_linger(tmp_path: Path) -> None:
    def asked(answer: Answer) -> bool | None:
        return linger("dev", Recorder(loginctl=answer), directory=str(tmp_path))

    assert asked(Answer(0, "Linger=yes\n", "")) is True
    assert asked(Answer(0, "Linger=no\n", "")) is False
    unknown = Answer(1, "", "Failed to get user: User ID 1000 is not logged in or lingering")
    assert not asked(unknown)
    (tmp_path / "dev").write_text("")
    assert asked(unknown) is True


def test_a_program_that_is_missing_or_cannot_run_is_said(tmp_path: Path) -> None:
    assert run_program(["perdure-no-such-program"]) == Answer(None, "", "perdure-no-such-program is not installed")
    answer = run_program([str(tmp_path)])
    assert answer.status is None
    assert "cannot be run" in answer.err
    assert run_program(["sh", "-c", "echo $LC_ALL; echo no >&2; exit 3"]) == Answer(3, "C\n", "no\n")
