"""Where `perdure send` cannot tell what came of it, it says so: a server that falls silent, panes that print anyway."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from perdure.model.event import EventKind
from tests.acceptance.boxing import CONFIG, Ring, screen
from tests.acceptance.kit import configure, only_json, wait_for
from tests.acceptance.simulants import Simulants
from tests.acceptance.test_send import interposed
from tests.acceptance.watching import watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import LETTING_GO, TmuxServer

#: Prints another word by itself, more than once a second and not with every look.
PRINTING = "while :; do for word in ant bee cat dog eel fox gnu; do echo $word; sleep 0.6; done; done"


@pytest.fixture
def ring(private_home: PrivateHome) -> Ring:
    return Ring(private_home)


@pytest.fixture
def at_work(private_home: PrivateHome, tmux: TmuxServer) -> Iterator[None]:
    """An agent in the session `work` that thinks for a minute."""
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", agents.path, "--think", "60")
    wait_for(lambda: "you ▸" in screen(tmux, "work:"), "the input")
    tmux.run("send-keys", "-t", "work:", "hello", "Enter")
    wait_for(lambda: "thinking" in screen(tmux, "work:"), "its work")
    yield
    agents.end_all()


def _pane(tmux: TmuxServer, name: str, script: str) -> str:
    """Start a shell's script in a session, and return its pane."""
    made = tmux.run("new-session", "-d", "-P", "-F", "#{pane_id}", "-s", name, "-n", "w", "sh", "-c", script)
    return made.decode().strip()


def test_keys_into_a_pane_that_prints_anyway_are_unconfirmed(tmux: TmuxServer, perdure: Perdure) -> None:
    pane = _pane(tmux, "clock", f"stty -echo; {PRINTING}")
    wait_for(lambda: "ant" in screen(tmux, pane), "the first word")
    ran = perdure("send", "--json", pane, "--key", "x")
    told = only_json(ran)
    assert (ran.code, told["result"]) == (4, "unconfirmed"), told
    assert told["why"] == "the keys were pressed, and the pane was printing anyway"


@pytest.mark.usefixtures("at_work")
def test_keys_for_an_agent_at_work_are_unconfirmed(perdure: Perdure) -> None:
    ran = perdure("send", "--json", "work", "--key", "x", "--timeout", "1")
    told = only_json(ran)
    assert (ran.code, told["result"]) == (4, "unconfirmed"), told
    assert told["why"] == "the keys were pressed, and the pane was printing anyway"


@pytest.mark.usefixtures("at_work")
def test_keys_that_stop_the_work_of_an_agent_are_delivered(perdure: Perdure) -> None:
    told = only_json(perdure.ok("send", "--json", "work", "--key", "C-c"))
    assert (told["result"], told["why"]) == ("delivered", "it stopped its work")


def test_keys_into_a_still_pane_that_shows_them_are_delivered(tmux: TmuxServer, perdure: Perdure) -> None:
    pane = _pane(tmux, "still", "exec cat")
    wait_for(lambda: tmux.show("#{pane_current_command}", pane) == "cat", "the program")
    told = only_json(perdure.ok("send", "--json", pane, "--key", "x"))
    assert (told["result"], told["why"]) == ("delivered", "the pane answered to the keys")


def test_keys_are_unconfirmed_when_the_server_is_gone_after_them(
    private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure
) -> None:
    pane = _pane(tmux, "work", "stty -echo; exec sleep 1000")
    wait_for(lambda: tmux.show("#{pane_current_command}", pane) == "sleep", "the program")
    env = interposed(private_home, tmux, "capture-pane", f"kill -9 {tmux.pid}; sleep 0.2", behind="send-keys")
    ran = perdure("send", "--json", pane, "--key", "x", env=env)
    told = only_json(ran)
    assert (ran.code, told["result"]) == (4, "unconfirmed"), told
    assert told["why"] == "the keys were pressed, and then its server was gone"


