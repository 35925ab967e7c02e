"""Processes that use a peer's store, started and asked from here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bench.processes import held
from bench.sandbox import BenchFailed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BARE, PERDURE, HERMES = "bare", "perdure", "hermes"


class Hand:
    """A process of a peer with a store open."""

    def __init__(self, peer: str, python: str, directory: str, environ: Mapping[str, str]) -> None:
        self.peer = peer
        self._process = subprocess.Popen(
            [python, "-m", "bench.chatting.worker", peer, directory],
            env={**environ, "PYTHONPATH": _path(peer), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
        )
        self.answer()

    def ask(self, do: str, **order: Any) -> None:
        """Have something done, and wait for nothing."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **order}).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Return what came of what was asked for."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr is not None
            said = self._process.stderr.read().decode(errors="replace").strip().splitlines()
            raise BenchFailed(f"a process of {self.peer} ended: {said[-1] if said else 'without a word'}")
        return json.loads(line)

    def do(self, do: str, **order: Any) -> Any:
        """Have something done, and return what came of it."""
        self.ask(do, **order)
        return self.answer()

    @property
    def memory(self) -> int:
        """How much it holds, in KiB."""
        return held(self._process.pid)

    def end(self) -> None:
        """Let it end, by force when it does not."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _path(peer: str) -> str:
    """Where a peer's Python looks first: ours is the program beside this one, wherever another may be installed."""
    return ROOT if peer == HERMES else os.pathsep.join((os.path.join(ROOT, "src"), ROOT))


class Peers:
    """The peers that are there, by name: with which Python they run, and in which environment."""

    def __init__(self, environ: Mapping[str, str], hermes: str | None) -> None:
        self._environ = environ
        self.pythons = {BARE: sys.executable, PERDURE: sys.executable}
        if hermes is not None:
            self.pythons[HERMES] = hermes

    @property
    def gateways(self) -> Sequence[str]:
        """Those that keep chats."""
        return [peer for peer in self.pythons if peer != BARE]

    @contextmanager
    def hands(self, peer: str, directory: str, count: int = 1) -> Iterator[list[Hand]]:
        """So many processes of a peer at one store."""
        found: list[Hand] = []
        try:
            found.extend(Hand(peer, self.pythons[peer], directory, self._environ) for _ in range(count))
            yield found
        finally:
            for each in found:
                each.end()
