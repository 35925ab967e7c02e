"""Every test lives in a home of its own; no test can see, or harm, the tmux servers and files of whoever runs it."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from tests.leftovers import HOMES, servers_left
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer, dispose_all

# Machines differ in speed: how long an example takes, or takes to be made up, is never what a test is about.
settings.register_profile("perdure", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("perdure")

# Whoever runs us may ignore these (`nohup`, a job in the background of a script), and what we start would, too.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

#: What a test inherits. Everything else (tmux's, XDG's, any agent's, our own variables) is gone.
INHERITED = ("PATH", "USER", "LOGNAME", "TZ", "VIRTUAL_ENV")
INHERITED_PREFIXES = ("PYTHON", "PYTEST_", "HYPOTHESIS_", "COVERAGE_", "LD_", "DYLD_", "PERDURE_TEST_")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among all the tests there are, neither while they are read nor ever after: they stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


class PrivateHome(NamedTuple):
    """The directories a test may do anything in."""

    root: str
    #: $HOME
    home: str
    #: $PERDURE_STATE_DIR; not made yet, as on a new machine.
    state: str
    #: $TMUX_TMPDIR
    sockets: str


#: The private homes of this run.
_HOMES: set[str] = set()


@pytest.fixture(scope="session", autouse=True)
def no_server_is_left() -> Iterator[None]:
    """Fails, behind the last test, when a tmux server of any test is still there; and ends it."""
    yield
    left = servers_left(_HOMES)
    for home in _HOMES:
        # Whoever was just ending may have written into it while it was removed.
        shutil.rmtree(home, ignore_errors=True)
    for each in left:
        with suppress(ProcessLookupError):
            os.kill(each.pid, signal.SIGKILL)
    assert not left, "left behind: " + "; ".join(f"{each.pid} {each.what}" for each in left)


@pytest.fixture(autouse=True)
def private_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateHome]:
    """The test's own HOME, state directory and tmux sockets, in an environment stripped of everything else."""
    # Not tmp_path: a unix socket's path has to stay below about 100 bytes.
    root = tempfile.mkdtemp(prefix=os.path.basename(HOMES), dir=os.path.dirname(HOMES))
    places = PrivateHome(root, os.path.join(root, "h"), os.path.join(root, "s"), os.path.join(root, "t"))
    os.mkdir(places.home)
    os.mkdir(places.sockets, 0o700)
    for name in os.environ:
        if name not in INHERITED and not name.startswith(INHERITED_PREFIXES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", places.home)
    monkeypatch.setenv("TMUX_TMPDIR", places.sockets)
    monkeypatch.setenv("PERDURE_STATE_DIR", places.state)
    # A daemon of a test is asked over HTTP where the test says so, by --port 0: all of them share the machine's ports.
    monkeypatch.setenv("PERDURE_PORT", "off")
    monkeypatch.setenv("LANG", "C.UTF-8")
    # A pane's shell: with an empty home, others start by asking a new user questions.
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setenv("TERM", "xterm")
    _HOMES.add(root)
    yield places
    dispose_all(root)
    dispose_all(places.sockets)
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def tmux_server(private_home: PrivateHome) -> Callable[[str], TmuxServer]:
    """Gives private tmux servers by name; ended with the test, whatever became of them."""
    return TmuxServer


@pytest.fixture
def tmux(tmux_server: Callable[[str], TmuxServer]) -> TmuxServer:
    """The private server a plain `tmux` in this test would talk to. Not started yet."""
    return tmux_server("default")


@pytest.fixture
def perdure(private_home: PrivateHome) -> Perdure:
    """Runs the program against the test's private home and servers."""
    return Perdure()
