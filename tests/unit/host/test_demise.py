from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.host.demise import Demise, DemiseKind, Vigil, cause
from perdure.host.exits import Exit
from perdure.model.run import Program

#: No such process, so that nothing but what is written here can be asked.
PROGRAM = Program(pid=2**22 + 1, start_ticks=1)
KILLED, ENDED = Exit(signal=9), Exit(status=0)


class Machine:
    """A /proc and a tree of cgroups, as far as they are written."""

    def __init__(self, root: Path) -> None:
        self.proc, self.cgroups = root / "proc", root / "cgroups"
        self.boot("first")
        self.cgroups.mkdir()

    def boot(self, id: str) -> None:
        self._write(self.proc / "sys/kernel/random/boot_id", f"{id}\n")

    def lives_in(self, line: str) -> None:
        self._write(self.proc / str(PROGRAM.pid) / "cgroup", f"12:cpu,cpuacct:/elsewhere\n{line}\n")

    def kills(self, path: str, count: int) -> None:
        """In a cgroup of the second version."""
        self._write(
            self.cgroups / path / "memory.events", f"low 0\noom {count + 5}\noom_kill {count}\noom_group_kill 0\n"
        )

    def old_kills(self, path: str, count: int) -> None:
        self._write(self.cgroups / "memory" / path / "memory.oom_control", f"under_oom 0\noom_kill {count}\n")

    def machine_kills(self, count: int) -> None:
        self._write(self.proc / "vmstat", "nr_free_pages 12\n" * 1000 + f"oom_kill {count}\nthp 0\n")

    def vigil(self) -> Vigil:
        return Vigil.of(PROGRAM, proc=str(self.proc), cgroups=str(self.cgroups))

    def cause(self, vigil: Vigil, exit: Exit | None = None) -> Demise:
        return cause(vigil, exit, proc=str(self.proc))

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def scope(machine: Machine) -> Machine:
    """The server is in a scope of its own below a slice."""
    machine.lives_in("0::/user.slice/tmux.scope")
    machine.kills("user.slice/tmux.scope", 1)
    machine.kills("user.slice", 4)
    machine.machine_kills(9)
    return machine


def test_where_nothing_is_told_nothing_is_claimed(machine: Machine) -> None:
    demise = machine.cause(machine.vigil())
    assert (demise.kind, demise.detail) == (DemiseKind.UNKNOWN, {})
    assert "cannot be known" in demise.sentence


def test_how_it_ended_is_all_that_is_said_when_nothing_ran_out(scope: Machine) -> None:
    vigil = scope.vigil()
    killed, ended, failed, crashed, unknown = (
        scope.cause(vigil, exit) for exit in (KILLED, ENDED, Exit(status=3), Exit(signal=11), None)
    )
    assert (killed.kind, killed.detail["signal"]) == (DemiseKind.SIGNAL, "SIGKILL")
    assert killed.sentence == "The tmux server was killed (SIGKILL)."
    assert (ended.kind, ended.detail["exit_status"]) == (DemiseKind.EXITED, 0)
    assert (failed.kind, failed.detail["exit_status"]) == (DemiseKind.EXITED, 3)
    assert crashed.sentence == "The tmux server crashed (SIGSEGV)."
    assert unknown.kind is DemiseKind.UNKNOWN
    for demise in (killed, ended, failed, crashed, unknown):
        assert "memory" not in demise.sentence


def test_killed_while_its_cgroup_lost_somebody_is_probably_for_want_of_memory(scope: Machine) -> None:
    vigil = scope.vigil()
    scope.kills("user.slice/tmux.scope", 3)
    for exit in (KILLED, None, Exit()):
        demise = scope.cause(vigil, exit)
        assert demise.kind is DemiseKind.OOM
        assert "probably" in demise.sentence
        assert "killed 2 processes in its cgroup" in demise.sentence
        assert demise.detail["memory_kills"] == 2


def test_what_ended_by_itself_was_not_killed_whoever_else_was(scope: Machine) -> None:
    vigil = scope.vigil()
    scope.kills("user.slice/tmux.scope", 2)
    assert scope.cause(vigil, ENDED).kind is DemiseKind.EXITED
    assert "killed a process in its cgroup" in scope.cause(vigil, ENDED).sentence
    assert scope.cause(vigil, Exit(signal=11)).kind is DemiseKind.SIGNAL


def test_its_own_cgroup_knows_better_than_those_around_it(scope: Machine) -> None:
    vigil = scope.vigil()
    scope.kills("user.slice", 40)
    scope.machine_kills(90)
    assert scope.cause(vigil, KILLED).kind is DemiseKind.SIGNAL


def test_a_cgroup_that_went_with_the_server_was_counted_in_the_one_around_it(scope: Machine) -> None:
    vigil = scope.vigil()
    for name in ("memory.events", "."):
        place = scope.cgroups / "user.slice/tmux.scope" / name
        place.unlink() if place.is_file() else place.rmdir()
    assert scope.cause(vigil, KILLED).kind is DemiseKind.SIGNAL
    scope.kills("user.slice", 5)
    demise = scope.cause(vigil, KILLED)
    assert demise.kind is DemiseKind.OOM
    assert "in a cgroup around its own" in demise.sentence


def test_another_cgroup_of_the_same_name_is_not_asked(scope: Machine) -> None:
    vigil = scope.vigil()
    (scope.cgroups / "user.slice/tmux.scope").rename(scope.cgroups / "gone")
    scope.kills("user.slice/tmux.scope", 8)
    assert scope.cause(vigil, KILLED).kind is DemiseKind.SIGNAL


def test_where_only_the_machine_counts_a_kill_it_takes_a_kill_to_suspect_it(machine: Machine) -> None:
    machine.machine_kills(1)
    vigil = machine.vigil()
    machine.machine_kills(2)
    assert machine.cause(vigil, KILLED).kind is DemiseKind.OOM
    demise = machine.cause(vigil)
    assert demise.kind is DemiseKind.UNKNOWN
    assert "killed a process on this machine" in demise.sentence


def test_the_first_version_of_cgroups_counts_too(machine: Machine) -> None:
    machine.lives_in("4:memory:/box\n0::/")
    machine.old_kills("box", 0)
    vigil = machine.vigil()
    assert machine.cause(vigil, KILLED).kind is DemiseKind.SIGNAL
    machine.old_kills("box", 1)
    assert machine.cause(vigil, KILLED).kind is DemiseKind.OOM


def test_what_ended_with_the_machine_ended_with_the_machine(scope: Machine) -> None:
    vigil = scope.vigil()
    scope.boot("second")
    scope.machine_kills(0)
    assert scope.cause(vigil, KILLED).kind is DemiseKind.REBOOT


@given(st.binary(max_size=80), st.integers(min_value=-1, max_value=64))
def test_nothing_that_is_told_raises(told: bytes, number: int) -> None:
    vigil = Vigil(pid=PROGRAM.pid, start_ticks=1, boot_id="")
    assert cause(vigil, Exit(signal=number), proc="/nowhere").sentence
    assert not Vigil.of(PROGRAM, proc=told.hex(), cgroups="/nowhere").cgroups
