from __future__ import annotations

import pytest
from msgspec.structs import replace

from perdure.model.config import ScrollbackConfig
from perdure.model.topology import Link, Session
from perdure.snapshots.scrollback import tidy, wanted_panes
from tests.builders import NOON, a_pane, a_topology

TOPOLOGY = replace(
    a_topology([a_pane(0), a_pane(1, command="pass"), a_pane(2, window="@1"), a_pane(3, window="@2")]),
    sessions=tuple(Session(id=f"${n}", name=name, created_at=NOON) for n, name in enumerate(("work", "private"))),
    links=(
        Link(session="$0", window="@0", index=0),
        Link(session="$0", window="@1", index=1),
        Link(session="$1", window="@1", index=0),
        Link(session="$1", window="@2", index=1),
    ),
)


@pytest.mark.parametrize(
    ("config", "panes"),
    [
        (ScrollbackConfig(), ["%0", "%1", "%2", "%3"]),
        (ScrollbackConfig(enabled=False), []),
        (ScrollbackConfig(exclude_programs=("pass",)), ["%0", "%2", "%3"]),
        (ScrollbackConfig(exclude_sessions=("private",)), ["%0", "%1"]),
        (ScrollbackConfig(exclude_sessions=("work",)), ["%3"]),
        (ScrollbackConfig(exclude_sessions=("priv", "PRIVATE", "private*")), ["%0", "%1", "%2", "%3"]),
        (ScrollbackConfig(exclude_sessions=("private",), exclude_programs=("pass", "bash")), []),
    ],
)
def test_what_may_be_read(config: ScrollbackConfig, panes: list[str]) -> None:
    """A window that an excluded session shows is excluded, whoever else shows it."""
    assert wanted_panes(TOPOLOGY, config) == panes


@pytest.mark.parametrize(
    ("text", "tidied"),
    [(b"", b""), (b"\n\n", b""), (b"a", b"a\n"), (b"a\n\n\n", b"a\n"), (b"\n\na\n b \n", b"\n\na\n b \n")],
)
def test_only_the_empty_end_of_a_screen_is_left_out(text: bytes, tidied: bytes) -> None:
    assert tidy(text) == tidied
