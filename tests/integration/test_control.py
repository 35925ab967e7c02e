"""One client, many commands: every reply is its own command's, and nothing of the client stays behind."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import PerdureError, Refused, TmuxMissing, Unanswered
from perdure.host.users import current_user
from perdure.model.user import User
from perdure.tmux.control import Blocks, Control, Reply
from perdure.tmux.quote import LONGEST_WORD
from tests.conftest import PrivateHome
from tests.integration.looking import is_running, wait_until
from tests.tmux_server import PATIENCE, TmuxServer

NAME = "perdure-test"


def connect(tmux: TmuxServer, name: str = NAME, timeout: float = PATIENCE) -> Control:
    return Control(tmux.socket, current_user(), name, environ=os.environ, timeout=timeout)


def sessions(tmux: TmuxServer) -> list[str]:
    return tmux.run("list-sessions", "-F", "#{session_name}").decode().split()


def said(*lines: str) -> Reply:
    return Reply(lines, None)


def test_every_command_has_its_reply_in_order(tmux: TmuxServer) -> None:
    with connect(tmux) as control:
        replies = control.ask(
            [
                ["set-option", "-g", "@silent", "x"],
                ["no-such-command"],
                ["display-message", "-p", "two\nlines"],
                ["kill-session", "-t", "=nobody"],
                ["list-panes", "-t", f"={NAME}:", "-F", "%end 1 1 1"],
                ["display-message", "-p", ""],
                ["show-options", "-gv", "@silent"],
            ]
        )
        assert replies == [
            said(),
            Reply((), "parse error: unknown command: no-such-command"),
            said("two", "lines"),
            Reply((), "can't find session: nobody"),
            said("%end 1 1 1"),
            said(""),
            said("x"),
        ]
        assert control.ask([["display-message", "-p", "again"]]) == [said("again")]
        assert control.ask([]) == []


def test_a_screen_that_imitates_tmux_is_only_a_screen(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "printf '%%end 1 1 1\\n%%begin 1 2 1\\n%%exit\\n'; exec sleep 1000")
    wait_until(lambda: b"exit" in tmux.run("capture-pane", "-p", "-t", "a"), "the text is on the screen")
    with connect(tmux) as control:
        screen, after = control.ask([["capture-pane", "-p", "-t", "=a:"], ["display-message", "-p", "after"]])
    assert screen.lines[:3] == ("%end 1 1 1", "%begin 1 2 1", "%exit")
    assert after == said("after")


STREAM = (
    b"%begin 1 1 0\nconfiguration\n%error 1 1 0\n%session-changed $0 x\n%begin 5 7 1\n%end 5 8 1\n%error 5 7 0\n"
    b"caf\xe9\n%end 5 7 1\n%begin 5 9 0\nhook\n%end 5 9 0\n%begin 6 10 1\nno\nway\n%error 6 10 1\n%exit\n"
)


@given(st.lists(st.integers(0, len(STREAM)), max_size=10).map(sorted))
def test_a_stream_is_the_same_however_it_is_cut(cuts: list[int]) -> None:
    blocks = Blocks()
    for begin, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
        blocks.feed(STREAM[begin:end])
    assert blocks.replies == [said("%end 5 8 1", "%error 5 7 0", "caf\uefe9"), Reply((), "no\nway")]
    assert blocks.aside == "configuration"
    assert not blocks.is_confused


def test_a_text_that_guessed_the_end_of_its_own_reply_is_noticed() -> None:
    blocks = Blocks()
    blocks.feed(b"%begin 5 7 1\n%end 5 7 1\nrest of the screen\n%end 5 7 1\n")
    assert blocks.is_confused


def test_hooks_of_the_user_answer_nobody(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    tmux.run("set-hook", "-g", "after-new-window", "display-message -p hooked ; kill-session -t =nobody")
    with connect(tmux) as control:
        made = ["new-window", "-d", "-t", "=a:", "-P", "-F", "#{window_index}", "sleep", "1000"]
        assert control.ask([made, made, made]) == [said("1"), said("2"), said("3")]


def test_an_alias_that_answers_twice_is_noticed(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    tmux.run("set-option", "-s", "command-alias[9]", "show-messages=display-message -p 1 ; display-message -p 2")
    with connect(tmux) as control, pytest.raises(Unanswered, match="do not fit"):
        control.ask([["show-messages"], ["display-message", "-p", "x"]])


def test_both_pipes_may_be_full(tmux: TmuxServer) -> None:
    with connect(tmux) as control:
        words = [str(n) + "é" * 5_000 for n in range(200)]
        asked = [command for word in words for command in (["set", "-s", "@x", word], ["show", "-sv", "@x"])]
        assert [reply.lines for reply in control.ask(asked)[1::2]] == [(word,) for word in words]


def test_many_panes_with_long_words(tmux: TmuxServer) -> None:
    with connect(tmux) as control:
        made = ["new-window", "-d", "-t", f"={NAME}:", "-P", "-F", "#{window_index}"]
        program = ["/bin/sh", "-c", "read _", "x" * LONGEST_WORD]
        replies = control.ask([[*made, *program]] * 40)
        assert [reply.lines for reply in replies] == [(str(n),) for n in range(1, 41)]
        with pytest.raises(PerdureError, match="too long"):
            control.ask([["set-option", "-g", "@sent", "1"], [*made, *program, "x" * (LONGEST_WORD + 1)]])
        assert control.ask([["show-options", "-gqv", "@sent"]]) == [said()], "nothing of it was sent"


def test_a_server_is_started_as_its_user_would(tmux: TmuxServer, private_home: PrivateHome) -> None:
    with open(f"{private_home.home}/.tmux.conf", "w", encoding="utf-8") as file:
        file.write("set -g @mine yes\nnew-session -d -s theirs 'sleep 1000'\n")
    # As after a boot: not even the directory of the sockets is there.
    assert not os.path.exists(os.path.dirname(tmux.socket))
    environ = {"HOME": private_home.home, "PATH": os.environ["PATH"], "VALUE": "caf\uefe9 $x\n", "SHELL": "/bin/sh"}
    environ |= {"TMUX": "/tmp/other,1,0", "TMUX_PANE": "%7"}
    with Control(tmux.socket, current_user(), NAME, environ=environ, timeout=PATIENCE) as control:
        assert control.ask([["show-options", "-gv", "@mine"]]) == [said("yes")]
        given = control.ask([["show-environment", "-g"]])[0].lines
        assert "VALUE=caf\uefe9 $x" in given
        assert not [line for line in given if line.startswith(("TMUX=", "TMUX_PANE=", "PERDURE"))]
        server = int(control.ask([["display-message", "-p", "#{pid}"]])[0].lines[0])
    assert os.readlink(f"/proc/{server}/cwd") == "/"
    assert sessions(tmux) == ["theirs"]
    assert os.stat(os.path.dirname(tmux.socket)).st_mode & 0o777 == 0o700


def test_nothing_stays_when_nothing_was_made(tmux: TmuxServer) -> None:
    with connect(tmux) as control:
        (pid,) = control.ask([["display-message", "-p", "#{pid}"]])[0].lines
        assert sessions(tmux) == [NAME]
    wait_until(lambda: not is_running(int(pid)), "the server has ended by itself")


def test_a_client_that_leaves_while_others_come_and_go(tmux: TmuxServer) -> None:
    """With `destroy-unattached` tmux 3.3a crashes here, every other time."""
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    tmux.run("set-option", "-g", "detach-on-destroy", "off", ";", "set-option", "-g", "remain-on-exit", "on")
    for _ in range(15):
        with connect(tmux):
            assert sessions(tmux) == ["a", NAME]
        assert sessions(tmux) == ["a"]
    assert tmux.run("list-clients") == b""


def test_a_configuration_that_lets_no_session_be_alone(tmux: TmuxServer, private_home: PrivateHome) -> None:
    with open(f"{private_home.home}/.tmux.conf", "w", encoding="utf-8") as file:
        file.write("set -g destroy-unattached on\nset -g exit-empty off\n")
    with connect(tmux) as control:
        assert control.ask([["show-options", "-v", "-t", f"={NAME}:", "destroy-unattached"]]) == [said("off")]
    assert sessions(tmux) == []


def test_a_session_ends_in_the_breath_in_which_its_window_changed(tmux: TmuxServer) -> None:
    """tmux 3.3a crashes, were both sent at once."""
    tmux.run("new-session", "-d", "-s", "bystander", "sleep 1000")
    with connect(tmux) as control:
        replies = control.ask(
            [
                ["new-session", "-d", "-s", "a", "sleep", "1000"],
                ["new-window", "-t", "=a:", "sleep", "1000"],
                ["kill-session", "-t", "=a"],
                ["new-session", "-d", "-s", "b", "sleep", "1000"],
                ["new-window", "-t", "=b:", "sleep", "1000"],
                ["kill-window", "-t", "=b:0"],
                ["kill-window", "-t", "=b:1"],
            ]
        )
        assert [reply.error for reply in replies] == [None] * 7
    assert sessions(tmux) == ["bystander"]


def test_nobodys_size_changes(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "-x", "133", "-y", "44", "sleep 1000")
    size = ["-F", "#{window_width}x#{window_height}"]
    with connect(tmux) as control:
        replies = control.ask(
            [
                ["new-session", "-d", "-s", "b", "-x", "211", "-y", "55", "sleep", "1000"],
                ["new-window", "-t", "=b:", "sleep", "1000"],
                ["list-windows", "-t", "=a", *size],
                ["list-windows", "-t", "=b", *size],
                ["list-clients", "-F", "#{client_flags}"],
            ]
        )
    assert replies[2:4] == [said("133x44"), said("211x55", "211x55")]
    assert {"no-output", "ignore-size"} <= set(replies[4].lines[0].split(","))


PARENT = """
import os, sys, time
from perdure.host.users import current_user
from perdure.tmux.control import Control
print("ready", flush=True)
with Control(sys.argv[1], current_user(), sys.argv[2], environ=os.environ) as control:
    print(control.ask([["list-clients", "-F", "#{client_pid}"]])[0].lines[0], flush=True)
    # then
    while True:
        control.ask([])
        time.sleep(0.1)
