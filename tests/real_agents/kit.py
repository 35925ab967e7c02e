"""What tests of real agents stand on: a private stage, and agents in its panes.

    def test_…(stage: Stage) -> None:
        agent = stage.start("claude", "--permission-mode", "default")
        agent.ask("hello")                      # typed, sent, answered by the stub model
        agent.type("[[delay=20]] think")        # typed and sent
        agent.wait_for("esc to interrupt")
        assert agent.identity()["certain"]

A program that is not installed skips the test with the reason, before anything is started.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sqlite3
import stat
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import psutil
import pytest

from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.real_agents.agents import PROGRAMS, Place, Program
from tests.real_agents.stub_model import Seen, StubModel
from tests.tmux_server import TmuxServer, dispose_all

#: How long an agent may take for anything but its start. Generous: nothing is measured by it.
PATIENCE = 60.0
#: Where the system's own programs are, for agents that run some.
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
#: A door nobody is behind: whatever asks for the world outside is refused at once.
NOWHERE = "http://127.0.0.1:9"

#: What is waited for: a regular expression, or anything that says yes to a screen.
Sign = str | re.Pattern[str] | Callable[[str], object]
Found = TypeVar("Found")


class Stage:
    """One test's machine: a home, a tmux server, a model, and the agents in it."""

    def __init__(
        self,
        home: PrivateHome,
        tmux: TmuxServer,
        stub: StubModel,
        perdure: Perdure,
        started: Callable[[str], None] = lambda name: None,
    ) -> None:
        self.home = home.home
        self.tmux = tmux
        self.stub = stub
        self.perdure = perdure
        self._started = started
        self._root = os.path.realpath(home.root)
        self._sockets = home.sockets
        self._configured: set[str] = set()
        self._scratch = os.path.join(home.root, "x")
        os.mkdir(self._scratch, 0o700)
        #: Directories agents are told to trust. Add to it before the first start.
        self.trusted = [self.directory(name) for name in ("alpha", "beta", "gamma")]

    def directory(self, name: str) -> str:
        """Return a project directory by name, made when it is not there. alpha, beta and gamma are trusted."""
        path = os.path.join(self._root, "w", name)
        os.makedirs(path, exist_ok=True)
        return path

    def repository(self, name: str) -> str:
        """Return a project directory that is a git repository with one commit, on the branch `trunk`."""
        path = self.directory(name)
        as_somebody = ["-c", "user.name=Dev", "-c", "user.email=dev@localhost"]
        for words in (["init", "-q", "-b", "trunk"], [*as_somebody, "commit", "-q", "--allow-empty", "-m", "begin"]):
            subprocess.run(["git", *words], cwd=path, check=True, capture_output=True)
        return path

    @property
    def place(self) -> Place:
        """What agents are set up for."""
        return Place(self.stub.url, tuple(self.trusted))

    def path(self, name: str) -> str:
        """Return a file's path below the agents' home."""
        return os.path.join(self.home, name)

    def write(self, name: str, text: str, mode: str = "w") -> str:
        """Write (or with mode "a" extend) a file below the agents' home; return its path."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, mode, encoding="utf-8") as file:
            file.write(text)
        return path

    def configure(self, name: str) -> Program:
        """Write an agent's files, once; a test may change them before it starts the agent. Skips when it is missing."""
        program = PROGRAMS[name]
        reason = program.missing
        if reason is not None:
            pytest.skip(f"{name} {program.version}: {reason}")
        if name not in self._configured:
            self._configured.add(name)
            for path, text in program.files(self.place).items():
                self.write(path, text)
        return program

    def environ(self, program: Program) -> dict[str, str]:
        """Return everything an agent's shell has in its environment, besides what tmux adds."""
        node = os.path.dirname(shutil.which("node") or "")
        path = ":".join(filter(None, (program.binaries, node, SYSTEM_PATH)))
        guards = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), NOWHERE)
        guards |= dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost,::1")
        base = {
            "HOME": self.home,
            "PATH": path,
            "USER": "dev",
            "LOGNAME": "dev",
            "SHELL": shutil.which("bash", path=SYSTEM_PATH) or "/bin/sh",
            "LANG": "C.UTF-8",
            "TERM": "screen-256color",
            # Codex makes no helper programs for a home below the temporary directory: let it be another.
            "TMPDIR": self._scratch,
            "PIP_NO_INDEX": "1",
            "PS1": "$ ",
        }
        return {**base, **(guards if program.spares_loopback else {}), **program.environ(self.place)}

    def start(
        self,
        name: str,
        *args: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (120, 40),
        command: Sequence[str] | None = None,
        ready: Sign | None = None,
    ) -> Agent:
        """Start an agent in a pane of its own, as a person would: by typing it into a shell. Wait until it is ready.

        `command` replaces the whole command line, `ready` what is waited for (`""`: nothing).
        """
        program = self.configure(name)
        agent = Agent(self, program, self._pane(program, cwd or self.directory("alpha"), env or {}, size))
        self.note_start(name)
        words = command if command is not None else (name, *program.words, *program.options(self.place), *args)
        agent.launch(shlex.join(words))
        sign = program.ready if ready is None else ready
        if sign:
            agent.wait_for(sign, timeout=program.patience)
        return agent

    def note_start(self, name: str) -> None:
        """Count an agent among those that ran; `start` does it."""
        self._started(name)

    def _pane(self, program: Program, cwd: str, env: Mapping[str, str], size: tuple[int, int]) -> str:
        """Open a session with nothing but a clean shell in it; return its pane's id."""
        inherited = ("TMUX", "TMUX_PANE")
        words = [f'{name}="${name}"' for name in inherited]
        words += [shlex.quote(f"{name}={value}") for name, value in {**self.environ(program), **env}.items()]
        shell = f"exec env -i {' '.join(words)} /bin/sh -i"
        width, height = map(str, size)
        made = ["new-session", "-d", "-x", width, "-y", height, "-c", cwd, "-P", "-F", "#{pane_id}", shell]
        return self.tmux.run(*made).decode().strip()

    def save(self) -> dict[str, Any]:
        """Save as a person would; return the snapshot's topology."""
        self.perdure.ok("save", "--json")
        snapshot = self.perdure.ok("show", "--json", "latest").json["snapshot"]
        topology: dict[str, Any] = snapshot["topology"]
        return topology

    def processes(self) -> list[psutil.Process]:
        """Return every process that lives in this stage's home: agents, and what they started and let go.

        What this process itself has started is whoever's that started it: it may outlive a test.
        """
        found = []
        for process in psutil.process_iter():
            try:
                is_ours = os.getpid() in (process.pid, process.ppid())
                mine = not is_ours and process.environ().get("HOME") == self.home
            except (psutil.Error, OSError):
                continue
            if mine:
                found.append(process)
        return found

    def close(self) -> None:
        """End everything that was started here, daemons that left their pane too. By pid, and nothing else."""
        dispose_all(self._sockets)
        deadline = time.monotonic() + 3
        for process in (living := self.processes()):
            _signal(process.terminate)
        while living and time.monotonic() < deadline:
            time.sleep(0.05)
            living = self.processes()
        while living := self.processes():
            for process in living:
                _signal(process.kill)
            assert time.monotonic() < deadline + PATIENCE, f"still alive: {living}"
            time.sleep(0.05)
        for path in self._sockets_outside():
            for left in (path, f"{path}.lock"):
                if os.path.exists(left):
                    os.unlink(left)

    def _sockets_outside(self) -> list[str]:
        """Return sockets that links in the home lead to: codex keeps its daemon's in /tmp, whatever TMPDIR says."""
        found = []
        for folder, _, names in os.walk(self.home):
            for path in (os.path.join(folder, name) for name in names):
                target = os.path.realpath(path)
                if os.path.islink(path) and not target.startswith(self._root) and _is_socket(target):
                    found.append(target)
        return found


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def _signal(send: Callable[[], None]) -> None:
    try:
        send()
    except psutil.Error:
        pass


