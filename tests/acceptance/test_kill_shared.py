"""`perdure kill` of what several sessions show: what goes with it, and what lives on, is said."""

from __future__ import annotations

import pytest

from tests.acceptance.kit import only_json
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


def _panes(tmux: TmuxServer) -> list[str]:
    return tmux.run("list-panes", "-a", "-F", "#{session_name}:#{window_index}.#{pane_index}").decode().split()


@pytest.fixture
def shared(tmux: TmuxServer) -> TmuxServer:
    """`ga` and `gb` are one group; `q` and `p` show one window of two panes."""
    tmux.run("new-session", "-d", "-s", "ga", "-n", "w", "cat", "-")
    tmux.run("new-session", "-d", "-s", "gb", "-t", "=ga")
    for name in ("q", "p"):
        tmux.run("new-session", "-d", "-s", name, "-n", "w", "cat", "-")
    tmux.run("new-window", "-d", "-t", "=q:5", "-n", "both", "cat", "-")
    tmux.run("split-window", "-d", "-t", "=q:5", "cat", "-")
    tmux.run("link-window", "-d", "-s", "=q:5", "-t", "=p:7")
    return tmux


def test_what_a_group_shows_lives_on_in_the_others(shared: TmuxServer, perdure: Perdure) -> None:
    ran = perdure.ok("kill", "ga")
    assert ran.out.startswith("session ga (1 pane): killed; what gb shows of it too lives on there.\n")
    assert "gb:0.0" in _panes(shared)
    assert "ga:0.0" not in _panes(shared)
    # Nobody is left who shows it too.
    assert only_json(perdure.ok("kill", "--json", "gb"))["shared"] == []
    assert "gb:0.0" not in _panes(shared)


def test_a_window_goes_from_all_that_show_it(shared: TmuxServer, perdure: Perdure) -> None:
    told = only_json(perdure.ok("kill", "--json", "q:5.1"))
    assert (told["kind"], told["shared"]) == ("pane", ["p"])
    assert [each for each in _panes(shared) if each[0] in "qp"] == ["p:0.0", "p:7.0", "q:0.0", "q:5.0"]
    shared.run("split-window", "-d", "-t", "=q:5", "cat", "-")
    ran = perdure.ok("kill", "p:7")
    assert ran.out.startswith("window p:7 (2 panes): killed, and gone from q too.\n")
    assert [each for each in _panes(shared) if each[0] in "qp"] == ["p:0.0", "q:0.0"]
