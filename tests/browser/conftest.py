"""A real browser, and a machine for it to look at."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from perdure.api.pages import DIST
from tests.browser.looking import Dashboard, launch
from tests.browser.machine import Machine, chromium
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The Chromium of this machine, for all tests of a file; skips the test where there is none.

    For no longer: while it is there, an event loop runs, and tests of other files want one of their own.
    """
    program = chromium()
    if program is None:
        pytest.skip("there is no Chromium here; scripts/need-chromium says how to have one")
    if not os.path.exists(os.path.join(DIST, "index.html")):
        pytest.skip("the dashboard is not built; `make web` builds it")
    with tempfile.TemporaryDirectory(prefix="pd-browser-") as home, sync_playwright() as playwright:
        found = launch(playwright, program, home)
        yield found
        found.close()


@pytest.fixture
def machine(private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure) -> Iterator[Machine]:
    """A machine on which nothing runs yet."""
    there = Machine(private_home, tmux, perdure)
    yield there
    there.agents.end_all()


@pytest.fixture
def dashboard(browser: Browser, machine: Machine) -> Iterator[Callable[..., Dashboard]]:
    """Opens the dashboard, logged in by a link; what it complained of fails the test at the end."""
    opened: list[Dashboard] = []

    def open_it(**how: bool) -> Dashboard:
        opened.append(Dashboard(browser, **how))
        opened[-1].log_in(machine.link())
        return opened[-1]

    yield open_it
    complaints = [each for dashboard in opened for each in dashboard.complaints]
    for dashboard in opened:
        dashboard.close()
    assert complaints == []