"""


@pytest.fixture
def parent(tmux: TmuxServer) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a program that is about to connect, in a process group with its client; the server has a session `a`."""
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    started: list[subprocess.Popen[str]] = []

    def start(then: str = "") -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", PARENT.replace("    # then", then), tmux.socket, NAME]
        started.append(
            subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        )
        assert next_line(started[-1]) == "ready"
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.communicate()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("who", ["client", "parent", "both"])
def test_kill_9_leaves_nothing(tmux: TmuxServer, parent: Callable[..., subprocess.Popen[str]], who: str) -> None:
    process = parent()
    client = int(next_line(process))
    assert sessions(tmux) == ["a", NAME]
    if who == "both":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        os.kill(client if who == "client" else process.pid, signal.SIGKILL)
    wait_until(lambda: sessions(tmux) == ["a"], "the session went with its client")
    wait_until(lambda: not is_running(client), "the client has ended")


def test_kill_9_while_replies_are_waiting_to_be_read(
    tmux: TmuxServer, parent: Callable[..., subprocess.Popen[str]]
) -> None:
    """tmux would keep such a client forever: it waits until everything it has to say is said."""
    process = parent("    control.ask([['display-message', '-p', 'x' * 9000]] * 2000)")
    client = int(next_line(process))
    process.kill()
    wait_until(lambda: sessions(tmux) == ["a"], "the session went with its client")
    wait_until(lambda: not is_running(client), "the client has ended")


