"""What restored panes do, in real panes of a real tmux, from every shell that is installed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.host.scratch import Kind, Scratch
from perdure.host.users import current_user
from perdure.model.text import decode, encode
from perdure.model.wrapped import Stage, read_wrapper
from perdure.restore.replay import replayed
from perdure.tmux.wrap import Start, command
from tests.leftovers import let_fish_be
from tests.tmux_server import PATIENCE, TmuxServer

#: Which files a shell reads at login and when somebody is at it.
STARTUP = {
    "bash": {".bash_profile": "export AT_LOGIN=yes", ".bashrc": "export AT_PROMPT=yes"},
    "zsh": {".zprofile": "export AT_LOGIN=yes", ".zshrc": "export AT_PROMPT=yes"},
    "fish": {
        ".config/fish/config.fish": "status is-login; and set -gx AT_LOGIN yes; status is-interactive; and set -gx AT_PROMPT yes"
    },
    "dash": {".profile": "export AT_LOGIN=yes ENV=$HOME/.shrc", ".shrc": "export AT_PROMPT=yes"},
}
#: What stands for a shell's own hook of direnv.
HOOKS = {
    "bash": "_direnv_hook() { export HOOKED=yes; }",
    "zsh": "_direnv_hook() { export HOOKED=yes; }",
    "fish": "function __direnv_export_eval; set -gx HOOKED yes; end",
}

AGENT = """
import json, os, signal, sys, time
home, how = os.environ["HOME"], sys.argv[1]
ignored = next(line for line in open("/proc/self/status") if line.startswith("SigIgn")).split()[1]
told = {
    "argv": [os.fsencode(word).decode("latin-1") for word in sys.argv[2:]],
    "environ": {name: os.environb.get(name.encode(), b"").decode("latin-1")
                for name in ("AT_LOGIN", "AT_PROMPT", "HOOKED", "LAID")},
    "cwd": os.fsencode(os.getcwd()).decode("latin-1"),
    "in front": os.getpgrp() == os.tcgetpgrp(0),
    "ignores ^C": bool(int(ignored, 16) & 1 << signal.SIGINT - 1),
    "pid": os.getpid(),
    "parent": os.getppid(),
}
with open(home + "/told.new", "w") as file:
    json.dump(told, file)
os.rename(home + "/told.new", home + "/told")
if how == "interrupted":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
if how == "stopped":
    os.kill(os.getpid(), signal.SIGSTOP)
while how in ("stays", "interrupted"):
    time.sleep(1)
