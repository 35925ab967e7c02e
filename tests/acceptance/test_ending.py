"""Agents on their way out: whatever a save sees of them in that moment, none is brought back without its conversation."""

from __future__ import annotations

import os
import platform
import signal
import sys

import pytest

from perdure.model.event import EventKind
from tests.acceptance.fake_agent import CONVERSATION, FakeAgent
from tests.acceptance.kit import topology, wait_for
from tests.acceptance.watching import watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the start time is read from /proc")

#: The number of the system call that ends one thread.
EXIT = {"x86_64": 60, "aarch64": 93}.get(platform.machine())
#: An agent that gives its memory back when it is told to, as one that ends does, and then stays: its first thread has
#: ended, and another has not.
WORDLESS = """\
#!{python}
import ctypes, signal, threading
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
threading.Thread(target=threading.Event().wait, args=(600,)).start()
signal.sigwait([signal.SIGUSR1])
ctypes.CDLL(None).syscall({number}, 0)
"""


@pytest.fixture
def agent(private_home: PrivateHome, tmux: TmuxServer) -> FakeAgent:
    """An agent in a conversation, which lets go of its words at SIGUSR1."""
    if EXIT is None:
        pytest.skip("how a thread ends here is not known")
    script = os.path.join(private_home.root, "bin", "claude")
    os.mkdir(os.path.dirname(script))
    with open(script, "w") as file:
        file.write(WORDLESS.format(python=sys.executable, number=EXIT))
    os.chmod(script, 0o755)
    made = FakeAgent(private_home, "work").start(tmux, "--permission-mode", "plan")
    wait_for(lambda: is_ready(made.pid), "the agent")
    made.register()
    made.write_transcript("work")
    return made


def is_ready(pid: int) -> bool:
    """Whether its other thread is there: before, the signal would end it."""
    return len(os.listdir(f"/proc/{pid}/task")) == 2


def words(pid: int) -> bytes:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


def let_go(agent: FakeAgent) -> None:
    """Have it on its way out: no registry, no words."""
    os.unlink(os.path.join(agent.home, ".claude", "sessions", f"{agent.pid}.json"))
    os.kill(agent.pid, signal.SIGUSR1)
    wait_for(lambda: not words(agent.pid), "the agent to have no words any more")


def saved(perdure: Perdure) -> tuple[object, ...]:
    (pane,) = topology(perdure)["panes"]
    identity = pane["identity"] or {}
    known = (identity.get("conversation"), identity.get("certain"), identity.get("evidence"))
    return (*known, pane["program"]["argv"][2:], pane["command"])


def test_an_agent_without_words_keeps_its_conversation_and_what_it_was_started_with(
    perdure: Perdure, agent: FakeAgent
) -> None:
    perdure.ok("save")
    before = saved(perdure)
    assert before[:4] == (CONVERSATION, True, "registry", ["--permission-mode", "plan"])
    let_go(agent)
    for _ in range(2):
        perdure.ok("save")
        assert saved(perdure) == (CONVERSATION, True, "remembered", *before[3:])


def test_the_daemon_loses_nothing_of_an_agent_without_words(perdure: Perdure, agent: FakeAgent) -> None:
    with watching(perdure) as daemon:
        run = daemon.await_run("work:0.0", lambda run: bool(run.identity and run.identity.certain))
        let_go(agent)
        perdure.ok("save")
        os.kill(agent.pid, signal.SIGKILL)
        daemon.await_gone(run.id)
        changes = daemon.events(0, EventKind.IDENTITY_CHANGED)
        assert {each.event.data["conversation"] for each in changes} <= {CONVERSATION}
