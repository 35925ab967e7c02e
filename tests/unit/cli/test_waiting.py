"""What a restore says while it waits, to programs that follow it."""

from __future__ import annotations

import json

import pytest

from perdure.cli.restoring import say


def test_why_nothing_happens_is_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    say("memory is short, so 4 more agents wait until it is not")
    said = capsys.readouterr()
    assert json.loads(said.out) == {"said": "memory is short, so 4 more agents wait until it is not"}
    assert said.err == ""