sys.exit(int(how) if how.isdigit() else 0)
"""


class Panes:
    """Panes of one server, by what they run."""

    def __init__(self, tmux: TmuxServer, home: str) -> None:
        self.tmux, self.home = tmux, home
        tmux.run("new-session", "-d", "-s", "keeps the server", "-x", "100", "-y", "30", "sleep", "1000")
        with open(self.at("agent"), "w", encoding="utf-8") as file:
            file.write(f"#!{sys.executable}\n{AGENT}")
        os.chmod(self.at("agent"), 0o755)

    def at(self, name: str) -> str:
        return os.path.join(self.home, name)

    def open(self, start: Start, *, cwd: str | None = None, sh: str | None = None) -> str:
        words = command(start)
        if sh:
            words = tuple(word.replace('/bin/sh -c "$run"', f'{sh} -c "$run"') for word in words)
            words = (*sh.split(), *words[1:])
        flags = ("-d", "-x", "100", "-y", "30", "-P", "-F", "#{pane_id}", "-c", cwd or self.home)
        # On tmux's own command line a last character `;` ends a command.
        words = tuple(f"{word[:-1]}\\;" if word.endswith(";") else word for word in words)
        return self.tmux.run("new-session", *map(encode, (*flags, *words))).decode().strip()

    def agent(self, shell: str, how: str, *words: str, sh: str | None = None) -> str:
        """Start the agent in a pane and return the pane once the agent has told of itself."""
        if os.path.exists(self.at("told")):
            os.unlink(self.at("told"))
        start = Start(
            argv=(self.at("agent"), how, *words),
            shell=shell,
            status=self.at("status"),
            name="agent",
            again="agent --again",
            environ={"LAID": "over"},
        )
        pane = self.open(start, sh=sh)
        wait_for(lambda: os.path.exists(self.at("told")))
        return pane

    def told(self) -> dict[str, object]:
        with open(self.at("told"), encoding="utf-8") as file:
            found: dict[str, object] = json.load(file)
        return found

    def screen(self, pane: str) -> str:
        return self.tmux.run("capture-pane", "-p", "-J", "-t", pane).decode()

    def wait_until(self, pane: str, text: str) -> None:
        wait_for(lambda: text in self.screen(pane), lambda: self.screen(pane))

    def type(self, pane: str, *keys: str) -> None:
        self.tmux.run("send-keys", "-t", pane, *keys)

    def first_process(self, pane: str) -> list[str]:
        pid = self.tmux.show("#{pane_pid}", pane)
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [decode(word) for word in file.read().split(b"\0")[:-1]]

    def wait_for_shell(self, pane: str, shell: str) -> None:
        """Wait until the login shell is all that is left in a pane, and does what it is told."""
        wait_for(lambda: self.first_process(pane) == [shell, "-l"], lambda: self.screen(pane))
        self.type(pane, "echo it is a sh''ell", "Enter")
        self.wait_until(pane, "it is a shell")


def wait_for(what: Callable[[], bool], otherwise: Callable[[], str] = lambda: "") -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, f"it never happened\n{otherwise()}"
        time.sleep(0.01)


def state_of(pid: object) -> str:
    """What the kernel says a process does; "" of none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return ""


def is_alive(pid: object) -> bool:
    return state_of(pid) not in ("", "Z")


@pytest.fixture
def panes(tmux: TmuxServer) -> Panes:
    if not os.path.isdir("/proc/self"):
        pytest.skip("the simulated agent reads /proc")
    return Panes(tmux, os.environ["HOME"])


@pytest.fixture(params=list(STARTUP))
def shell(request: pytest.FixtureRequest, panes: Panes) -> str:
    """Path of a shell whose start-up files each leave a trace."""
    name = str(request.param)
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    let_fish_be(panes.home)
    for file_name, text in STARTUP[name].items():
        os.makedirs(os.path.dirname(panes.at(file_name)), exist_ok=True)
        with open(panes.at(file_name), "w", encoding="utf-8") as file:
            file.write(text + "\n" + HOOKS.get(name, "") + "\n")
    return path


def test_an_agent_starts_from_its_users_own_shell_as_if_typed_there(panes: Panes, shell: str) -> None:
    pane = panes.agent(shell, "stays", "x & touch PWNED", "$(touch PWNED)", "-c", "a\nb", "'\"\\")
    told = panes.told()
    hooked = "yes" if os.path.basename(shell) in HOOKS else ""
    assert told["argv"] == ["x & touch PWNED", "$(touch PWNED)", "-c", "a\nb", "'\"\\"]
    assert told["environ"] == {"AT_LOGIN": "yes", "AT_PROMPT": "yes", "HOOKED": hooked, "LAID": "over"}
    assert told["in front"]
    assert not told["ignores ^C"]
    assert str(told["parent"]) == panes.tmux.show("#{pane_pid}", pane), "nothing but our own sh waits for it"
    assert panes.tmux.show("#{pane_current_command}", pane) != "sh"
    found = read_wrapper(panes.first_process(pane))
    assert found is not None
    assert (found.stage, found.status) == (Stage.RUNNING, panes.at("status"))
    assert found.argv[:2] == (panes.at("agent"), "stays")
    assert "PWNED" not in os.listdir(panes.home)


@pytest.mark.parametrize("how", ["0", "3"])
def test_a_login_shell_and_nothing_else_stays(panes: Panes, shell: str, how: str) -> None:
    pane = panes.agent(shell, how)
    panes.wait_until(pane, f"perdure: agent ended with status {how}.")
    panes.wait_for_shell(pane, shell)
    assert ("To try again: agent --again" in panes.screen(pane)) is (how != "0")
    with open(panes.at("status"), encoding="ascii") as file:
        assert file.read() == f"{how}\n"


