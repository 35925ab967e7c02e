"""Runs and what has happened to them: kept together, in order, and each costs only itself when it is damaged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure import errors
from perdure.model import text
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.run import Health, Place, Run, RunState, Status
from perdure.ports import EventLog, Leases, RunStore
from perdure.store import open_store
from perdure.store.repair import repair
from perdure.store.store import Store
from tests.builders import a_server, at
from tests.contract.store.conftest import Place as StorePlace
from tests.contract.store.runs import a_run, an_event

SPOILT = b"spoilt"


def ids(store: Store, **which: object) -> list[str]:
    return [run.id for run in store.list_runs(**which)]  # type: ignore[arg-type]


def seqs(store: Store, **which: object) -> list[int]:
    return [stored.seq for stored in store.read_events(**which)]  # type: ignore[arg-type]


def test_it_keeps_the_contracts_of_the_ports(store: Store) -> None:
    runs: RunStore = store
    log: EventLog = store
    leases: Leases = store
    assert runs.list_runs() == ()
    assert (log.read_events(), log.last_event()) == ((), 0)
    leases.drop_lease("daemon", "nobody")


def test_runs_and_events_come_back_whole(store: Store, opened: Callable[[], Store]) -> None:
    bare = Run(
        id="r2",
        server=a_server(),
        place=Place(session="work", window=0, pane=0),
        pane="%0",
        status=Status(since=at(0)),
        created_at=at(0),
    )
    events = [an_event(), an_event(EventKind.DAEMON_STARTED, run=None, server=None, data={})]
    stored = store.record([a_run(), bare], events)
    assert stored == tuple(StoredEvent(seq=seq, event=event) for seq, event in enumerate(events, 1))
    other = opened()
    assert other.list_runs() == (a_run(), bare)
    assert other.get_run("r2") == bare
    assert other.read_events() == stored
    assert store.check() == ()


def test_a_run_is_kept_as_it_is_now(store: Store) -> None:
    store.record([a_run()], [])
    store.record([a_run(title="b"), a_run("r2"), a_run(title="c")], [])
    assert store.list_runs() == (a_run(title="c"), a_run("r2"))


def test_runs_are_listed_by_number_host_and_whether_they_are_over(store: Store) -> None:
    elsewhere = a_server(host="desktop")
    store.record(
        [a_run("r10"), a_run("r9", ended_at=at(5)), a_run("r2", server=elsewhere), a_run("r11", ended_at=at(6))], []
    )
    assert ids(store) == ["r2", "r9", "r10", "r11"]
    assert ids(store, over=True) == ["r9", "r11"]
    assert ids(store, over=False) == ["r2", "r10"]
    assert ids(store, host="laptop", over=False) == ["r10"]
    assert ids(store, host="desktop") == ["r2"]
    assert ids(store, host="none") == []
    assert [ids(store, ended_after=at(seconds)) for seconds in (4.999999, 5, 6)] == [["r9", "r11"], ["r11"], []]
    assert ids(store, ended_after=at(5), host="desktop", over=True) == []


@pytest.mark.parametrize("id", ["r1", "r01", "1", "", "r", "r\0", "r99999999999999999999", "é"])
def test_what_is_not_there_is_not_found(store: Store, id: str) -> None:
    if id != "r1":
        store.record([a_run()], [an_event()])
    with pytest.raises(errors.NotFound, match="There is no run"):
        store.get_run(id)
    if id != "r01":
        assert store.read_events(run=id) == ()


def test_a_wrong_id_is_refused_before_anything_is_kept(store: Store) -> None:
    for runs, events in (([a_run(), a_run("r01")], []), ([a_run()], [an_event(), an_event(run="work")])):
        with pytest.raises(ValueError, match="no run's id"):
            store.record(runs, events)
    assert (store.list_runs(), store.read_events(), store.last_event()) == ((), (), 0)


def test_nothing_to_record_records_nothing(store: Store) -> None:
    assert store.record([], []) == ()
    assert store.new_runs(0) == ()
    assert store.last_event() == 0


def test_record_is_all_or_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.record([a_run()], [an_event()])

    def fails(events: object) -> None:
        raise errors.StoreUnusable

    with monkeypatch.context() as broken:
        broken.setattr(store, "keep_events", fails)
        with pytest.raises(errors.StoreUnusable):
            store.record([a_run(title="lost"), a_run("r2")], [an_event()])
    assert store.list_runs() == (a_run(),)
    assert (seqs(store), store.last_event()) == ([1], 1)
    assert [stored.seq for stored in store.record([], [an_event()])] == [2]


def test_events_are_read_from_a_number_on(store: Store) -> None:
    kinds = (EventKind.RUN_CREATED, EventKind.STATE_CHANGED, EventKind.RUN_DELETED)
    events = [an_event(kind, run=run) for run in ("r1", "r2", None) for kind in kinds]
    store.record([], events)
    assert [stored.event for stored in store.read_events()] == events
    assert seqs(store, after=7) == [8, 9]
    assert seqs(store, after=9) == seqs(store, after=1 << 70) == []
    assert seqs(store, after=2, limit=3) == [3, 4, 5]
    assert seqs(store, limit=0) == seqs(store, limit=-1) == []
    assert seqs(store, limit=1 << 40) == list(range(1, 10))
    assert seqs(store, run="r2") == [4, 5, 6]
    assert seqs(store, run="r2", after=4, limit=1) == [5]
    assert seqs(store, kinds=[EventKind.RUN_DELETED, EventKind.RUN_CREATED]) == [1, 3, 4, 6, 7, 9]
    assert seqs(store, kinds={EventKind.RUN_CREATED}, run="r2") == [4]
    assert store.last_event() == 9


def test_the_order_is_that_of_writing_whatever_the_clock_said(store: Store) -> None:
    store.record([], [an_event(at=at(60)), an_event(at=at(0))])
    store.record([], [an_event(at=at(-60))])
    assert [stored.event.at for stored in store.read_events()] == [at(60), at(0), at(-60)]


TEXTS = st.binary(max_size=30).map(text.decode)
MOMENTS = st.datetimes(timezones=st.just(UTC))
NAMES = TEXTS.map(lambda name: name.replace("\0", ""))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
RUNS = st.builds(
    a_run,
    st.integers(0, 10**15).map("r{}".format),
    server=st.builds(a_server, NAMES, host=NAMES),
    place=st.builds(Place, session=TEXTS, window=st.integers(0, 10**6), pane=st.integers(0, 10**6), window_name=TEXTS),
    status=st.builds(Status, state=st.sampled_from(RunState), cause=TEXTS, since=MOMENTS),
    title=TEXTS,
    cwd=TEXTS,
    health=st.sampled_from(Health),
    ended_at=st.none() | MOMENTS,
)
EVENTS = st.builds(
    Event,
    kind=st.sampled_from(EventKind),
    at=MOMENTS,
    run=st.none() | st.integers(0, 10**15).map("r{}".format),
    server=st.none() | TEXTS,
    data=st.dictionaries(TEXTS, JSON, max_size=4),
)


@given(st.lists(RUNS, max_size=3, unique_by=lambda run: run.id), st.lists(EVENTS, max_size=3))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_anything_comes_back(store: Store, runs: list[Run], events: list[Event]) -> None:
    before = store.last_event()
    stored = store.record(runs, events)
    assert [each.event for each in stored] == events
    assert store.read_events(after=before) == stored
    assert [store.get_run(run.id) for run in runs] == runs
    kept = {run.id: run for run in store.list_runs()}
    assert [kept[run.id] for run in runs] == runs
    assert store.last_event() == before + len(events)


def test_old_events_and_runs_that_ended_long_ago_go(store: Store) -> None:
    store.record(
        [a_run("r1", ended_at=at(5)), a_run("r2", ended_at=at(10)), a_run("r3", created_at=at(-90))],
        [an_event(at=at(seconds), run=f"r{seconds}") for seconds in (1, 3, 2)],
    )
    assert (store.forget_runs(at(10)), store.forget_runs(at(10))) == (1, 0)
    assert ids(store) == ["r2", "r3"]
    assert (store.forget_events(at(3)), store.forget_events(at(3))) == (2, 0)
    assert seqs(store) == [2]
    assert store.forget_events(at(3) + timedelta(microseconds=1)) == 1
    # With nothing left to tell, the numbers go on all the same.
    assert store.last_event() == 3
    assert [stored.seq for stored in store.record([], [an_event()])] == [4]


@pytest.mark.parametrize(
    ("column", "value"), [("body", SPOILT), ("host", "another"), ("ended_at", "x" * 27), ("ended_at", None)]
)
def test_a_damaged_run_costs_only_itself(
    store: Store, place: StorePlace, column: str, value: str | bytes | None
) -> None:
    store.record([a_run(f"r{number}", ended_at=at(9)) for number in (1, 2, 3)], [])
    store.driver.execute(f"UPDATE runs SET {column} = :value WHERE number = 2", value=value)
    assert ids(store) == ["r1", "r3"]
    with pytest.raises(errors.NotFound, match="Run r2 cannot be read back"):
        store.get_run("r2")
    (problem,) = store.check()
    assert (problem.where, problem.what, problem.repairable) == ("run r2", "It cannot be read back.", True)
    assert repair(place.url, place.state_dir, at(60)) == ("Set the damaged run r2 aside.",)
    assert store.check() == ()
    assert ids(store) == ["r1", "r3"]
    assert store.driver.fetch(f"SELECT number, {column} FROM damaged_runs") == [(2, value)]
    assert repair(place.url, place.state_dir, at(61)) == ()


@pytest.mark.parametrize(
    ("column", "value"),
    [("body", SPOILT), ("kind", "unheard of"), ("kind", "seen"), ("run", 7), ("run", None), ("happened_at", "x" * 27)],
)
def test_a_damaged_event_costs_only_itself(
    store: Store, place: StorePlace, column: str, value: str | bytes | int | None
) -> None:
    store.record([], [an_event(), an_event(), an_event()])
    store.driver.execute(f"UPDATE events SET {column} = :value WHERE seq = 2", value=value)
    assert seqs(store) == [1, 3]
    (problem,) = store.check()
    assert (problem.where, problem.what, problem.repairable) == ("event 2", "It cannot be read back.", True)
    assert repair(place.url, place.state_dir, at(60)) == ("Set the damaged event 2 aside.",)
    assert store.check() == ()
    assert seqs(store) == [1, 3]
    assert store.driver.fetch(f"SELECT seq, {column} FROM damaged_events") == [(2, value)]
    assert repair(place.url, place.state_dir, at(61)) == ()


def test_two_bodies_that_changed_places_are_damage(store: Store) -> None:
    store.record([a_run("r1"), a_run("r2")], [an_event(), an_event()])
    store.driver.execute("UPDATE runs SET body = (SELECT body FROM runs WHERE number = 2) WHERE number = 1")
    store.driver.execute("UPDATE events SET body = (SELECT body FROM events WHERE seq = 2) WHERE seq = 1")
    assert (ids(store), seqs(store)) == (["r2"], [2])
    assert [problem.where for problem in store.check()] == ["run r1", "event 1"]


def test_whoever_gets_fewer_events_than_asked_for_has_seen_the_last(store: Store) -> None:
    store.record([], [an_event() for _ in range(12)])
    store.driver.execute("UPDATE events SET body = :data WHERE seq BETWEEN 3 AND 9", data=SPOILT)
    assert seqs(store, limit=2) == [1, 2]
    assert seqs(store, after=2, limit=2) == [10, 11]
    assert seqs(store, after=11, limit=2) == [12]


def test_what_is_set_aside_leaves_its_number_given(store: Store, place: StorePlace) -> None:
    store.record([a_run("r8")], [an_event()])
    store.driver.execute("UPDATE runs SET body = :data", data=SPOILT)
    store.driver.execute("UPDATE events SET body = :data", data=SPOILT)
    store.driver.execute("DELETE FROM counters")
    assert len(repair(place.url, place.state_dir, at(60))) == 2
    assert store.new_runs(1) == ("r9",)
    assert [stored.seq for stored in store.record([], [an_event()])] == [2]


def test_a_run_that_cannot_be_read_can_be_said_anew(store: Store) -> None:
    store.record([a_run()], [])
    store.driver.execute("UPDATE runs SET body = :data", data=SPOILT)
    store.record([a_run(title="again")], [])
    assert store.list_runs() == (a_run(title="again"),)
    assert store.check() == ()


def test_what_is_only_read_lists_and_changes_nothing(place: StorePlace, store: Store) -> None:
    stored = store.record([a_run()], [an_event()])
    store.take_lease("daemon", "me", at(0), until=at(9))
    reader = open_store(place.url, state_dir=place.state_dir, read_only=True)
    assert reader.list_runs(host="laptop", over=False) == (reader.get_run("r1"),) == (a_run(),)
    assert reader.read_events(run="r1") == stored
    assert reader.last_event() == 1
    assert reader.check() == ()
    attempts: list[Callable[[], object]] = [
        lambda: reader.new_runs(1),
        lambda: reader.record([a_run(title="b")], [an_event()]),
        lambda: reader.go_on_behind(9),
        lambda: reader.forget_runs(at(60)),
        lambda: reader.forget_events(at(60)),
        lambda: reader.take_lease("daemon", "me", at(1), until=at(10)),
        lambda: reader.drop_lease("daemon", "me"),
    ]
    for attempt in attempts:
        with pytest.raises(errors.StoreUnusable, match="only read"):
            attempt()
    reader.close()
    assert (store.list_runs(), store.read_events()) == ((a_run(),), stored)
    assert store.take_lease("daemon", "other", at(1), until=at(9)) == "me"


def test_without_a_database_nothing_is_known_of_runs(place: StorePlace) -> None:
    reader = open_store(place.url, state_dir=place.state_dir, read_only=True)
    assert (reader.list_runs(), reader.read_events(), reader.last_event()) == ((), (), 0)
    reader.close()
