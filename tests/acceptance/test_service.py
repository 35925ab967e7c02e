"""The service as users install it: the program as a process, real files in a private home, and a systemctl that keeps
a record of what it was asked.

No test reaches a real service manager or a directory of the system's. Answers of systemctl are in the words of systemd
252; the refusals were taken down from it where no systemd runs.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from typing import NamedTuple

import msgspec
import pytest

from tests.acceptance.kit import hand_over, only_json, run_unprivileged, sentence
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure, Ran

UNITS = ("perdure-save.service", "perdure-save.timer", "perdure-restore.service")
LINUX = pytest.mark.skipif(sys.platform == "darwin", reason="systemd is not for macOS")

SYSTEMCTL = """\
#!/bin/sh
printf '%s\\n' "systemctl $*" >>"$RECORD"
case "$*" in *daemon-reload*|*enable*|*disable*) exit 0;; esac
cat <<'END'
Id=perdure-save.timer
LoadState=loaded
ActiveState=active
UnitFileState=enabled
Result=success
NextElapseUSecMonotonic=900y

Id=perdure-save.service
LoadState=loaded
ActiveState=inactive
UnitFileState=static
Result=success
ExecMainStartTimestampMonotonic=1000000

Id=perdure-restore.service
LoadState=loaded
ActiveState=inactive
UnitFileState=enabled
Result=success
ExecMainStartTimestampMonotonic=0
END
"""
NO_BUS = "#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n"
LOGINCTL = '#!/bin/sh\necho "Linger=${LINGER:-no}"\n'


class Machine(NamedTuple):
    """A home, a PATH and what was asked of the stand-ins on it."""

    env: dict[str, str]
    folder: str
    record: str
    bin: str

    def put(self, name: str, script: str) -> None:
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write(script)
        os.chmod(path, 0o755)

    def asked(self) -> list[str]:
        if not os.path.exists(self.record):
            return []
        with open(self.record) as file:
            return file.read().splitlines()

    def read(self, name: str) -> str:
        with open(os.path.join(self.folder, name)) as file:
            return file.read()

    def write(self, name: str, text: str) -> None:
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)


@pytest.fixture
def machine(private_home: PrivateHome) -> Machine:
    """A machine with systemd on which nobody lingers, and nothing else of the real one's but a shell and tmux."""
    folder = os.path.join(private_home.root, "bin")
    os.mkdir(folder)
    record = os.path.join(private_home.root, "asked")
    env = {"PATH": folder, "RECORD": record}
    for name in ("sh", "cat", "tmux"):
        if found := shutil.which(name):
            os.symlink(found, os.path.join(folder, name))
    made = Machine(env, os.path.join(private_home.home, ".config", "systemd", "user"), record, folder)
    made.put("systemctl", SYSTEMCTL)
    made.put("loginctl", LOGINCTL)
    return made


def states(ran: Ran) -> dict[str, str]:
    return {each["name"]: each["state"] for each in only_json(ran)["units"]}


@LINUX
def test_in_and_out(perdure: Perdure, machine: Machine) -> None:
    ran = perdure.ok("service", "install", "--json", env=machine.env)
    assert states(ran) == dict.fromkeys(UNITS, "written")
    answer = only_json(ran)
    assert (answer["platform"], answer["system"], answer["linger"]) == ("linux", False, False)
    assert machine.asked() == [
        "systemctl --user daemon-reload",
        "systemctl --user enable perdure-restore.service",
        "systemctl --user enable --now perdure-save.timer",
    ]
    for name in UNITS:
        assert stat.S_IMODE(os.stat(os.path.join(machine.folder, name)).st_mode) == 0o644
    before = {name: machine.read(name) for name in UNITS}
    assert states(perdure.ok("service", "install", "--json", env=machine.env)) == dict.fromkeys(UNITS, "unchanged")
    assert {name: machine.read(name) for name in UNITS} == before
    assert sorted(os.listdir(machine.folder)) == sorted(UNITS)

    os.unlink(machine.record)
    assert states(perdure.ok("service", "uninstall", "--json", env=machine.env)) == dict.fromkeys(UNITS, "removed")
    assert machine.asked() == [
        "systemctl --user disable --now perdure-save.timer",
        "systemctl --user disable perdure-restore.service",
        "systemctl --user daemon-reload",
    ]
    assert os.listdir(machine.folder) == []
    os.unlink(machine.record)
    ran = perdure.ok("service", "uninstall", env=machine.env)
    assert "nothing of perdure's" in ran.out
    assert machine.asked() == []