@pytest.mark.parametrize("sh", ["/bin/sh", "dash", "bash --posix", "busybox sh"])
def test_ctrl_c_ends_the_agent_and_not_the_pane(panes: Panes, sh: str) -> None:
    if shutil.which(sh.split()[0]) is None:
        pytest.skip(f"{sh} is not installed")
    pane = panes.agent("/bin/sh", "interrupted", sh=sh)
    panes.type(pane, "C-c")
    panes.wait_until(pane, "perdure: agent ended with status 130.")
    panes.wait_for_shell(pane, "/bin/sh")


@pytest.mark.parametrize("sh", ["/bin/sh", "dash", "bash --posix", "busybox sh"])
def test_a_killed_agent_leaves_a_shell_with_its_terminal_put_right(panes: Panes, sh: str) -> None:
    if shutil.which(sh.split()[0]) is None:
        pytest.skip(f"{sh} is not installed")
    pane = panes.agent("/bin/sh", "stays", sh=sh)
    tty = panes.tmux.show("#{pane_tty}", pane)
    with open(tty, "r+b", buffering=0) as file:
        subprocess.run(["stty", "raw", "-echo"], stdin=file, check=True)
        file.write(b"\x1b[?1049h\x1b[?1003h\x1b[?25l")
    wait_for(lambda: panes.tmux.show("#{alternate_on}#{mouse_any_flag}#{cursor_flag}", pane) == "110")
    os.kill(int(str(panes.told()["pid"])), signal.SIGKILL)
    panes.wait_until(pane, "perdure: agent ended with status 137.")
    panes.wait_for_shell(pane, "/bin/sh")
    assert panes.tmux.show("#{alternate_on}#{mouse_any_flag}#{cursor_flag}", pane) == "001"
    assert "echo it is" in panes.screen(pane), "what is typed is seen"


def test_a_stopped_agent_is_gone_on_with(panes: Panes, shell: str) -> None:
    pane = panes.agent(shell, "stopped")
    panes.wait_until(pane, "perdure: agent is stopped. Leave this shell to go on with it.")
    panes.type(pane, "exit", "Enter")
    panes.wait_until(pane, "perdure: agent ended with status 0.")
    panes.wait_for_shell(pane, shell)


def test_ctrl_z_gives_a_shell_and_leaving_it_the_agent(panes: Panes) -> None:
    pane = panes.agent("/bin/sh", "stays")
    for _ in range(2):
        panes.type(pane, "C-z")
        wait_for(lambda: panes.tmux.show("#{pane_current_command}", pane) == "sh")
        panes.type(pane, "exit", "Enter")
        wait_for(lambda: panes.tmux.show("#{pane_current_command}", pane) != "sh")
        # It is in front before it goes on, and a Ctrl-Z in between is forgotten.
        wait_for(lambda: state_of(panes.told()["pid"]) in ("R", "S"))
    assert is_alive(panes.told()["pid"])


@pytest.mark.parametrize("how", ["stays", "stopped"])
def test_closing_the_pane_ends_the_agent(panes: Panes, how: str) -> None:
    pane = panes.agent("/bin/sh", how)
    first, agent = panes.tmux.show("#{pane_pid}", pane), panes.told()["pid"]
    panes.tmux.run("kill-pane", "-t", pane)
    wait_for(lambda: not is_alive(first) and not is_alive(agent))


