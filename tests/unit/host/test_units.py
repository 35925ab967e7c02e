"""The text of units: read back the way systemd and launchd read it, and by systemd itself where it is installed."""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import Refused
from perdure.host.unit_program import Program, program
from perdure.host.units import FileState, assignment, directory, earlier_units, exec_start, judge, units

PLAIN = Program(words=("/usr/bin/perdure",), environment={})
SHELL = ["/bin/sh", "-c", 'exec "$@"', "perdure"]

#: Everything that can be written, with what has a meaning of its own more often than chance would have it.
texts = st.text(
    st.one_of(
        st.sampled_from("%$\\\"' ;#{}@-+!:|&`~*=nxh"),
        st.characters(min_codepoint=0x20, exclude_categories=("Cs", "Cc", "Cn")),
    ),
    max_size=30,
)


def read_words(value: str) -> list[str]:
    """Split a value as systemd.syntax(7) says, as far as double quotes go, with its specifiers resolved."""
    words = []
    while value:
        found = re.match(r'"((?:[^"\\]|\\.)*)"(?: |$)', value)
        assert found, value
        assert not re.search(r'\\[^"\\]', found[1].replace("\\\\", "")), found[1]
        word = re.sub(r"\\(.)", r"\1", found[1])
        assert not re.search("%", word.replace("%%", "")), word
        words.append(word.replace("%%", "%"))
        value = value[found.end() :]
    return words


def as_run(value: str) -> list[str]:
    """Return what systemd would run: variables are looked for in arguments, not in the program."""
    first, *others = read_words(value)
    for word in others:
        assert "$" not in word.replace("$$", ""), word
    return [first, *(word.replace("$$", "$") for word in others)]


@given(st.tuples(texts, texts), st.lists(texts, max_size=3))
def test_systemd_runs_exactly_these_words(path: tuple[str, str], others: Sequence[str]) -> None:
    words = [f"/{path[0]}/{path[1].replace('/', '_')}p", *others]
    value = exec_start(words)
    assert "\n" not in value
    ran = as_run(value)
    assert ran in (words, [*SHELL, *words])
    # systemd takes none of these in a program's name.
    assert not set("'\"\\$") & set(ran[0])


@given(texts)
def test_a_variable_has_exactly_this_value(value: str) -> None:
    assert read_words(assignment("NAME", value)) == [f"NAME={value}"]


@pytest.mark.parametrize("where", ["plain", "two words", "o'brien", 'a"b', "back\\slash", "$HOME", "100%h", "a=b;c"])
def test_a_program_in_any_directory_is_run(tmp_path: Path, where: str) -> None:
    told = executable(tmp_path / where, 'for word in "$0" "$@"; do printf "%s\\n" "$word"; done')
    words = [told, "save", "$HOME", 'it\'s "so"']
    ran = subprocess.run(as_run(exec_start(words)), capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == words


def executable(folder: Path, script: str = "exit 0") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "perdure"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("system", [False, True])
@pytest.mark.parametrize("where", ["plain", "two words", 'o\'brien "x"', "a $HOME b", "100%h \\n"])
def test_systemd_reads_them_as_they_are_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, system: bool
) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = executable(tmp_path / where)
    value = f"{where} {{}} 'q' é 🦀"
    made = units("linux", Program(words=(path,), environment={"X": value}), system=system, home="/home/dev")
    for unit in made:
        (tmp_path / unit.name).write_text(unit.text)
    # As a user also those of the system: it leaves a file in the runtime directory, and this one is the test's.
    command = [analyze, "--user", "verify", "--man=no"]
    files = [str(tmp_path / unit.name) for unit in made]
    quiet = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    # Its complaints about other units of the machine are not ours.
    assert not [line for line in (quiet.stdout + quiet.stderr).splitlines() if "perdure" in line], quiet
    monkeypatch.setenv("SYSTEMD_LOG_LEVEL", "debug")
    told = subprocess.run([*command, *files], capture_output=True, text=True, check=False).stdout
    if "Command Line:" not in told:
        pytest.skip("this systemd-analyze does not tell what it has read")
    assert told.count(f"Environment: X={value}\n") >= 2, told
    ran = [unshown(line) for line in re.findall(r"Command Line: (.*)", told) if "perdure" in line]
    everybody = ["--all-users"] if system else []
    for verb in (("up", "--api-optional"), ("restore",)):
        words = [path, *verb, *everybody]
        escaped = [words[0], *words[1:]] if words in ran else [*SHELL, *words]
        assert [escaped[0], *(word.replace("$", "$$") for word in escaped[1:])] in ran, ran


