"""`perdure up` beside a server, and somebody who follows what it tells."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from bench.sandbox import PATIENCE, BenchFailed, Sandbox, perdure
from bench.servers import Server
from perdure.daemon.call import call, stream
from perdure.daemon.protocol import AskRuns, Events
from perdure.errors import PerdureError
from perdure.model.event import Event, EventKind, Lagged
from perdure.model.run import Run

IsIt = Callable[[Event], bool]


class Follower:
    """Listens on the daemon's socket, and notes when each event came in."""

    def __init__(self, state: str) -> None:
        self._state = state
        self._heard: list[tuple[float, Event]] = []
        self._news = threading.Condition()
        self._silence: str | None = None
        threading.Thread(target=self._listen, daemon=True).start()

    def delay(self, change: Callable[[], object], *chain: IsIt) -> list[float]:
        """Return the seconds from just before a change until each of these events, one behind the other, came in."""
        mark = len(self._heard)
        start = time.monotonic()
        change()
        delays = []
        for is_it in chain:
            mark, at = self._await(mark, is_it)
            delays.append(at - start)
        return delays

    def _await(self, mark: int, is_it: IsIt) -> tuple[int, float]:
        deadline = time.monotonic() + PATIENCE
        with self._news:
            while True:
                for number in range(mark, len(self._heard)):
                    if is_it(self._heard[number][1]):
                        return number + 1, self._heard[number][0]
                mark = len(self._heard)
                if self._silence is not None:
                    raise BenchFailed(self._silence)
                if not self._news.wait(deadline - time.monotonic()):
                    raise BenchFailed("the daemon did not tell of a change that was made")

    def _listen(self) -> None:
        try:
            for each in stream(self._state, Events(follow=True)):
                at = time.monotonic()
                if isinstance(each, Lagged):
                    raise PerdureError("the daemon took us for too slow")
                with self._news:
                    self._heard.append((at, each.event))
                    self._news.notify_all()
        except PerdureError as error:
            with self._news:
                self._silence = error.message
                self._news.notify_all()


class Watcher:
    """A daemon that has seen everything."""

    def __init__(self, pid: int, state: str, url: str) -> None:
        self.pid = pid
        self.state = state
        #: Where it is asked over HTTP.
        self.url = url

    @property
    def token(self) -> str:
        """The owner's token."""
        with open(os.path.join(self.state, "api.token"), encoding="ascii") as file:
            return file.read().strip()

    def follow(self) -> Follower:
        """Return somebody who listens from now on until the daemon ends."""
        follower = Follower(self.state)
        follower.delay(lambda: None, lambda event: event.kind is EventKind.DAEMON_STARTED)
        return follower

    def runs(self) -> list[Run]:
        """Return the runs whose panes are there."""
        return msgspec.convert(call(self.state, AskRuns(), PATIENCE), list[Run])

    def await_runs(self, are_there: Callable[[list[Run]], bool], otherwise: str) -> list[Run]:
        """Return the runs once they are as they should be. Asked rarely: whoever asks is work for the daemon."""
        deadline = time.monotonic() + PATIENCE
        while not are_there(runs := self.runs()):
            if time.monotonic() > deadline:
                raise BenchFailed(otherwise)
            time.sleep(0.5)
        return runs


@contextmanager
def watching(server: Server, sandbox: Sandbox) -> Iterator[Watcher]:
    """Run a daemon with a state directory of its own, and end it, whatever happens meanwhile."""
    state = sandbox.directory("state")
    process = subprocess.Popen(
        [perdure(), "up", "--json", "--port", "0"],
        env={**server.environ, "PERDURE_STATE_DIR": state},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        if not ready:
            raise BenchFailed(f"perdure up ended with {process.wait()}")
        yield Watcher(process.pid, state, msgspec.json.decode(ready)["api"]["url"])
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        if process.stdout is not None:
            process.stdout.close()