def test_a_gate_holds_the_agent_and_ctrl_c_there_leaves_a_shell(panes: Panes) -> None:
    scratch = Scratch(os.environ["PERDURE_STATE_DIR"], "r1", current_user())
    scratch.prepare({1: b"first\n", 2: b"second\n"}, [1, 2])
    opened = {
        n: panes.open(
            Start(
                argv=("sh", "-c", f"echo agent {n} ran; sleep 1000"),
                shell="/bin/sh",
                text=scratch.path(n, Kind.TEXT),
                gate=scratch.path(n, Kind.GATE),
                status=scratch.path(n, Kind.STATUS),
                name=f"agent {n}",
            )
        )
        for n in (1, 2)
    }
    wait_for(lambda: not scratch.unprinted())
    for n, pane in opened.items():
        found = read_wrapper(panes.first_process(pane))
        assert found is not None
        assert (found.stage, found.gate) == (Stage.PRELUDE, scratch.path(n, Kind.GATE))
        assert "ran" not in panes.screen(pane)
    scratch.release(1)
    panes.wait_until(opened[1], "agent 1 ran")
    wait_for(lambda: _waits_for_a_line(panes.tmux.show("#{pane_pid}", opened[2])))
    panes.type(opened[2], "C-c")
    panes.wait_until(opened[2], "perdure: agent 2 was not started.")
    panes.wait_for_shell(opened[2], "/bin/sh")
    assert (scratch.waiting(), scratch.statuses()) == (set(), {2: 130})


@pytest.mark.parametrize(("key", "runs"), [("Enter", True), ("C-c", False), ("C-d", False)])
def test_enter_starts_what_asks_for_it(panes: Panes, key: str, runs: bool) -> None:
    start = Start(argv=("echo", "it", "ran"), asks=True, shell="/bin/sh", name="agent", again="agent --again")
    pane = panes.open(start)
    # The trap that makes Ctrl-C harmless is set before it waits.
    wait_for(lambda: _waits_for_a_line(panes.tmux.show("#{pane_pid}", pane)))
    panes.type(pane, key)
    panes.wait_until(pane, "it ran" if runs else "To start it: agent --again")
    panes.wait_for_shell(pane, "/bin/sh")


@pytest.fixture
def old() -> Iterator[subprocess.Popen[bytes]]:
    """A process that was in the conversation before."""
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


