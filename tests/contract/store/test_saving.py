"""What saving a capture comes to."""

from __future__ import annotations

import itertools

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.model import text
from perdure.model.snapshot import Capture
from perdure.ports import SnapshotStore
from perdure.store.manifest import Manifest, read_manifests
from perdure.store.store import Store
from tests.builders import a_capture, a_pane, a_server, a_text, an_identity, at


def manifest_of(store: Store) -> Manifest:
    (found,) = read_manifests(store.state_dir)
    assert isinstance(found, Manifest)
    return found


def states(store: Store) -> list[str]:
    """The history as the names of its sessions, latest first."""
    return [store.get_snapshot(line.id).topology.sessions[0].name for line in store.list_snapshots()]


def test_it_keeps_the_contract_of_the_port(store: Store) -> None:
    port: SnapshotStore = store
    assert port.list_snapshots() == ()
    assert port.latest_snapshot(a_server()) is None


def test_a_capture_comes_back_whole(store: Store) -> None:
    digest, raw = a_text()
    pane = a_pane(0, identity=an_identity(), options={"@b": "2", "@a": "1"}, title="ä\t\x1f|'\"\n")
    capture = a_capture([pane, a_pane(1)], scrollback={"%0": digest})
    saved = store.save_snapshot(capture, {digest: raw})
    assert saved.new
    assert len(saved.id) == 16
    back = store.get_snapshot(saved.id)
    assert (back.id, back.server, back.origin) == (saved.id, capture.server, "capture")
    assert (back.taken_at, back.last_seen_at) == (capture.taken_at, capture.taken_at)
    assert (back.topology, back.details) == (capture.topology, capture.details)
    assert store.read_scrollback(digest) == raw
    assert store.latest_snapshot(capture.server) == back
    assert store.check() == ()


def test_the_history_line_counts(store: Store) -> None:
    store.save_snapshot(a_capture([a_pane(0, identity=an_identity()), a_pane(1)]), {})
    (line,) = store.list_snapshots()
    assert (line.sessions, line.windows, line.panes, line.agents) == (1, 1, 2, 1)
    assert line.server == a_server()


def test_the_same_state_is_the_same_snapshot_with_newer_details(store: Store) -> None:
    digest, raw = a_text()
    first = store.save_snapshot(a_capture(seconds=0), {})
    later = a_capture(seconds=5, scrollback={"%0": digest})
    second = store.save_snapshot(later, {digest: raw})
    assert (second.id, second.new) == (first.id, False)
    back = store.get_snapshot(first.id)
    assert (back.taken_at, back.last_seen_at) == (at(0), at(5))
    assert back.details == later.details
    assert manifest_of(store).snapshot == back


def test_the_order_of_mappings_says_nothing(store: Store) -> None:
    first = store.save_snapshot(a_capture([a_pane(0, options={"a": "1", "b": "2"})]), {})
    second = store.save_snapshot(a_capture([a_pane(0, options={"b": "2", "a": "1"})], seconds=1), {})
    assert (second.id, second.new) == (first.id, False)


def test_there_and_back_again_are_three_snapshots(store: Store) -> None:
    ids = [store.save_snapshot(a_capture(session=name, seconds=i), {}).id for i, name in enumerate("aba")]
    assert len(set(ids)) == 3
    assert states(store) == ["a", "b", "a"]
    assert [line.id for line in store.list_snapshots()] == ids[::-1]


def test_servers_and_origins_do_not_meet(store: Store) -> None:
    one = store.save_snapshot(a_capture(), {})
    two = store.save_snapshot(a_capture(server=a_server("other")), {})
    three = store.save_snapshot(a_capture(session="imported", seconds=60), {}, origin="import")
    assert len({one.id, two.id, three.id}) == 3
    latest = store.latest_snapshot(a_server())
    assert latest is not None
    assert latest.id == one.id
    assert store.get_snapshot(three.id).origin == "import"
    assert {found.snapshot.id for found in read_manifests(store.state_dir) if isinstance(found, Manifest)} == {
        one.id,
        two.id,
    }