@LINUX
def test_what_the_unit_runs_runs(perdure: Perdure, machine: Machine, private_home: PrivateHome) -> None:
    perdure.ok("service", "install", env=machine.env)
    save = machine.read("perdure-save.service")
    assert f'Environment="PERDURE_STATE_DIR={private_home.state}"' in save
    assert f'Environment="TMUX_TMPDIR={private_home.sockets}"' in save
    line = next(line for line in save.splitlines() if line.startswith("ExecStart="))
    words = [word.strip('"') for word in line.removeprefix("ExecStart=").split('" "')]
    # As a service: from another directory, with next to nothing in the environment.
    env = {"HOME": private_home.home, "PERDURE_STATE_DIR": private_home.state, "TMUX_TMPDIR": private_home.sockets}
    path = {"PATH": f"{machine.bin}:/usr/bin:/bin"}
    ran = subprocess.run([*words, "--json"], env=env | path, cwd="/", capture_output=True, check=True)
    told = [each["socket"] for each in msgspec.json.decode(ran.stdout)["servers"]]
    assert told == [os.path.join(private_home.sockets, f"tmux-{os.geteuid()}", "default")]


@LINUX
def test_hints(perdure: Perdure, machine: Machine) -> None:
    ran = perdure.ok("service", "install", env=machine.env)
    assert "loginctl enable-linger" in ran.out
    assert "OOMPolicy=continue" in ran.out
    ran = perdure.ok("service", "install", env={**machine.env, "LINGER": "yes"})
    assert "enable-linger" not in ran.out


@LINUX
@pytest.mark.parametrize("there", [False, True])
def test_without_systemd_the_files_are_written_and_the_rest_is_said(
    perdure: Perdure, machine: Machine, there: bool
) -> None:
    if there:
        machine.put("systemctl", NO_BUS)
    else:
        os.unlink(os.path.join(machine.bin, "systemctl"))
    ran = perdure("service", "install", "--json", env=machine.env)
    assert ran.code == 4
    said = sentence(ran)
    assert ("No medium found" if there else "systemctl is not installed") in said
    assert "run later: systemctl --user daemon-reload && " in said
    assert states(ran) == dict.fromkeys(UNITS, "written")
    assert only_json(ran)["problem"] in said
    assert sorted(os.listdir(machine.folder)) == sorted(UNITS)

    ran = perdure("service", "status", "--json", env=machine.env)
    assert ran.code == 0
    assert {(each["state"], each["enabled"], each["active"]) for each in only_json(ran)["units"]} == {
        ("installed", None, None)
    }
    ran = perdure("service", "uninstall", env=machine.env)
    assert ran.code == 4
    assert "systemctl --user stop perdure-save.timer" in sentence(ran)
    assert os.listdir(machine.folder) == []


@LINUX
def test_status(perdure: Perdure, machine: Machine) -> None:
    ran = perdure("service", "status", "--json", env=machine.env)
    assert ran.code == 3
    assert "not installed" in sentence(ran)
    assert states(ran) == dict.fromkeys(UNITS, "missing")

    perdure.ok("service", "install", env=machine.env)
    units = {
        each["name"]: each for each in only_json(perdure.ok("service", "status", "--json", env=machine.env))["units"]
    }
    assert {each["state"] for each in units.values()} == {"installed"}
    timer, save = units["perdure-save.timer"], units["perdure-save.service"]
    assert (timer["enabled"], timer["active"]) == (True, True)
    assert timer["next_run"] > save["last_run"]
    assert save["result"] == "success"
    assert units["perdure-restore.service"]["last_run"] is None
    ran = perdure.ok("service", "status", env=machine.env)
    assert "linger: off" in ran.out

    # From another state directory other units would be written.
    elsewhere = {**machine.env, "PERDURE_STATE_DIR": "/elsewhere"}
    found = states(perdure.ok("service", "status", "--json", env=elsewhere))
    assert found["perdure-save.service"] == "outdated"
    assert found["perdure-save.timer"] == "installed"

    os.unlink(os.path.join(machine.folder, "perdure-restore.service"))
    ran = perdure("service", "status", env=machine.env)
    assert ran.code == 4
    assert "perdure-restore.service is not installed" in sentence(ran)


