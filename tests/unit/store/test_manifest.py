"""Manifests by themselves, without any database."""

from __future__ import annotations

import os

import msgspec
import pytest

from perdure import errors
from perdure.model.server import Server
from perdure.model.snapshot import Problem
from perdure.store.files import locked
from perdure.store.manifest import Manifest, Shelf, manifest_name, read_manifests, read_scrollback, write_manifest
from tests.builders import a_capture, a_server, at
from tests.conftest import PrivateHome


@pytest.fixture
def state(private_home: PrivateHome) -> str:
    return private_home.state


def keep(state: str, name: str, seconds: float, text: str | None = None) -> str:
    scrollback = {} if text is None else {"%0": text}
    texts = {} if text is None else {text: text.encode()}
    return write_manifest(state, a_capture(session=name, seconds=seconds, scrollback=scrollback), texts).id


def latest(state: str) -> Manifest:
    manifest = Shelf(state).read(Shelf(state).path(a_server()))
    assert manifest is not None
    return manifest


def names(state: str) -> list[str]:
    return sorted(os.listdir(os.path.join(state, "latest")))


def test_a_name_can_be_read_and_is_nobody_elses() -> None:
    name = manifest_name(a_server("default"))
    assert name.startswith("dev-default-")
    odd = [
        Server(host=host, user=user, uid=uid, socket=socket)
        for host in ("a", "b")
        for user, uid in (("../x", 1), ("..", 2), ("", 3), ("ü/ /", 4), ("a" * 300, 5))
        for socket in ("/tmp/tmux-1/a b", "/tmp/tmux-1/a\tb", "/run/other/a b", "/", "/x" + "y" * 300, "/~")
    ]
    made = {manifest_name(server) for server in odd}
    assert len(made) == len(odd)
    for each in made:
        assert "/" not in each
        assert "~" not in each
        assert not each.startswith(".")
        assert len(each) < 120


def test_a_capture_is_kept_whole_with_scrollback(state: str) -> None:
    capture = a_capture(scrollback={"%0": "d"})
    saved = write_manifest(state, capture, {"d": b"text\x00\xff", "unused": b""})
    assert saved.new
    (found,) = read_manifests(state)
    assert isinstance(found, Manifest)
    assert (found.version, found.snapshot.id) == (1, saved.id)
    assert (found.snapshot.topology, found.snapshot.details) == (capture.topology, capture.details)
    assert read_scrollback(state, "d") == b"text\x00\xff"
    assert read_scrollback(state, "unused") is None


def test_the_file_says_what_it_is(state: str) -> None:
    keep(state, "a", 0, "d")
    name = manifest_name(a_server())
    with open(os.path.join(state, "latest", f"{name}.json"), "rb") as file:
        raw = msgspec.json.decode(file.read())
    assert raw["version"] == 1
    assert raw["snapshot"]["topology"]["sessions"][0]["name"] == "a"
    with open(os.path.join(state, "latest", f"{name}.scrollback"), "rb") as file:
        (line,) = file.read().splitlines()
    assert sorted(msgspec.json.decode(line)) == ["data", "digest"]


def test_the_same_state_again_moves_forward(state: str) -> None:
    first = keep(state, "a", 0)
    assert keep(state, "a", 5) == first
    assert (latest(state).snapshot.taken_at, latest(state).snapshot.last_seen_at) == (at(0), at(5))
    assert keep(state, "a", 3) == first
    assert latest(state).snapshot.last_seen_at == at(5)
    assert len(names(state)) == 1


def test_a_newer_manifest_is_never_replaced_and_the_late_one_is_kept_too(state: str) -> None:
    newer = keep(state, "new", 10)
    late = keep(state, "late", 5)
    assert latest(state).snapshot.id == newer
    assert {found.snapshot.id for found in read_manifests(state) if isinstance(found, Manifest)} == {newer, late}


def test_a_state_that_is_overtaken_is_kept_with_its_scrollback(state: str) -> None:
    ids = [keep(state, name, second, name) for second, name in enumerate("aba")]
    assert len(set(ids)) == 3
    assert latest(state).snapshot.id == ids[-1]
    assert {found.snapshot.id for found in read_manifests(state) if isinstance(found, Manifest)} == set(ids)
    assert [read_scrollback(state, digest) for digest in "ab"] == [b"a", b"b"]


