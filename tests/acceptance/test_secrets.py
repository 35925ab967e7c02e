"""What is kept is the owner's alone, and secrets are in nothing that leaves the store."""

from __future__ import annotations

import os
import stat
import sys

import pytest

from tests.acceptance.fake_agent import FakeAgent
from tests.acceptance.kit import configure, manifests, save, settle, topology, wait_for
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

IN_ARGV = "sk-ant-api03-" + "A1b2" * 8
BY_NAME = "plain-words-but-after-a-secret-name"
IN_SESSION = "ghp_" + "C3d4" * 9
IN_PROCESS = "sk-proj-" + "E5f6" * 10
IN_TITLE = "xoxb-" + "1234567890-G7h8"
IN_OPTION = "glpat-" + "J9k0" * 5
IN_URL = "hunter2hunter2"
SECRETS = (IN_ARGV, BY_NAME, IN_SESSION, IN_PROCESS, IN_TITLE, IN_OPTION, IN_URL)

WAITS = "import time; time.sleep(1000)"


@pytest.fixture
def careless(tmux: TmuxServer, private_home: PrivateHome) -> None:
    """A server on which secrets lie about in every place there is."""
    argv = [sys.executable, "-c", WAITS, "--api-key", IN_ARGV, f"--password={BY_NAME}", f"https://me:{IN_URL}@host/x"]
    tmux.run("new-session", "-d", "-s", "careless", "-e", f"OPENAI_API_KEY={IN_PROCESS}", *argv)
    tmux.run("set-environment", "-t", "careless", "GITHUB_TOKEN", IN_SESSION)
    tmux.run("set-environment", "-t", "careless", "HARMLESS", f"but {IN_SESSION}")
    tmux.run("set-option", "-t", "careless", "@gitlab_token", IN_OPTION)
    tmux.run("set-option", "-p", "-t", "careless", "@note", f"use {IN_OPTION}")
    tmux.run("select-pane", "-t", "careless", "-T", f"deploying with {IN_TITLE}")
    settle(tmux)