def test_kill_9_at_any_moment_of_the_start(tmux: TmuxServer, parent: Callable[..., subprocess.Popen[str]]) -> None:
    for n in range(8):
        process = parent()
        time.sleep(n * 0.002)
        process.kill()
        process.wait()
        wait_until(lambda: sessions(tmux) == ["a"], "no session stays behind")


def test_a_server_that_hangs(tmux: TmuxServer) -> None:
    with connect(tmux) as control:
        (pid,) = control.ask([["display-message", "-p", "#{pid}"]])[0].lines
        os.kill(int(pid), signal.SIGSTOP)
        # Only now: on a busy machine a server that is well takes its time, too.
        control._timeout = 0.5
        try:
            with pytest.raises(Unanswered, match=r"nothing for 0\.5 s") as raised:
                control.ask([["list-sessions"]])
            assert raised.value.data == {"replies": 0}
            with pytest.raises(Unanswered, match="nothing"):
                connect(tmux, "another", timeout=0.3).__enter__()
        finally:
            os.kill(int(pid), signal.SIGCONT)


def test_a_command_that_never_comes_back(tmux: TmuxServer) -> None:
    with connect(tmux) as control:
        control._timeout = 2.0
        lists = ["list-sessions", "-F", "x"]
        with pytest.raises(Unanswered) as raised:
            # tmux ends the reply of a command that waits, and then waits.
            control.ask([lists, ["wait-for", "nobody"], lists])
        assert raised.value.data["replies"] == 2
    wait_until(lambda: not tmux.alive, "the session went with its client")


