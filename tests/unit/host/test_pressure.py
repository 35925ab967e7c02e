from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.host.pressure import memory_pressure

CALM = "some avg10=1.50 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n"
BUSY = "some avg10=47.31 avg60=9.00 avg300=1.00 total=99\nfull avg10=80.00 avg60=0.00 avg300=0.00 total=3\n"


class Machine:
    """The three places the kernel tells of memory pressure, as far as they are written."""

    def __init__(self, root: Path) -> None:
        self.path, self.own, self.cgroups = (str(root / name) for name in ("memory", "cgroup", "cgroups"))

    def says(self, text: str | bytes) -> None:
        Path(self.path).write_bytes(text if isinstance(text, bytes) else text.encode())

    def cgroup_says(self, text: str, *, at: str = "/user.slice/run-1.scope") -> None:
        Path(self.own).write_text(f"12:cpu:/elsewhere\n0::{at}\n")
        os.makedirs(self.cgroups + at, exist_ok=True)
        Path(f"{self.cgroups}{at}", "memory.pressure").write_text(text)

    @property
    def pressure(self) -> float | None:
        return memory_pressure(self.path, own=self.own, cgroups=self.cgroups)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_is_the_share_of_the_last_ten_seconds_in_which_anything_waited(machine: Machine) -> None:
    machine.says(BUSY)
    assert machine.pressure == 47.31


def test_a_kernel_that_does_not_tell(machine: Machine) -> None:
    assert machine.pressure is None


@pytest.mark.parametrize(("here", "there"), [(CALM, BUSY), (BUSY, CALM)])
def test_the_higher_of_the_machines_and_our_cgroups_counts(machine: Machine, here: str, there: str) -> None:
    machine.says(here)
    machine.cgroup_says(there)
    assert machine.pressure == 47.31


def test_one_of_the_two_is_enough(machine: Machine) -> None:
    machine.cgroup_says(CALM)
    assert machine.pressure == 1.5


def test_the_root_cgroup_is_the_machine(machine: Machine) -> None:
    machine.says(BUSY)
    Path(machine.own).write_text("0::/\n")
    assert machine.pressure == 47.31


def test_without_a_unified_hierarchy_the_machine_counts(machine: Machine) -> None:
    machine.says(CALM)
    Path(machine.own).write_text("4:memory:/docker/1\n")
    assert machine.pressure == 1.5


@pytest.mark.parametrize("odd", ["", "some avg10=", "some avg10=nan avg60=0 \n", "some avg10=101.00 avg60=0 \n"])
def test_what_is_no_share_is_not_known(machine: Machine, odd: str) -> None:
    machine.says(odd)
    assert machine.pressure is None


def test_a_path_that_is_none(machine: Machine) -> None:
    os.mkdir(machine.path)
    assert machine.pressure is None
    assert memory_pressure("a\0b", own=machine.own) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=80))
def test_nothing_a_file_holds_raises(machine: Machine, raw: bytes) -> None:
    machine.says(raw)
    Path(machine.own).write_bytes(b"0::/" + raw)
    pressure = machine.pressure
    assert pressure is None or 0 <= pressure <= 100


def test_here() -> None:
    pressure = memory_pressure()
    assert pressure is None or 0 <= pressure <= 100
