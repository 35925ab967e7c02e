from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import msgspec
import pytest

from perdure.compat.files import default_tmux_state_paths, write_export, write_tmux_persist, write_tmux_state
from perdure.errors import PerdureError, Refused
from perdure.model.text import decode
from tests.unit.compat.topologies import SERVER, a_pane, a_snapshot, a_topology, single

EMPTY = a_snapshot(a_topology([], {}, []))


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_the_default_places_are_the_scripts() -> None:
    assert default_tmux_state_paths("/home/dev") == (
        "/home/dev/.timmy/tmux-state.json",
        "/home/dev/.hermes/tmux-state.json",
    )


def test_an_export_is_private_with_the_directories_it_needed(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "tmux-state.json"
    old = os.umask(0)
    try:
        write_tmux_state(single(a_pane(0)), str(path), hostname="box")
    finally:
        os.umask(old)
    assert json.loads(path.read_text())["summary"]["active_pane"] == "work:0.0"
    assert [mode(path), mode(path.parent), mode(path.parent.parent)] == [0o600, 0o700, 0o700]


def test_an_export_replaces_the_one_before_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("old")
    path.chmod(0o644)
    before = path.stat().st_ino
    write_export(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_ino != before
    assert mode(path) == 0o600
    assert os.listdir(tmp_path) == ["state.json"]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    link = tmp_path / "state.json"
    link.symlink_to("dotfiles/state.json")
    write_export(str(link), b"new")
    assert link.is_symlink()
    assert (dotfiles / "state.json").read_bytes() == b"new"


def test_the_manifest_of_a_user_carries_the_users_name_and_exact_bytes(tmp_path: Path) -> None:
    snapshot = single(a_pane(0, cwd=decode(b"/caf\xe9\tx/y")), name=decode(b"\xff"))
    warnings = write_tmux_persist(snapshot, str(tmp_path))
    assert (tmp_path / "ann.tsv").read_bytes() == b"\xff\t/\t\n"
    assert mode(tmp_path / "ann.tsv") == 0o600
    assert len(warnings) == 1


def test_nothing_ever_takes_the_place_of_sessions(tmp_path: Path) -> None:
    (tmp_path / "ann.tsv").write_text("kept")
    unwritable = single(a_pane(0), name="a\tb")
    for snapshot in (EMPTY, unwritable):
        with pytest.raises(Refused, match="left as it is"):
            write_tmux_persist(snapshot, str(tmp_path))
    with pytest.raises(Refused, match="left as it is"):
        write_tmux_state(EMPTY, str(tmp_path / "ann.tsv"), hostname="box")
    assert (tmp_path / "ann.tsv").read_text() == "kept"


@pytest.mark.parametrize("user", ["", "..", "../../etc/cron.d/x", "a/b"])
def test_a_user_is_never_a_path(tmp_path: Path, user: str) -> None:
    snapshot = msgspec.structs.replace(single(a_pane(0)), server=msgspec.structs.replace(SERVER, user=user))
    with pytest.raises(Refused):
        write_tmux_persist(snapshot, str(tmp_path))


def test_another_users_file_is_only_written_as_that_user(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with pytest.raises(Refused, match="another user"):
        write_export(str(path), b"x", owner=(os.geteuid() + 1, os.getegid()))
    assert not path.exists()
    write_export(str(path), b"x", owner=(os.geteuid(), os.getegid()))
    assert path.read_bytes() == b"x"


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "directory").mkdir()
    for path in (tmp_path / "file" / "state.json", tmp_path / "directory"):
        with pytest.raises(PerdureError, match=r"could not be written: .*\.\Z"):
            write_export(str(path), b"x")
    assert sorted(os.listdir(tmp_path)) == ["directory", "file"]


def test_two_writers_never_mix(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    contents = [bytes([65 + n]) * 5000 for n in range(4)]
    children = []
    for content in contents:
        pid = os.fork()
        if pid == 0:
            try:
                for _ in range(5):
                    write_export(str(path), content)
            finally:
                os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    assert path.read_bytes() in contents
    assert os.listdir(tmp_path) == ["state.json"]
