"""The journal of restores: what is written down is there, and what is damaged costs only itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure import errors
from perdure.model import text
from perdure.model.identity import AgentDetails
from perdure.model.plan import Kept, Result
from perdure.ports import RestoreJournal
from perdure.store import open_store
from perdure.store.repair import repair
from perdure.store.store import Store
from tests.builders import a_capture, a_program, a_server, an_identity, at
from tests.contract.store.conftest import Place
from tests.contract.store.restores import a_restore, an_outcome

SPOILT = b"spoilt"


def ids(store: Store) -> list[str]:
    return [restore.id for restore in store.list_restores()]


def open_id(store: Store, server: str = "default") -> str | None:
    found = store.open_restore(a_server(server))
    return None if found is None else found.id


def save(store: Store, name: str, seconds: float, server: str = "default") -> str:
    capture = a_capture(session=name, seconds=seconds, server=a_server(server), scrollback={"%0": name})
    return store.save_snapshot(capture, {name: name.encode()}).id


def test_it_keeps_the_contract_of_the_port(store: Store) -> None:
    journal: RestoreJournal = store
    assert journal.list_restores() == ()
    assert journal.open_restore(a_server()) is None


def test_a_restore_comes_back_whole(store: Store, opened: Callable[[], Store]) -> None:
    kept = Kept(identity=an_identity(), program=a_program(), agent=AgentDetails(task="the task"))
    outcomes = (an_outcome(0, Result.VERIFIED), an_outcome(1, why="Not yet."), an_outcome(2, Result.FAILED, kept=kept))
    restore = a_restore(outcomes={f"%{number}": each for number, each in enumerate(outcomes)})
    store.begin_restore(restore)
    other = opened()
    assert other.open_restore(a_server()) == restore
    assert other.list_restores() == (restore,)
    assert store.check() == ()


def test_one_that_was_only_just_begun_comes_back_too(store: Store) -> None:
    restore = msgspec.structs.replace(a_restore(), process=None, making=frozenset())
    store.begin_restore(restore)
    assert store.open_restore(a_server()) == restore


def test_a_later_word_about_a_pane_replaces_an_earlier_one(store: Store) -> None:
    store.begin_restore(a_restore())
    store.note_outcomes("r1", {"%0": an_outcome(0), "%1": an_outcome(1)})
    store.note_outcomes("r1", {"%1": an_outcome(1, Result.FAILED, why="It asks to log in.")})
    store.note_outcomes("r1", {})
    found = store.open_restore(a_server())
    assert found is not None
    assert found.outcomes == {"%0": an_outcome(0), "%1": an_outcome(1, Result.FAILED, why="It asks to log in.")}


def test_nobody_goes_on_with_what_has_ended(store: Store) -> None:
    store.begin_restore(a_restore())
    store.end_restore("r1", at(5), {})
    assert store.open_restore(a_server()) is None
    # Neither a second end nor a late word changes that.
    store.end_restore("r1", at(9), {})
    store.note_outcomes("r1", {"%0": an_outcome()})
    assert store.open_restore(a_server()) is None
    assert store.list_restores() == (a_restore(ended_at=at(5), outcomes={"%0": an_outcome()}),)


def test_its_end_and_the_last_outcomes_are_one_word(store: Store) -> None:
    store.begin_restore(a_restore(outcomes={"%0": an_outcome(), "%1": an_outcome(1)}))
    store.end_restore("r1", at(5), {"%1": an_outcome(1, Result.FAILED), "%2": an_outcome(2)})
    (found,) = store.list_restores()
    assert found.ended_at == at(5)
    assert found.outcomes == {"%0": an_outcome(), "%1": an_outcome(1, Result.FAILED), "%2": an_outcome(2)}


def test_the_same_id_again_replaces_what_was_said(store: Store) -> None:
    store.begin_restore(a_restore(outcomes={"%0": an_outcome()}))
    store.end_restore("r1", at(5), {})
    again = a_restore(seconds=9, snapshot="feed", outcomes={"%1": an_outcome(1)})
    store.begin_restore(again)
    assert store.list_restores() == (again,)
    assert store.open_restore(a_server()) == again


def test_only_the_latest_of_a_server_is_gone_on_with(store: Store) -> None:
    store.begin_restore(a_restore("first"))
    store.begin_restore(a_restore("elsewhere", server=a_server("other")))
    store.begin_restore(a_restore("second", seconds=1))
    assert (open_id(store), open_id(store, "other")) == ("second", "elsewhere")
    store.end_restore("second", at(2), {})
    assert (open_id(store), open_id(store, "other")) == (None, "elsewhere")
    store.begin_restore(a_restore("first", seconds=3))
    assert open_id(store) == "first"
    assert ids(store) == ["first", "second", "elsewhere"]
    assert [restore.id for restore in store.list_restores(limit=2)] == ["first", "second"]
    assert store.list_restores(limit=0) == ()


def test_a_clock_that_was_ahead_does_not_hide_a_restore(store: Store) -> None:
    store.begin_restore(a_restore("from the future", seconds=86400))
    store.end_restore("from the future", at(86401), {})
    store.begin_restore(a_restore("now"))
    assert open_id(store) == "now"
    assert ids(store) == ["now", "from the future"]


def test_what_was_never_begun_is_not_found(store: Store) -> None:
    with pytest.raises(errors.NotFound, match="no restore gone"):
        store.note_outcomes("gone", {"%0": an_outcome()})
    with pytest.raises(errors.NotFound, match="no restore gone"):
        store.end_restore("gone", at(0), {})
    assert store.list_restores() == ()


def test_begin_is_all_or_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = a_restore(outcomes={"%0": an_outcome()})
    store.begin_restore(before)

    def fails(id: str, outcomes: object) -> None:
        raise errors.StoreUnusable

    with monkeypatch.context() as broken:
        broken.setattr(store, "_put", fails)
        for other in ("r1", "r2"):
            with pytest.raises(errors.StoreUnusable):
                store.begin_restore(a_restore(other, seconds=1))
    assert store.list_restores() == (before,)
    assert store.open_restore(a_server()) == before


NUMBERS = itertools.count()


@given(st.binary(max_size=40))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_come_back(store: Store, raw: bytes) -> None:
    any_text = text.decode(raw)
    outcome = an_outcome(why=any_text)
    step = msgspec.structs.replace(outcome.step, argv=(any_text,), environ={any_text: any_text}, cwd=any_text)
    outcome = msgspec.structs.replace(outcome, step=step, screen=(any_text,))
    server = a_server(text.decode(raw.replace(b"\0", b"")))
    restore = a_restore(f"r{next(NUMBERS)}", server=server, outcomes={"%0": outcome})
    store.begin_restore(restore)
    assert store.open_restore(server) == restore


def test_what_is_only_read_lists_and_does_not_begin(place: Place, store: Store) -> None:
    store.begin_restore(a_restore(outcomes={"%0": an_outcome()}))
    reader = open_store(place.url, state_dir=place.state_dir, read_only=True)
    assert reader.list_restores() == (a_restore(outcomes={"%0": an_outcome()}),)
    assert reader.open_restore(a_server()) == store.open_restore(a_server())
    with pytest.raises(errors.StoreUnusable, match="only read"):
        reader.begin_restore(a_restore("r2"))
    with pytest.raises(errors.StoreUnusable, match="only read"):
        reader.note_outcomes("r1", {"%0": an_outcome()})
    with pytest.raises(errors.StoreUnusable, match="only read"):
        reader.end_restore("r1", at(1), {})
    reader.close()
    assert open_id(store) == "r1"


def test_without_a_database_there_is_no_journal_to_read(place: Place) -> None:
    reader = open_store(place.url, state_dir=place.state_dir, read_only=True)
    assert reader.list_restores() == ()
    assert reader.open_restore(a_server()) is None
    reader.close()


@pytest.mark.parametrize(
    ("column", "value"),
    [("body", SPOILT), ("snapshot", "another"), ("server", "another"), ("began_at", "x" * 27), ("ended_at", "x" * 27)],
)
def test_a_damaged_restore_costs_only_itself(store: Store, place: Place, column: str, value: str | bytes) -> None:
    for id, socket in (("r1", "one"), ("r2", "two"), ("r3", "three")):
        store.begin_restore(a_restore(id, server=a_server(socket), outcomes={"%0": an_outcome()}))
    store.driver.execute(f"UPDATE restores SET {column} = :value WHERE id = 'r2'", value=value)
    assert ids(store) == ["r3", "r1"]
    assert store.open_restore(a_server("two")) is None
    (problem,) = store.check()
    assert (problem.where, problem.what, problem.repairable) == ("restore r2", "It cannot be read back.", True)
    assert repair(place.url, place.state_dir, at(60)) == ("Set the damaged restore r2 aside.",)
    assert store.check() == ()
    assert ids(store) == ["r3", "r1"]
    assert store.driver.fetch(f"SELECT id, {column} FROM damaged_restores") == [("r2", value)]
    assert store.driver.fetch("SELECT restore, pane FROM damaged_restore_outcomes") == [("r2", "%0")]
    assert repair(place.url, place.state_dir, at(61)) == ()


def test_two_bodies_that_changed_places_are_damage(store: Store) -> None:
    for id in ("r1", "r2"):
        store.begin_restore(a_restore(id))
    store.driver.execute("UPDATE restores SET body = (SELECT body FROM restores WHERE id = 'r2') WHERE id = 'r1'")
    assert ids(store) == ["r2"]
    assert [problem.where for problem in store.check()] == ["restore r1"]


def test_a_damaged_outcome_is_unknown_and_its_restore_goes_on(store: Store, place: Place) -> None:
    store.begin_restore(a_restore(outcomes={"%0": an_outcome(0), "%1": an_outcome(1)}))
    store.driver.execute("UPDATE restore_outcomes SET body = :data WHERE pane = '%1'", data=SPOILT)
    assert store.open_restore(a_server()) == a_restore(outcomes={"%0": an_outcome(0)})
    (problem,) = store.check()
    assert (problem.where, problem.what) == ("restore r1", "What came of its pane %1 cannot be read back.")
    assert repair(place.url, place.state_dir, at(60)) == ("Set the damaged outcome of pane %1 in restore r1 aside.",)
    assert store.check() == ()
    assert store.open_restore(a_server()) == a_restore(outcomes={"%0": an_outcome(0)})
    assert store.driver.fetch("SELECT restore, pane, body FROM damaged_restore_outcomes") == [("r1", "%1", SPOILT)]
    # What is said of the pane from now on is kept.
    store.note_outcomes("r1", {"%1": an_outcome(1)})
    assert store.open_restore(a_server()) == a_restore(outcomes={"%0": an_outcome(0), "%1": an_outcome(1)})


@pytest.mark.parametrize("is_damaged", [False, True])
def test_the_snapshot_of_an_open_restore_is_not_pruned(store: Store, *, is_damaged: bool) -> None:
    old = save(store, "old", 0)
    save(store, "new", 1)
    store.begin_restore(a_restore(snapshot=old))
    if is_damaged:
        store.driver.execute("UPDATE restores SET body = :data", data=SPOILT)
    assert store.prune_snapshots([old], at(60), restores_before=at(60)) == 0
    assert store.get_snapshot(old).id == old
    assert store.read_scrollback("old") == b"old"
    store.end_restore("r1", at(61), {})
    assert store.prune_snapshots([old], at(62)) == 1
    assert store.driver.fetch("SELECT id FROM restores") == []


def test_pruning_takes_restores_that_have_ended_and_are_old_or_without_their_snapshot(store: Store) -> None:
    gone, kept = save(store, "gone", 0), save(store, "kept", 1)
    began = {"early": (kept, 10), "late": (kept, 30), "bereft": (gone, 40), "open": (kept, 5)}
    for id, (snapshot, seconds) in began.items():
        server = a_server("other") if id == "open" else a_server()
        store.begin_restore(
            a_restore(id, snapshot=snapshot, seconds=seconds, server=server, outcomes={"%0": an_outcome()})
        )
        if id != "open":
            store.end_restore(id, at(seconds + 1), {})
    store.prune_snapshots([], at(50))
    assert ids(store) == ["open", "bereft", "late", "early"]
    assert store.prune_snapshots([gone], at(60), restores_before=at(20)) == 1
    assert ids(store) == ["open", "late"]
    assert store.driver.fetch("SELECT restore FROM restore_outcomes ORDER BY restore") == [("late",), ("open",)]
    assert store.check() == ()


def test_pruning_the_latest_does_not_open_an_earlier_one(store: Store) -> None:
    old, new = save(store, "old", 0), save(store, "new", 1)
    store.begin_restore(a_restore("killed", snapshot=new))
    store.begin_restore(a_restore("clean", snapshot=old, seconds=1))
    store.end_restore("clean", at(2), {})
    store.prune_snapshots([old], at(60))
    assert ids(store) == ["killed"]
    assert store.open_restore(a_server()) is None
