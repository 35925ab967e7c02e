"""Finding snapshots and scrollback, and letting go of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from perdure import errors
from perdure.model.snapshot import whereabouts_of
from perdure.store.store import Store
from tests.builders import a_capture, a_pane, a_server, a_text, an_identity, at


def save(store: Store, name: str, seconds: float, server: str = "default") -> str:
    return store.save_snapshot(a_capture(session=name, seconds=seconds, server=a_server(server)), {}).id


def test_an_unambiguous_beginning_is_enough(store: Store) -> None:
    id = save(store, "a", 0)
    assert store.get_snapshot(id[:1]).id == id


@pytest.mark.parametrize("id", ["", "ffff", "xyz", "%", "0" * 40, "'; --", "\0"])
def test_what_is_not_there_is_not_found(store: Store, id: str) -> None:
    assert save(store, "a", 0)[:4] != "ffff"
    with pytest.raises(errors.SnapshotNotFound):
        store.get_snapshot(id)


def test_an_ambiguous_beginning_is_refused(store: Store) -> None:
    ids = [save(store, str(number), number) for number in range(17)]
    first = next(a[0] for index, a in enumerate(ids) for b in ids[:index] if a[0] == b[0])
    with pytest.raises(errors.AmbiguousSnapshot):
        store.get_snapshot(first)


def test_who_was_where_is_told_as_the_whole_snapshot_tells_it(store: Store) -> None:
    panes = [
        a_pane(0, identity=an_identity(conversation="c1")),
        a_pane(1, index=1),
        a_pane(2, index=2, identity=an_identity(conversation=None)),
    ]
    first = store.save_snapshot(a_capture(panes, session="naïve \\xff", seconds=0), {}).id
    second = save(store, "b", 1)
    found = list(store.whereabouts([second, "0" * 16, first]))
    assert found == [whereabouts_of(store.get_snapshot(id)) for id in (second, first)]
    assert {conversation for _, conversation in found[1].conversations} == {"c1"}
    assert {index for _, index in found[1].places} == {link.index for link in a_capture(panes).topology.links}


def test_of_what_is_damaged_it_is_not_told(store: Store) -> None:
    ids = [save(store, name, number) for number, name in enumerate("ab")]
    store.driver.execute("UPDATE snapshots SET content = 'another' WHERE id = :id", id=ids[0])
    assert [each.id for each in store.whereabouts(ids)] == ids[1:]


def test_history_is_newest_first_and_can_be_cut(store: Store) -> None:
    ids = [save(store, str(number), number) for number in range(4)]
    other = save(store, "x", 2.5, "other")
    assert [line.id for line in store.list_snapshots()] == [ids[3], other, ids[2], ids[1], ids[0]]
    assert [line.id for line in store.list_snapshots(server=a_server("other"))] == [other]
    assert [line.id for line in store.list_snapshots(before=at(2), limit=1)] == [ids[1]]
    assert [line.id for line in store.list_snapshots(server=a_server(), limit=2)] == [ids[3], ids[2]]
    assert store.list_snapshots(limit=0) == ()


def test_another_process_sees_what_was_saved(store: Store, opened: Callable[[], Store]) -> None:
    id = save(store, "a", 0)
    assert opened().get_snapshot(id) == store.get_snapshot(id)


def test_scrollback_is_asked_for_once(store: Store) -> None:
    digest, raw = a_text()
    assert store.absent_scrollback({digest, "other"}) == {digest, "other"}
    assert store.absent_scrollback(()) == set()
    store.save_snapshot(a_capture(scrollback={"%0": digest}), {digest: raw, "unused": b"x"})
    assert store.absent_scrollback([digest, "unused"]) == {"unused"}
    # The next save brings the digest alone.
    store.save_snapshot(a_capture(scrollback={"%0": digest}, session="b", seconds=1), {})
    assert store.read_scrollback(digest) == raw
    assert store.check() == ()


def test_many_digests_are_no_trouble(store: Store) -> None:
    digests = {f"{number:032x}" for number in range(1201)}
    assert store.absent_scrollback(digests) == digests


def test_scrollback_that_was_not_kept_is_not_found(store: Store) -> None:
    with pytest.raises(errors.ScrollbackNotFound):
        store.read_scrollback("none")


def test_scrollback_may_be_any_bytes(store: Store) -> None:
    raw = bytes(range(256)) * 3
    store.save_snapshot(a_capture(scrollback={"%0": "d", "%1": "e"}), {"d": raw, "e": b""})
    assert store.read_scrollback("d") == raw
    store.save_snapshot(a_capture(scrollback={"%0": "e"}, seconds=1), {"e": b""})
    assert store.read_scrollback("e") == b""


def test_pruning_takes_what_only_the_doomed_used(store: Store) -> None:
    old = store.save_snapshot(a_capture(session="a", scrollback={"%0": "old"}), {"old": b"1"})
    new = store.save_snapshot(a_capture(session="b", seconds=1, scrollback={"%0": "new"}), {"new": b"2"})
    assert store.pruned_at() is None
    assert store.prune_snapshots([old.id, "gone"], at(60)) == 1
    assert store.pruned_at() == at(60)
    assert [line.id for line in store.list_snapshots()] == [new.id]
    assert store.absent_scrollback({"old", "new"}) == {"old"}
    assert store.check() == ()
    assert store.prune_snapshots([], at(61)) == 0
    assert store.pruned_at() == at(61)


def test_pruning_takes_scrollback_that_has_been_overtaken(store: Store) -> None:
    store.save_snapshot(a_capture(scrollback={"%0": "old"}), {"old": b"1"})
    store.save_snapshot(a_capture(scrollback={"%0": "new"}, seconds=1), {"new": b"2"})
    store.prune_snapshots([], at(60))
    assert store.absent_scrollback({"old", "new"}) == {"old"}


def test_the_last_good_snapshot_of_a_server_is_never_pruned(store: Store) -> None:
    first = save(store, "a", 0)
    kept = {save(store, "b", 1), save(store, "x", 0, "other")}
    imported = store.save_snapshot(a_capture(), {}, origin="import").id
    assert store.prune_snapshots([first, imported, *kept], at(60)) == 2
    assert {line.id for line in store.list_snapshots()} == kept


def test_a_state_saved_again_after_its_parent_was_pruned_is_still_one_history(store: Store) -> None:
    first, second = save(store, "a", 0), save(store, "b", 1)
    store.prune_snapshots([first], at(60))
    assert save(store, "b", 2) == second
    third = save(store, "a", 3)
    assert third not in (first, second)
    assert store.check() == ()