def test_an_import_alone_is_no_last_good_state(store: Store) -> None:
    store.save_snapshot(a_capture(), {}, origin="import")
    assert store.latest_snapshot(a_server()) is None
    assert list(read_manifests(store.state_dir)) == []


def test_a_late_capture_of_the_same_state_changes_nothing(store: Store) -> None:
    newest = a_capture(seconds=10, scrollback={"%0": "kept"})
    first = store.save_snapshot(newest, {"kept": b"text"})
    saved = store.save_snapshot(a_capture(seconds=5), {})
    assert (saved.id, saved.new) == (first.id, False)
    back = store.get_snapshot(first.id)
    assert (back.taken_at, back.last_seen_at, back.details) == (at(10), at(10), newest.details)
    assert manifest_of(store).snapshot == back
    assert store.check() == ()


def test_a_late_capture_of_another_state_is_history(store: Store) -> None:
    store.save_snapshot(a_capture(session="old", seconds=0), {})
    newest = store.save_snapshot(a_capture(session="new", seconds=10), {})
    late = store.save_snapshot(a_capture(session="late", seconds=5), {})
    assert late.new
    assert states(store) == ["new", "late", "old"]
    latest = store.latest_snapshot(a_server())
    assert latest is not None
    assert latest.id == newest.id == manifest_of(store).snapshot.id
    assert store.get_snapshot(late.id).last_seen_at == at(5)


def test_a_late_capture_of_what_stood_then_moves_that_forward(store: Store) -> None:
    first = store.save_snapshot(a_capture(session="a", seconds=0), {})
    store.save_snapshot(a_capture(session="b", seconds=10), {})
    saved = store.save_snapshot(a_capture(session="a", seconds=5), {})
    assert (saved.id, saved.new) == (first.id, False)
    assert store.get_snapshot(first.id).last_seen_at == at(5)
    assert states(store) == ["b", "a"]


def test_a_late_state_that_returns_becomes_the_latest(store: Store) -> None:
    store.save_snapshot(a_capture(session="a", seconds=0), {})
    store.save_snapshot(a_capture(session="a", seconds=10), {})
    late = store.save_snapshot(a_capture(session="x", seconds=5), {})
    again = store.save_snapshot(a_capture(session="x", seconds=11), {})
    assert again.new
    assert again.id != late.id
    assert states(store) == ["x", "a", "x"]
    assert manifest_of(store).snapshot.id == again.id


def test_the_same_late_capture_twice_is_one(store: Store) -> None:
    store.save_snapshot(a_capture(session="a", seconds=10), {})
    late = a_capture(session="x", seconds=5)
    first, second = store.save_snapshot(late, {}), store.save_snapshot(late, {})
    assert (second.id, second.new) == (first.id, False)
    assert states(store) == ["a", "x"]


def test_of_two_captures_at_one_moment_the_second_is_the_latest(store: Store) -> None:
    store.save_snapshot(a_capture(session="a"), {})
    second = store.save_snapshot(a_capture(session="b"), {})
    latest = store.latest_snapshot(a_server())
    assert latest is not None
    assert latest.id == second.id
    assert states(store) == ["b", "a"]


NUMBERS = itertools.count()
names = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12)), min_size=1, max_size=12)


@given(names)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_order_captures_arrive_in_the_newest_is_the_latest(
    store: Store, arrivals: list[tuple[str, int]]
) -> None:
    # Each example on a server of its own, so that one store does for all.
    server = a_server(f"s{next(NUMBERS)}")
    newest: Capture | None = None
    for name, seconds in arrivals:
        capture = a_capture(session=name, seconds=seconds, server=server)
        store.save_snapshot(capture, {})
        if newest is None or capture.taken_at >= newest.taken_at:
            newest = capture
        latest = store.latest_snapshot(server)
        assert latest is not None
        assert (latest.topology, latest.last_seen_at) == (newest.topology, newest.taken_at)
        assert manifest_at(store, server.key) == latest


