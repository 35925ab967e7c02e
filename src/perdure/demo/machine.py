"""A machine of its own in a temporary directory: a home, a tmux server, agents, and what perdure keeps of them."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket as sockets
import sys
import tempfile
from collections.abc import Mapping
from shlex import quote
from struct import unpack
from typing import Any

import msgspec

from perdure.demo.agent import NAME
from perdure.demo.program import install
from perdure.errors import PerdureError, TmuxMissing
from perdure.host.processes import is_inhabited
from perdure.host.run import Ran, run
from perdure.host.users import current_user
from perdure.host.waiting import wait_until
from perdure.tmux.run import gather, start

_SOCKET = "tmux"
#: How long a command of ours may take; a restore waits for agents.
_PATIENCE = 120.0
#: How long what has been told to end may take to do so.
_LEAVING = 5.0
#: What the programs of this machine get of the real one: how to run, and in which language.
_INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH")


class Machine:
    """A private server, on a socket in a directory of its own. Nothing outside that directory is touched.

    The directory is there at once, and stays until `close`.
    """

    def __init__(self) -> None:
        if not shutil.which("tmux"):
            raise TmuxMissing("tmux is not installed or not on the PATH; the demonstration needs tmux 3.2 or newer.")
        self._me = current_user()
        #: Real path: tmux and the kernel tell no other.
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="perdure-demo-"))
        self._doomed = self.root
        self.home = os.path.join(self.root, "home")
        # A socket's path has to stay below about 100 bytes.
        self.socket = os.path.join(self.root, _SOCKET)
        self._agents = os.path.join(self.home, f".{NAME}")
        self._programs = os.path.join(self.root, "bin")
        self._environ = _environment(os.environ, self.root, self.home, self._programs)

    def set_up(self) -> None:
        """Make the home and put the agent on the PATH, as people do: a login shell forgets the PATH it is given."""
        for folder in (self.home, self._programs):
            os.mkdir(folder, 0o700)
        install(self._programs)
        with open(os.path.join(self.home, ".profile"), "w", encoding="utf-8") as profile:
            profile.write(f"PATH={quote(self._programs)}:$PATH\n")

    def tmux(self, *words: str) -> str:
        """Return what a tmux command printed."""
        client = start(self.socket, words, owner=self._me, environ=self._environ)
        gather([client])
        if client.status != 0:
            raise PerdureError(f"tmux {words[0]} failed: {client.complaint or 'no answer'}.")
        return client.answer.decode(errors="replace")

    def perdure(self, *words: str) -> Ran:
        """Run perdure itself, as its user would, on this server alone."""
        argv = [sys.executable, "-P", "-m", "perdure", *words, "--socket", self.socket, "--json"]
        return run(argv, environ=self._environ, cwd=self.root, timeout=_PATIENCE)

    def running(self) -> frozenset[str]:
        """Return the conversations agents say they are in."""
        folder = os.path.join(self._agents, "running")
        return frozenset(str(each["id"]) for name in _names(folder) for each in _records(os.path.join(folder, name)))

    def turns(self) -> int:
        """Return how many turns there are in all conversations."""
        folder = os.path.join(self._agents, "conversations")
        return sum("role" in each for name in _names(folder) for each in _records(os.path.join(folder, name)))

    def crash(self) -> int:
        """End the server with SIGKILL, as the kernel does when memory runs out; return which process it was."""
        pid = self._server()
        if pid is None:
            raise PerdureError("The tmux server is gone already.")
        os.kill(pid, signal.SIGKILL)
        if not wait_until(lambda: self._server() != pid, _LEAVING):
            raise PerdureError(f"The tmux server {pid} did not end.")
        return pid

    def close(self) -> None:
        """End the server and what runs in it, a hung one too, and remove the directory."""
        self._end_server()
        # They write to the very last: what is removed under them they might make again.
        wait_until(self._is_deserted, _LEAVING)
        self._move_away()
        self._end_server()
        wait_until(self._is_removed, _LEAVING)

    def _move_away(self) -> None:
        """Give everything another name, so that no server can begin to listen any more.

        Whoever was interrupted may have been starting one at that very moment. If it listens already, it does so in the
        directory that was moved, and is found there; else it does not find the old one, and ends by itself.
        """
        self._doomed = f"{self.root}~"
        os.rename(self.root, self._doomed)
        self.socket = os.path.join(self._doomed, _SOCKET)

    def _end_server(self) -> None:
        pid = self._server()
        if pid is None:
            return
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGCONT)
        if not wait_until(lambda: self._server() != pid, _LEAVING):
            os.kill(pid, signal.SIGKILL)

    def _server(self) -> int | None:
        """The process that listens on the socket, None when there is none."""
        with sockets.socket(sockets.AF_UNIX) as probe:
            try:
                probe.connect(self.socket)
            except OSError:
                return None
            if hasattr(sockets, "SO_PEERCRED"):
                # From the kernel: a server that hangs cannot be asked.
                return int(unpack("3i", probe.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, 12))[0])
        return int(self.tmux("display-message", "-p", "#{pid}"))

    def _is_deserted(self) -> bool:
        """Say whether nobody is left: each agent holds its conversation's lock, once it has come that far."""
        if is_inhabited(self.root):
            return False
        folder = os.path.join(self._agents, "locks")
        for name in _names(folder):
            with open(os.path.join(folder, name), "rb") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
        return True

    def _is_removed(self) -> bool:
        shutil.rmtree(self._doomed, ignore_errors=True)
        return not os.path.exists(self._doomed)


def _environment(ours: Mapping[str, str], root: str, home: str, programs: str) -> dict[str, str]:
    return {
        **{name: ours[name] for name in _INHERITED if name in ours},
        "PATH": f"{programs}:{ours.get('PATH', os.defpath)}",
        "HOME": home,
        "SHELL": "/bin/sh",
        "TERM": "xterm",
        "TMPDIR": root,
        "TMUX_TMPDIR": root,
        "PERDURE_STATE_DIR": os.path.join(root, "state"),
    }


def _names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not name.endswith(".new")]
    except FileNotFoundError:
        return []


def _records(path: str) -> list[dict[str, Any]]:
    """Return the JSON lines of a file that may be written, or gone, at this moment."""
    try:
        with open(path, "rb") as file:
            return [msgspec.json.decode(line) for line in file]
    except (FileNotFoundError, msgspec.DecodeError):
        return []