@pytest.mark.parametrize("remains", [False, True])
def test_keys_that_end_a_program_at_once_are_delivered(tmux: TmuxServer, perdure: Perdure, remains: bool) -> None:
    _pane(tmux, "keep", "exec cat")
    tmux.run("set-option", "-g", "remain-on-exit", "on" if remains else "off")
    pane = _pane(tmux, "work", "exec cat")
    wait_for(lambda: tmux.show("#{pane_current_command}", pane) == "cat", "the program")
    told = only_json(perdure.ok("send", "--json", pane, "--key", "C-d"))
    assert (told["result"], told["why"]) == ("delivered", "its program ended at once")


@pytest.mark.parametrize("remains", [False, True])
def test_keys_are_unconfirmed_when_the_pane_is_gone_a_while_after_them(
    tmux: TmuxServer, perdure: Perdure, remains: bool
) -> None:
    _pane(tmux, "keep", "exec cat")
    tmux.run("set-option", "-g", "remain-on-exit", "on" if remains else "off")
    pane = _pane(tmux, "work", f"stty -echo raw; echo set; head -c 1 >/dev/null; sleep 2; {LETTING_GO}")
    wait_for(lambda: "set" in screen(tmux, pane), "the program")
    ran = perdure("send", "--json", pane, "--key", "x")
    told = only_json(ran)
    assert (ran.code, told["result"]) == (4, "unconfirmed"), told
    assert told["why"] == "the keys were pressed, and its program ended a while after them"


SILENT = "and then its server did not answer"


@pytest.mark.parametrize(
    ("word", "behind", "words", "why"),
    [
        (
            "capture-pane",
            "load-buffer",
            ("hello you",),
            f"it was typed, {SILENT}: Enter was not pressed, and the text may stand in the input",
        ),
        (
            "send-keys",
            "load-buffer",
            ("hello you",),
            f"it was typed, {SILENT}: whether Enter was pressed is not known",
        ),
        ("capture-pane", "send-keys", ("hello you",), f"it was typed, {SILENT}"),
        ("capture-pane", "load-buffer", ("hello you", "--no-enter"), f"it was typed, {SILENT}"),
        ("capture-pane", "send-keys", ("--key", "x"), f"the keys were pressed, {SILENT}"),
    ],
)
def test_what_was_typed_is_unconfirmed_when_the_server_falls_silent(
    private_home: PrivateHome,
    ring: Ring,
    tmux: TmuxServer,
    perdure: Perdure,
    word: str,
    behind: str,
    words: tuple[str, ...],
    why: str,
) -> None:
    configure(private_home, f"[tmux]\ntimeout_seconds = 2.0\n{CONFIG}")
    pane = ring.start(tmux, "b")
    server = tmux.pid
    env = interposed(private_home, tmux, word, f"kill -STOP {server}", behind=behind)
    with watching(perdure) as watcher:
        watcher.await_run("b:0.0")
        try:
            ran = perdure("send", "--json", pane, *words, env=env)
        finally:
            os.kill(server, signal.SIGCONT)
        told = only_json(ran)
        assert (ran.code, told.get("result"), told.get("why")) == (4, "unconfirmed", why), told
        if "hello you" in words and "--no-enter" not in words:
            sent = watcher.await_event(EventKind.SENT)
            assert sent.event.data["result"] == "unconfirmed"


def test_a_server_that_is_silent_from_the_beginning_is_told_nothing(
    private_home: PrivateHome, ring: Ring, tmux: TmuxServer, perdure: Perdure
) -> None:
    configure(private_home, f"[tmux]\ntimeout_seconds = 1.0\n{CONFIG}")
    pane, server = ring.start(tmux, "b"), tmux.pid
    env = interposed(private_home, tmux, "load-buffer", f"kill -STOP {server}")
    try:
        ran = perdure("send", "--json", pane, "hello you", env=env)
    finally:
        os.kill(server, signal.SIGCONT)
    assert (ran.code, list(only_json(ran))) == (4, ["error"]), ran
    assert ring.told() == []
