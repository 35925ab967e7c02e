"""Users of a shared machine, each with a home, a shell and a tmux server of their own, and the program among them."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from perdure.demo import agent
from tests.acceptance import accounts
from tests.acceptance.kit import only_json, wait_for
from tests.at_rest import Rest, descendants
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure, Ran
from tests.tmux_server import PATIENCE


@functools.cache
def interpreter(uid: int) -> str:
    """Return a Python that this user can start; skips the test where there is none."""
    for path in (sys.executable, "/usr/bin/python3"):
        with suppress(OSError):
            tried = subprocess.run(
                [path, "-I", "-c", "import json"], user=uid, group=uid, extra_groups=[], cwd="/", capture_output=True
            )
            if tried.returncode == 0:
                return path
    pytest.skip("nobody else can start a Python")


class Guest:
    """A user with the number `uid`, who may be at work on a server where `tmux` would put it."""

    def __init__(self, machine: Machine, name: str, uid: int, shell: str) -> None:
        self.name, self.uid, self.shell = name, uid, shell
        self.home = os.path.join(machine.places.root, f"home-{name}")
        os.mkdir(self.home, 0o700)
        os.chown(self.home, uid, uid)
        self.socket = os.path.join(os.path.realpath(machine.places.sockets), f"tmux-{uid}", "default")
        self._environ = {
            "HOME": self.home,
            "USER": name,
            "SHELL": "/bin/sh" if shell.endswith("nologin") else shell,
            "TERM": "xterm",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "TMUX_TMPDIR": machine.places.sockets,
        }
        self.write("bin/" + agent.NAME, f'#!/bin/sh\nexec {interpreter(uid)} -I {machine.agent} "$@"\n', mode=0o755)
        self.write(".profile", 'PATH=$HOME/bin:$PATH\nPS1="$ "\n')

    def at(self, name: str) -> str:
        """Return a path in the home."""
        return os.path.join(self.home, name)

    def write(self, name: str, text: str, *, mode: int = 0o600) -> None:
        """Write a file of this user's."""
        path = self.at(name)
        folders = [path]
        while (folder := os.path.dirname(folders[-1])) != self.home:
            folders.append(folder)
        for folder in reversed(folders[1:]):
            if not os.path.isdir(folder):
                os.mkdir(folder, 0o700)
                os.chown(folder, self.uid, self.uid)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chown(path, self.uid, self.uid)
        os.chmod(path, mode)

    def run(self, *words: str) -> str:
        """Run something as this user, and return what it says."""
        done = subprocess.run(
            words,
            env=self._environ,
            user=self.uid,
            group=self.uid,
            extra_groups=[],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()

    def tmux(self, *words: str) -> str:
        """Run tmux as this user."""
        return self.run("tmux", "-u", "-f", "/dev/null", *words)

    def sit_down(self) -> None:
        """Begin a session with a shell in it that has printed something."""
        self.tmux("new-session", "-d", "-s", "desk", "-c", "/", "/bin/sh")
        wait_for(lambda: self.shown("desk"), "a prompt")

    def work(self, session: str, *words: str) -> None:
        """Begin a session with a shell, and an agent beside it that has been asked something."""
        self.tmux("new-session", "-d", "-s", session, "-c", self.home, "/bin/sh")
        self.tmux("new-window", "-d", "-t", session, "-c", self.home, self.at("bin/" + agent.NAME), *words, "the plan")
        wait_for(lambda: "Noted as number" in self.shown(f"{session}:1"), "an answer")

    def shown(self, target: str) -> str:
        """Return what a pane shows."""
        return self.tmux("capture-pane", "-p", "-t", target)

    @property
    def server(self) -> int:
        """The process of the server."""
        return int(self.tmux("display-message", "-p", "#{pid}"))

    def kill9(self) -> None:
        """End the server as the kernel does when memory runs out, and wait until its agents are gone too."""
        pids = [self.server, *descendants(self.server)]
        os.kill(pids[0], signal.SIGKILL)
        wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") and not _is_zombie(pid) for pid in pids), "the end")

    def processes(self) -> list[int]:
        """Return the server and everything in its panes, once all of that waits: a shell that begins starts others."""
        server = self.server
        wait_for(Rest(lambda: descendants(server)), f"rest for {self.name}")
        return [server, *descendants(server)]


class Machine(Perdure):
    """A machine with guests; runs `perdure args…` there, as root."""

    def __init__(self, places: PrivateHome) -> None:
        super().__init__(fresh=True)  # it is another program that is run
        self.places = places
        self.guests: list[Guest] = []
        self.agent = os.path.join(places.root, "lib", "perdure", "demo", "agent.py")
        os.makedirs(os.path.dirname(self.agent))
        shutil.copyfile(agent.__file__, self.agent)
        # As /tmp is.
        os.chmod(places.sockets, 0o1777)
        os.chmod(places.root, 0o711)
        self.write_accounts()

    def guest(self, name: str, shell: str = "/bin/sh") -> Guest:
        """Return a new user of this machine."""
        guest = Guest(self, name, 64100 + len(self.guests), shell)
        self.guests.append(guest)
        self.write_accounts()
        return guest

    def write_accounts(self, without: Sequence[Guest] = ()) -> None:
        """Say which accounts there are."""
        with open(os.path.join(self.places.root, "passwd"), "w", encoding="utf-8") as file:
            for each in self.guests:
                if each not in without:
                    file.write(f"{each.name}:x:{each.uid}:{each.uid}::{each.home}:{each.shell}\n")

    def argv(self, *args: str) -> list[str]:
        """Return the command."""
        return [sys.executable, accounts.__file__, *args]

    def __call__(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        input: str | None = None,
        timeout: float = 300,
    ) -> Ran:
        """Return how it ended."""
        known = {accounts.PASSWD: os.path.join(self.places.root, "passwd"), **(env or {})}
        return super().__call__(*args, env=known, cwd=cwd, input=input, timeout=timeout)

    def save(self) -> dict[str, dict[str, Any]]:
        """Save everybody's work, and return what is said of each guest's server, by their name."""
        servers = only_json(self.ok("save", "--all-users", "--json"))["servers"]
        return {each["user"]: each for each in servers}


def status(pid: int) -> dict[str, str]:
    """Return what the kernel says of a process."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def environ(pid: int) -> dict[str, str]:
    """Return the environment a process was started with."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        words = file.read().decode(errors="replace").split("\0")
    return dict(word.partition("=")[::2] for word in words if word)


def _is_zombie(pid: int) -> bool:
    with suppress(OSError):
        return status(pid)["State"].startswith("Z")
    return True