def test_there_is_an_end_to_what_is_kept(state: str) -> None:
    for second in range(70):
        keep(state, str(second), second)
    assert len(names(state)) == 65


def test_scrollback_is_written_only_when_it_is_other_scrollback(state: str) -> None:
    keep(state, "a", 0, "d")
    path = Shelf(state).scrollback_path(a_server())
    before = os.stat(path).st_ino
    keep(state, "a", 1, "d")
    assert os.stat(path).st_ino == before
    keep(state, "a", 2, "e")
    assert read_scrollback(state, "d") is None
    assert read_scrollback(state, "e") == b"e"
    keep(state, "a", 3)
    assert not os.path.exists(path)


def test_a_broken_line_of_scrollback_costs_only_itself(state: str) -> None:
    keep(state, "a", 0, "d")
    path = Shelf(state).scrollback_path(a_server())
    with open(path, "ab") as file:
        file.write(b'{"digest":"broken","data":"####"}\nnot json\n{"digest":"half","da')
    assert read_scrollback(state, "d") == b"d"
    assert read_scrollback(state, "broken") is None
    keep(state, "a", 1, "d")
    assert read_scrollback(state, "d") == b"d"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"version":1}', b"\xff\xfe", b'{"version":1,"snapshot":{"id":3}}']
)
def test_a_manifest_that_cannot_be_read_costs_only_itself(state: str, content: bytes) -> None:
    keep(state, "a", 0)
    write_manifest(state, a_capture(server=a_server("other")), {})
    path = Shelf(state).path(a_server())
    with open(path, "wb") as file:
        file.write(content)
    found = list(read_manifests(state))
    assert [item.where for item in found if isinstance(item, Problem)] == [path]
    assert len(found) == 2
    # And the next capture takes its place, without destroying it.
    keep(state, "a", 1)
    assert not [item for item in read_manifests(state) if isinstance(item, Problem)]
    with open(f"{path}.damaged-20261115T120001Z", "rb") as file:
        assert file.read() == content


def test_what_was_set_aside_before_is_never_overwritten(state: str) -> None:
    path = Shelf(state).path(a_server())
    for content in (b"first", b"second"):
        keep(state, "a", 0)
        with open(path, "wb") as file:
            file.write(content)
        keep(state, "a", 1)
    found = {}
    for name in names(state):
        if ".damaged-" in name:
            with open(os.path.join(state, "latest", name), "rb") as file:
                found[name.rpartition("-")[2]] = file.read()
    assert found == {"20261115T120001Z": b"first", "20261115T120001Z.2": b"second"}


def test_manifests_that_cannot_be_read_are_found_apart_from_those_of_known_servers(state: str) -> None:
    servers = [a_server(name) for name in ("one", "two", "three")]
    shelf = Shelf(state)
    for server in servers:
        write_manifest(state, a_capture(server=server), {})
    assert shelf.unreadable() == []
    for server in servers[:2]:
        os.truncate(shelf.path(server), 50)
    assert shelf.unreadable() == sorted(map(shelf.path, servers[:2]))
    assert shelf.unreadable(but=[servers[0]]) == [shelf.path(servers[1])]


def test_without_a_directory_there_is_nothing(state: str) -> None:
    assert list(read_manifests(state)) == []
    assert read_scrollback(state, "d") is None


def test_what_killed_writers_left_is_cleared_away_in_time(state: str) -> None:
    keep(state, "a", 0)
    for name, age in ((".old.json.1-a.tmp", 3700), (".young.json.2-b.tmp", 60), ("mine.tmp", 9000)):
        path = os.path.join(state, "latest", name)
        with open(path, "wb"):
            pass
        os.utime(path, (at(100 - age).timestamp(),) * 2)
    keep(state, "a", 100)
    assert names(state)[:1] == [".young.json.2-b.tmp"]
    assert "mine.tmp" in names(state)
    assert ".old.json.1-a.tmp" not in names(state)


def test_a_writer_that_does_not_let_go_is_one_sentence(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(state, "a", 0)
    monkeypatch.setattr("perdure.store.files._TRIES", 2)
    with locked(os.path.join(state, "latest")), pytest.raises(errors.StoreUnusable, match="does not let go"):
        keep(state, "a", 1)
    keep(state, "a", 1)
