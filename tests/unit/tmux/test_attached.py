"""Where a client may be attached."""

from __future__ import annotations

import pytest

from perdure.tmux.attached import is_safe


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ("3.2", False),
        ("3.3a", False),
        ("3.7", False),
        ("next-3.7", False),
        ("3.8", True),
        ("3.10a", True),
        ("4.0", True),
    ],
)
def test_nobody_is_attached_to_a_tmux_that_may_die_of_it(version: str, safe: bool) -> None:
    assert is_safe(version) is safe


@pytest.mark.parametrize("version", ["", "master", "openbsd"])
def test_what_is_not_known_is_not_trusted(version: str) -> None:
    assert not is_safe(version)
