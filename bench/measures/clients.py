"""How many tmux clients a save and a restore start: each costs a fork, an exec and a turn of the server."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable

from msgspec import structs

from bench.measures import cold, restores
from bench.sandbox import BenchFailed, Sandbox
from bench.servers import Server
from bench.vacant import Vacant


def of_saves(server: Server, sandbox: Sandbox) -> dict[str, int]:
    """Return the clients of a save without and with scrollback."""

    def save(counted: Server, *options: str) -> None:
        cold.save(counted, sandbox.directory("state"), "saved", *options)

    return {
        cold.SAVE: _count(lambda counted: save(counted, "--no-scrollback"), server, sandbox),
        cold.SAVE_SCROLLBACK: _count(save, server, sandbox),
    }


def of_restores(vacant: Vacant, sandbox: Sandbox) -> dict[str, int]:
    """Return the clients of a restore without and with scrollback."""

    def restore(counted: Server, state: str) -> None:
        with vacant.alone():
            restores.command(structs.replace(vacant, server=counted), state)

    return {
        restores.COLD: _count(lambda counted: restore(counted, vacant.lean), vacant.server, sandbox),
        restores.COLD_SCROLLBACK: _count(lambda counted: restore(counted, vacant.full), vacant.server, sandbox),
    }


def _count(work: Callable[[Server], None], server: Server, sandbox: Sandbox) -> int:
    """Do it once with a tmux first on the PATH that writes a line and becomes the real one."""
    folder = sandbox.directory("shim")
    real, seen, shim = _real_tmux(server), os.path.join(folder, "seen"), os.path.join(folder, "tmux")
    with open(shim, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\necho >>{shlex.quote(seen)}\nexec {shlex.quote(real)} "$@"\n')
    os.chmod(shim, 0o700)
    environ = {**server.environ, "PATH": os.pathsep.join([folder, server.environ["PATH"]])}
    work(Server(panes=server.panes, socket=server.socket, environ=environ))
    with open(seen, encoding="ascii") as file:
        return len(file.readlines())


def _real_tmux(server: Server) -> str:
    path = shutil.which("tmux", path=server.environ["PATH"])
    if path is None:
        raise BenchFailed("tmux is not on the PATH")
    return path