def unshown(line: str) -> list[str]:
    """Read a command as systemd 252 writes it for people: in double quotes where that is needed, with backslashes."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', line)
    return [re.sub(r"\\(.)", r"\1", quoted) or plain for quoted, plain in found]


def text_of(name: str, *, system: bool = False, platform: str = "linux") -> str:
    made = units(platform, PLAIN, system=system, home="/home/dev")
    return next(unit.text for unit in made if unit.name == name)


def settings(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("system", [False, True])
def test_what_a_restore_starts_outlives_it(system: bool) -> None:
    restore = settings(text_of("perdure-restore.service", system=system))
    assert restore["KillMode"] == "process"
    assert restore["OOMPolicy"] == "continue"
    assert restore["Type"] == "oneshot"
    assert restore["RemainAfterExit"] == "yes"
    assert "Restart" not in restore
    assert restore["WantedBy"] == ("multi-user.target" if system else "default.target")
    before = ["getty-pre.target", "ssh.service", "sshd.service", "display-manager.service"] if system else []
    assert restore.get("Before", "").split() == before


@pytest.mark.parametrize("system", [False, True])
def test_the_daemon_comes_after_the_restore_and_always_comes_back(system: bool) -> None:
    up = settings(text_of("perdure-up.service", system=system))
    assert up["After"] == "perdure-restore.service"
    assert up["WantedBy"] == ("multi-user.target" if system else "default.target")
    assert up["ExecStart"].split() == [
        '"/usr/bin/perdure"',
        '"up"',
        '"--api-optional"',
        *(['"--all-users"'] if system else []),
    ]
    assert (up["Restart"], up["RestartSec"], up["StartLimitIntervalSec"]) == ("always", "1", "0")
    assert up["TimeoutStopSec"] == "15"
    # A server it brought back may be in its unit, with every agent in it.
    assert (up["KillMode"], up["OOMPolicy"], up["TasksMax"]) == ("process", "continue", "infinity")
    # What it starts would inherit that.
    assert "OOMScoreAdjust" not in up


def test_reloading_sends_a_hangup() -> None:
    words = shlex.split(settings(text_of("perdure-up.service"))["ExecReload"].replace("$$", "$"))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        subprocess.run(words, env={"MAINPID": str(process.pid)}, check=True)
        assert process.wait(60) == -signal.SIGHUP


@pytest.mark.parametrize(("status", "rests"), [(0, False), (1, False), (2, True), (5, True), (6, True), (143, False)])
def test_what_is_wrong_for_longer_is_not_tried_every_second(tmp_path: Path, status: int, rests: bool) -> None:
    (tmp_path / "sleep").write_text('#!/bin/sh\necho "rests $1"\n')
    (tmp_path / "sleep").chmod(0o755)
    words = shlex.split(settings(text_of("perdure-up.service"))["ExecStopPost"].replace("$$", "$"))
    env = {"EXIT_STATUS": str(status), "PATH": str(tmp_path)}
    ran = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    # Less than it may take to end.
    assert ran.stdout == ("rests 10\n" if rests else "")


@given(st.lists(texts.filter(bool), min_size=1, max_size=3), st.dictionaries(st.sampled_from("ABC"), texts))
def test_launchd_reads_exactly_these_words(words: list[str], environment: dict[str, str]) -> None:
    what = Program(words=tuple(words), environment=environment)
    for system in (False, True):
        up, restore = units("macos", what, system=system, home="/Users/dev")
        told = {unit.name: plistlib.loads(unit.text.encode()) for unit in (up, restore)}
        for name, content in told.items():
            assert name == f"{content['Label']}.plist"
            assert content["AbandonProcessGroup"] is True
            assert content.get("EnvironmentVariables", {}) == environment
        everybody = ["--all-users"] if system else []
        assert told["perdure.up.plist"]["ProgramArguments"] == [*words, "up", "--api-optional", *everybody]
        assert told["perdure.up.plist"]["KeepAlive"] is True
        assert told["perdure.up.plist"]["ExitTimeOut"] == 15
        assert told["perdure.restore.plist"]["ProgramArguments"] == [*words, "restore", *everybody]
        assert told["perdure.restore.plist"]["RunAtLoad"] is True
        assert "KeepAlive" not in told["perdure.restore.plist"]
        assert judge(up.text.replace("<true/>", "<false/>"), up.text) is FileState.EDITED


@pytest.mark.parametrize("platform", ["linux", "macos"])
def test_our_own_is_known_again(platform: str) -> None:
    other = Program(words=("/opt/perdure",), environment={"PERDURE_STATE_DIR": "/x"})
    now, before = (units(platform, what, system=False, home="/home/dev")[0].text for what in (PLAIN, other))
    assert judge(None, now) is FileState.MISSING
    assert judge(now, now) is FileState.INSTALLED
    assert judge(before, now) is FileState.OUTDATED
    assert judge(before + "\n", now) is FileState.EDITED
    assert judge("", now) is FileState.FOREIGN
    assert judge("[Unit]\nDescription=Written by perdure, sum=00000000\n", now) is FileState.FOREIGN


@pytest.mark.parametrize("platform", ["linux", "macos"])
def test_what_earlier_versions_wrote_is_never_up_to_date(platform: str) -> None:
    names = {unit.name for unit in units(platform, PLAIN, system=False, home="/home/dev")}
    ours = units(platform, PLAIN, system=False, home="/home/dev")[0].text
    for unit in earlier_units(platform):
        assert unit.name not in names
        assert judge(ours, unit.text) is FileState.OUTDATED
        assert judge(ours + "\n", unit.text) is FileState.EDITED
        # An empty file is how somebody says that there shall be no such unit.
        assert judge("", unit.text) is FileState.FOREIGN


@pytest.mark.parametrize(
    ("platform", "system", "config_home", "expected"),
    [
        ("linux", False, "", "/home/dev/.config/systemd/user"),
        ("linux", False, "relative", "/home/dev/.config/systemd/user"),
        ("linux", False, "/cfg", "/cfg/systemd/user"),
        ("linux", True, "/cfg", "/etc/systemd/system"),
        ("macos", False, "/cfg", "/home/dev/Library/LaunchAgents"),
        ("macos", True, "/cfg", "/Library/LaunchDaemons"),
    ],
)
def test_where_they_go(platform: str, system: bool, config_home: str, expected: str) -> None:
    assert directory(platform, system=system, home="/home/dev", config_home=config_home) == expected


def made(environ: dict[str, str], *, platform: str = "linux", tmux: str | None = "/usr/bin/tmux") -> Program:
    return program("/nowhere/__main__.py", "/usr/bin/python3", environ, platform=platform, tmux=tmux)


def test_the_program_is_the_one_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = executable(tmp_path / "my venv")
    os.symlink(path, tmp_path / "perdure")
    monkeypatch.chdir(tmp_path)

    def words(argv0: str) -> tuple[str, ...]:
        return program(argv0, "/usr/bin/python3", {}, platform="linux", tmux=None).words

    assert words(path) == (path,)
    assert words("./perdure") == (str(tmp_path / "perdure"),)
    os.chmod(path, stat.S_IRUSR)
    for no_program in (str(tmp_path / "__main__.py"), "-m"):
        assert words(no_program) == ("/usr/bin/python3", "-P", "-m", "perdure")


def test_what_is_handed_on() -> None:
    environ = {
        "PERDURE_STATE_DIR": "/s",
        "XDG_STATE_HOME": "/unused",
        "XDG_CONFIG_HOME": "/c",
        "TMUX_TMPDIR": "/t",
        "PERDURE_STORE": "postgresql://dev@db/perdure",
        "PGPASSFILE": "/home/dev/.pgpass",
        "OPENAI_API_KEY": "sk-not-ours-1234567890abcdef",
        "LANG": "C",
    }
    kept = ("PERDURE_STATE_DIR", "XDG_CONFIG_HOME", "TMUX_TMPDIR", "PERDURE_STORE", "PGPASSFILE")
    assert made(environ).environment == {name: environ[name] for name in kept}
    assert "XDG_CONFIG_HOME" not in made(environ, platform="macos").environment
    assert made({"XDG_STATE_HOME": "relative", "PERDURE_CONFIG": ""}).environment == {}


def test_tmux_is_found_where_it_is() -> None:
    assert "PATH" not in made({}, tmux="/usr/bin/tmux").environment
    assert "PATH" not in made({}, tmux=None).environment
    homebrew = made({}, platform="macos", tmux="/opt/homebrew/bin/tmux").environment["PATH"]
    assert homebrew.split(":")[0] == "/opt/homebrew/bin"
    assert "/usr/bin" in homebrew.split(":")


@pytest.mark.parametrize(
    "store",
    [
        "postgresql://dev:hunter2@db/perdure",
        "postgresql://dev:p%40ss@db/perdure",
        "postgresql://db/perdure?user=dev&password=hunter2",
        "postgresql://db/perdure?sslpassword=hunter2",
    ],
)
def test_a_password_is_written_nowhere(store: str) -> None:
    with pytest.raises(Refused, match="pgpass") as refused:
        made({"PERDURE_STORE": store})
    assert "hunter2" not in refused.value.message
    assert "p%40ss" not in refused.value.message


def test_a_password_in_the_environment_is_not_left_behind_in_silence() -> None:
    with pytest.raises(Refused, match="PGPASSWORD"):
        made({"PERDURE_STORE": "postgresql://dev@db/perdure", "PGPASSWORD": "hunter2"})
    assert made({"PERDURE_STORE": "sqlite:///x.db", "PGPASSWORD": "hunter2"}).environment


@pytest.mark.parametrize("text", ["/a\nb", "/a\x1b[1m", os.fsdecode(b"/\xff"), "/\ufffe", "/\U0001ffff", "/\x7f"])
def test_what_no_unit_can_hold_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="written into a unit"):
        made({"TMUX_TMPDIR": text})