def test_a_server_that_ends(tmux: TmuxServer) -> None:
    with connect(tmux) as control:
        tmux.kill9()
        for _ in range(2):
            with pytest.raises(Unanswered, match="ended after 0 replies"):
                control.ask([["list-sessions"]])


def test_a_name_that_is_taken(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", NAME, "sleep 1000")
    with pytest.raises(Unanswered, match=f"duplicate session: {NAME}"):
        connect(tmux).__enter__()
    assert sessions(tmux) == [NAME]


@pytest.mark.parametrize("name", ["", "two words", "#(id)", "a:b", "=x"])
def test_a_name_that_means_something_to_tmux_is_refused(tmux: TmuxServer, name: str) -> None:
    with pytest.raises(ValueError, match="plain"):
        connect(tmux, name)


def test_no_tmux(tmux: TmuxServer) -> None:
    with pytest.raises(TmuxMissing, match="PATH"):
        Control(tmux.socket, current_user(), NAME, environ={"PATH": "/nowhere"})


def test_a_server_that_cannot_listen() -> None:
    with pytest.raises(Unanswered, match="ended"):
        Control("/nowhere/at/all", current_user(), NAME, environ=os.environ).__enter__()


def another() -> User:
    if os.geteuid() != 0:
        pytest.skip("only root becomes somebody else")
    account = pwd.getpwnam("nobody")
    return User(name="nobody", uid=account.pw_uid, gid=account.pw_gid, home="/nonexistent")


def test_a_socket_of_somebody_else_is_not_touched(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    with pytest.raises(Refused, match="belongs to uid 0, not to nobody"):
        Control(tmux.socket, another(), NAME, environ=os.environ)


#: What systemd-run does with --scope, without systemd: it becomes the user, but leaves the supplementary groups.
SYSTEMD_RUN = """#!/usr/bin/python3 -I
import os, sys
options = dict(word.lstrip("-").partition("=")[::2] for word in sys.argv[1:sys.argv.index("--")])
with open(sys.argv[0] + ".environ", "w") as file:
    file.write("\\n".join([*os.environ, "uid %d" % os.getuid()]))
os.setresgid(*[int(options["gid"])] * 3)
os.setresuid(*[int(options["uid"])] * 3)
os.execvp(sys.argv[sys.argv.index("--") + 1], sys.argv[sys.argv.index("--") + 1:])
"""


@pytest.mark.parametrize("is_in_service", [False, True])
def test_another_users_server_is_wholly_theirs(private_home: PrivateHome, is_in_service: bool) -> None:
    user = another()
    os.chmod(private_home.sockets, 0o1777)
    os.chmod(private_home.root, 0o711)
    stand_in = f"{private_home.root}/systemd-run"
    with open(stand_in, "w", encoding="utf-8") as file:
        file.write(SYSTEMD_RUN)
    os.chmod(stand_in, 0o755)
    prefix = (stand_in, "--scope", f"--uid={user.uid}", f"--gid={user.gid}", "--") if is_in_service else ()
    socket = os.path.join(os.path.realpath(private_home.sockets), f"tmux-{user.uid}", "default")
    environ = {"PATH": os.environ["PATH"], "HOME": "/", "SHELL": "/bin/sh", "LD_PRELOAD": "", "VALUE": "x"}
    with Control(socket, user, NAME, environ=environ, timeout=PATIENCE, prefix=prefix) as control:
        (pid,) = control.ask([["display-message", "-p", "#{pid}"]])[0].lines
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        assert status["Uid"].split() == [str(user.uid)] * 4
        assert status["Gid"].split() == [str(user.gid)] * 4
        assert status["Groups"].split() == [str(gid) for gid in os.getgrouplist(user.name, user.gid)]
    if is_in_service:
        with open(f"{stand_in}.environ", encoding="utf-8") as file:
            seen = file.read().splitlines()
        assert "uid 0" in seen
        assert not {"LD_PRELOAD", "VALUE"} & set(seen), "a program of root's saw what the user chose"