@pytest.mark.usefixtures("careless")
def test_no_secret_is_shown(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    first = str(save(perdure)["snapshot"])
    tmux.run("respawn-pane", "-k", "-t", "careless", sys.executable, "-c", WAITS, "--token", BY_NAME)
    tmux.run("set-option", "-p", "-t", "careless", "@note", f"now {IN_OPTION}")
    tmux.run("select-pane", "-t", "careless", "-T", f"done with {IN_TITLE}")
    settle(tmux)
    diffed = [["diff", first], ["diff", first, "--json"]]
    shown = [["show", first], ["show", first, "--json"], ["show", first, "careless", "--json"]]
    state = os.path.join(private_home.home, "state.json")
    exports = [["export", "tmux-state", "--to", state], ["export", "tmux-persist", "--dir", private_home.home]]
    looks = [["save"], ["save", "--json"], ["ls"], ["ls", "--json"], ["history"], ["history", "--json"]]
    bare: list[list[str]] = [[], ["--json"], ["check"], ["check", "--json"]]
    for args in (*diffed, *shown, *exports, *looks, *bare):
        ran = perdure(*args)
        found = [secret for secret in SECRETS if secret in ran.out + ran.err]
        assert not found, (args, found)
    for name in ("state.json", f"{_user(perdure)}.tsv"):
        with open(os.path.join(private_home.home, name)) as file:
            text = file.read()
        assert not [secret for secret in SECRETS if secret in text], name


def _user(perdure: Perdure) -> str:
    return str(save(perdure)["user"])


@pytest.mark.usefixtures("careless")
def test_the_store_keeps_what_a_program_is_started_again_with(perdure: Perdure, private_home: PrivateHome) -> None:
    save(perdure)
    (pane,) = topology(perdure)["panes"]
    assert pane["program"]["argv"][-3:] == ["***", "--password=***", "https://me:***@host/x"]
    (name,) = [name for name in os.listdir(os.path.join(private_home.state, "latest")) if name.endswith(".json")]
    with open(os.path.join(private_home.state, "latest", name)) as file:
        manifest = file.read()
    assert IN_ARGV in manifest
    # Nobody is started again with an environment we kept, so there is no reason to keep its secrets.
    assert not [secret for secret in (IN_SESSION, IN_PROCESS) if secret in manifest]
    session = topology(perdure)["sessions"][0]
    assert set(session["hidden"]) >= {"GITHUB_TOKEN", "HARMLESS"}


PLAIN_SECRET = "swordfish and nothing else"
NAMED = {"OPENAI_API_KEY": IN_PROCESS, "CORP_LOGIN": PLAIN_SECRET}
CONFIGURED = f"[restore]\nenvironment = {list(NAMED)}\n"


@pytest.fixture
def asked_for(tmux: TmuxServer, private_home: PrivateHome) -> None:
    """A program, a shell at its prompt and an agent, all of which have secrets that the configuration names."""
    configure(private_home, CONFIGURED)
    variables = [word for name, value in NAMED.items() for word in ("-e", f"{name}={value}")]
    FakeAgent(private_home, "agent")  # writes the script
    agent = os.path.join(private_home.root, "bin", "claude")
    tmux.run("new-session", "-d", "-s", "program", *variables, sys.executable, "-c", WAITS)
    tmux.run("new-session", "-d", "-s", "shell", *variables, "env", "PS1=$ ", "sh")
    tmux.run("new-session", "-d", "-s", "agent", *variables, agent, "--model", "opus")
    settle(tmux)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere others' environments cannot be read")
@pytest.mark.usefixtures("asked_for")
def test_a_variable_somebody_named_is_kept_of_agents_and_programs_alone(
    perdure: Perdure, private_home: PrivateHome
) -> None:
    save(perdure)
    manifest = manifests(private_home)[0]["snapshot"]
    topology = manifest["topology"]
    sessions = {session["id"]: session["name"] for session in topology["sessions"]}
    windows = {link["window"]: sessions[link["session"]] for link in topology["links"]}
    panes = {windows[pane["window"]]: pane for pane in topology["panes"]}
    for name in ("program", "agent"):
        environ = panes[name]["program"]["environ"]
        assert {variable: environ.get(variable) for variable in NAMED} == NAMED
    assert panes["shell"].get("program") is None
    shells = manifest["details"]["panes"][panes["shell"]["id"]]["processes"]
    assert not [process for process in shells if process.get("environ", {}).keys() & NAMED.keys()]


@pytest.mark.usefixtures("asked_for")
@pytest.mark.parametrize("still_named", [True, False])
def test_a_variable_somebody_named_is_never_shown(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, still_named: bool
) -> None:
    first = str(save(perdure)["snapshot"])
    tmux.run("set-environment", "-t", "program", "CORP_LOGIN", f"other {PLAIN_SECRET}")
    if not still_named:
        # What tmux keeps for a session is another thing: only of processes it is known who asked for what was kept.
        for name in ("program", "shell", "agent"):
            tmux.run("set-environment", "-t", name, "-u", "CORP_LOGIN")
        first = str(save(perdure)["snapshot"])
        configure(private_home, "")
    state = os.path.join(private_home.home, "state.json")
    shown = [["show", first, "--json"], ["show", first], ["diff", first], ["diff", first, "--json"], ["ls", "--json"]]
    shown += [["explain", "agent"], ["explain", "agent", "--json"], ["explain", "program", "--json"]]
    shown += [["export", "tmux-state", "--to", state], ["export", "tmux-persist", "--dir", private_home.home]]
    for args in (*shown, ["history", "--json"], ["check", "--json"]):
        ran = perdure(*args)
        assert not [secret for secret in NAMED.values() if secret in ran.out + ran.err], args
    for name in ("state.json", f"{_user(perdure)}.tsv"):
        with open(os.path.join(private_home.home, name)) as file:
            text = file.read()
        assert not [secret for secret in NAMED.values() if secret in text], name


def test_everything_kept_is_the_owners_alone(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    tmux.run("new-session", "-d", "-s", "one")
    previous = os.umask(0)
    try:
        save(perdure)
        tmux.run("new-session", "-d", "-s", "two")
        save(perdure)
    finally:
        os.umask(previous)
    places = [(directory, names) for directory, _, names in os.walk(private_home.state)]
    assert len(places) >= 2
    for directory, names in places:
        assert _mode(directory) == 0o700, directory
        for name in names:
            assert _mode(os.path.join(directory, name)) == 0o600, name


def test_an_open_store_is_said_and_closed(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    tmux.run("new-session", "-d")
    save(perdure)
    database = os.path.join(private_home.state, "perdure.db")
    os.chmod(database, 0o644)
    assert perdure("check").code == 4
    perdure.ok("check", "--repair")
    assert _mode(database) == 0o600


def test_scrollback_is_not_read_where_that_is_ruled_out(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    configure(private_home, "[scrollback]\nexclude_sessions = ['quiet']\nexclude_programs = ['tail']\n")
    for name in ("quiet", "loud"):
        tmux.run("new-session", "-d", "-s", name, "sh", "-c", "echo words of $0; exec sleep 1000", name)
    log = os.path.join(private_home.root, "log")
    with open(log, "w") as file:
        file.write("words of tail\n")
    tmux.run("new-session", "-d", "-s", "log", "tail", "-f", log)
    for name in ("quiet", "loud", "log"):
        _wait_for_words(tmux, name)
    save(perdure)
    assert "words of loud" in perdure.ok("show", "latest", "loud", "--scrollback").out
    assert perdure("show", "latest", "quiet", "--scrollback").code == 3
    assert perdure("show", "latest", "log", "--scrollback").code == 3
    configure(private_home, "[scrollback]\nenabled = false\n")
    tmux.run("new-session", "-d", "-s", "later", "sh", "-c", "echo words; exec sleep 1000")
    _wait_for_words(tmux, "later")
    save(perdure)
    assert perdure("show", "latest", "later", "--scrollback").code == 3


def _wait_for_words(tmux: TmuxServer, session: str) -> None:
    wait_for(lambda: b"words" in tmux.run("capture-pane", "-p", "-t", session), "words on the screen")


def _mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)
