"""capture -> identify -> save as a daemon runs it: in a process that has everything imported and the store open."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack

from bench.sandbox import BenchFailed, Sandbox
from bench.servers import Server
from bench.timing import Step
from perdure.cli._setup import Setup
from perdure.host.clock import now
from perdure.snapshots.ask import ask
from perdure.snapshots.capture import Memory
from perdure.snapshots.look import look
from perdure.snapshots.save import SaveResult, save
from perdure.tmux.sockets import canonical

WARM = "save in process"
WARM_FORGETFUL = "save in process, no memory"


def steps(server: Server, sandbox: Sandbox, stack: ExitStack) -> dict[str, Step]:
    """Return the save with a memory of options kept between calls, and without one; `stack` closes their stores."""
    savers = {WARM: Saver(server, sandbox, Memory()), WARM_FORGETFUL: Saver(server, sandbox, None)}
    for saver in savers.values():
        stack.callback(saver.setup.close)
        saver.save()
    return {name: saver.step for name, saver in savers.items()}


class Saver:
    """What a daemon keeps between two saves of one server."""

    def __init__(self, server: Server, sandbox: Sandbox, memory: Memory | None) -> None:
        os.environ.update(server.environ, PERDURE_STATE_DIR=sandbox.directory("state"))
        self.setup = Setup()
        self._server = server
        self._socket = canonical(server.socket)
        self._memory = memory
        self._around = self.setup.surroundings()

    def save(self) -> SaveResult:
        """Save the server once, without scrollback."""
        at = now()
        remembered = self._memory is not None and self._memory.is_fresh(self._socket, at)
        question = ask(self._socket, self.setup.me, options=not remembered)
        looked = look([question], self._around, at, memory=self._memory)
        return save(looked, self.setup.store)[0]

    def step(self) -> float:
        """Return the seconds of a save that finds everything unchanged; raise when it finds anything else."""
        start = time.perf_counter()
        result = self.save()
        seconds = time.perf_counter() - start
        if result.result != "unchanged" or result.panes != self._server.panes:
            raise BenchFailed(f"expected {self._server.panes} panes unchanged, but the save came to {result}")
        return seconds