def _started(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


@pytest.mark.parametrize("sh", ["/bin/sh", "dash", "bash --posix", "busybox sh"])
@pytest.mark.parametrize("key", ["Enter", "C-c"])
def test_enter_starts_nothing_before_the_old_process_has_ended(
    panes: Panes, old: subprocess.Popen[bytes], sh: str, key: str
) -> None:
    if shutil.which(sh.split()[0]) is None:
        pytest.skip(f"{sh} is not installed")
    before = (old.pid, _started(old.pid))
    start = Start(argv=("echo", "it", "ran"), asks=True, before=before, shell="/bin/sh", name="agent", again="the way")
    pane = panes.open(start, sh=sh)
    still = f"perdure: agent still runs as process {old.pid}; Enter tries again."
    panes.type(pane, "Enter")
    panes.wait_until(pane, still)
    panes.type(pane, "Enter")
    wait_for(lambda: panes.screen(pane).count(still) == 2, lambda: panes.screen(pane))
    found = read_wrapper(("/bin/sh", *panes.first_process(pane)[len(sh.split()) :]))
    assert found is not None
    assert (found.stage, found.asks, found.before) == (Stage.PRELUDE, True, before)
    old.kill()
    old.wait()
    wait_for(lambda: _waits_for_a_line(panes.tmux.show("#{pane_pid}", pane)))
    panes.type(pane, key)
    panes.wait_until(pane, "it ran" if key == "Enter" else "To start it: the way")
    panes.wait_for_shell(pane, "/bin/sh")
    assert panes.screen(pane).count(still) == 2


def test_another_process_of_the_same_number_holds_nothing_up(panes: Panes, old: subprocess.Popen[bytes]) -> None:
    before = (old.pid, _started(old.pid) - 1)
    pane = panes.open(Start(argv=("echo", "it", "ran"), asks=True, before=before, shell="/bin/sh", name="agent"))
    panes.type(pane, "Enter")
    panes.wait_until(pane, "it ran")
    assert "still runs" not in panes.screen(pane)


def _waits_for_a_line(pid: str) -> bool:
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    catches = int(status["SigCgt"], 16) & 1 << signal.SIGQUIT - 1
    return bool(catches) and status["State"].startswith("S")


def test_a_shell_that_was_not_the_default_is_the_one_that_stays(panes: Panes) -> None:
    pane = panes.open(Start(argv=("sh", "-i"), stays=True, environ={"LAID": "over"}))
    wait_for(lambda: panes.first_process(pane) == ["sh", "-i"])
    panes.type(pane, "echo laid $LAID", "Enter")
    panes.wait_until(pane, "laid over")


@pytest.mark.parametrize(("exits", "signal", "shown"), [(3, None, "3 "), (0, None, "0 "), (None, 9, " 9")])
def test_a_dead_pane_shows_how_it_ended(panes: Panes, exits: int | None, signal: int | None, shown: str) -> None:
    panes.tmux.run("set-option", "-g", "remain-on-exit", "on")
    with open(panes.at("text"), "wb") as file:
        file.write(b"its last words\n")
    pane = panes.open(Start(text=panes.at("text"), exits=exits, signal=signal))
    wait_for(lambda: panes.tmux.show("#{pane_dead}#{pane_dead_status} #{pane_dead_signal}", pane) == f"1{shown}")
    # tmux's own line about it pushes the first line out of sight.
    assert b"its last words" in panes.tmux.run("capture-pane", "-p", "-S", "-", "-t", pane)


HOSTILE = st.one_of(
    st.sampled_from(
        ["x & touch PWNED", "$(touch PWNED)", "`touch PWNED`", "';touch PWNED;'", "a=b", "--", "\n", ";", "~"]
    ),
    st.binary(min_size=1, max_size=8).map(lambda raw: decode(raw.replace(b"\0", b"x"))),
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(HOSTILE, max_size=5), value=HOSTILE)
def test_words_reach_the_agent_byte_for_byte(panes: Panes, shell: str, words: list[str], value: str) -> None:
    if os.path.exists(panes.at("told")):
        os.unlink(panes.at("told"))
    folder = panes.at("x & touch PWNED; $(touch PWNED)")
    os.makedirs(folder, exist_ok=True)
    start = Start(argv=(panes.at("agent"), "0", *words), shell=shell, environ={"LAID": value}, name=value, again=value)
    pane = panes.open(start, cwd=folder)
    wait_for(lambda: os.path.exists(panes.at("told")), lambda: panes.screen(pane))
    told = panes.told()
    assert told["argv"] == [encode(word).decode("latin-1") for word in words]
    assert isinstance(told["environ"], dict)
    assert told["environ"]["LAID"] == encode(value).decode("latin-1")
    assert told["cwd"] == folder
    panes.tmux.run("kill-pane", "-t", pane)
    assert "PWNED" not in [name for _, folders, files in os.walk(panes.home) for name in (*folders, *files)]


def test_scrollback_comes_back_as_it_was_above_the_marker(panes: Panes) -> None:
    lines = [f"\x1b[{31 + n % 6}mline {n}\x1b[39m and \x1b[1mbold\x1b[0m {'x' * n}" for n in range(140)]
    with open(panes.at("before"), "w", encoding="utf-8") as file:
        file.write("\n".join([*lines, "\x1b[48;5;17mit ends here", "", ""]))
    old = panes.open(Start(text=panes.at("before"), shell="/bin/sh", argv=("sleep", "1000"), name="sleep"))
    panes.wait_until(old, "it ends here")
    capture = ("capture-pane", "-epJ", "-S", "-", "-t")
    saved = panes.tmux.run(*capture, old)
    now = datetime(2026, 11, 15, 17, 40, tzinfo=UTC)
    text = replayed(saved, ["Something was said."], saved_at=now, now=now, width=100)
    assert text is not None
    with open(panes.at("text"), "wb") as file:
        file.write(text)
    new = panes.open(Start(text=panes.at("text"), shell="/bin/sh"))
    panes.wait_until(new, "Something was said.")
    above = panes.tmux.run(*capture, new).decode().partition("── restored 2026-11-15 17:40 · saved 17:40 ──")[0]
    # How tmux words a change of colour depends on what comes after it.
    assert above.splitlines()[:140] == saved.decode().splitlines()[:140]
    assert "it ends here" in above.splitlines()[140]
    assert len(above.splitlines()) == 142
