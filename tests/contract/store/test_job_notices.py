"""What the owners of jobs are to be told: written with what it is about, until it is delivered, in order."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from msgspec.structs import replace

from perdure import errors
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.job import Job, Notify, Watch
from perdure.model.job_events import job_event
from perdure.store import open_store
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.conftest import Place
from tests.contract.store.jobs import HERE, a_job, begun, over


def said(job: Job, text: str) -> Event:
    return job_event(EventKind.JOB_OUTPUT, job, at(1), output=text, pattern="error:", more=0)


def say(store: Store, text: str, id: str = "j1") -> None:
    """Have a line told of."""
    store.jobs.watch_job(
        id, lambda job: (replace(job, watch=replace(job.watch, at=job.watch.at + 1)), [said(job, text)])
    )


def texts(found: tuple[StoredEvent, ...]) -> list[str]:
    return [each.event.data.get("output", each.event.kind.value) for each in found]


def test_what_is_told_and_how_far_are_one(store: Store, opened: Callable[[], Store]) -> None:
    store.jobs.add_job(a_job(owner="r7"))
    job = store.jobs.watch_job(
        "j1", lambda job: (replace(job, watch=Watch(at=7, told_at=at(1))), [said(job, "error: 1")])
    )
    assert job.watch == opened().jobs.get_job("j1").watch == Watch(at=7, told_at=at(1))
    (event,) = [stored.event for stored in store.read_events()]
    assert (event.kind, event.run, event.data["owner"]) == (EventKind.JOB_OUTPUT, "r7", "r7")

    def fail(job: Job) -> tuple[Job, list[Event]]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.jobs.watch_job("j1", fail)
    assert store.last_event() == 1


def test_what_it_printed_comes_between_its_beginning_and_its_end(store: Store) -> None:
    store.jobs.add_job(a_job(owner="chat"))
    store.jobs.watch_job("j1", lambda job: (over(begun(job)), [said(job, "error: 1")]))
    assert [stored.event.kind.value for stored in store.read_events()] == ["job_started", "job_output", "job_ended"]


def test_an_owner_is_told_in_order_until_it_is_delivered(store: Store, opened: Callable[[], Store]) -> None:
    store.jobs.add_job(a_job("j1", owner="chat"))
    store.jobs.add_job(a_job("j2", owner="other"))
    for number in range(5):
        say(store, f"error: {number}", "j2" if number == 2 else "j1")
    found = opened().jobs.undelivered("chat", limit=3)
    assert texts(found) == ["error: 0", "error: 1", "error: 3"]
    assert opened().jobs.undelivered("chat", limit=3) == found
    store.jobs.deliver("chat", found[-1].seq)
    store.jobs.deliver("chat", found[0].seq)
    assert texts(opened().jobs.undelivered("chat")) == ["error: 4"]
    assert texts(opened().jobs.undelivered("other")) == ["error: 2"]
    assert store.jobs.undelivered("nobody") == ()


def test_an_end_is_delivered_to_whoever_wanted_that(store: Store) -> None:
    quiet, storm = Notify(), Watch(on_exit=True)
    for id, job in {
        "wanted": a_job("wanted", owner="chat"),
        "quiet": replace(a_job("quiet", owner="chat"), order=replace(a_job(owner="chat").order, notify=quiet)),
        "storm": replace(
            a_job("storm", owner="chat"), order=replace(a_job(owner="chat").order, notify=quiet), watch=storm
        ),
        "nobodys": a_job("nobodys"),
    }.items():
        store.jobs.add_job(job)
        store.jobs.change_job(id, over)
    assert [each.event.data["job"] for each in store.jobs.undelivered("chat")] == ["wanted", "storm"]
    assert len(store.read_events()) == 4


def test_a_poll_takes_nothing_away(store: Store) -> None:
    store.jobs.add_job(a_job(owner="chat"))
    say(store, "error: 1")
    store.jobs.change_job("j1", lambda job: replace(over(job), polled=99))
    assert texts(store.jobs.undelivered("chat")) == ["error: 1", "job_ended"]


def test_a_notice_outlives_its_job_but_not_its_event(store: Store) -> None:
    store.jobs.add_job(a_job(owner="chat"))
    store.jobs.change_job("j1", over)
    assert store.jobs.forget_jobs(HERE, at(99), keep=0) == ("j1",)
    assert texts(store.jobs.undelivered("chat")) == ["job_ended"]
    store.forget_events(at(0) + timedelta(days=1))
    assert store.jobs.undelivered("chat") == ()
    store.jobs.add_job(a_job("j2"))
    store.jobs.change_job("j2", over)
    store.jobs.forget_jobs(HERE, at(99), keep=0)
    assert store.driver.fetch("SELECT count(*) FROM job_notices") == [(0,)]


def test_many_who_have_read_the_same_tell_it_once(place: Place) -> None:
    store = place.open()
    store.jobs.add_job(a_job(owner="chat"))

    def tell(_: int) -> None:
        other = place.open()

        def change(job: Job) -> tuple[Job, list[Event]]:
            return (job, []) if job.watch.at else (replace(job, watch=Watch(at=8)), [said(job, "error: 1")])

        other.jobs.watch_job("j1", change)
        other.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(tell, range(8)))
    assert texts(store.jobs.undelivered("chat")) == ["error: 1"]
    store.close()


def test_one_that_cannot_be_read_costs_only_itself(store: Store) -> None:
    store.jobs.add_job(a_job(owner="chat"))
    for number in range(3):
        say(store, f"error: {number}")
    store.driver.execute("UPDATE events SET body = :data WHERE seq = 1", data=b"spoilt")
    assert texts(store.jobs.undelivered("chat", limit=2)) == ["error: 1", "error: 2"]


def test_where_nothing_can_be_written_nothing_is_delivered(store: Store, place: Place) -> None:
    store.jobs.add_job(a_job(owner="chat"))
    say(store, "error: 1")
    reader = open_store(place.url, state_dir=place.state_dir, read_only=True)
    assert texts(reader.jobs.undelivered("chat")) == ["error: 1"]
    with pytest.raises(errors.StoreUnusable, match="only read here"):
        reader.jobs.deliver("chat", 1)
    reader.close()