class Agent:
    """An agent in a pane."""

    def __init__(self, stage: Stage, program: Program, pane: str) -> None:
        self.stage = stage
        self.program = program
        self.pane = pane

    # What is there to see

    def screen(self, *, history: bool = False) -> str:
        """Return what the pane shows, without trailing blanks; with `history`, what has scrolled away as well."""
        words = ["-S", "-"] if history else []
        return self.stage.tmux.run("capture-pane", "-p", *words, "-t", self.pane).decode(errors="replace").rstrip()

    def title(self) -> str:
        """Return the pane's title."""
        return self.show("#{pane_title}")

    def show(self, format: str) -> str:
        """Return what a tmux format expands to for this pane."""
        return self.stage.tmux.show(format, self.pane)

    def wait_for(self, sign: Sign, *, timeout: float = PATIENCE, where: str = "screen") -> str:
        """Wait for something on the `screen`, in its `history` too, or in the `title`; return what it was found in."""
        look: Callable[[], str] = {
            "screen": self.screen,
            "history": lambda: self.screen(history=True),
            "title": self.title,
        }[where]
        deadline = time.monotonic() + timeout
        while True:
            seen = look()
            if _is_there(sign, seen):
                return seen
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.program.name}: {sign!r} is not in its {where} after {timeout} s\n{self}")
            time.sleep(0.1)

    def wait_until_still(self, seconds: float = 1.0, *, timeout: float = PATIENCE) -> str:
        """Wait until the screen has not changed for a while; return it."""
        deadline = time.monotonic() + timeout
        before, since = self.screen(), time.monotonic()
        while time.monotonic() - since < seconds:
            assert time.monotonic() < deadline, f"{self.program.name} does not come to rest\n{self}"
            time.sleep(0.1)
            now = self.screen()
            if now != before:
                before, since = now, time.monotonic()
        return before

    def __str__(self) -> str:
        return f"title: {self.title()}\n{'-' * 40}\n{self.screen(history=True)}\n{'-' * 40}"

    # What a person does

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names: Enter, Escape, C-c, Down, y."""
        self.stage.tmux.run("send-keys", "-t", self.pane, *names)

    def write(self, text: str) -> None:
        """Type text without sending it, and wait until its end is on the screen, once more than before."""
        tail = "".join(text.split())[-6:]

        def shown() -> int:
            return "".join(self.screen().split()).count(tail)

        # A letter or two may be all over the screen, and an answer of one letter need not be shown at all.
        enough = shown() + 1 if len(tail) > 2 else 1
        self.stage.tmux.run("send-keys", "-t", self.pane, "-l", "--", text)
        deadline = time.monotonic() + 20
        while shown() < enough and time.monotonic() < deadline:
            time.sleep(0.05)

    def type(self, text: str) -> None:
        """Type text and send it."""
        self.write(text)
        # What comes too quickly after text is taken for part of a paste, and begins a new line instead.
        time.sleep(0.4)
        self.keys("Enter")

    def ask(self, prompt: str, *, timeout: float = PATIENCE) -> Seen:
        """Type a prompt and wait until the model's answer to it is on the screen; return the request it made."""
        before = len(self.stage.stub.seen)
        self.type(prompt)
        seen = self.wait_for_request(prompt, before, timeout=timeout)
        self.wait_for(rf"STUB-REPLY {seen.number}\b", timeout=timeout, where="history")
        return seen

    def wait_for_request(self, prompt: str, since: int = 0, *, timeout: float = PATIENCE) -> Seen:
        """Wait until the model was asked this by a person, in a request after the first `since`; return the request."""
        words = " ".join(prompt.split())
        deadline = time.monotonic() + timeout
        while True:
            for seen in self.stage.stub.seen[since:]:
                if seen.ordered and words in " ".join(seen.request.prompt.split()):
                    return seen
            assert time.monotonic() < deadline, f"{self.program.name} did not ask {prompt!r} in {timeout} s\n{self}"
            time.sleep(0.05)

    def launch(self, command: str) -> None:
        """Type a command into the pane's shell."""
        self.wait_for(r"\$", timeout=PATIENCE)
        self.stage.tmux.run("send-keys", "-t", self.pane, "-l", "--", f"clear; {command}")
        self.keys("Enter")
        # So that nothing is taken for the agent's that only stands in its command line.
        self.wait_for(lambda screen: "clear; " not in screen)

    def new_conversation(self) -> None:
        """Type the words that begin a new conversation."""
        self.type(self.program.new)

    def quit(self) -> None:
        """Type the words that end the program, and wait until it has."""
        pid = self.pid
        self.type(self.program.quit)
        deadline = time.monotonic() + PATIENCE
        while psutil.pid_exists(pid):
            assert time.monotonic() < deadline, f"{self.program.name} does not end\n{self}"
            time.sleep(0.05)

    # What it is to the system

    @property
    def pid(self) -> int:
        """The process a person started: the leader of the group in the pane's foreground. Fails once it has ended."""
        shell = int(self.show("#{pane_pid}"))
        foreground = int(_told(shell)[5])
        assert foreground != shell, f"{self.program.name} is not running\n{self}"
        return foreground

    def tree(self) -> list[psutil.Process]:
        """Return that process and all below it."""
        leader = psutil.Process(self.pid)
        return [leader, *leader.children(recursive=True)]

    # What Perdure makes of it

    def identity(self) -> dict[str, Any]:
        """Save, and return this pane's identity as it was saved; fails when it has none."""
        panes = self.stage.save()["panes"]
        found: dict[str, Any] | None = next(pane for pane in panes if pane["id"] == self.pane)["identity"]
        assert found is not None, f"no agent was seen in the pane of {self.program.name}\n{self}"
        return found

    def identity_once(self, is_so: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Save until what is known of it is so, and return that: an agent may show a thing before it tells or writes it."""
        deadline = time.monotonic() + PATIENCE
        while not is_so(found := self.identity()):
            assert time.monotonic() < deadline, f"{self.program.name} is known otherwise: {found}\n{self}"
            time.sleep(0.2)
        return found

    def certain_identity(self) -> dict[str, Any]:
        """Save until the conversation is known for certain."""
        return self.identity_once(lambda found: found["certain"])

    def await_in(self, conversation: str, evidence: str, *, certain: bool = True, prompted: bool = True) -> None:
        """Save until it is known to be in this conversation, by this evidence.

        Each look is a save, and what a hook has told by then is remembered at the next: it was told all the same.
        """
        enough = {evidence, "remembered"} if evidence == "hook" else {evidence}
        wanted = (conversation, certain, prompted)
        self.identity_once(
            lambda found: (
                found["evidence"] in enough and (found["conversation"], found["certain"], found["prompted"]) == wanted
            )
        )

    def row(self) -> dict[str, Any]:
        """Return this pane's row of `perdure ls --json`: identity, details and state of the moment."""
        rows = self.stage.perdure.ok("ls", "--json").json["panes"]
        found: dict[str, Any] = next(row for row in rows if row["pane_id"] == self.pane)
        return found


def once_written(look: Callable[[], Found | None], what: str) -> Found:
    """Return what is found in an agent's own files, once it is: it may show what it has not written down yet.

    What cannot be read may be half written.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            found, problem = look(), ""
        except (OSError, ValueError, LookupError, sqlite3.Error) as error:
            found, problem = None, f" ({error!r})"
        if found is not None:
            return found
        assert time.monotonic() < deadline, f"not written: {what}{problem}"
        time.sleep(0.1)


def has_terminal(pid: int) -> bool:
    """Return whether a process has a terminal. psutil only knows those that were there when it was first asked."""
    return _told(pid)[4] != "0"


def _told(pid: int) -> list[str]:
    """Return what the kernel tells of a process, from its state on."""
    with open(f"/proc/{pid}/stat", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _is_there(sign: Sign, text: str) -> bool:
    if isinstance(sign, str | re.Pattern):
        return re.search(sign, text) is not None
    return bool(sign(text))