@LINUX
def test_files_of_others_are_left(perdure: Perdure, machine: Machine) -> None:
    mine = "[Unit]\nDescription=mine\n"
    machine.write("perdure-save.timer", mine)
    ran = perdure("service", "install", env=machine.env)
    assert ran.code == 6
    assert f"{machine.folder}/perdure-save.timer was not written by perdure" in sentence(ran)
    assert os.listdir(machine.folder) == ["perdure-save.timer"]
    ran = perdure("service", "uninstall", env=machine.env)
    assert ran.code == 6
    assert machine.read("perdure-save.timer") == mine
    assert machine.asked() == []

    os.unlink(os.path.join(machine.folder, "perdure-save.timer"))
    perdure.ok("service", "install", env=machine.env)
    edited = machine.read("perdure-save.timer").replace("1min", "5min")
    machine.write("perdure-save.timer", edited)
    ran = perdure("service", "install", env=machine.env)
    assert ran.code == 6
    assert "was edited" in sentence(ran)
    assert states(perdure.ok("service", "status", "--json", env=machine.env))["perdure-save.timer"] == "edited"
    ran = perdure("service", "uninstall", "--json", env=machine.env)
    assert ran.code == 4
    assert states(ran)["perdure-save.timer"] == "left"
    assert os.listdir(machine.folder) == ["perdure-save.timer"]
    assert machine.read("perdure-save.timer") == edited


@LINUX
def test_a_password_is_never_written(perdure: Perdure, machine: Machine) -> None:
    env = {**machine.env, "PERDURE_STORE": "postgresql://dev:hunter2@db/perdure"}
    for words in (("install",), ("install", "--print"), ("install", "--json")):
        ran = perdure("service", *words, env=env)
        assert ran.code == 6
        assert "pgpass" in sentence(ran)
        assert "hunter2" not in ran.out + ran.err
    assert not os.path.exists(machine.folder)
    # What is there can be looked at and removed all the same.
    perdure.ok("service", "install", env=machine.env)
    assert states(perdure.ok("service", "status", "--json", env=env))["perdure-save.service"] == "outdated"
    perdure.ok("service", "uninstall", env=env)
    assert os.listdir(machine.folder) == []


def test_printing_changes_nothing(perdure: Perdure, machine: Machine) -> None:
    for words in ([], ["--system"], ["--platform", "linux"], ["--platform", "macos"], ["--json", "--system"]):
        assert perdure.ok("service", "install", "--print", *words, env=machine.env).out
    assert not os.path.exists(machine.folder)
    assert machine.asked() == []
    printed = perdure.ok("service", "install", "--print", "--system", "--platform", "linux", env=machine.env).out
    assert '"restore" "--all-users"' in printed
    assert "# /etc/systemd/system/perdure-restore.service\n" in printed
    told = only_json(perdure.ok("service", "install", "--print", "--platform", "macos", "--json", env=machine.env))
    assert told["platform"] == "macos"
    assert [each["name"] for each in told["units"]] == ["perdure.save.plist", "perdure.restore.plist"]
    assert all(each["text"].startswith("<?xml") for each in told["units"])


@LINUX
def test_the_place_follows_xdg(perdure: Perdure, machine: Machine, private_home: PrivateHome) -> None:
    config = os.path.join(private_home.root, "my config")
    perdure.ok("service", "install", env={**machine.env, "XDG_CONFIG_HOME": config})
    assert sorted(os.listdir(os.path.join(config, "systemd", "user"))) == sorted(UNITS)
    assert not os.path.exists(machine.folder)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["bogus"],
        ["install", "extra"],
        ["status", "--print"],
        ["uninstall", "--print"],
        ["install", "--platform", "macos"],
        ["install", "--print", "--platform", "windows"],
    ],
)
def test_wrong_usage(perdure: Perdure, machine: Machine, words: list[str]) -> None:
    ran = perdure("service", *words, env=machine.env)
    assert ran.code == 2
    sentence(ran)
    assert machine.asked() == []


def test_the_system_is_for_root(machine: Machine, private_home: PrivateHome) -> None:
    hand_over(private_home)
    for action in ("install", "uninstall"):
        ran = run_unprivileged("service", action, "--system", env=machine.env)
        assert ran.code == 6
        assert "--system is for root" in sentence(ran)
    assert machine.asked() == []


def test_what_the_units_run_exists(perdure: Perdure) -> None:
    printed = perdure.ok("service", "install", "--print", "--system", "--platform", "linux").out
    for verb in ("save", "restore"):
        assert f'"{verb}" "--all-users"' in printed
        assert "--all-users" in perdure.ok(verb, "--help").out
