"""Getting out of a service, with a stand-in for systemd-run: only the words are judged here."""

from __future__ import annotations

import os
import subprocess

import pytest

from perdure.host.scope import outside_service
from perdure.host.users import current_user
from perdure.model.user import User

GUEST = User(name="guest", uid=4711, gid=4712, home="/home/dev")


@pytest.fixture
def machine(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(str(tmp_path), monkeypatch)


class Machine:
    """A directory that looks like a machine run by systemd, and a PATH with nothing on it but a stand-in."""

    def __init__(self, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.systemd_run = os.path.join(root, "bin", "systemd-run")
        os.makedirs(os.path.join(root, "run/systemd/system"))
        self.write(
            "bin/systemd-run", '#!/bin/sh\nprintf "%s\\n" "$@"\nwhile [ "$1" != -- ]; do shift; done\nshift\n"$@"\n'
        )
        os.chmod(self.systemd_run, 0o755)
        self.write("proc/self/cgroup", "0::/system.slice/perdure-restore.service\n")
        monkeypatch.setenv("PATH", os.path.join(root, "bin"))

    def write(self, path: str, text: str) -> None:
        """Put a file there."""
        os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
            file.write(text)

    def words(self, user: User) -> tuple[str, ...]:
        """The words for a user of this machine."""
        return outside_service(user, root=self.root)


def as_uid(monkeypatch: pytest.MonkeyPatch, uid: int) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)


def test_root_starts_what_is_another_users_as_that_user_in_their_slice(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_uid(monkeypatch, 0)
    assert machine.words(GUEST) == (
        machine.systemd_run,
        "--scope",
        "--quiet",
        "--collect",
        "--uid=4711",
        "--gid=4712",
        "--slice=user-4711.slice",
        "--",
    )


def test_root_starts_its_own_as_itself(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    as_uid(monkeypatch, 0)
    root = GUEST._replace(uid=0, gid=0)
    assert machine.words(root) == (
        machine.systemd_run,
        "--scope",
        "--quiet",
        "--collect",
        "--slice=user-0.slice",
        "--",
    )


def test_anybody_else_asks_their_own_manager(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    as_uid(monkeypatch, GUEST.uid)
    assert machine.words(GUEST) == (), "there is no manager to ask"
    machine.write("run/user/4711/systemd/private", "")
    assert machine.words(GUEST) == (
        "/usr/bin/env",
        "XDG_RUNTIME_DIR=/run/user/4711",
        machine.systemd_run,
        "--user",
        "--scope",
        "--quiet",
        "--collect",
        "--",
    )


def test_the_command_is_what_comes_after_the_words(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    as_uid(monkeypatch, GUEST.uid)
    machine.write("run/user/4711/systemd/private", "")
    command = ["/bin/sh", "-c", 'echo "$XDG_RUNTIME_DIR $1"', "-", "--uid=1"]
    done = subprocess.run([*machine.words(GUEST), *command], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "/run/user/4711 --uid=1"


@pytest.mark.parametrize(
    ("cgroup", "is_in_service"),
    [
        ("0::/system.slice/perdure.service\n", True),
        ("0::/system.slice/perdure.service/sub/group\n", True),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/perdure.service\n", True),
        ("12:cpu:/\n1:name=systemd:/system.slice/cron.service\n0::/\n", True),
        ("1:name=systemd:/system.slice/cron.service\n0::/system.slice/cron.service\n", True),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", False),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope\n", False),
        ("0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", False),
        ("0::/docker/0123abcd\n", False),
        ("0::/\n", False),
        ("4:memory:/x.service\n", False),
        ("", False),
        ("nonsense\n", False),
    ],
)
def test_only_what_is_in_a_service_has_to_get_out(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, cgroup: str, is_in_service: bool
) -> None:
    as_uid(monkeypatch, 0)
    machine.write("proc/self/cgroup", cgroup)
    assert bool(machine.words(GUEST)) is is_in_service


@pytest.mark.parametrize("missing", ["bin/systemd-run", "proc/self/cgroup"])
def test_a_machine_without_the_means_has_no_words(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    as_uid(monkeypatch, 0)
    os.unlink(os.path.join(machine.root, missing))
    assert machine.words(GUEST) == ()


def test_a_machine_that_systemd_does_not_run_has_no_words(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    as_uid(monkeypatch, 0)
    os.rmdir(os.path.join(machine.root, "run/systemd/system"))
    assert machine.words(GUEST) == ()


def test_the_real_machine_can_be_asked() -> None:
    assert isinstance(outside_service(current_user()), tuple)
