"""A shared machine: root looks at everyone, each as that user, and nobody's trouble is anybody else's."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.fake_agent import CONVERSATION, FakeAgent
from tests.acceptance.kit import configure, history, only_json, wait_for
from tests.at_rest import words_of
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root looks at everyone")


def _account(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        pytest.skip(f"there is no account {name!r}")


class Guest:
    """A user of the machine, with a tmux server of their own where `tmux` would put it."""

    def __init__(self, name: str, home: PrivateHome) -> None:
        self.account = _account(name)
        self.home = os.path.join(home.root, f"home-{name}")
        os.mkdir(self.home, 0o700)
        os.chown(self.home, self.account.pw_uid, self.account.pw_gid)
        # As /tmp is.
        os.chmod(home.sockets, 0o1777)
        os.chmod(home.root, 0o711)
        self.socket = os.path.join(os.path.realpath(home.sockets), f"tmux-{self.account.pw_uid}", "default")
        self._environ = {**os.environ, "HOME": self.home}

    def tmux(self, *args: str) -> str:
        """Run tmux as this user."""
        done = subprocess.run(
            ["tmux", "-u", "-f", "/dev/null", *args],
            env=self._environ,
            user=self.account.pw_uid,
            group=self.account.pw_gid,
            extra_groups=[],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()


@pytest.fixture
def guest(private_home: PrivateHome) -> Guest:
    """Somebody without rights, with a running server."""
    guest = Guest("nobody", private_home)
    guest.tmux("new-session", "-d", "-s", "theirs", "-c", "/", "sleep", "1000")
    pid = int(guest.tmux("display-message", "-p", "#{pane_pid}"))
    wait_for(lambda: words_of(pid) == b"sleep\x001000\0", "sleep")
    return guest


@pytest.fixture(autouse=True)
def _no_roster(private_home: PrivateHome) -> None:
    """The machine's own roster is nobody's business here."""
    configure(private_home, f"roster = '{private_home.root}/no-roster'\n")


def _saved(perdure: Perdure, *args: str) -> dict[str, dict[str, Any]]:
    answer = only_json(perdure.ok("save", "--all-users", "--json", *args))
    return {each["socket"]: each for each in answer["servers"]}


def test_everyones_panes_are_captured_as_theirs(perdure: Perdure, tmux: TmuxServer, guest: Guest) -> None:
    tmux.run("new-session", "-d", "-s", "ours")
    lines = _saved(perdure)
    theirs = lines[guest.socket]
    assert (theirs["user"], theirs["uid"]) == (guest.account.pw_name, guest.account.pw_uid)
    assert (theirs["result"], theirs["sessions"], theirs["panes"]) == ("saved", 1, 1)
    assert (lines[tmux.socket]["result"], lines[tmux.socket]["uid"]) == ("saved", 0)
    panes = only_json(perdure.ok("ls", "--all-users", "--json"))["panes"]
    (pane,) = [each for each in panes if each["socket"] == guest.socket]
    assert pane["user"] == guest.account.pw_name
    assert (pane["session"], pane["command"], pane["cwd"]) == ("theirs", "sleep", "/")
    assert {row["user"] for row in history(perdure)} >= {guest.account.pw_name, lines[tmux.socket]["user"]}
    table = perdure.ok("ls", "--all-users").out
    assert "user" in table.splitlines()[0]
    assert guest.account.pw_name in table


def test_without_all_users_root_looks_at_its_own(perdure: Perdure, tmux: TmuxServer, guest: Guest) -> None:
    tmux.run("new-session", "-d", "-s", "ours")
    assert {each["uid"] for each in only_json(perdure.ok("save", "--json"))["servers"]} == {0}
    (line,) = only_json(perdure.ok("save", "--socket", guest.socket, "--json"))["servers"]
    assert (line["result"], line["user"]) == ("saved", guest.account.pw_name)


def test_a_roster_names_more_users(perdure: Perdure, private_home: PrivateHome) -> None:
    roster = os.path.join(private_home.root, "roster")
    account = _account("daemon")
    with open(roster, "w") as file:
        file.write(
            f"# who may log in\nalice={account.pw_name}  # twice\nbob = {account.pw_name}\nx=no-such-account\n\n"
        )
    configure(private_home, f"roster = '{roster}'\n")
    named = [each for each in _saved(perdure).values() if each["user"] == account.pw_name]
    assert [(each["uid"], each["result"], each["reason"]) for each in named] == [(account.pw_uid, "kept", "no-server")]


def test_a_home_nobody_can_read_costs_nothing(
    perdure: Perdure, tmux: TmuxServer, guest: Guest, fake_agent: Callable[..., FakeAgent]
) -> None:
    agent = fake_agent(tmux, "ours")
    agent.register()
    os.chmod(guest.home, 0)
    guest.tmux("new-window", "-d", "/bin/sh", agent.script)
    lines = _saved(perdure)
    assert (lines[guest.socket]["result"], lines[guest.socket]["panes"]) == ("saved", 2)
    panes = only_json(perdure.ok("ls", "--all-users", "--json"))["panes"]
    (ours,) = [pane for pane in panes if pane["pane_id"] == agent.pane and pane["socket"] == tmux.socket]
    assert (ours["conversation"], ours["certain"]) == (CONVERSATION, True)


def test_a_conversation_is_found_in_its_owners_home(
    perdure: Perdure, private_home: PrivateHome, guest: Guest, fake_agent: Callable[..., FakeAgent]
) -> None:
    agent = fake_agent(None, "theirs")
    pane = guest.tmux(
        "new-window", "-d", "-P", "-F", "#{pane_id} #{pane_pid}", "-c", guest.home, "/bin/sh", agent.script
    )
    agent.pane, pid = pane.split()
    agent.pid = int(pid)
    agent.home, agent.cwd = guest.home, guest.home
    wait_for(lambda: agent.script.encode() in words_of(agent.pid).split(b"\0"), "the agent")
    agent.register()
    agent.write_transcript("add a test")
    for directory, names, files in os.walk(guest.home):
        for name in (*names, *files):
            os.chown(os.path.join(directory, name), guest.account.pw_uid, guest.account.pw_gid)
    assert _saved(perdure)[guest.socket]["agents"] == 1
    panes = only_json(perdure.ok("ls", "--all-users", "--json"))["panes"]
    (theirs,) = [each for each in panes if each["pane_id"] == agent.pane and each["socket"] == guest.socket]
    assert (theirs["conversation"], theirs["evidence"], theirs["task"]) == (CONVERSATION, "registry", "add a test")


def test_exports_are_one_file_a_user(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, guest: Guest
) -> None:
    tmux.run("new-session", "-d", "-s", "ours", "-c", private_home.home)
    directory = os.path.join(private_home.root, "persist")
    perdure.ok("export", "tmux-persist", "--dir", directory, "--all-users")
    with open(os.path.join(directory, f"{guest.account.pw_name}.tsv")) as file:
        assert file.read() == "theirs\t/\t\n"
    assert len(os.listdir(directory)) == 2
