"""Take the pictures of the dashboard in docs/images: every screen, on a desk and on a phone, dark and light.

What is shown is real: a daemon, a tmux server and simulated agents, in a home of their own. Only the names of this machine, its user
and that home are replaced on the way to the browser.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress

from playwright.sync_api import Page, Route, WebSocketRoute, expect, sync_playwright

from tests.acceptance.watching import Watching
from tests.browser.looking import ROOT, Dashboard, launch
from tests.browser.machine import Machine, chromium
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer, dispose_all

IMAGES = os.path.join(ROOT, "docs", "images")


class Disguise:
    """Texts of this machine as they are shown to readers."""

    def __init__(self, home: PrivateHome) -> None:
        import getpass

        self._words = [
            (home.home, "/home/dev"),
            (home.sockets, "/tmp"),
            (home.root, "/tmp"),
            (f'"host":"{socket.gethostname()}"', '"host":"laptop"'),
            (f'"user":"{getpass.getuser()}"', '"user":"dev"'),
        ]

    def text(self, text: str) -> str:
        """Return a text as it may be shown."""
        for real, shown in self._words:
            text = text.replace(real, shown)
        return text

    def put_on(self, page: Page) -> None:
        """Let the page hear nothing else."""
        page.route("**/api/**", self._answer)
        page.route_web_socket("**/api/socket*", self._frames)

    def _answer(self, route: Route) -> None:
        with suppress(Exception):  # the page has gone on meanwhile
            response = route.fetch()
            route.fulfill(response=response, body=self.text(response.text()))

    def _frames(self, route: WebSocketRoute) -> None:
        server = route.connect_to_server()
        server.on_message(lambda message: route.send(self.text(message) if isinstance(message, str) else message))


def scene(machine: Machine) -> None:
    """Start agents that are at something, chats and jobs."""
    machine.agent("roof", "Plan the roof, with tiles or slate", folder="house", branch="main")
    machine.agent("parser", "Make the parser twice as fast", think=3600, folder="compiler", branch="main")
    machine.agent("lexer", "Let the lexer read numbers with underscores", think=3600, folder="compiler")
    machine.agent("deploy", "Get the release ready", folder="shop", branch="main")
    machine.agent("docs", "Write down how a restore is verified", folder="handbook", branch="main")
    machine.agent("billing", "Find out why the invoice is off by a cent", folder="shop")
    where = machine.folder("house")
    machine.tmux.run("split-window", "-d", "-h", "-t", "roof", "-c", where, "sh")
    machine.tmux.run("new-session", "-d", "-x", "100", "-y", "28", "-s", "shell", "-n", "w", "-c", where, "sh")


def settle(machine: Machine, watcher: Watching) -> None:
    """Wait until everybody is where the pictures show them."""
    for session in ("roof", "deploy", "docs", "billing"):
        watcher.await_state(f"{session}:0.0", "attention(done)", "idle")
    machine.perdure.ok("seen", "docs")
    machine.perdure.ok("seen", "roof:0.0")
    machine.tell("deploy", "run git push --tags origin release-2.4")
    watcher.await_state("deploy:0.0", "attention(permission)")
    machine.tell("roof", "Now say what slate would cost")
    watcher.await_state("roof:0.0", "attention(done)")
    machine.perdure.ok("seen", "roof:0.0")
    for session in ("parser", "lexer", "deploy"):
        watcher.await_run(f"{session}:0.0", lambda run: run.thought is not None and run.theme is not None, "known")
    machine.perdure.ok("save")
    machine.tmux.run("kill-session", "-t", "shell")
    machine.perdure.ok("save")
    said = ("Can you plan the roof?", "Yes: tiles over a membrane, two layers of battens.", "With tiles or slate?")
    machine.chat("Ann", *said, "Tiles. Slate costs three times as much and needs a stronger frame.", title="The roof")
    machine.chat("Ben", "Is the release out?", "It waits for the tag to be pushed.", title="Release 2.4")
    machine.chat("Cleo", "Why was my invoice off by a cent?", "Rounding: each line was rounded, then the sum.")
    machine.job('echo building; for n in 1 2 3 4 5 6; do echo "[$n/6] cc -O2 -c part$n.c"; done; echo done')
    machine.job("echo 'no rule to make target' >&2; exit 2")


def take(dashboard: Dashboard, name: str) -> None:
    """Take a picture of what is shown, once everything is there."""
    page = dashboard.page
    page.screenshot(path=os.path.join(IMAGES, f"{name}.png"))


def walk(dashboard: Dashboard, look: str, job: str) -> None:
    """Go through every screen and take a picture of each."""
    page = dashboard.page
    expect(page.locator("section.needs")).to_be_visible()
    take(dashboard, f"runs-{look}")
    dashboard.open_run("deploy")
    expect(page.locator(".approval .choice").first).to_be_visible()
    expect(page.locator(".xterm-rows")).to_contain_text("May I run this?")
    take(dashboard, f"pane-{look}")
    dashboard.go("time-machine")
    page.locator("ul.list a").nth(1).click()
    page.get_by_role("button", name="Show what would be done").click()
    expect(page.locator(".steps li").first).to_be_visible()
    page.evaluate("scrollTo(0, 0)")
    take(dashboard, f"time-machine-{look}")
    dashboard.go("chats")
    page.get_by_role("searchbox").fill("slate")
    page.locator("ul[aria-label='What was found'] a").first.click()
    expect(page.locator(".turn").first).to_be_visible()
    take(dashboard, f"chats-{look}")
    dashboard.go("jobs")
    page.locator(f'a[href="/jobs/{job}"]').click()
    expect(page.locator(".job .output")).to_contain_text("part3")
    take(dashboard, f"jobs-{look}")
    for screen in ("events", "settings"):
        dashboard.go(screen)
        expect(page.locator(".events li, .settings form").first).to_be_visible()
        take(dashboard, f"{screen}-{look}")


def main() -> int:
    """Take all pictures."""
    program = chromium()
    if program is None:
        print("There is no Chromium here; scripts/need-chromium says how to have one.", file=sys.stderr)
        return 1
    os.makedirs(IMAGES, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pd-", dir="/tmp", ignore_cleanup_errors=True) as root:
        home = PrivateHome(root, *(os.path.join(root, name) for name in "hst"))
        os.mkdir(home.home)
        os.mkdir(home.sockets, 0o700)
        os.environ.update(HOME=home.home, PERDURE_STATE_DIR=home.state, TMUX_TMPDIR=home.sockets, SHELL="/bin/sh")
        for name in ("TMUX", "TMUX_PANE"):
            os.environ.pop(name, None)
        machine = Machine(home, TmuxServer(), Perdure())
        try:
            scene(machine)
            with machine.watched() as watcher:
                settle(machine, watcher)
                _pictures(machine, program, Disguise(home))
        finally:
            machine.agents.end_all()
            dispose_all(home.sockets)
    return 0


def _pictures(machine: Machine, program: str, disguise: Disguise) -> None:
    job = machine.job("for n in 1 2 3 4 5; do echo cc -O2 -c part$n.c; sleep 0.1; done; echo linking; sleep 600")
    kinds: list[tuple[str, Callable[..., Dashboard], dict[str, bool]]] = [
        (f"{size}-{look}", Dashboard, {"phone": size == "phone", "dark": look == "dark"})
        for size in ("desk", "phone")
        for look in ("light", "dark")
    ]
    with sync_playwright() as playwright:
        browser = launch(playwright, program, machine.home.root)
        for name, opened, how in kinds:
            dashboard = opened(browser, **how)
            disguise.put_on(dashboard.page)
            dashboard.log_in(machine.link())
            walk(dashboard, name, job)
            for complaint in dashboard.complaints:
                print(f"{name}: {complaint}", file=sys.stderr)
            dashboard.close()
        browser.close()
    machine.perdure("jobs", "kill", job)


if __name__ == "__main__":
    sys.exit(main())