def manifest_at(store: Store, key: str) -> object:
    for found in read_manifests(store.state_dir):
        if isinstance(found, Manifest) and found.snapshot.server.key == key:
            return found.snapshot
    return None


@given(st.binary(max_size=40))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_a_pane_can_show_come_back(store: Store, raw: bytes) -> None:
    title = text.decode(raw.replace(b"\0", b""))
    capture = a_capture([a_pane(0, title=title, cwd=f"/{title}", options={"@x": title})], session=title)
    saved = store.save_snapshot(capture, {})
    assert msgspec.json.encode(store.get_snapshot(saved.id).topology) == msgspec.json.encode(capture.topology)


def test_scrollback_that_was_not_looked_at_stays_known(store: Store) -> None:
    digest, raw = a_text()
    store.save_snapshot(a_capture([a_pane(0)], scrollback={"%0": digest}), {digest: raw})
    same = store.save_snapshot(a_capture([a_pane(0)], seconds=1), None)
    assert store.get_snapshot(same.id).details.panes["%0"].scrollback == digest
    # Also by a new snapshot, for the pane that is still there.
    changed = store.save_snapshot(a_capture([a_pane(0), a_pane(1)], seconds=2), None)
    panes = store.get_snapshot(changed.id).details.panes
    assert (panes["%0"].scrollback, panes["%1"].scrollback) == (digest, None)
    assert manifest_of(store).snapshot.details.panes["%0"].scrollback == digest
    assert store.check() == ()


def test_scrollback_that_was_looked_at_and_is_none_is_none(store: Store) -> None:
    digest, raw = a_text()
    store.save_snapshot(a_capture(scrollback={"%0": digest}), {digest: raw})
    same = store.save_snapshot(a_capture(seconds=1), {})
    assert store.get_snapshot(same.id).details.panes["%0"].scrollback is None


def test_scrollback_of_another_server_process_is_not_inherited(store: Store) -> None:
    digest, raw = a_text()
    before = a_capture(scrollback={"%0": digest})
    store.save_snapshot(before, {digest: raw})
    process = msgspec.structs.replace(before.topology.process, pid=999)
    restarted = a_capture(seconds=1)
    restarted = msgspec.structs.replace(
        restarted, topology=msgspec.structs.replace(restarted.topology, process=process)
    )
    saved = store.save_snapshot(restarted, None)
    assert store.get_snapshot(saved.id).details.panes["%0"].scrollback is None


def test_a_clock_that_was_far_ahead_does_not_hide_what_comes_after(store: Store) -> None:
    store.save_snapshot(a_capture(session="from the future", seconds=86400 * 365), {})
    store.save_snapshot(a_capture(session="now"), {})
    assert states(store) == ["now", "from the future"]
    assert manifest_of(store).snapshot.topology.sessions[0].name == "now"
    store.save_snapshot(a_capture(session="later", seconds=60), {})
    assert states(store) == ["later", "now", "from the future"]
    assert store.check() == ()


def test_scrollback_of_a_pane_that_was_started_anew_is_not_inherited(store: Store) -> None:
    digest, raw = a_text()
    store.save_snapshot(a_capture([a_pane(0)], scrollback={"%0": digest}), {digest: raw})
    saved = store.save_snapshot(a_capture([a_pane(0, pid=77)], seconds=1), None)
    assert store.get_snapshot(saved.id).details.panes["%0"].scrollback is None


def test_the_servers_of_a_user(store: Store) -> None:
    one, two = a_server("one"), a_server("two")
    for server in (one, two, a_server("theirs", uid=7), a_server("elsewhere", host="other")):
        store.save_snapshot(a_capture(server=server), {})
    store.save_snapshot(a_capture(server=one, session="again", seconds=1), {})
    store.save_snapshot(a_capture(server=a_server("imported")), {}, origin="resurrect")
    assert store.servers(host=one.host, uid=one.uid, seen_since=at(0)) == (one, two)
    assert store.servers(host=one.host, uid=one.uid, seen_since=at(1)) == (one,)
