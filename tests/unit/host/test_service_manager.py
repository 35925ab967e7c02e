"""What is said to systemctl and launchctl, and what is made of their answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from perdure.host.service_manager import Answer, Launchd, Standing, Systemd, linger, run_program

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
def test_starting_enables_both_and_starts_the_daemon_alone(system: bool, begin: str) -> None:
    run = Recorder()
    assert Systemd(system, run).start(["perdure-up.service"]) is None
    assert run.asked == [
        f"{begin} daemon-reload",
        f"{begin} enable perdure-restore.service perdure-up.service",
        f"{begin} restart perdure-up.service",
    ]


def test_what_could_not_be_done_comes_with_the_line_that_does_it() -> None:
    run = Recorder(enable=Answer(1, "", "Failed to enable unit: Access denied\nSee the logs\n"))
    problem = Systemd(False, run).start([])
    assert problem is not None
    assert "Access denied; run later: systemctl --user daemon-reload && " in problem
    assert problem.endswith("systemctl --user restart perdure-up.service")
    silent = Recorder(enable=Answer(7, "", ""))
    assert "systemctl enable perdure-restore.service perdure-up.service ended with 7;" in (
        Systemd(True, silent).start([]) or ""
    )


def test_stopping_never_stops_the_unit_that_tmux_lives_in() -> None:
    run = Recorder()
    assert Systemd(False, run).stop(["perdure-up.service", "perdure-restore.service"]) is None
    assert run.asked == [
        "systemctl --user disable --now perdure-up.service",
        "systemctl --user disable perdure-restore.service",
    ]
    run = Recorder()
    assert Systemd(False, run).stop(["perdure-save.service", "perdure-save.timer"]) is None
    assert run.asked == ["systemctl --user disable --now perdure-save.timer"]
    run = Recorder()
    assert Systemd(False, run).stop(["perdure-save.service"]) is None
    assert run.asked == []


# In the form of systemd 252: a paragraph for each unit, numbers that end in Monotonic as they are.
SHOWN = """\
Id=perdure-up.service
LoadState=loaded
ActiveState={active}
SubState={sub}
UnitFileState=enabled
Result=exit-code
ExecMainStartTimestampMonotonic={last}

Id=perdure-restore.service
LoadState=not-found
ActiveState=inactive
SubState=dead
UnitFileState=
Result=success
ExecMainStartTimestampMonotonic=0
"""


@pytest.mark.parametrize(
    ("active", "sub", "runs"),
    [
        ("active", "running", True),
        ("activating", "start", True),
        ("activating", "auto-restart", False),
        ("deactivating", "stop-post", False),
        ("inactive", "dead", False),
    ],
)
def test_what_systemd_says_is_understood(active: str, sub: str, runs: bool) -> None:
    text = SHOWN.format(active=active, sub=sub, last=int((time.monotonic() - 20) * 1_000_000))
    found = Systemd(False, Recorder(show=Answer(0, text, ""))).standings(NOW)
    up = found["perdure-up.service"]
    assert (up.enabled, up.active, up.result) == (True, runs, "exit-code")
    assert up.last_run is not None
    assert up.last_run <= NOW - timedelta(seconds=20)
    assert found["perdure-restore.service"] == Standing(enabled=False, active=False)


@pytest.mark.parametrize("answer", [Answer(1, "", "Failed to connect to bus"), Answer(None, "", ""), Answer(0, "", "")])
def test_no_answer_is_not_taken_for_one(answer: Answer) -> None:
    assert Systemd(False, Recorder(show=answer)).standings(NOW) == {}


def test_launchd_loads_the_daemon_and_leaves_the_restore_to_the_next_login() -> None:
    run = Recorder(print=Answer(113, "", "Could not find service"))
    assert Launchd(True, "/Library/LaunchDaemons", run).start(["perdure.up.plist"]) is None
    assert [each for each in run.asked if "print" not in each] == [
        "launchctl enable system/perdure.restore",
        "launchctl enable system/perdure.up",
        "launchctl bootstrap system /Library/LaunchDaemons/perdure.up.plist",
    ]


def test_launchd_loads_again_only_what_has_changed() -> None:
    run = Recorder()
    Launchd(True, "/d", run).start([])
    assert not [each for each in run.asked if "boot" in each]
    assert run.asked[-1] == "launchctl kickstart -k system/perdure.up"
    run = Recorder()
    Launchd(True, "/d", run).start(["perdure.up.plist"])
    assert run.asked[-2:] == ["launchctl bootout system/perdure.up", "launchctl bootstrap system /d/perdure.up.plist"]


def test_launchd_unloads_what_runs_and_not_the_restore() -> None:
    run = Recorder()
    assert Launchd(True, "/d", run).stop(["perdure.up.plist", "perdure.restore.plist", "perdure.save.plist"]) is None
    assert [each for each in run.asked if "print" not in each] == [
        "launchctl bootout system/perdure.up",
        "launchctl bootout system/perdure.save",
    ]
    gone = Answer(113, "", "")
    standings = Launchd(True, "/d", Recorder(print=gone)).standings(NOW)
    assert standings == dict.fromkeys(("perdure.up.plist", "perdure.restore.plist"), Standing(active=False))


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
