from __future__ import annotations

import pytest

from perdure.tmux.names import command_name


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("bash", "bash"),
        ("-bash", "bash"),
        ("/usr/bin/python3.11", "python3.11"),
        ("/", "/"),
        ("/usr/bin/", "bin"),
        ("./run", "./run"),
        ("exec vim", "vim"),
        ('"sleep 1000"', "sleep"),
        ("  -  x y", "x"),
        ("nginx: worker", "nginx:"),
        ("", ""),
        ("-", ""),
        ("x\t", "x"),
    ],
)
def test_a_program_is_called_what_tmux_calls_it(word: str, name: str) -> None:
    """Held against tmux itself in tests/integration."""
    assert command_name(word) == name
