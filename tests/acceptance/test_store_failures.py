"""Disks fill up, files get damaged, directories are not ours. Each is a sentence, a code, and no loss."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from tests.acceptance.kit import (
    NOBODY,
    configure,
    hand_over,
    history,
    is_whole,
    manifests,
    only_json,
    run_unprivileged,
    save,
    sentence,
    settle,
    snapshot,
    unprivileged,
)
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure, Ran
from tests.tmux_server import TmuxServer


@pytest.fixture
def good(perdure: Perdure, tmux: TmuxServer) -> str:
    """A saved server; what it is called."""
    tmux.run("new-session", "-d", "-s", "first")
    id: str = save(perdure)["snapshot"]
    tmux.run("new-session", "-d", "-s", "second")
    settle(tmux)
    return id


def _failed(ran: Ran) -> str:
    """See that a save failed for the store's sake with one JSON object and no traceback; return what it said."""
    assert ran.code == 5, ran
    assert "Traceback" not in ran.err
    for line in only_json(ran)["servers"]:
        assert (line["result"], line["reason"]) == ("failed", "store")
        assert line["message"].rstrip(".") in ran.err
    return ran.err


def _database(home: PrivateHome) -> str:
    return os.path.join(home.state, "perdure.db")


# Damage


def _garbage(path: str) -> None:
    with open(path, "r+b") as file:
        file.write(os.urandom(os.path.getsize(path)))


def _cut_short(path: str) -> None:
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) // 2)


def _hole(path: str) -> None:
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 8192)


@pytest.mark.parametrize("damage", [_garbage, _cut_short, _hole])
def test_a_damaged_database_is_said_set_aside_and_rebuilt(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, good: str, damage: Callable[[str], None]
) -> None:
    save(perdure)
    _checkpoint(private_home)
    before = history(perdure)
    _checkpoint(private_home)
    damage(_database(private_home))
    tmux.run("new-session", "-d", "-s", "third")
    settle(tmux)

    ran = perdure("save", "--json")
    assert "check --repair" in _failed(ran)
    assert "third" in {
        each["name"] for found in manifests(private_home) for each in found["snapshot"]["topology"]["sessions"]
    }

    checked = perdure("check", "--json")
    assert checked.code == 5
    answer = only_json(checked)
    assert not answer["ok"]
    assert any(each["repairable"] for each in answer["problems"])
    assert "check --repair" in perdure("check").out

    ran = perdure("check", "--repair", "--json")
    assert ran.code == 4, "what could not be read is said"
    repaired = only_json(ran)
    assert repaired["repaired"]
    aside = [name for name in os.listdir(private_home.state) if ".damaged-" in name]
    assert aside, "the damaged file was not kept"
    (problem,) = repaired["problems"]
    assert os.path.basename(problem["where"]) in aside
    assert perdure("check").code == 4
    rows = history(perdure)
    assert rows[0]["sessions"] == 3
    assert before[0]["id"] in {row["id"] for row in rows}, "what only the manifest had is there again"
    for row in rows:
        snapshot(perdure, row["id"])
    assert save(perdure)["result"] == "unchanged"
    os.unlink(problem["where"])
    assert is_whole(perdure)


