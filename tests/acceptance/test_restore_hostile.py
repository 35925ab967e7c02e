"""Names that mean something to tmux, and texts that mean something to a shell: none of them is ever obeyed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from perdure.demo.program import install
from perdure.tmux.quote import line, literal
from tests.acceptance.kit import save, wait_for
from tests.acceptance.restoring import (
    Picture,
    await_calm,
    await_same,
    contents,
    foreground,
    restored,
    user_configuration,
)
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import PATIENCE, TmuxServer

#: What each reader on the way would run: a shell, tmux's formats, tmux's parser, a terminal.
HOSTILE = (
    "x & touch PWNED",
    "$(touch PWNED)",
    "`touch PWNED`",
    "#(touch PWNED)",
    "'; touch PWNED; '",
    '"; touch PWNED; "',
    "one\ntouch PWNED\n",
    "\r\ntouch PWNED",
    "| touch PWNED #",
    "${x:-$(touch PWNED)}",
    "#{?1,#(touch PWNED),} #{E:x}",
    "#[fg=red]##(touch PWNED)",
    "}; run-shell 'touch PWNED' {",
    "\\\"; run-shell 'touch PWNED'; \\",
    "\\$(touch PWNED)",
    "-c touch PWNED",
    "--",
    ";",
    "~ $HOME * %1 @1 =",
    "\x1b]2;#(touch PWNED)\x07",
    "%end 1 1 1",
    "ünï 日本 \\033 \\n",
)
#: Names of sessions that are targets, options or patterns when they stand where one of those may.
TARGETS = ("w1", "w10", "w", "w*", "=w1", "$0", "@1", "%2", "-x", "{last}", "!", "1", "w1:2", "perdure-second")

TEXT = st.builds(
    "".join,
    st.lists(
        st.one_of(st.sampled_from(HOSTILE), st.text("'\"`$#({;&|\\\n\t ~=-a0é", max_size=4)), min_size=1, max_size=3
    ),
)


def panes_of(tmux: TmuxServer) -> dict[str, str]:
    """The process of each pane, by the name of its session."""
    rows = tmux.run("list-panes", "-a", "-F", "#{pane_pid} #{session_name}").decode().splitlines()
    return {name: pid for pid, _, name in (row.partition(" ") for row in rows)}


def test_a_name_is_never_taken_for_another(private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure) -> None:
    for number, name in enumerate(TARGETS):
        directory = os.path.join(private_home.home, str(number))
        os.mkdir(directory)
        tmux.run("new-session", "-d", "-s", name, "-n", f"{number}", "-c", directory, "-x", "90", "-y", "30")
    before = await_calm(tmux)
    assert len(before) == len(TARGETS)
    save(perdure)
    for rest in (0, 1):
        pids = panes_of(tmux)
        rows = tmux.run("list-sessions", "-F", "#{session_id}").decode().split()
        gone = [id for id in rows if int(id[1:]) % 2 == rest]
        for id in gone:
            tmux.run("kill-session", "-t", id)
        left = panes_of(tmux)
        answer = restored(perdure)
        assert answer["summary"]["created"] == len(TARGETS) - len(left) > 0
        await_same(before, tmux)
        assert {name: pid for name, pid in panes_of(tmux).items() if name in left} == left
        assert {name for name in pids if name not in left} == set(panes_of(tmux)) - set(left)


def test_w1_comes_back_beside_a_living_w10_on_another_server(tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "w1", "-n", "one", ";", "new-window", "-d", "-t", "w1:5", "-n", "five")
    before = await_calm(tmux)
    save(perdure)
    tmux.kill9()
    tmux.run("new-session", "-d", "-s", "w10", "-n", "ten", ";", "new-session", "-d", "-s", "w", "-n", "w")
    others = await_calm(tmux)
    restored(perdure)
    await_same({**others, **before}, tmux)


class Trap:
    """A server with a session for each text, which is in every place a text can be in."""

    def __init__(self, home: PrivateHome, tmux: TmuxServer, texts: Sequence[str]) -> None:
        self._root = home.root
        self._folder = os.path.join(home.root, "w")
        # Nobody else's, wherever it may turn up.
        self._canary = f"PWNED-{os.path.basename(home.root)}"
        self.tmux = tmux
        user_configuration(home, "set -g automatic-rename off\n")
        shutil.rmtree(self._folder, ignore_errors=True)
        commands: list[Sequence[str]] = []
        for number, text in enumerate(texts):
            commands += self._session(number, text.replace("PWNED", self._canary))
        # One line each, so that a text tmux does not take in one place costs only that place.
        script = b"".join(map(line, commands))
        tmux.run("new-session", "-d", "-s", "boot", ";", "set-option", "-g", "automatic-rename", "off")
        words = ["tmux", "-u", "-S", tmux.socket, "source-file", "-"]
        subprocess.run(words, input=script, capture_output=True, timeout=PATIENCE, check=False)
        tmux.run("kill-session", "-t", "=boot")

    def _session(self, number: int, text: str) -> list[Sequence[str]]:
        directory = os.path.join(self._folder, str(number), text.replace("/", "_").strip("\0") or "_")
        os.makedirs(directory, exist_ok=True)
        name = f"{number} {text}"
        made = ["new-session", "-d", "-s", literal(name), "-n", literal(text), "-c", literal(directory)]
        # tail goes on for ever about a file that is not there.
        return [
            [*made, "-e", f"FIRST={text}", "--", "tail", "-F", "--", text, "", text],
            ["select-pane", "-T", literal(text)],
            ["set-environment", "SECOND", text],
            ["set-environment", f"NAME {text.replace('=', ' ')}", "x"],
            ["set-option", "@note", text],
            ["set-option", "-w", "@note", text],
            ["set-option", "-p", "@note", text],
            ["rename-session", "--", literal(text + str(number))] if number % 2 else ["refresh-client"],
            ["rename-window", "--", literal(text)] if number % 2 else ["refresh-client"],
        ]

    def assert_nothing_ran(self) -> None:
        """Fail the test when anything was obeyed, wherever that was."""
        found = [folder for folder, _, names in os.walk(self._root) if self._canary in names]
        found += [folder for folder in ("/", os.getcwd()) if os.path.exists(os.path.join(folder, self._canary))]
        assert not found


def as_shells(shown: Picture) -> Picture:
    """The same with a shell in place of each program."""
    for session in shown.values():
        for window in session["windows"].values():
            for pane in window["panes"]:
                pane["argv"] = ["a shell"]
    return shown


def test_no_text_is_ever_obeyed(private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure) -> None:
    def crash_and_restore(trap: Trap, before: Picture, *words: str) -> None:
        tmux.kill9()
        ran = perdure("restore", *words, cwd=private_home.home)
        assert ran.code == 0, (ran.out, ran.err)
        await_same(before, tmux)
        trap.assert_nothing_ran()

    @given(st.lists(TEXT, min_size=4, max_size=8))
    @settings(
        max_examples=6,
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
        suppress_health_check=[HealthCheck.too_slow],
        report_multiple_bugs=False,
    )
    @example(list(HOSTILE))
    def is_never_obeyed(texts: list[str]) -> None:
        try:
            # Else the biggest of all examples would be what was there before a crash.
            shutil.rmtree(private_home.state, ignore_errors=True)
            trap = Trap(private_home, tmux, texts)
            before = await_calm(tmux)
            trap.assert_nothing_ran()
            save(perdure)
            crash_and_restore(trap, before, "--programs", "all")
            crash_and_restore(trap, as_shells(before), "--programs", "none")
        finally:
            tmux.kill()

    is_never_obeyed()


def test_what_waits_for_enter_is_not_obeyed_either(
    private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure
) -> None:
    model = "$(touch PWNED) `touch PWNED` '; touch PWNED; ' #(touch PWNED) x & touch PWNED"
    program = install(private_home.home)
    tmux.run("new-session", "-d", "-s", "a", "-c", private_home.home, program, "--model", model, "remember #(me)")
    wait_for(lambda: any("Noted as number 1" in text for text in contents(tmux, "a:")), "an answer")
    argv = foreground(int(tmux.show("#{pane_pid}", "a:")))[0]
    save(perdure)
    tmux.kill9()
    (step,) = restored(perdure, "--lazy")["steps"]
    assert (step["action"], step["result"]) == ("resume", "unverified")
    assert step["argv"][-2:] == ["--resume", step["conversation"]] or model in step["argv"]
    wait_for(lambda: any("It will run:" in text for text in contents(tmux, "a:")), "the question")
    tmux.run("send-keys", "-t", "a:", "Enter")
    wait_for(lambda: any("Noted as number 1" in text for text in contents(tmux, "a:")), "the conversation")
    wait_for(lambda: "--model" in foreground(int(tmux.show("#{pane_pid}", "a:")))[0], "the agent")
    now = foreground(int(tmux.show("#{pane_pid}", "a:")))[0]
    assert now[now.index("--model") + 1] == model == argv[argv.index("--model") + 1]
    assert not os.path.exists(os.path.join(private_home.home, "PWNED"))
