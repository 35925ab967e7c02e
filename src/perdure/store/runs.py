"""Runs and what has happened to them: kept together, numbered, each readable or left out on its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from perdure import errors
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.run import Run, number_of, run_id
from perdure.store.driver import Driver, Row, Value, with_list
from perdure.store.numbers import EVENTS, GIVING, RUNS, Numbers
from perdure.store.queries import queries
from perdure.store.rows import UNREADABLE, canonical, decoded, packed, stamp

#: How many events are fetched at once.
_PAGE = 500
#: What both databases can count to.
_LAST = (1 << 63) - 1
_LISTINGS = {None: "list_runs", True: "list_runs_that_are_over", False: "list_runs_that_go_on"}


class Runs:
    """A `RunStore` and `EventLog`. What cannot be read costs only itself: such a run or event is not there."""

    def __init__(self, driver: Driver, state_dir: str) -> None:
        self.driver = driver
        self.numbers = Numbers(driver, state_dir)
        self._sql = queries()

    def new_runs(self, count: int) -> tuple[str, ...]:
        if count < 1:
            return ()
        with self.driver.transaction(GIVING):
            return tuple(map(run_id, self.numbers.take(RUNS, count)))

    def record(self, runs: Sequence[Run], events: Sequence[Event]) -> tuple[StoredEvent, ...]:
        if not runs and not events:
            return ()
        # One at a time, whoever it is: with a later number visible, every earlier one is too.
        with self.driver.transaction(GIVING):
            self.keep_runs(runs)
            return self.add_events(events)

    def add_events(self, events: Sequence[Event]) -> tuple[StoredEvent, ...]:
        """Give events the next numbers and keep them, inside a transaction that gives numbers."""
        numbers = self.numbers.take_for_rows(EVENTS, len(events)) if events else ()
        stored = tuple(StoredEvent(seq=seq, event=event) for seq, event in zip(numbers, events, strict=True))
        self.keep_events(stored)
        return stored

    def list_runs(
        self, *, host: str | None = None, over: bool | None = None, ended_after: datetime | None = None
    ) -> tuple[Run, ...]:
        if ended_after is None:
            rows = self.driver.fetch_as_is(self._sql[_LISTINGS[over]], host=host)
        else:
            rows = self.driver.fetch_as_is(self._sql["list_runs_that_ended_after"], host=host, after=stamp(ended_after))
        found = map(run_from, rows)
        return tuple(run for run in found if run is not None)

    def get_run(self, id: str) -> Run:
        number = number_of(id)
        for row in self.driver.fetch_as_is(self._sql["get_run"], number=number) if number is not None else ():
            run = run_from(row)
            if run is None:
                raise errors.NotFound(f"Run {id} cannot be read back; the others are not affected.", run=id)
            if run.id == id:
                return run
        raise errors.NotFound(f"There is no run {id}.", run=id)

    def forget_runs(self, before: datetime) -> int:
        return self.driver.execute(self._sql["delete_old_runs"], before=stamp(before))

    def read_events(
        self, *, after: int = 0, limit: int = 500, run: str | None = None, kinds: Collection[EventKind] = ()
    ) -> tuple[StoredEvent, ...]:
        query = self._sql["read_events" if run is None else "read_events_of"]
        sql, parameters = with_list(query, "kinds", sorted(kind.value for kind in kinds or EventKind))
        if run is not None:
            parameters["run"] = number_of(run)
        found: list[StoredEvent] = []
        # Unreadable ones do not count: whoever gets fewer than asked for has seen the last.
        for row in self._pages(sql, after, min(limit, _PAGE), **parameters):
            event = event_from(row)
            if event is not None:
                found.append(event)
            if len(found) >= limit:
                break
        return tuple(found)

    def last_event(self) -> int:
        return self.numbers.given(EVENTS)

    def go_on_behind(self, event: int) -> None:
        """Let no event get a number up to this one, which somebody remembers, although everything else may be lost."""
        if self.numbers.given(EVENTS) < event:
            with self.driver.transaction(GIVING):
                self.numbers.raise_past(EVENTS, event)

    def forget_events(self, before: datetime) -> int:
        with self.driver.transaction(GIVING):
            # With the last of them gone, only the counter tells which numbers were given.
            self.numbers.raise_to(EVENTS, 0)
            return self.driver.execute(self._sql["delete_old_events"], before=stamp(before))

    def keep_runs(self, runs: Iterable[Run]) -> None:
        """Keep runs as they are now, inside a transaction that gives numbers. None of their numbers is given again."""
        highest = 0
        for run in runs:
            number = _number(run.id)
            highest = max(highest, number)
            self.driver.execute(
                self._sql["put_run"],
                number=number,
                host=run.server.host,
                ended_at=None if run.ended_at is None else stamp(run.ended_at),
                body=packed(canonical(run)),
            )
        self.numbers.see(RUNS, highest)

    def keep_events(self, events: Iterable[StoredEvent]) -> None:
        """Keep events under their numbers, which nothing has yet, inside a transaction that gives numbers."""
        self.driver.execute_many(self._sql["insert_event"], [_event_row(each) for each in events])

    def damaged_runs(self) -> Iterator[int]:
        """Yield the number of every run that cannot be read back."""
        for row in self.driver.fetch_as_is(self._sql["list_runs"], host=None):
            if run_from(row) is None:
                yield row[0]

    def damaged_events(self) -> Iterator[int]:
        """Yield the number of every event that cannot be read back."""
        for row in self._pages(self._sql["all_events"], 0, _PAGE):
            if event_from(row) is None:
                yield row[0]

    def set_run_aside(self, number: int, now: datetime) -> None:
        """Move a damaged run to where it does no harm."""
        with self.driver.transaction(GIVING):
            self.numbers.raise_to(RUNS, number)
            self.driver.execute(self._sql["set_run_aside"], at=stamp(now), number=number)
            self.driver.execute(self._sql["delete_run"], number=number)

    def set_event_aside(self, seq: int, now: datetime) -> None:
        """Move a damaged event to where it does no harm."""
        with self.driver.transaction(GIVING):
            self.numbers.raise_to(EVENTS, seq)
            self.driver.execute(self._sql["set_event_aside"], at=stamp(now), seq=seq)
            self.driver.execute(self._sql["delete_event"], seq=seq)

    def _pages(self, sql: str, after: int, size: int, **parameters: Value) -> Iterator[Row]:
        """Yield every row behind a number, as many at once as are wanted."""
        while size > 0:
            rows = self.driver.fetch_as_is(sql, after=min(after, _LAST), limit=size, **parameters)
            yield from rows
            if len(rows) < size:
                return
            after = rows[-1][0]


def run_from(row: Row) -> Run | None:
    """Return a run of which everything that is said twice agrees, None when it cannot be read."""
    number, host, ended_at, body = row
    try:
        run = decoded(Run, body)
        ended = None if run.ended_at is None else stamp(run.ended_at)
    except UNREADABLE:
        return None
    return run if (run.id, run.server.host, ended) == (run_id(number), host, ended_at) else None


def event_from(row: Row) -> StoredEvent | None:
    """Return an event of which everything that is said twice agrees, None when it cannot be read."""
    seq, happened_at, kind, run, body = row
    try:
        stored = decoded(StoredEvent, body)
        event = stored.event
        said = (stored.seq, stamp(event.at), event.kind, None if event.run is None else _number(event.run))
    except UNREADABLE:
        return None
    return stored if said == (seq, happened_at, kind, run) else None


def _event_row(stored: StoredEvent) -> dict[str, Value]:
    event = stored.event
    return {
        "seq": stored.seq,
        "happened_at": stamp(event.at),
        "kind": event.kind.value,
        "run": None if event.run is None else _number(event.run),
        "body": packed(canonical(stored)),
    }


def _number(id: str) -> int:
    number = number_of(id)
    if number is None or run_id(number) != id:
        raise ValueError(f"{id!r} is no run's id")
    return number
