from __future__ import annotations

import os
import socket

import pytest

from perdure.tmux.sockets import canonical, find_sockets, owner_of, socket_dir, users_with_sockets

UID = os.getuid()


@pytest.fixture
def base(private_home: object) -> str:
    return os.path.realpath(os.environ["TMUX_TMPDIR"])


def a_socket(directory: str, name: str | bytes) -> bytes:
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(os.fsencode(directory), os.fsencode(name))
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path)
    return path


def test_where_tmux_looks() -> None:
    assert socket_dir({}, 1000) == os.path.join(os.path.realpath("/tmp"), "tmux-1000")
    assert socket_dir({"TMUX_TMPDIR": ""}, 1000) == os.path.join(os.path.realpath("/tmp"), "tmux-1000")
    assert socket_dir({"TMUX_TMPDIR": "/nowhere"}, 1000) == "/nowhere/tmux-1000"


def test_every_socket_once_and_nothing_that_is_none(base: str) -> None:
    directory = os.path.join(base, f"tmux-{UID}")
    for name in ("default", "work"):
        a_socket(directory, name)
    with open(os.path.join(directory, "notes"), "w", encoding="utf-8"):
        pass
    elsewhere = os.fsdecode(a_socket(os.path.join(base, "x"), "mine"))
    environ = {"TMUX_TMPDIR": base, "TMUX": f"{directory}/work,300,0"}
    assert find_sockets(environ, UID) == [f"{directory}/default", f"{directory}/work"]
    assert find_sockets({**environ, "TMUX": f"{elsewhere},300,0"}, UID)[-1] == elsewhere
    assert find_sockets(environ, UID, (f"{base}/x/../x/mine", "/nowhere/s"))[2:] == [elsewhere, "/nowhere/s"]


def test_a_comma_in_the_path_of_the_socket(base: str) -> None:
    path = os.fsdecode(a_socket(os.path.join(base, "a,b"), "c,d"))
    assert find_sockets({"TMUX_TMPDIR": base, "TMUX": f"{path},300,0"}, UID) == [path]


def test_with_no_socket_at_all_the_default_is_named(base: str) -> None:
    assert find_sockets({"TMUX_TMPDIR": base}, UID) == [os.path.join(base, f"tmux-{UID}", "default")]


def test_somebody_elses_servers_are_not_looked_for_in_our_own_terminal(base: str) -> None:
    path = os.fsdecode(a_socket(base, "mine"))
    assert path not in find_sockets({"TMUX_TMPDIR": base, "TMUX": f"{path},1,0"}, UID + 1)


def test_links_to_the_directory_lead_to_one_name(base: str) -> None:
    path = os.fsdecode(a_socket(os.path.join(base, "real"), "s"))
    os.symlink(os.path.join(base, "real"), os.path.join(base, "link"))
    assert canonical(os.path.join(base, "link", "s")) == canonical(path) == path


def test_a_name_that_is_no_text_is_found_and_stays_exact(base: str) -> None:
    path = a_socket(os.path.join(base, f"tmux-{UID}"), b"caf\xe9")
    (found,) = find_sockets({"TMUX_TMPDIR": base}, UID)
    assert found.endswith("caf\uefe9")
    assert owner_of(found) == UID
    assert canonical(found) == found
    assert os.path.exists(path)


def test_users_are_those_with_a_socket(base: str) -> None:
    a_socket(os.path.join(base, "tmux-4242"), "default")
    os.makedirs(os.path.join(base, "tmux-4243"))
    a_socket(os.path.join(base, "tmux-x"), "default")
    found = users_with_sockets({"TMUX_TMPDIR": base})
    assert 4242 in found
    assert 4243 not in found


def test_nothing_there_has_no_owner(base: str) -> None:
    assert owner_of(os.path.join(base, "nothing")) is None
    with open(os.path.join(base, "file"), "w", encoding="utf-8"):
        pass
    assert owner_of(os.path.join(base, "file", "below")) is None
    with pytest.raises(OSError, match="too long"):
        owner_of("/tmp/" + "x" * 5000)
