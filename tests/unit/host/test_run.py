"""Running a program to its end."""

from __future__ import annotations

import pytest

from perdure.errors import PerdureError
from perdure.host.run import run


def test_a_program_gets_the_environment_and_the_directory_it_is_given_and_nothing_else(tmp_path: object) -> None:
    ran = run(["/bin/sh", "-c", 'echo "$A$HOME"; pwd; echo no >&2; exit 3'], environ={"A": "b"}, cwd="/", timeout=20)
    assert (ran.status, ran.out, ran.err) == (3, b"b\n/\n", "no\n")


def test_one_that_does_not_end_is_ended_and_said() -> None:
    with pytest.raises(PerdureError, match="did not come to an end"):
        run(["/bin/sleep", "600"], environ={}, cwd="/", timeout=0.1)
