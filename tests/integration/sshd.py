"""A real sshd on loopback, of the user who runs the tests, with keys and a home of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from perdure.host.users import current_user
from perdure.model.config import BackendConfig

_INSTALL = "apt-get install -y openssh-server"
_PATIENCE = 30.0
#: Where scripts/need-sshd puts one. The home of a test is another.
_CACHE = os.path.join(
    os.environ.get("PERDURE_TEST_CACHE")
    or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "perdure"),
    "sshd",
)


class Sshd:
    """A server that runs: what a backend needs to get there, and the home one has there."""

    def __init__(self, root: str, program: str) -> None:
        self._root, self._program = root, program
        self.home = os.path.join(root, "there")
        self.port = _free_port()
        os.mkdir(self.home)
        for name in ("host", "user", "stranger"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._path(name)]
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
        shutil.copy(self._path("user.pub"), self._path("authorized"))
        with open(self._path("host.pub")) as key, open(self._path("known"), "w") as known:
            known.write(f"[127.0.0.1]:{self.port} {key.read()}")
        with open(self._path("config"), "w") as file:
            file.write(
                f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self._path('host')}\nPidFile none\n"
                f"AuthorizedKeysFile {self._path('authorized')}\nStrictModes no\nUsePAM no\n"
                f"PasswordAuthentication no\nSetEnv HOME={self.home}\n"
            )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and return when it listens. Skips the test when this user cannot run it."""
        words = [self._program, "-D", "-e", "-f", self._path("config")]
        log = open(self._path("log"), "wb")  # noqa: SIM115 - the process's own
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=log, start_new_session=True)
        log.close()
        deadline = time.monotonic() + _PATIENCE
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                with open(self._path("log")) as file:
                    pytest.skip(f"{self._program} does not run here: {file.read().strip()[-200:]}")
            time.sleep(0.02)

    def end(self) -> None:
        """End it with every connection it has."""
        if self._process is None:
            return
        for pid in (self._process.pid, *_below(self._process.pid)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._process.wait(_PATIENCE)
        self._process = None

    def cut(self) -> None:
        """End every connection, as a network does that fails; what was started by them goes on."""
        assert self._process is not None
        for pid in _below(self._process.pid):
            # One that is killed takes others along.
            with suppress(FileNotFoundError, ProcessLookupError):
                with open(f"/proc/{pid}/comm") as file:
                    is_its = file.read().startswith("sshd")
                if is_its:
                    os.kill(pid, signal.SIGKILL)

    def config(self, **changes: object) -> BackendConfig:
        """What a user writes down to get there."""
        options = (
            f"UserKnownHostsFile={self._path('known')}",
            "GlobalKnownHostsFile=/dev/null",
            "StrictHostKeyChecking=yes",
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
        )
        fields = {
            "kind": "ssh",
            "host": "127.0.0.1",
            "user": current_user().name,
            "port": self.port,
            "identity": self._path("user"),
            "options": options,
        }
        return BackendConfig(**{**fields, **changes})  # type: ignore[arg-type]

    def stranger(self) -> str:
        """A key nobody is let in with."""
        return self._path("stranger")

    def _path(self, name: str) -> str:
        return os.path.join(self._root, name)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def running_sshd(root: str) -> Iterator[Sshd]:
    """A server that runs; the test is skipped, with the line that installs it, where there is none."""
    program = shutil.which("sshd", path=f"/usr/sbin:/usr/local/sbin:/sbin:{_CACHE}")
    if sys.platform != "linux" or program is None or shutil.which("ssh") is None:
        pytest.skip(f"There is no sshd here; this installs it: {_INSTALL}")
    os.mkdir(root)
    server = Sshd(root, program)
    try:
        server.start()
        yield server
    finally:
        server.end()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _below(pid: int) -> list[int]:
    """The sshd processes below another."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]
