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

from perdure.model.digest import digest_of
from tests.acceptance.kit import hand_over, history, only_json, run_unprivileged, sentence
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure, Ran
from tests.tmux_server import TmuxServer

UNITS = ("perdure-up.service", "perdure-restore.service")
EARLIER = ("perdure-save.timer", "perdure-save.service")
LINUX = pytest.mark.skipif(sys.platform == "darwin", reason="systemd is not for macOS")

SYSTEMCTL = """\
#!/bin/sh
printf '%s\\n' "systemctl $*" >>"$RECORD"
case "$*" in *daemon-reload*|*enable*|*disable*|*restart*) exit 0;; esac
cat <<'END'
Id=perdure-up.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
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
        "systemctl --user enable perdure-restore.service perdure-up.service",
        "systemctl --user restart perdure-up.service",
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
        "systemctl --user disable --now perdure-up.service",
        "systemctl --user disable perdure-restore.service",
        "systemctl --user daemon-reload",
    ]
    assert os.listdir(machine.folder) == []
    os.unlink(machine.record)
    ran = perdure.ok("service", "uninstall", env=machine.env)
    assert "nothing of perdure's" in ran.out
    assert machine.asked() == []


@LINUX
def test_what_the_unit_runs_runs(
    perdure: Perdure, machine: Machine, private_home: PrivateHome, tmux: TmuxServer
) -> None:
    perdure.ok("service", "install", env=machine.env)
    unit = machine.read("perdure-up.service")
    assert f'Environment="PERDURE_STATE_DIR={private_home.state}"' in unit
    assert f'Environment="TMUX_TMPDIR={private_home.sockets}"' in unit
    line = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
    words = [word.strip('"') for word in line.removeprefix("ExecStart=").split('" "')]
    tmux.run("new-session", "-d", "-s", "one")
    # As a service: from another directory, with next to nothing in the environment.
    env = {"HOME": private_home.home, "PERDURE_STATE_DIR": private_home.state, "TMUX_TMPDIR": private_home.sockets}
    path = {"PATH": f"{machine.bin}:/usr/bin:/bin"}
    assert only_json(perdure.ok("service", "status", "--json", env=machine.env))["daemon"] is None
    with subprocess.Popen([*words, "--json"], env=env | path, cwd="/", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert msgspec.json.decode(process.stdout.readline())["watching"]["panes"] == 1
        daemon = only_json(perdure.ok("service", "status", "--json", env=machine.env))["daemon"]
        assert (daemon["servers"], daemon["panes"], daemon["problem"]) == (1, 1, None)
        assert "daemon: watching 1 pane of 1 server, started" in perdure.ok("service", "status", env=machine.env).out
        process.terminate()
        assert process.wait(60) == 0
    assert "daemon: nobody watches" in perdure.ok("service", "status", env=machine.env).out
    assert history(perdure)[0]["panes"] == 1


def of_an_earlier_version(name: str) -> str:
    """A unit as it was written then: known by its mark, whatever else it says."""
    text = f"# Written by perdure, sum=00000000. To change it: systemctl --user edit {name}\n[Unit]\nDescription=x\n"
    return text.replace("00000000", digest_of(text.encode(), 4))


@LINUX
def test_the_timer_of_earlier_versions_gives_way(perdure: Perdure, machine: Machine) -> None:
    for name in EARLIER:
        machine.write(name, of_an_earlier_version(name))
    wants = os.path.join(machine.folder, "timers.target.wants")
    os.mkdir(wants)
    os.symlink(os.path.join(machine.folder, EARLIER[0]), os.path.join(wants, EARLIER[0]))
    ran = perdure.ok("service", "install", "--json", env=machine.env)
    assert states(ran) == {**dict.fromkeys(UNITS, "written"), **dict.fromkeys(EARLIER, "removed")}
    assert sorted(os.listdir(machine.folder)) == sorted(UNITS)
    # The timer goes only when something else saves.
    assert machine.asked()[2:] == [
        "systemctl --user restart perdure-up.service",
        "systemctl --user disable --now perdure-save.timer",
        "systemctl --user daemon-reload",
    ]


@LINUX
def test_what_saves_is_not_taken_out_before_something_else_does(perdure: Perdure, machine: Machine) -> None:
    machine.put("systemctl", NO_BUS)
    for name in EARLIER:
        machine.write(name, of_an_earlier_version(name))
    ran = perdure("service", "install", "--json", env=machine.env)
    assert ran.code == 4
    assert "No medium found" in sentence(ran)
    assert sorted(os.listdir(machine.folder)) == sorted((*UNITS, *EARLIER))
    ran = perdure("service", "status", "--json", env=machine.env)
    assert ran.code == 4
    assert "perdure-save.timer, perdure-save.service is still there" in sentence(ran)
    # Removing everything is removing them too.
    perdure("service", "uninstall", env=machine.env)
    assert os.listdir(machine.folder) == []


@LINUX
def test_an_edited_timer_of_earlier_versions_is_left_and_named(perdure: Perdure, machine: Machine) -> None:
    machine.write(EARLIER[0], of_an_earlier_version(EARLIER[0]) + "# mine\n")
    machine.write(EARLIER[1], "[Unit]\nDescription=mine\n")
    ran = perdure("service", "install", "--json", env=machine.env)
    assert ran.code == 4
    assert f"{machine.folder}/perdure-save.timer; it saves beside the daemon" in sentence(ran)
    assert sorted(os.listdir(machine.folder)) == sorted((*UNITS, *EARLIER))
    assert perdure("service", "uninstall", env=machine.env).code == 4
    assert sorted(os.listdir(machine.folder)) == sorted(EARLIER)


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
    assert "systemctl --user stop perdure-up.service" in sentence(ran)
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
    up = units["perdure-up.service"]
    assert (up["enabled"], up["active"], up["result"]) == (True, True, "success")
    assert up["last_run"] is not None
    assert units["perdure-restore.service"]["last_run"] is None
    ran = perdure.ok("service", "status", env=machine.env)
    assert "linger: off" in ran.out

    # From another state directory other units would be written.
    elsewhere = {**machine.env, "PERDURE_STATE_DIR": "/elsewhere"}
    found = states(perdure.ok("service", "status", "--json", env=elsewhere))
    assert found == dict.fromkeys(UNITS, "outdated")

    os.unlink(os.path.join(machine.folder, "perdure-restore.service"))
    ran = perdure("service", "status", env=machine.env)
    assert ran.code == 4
    assert "perdure-restore.service is not installed" in sentence(ran)


@LINUX
def test_files_of_others_are_left(perdure: Perdure, machine: Machine) -> None:
    mine = "[Unit]\nDescription=mine\n"
    machine.write("perdure-up.service", mine)
    ran = perdure("service", "install", env=machine.env)
    assert ran.code == 6
    assert f"{machine.folder}/perdure-up.service was not written by perdure" in sentence(ran)
    assert os.listdir(machine.folder) == ["perdure-up.service"]
    ran = perdure("service", "uninstall", env=machine.env)
    assert ran.code == 6
    assert machine.read("perdure-up.service") == mine
    assert machine.asked() == []

    os.unlink(os.path.join(machine.folder, "perdure-up.service"))
    perdure.ok("service", "install", env=machine.env)
    edited = machine.read("perdure-up.service").replace("RestartSec=1", "RestartSec=5")
    machine.write("perdure-up.service", edited)
    ran = perdure("service", "install", env=machine.env)
    assert ran.code == 6
    assert "was edited" in sentence(ran)
    assert states(perdure.ok("service", "status", "--json", env=machine.env))["perdure-up.service"] == "edited"
    ran = perdure("service", "uninstall", "--json", env=machine.env)
    assert ran.code == 4
    assert states(ran)["perdure-up.service"] == "left"
    assert os.listdir(machine.folder) == ["perdure-up.service"]
    assert machine.read("perdure-up.service") == edited


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
    assert states(perdure.ok("service", "status", "--json", env=env))["perdure-up.service"] == "outdated"
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
    assert [each["name"] for each in told["units"]] == ["perdure.up.plist", "perdure.restore.plist"]
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
    for verb, said in (("up", '"up" "--api-optional" "--all-users"'), ("restore", '"restore" "--all-users"')):
        assert said in printed
        assert "--all-users" in perdure.ok(verb, "--help").out
