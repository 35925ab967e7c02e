"""The dashboard in a browser: how soon the first screen shows every run, from the moment its address is asked for."""

from __future__ import annotations

import os
import shutil
import sys

from bench.sandbox import BenchFailed, Sandbox
from bench.timing import Timing
from bench.watching import Watcher
from perdure.api.pages import DIST
from perdure.daemon.call import call
from perdure.daemon.protocol import AskLogin

#: How long a page may take at all, in milliseconds.
_PATIENCE = 60_000
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: When the last of so many rows was painted, in milliseconds since the address was asked for.
_PAINTED = """count => new Promise(resolve => {
    const look = () => document.querySelectorAll("li.run").length === count
        ? requestAnimationFrame(() => setTimeout(() => resolve(performance.now()), 0))
        : requestAnimationFrame(look);
    look();
})"""


def can_paint() -> bool:
    """Return whether there is a browser, and something to show in it."""
    return _program() is not None and os.path.exists(os.path.join(DIST, "index.html"))


def measure(watcher: Watcher, sandbox: Sandbox, *, panes: int, samples: int) -> Timing:
    """Return how long it took until every run was on the screen, with nothing kept from before."""
    from playwright.sync_api import sync_playwright

    print(f"{panes} panes in a browser …", file=sys.stderr, flush=True)
    taken = []
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    environ: dict[str, str | float | bool] = {"HOME": sandbox.directory("browser"), "PATH": os.environ["PATH"]}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_program(), args=arguments, env=environ)
        for _ in range(samples):
            page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
            page.set_default_timeout(_PATIENCE)
            answer = call(watcher.state, AskLogin(), _PATIENCE / 1000)
            if not isinstance(answer, dict):
                raise BenchFailed("the daemon gave no link")
            page.goto(str(answer["url"]))
            # Once more: whoever is logged in asks for the page itself.
            page.goto(watcher.url, wait_until="commit")
            taken.append(float(page.evaluate(_PAINTED, panes)) / 1000)
            page.context.close()
        browser.close()
    return Timing(samples=tuple(taken))


def _program() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name)) is not None), None)
