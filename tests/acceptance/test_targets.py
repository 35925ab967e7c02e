"""What a target means is the same for every command: what several things are called means none of them, and ends nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.kit import only_json, sentence
from tests.acceptance.watching import Watching, watching
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

#: What every command has before its target, and behind it.
COMMANDS = {
    "kill": (("kill", "--anyway"), ()),
    "detach": (("kill", "--detach"), ()),
    "send": (("send",), ("hello",)),
    "wait": (("wait",), ("--until", "exited", "--timeout", "0")),
    "seen": (("seen",), ()),
    "follow": (("follow",), ()),
    "explain": (("explain",), ()),
}
Words = tuple[tuple[str, ...], tuple[str, ...]]


def _panes(tmux: TmuxServer) -> list[str]:
    return tmux.run("list-panes", "-a", "-F", "#{session_name}:#{window_index}.#{pane_index}").decode().splitlines()


def _refused(perdure: Perdure, words: Words, target: str) -> str:
    before, behind = words
    ran = perdure(*before, target, *behind)
    assert ran.code == 2, ran
    return sentence(ran)


# -- several servers --------------------------------------------------------------------------------------------------


@pytest.fixture
def both(tmux_server: Callable[[str], TmuxServer]) -> tuple[TmuxServer, TmuxServer]:
    """Two servers with a session `work`: its window 0 has two panes on both, window 1 on one of them."""
    default, other = tmux_server("default"), tmux_server("other")
    for each in (default, other):
        each.run("new-session", "-d", "-s", "work", "-n", "w", "cat", "-")
        each.run("split-window", "-d", "-t", "work:0", "cat", "-")
        each.run("new-window", "-d", "-t", "work:1", "-n", "v", "cat", "-")
    other.run("split-window", "-d", "-t", "work:1", "cat", "-")
    return default, other


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_what_two_servers_have_is_neither_ones(
    both: tuple[TmuxServer, TmuxServer], perdure: Perdure, words: Words
) -> None:
    before = [_panes(each) for each in both]
    for target in ("work", "work:0", "work:1", "=work:v", "work:0.1", "%1"):
        said = _refused(perdure, words, target)
        assert all(f" on {each.socket}" in said for each in both), said
    assert [_panes(each) for each in both] == before


def test_with_its_socket_a_window_is_one(both: tuple[TmuxServer, TmuxServer], perdure: Perdure) -> None:
    default, other = both
    assert only_json(perdure.ok("kill", "--json", "work:0", "--socket", other.socket))["kind"] == "window"
    assert _panes(other) == ["work:1.0", "work:1.1"]
    assert len(_panes(default)) == 3


# -- names that are ids, too ------------------------------------------------------------------------------------------


@pytest.fixture
def watched(tmux: TmuxServer, perdure: Perdure) -> Iterator[Watching]:
    """A server whose sessions are called like the pane and like the run of another, and a daemon that knows all of them."""
    for name in ("plain", "%0", "r1"):
        tmux.run("new-session", "-d", "-s", name, "-n", "w", "cat", "-")
    with watching(perdure) as watcher:
        assert watcher.await_run("plain:0.0").id == "r1"
        yield watcher


def test_a_session_that_is_called_like_a_run_is_refused_with_what_names_each(
    watched: Watching, tmux: TmuxServer, perdure: Perdure
) -> None:
    for words in COMMANDS.values():
        said = _refused(perdure, words, "r1")
        assert f"(%0 on {tmux.socket})" in said, said
        assert f"(%2 on {tmux.socket})" in said, said
        assert "say '%0' for the run, 'r1:' for the session" in said, said
    assert len(_panes(tmux)) == 3
    assert {run.id for run in watched.runs()} == {"r1", "r2", "r3"}


def test_a_pane_that_two_servers_have_is_named_with_its_socket(
    watched: Watching, tmux: TmuxServer, tmux_server: Callable[[str], TmuxServer], perdure: Perdure
) -> None:
    other = tmux_server("other")
    other.run("new-session", "-d", "-s", "elsewhere", "-n", "w", "cat", "-")
    watched.await_run("elsewhere:0.0")
    for words in COMMANDS.values():
        said = _refused(perdure, words, "r1")
        assert f"say '%0' with --socket {tmux.socket} for the run, 'r1:' for the session" in said, said
    assert len(_panes(tmux)) == 3


def test_a_session_that_is_called_like_a_pane_is_refused_with_what_names_each(
    watched: Watching, tmux: TmuxServer, perdure: Perdure
) -> None:
    for words in COMMANDS.values():
        said = _refused(perdure, words, "%0")
        assert "say 'plain:0.0' for the pane, '%0:' for the session" in said, said
    assert len(_panes(tmux)) == 3
    assert {run.id for run in watched.runs()} == {"r1", "r2", "r3"}


@pytest.mark.parametrize(("target", "pane"), [("=%0", "%1"), ("%0:", "%1"), ("=r1", "%2"), ("r1:", "%2")])
def test_with_what_tells_a_name_from_an_id_it_is_the_sessions(
    watched: Watching, tmux: TmuxServer, perdure: Perdure, target: str, pane: str
) -> None:
    session = target.strip("=:")
    assert only_json(perdure("send", "--json", target, "hello", "--timeout", "0"))["pane"] == pane
    run = only_json(perdure.ok("wait", "--json", target, "--until", "idle,busy,unknown", "--timeout", "60"))
    assert (run["pane"], run["target"]) == (pane, f"{session}:0.0")
    assert only_json(perdure.ok("seen", "--json", target))["run"] == run["run"]
    assert only_json(perdure.ok("kill", "--json", "--detach", target))["pane"] == pane
    assert only_json(perdure.ok("follow", "--json", target))["pane"] == pane
    told = only_json(perdure.ok("kill", "--json", target))
    assert (told["kind"], told["panes"]) == ("session", 1)
    assert set(_panes(tmux)) == {"plain:0.0", "%0:0.0", "r1:0.0"} - {f"{session}:0.0"}


def test_what_is_said_to_bring_a_session_back_means_that_session(
    watched: Watching, tmux: TmuxServer, perdure: Perdure
) -> None:
    said = perdure.ok("kill", "=%0").out.splitlines()[-1]
    assert said.startswith("To bring it back: perdure restore --from "), said
    words = said.partition(": perdure ")[2].replace("'", "").split()
    assert words[-1] == "%0:"
    perdure.ok(*words)
    assert sorted(_panes(tmux)) == ["%0:0.0", "plain:0.0", "r1:0.0"]


def test_a_name_behind_an_equals_sign_that_two_sessions_are_called_reaches_neither(
    watched: Watching, tmux: TmuxServer, perdure: Perdure
) -> None:
    tmux.run("new-session", "-d", "-s", "=r1", "-n", "w", "cat", "-")
    watched.await_run("=r1:0.0")
    before = _panes(tmux)
    for words in COMMANDS.values():
        for target in ("=r1", "=r1:0.0"):
            said = _refused(perdure, words, target)
            rest = target.partition(":")[2]
            assert f"say '==r1:{rest}' for '=r1', 'r1:{rest}' for 'r1'." in said, said
    assert [tmux.run("capture-pane", "-p", "-t", pane).strip() for pane in ("%2", "%3")] == [b"", b""]
    assert _panes(tmux) == before
    assert len(watched.runs()) == 4
    for target, pane in (("r1:", "%2"), ("==r1:", "%3")):
        assert only_json(perdure("send", "--json", target, "hello", "--timeout", "0"))["pane"] == pane
    # The other one is not ended for it when it is said again.
    for code in (0, 3):
        assert perdure("kill", "==r1:").code == code
    assert sorted(_panes(tmux)) == sorted(each for each in before if each != "=r1:0.0")
