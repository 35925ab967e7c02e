"""`perdure explain`: why a pane is taken for what it is, and what a recorded screen says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.acceptance.fake_agent import ANOTHER, CONVERSATION, FakeAgent
from tests.acceptance.kit import configure, only_json, sentence, settle, wait_for
from tests.conftest import PrivateHome
from tests.contract.agents import samples
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the start time is read from /proc")

Make = Callable[..., FakeAgent]
VERSION = "claude-code-2.1.325"
KEY = "sk-" + "a1b2c3d4" * 4
APPROVAL = os.path.join(samples.FOLDER, VERSION, "screens", "approval-bash.txt")

#: An agent whose waiting shows in the title and in the last line.
ECHO = """
[agents.echo]
binaries = ["echo-agent"]
resume = ["--open", "{id}"]

[[agents.echo.screen]]
id = "title"
region = "title"
match = "^Waiting"
state = "busy"

[[agents.echo.screen]]
id = "line"
region = "last"
match = "^> Waiting"
state = "busy"
"""


@linux
def test_a_pane_is_explained_with_what_was_rejected(perdure: Perdure, tmux: TmuxServer, fake_agent: Make) -> None:
    one, two = fake_agent(tmux, "one"), fake_agent(tmux, "two")
    one.register(CONVERSATION)
    one.write_transcript("the first", CONVERSATION)
    two.write_transcript("the second", ANOTHER)
    said = only_json(perdure.ok("explain", "two", "--json"))
    assert (said["agent"], said["conversation"], said["certain"]) == ("claude", ANOTHER, False)
    assert "guessed by directory and time of writing" in said["because"]
    assert any(why.startswith(f"{CONVERSATION}: ") for why in said["rejected"])
    assert any("the agent of this pane" in line for line in said["recognition"])
    assert said["screen"]["state"] is None
    assert said["resume"][-2:] == ["--resume", ANOTHER]
    text = perdure.ok("explain", "two").out
    assert "(uncertain)" in text
    assert CONVERSATION in text


def test_a_pane_without_an_agent_says_so(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "plain")
    settle(tmux)
    said = only_json(perdure.ok("explain", "plain", "--json"))
    assert (said["agent"], said["conversation"], said["screen"]["state"]) == (None, None, None)
    assert "agent         none" in perdure.ok("explain", "plain").out


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((), 2),
        (("a", "--screen", APPROVAL), 2),
        (("--screen", APPROVAL, "--record", "x"), 2),
        (("nowhere", "--title", "x"), 2),
        (("nowhere",), 3),
        (("--screen", "/nowhere"), 3),
        (("--screen", APPROVAL, "--agent", "nobody"), 3),
        (("--screen", ""), 2),
        (("--screen", "/"), 1),
        (("--screen", APPROVAL, "--agent", ""), 2),
    ],
)
def test_wrong_arguments_get_their_code(perdure: Perdure, args: tuple[str, ...], code: int) -> None:
    ran = perdure("explain", *args)
    assert ran.code == code
    assert sentence(ran)


def test_messages_name_what_was_wrong(perdure: Perdure, private_home: PrivateHome) -> None:
    assert "both" in sentence(perdure("explain", "a", "--screen", APPROVAL)).lower()
    assert "--agent" in sentence(perdure("explain", "--screen", APPROVAL, "--agent", ""))
    nowhere = os.path.join(private_home.root, "nowhere")
    ran = perdure("explain", "a", "--socket", nowhere)
    assert ran.code == 3
    assert "No server" in sentence(ran)
    assert nowhere in sentence(ran)


def test_a_pane_that_may_be_on_a_hung_server_is_not_denied(
    perdure: Perdure, tmux_server: Callable[[str], TmuxServer], private_home: PrivateHome
) -> None:
    configure(private_home, "[tmux]\ntimeout_seconds = 1\n")
    hung, healthy = tmux_server("hung"), tmux_server("zz-healthy")
    hung.run("new-session", "-d", "-s", "one")
    healthy.run("new-session", "-d", "-s", "two")
    pid = hung.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        ran = perdure("explain", "one")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert ran.code == 4
    assert hung.socket in sentence(ran)
    configure(private_home, "")
    assert perdure("explain", "three").code == 3


def test_a_screen_that_cannot_be_read_is_not_kept(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    tmux.run("new-session", "-d", "-s", "one")
    settle(tmux)
    folder, kept = os.path.join(private_home.root, "bin"), os.path.join(private_home.root, "kept")
    os.makedirs(folder)
    wrapper = os.path.join(folder, "tmux")
    with open(wrapper, "w") as file:
        file.write('#!/bin/sh\ncase "$*" in *capture-pane*) exit 1;; esac\nPATH=${PATH#*:} exec tmux "$@"\n')
    os.chmod(wrapper, 0o755)
    ran = perdure("explain", "one", "--record", kept, "--json", env={"PATH": f"{folder}:{os.environ['PATH']}"})
    assert ran.code == 4
    assert "%0" in sentence(ran)
    said = only_json(ran)
    assert said["recorded"] is None
    assert said["screen"]["because"] == ["the screen could not be read"]
    assert not os.path.exists(kept)


@pytest.mark.parametrize("as_title", [True, False])
def test_no_key_is_in_what_is_said_of_a_recorded_screen(
    perdure: Perdure, private_home: PrivateHome, as_title: bool
) -> None:
    path = os.path.join(private_home.root, "screen.txt")
    with open(path, "w") as file:
        file.write("" if as_title else f"> Waiting for {KEY}\n")
    configure(private_home, ECHO)
    title = ("--title", f"Waiting for {KEY}") if as_title else ()
    for form in ((), ("--json",)):
        ran = perdure.ok("explain", "--screen", path, "--agent", "echo", *title, *form)
        assert "Waiting for ***" in ran.out
        assert f"the {'title' if as_title else 'last line'} says" in ran.out
        assert KEY not in ran.out


def test_the_rest_of_a_key_is_in_no_reason_either(perdure: Perdure, private_home: PrivateHome) -> None:
    path = os.path.join(private_home.root, "screen.txt")
    configure(private_home, ECHO.replace("> Waiting", "d4a1"))
    with open(path, "w") as file:
        file.write(f"{'x' * 30} {KEY[:9]}\n{KEY[9:]}\n")
    said = only_json(perdure.ok("explain", "--screen", path, "--agent", "echo", "--json"))
    assert said["rule"] == "echo.line"
    assert "a1b2" not in said["because"][-1]


@pytest.mark.parametrize("beside", [True, False])
def test_a_pipe_by_name_is_not_waited_for(perdure: Perdure, private_home: PrivateHome, beside: bool) -> None:
    path = os.path.join(private_home.root, "screen.txt")
    if beside:
        os.mkfifo(os.path.join(private_home.root, "screen.json"))
        with open(path, "w") as file:
            file.write("$ \n")
    else:
        os.mkfifo(path)
    ran = perdure("explain", "--screen", path, timeout=60)
    assert ran.code == (0 if beside else 1)
    if not beside:
        assert "regular file" in sentence(ran)


def test_a_screen_from_a_process_substitution_is_judged(perdure: Perdure) -> None:
    command = f"exec 9< <(sleep 0.2; cat '{APPROVAL}'); exec \"$@\" --screen /dev/fd/9"
    done = subprocess.run(
        ["bash", "-c", command, "-", *perdure.argv("explain", "--json")], capture_output=True, timeout=60, check=True
    )
    assert json.loads(done.stdout)["state"] == "attention"


def test_a_target_of_several_panes_is_refused(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "wide")
    tmux.run("split-window", "-t", "=wide:")
    settle(tmux)
    ran = perdure("explain", "wide")
    assert ran.code == 2
    assert "2 panes" in sentence(ran)


def test_a_recorded_screen_is_judged_with_and_without_its_agent(perdure: Perdure) -> None:
    for extra in ((), ("--agent", "claude"), ("--title", "some title")):
        said = only_json(perdure.ok("explain", "--screen", APPROVAL, "--json", *extra))
        assert (said["agent"], said["state"], said["reason"]) == ("claude", "attention", "permission")
        assert said["rule"].startswith("claude.")
        assert 0 < said["confidence"] <= 1
        assert said["frozen"] is False


@pytest.mark.parametrize(
    "text", ["", "$ \n", "I said: esc to interrupt\n", "\x00\xff binary\n", "\x1b[31m\x1b]0;t\x07\n"]
)
def test_a_screen_that_tells_nothing_has_no_state(perdure: Perdure, private_home: PrivateHome, text: str) -> None:
    path = os.path.join(private_home.root, "screen.txt")
    with open(path, "w", encoding="latin-1") as file:
        file.write(text)
    said = only_json(perdure.ok("explain", "--screen", path, "--json"))
    assert (said["agent"], said["state"], said["rule"], said["confidence"]) == (None, None, None, None)


def test_colours_in_a_recorded_screen_do_not_matter(perdure: Perdure, private_home: PrivateHome) -> None:
    path = os.path.join(private_home.root, "screen.ansi")
    with open(APPROVAL, encoding="utf-8") as source, open(path, "w", encoding="utf-8") as file:
        file.writelines(f"\x1b[1;38;5;12m{line.rstrip()}\x1b[0m\r\n" for line in source)
    assert only_json(perdure.ok("explain", "--screen", path, "--json"))["state"] == "attention"


@linux
def test_a_recording_holds_no_key_and_no_home_and_is_judged_the_same(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    folder = os.path.join(private_home.root, "bin")
    os.makedirs(folder)
    shown = os.path.join(private_home.root, "shown.txt")
    with open(APPROVAL, encoding="utf-8") as source, open(shown, "w", encoding="utf-8") as file:
        file.write(f"key {KEY} in {private_home.home}/p\n{'x' * 100} {KEY}\n" + source.read())
    script = os.path.join(folder, "claude")
    with open(script, "w") as file:
        file.write(f"#!/bin/sh\ncat '{shown}'\nwhile :; do sleep 1000; done\n")
    os.chmod(script, 0o755)
    tmux.run("new-session", "-d", "-s", "a", "-x", "120", "-y", "60", "/bin/sh", script)
    wait_for(lambda: b"Esc to cancel" in tmux.run("capture-pane", "-p", "-t", "a"), "the screen")
    kept = os.path.join(private_home.root, "kept")
    for number in (1, 2):
        said = only_json(perdure.ok("explain", "a", "--record", kept, "--json"))
        assert said["recorded"] == os.path.join(kept, f"claude-attention-{number}")
    with open(f"{said['recorded']}.txt", encoding="utf-8") as file:
        text = file.read()
    assert not any(KEY[at : at + 6] in text for at in range(len(KEY) - 5)), "also where the terminal wrapped it"
    assert private_home.home not in text
    assert "/home/dev/p" in text
    with open(f"{said['recorded']}.json", encoding="utf-8") as file:
        label = json.load(file)
    again = only_json(perdure.ok("explain", "--screen", f"{said['recorded']}.txt", "--json"))
    assert {name: again[name] for name in ("agent", "state", "reason", "rule", "frozen", "confidence")} == {
        name: label[name] for name in ("agent", "state", "reason", "rule", "frozen", "confidence")
    }
