"""`perdure up` in the background of a test, and what it says."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from perdure.daemon import protocol
from perdure.daemon.call import call
from perdure.errors import NoDaemon, StoreUnusable
from perdure.host.places import store_url
from perdure.model.event import EventKind, StoredEvent
from perdure.model.run import Run
from perdure.store import open_store
from tests.acceptance.kit import wait_for
from tests.perdure_cli import Perdure

#: How long the daemon may take to begin or to end; generous, since nothing is measured by it.
PATIENCE = 60.0


def state_dir() -> str:
    """Return where the daemon of this test keeps everything."""
    return os.environ["PERDURE_STATE_DIR"]


class Watching:
    """A daemon at work: its runs as it tells them over its socket, its events as they are stored."""

    def __init__(self, process: subprocess.Popen[bytes], said: dict[str, Any], log: str) -> None:
        self.process = process
        #: What it said when it was ready.
        self.said = said
        self._log = log

    @property
    def pid(self) -> int:
        """Its process."""
        return self.process.pid

    @property
    def log(self) -> str:
        """What it said on stderr."""
        with open(self._log) as file:
            return file.read()

    def ask(self, request: protocol.AnyRequest) -> Any:
        """Return its answer as plain data."""
        return call(state_dir(), request, PATIENCE)

    def runs(self, *, over: bool = False) -> list[Run]:
        """Return the runs whose panes are there; with `over`, also those that have ended."""
        return msgspec.convert(self.ask(protocol.AskRuns(over=over)), list[Run])

    def run(self, name: str) -> Run:
        """Return the run at `session:window.pane`, or by its id."""
        return find(self.runs(), name)

    def await_run(self, name: str, is_it: Callable[[Run], bool] = lambda run: True, what: str = "") -> Run:
        """Return the run at a place, or by its id, once it is there and as it should be."""
        found: list[Run] = []

        def look() -> bool:
            found[:] = [run for run in self.runs() if name in (run.id, run.place.target) and is_it(run)]
            return bool(found)

        self.wait_for(look, f"{name} {what}")
        return found[0]

    def await_gone(self, name: str) -> None:
        """Wait until no run that goes on is at a place, or has an id."""
        self.wait_for(
            lambda: not any(name in (run.id, run.place.target) for run in self.runs()), f"{name} to have gone"
        )

    def await_state(self, name: str, *words: str) -> Run:
        """Wait until a run is in one of these states; return it."""
        return self.await_run(name, lambda run: run.status.word in words, f"to be {' or '.join(words)}")

    def events(self, after: int = 0, *kinds: EventKind) -> list[StoredEvent]:
        """Return what has happened behind a number."""
        return stored_events(after, kinds)

    def last(self) -> int:
        """Return the number of the last event."""
        events = self.events()
        return events[-1].seq if events else 0

    def await_event(
        self, kind: EventKind, is_it: Callable[[StoredEvent], bool] = lambda event: True, after: int = 0
    ) -> StoredEvent:
        """Return the first event of a kind that is the one, once it is there."""
        found: list[StoredEvent] = []

        def look() -> bool:
            found[:] = [event for event in self.events(after, kind) if is_it(event)]
            return bool(found)

        self.wait_for(look, kind)
        return found[0]

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is so; the log is shown when it does not become so."""
        try:
            wait_for(condition, what)
        except AssertionError as error:
            told = [f"{each.seq} {each.event.kind} {each.event.run} {each.event.data}" for each in self.events()]
            raise AssertionError("\n".join([str(error), "events:", *told, "log:", self.log])) from None

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it and return its exit code."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def watching(perdure: Perdure, *args: str, env: Mapping[str, str] | None = None) -> Iterator[Watching]:
    """Start `perdure up`, wait until it has seen everything, and end it with the block, which has to go well."""
    watcher = begin(perdure, *args, env=env)
    try:
        yield watcher
        if watcher.process.poll() is None:
            assert watcher.end() == 0, watcher.log
    finally:
        dispose(watcher)


def begin(perdure: Perdure, *args: str, env: Mapping[str, str] | None = None) -> Watching:
    """Start `perdure up` and wait until it has seen everything; to be ended by `dispose`, whatever becomes of it."""
    log = os.path.join(os.environ["HOME"], f"up-{os.urandom(4).hex()}.log")
    with open(log, "wb") as errors:
        process = subprocess.Popen(
            perdure.argv("up", "--json", *args),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **(env or {})},
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    with open(log) as file:
        assert line, f"it ended with {process.wait()}: {file.read()}"
    return Watching(process, msgspec.json.decode(line)["watching"], log)


def dispose(watcher: Watching) -> None:
    """See that nothing of a daemon is left."""
    if watcher.process.poll() is None:
        watcher.process.kill()
        watcher.process.wait()
    if watcher.process.stdout is not None:
        watcher.process.stdout.close()


def find(runs: Sequence[Run], name: str) -> Run:
    """Return the one run at `session:window.pane`, or by its id; fails the test when it is not one."""
    found = [run for run in runs if name in (run.id, run.place.target)]
    assert len(found) == 1, (name, [(run.id, run.place.target) for run in runs])
    return found[0]


def stored_events(after: int = 0, kinds: Collection[EventKind] = ()) -> list[StoredEvent]:
    """Return the stored events behind a number, whether or not anybody is at work."""
    with _store() as store:
        return list(store.read_events(after=after, limit=100_000, kinds=kinds)) if store is not None else []


def stored_runs() -> dict[str, Run]:
    """Return every run that is stored, over or not, by its id."""
    with _store() as store:
        return {run.id: run for run in store.list_runs()} if store is not None else {}


@contextmanager
def _store() -> Iterator[Any]:
    """The store for reading; None while it is just being made."""
    try:
        store = open_store(store_url(os.environ, state_dir()), state_dir=state_dir(), read_only=True)
    except StoreUnusable:
        store = None
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def is_watched() -> bool:
    """Return whether a daemon answers."""
    try:
        call(state_dir(), protocol.AskStatus(), PATIENCE)
    except NoDaemon:
        return False
    return True


def kinds_of(events: Sequence[StoredEvent]) -> list[EventKind]:
    """Return what happened, in order."""
    return [each.event.kind for each in events]
