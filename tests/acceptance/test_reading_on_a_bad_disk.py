"""What was saved can be looked at where nothing can be written, and what cannot be read is neither lost nor hidden."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.acceptance.gateway import ANN, Gateway
from tests.acceptance.kit import (
    hand_over,
    history,
    is_whole,
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

#: Everything that only reads.
LOOKING: tuple[list[str], ...] = (
    ["history"],
    ["show", "latest"],
    ["diff", "latest"],
    ["restore", "--dry-run"],
    ["check"],
    [],
)


class Disk:
    """A disk of one MiB under the state directory."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._ballast = os.path.join(path, "ballast")

    def fill(self) -> None:
        """Leave no room for a byte."""
        with open(self._ballast, "wb", buffering=0) as file:
            for size in (65536, 4096, 512, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    def make_room(self) -> None:
        """Take back `fill`."""
        os.unlink(self._ballast)

    def remount(self, how: str) -> None:
        """Make it read-only (`ro`) or not (`rw`)."""
        subprocess.run(["mount", "-o", f"remount,{how}", self.path], check=True)


@pytest.fixture
def disk(private_home: PrivateHome) -> Iterator[Disk]:
    """The disk, empty; skips the test where we may not mount."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root may mount")
    path = private_home.state
    os.mkdir(path, 0o700)
    options = ["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs"]
    if subprocess.run(["mount", *options, path], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    yield Disk(path)
    subprocess.run(["umount", "-l", path], check=True)


@pytest.fixture
def saved(perdure: Perdure, tmux: TmuxServer) -> list[str]:
    """The ids of two snapshots of one server, the newest first."""
    tmux.run("new-session", "-d", "-s", "first")
    settle(tmux)
    ids = [save(perdure)["snapshot"]]
    tmux.run("new-session", "-d", "-s", "second")
    settle(tmux)
    return [save(perdure)["snapshot"], *ids]


def _says(ran: Ran, where: str, cause: str) -> None:
    assert ran.code == 0, ran
    said = sentence(ran)
    assert said.startswith(f"perdure: {where}"), said
    assert f" cannot be written ({cause}" in said, said
    assert said.endswith("; showing what is kept."), said


def _everything_is_shown(perdure: Perdure, where: str, cause: str, saved: list[str]) -> None:
    for args in LOOKING:
        _says(perdure(*args), where, cause)
        _says(perdure(*args, "--json"), where, cause)
    assert [row["id"] for row in history(perdure)] == saved
    assert [len(snapshot(perdure, id)["topology"]["sessions"]) for id in saved] == [2, 1]
    assert snapshot(perdure)["id"] == saved[0]
    assert only_json(perdure.ok("diff", saved[1], "--json"))["changes"]
    assert only_json(perdure.ok("--json"))["saved"]["panes"] == 2
    assert is_whole(perdure)
    perdure.ok("show", "latest", "first", "--scrollback")
    # What is live does not depend on it, and needs no excuse.
    assert perdure.ok("ls").err == ""


def _saving_fails(perdure: Perdure, *causes: str) -> None:
    for args in (["save"], ["check", "--repair"]):
        ran = perdure(*args, "--json")
        assert ran.code == 5, ran
        assert any(cause in ran.err for cause in causes), ran.err
        assert "showing" not in ran.err
        only_json(ran)


def test_on_a_read_only_file_system_everything_kept_is_shown(
    perdure: Perdure, tmux: TmuxServer, disk: Disk, saved: list[str]
) -> None:
    disk.remount("ro")
    _everything_is_shown(perdure, disk.path, "the file system is read-only", saved)
    tmux.run("new-session", "-d", "-s", "third")
    settle(tmux)
    _saving_fails(perdure, "the file system is read-only")
    disk.remount("rw")
    assert perdure.ok("history").err == ""
    assert save(perdure)["result"] == "saved"
    assert is_whole(perdure)


def test_on_a_full_disk_everything_kept_is_shown(
    perdure: Perdure, tmux: TmuxServer, disk: Disk, saved: list[str]
) -> None:
    disk.fill()
    _everything_is_shown(perdure, disk.path, "the disk is full", saved)
    tmux.run("new-session", "-d", "-s", "third")
    settle(tmux)
    _saving_fails(perdure, "the disk is full")
    disk.make_room()
    assert perdure.ok("history").err == ""
    assert save(perdure)["result"] == "saved"
    assert is_whole(perdure)


def test_chats_are_shown_where_nothing_else_is_kept(perdure: Perdure, disk: Disk, private_home: PrivateHome) -> None:
    id = Gateway(private_home).open(ANN, "hello")
    disk.remount("ro")
    for args in (["ls"], ["show", id], ["title", id], ["prune", "--dry-run"]):
        assert "read-only" in perdure.ok("chats", *args).err
    for args in (["title", id, "Tea"], ["reset", id], ["prune"]):
        assert perdure("chats", *args).code == 5


def test_without_a_database_the_manifests_are_shown(perdure: Perdure, disk: Disk, saved: list[str]) -> None:
    os.unlink(os.path.join(disk.path, "perdure.db"))
    disk.remount("ro")
    ran = perdure("history", "--json")
    _says(ran, disk.path, "read-only file system")
    assert [row["id"] for row in only_json(ran)["snapshots"]] == saved[:1]
    assert snapshot(perdure)["id"] == saved[0]
    perdure.ok("show", "latest", "first", "--scrollback")
    # What is shown is not all that was kept, so all is not well.
    checked = perdure("check", "--json")
    assert checked.code == 5
    assert [each["where"] for each in only_json(checked)["problems"]] == ["database"]


def test_what_may_only_be_read_is_shown(perdure: Perdure, private_home: PrivateHome, saved: list[str]) -> None:
    unprivileged()
    hand_over(private_home)
    for folder, _, names in os.walk(private_home.state):
        os.chmod(folder, 0o500)
        for name in names:
            os.chmod(os.path.join(folder, name), 0o400)
    ran = run_unprivileged("history", "--json")
    _says(ran, private_home.state, f"no file can be made in {private_home.state}")
    assert [row["id"] for row in only_json(ran)["snapshots"]] == saved
    for args in (["show", "latest"], ["check"], []):
        _says(run_unprivileged(*args), private_home.state, "no file can be made")
    os.chmod(private_home.state, 0o700)


def test_where_nothing_is_kept_the_cause_is_the_answer(perdure: Perdure, disk: Disk) -> None:
    disk.remount("ro")
    for args in (["history"], ["show", "latest"], ["check"], []):
        ran = perdure(*args, "--json")
        assert ran.code == 5, ran
        assert "ead-only file system" in sentence(ran)
        assert only_json(ran)["error"]["code"] == 5


def _manifest(home: PrivateHome) -> str:
    directory = os.path.join(home.state, "latest")
    (name,) = [name for name in os.listdir(directory) if name.endswith(".json")]
    return os.path.join(directory, name)


def test_a_manifest_that_cannot_be_read_is_set_aside_by_the_next_save(
    perdure: Perdure, private_home: PrivateHome, saved: list[str]
) -> None:
    path = _manifest(private_home)
    os.truncate(path, 100)
    with open(path, "rb") as file:
        half = file.read()
    save(perdure)
    (aside,) = [name for name in os.listdir(os.path.dirname(path)) if ".damaged-" in name]
    assert aside.startswith(f"{os.path.basename(path)}.damaged-")
    with open(os.path.join(os.path.dirname(path), aside), "rb") as file:
        assert file.read() == half
    assert is_whole(perdure)


def test_a_manifest_that_nobody_can_read_is_named_by_the_history(
    perdure: Perdure, private_home: PrivateHome, saved: list[str]
) -> None:
    path = _manifest(private_home)
    assert perdure.ok("history").err == ""
    os.truncate(path, 100)
    os.unlink(os.path.join(private_home.state, "perdure.db"))
    for args in ([], ["--json"]):
        ran = perdure.ok("history", *args)
        assert path in sentence(ran)
        assert "cannot be read" in ran.err
        assert "Nothing is saved yet" not in ran.out
    assert only_json(ran)["snapshots"] == []
    assert path in sentence(perdure.ok())
