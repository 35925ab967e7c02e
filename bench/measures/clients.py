"""How many tmux clients a save starts: each costs a fork, an exec and a turn of the server."""

from __future__ import annotations

import os
import shlex
import shutil

from bench.measures import cold
from bench.sandbox import BenchFailed, Sandbox
from bench.servers import Server


def count(server: Server, sandbox: Sandbox) -> dict[str, int]:
    """Return the clients of a save without and with scrollback."""
    return {
        cold.SAVE: _clients(server, sandbox, "--no-scrollback"),
        cold.SAVE_SCROLLBACK: _clients(server, sandbox),
    }


def _clients(server: Server, sandbox: Sandbox, *options: str) -> int:
    """Save once with a tmux first on the PATH that writes a line and becomes the real one."""
    folder = sandbox.directory("shim")
    real, seen, shim = _real_tmux(server), os.path.join(folder, "seen"), os.path.join(folder, "tmux")
    with open(shim, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\necho >>{shlex.quote(seen)}\nexec {shlex.quote(real)} "$@"\n')
    os.chmod(shim, 0o700)
    environ = {**server.environ, "PATH": os.pathsep.join([folder, server.environ["PATH"]])}
    counted = Server(panes=server.panes, socket=server.socket, environ=environ)
    cold.save(counted, sandbox.directory("state"), "saved", *options)
    with open(seen, encoding="ascii") as file:
        return len(file.readlines())


def _real_tmux(server: Server) -> str:
    path = shutil.which("tmux", path=server.environ["PATH"])
    if path is None:
        raise BenchFailed("tmux is not on the PATH")
    return path
