"""As after a boot: no environment but what the user's own files give, and nothing where it used to be."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from perdure.demo.program import install
from tests.acceptance import accounts
from tests.acceptance.guests import environ
from tests.acceptance.kit import (
    configure,
    hand_over,
    history,
    only_json,
    run_unprivileged,
    save,
    sentence,
    unprivileged,
    wait_for,
)
from tests.acceptance.restoring import foreground
from tests.at_rest import descendants
from tests.conftest import PrivateHome
from tests.leftovers import let_fish_be
from tests.perdure_cli import Perdure, Ran
from tests.tmux_server import TmuxServer

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="environments are read from /proc")

SECRET = "sk-ant-api03-" + "Qz7" * 20


class Scene:
    """A person at work, whose machine is going to be started again."""

    def __init__(self, home: PrivateHome, tmux: TmuxServer, shell: str = "/bin/bash") -> None:
        if not os.path.exists(shell):
            pytest.skip(f"{shell} is not installed")
        self.places, self.tmux, self.shell = home, tmux, shell
        let_fish_be(home.home)
        self.state = os.path.join(home.home, ".local", "state", "perdure")
        os.environ["PERDURE_STATE_DIR"] = self.state  # where it is without a word, as after a boot
        os.mkdir(self.at("bin"))
        self.agent = install(self.at("bin"))
        self.desk = self.at("wörk ☃")
        os.mkdir(self.desk)

    def at(self, name: str) -> str:
        return os.path.join(self.places.home, name)

    def write(self, name: str, text: str) -> None:
        os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
        with open(self.at(name), "w", encoding="utf-8") as file:
            file.write(text)

    def begin(self, *words: str, **variables: str) -> None:
        """Begin a session with one program in it, which is found on the PATH, with these variables."""
        path = f"{self.at('bin')}:{os.environ['PATH']}"
        given = [f"{name}={value}" for name, value in {"PATH": path, "SHELL": self.shell, **variables}.items()]
        self.tmux.run("new-session", "-d", "-s", "naïve ☃", "-c", self.desk, "env", *given, *words)
        wait_for(lambda: self.foreground()[0][:1] not in (["tmux"], ["env"], []), "the program")

    def begin_agent(self, **variables: str) -> None:
        """Begin a session with an agent that has been asked something."""
        self.begin(self.agent, "the plan", **variables)
        wait_for(lambda: "Noted as number" in self.shown(), "an answer")

    def foreground(self) -> tuple[list[str], str]:
        pids = self.tmux.run("list-panes", "-a", "-F", "#{pane_pid}").split()
        return foreground(int(pids[0])) if pids else ([], "")

    def shown(self) -> str:
        return self.tmux.run("capture-pane", "-pJ", "-S", "-", "-t", "naïve ☃").decode()

    def crash(self) -> None:
        server = self.tmux.pid
        left = descendants(server)
        self.tmux.kill9()
        wait_for(lambda: not any(os.path.exists(f"/proc/{pid}/exe") and _is_there(pid) for pid in left), "the end")

    def boot(self, *args: str, **variables: str) -> Ran:
        """Bring it all back with nothing in the environment but where this test keeps its servers and accounts."""
        passwd = os.path.join(self.places.root, "passwd")
        name = pwd.getpwuid(os.geteuid()).pw_name
        with open(passwd, "w", encoding="utf-8") as file:
            file.write(f"{name}:x:{os.geteuid()}:{os.getegid()}::{self.places.home}:{self.shell}\n")
        done = subprocess.run(
            [sys.executable, accounts.__file__, "restore", "--json", *args],
            env={accounts.PASSWD: passwd, "TMUX_TMPDIR": self.places.sockets, **variables},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def program(self) -> int:
        """The process that is in front in the one pane there is."""
        (pid,) = self.tmux.run("list-panes", "-a", "-F", "#{pane_pid}").split()
        with open(f"/proc/{int(pid)}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[5])


def _is_there(pid: int) -> bool:
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] != b"Z"
    return False


@pytest.fixture
def scene(private_home: PrivateHome, tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scene]:
    monkeypatch.setenv("PERDURE_STATE_DIR", private_home.state)  # put back afterwards, whatever a scene sets
    configure(private_home, "[restore]\nverify_seconds = 60\n")
    return lambda shell="/bin/bash": Scene(private_home, tmux, shell)


def step(ran: Ran) -> dict[str, Any]:
    (found,) = only_json(ran)["steps"]
    return dict(found)


# What the user's own files give


PATHS = {
    "/bin/bash": (".bashrc", ".profile", ".bash_profile"),
    "/bin/zsh": (".zshrc", ".zprofile"),
    "/bin/dash": (".profile",),
    "/usr/bin/fish": (".config/fish/config.fish",),
}


@pytest.mark.parametrize(("shell", "file"), [(shell, file) for shell in PATHS for file in PATHS[shell]])
def test_programs_are_found_where_the_users_own_files_say(
    scene: Callable[..., Scene], perdure: Perdure, shell: str, file: str
) -> None:
    here = scene(shell)
    os.symlink("/bin/sleep", here.at("bin/my-program"))
    here.begin("my-program", "1000")
    save(perdure)
    here.crash()
    # What was on the PATH then is gone, and in another place now.
    os.rename(here.at("bin"), here.at("newer bin"))
    assignment = "set -gx KEY mine; set -gx PATH" if shell.endswith("fish") else "export KEY=mine; export PATH="
    space, colon = (" ", " ") if shell.endswith("fish") else ("", ":")
    here.write(file, f'{assignment}{space}"$HOME/newer bin"{colon}$PATH\n')
    ran = here.boot("--programs", "all", LANG="C")
    assert (ran.code, step(ran)["result"]) == (0, "done"), ran
    wait_for(lambda: here.foreground()[0] == ["my-program", "1000"], f"the program; there is {here.shown()}")
    assert here.foreground()[1] == here.desk
    variables = environ(here.program())
    assert variables["KEY"] == "mine"
    assert (variables["HOME"], variables["SHELL"]) == (here.places.home, shell)
    assert here.tmux.show("#{session_name}") == "naïve ☃"


def test_what_asks_for_a_restore_lends_nothing_of_itself(scene: Callable[..., Scene], perdure: Perdure) -> None:
    """Asked by an agent, or by a step of a pipeline: what comes back is neither's child."""
    here = scene("/bin/bash")
    here.begin("sleep", "1000")
    save(perdure)
    here.crash()
    marks = {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CODEX_SANDBOX_NETWORK_DISABLED": "1", "CI": "true"}
    ran = here.boot("--programs", "all", LANG="C", CLAUDE_CONFIG_DIR="/elsewhere", **marks)
    assert (ran.code, step(ran)["result"]) == (0, "done"), ran
    wait_for(lambda: here.foreground()[0] == ["sleep", "1000"], f"the program; there is {here.shown()}")
    variables = environ(here.program())
    assert not marks.keys() & variables.keys()
    assert variables["CLAUDE_CONFIG_DIR"] == "/elsewhere"


#: Start-up files that people have, and that agents come up from all the same.
ODD = {
    "busy": "echo welcome home; printf '\\033]2;a title\\007'; sleep 1; false; set -u; [ -z \"$TMUX\" ] && exec tmux\n",
    "elsewhere": 'cd /; cd() { builtin cd "$@" && echo moved; }; alias exec=echo\n',
    "strict": "set -e; cd /usr\n",
    "broken": "if then (\n",
}


@pytest.mark.parametrize("kind", ODD)
def test_an_agent_comes_up_in_its_directory_whatever_the_files_do(
    scene: Callable[..., Scene], perdure: Perdure, kind: str
) -> None:
    here = scene()
    here.begin_agent(SIMULANT_HOME=here.at("own agents"))
    save(perdure)
    here.crash()
    here.write(".bash_profile", "export AT_LOGIN=yes; . ~/.bashrc\n")
    here.write(".bashrc", f"export KEY=mine SIMULANT_HOME=/nowhere\n{ODD[kind]}")
    ran = here.boot()
    assert (ran.code, step(ran)["result"]) == (0, "verified"), (ran, here.shown())
    assert here.foreground()[1] == here.desk
    variables = environ(here.program())
    assert variables["SIMULANT_HOME"] == here.at("own agents"), "what was captured lies on top"
    assert (variables["KEY"], variables["AT_LOGIN"]) == ("mine", "yes")
    assert "TMUX_PANE" in variables
    assert (ran.err, here.tmux.run("list-sessions").count(b"\n")) == ("", 1)


def test_an_agent_whose_shell_becomes_something_else_has_failed(
    scene: Callable[..., Scene], perdure: Perdure, private_home: PrivateHome
) -> None:
    here = scene()
    here.begin_agent()
    save(perdure)
    here.crash()
    configure(private_home, "[restore]\nverify_seconds = 2\n")
    here.write(".bashrc", "case $- in *i*) exec /bin/sh -i;; esac\n")
    ran = here.boot()
    assert (ran.code, step(ran)["result"]) == (4, "failed"), ran
    assert "did not start in time" in step(ran)["why"]
    wait_for(lambda: here.foreground()[0] == ["/bin/sh", "-i"], "what it has become")
    assert len(history(perdure)) == 1


# What nobody else may see


@contextmanager
def watching_command_lines(secret: str) -> Iterator[list[bytes]]:
    """Read the words of every process there is, again and again, and collect those with the secret in them."""
    seen: list[bytes] = []
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.is_set():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read()
                    seen.extend([words] if secret.encode() in words else [])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        is_over.set()
        thread.join()


def test_a_secret_comes_back_only_where_it_was_asked_for_and_is_seen_by_nobody(
    scene: Callable[..., Scene], perdure: Perdure, private_home: PrivateHome
) -> None:
    configure_secrets = '[restore]\nenvironment = ["SIM_TOKEN"]\nverify_seconds = 60\n'
    here = scene()
    configure(private_home, configure_secrets)
    # Not among the words of a process here either: they are the test's, and would be found.
    here.write("start", f"export SIM_TOKEN={SECRET} OTHER_TOKEN={SECRET}\nexec {here.agent} 'the plan'\n")
    here.begin("/bin/sh", here.at("start"))
    wait_for(lambda: "Noted as number" in here.shown(), "an answer")
    save(perdure)
    here.crash()
    os.unlink(here.at("start"))
    here.write(".bashrc", "export SIM_TOKEN=an-old-one\n")
    outputs = [here.boot("--dry-run")]
    with watching_command_lines(SECRET) as seen:
        outputs.append(here.boot())
        wait_for(lambda: "Noted as number" in here.shown(), "the conversation")
    assert step(outputs[1])["result"] == "verified", outputs[1]
    assert seen == []
    variables = environ(here.program())
    assert variables["SIM_TOKEN"] == SECRET
    assert "OTHER_TOKEN" not in variables
    outputs += [perdure(*words) for words in (("show", "--json"), ("show",), ("history", "--json"), ("ls", "--json"))]
    said = [each.out + each.err for each in outputs]
    questions = (
        ("show-environment", "-g"),
        ("show-environment", "-t", "naïve ☃"),
        ("list-panes", "-a", "-F", "#{pane_start_command}"),
        ("capture-pane", "-pJ", "-S", "-", "-t", "naïve ☃"),
    )
    said += [here.tmux.run(*words).decode() for words in questions]
    assert [text for text in said if SECRET in text] == []
    files = [os.path.join(folder, name) for folder, _, names in os.walk(here.state) for name in names]
    assert [path for path in files if "restores" in path and SECRET.encode() in _content(path)] == []


def _content(path: str) -> bytes:
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return b""
    with open(path, "rb") as file:
        return file.read()


# What is not where it should be


@pytest.fixture
def crashed(scene: Callable[..., Scene], perdure: Perdure) -> Scene:
    """A server with one program, saved and killed: its socket is still there, and nobody listens."""
    here = scene()
    here.begin("/bin/sleep", "1000")
    save(perdure)
    here.crash()
    assert os.path.lexists(here.tmux.socket)
    return here


def comes_back(here: Scene) -> None:
    ran = here.boot("--programs", "all")
    assert (ran.code, step(ran)["result"]) == (0, "done"), ran


def refused(here: Scene, ran: Ran, code: int) -> str:
    """The sentence of a restore that did nothing."""
    assert ran.code == code, ran
    assert not here.tmux.alive
    assert only_json(ran)["error"]["code"] == code
    return sentence(ran)


def test_a_configuration_that_is_wrong(crashed: Scene, private_home: PrivateHome) -> None:
    configure(private_home, "[restore]\nmax_parallel = 'many'\n")
    assert "max_parallel" in refused(crashed, crashed.boot(), 2)
    configure(private_home, "")
    comes_back(crashed)


def test_a_store_that_cannot_be_read(crashed: Scene) -> None:
    database = os.path.join(crashed.state, "perdure.db")
    os.rename(database, database + ".kept")
    with open(database, "wb") as file:
        file.write(b"this is no database at all " * 400)
    assert "cannot be used: it is not a database" in refused(crashed, crashed.boot(), 5)
    os.rename(database + ".kept", database)
    comes_back(crashed)


def test_no_tmux(crashed: Scene) -> None:
    assert "tmux is not installed" in refused(crashed, crashed.boot(PATH="/nowhere"), 1)
    comes_back(crashed)


def test_an_empty_tmp(crashed: Scene) -> None:
    shutil.rmtree(crashed.places.sockets)
    comes_back(crashed)
    for path in (crashed.places.sockets, os.path.dirname(crashed.tmux.socket)):
        assert stat.S_IMODE(os.lstat(path).st_mode) == 0o700


def test_a_directory_for_sockets_that_cannot_be_made(crashed: Scene) -> None:
    shutil.rmtree(crashed.places.sockets)
    with open(crashed.places.sockets, "w", encoding="utf-8"):
        pass
    said = refused(crashed, crashed.boot(), 1)
    assert "cannot be made: Not a directory" in said
    os.unlink(crashed.places.sockets)
    comes_back(crashed)


def test_a_state_directory_that_cannot_be_written(private_home: PrivateHome, tmux: TmuxServer) -> None:
    hand_over(private_home)
    tmux_words = ["tmux", "-u", "-f", "/dev/null", "-S", f"{private_home.sockets}/mine", "new-session", "-d", "/bin/sh"]
    subprocess.run([*unprivileged(), *tmux_words], check=True, cwd="/")
    socket = ("--socket", f"{private_home.sockets}/mine")
    assert run_unprivileged("save", *socket).code == 0
    subprocess.run([*unprivileged(), *tmux_words[:6], "kill-server"], check=True, cwd="/")
    os.chmod(private_home.state, 0o500)
    ran = run_unprivileged("restore", *socket)
    assert ran.code in (5, 6), ran
    assert private_home.state in sentence(ran)
    os.chmod(private_home.state, 0o700)
    again = run_unprivileged("restore", *socket)
    assert again.code == 0, again
