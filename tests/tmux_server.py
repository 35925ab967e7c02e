"""Real tmux servers for tests: each on its own socket in the test's private directory, none with a configuration."""

from __future__ import annotations

import os
import signal
import socket as sockets
import struct
import subprocess
import sys
import time
from contextlib import nullcontext, suppress

from tests.leftovers import is_server, listening_below

#: How long a tmux command may take before the test fails; generous, since nothing is measured by it.
PATIENCE = 60.0


#: What a shell does before it ends in a pane that is to stay dead: tmux 3.3a may miss how a program ended whose terminal
#: closes in the same moment.
LETTING_GO = 'trap "" HUP; exec </dev/null >/dev/null 2>&1; sleep 0.3; trap - HUP; '


class TmuxFailed(AssertionError):
    """tmux refused a command of the test itself."""


class TmuxServer:
    """One server by name, as `tmux -L name` finds it. The first command that makes a session starts it."""

    def __init__(self, name: str = "default") -> None:
        self.name = name
        directory = os.environ["TMUX_TMPDIR"]
        #: Where the server listens, whether or not it does now.
        self.socket = os.path.join(os.path.realpath(directory), f"tmux-{os.getuid()}", name)
        # The address is fixed here, so that clean-up never depends on what a test did to its environment.
        self._environ = {**os.environ, "TMUX_TMPDIR": directory}

    def run(self, *args: str | bytes, check: bool = True) -> bytes:
        """Return what `tmux args…` printed; with `check`, a refusal fails the test with tmux's own words."""
        command = ["tmux", "-u", "-f", "/dev/null", "-L", self.name, *args]
        done = subprocess.run(
            command, env=self._environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False
        )
        if check and done.returncode:
            raise TmuxFailed(f"{command[5:]} -> {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def show(self, format: str, target: str | None = None) -> str:
        """Return what a format expands to, for a target or for the server."""
        where = () if target is None else ("-t", target)
        return self.run("display-message", "-p", *where, format).decode().removesuffix("\n")

    @property
    def pid(self) -> int:
        """The server's process id; fails the test when there is no server."""
        return int(self.show("#{pid}"))

    @property
    def alive(self) -> bool:
        """Something accepts connections on the socket."""
        with sockets.socket(sockets.AF_UNIX) as probe:
            try:
                probe.connect(self.socket)
            except OSError:
                return False
            return True

    def kill(self) -> None:
        """End the server as `tmux kill-server` does; its socket goes with it. Nothing when there is none."""
        self.run("kill-server", check=False)
        self._wait_until_gone()

    def kill9(self, *, missing_ok: bool = False) -> None:
        """End the server as the kernel does when memory runs out; its socket stays behind.

        None there fails the test, unless that may be: a server without a session ends by itself when the client that
        began it is killed, at any moment, so that to look first whether there is one is no answer.
        """
        pid = _listener(self.socket)
        if pid is None and not missing_ok:
            raise TmuxFailed(f"no server on {self.socket} that could be killed")
        if pid is not None:
            with suppress(ProcessLookupError) if missing_ok else nullcontext():
                os.kill(pid, signal.SIGKILL)
        self._wait_until_gone()

    def _wait_until_gone(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.alive:
            if time.monotonic() > deadline:
                raise TmuxFailed(f"the server on {self.socket} did not end")
            time.sleep(0.01)


def dispose_all(directory: str) -> None:
    """End every server with a socket anywhere below a directory, whoever started it. Never raises."""
    # Not only in the folders tmux makes: `tmux -S` listens wherever it is told to.
    for path in listening_below(directory):
        dispose(path)
    try:
        folders = [entry.path for entry in os.scandir(directory) if entry.name.startswith("tmux-")]
        found = [entry.path for folder in folders for entry in os.scandir(folder)]
    except OSError:
        return
    for path in found:
        dispose(path)


def dispose(path: str) -> None:
    """End the server on a socket, a stopped or hung one too, and remove the socket. Never raises.

    Whatever else listens there is left alone.
    """
    try:
        pid = _listener(path)
        if pid is not None and sys.platform.startswith("linux") and not is_server(pid):
            return
        if pid is not None:
            _end(pid)
        os.unlink(path)
    except (OSError, subprocess.SubprocessError):
        pass


def _listener(path: str) -> int | None:
    """Return the process that listens on a socket, as the kernel remembers it: a hung server cannot be asked."""
    with sockets.socket(sockets.AF_UNIX) as probe:
        probe.settimeout(PATIENCE)
        try:
            probe.connect(path)
        except OSError:
            return None
        if hasattr(sockets, "SO_PEERCRED"):
            pid, _, _ = struct.unpack("3i", probe.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, 12))
            return int(pid)
    asked = subprocess.run(
        ["tmux", "-S", path, "display-message", "-p", "#{pid}"], capture_output=True, timeout=PATIENCE, check=False
    )
    return int(asked.stdout) if asked.stdout.strip().isdigit() else None


def _end(pid: int) -> None:
    """Ask the server to end, so that its panes are told; then make it."""
    os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        if _ended(pid):
            return
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)


def _ended(pid: int) -> bool:
    """Gone, or a zombie nobody has collected: in a container, process 1 may not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return False
