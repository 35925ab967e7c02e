"""Whatever is typed, the program answers with one sentence and an exit code, and never with a traceback."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Sequence

import pytest

from perdure import __version__
from perdure.cli.main import COMMANDS
from tests.acceptance.kit import only_json, sentence
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

#: Bytes that are no text, as the shell hands them over.
NO_TEXT = os.fsdecode(b"\xff\xfe")

#: Wrong usage: code 2.
WRONG = [
    ["bogus"],
    ["bogus", "save"],
    ["--bogus"],
    ["-x"],
    ["--"],
    ["--js"],
    ["sav"],
    [""],
    [NO_TEXT],
    ["save", "--bogus"],
    ["save", "extra"],
    ["save", "--socket"],
    ["save", "--socket", ""],
    ["save", "--all-users", "--socket", "/x"],
    ["save", "--scrollback"],
    ["ls", "extra"],
    ["ls", "--socket", ""],
    ["ls", "--all-users=yes"],
    ["history", "--limit"],
    ["history", "--limit", "0"],
    ["history", "--limit", "-1"],
    ["history", "--limit", "two"],
    ["history", "--limit", "²"],
    ["history", "--limit", "9" * 30],
    ["history", "--limit", "9" * 5000],
    ["history", "--limit=--"],
    ["history", "extra"],
    ["show"],
    ["show", "a", "b", "c"],
    ["show", "--bogus", "latest"],
    ["diff"],
    ["diff", "a", "b", "c"],
    ["check", "extra"],
    ["check", "--repair=yes"],
    ["export"],
    ["export", "bogus"],
    ["export", "tmux-state", "--to"],
    ["export", "tmux-state", "--to", ""],
    ["export", "tmux-state", "--dir", "d"],
    ["export", "tmux-state", "--all-users"],
    ["export", "tmux-state", "--socket", ""],
    ["export", "tmux-persist", "--to", "x"],
    ["export", "tmux-persist", "--dir", ""],
    ["export", "tmux-persist", "--dir", "d", "--all-users", "--socket", "/x"],
    ["chats", "ls", "--limit=--"],
    ["chats", "ls", "--platform=--"],
    ["chats", "search", "tea", "--since=--"],
    ["chats", "prune", "--older-than=--"],
    ["chats", "export", "latest", "--format=--"],
    ["import"],
    ["import", "tmux-state"],
    ["import", "bogus", "file"],
    ["import", "tmux-state", "a", "b"],
]

#: Right usage about something that is not there: code 3.
MISSING = [
    ["show", "latest"],
    ["show", "0123"],
    ["show", ""],
    ["show", "%"],
    ["show", "'; DROP TABLE snapshots; --"],
    ["show", "x" * 10000],
    ["show", NO_TEXT],
    ["show", "latest", NO_TEXT],
    ["show", "latest", "--scrollback"],
    ["diff", "latest"],
    ["diff", "0123", "4567"],
    ["diff", NO_TEXT],
    ["import", "tmux-state", "no-such-file"],
    ["import", "tmux-persist", ""],
    ["import", "resurrect", "a\nb"],
    ["import", "resurrect", NO_TEXT],
    ["export", "tmux-state", "--to", "state.json"],
]


def _words(args: Sequence[str]) -> str:
    return " ".join(args).encode(errors="backslashreplace").decode()[:60] or "(empty)"


@pytest.mark.parametrize("args", WRONG, ids=_words)
def test_wrong_usage_is_one_sentence_and_code_2(perdure: Perdure, args: list[str]) -> None:
    ran = perdure(*args, "--json")
    assert ran.code == 2
    said = sentence(ran)
    assert only_json(ran)["error"]["code"] == 2
    assert only_json(ran)["error"]["message"] in said


@pytest.mark.parametrize("args", MISSING, ids=_words)
def test_something_that_is_not_there_is_one_sentence_and_code_3(
    perdure: Perdure, private_home: PrivateHome, args: list[str]
) -> None:
    ran = perdure(*args, "--json", cwd=private_home.root)
    assert ran.code == 3, ran
    assert "Traceback" not in ran.err
    assert ran.err.startswith("perdure: ")
    assert only_json(ran)["error"]["code"] == 3


def test_wrong_usage_without_json_says_nothing_on_standard_output(perdure: Perdure) -> None:
    for args in (["bogus"], ["save", "--bogus"], ["show"], ["history", "--limit", "0"]):
        ran = perdure(*args)
        assert (ran.code, ran.out) == (2, "")
        assert "--help" in sentence(ran)


def test_json_may_stand_before_the_command(perdure: Perdure) -> None:
    assert only_json(perdure.ok("--json", "history")) == {"snapshots": []}
    assert only_json(perdure.ok("--json")).keys() >= {"live", "saved"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(perdure: Perdure, command: str) -> None:
    ran = perdure.ok(command, "--help")
    assert f"perdure {command}" in ran.out
    assert "--json" in ran.out
    assert COMMANDS[command][1] in ran.out
    assert not ran.err


def test_the_program_has_help_and_a_version(perdure: Perdure) -> None:
    ran = perdure.ok("--help")
    assert all(command in ran.out for command in COMMANDS)
    assert perdure.ok("-h").out == ran.out
    assert perdure.ok("--version").out.startswith("perdure ")
    for words in (("--version", "--json"), ("--json", "--version")):
        assert only_json(perdure.ok(*words)) == {"version": __version__}


def test_files_of_the_wrong_kind_are_named(perdure: Perdure, private_home: PrivateHome, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d")
    folder = os.path.join(private_home.root, "folder")
    os.mkdir(folder)
    plain = os.path.join(private_home.root, "plain")
    with open(plain, "w"):
        pass
    for args in (
        ["import", "tmux-state", folder],
        ["export", "tmux-state", "--to", folder],
        ["export", "tmux-state", "--to", os.path.join(plain, "x")],
        ["export", "tmux-persist", "--dir", plain],
    ):
        ran = perdure(*args, "--json")
        assert ran.code == 1, ran
        assert args[-1] in sentence(ran)
        assert only_json(ran)["error"]["code"] == 1


def test_what_is_no_regular_file_is_never_replaced(
    perdure: Perdure, private_home: PrivateHome, tmux: TmuxServer
) -> None:
    tmux.run("new-session", "-d")
    pipe = os.path.join(private_home.root, "pipe")
    os.mkfifo(pipe)
    link = os.path.join(private_home.root, "link")
    os.symlink(pipe, link)
    for path in (pipe, link):
        ran = perdure("export", "tmux-state", "--to", path, "--json")
        assert ran.code == 1
        assert "not a regular file" in sentence(ran)
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)
    assert os.path.islink(link)


def test_a_file_without_an_end_is_not_read_to_it(perdure: Perdure) -> None:
    ran = perdure("import", "tmux-state", "/dev/zero", "--json")
    assert ran.code == 1
    assert "/dev/zero" in sentence(ran)


def test_a_socket_that_is_something_else_is_no_server(perdure: Perdure, private_home: PrivateHome) -> None:
    plain = os.path.join(private_home.home, "plain")
    with open(plain, "wb"):
        pass
    for path in (plain, private_home.home, os.path.join(private_home.home, "none"), NO_TEXT, "a\nb"):
        (line,) = only_json(perdure.ok("save", "--socket", path, "--json"))["servers"]
        assert (line["result"], line["reason"]) == ("kept", "no-server")
        ran = perdure("ls", "--socket", path, "--json")
        assert ran.code == 3
        assert "No server" in sentence(ran)


def test_a_directory_that_is_gone_costs_only_what_depends_on_it(
    perdure: Perdure, private_home: PrivateHome, tmux: TmuxServer
) -> None:
    tmux.run("new-session", "-d", "-c", "/")
    gone = os.path.join(private_home.root, "gone")
    command = f"mkdir {gone}; cd {gone}; rmdir {gone}; "

    def run_there(*args: str) -> subprocess.CompletedProcess[str]:
        argv = ["sh", "-c", command + 'exec "$@"', "sh", *perdure.argv(*args)]
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    assert run_there("save").returncode == 0
    for args in (["save", "--socket", "relative"], ["export", "tmux-state", "--to", "relative"]):
        ran = run_there(*args)
        assert ran.returncode == 1
        assert "Traceback" not in ran.stderr
        assert ran.stderr.count("\n") == 1


def test_a_reader_that_goes_away_is_no_failure(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d")
    for args in (["ls"], ["ls", "--json"], ["history"], ["save"], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        ran = subprocess.run(perdure.argv(*args), stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
        os.close(writer)
        assert (ran.returncode, ran.stderr) == (0, ""), args


@pytest.mark.parametrize("args", [["ls"], ["ls", "--json"], ["save"], ["--help"], ["check"]], ids=_words)
def test_output_that_cannot_be_written_is_said(perdure: Perdure, tmux: TmuxServer, args: list[str]) -> None:
    tmux.run("new-session", "-d")
    with open("/dev/full", "w") as full:
        ran = subprocess.run(perdure.argv(*args), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == 1
    assert "No space left" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_closed_streams_do_no_harm(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d")
    for args, code in ((["save"], 0), (["ls", "--json"], 0), (["bogus"], 2)):
        for closed in (">&-", "2>&-", "<&-", "<&- >&- 2>&-"):
            argv = ["sh", "-c", f'exec "$@" {closed}', "sh", *perdure.argv(*args)]
            ran = subprocess.run(argv, capture_output=True, text=True, check=False)
            assert ran.returncode == code, (args, closed, ran)
            assert "Traceback" not in ran.stderr
    assert only_json(perdure.ok("check", "--json"))["ok"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_knows_few_characters_gets_escapes(perdure: Perdure, tmux: TmuxServer, encoding: str) -> None:
    tmux.run("new-session", "-d", "-s", "日本")
    env = {"PYTHONIOENCODING": encoding}
    for args in (["save"], ["ls"], ["show", "latest"], ["diff", "latest"], ["history"], []):
        ran = perdure(*args, env=env)
        assert ran.code == 0, ran
    assert "\\u65e5" in perdure.ok("ls", env=env).out
    assert "日本" in perdure.ok("ls", "--json", env=env).out


def test_without_tmux_the_program_says_so(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d")
    for args in (["save"], ["ls"], []):
        ran = perdure(*args, "--json", env={"PATH": "/nowhere"})
        assert ran.code == 1
        assert "tmux is not installed" in sentence(ran)
        assert only_json(ran)["error"]["code"] == 1


def test_paths_that_are_no_text_work(perdure: Perdure, private_home: PrivateHome, tmux: TmuxServer) -> None:
    odd = os.path.join(private_home.root, NO_TEXT)
    os.mkdir(odd)
    env = {"TMUX_TMPDIR": odd, "PERDURE_STATE_DIR": os.path.join(odd, "state")}
    (line,) = only_json(perdure.ok("save", "--json", env=env))["servers"]
    assert line["reason"] == "no-server"
    tmux.run("new-session", "-d")
    assert only_json(perdure.ok("export", "tmux-state", "--to", os.path.join(odd, "x"), "--json"))["written"]
    assert perdure.ok("export", "tmux-state", "--to", os.path.join(odd, "x")).out.startswith("wrote ")
    ran = perdure("save", "--json", env={"PERDURE_CONFIG": odd})
    assert ran.code == 2
    assert only_json(ran)["error"]["code"] == 2
