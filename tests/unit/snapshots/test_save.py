"""What a save comes to for each server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import pytest

from perdure.errors import StoreUnusable
from perdure.model.config import Config, RetentionConfig
from perdure.model.plan import Restore
from perdure.model.server import Server
from perdure.model.snapshot import CAPTURED, Capture, Miss, Missed, Saved
from perdure.snapshots.look import Looked
from perdure.snapshots.save import prune, save, unsaved
from perdure.store import open_store
from perdure.store.store import Store
from tests.builders import a_capture, a_pane, a_server, an_identity, at
from tests.conftest import PrivateHome
from tests.contract.store.runs import a_run, an_event


@pytest.fixture
def store(private_home: PrivateHome) -> Iterator[Store]:
    opened = open_store(f"sqlite://{private_home.state}/p.db", state_dir=private_home.state)
    yield opened
    opened.close()


def looked(capture: Capture) -> Looked:
    return Looked(capture=capture, scrollback={})


def missed(server: Server, reason: Miss) -> Missed:
    return Missed(server=server, reason=reason, message="Something is the matter.")


def test_new_and_unchanged(store: Store) -> None:
    capture = a_capture([a_pane(0, identity=an_identity()), a_pane(1)])
    (first,) = save([looked(capture)], store)
    assert (first.result, first.reason, first.sessions, first.windows, first.panes) == ("saved", None, 1, 1, 2)
    assert first.agents == 1
    (again,) = save([looked(msgspec.structs.replace(capture, taken_at=at(5)))], store)
    assert (again.result, again.snapshot) == ("unchanged", first.snapshot)


@pytest.mark.parametrize(
    ("reason", "result"),
    [
        (Miss.NO_SERVER, "kept"),
        (Miss.EMPTY, "kept"),
        (Miss.UNREACHABLE, "failed"),
        (Miss.INCOMPLETE, "failed"),
        (Miss.REFUSED, "failed"),
    ],
)
def test_a_missed_server_keeps_what_it_had(store: Store, reason: Miss, result: str) -> None:
    (before,) = save([looked(a_capture())], store)
    (after,) = save([missed(a_server(), reason)], store)
    assert (after.result, after.reason, after.snapshot) == (result, reason.value, before.snapshot)
    assert (after.sessions, after.windows, after.panes) == (1, 1, 1)
    assert len(store.list_snapshots()) == 1


def test_a_missed_server_that_never_had_anything(store: Store) -> None:
    (only,) = save([missed(a_server(), Miss.NO_SERVER)], store)
    assert (only.result, only.snapshot, only.panes) == ("kept", None, 0)


class Picky(Store):
    """A store that does not take one server."""

    def save_snapshot(
        self, capture: Capture, scrollback: Mapping[str, bytes] | None, *, origin: str = CAPTURED
    ) -> Saved:
        if capture.server.socket.endswith("bad"):
            raise StoreUnusable("The disk is full.")
        return super().save_snapshot(capture, scrollback, origin=origin)


def test_a_server_the_store_cannot_take_costs_only_itself(store: Store) -> None:
    servers = [a_server("one"), a_server("bad"), a_server("two")]
    results = save([looked(a_capture(server=server)) for server in servers], Picky(store.driver, store.state_dir))
    assert [each.result for each in results] == ["saved", "failed", "saved"]
    assert (results[1].reason, results[1].message) == ("store", "The disk is full.")


def test_without_a_store_every_server_is_unsaved() -> None:
    everything: list[Looked | Missed] = [looked(a_capture()), missed(a_server("other"), Miss.NO_SERVER)]
    results = unsaved(everything, StoreUnusable("It is gone."))
    assert [(each.result, each.reason, each.snapshot) for each in results] == [("failed", "store", None)] * 2


YEAR = 365 * 86400
HOUR = 3600


def three_old_ones(store: Store) -> None:
    for number, session in enumerate(["a", "b", "c"]):
        store.save_snapshot(a_capture(session=session, seconds=number * 60), {})


def test_old_snapshots_go_at_most_once_an_hour(store: Store) -> None:
    three_old_ones(store)
    assert prune(store, Config(), at(YEAR)) == 0  # the clock is only noted
    assert prune(store, Config(), at(YEAR + HOUR)) == 2
    store.save_snapshot(a_capture(session="d", seconds=200), {})
    assert prune(store, Config(), at(YEAR + HOUR + 1800)) == 0
    assert prune(store, Config(), at(YEAR + 2 * HOUR)) == 1
    assert [line.sessions for line in store.list_snapshots()] == [1]


def test_a_clock_that_leaps_lets_nothing_go(store: Store) -> None:
    three_old_ones(store)
    prune(store, Config(), at(200))
    assert prune(store, Config(), at(200 + HOUR)) == 0  # all within a day: nothing may go
    assert prune(store, Config(), at(YEAR)) == 0
    # Put right again: what the wrong clock noted stops nothing, and lets nothing go.
    assert prune(store, Config(), at(300 + HOUR)) == 0
    assert prune(store, Config(), at(300 + 3 * HOUR)) == 0
    assert len(store.list_snapshots()) == 3
    assert store.pruned_at() == at(300 + 3 * HOUR)


def test_old_restores_go_with_old_snapshots(store: Store) -> None:
    kept = store.save_snapshot(a_capture(), {}).id
    for id, seconds in (("old", 0), ("young", 80 * 86400), ("open", 80 * 86400 + 1)):
        store.begin_restore(Restore(id=id, snapshot=kept, server=a_server(), began_at=at(seconds)))
    months = 100 * 86400
    prune(store, Config(), at(months))
    assert len(store.list_restores()) == 3  # the clock is only noted
    prune(store, Config(), at(months + HOUR))
    assert [restore.id for restore in store.list_restores()] == ["open", "young"]
    prune(store, Config(retention=RetentionConfig(daily_days=0)), at(months + 3 * HOUR))
    assert [restore.id for restore in store.list_restores()] == ["open"]


def test_old_events_and_runs_that_ended_long_ago_go(store: Store) -> None:
    day = 86400
    store.record(
        [a_run("r1", ended_at=at(9 * day)), a_run("r2", ended_at=at(11 * day)), a_run("r3", created_at=at(0))],
        [an_event(at=at(days * day)) for days in (69, 71)],
    )
    prune(store, Config(), at(100 * day - HOUR))
    assert len(store.list_runs()) == 3  # the clock is only noted
    prune(store, Config(), at(100 * day))
    assert [run.id for run in store.list_runs()] == ["r2", "r3"]
    assert [each.event.at for each in store.read_events()] == [at(71 * day)]
    prune(store, Config(retention=RetentionConfig(events_days=1, runs_days=1)), at(100 * day + HOUR))
    assert [run.id for run in store.list_runs()] == ["r3"]
    assert store.read_events() == ()


def test_days_begin_where_the_configuration_says(store: Store) -> None:
    # Ten and almost noon in UTC: one day there, two in Auckland.
    store.save_snapshot(a_capture(session="a", seconds=-2 * HOUR), {})
    store.save_snapshot(a_capture(session="b", seconds=-60), {})
    month = 30 * 86400
    prune(store, Config(), at(month))
    assert prune(store, Config(zone="Pacific/Auckland"), at(month + HOUR)) == 0
    assert prune(store, Config(zone="UTC"), at(month + 2 * HOUR)) == 1


def test_what_a_restore_speaks_through_is_not_kept(store: Store) -> None:
    own = a_capture()
    session, window, link, pane = (getattr(own.topology, name)[0] for name in ("sessions", "windows", "links", "panes"))
    passing = {
        "sessions": msgspec.structs.replace(session, id="$9", name="perdure-restore-0123-ab"),
        "windows": msgspec.structs.replace(window, id="@9"),
        "links": msgspec.structs.replace(link, session="$9", window="@9"),
        "panes": msgspec.structs.replace(pane, id="%9", window="@9"),
    }
    both = {name: (*getattr(own.topology, name), each) for name, each in passing.items()}
    topology = msgspec.structs.replace(own.topology, **both)

    saved = save([looked(msgspec.structs.replace(own, topology=topology))], store)[0]

    assert saved.snapshot is not None
    assert store.get_snapshot(saved.snapshot).topology == own.topology
    # A server on which nothing else is yet has lost nothing of what it had.
    alone = msgspec.structs.replace(own.topology, **{name: (each,) for name, each in passing.items()})
    again = save([looked(msgspec.structs.replace(own, topology=alone))], store)[0]
    assert (again.result, again.reason, again.snapshot) == ("kept", "empty", saved.snapshot)


def test_what_ended_with_a_server_lately_outlives_what_was_saved_of_the_next_one(store: Store) -> None:
    """All of it within an hour of which only the last would be kept."""
    captures = [
        a_capture(session=session, seconds=number) for number, session in enumerate(("old", "last", "new", "now"))
    ]
    for number, each in enumerate(captures):
        process = msgspec.structs.replace(each.topology.process, pid=1 + number // 2)
        topology = msgspec.structs.replace(each.topology, process=process)
        store.save_snapshot(msgspec.structs.replace(each, topology=topology), {})
    last = store.list_snapshots()[2].id
    prune(store, Config(), at(29 * HOUR))
    assert prune(store, Config(), at(30 * HOUR)) == 1
    assert [each.id for each in store.list_snapshots()][2:] == [last]
    # After two days it is one of many.
    assert prune(store, Config(), at(59 * HOUR)) == 2