def _checkpoint(home: PrivateHome) -> None:
    """Put everything into the one file that a test then damages."""
    with closing(sqlite3.connect(_database(home))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def test_a_corrupt_row_costs_only_itself(perdure: Perdure, private_home: PrivateHome, good: str) -> None:
    latest = save(perdure)["snapshot"]
    with closing(sqlite3.connect(_database(private_home))) as connection, connection:
        connection.execute("UPDATE snapshots SET body = x'00112233' WHERE id = ?", (good,))
    ran = perdure("show", good, "--json")
    assert ran.code == 5
    assert good in sentence(ran)
    assert only_json(ran)["error"]["code"] == 5
    assert snapshot(perdure)["id"] == latest
    assert {row["id"] for row in history(perdure)} == {latest, good}
    assert save(perdure)["result"] == "unchanged"
    checked = perdure("check", "--json")
    assert checked.code == 4
    assert good in str(only_json(checked)["problems"])
    assert only_json(perdure.ok("check", "--repair", "--json"))["ok"]
    assert perdure("show", good).code == 3
    assert [row["id"] for row in history(perdure)] == [latest]


def test_a_corrupt_latest_row_is_read_from_the_manifest(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, good: str
) -> None:
    latest = save(perdure)["snapshot"]
    with closing(sqlite3.connect(_database(private_home))) as connection, connection:
        connection.execute("UPDATE snapshots SET body = x'00112233' WHERE id = ?", (latest,))
    tmux.kill()
    line = save(perdure)
    assert (line["result"], line["reason"]) == ("kept", "no-server")
    perdure.ok("check", "--repair")
    assert snapshot(perdure)["id"] == latest
    assert is_whole(perdure)


def test_a_lost_database_comes_back_from_the_manifests(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, good: str
) -> None:
    latest = save(perdure)
    tmux.kill()
    for name in os.listdir(private_home.state):
        if name.startswith("perdure.db"):
            os.unlink(os.path.join(private_home.state, name))
    assert [row["id"] for row in history(perdure)] == [latest["snapshot"]]
    assert len(snapshot(perdure)["topology"]["sessions"]) == 2


def test_a_damaged_manifest_is_said_and_written_anew(perdure: Perdure, private_home: PrivateHome, good: str) -> None:
    latest = os.path.join(private_home.state, "latest")
    (name,) = [name for name in os.listdir(latest) if name.endswith(".json")]
    with open(os.path.join(latest, name), "w") as file:
        file.write('{"version":1,"snap')
    checked = perdure("check", "--json")
    assert checked.code == 4
    assert name in str(only_json(checked)["problems"])
    assert only_json(perdure.ok("check", "--repair", "--json"))["ok"]
    assert [each["snapshot"]["id"] for each in manifests(private_home)] == [good]


# Other versions


def test_a_store_of_a_newer_program_is_refused_and_left_alone(
    perdure: Perdure, private_home: PrivateHome, good: str
) -> None:
    with closing(sqlite3.connect(_database(private_home))) as connection, connection:
        connection.execute("INSERT INTO schema_versions VALUES (99)")
    _checkpoint(private_home)
    with open(_database(private_home), "rb") as file:
        before = file.read()
    assert "newer perdure" in _failed(perdure("save", "--json"))
    for args in (["history"], ["show", "latest"], ["check"], ["check", "--repair"], ["diff", "latest"], []):
        ran = perdure(*args, "--json")
        assert ran.code == 5, args
        assert "newer perdure" in sentence(ran)
        assert only_json(ran)["error"]["code"] == 5
    with open(_database(private_home), "rb") as file:
        assert file.read() == before


# Places that cannot be written


@contextmanager
def _small_disk(path: str) -> Iterator[None]:
    """Put a disk of one MiB at `path`; skips the test where we may not."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", path], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", path], check=True)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="only root may mount")
def test_a_full_disk_is_said_and_costs_nothing_that_was_there(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    os.mkdir(private_home.state, 0o700)
    with _small_disk(private_home.state):
        tmux.run("new-session", "-d", "-s", "first")
        good = save(perdure)["snapshot"]
        ballast = os.path.join(private_home.state, "ballast")
        _fill(ballast)
        tmux.run("new-session", "-d", "-s", "second")
        ran = perdure("save", "--json")
        said = _failed(ran)
        assert "full" in said or "No space left" in said
        assert perdure("save").code == 5
        os.unlink(ballast)
        assert is_whole(perdure)
        assert snapshot(perdure, good)["id"] == good
        assert save(perdure)["sessions"] == 2
        assert len(history(perdure)) == 2


def _fill(path: str) -> None:
    with open(path, "wb", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def test_a_file_that_may_not_grow_is_said(perdure: Perdure, private_home: PrivateHome, good: str) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    argv = perdure.argv("save", "--json")
    done = subprocess.run(argv, capture_output=True, text=True, preexec_fn=limit, check=False)
    _failed(Ran(done.returncode, done.stdout, done.stderr))
    assert [row["id"] for row in history(perdure)] == [good]
    latest = save(perdure)["snapshot"]
    assert [row["id"] for row in history(perdure)] == [latest, good]
    assert is_whole(perdure)


def test_a_read_only_state_directory_is_said(perdure: Perdure, private_home: PrivateHome) -> None:
    unprivileged()
    hand_over(private_home)
    os.chmod(private_home.state, 0o500)
    ran = run_unprivileged("save", "--json")
    assert private_home.state in _failed(ran)
    for args in (["history"], ["check"], ["check", "--repair"], ["show", "latest"]):
        ran = run_unprivileged(*args, "--json")
        assert ran.code == 5, args
        assert private_home.state in sentence(ran)
    os.chmod(private_home.state, 0o700)


def test_a_database_that_may_only_be_read_is_said(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    unprivileged()
    hand_over(private_home)
    assert run_unprivileged("save").code == 0
    for name in os.listdir(private_home.state):
        path = os.path.join(private_home.state, name)
        os.chmod(path, 0o500 if os.path.isdir(path) else 0o400)
    os.chmod(private_home.state, 0o500)
    _failed(run_unprivileged("save", "--json"))
    for path in (private_home.state, os.path.join(private_home.state, "latest")):
        if os.path.isdir(path):
            os.chmod(path, 0o700)


def test_a_state_directory_that_is_a_file_is_said(
    perdure: Perdure, private_home: PrivateHome, tmux: TmuxServer
) -> None:
    tmux.run("new-session", "-d")
    with open(private_home.state, "w"):
        pass
    assert private_home.state in _failed(perdure("save", "--json"))
    assert os.path.getsize(private_home.state) == 0
    assert only_json(perdure.ok("ls", "--json"))["panes"]


@pytest.mark.parametrize(
    "url",
    ["mysql://u:hunter2@h/d", "hunter2", "sqlite://hunter2/x", "sqlite:///", "postgresql://u:hunter2@127.0.0.1:1/d"],
)
def test_a_store_that_cannot_be_opened_is_said_without_its_password(
    perdure: Perdure, private_home: PrivateHome, tmux: TmuxServer, url: str
) -> None:
    tmux.run("new-session", "-d", "-s", "kept")
    env = {"PERDURE_STORE": url}
    ran = perdure("save", "--json", env=env)
    _failed(ran)
    assert [each["snapshot"]["topology"]["sessions"][0]["name"] for each in manifests(private_home)] == ["kept"]
    said = ran.out + ran.err
    for args in (["history"], ["check"], ["check", "--repair"], ["show", "latest"], []):
        ran = perdure(*args, "--json", env=env)
        assert ran.code == 5, (args, ran)
        assert only_json(ran)["error"]["message"].rstrip(".") in sentence(ran)
        said += ran.out + ran.err
    assert "hunter2" not in said
    assert only_json(perdure.ok("ls", "--json", env=env))["panes"]


# Sockets that are not ours


def test_a_socket_we_may_not_use_is_unreachable(perdure: Perdure, private_home: PrivateHome) -> None:
    unprivileged()
    folder = os.path.join(private_home.sockets, f"tmux-{NOBODY if os.geteuid() == 0 else os.geteuid()}")
    os.mkdir(folder, 0o700)
    path = os.path.join(folder, "default")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        hand_over(private_home)
        os.chmod(path, 0)
        ran = run_unprivileged("save", "--json")
    assert ran.code == 4, ran
    (line,) = only_json(ran)["servers"]
    assert (line["result"], line["reason"]) == ("failed", "unreachable")
    assert path in sentence(ran)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what belongs to somebody else")
def test_somebody_elses_socket_is_refused(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    unprivileged()
    tmux.run("new-session", "-d", "-s", "private")
    hand_over(private_home)
    os.chown(os.path.dirname(tmux.socket), 0, 0)
    os.chmod(os.path.dirname(tmux.socket), 0o755)
    os.chown(tmux.socket, 0, 0)
    os.chmod(tmux.socket, 0o777)
    for command in ("save", "ls"):
        ran = run_unprivileged(command, "--socket", tmux.socket, "--json")
        assert ran.code == 6, ran
        assert "Refused" in sentence(ran)
        only_json(ran)
    assert "private" not in ran.out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what belongs to somebody else")
def test_root_looks_at_somebodys_socket_only_as_its_owner(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    """A socket that its owner cannot use, root does not use either: whoever listens would see root's environment."""
    tmux.run("new-session", "-d")
    os.chown(tmux.socket, NOBODY, NOBODY)
    ran = perdure("save", "--json")
    assert ran.code == 4
    (line,) = only_json(ran)["servers"]
    assert (line["result"], line["reason"]) == ("failed", "refused")


def test_looking_at_everyone_is_for_root(perdure: Perdure, private_home: PrivateHome) -> None:
    unprivileged()
    hand_over(private_home)
    for args in (["save"], ["ls"], ["export", "tmux-persist", "--dir", private_home.home]):
        ran = run_unprivileged(*args, "--all-users", "--json")
        assert ran.code == 6, ran
        assert "root" in sentence(ran)
        assert only_json(ran)["error"]["code"] == 6


# Configuration


@pytest.mark.parametrize(
    ("toml", "word"),
    [
        ("[tmux", "TOML"),
        ("nonsense = 1", "nonsense"),
        ("[tmux]\ntimeout_seconds = 'long'", "timeout_seconds"),
        ("[tmux]\ntimeout_seconds = 0", "timeout_seconds"),
        ("[scrollback]\nlines = -1", "lines"),
        ("[retention]\ndaily_days = -1", "retention"),
        ("zone = 'Nowhere/Land'", "Nowhere"),
        ("[export]\non_save = 'yes'", "on_save"),
        ("\xff\xfe", "config.toml"),
    ],
)
def test_a_broken_configuration_is_said(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, toml: str, word: str
) -> None:
    tmux.run("new-session", "-d")
    configure(private_home, toml)
    for args in (["save"], ["ls"], []):
        ran = perdure(*args, "--json")
        assert ran.code == 2, ran
        assert word in sentence(ran)
        assert only_json(ran)["error"]["code"] == 2
    assert not os.path.exists(_database(private_home))
