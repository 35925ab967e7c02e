"""Every screen can be used by whoever cannot see it, or has a phone: axe finds nothing serious, nothing is cut off."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.looking import AXE, Dashboard
from tests.browser.machine import Machine


def _overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than the window."""
    wide: int = page.evaluate(
        "document.getElementById('main').scrollWidth - document.getElementById('main').clientWidth"
    )
    return wide


@pytest.mark.parametrize(("phone", "dark"), [(False, False), (True, True)], ids=["desk-light", "phone-dark"])
@pytest.mark.skipif(not os.path.exists(AXE), reason="axe-core is not installed; `make web` installs it")
def test_every_screen(machine: Machine, dashboard: Callable[..., Dashboard], phone: bool, dark: bool) -> None:
    machine.agent("deploy", branch="main")
    machine.agent("roof", "plan the roof")
    with machine.watched() as watcher:
        watcher.await_state("deploy:0.0", "idle")
        machine.tell("deploy", "run git push --tags")
        watcher.await_state("deploy:0.0", "attention(permission)")
        chat = machine.chat("Ann", "Can you plan the roof?", "Yes.", title="The roof")
        job = machine.job("echo begun; exec sleep 600")
        looking = dashboard(phone=phone, dark=dark)
        page = looking.page
        found: dict[str, list[str]] = {}

        def judge(screen: str) -> None:
            found[screen] = looking.findings()
            if _overflow(page) > 0:
                found[screen].append(f"{_overflow(page)} pixels too wide")

        expect(page.locator("li.run")).to_have_count(2)
        judge("runs")
        page.keyboard.press("n")
        expect(page.get_by_role("dialog")).to_be_visible()
        judge("a new agent")
        page.keyboard.press("Escape")
        looking.open_run("deploy")
        expect(page.locator(".approval .choice").first).to_be_visible()
        judge("pane")
        # Every key is seen at once, and since when it has been so.
        assert page.evaluate("(bar => bar.scrollWidth - bar.clientWidth)(document.querySelector('.keybar'))") == 0
        expect(page.locator(".pane-head .since")).to_be_visible()
        looking.go("time-machine")
        page.locator(".snapshots a").first.click()
        page.get_by_role("button", name="Show what would be done").click()
        expect(page.locator(".steps")).to_have_count(1)
        judge("time machine")
        looking.go("chats")
        page.locator(f'a[href="/chats/{chat}"]').click()
        expect(page.locator(".turn").first).to_be_visible()
        judge("chats")
        page.get_by_role("button", name="Reset…").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        judge("a chat anew")
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Reset…")).to_be_focused()
        looking.go("jobs")
        page.locator(f'a[href="/jobs/{job}"]').click()
        expect(page.locator(".job .output")).to_contain_text("begun")
        judge("jobs")
        looking.go("events")
        expect(page.locator(".events li").first).to_be_visible()
        judge("events")
        looking.go("settings")
        expect(page.locator(".settings form")).to_be_visible()
        judge("settings")
        machine.perdure("jobs", "kill", job)
        assert {screen: wrong for screen, wrong in found.items() if wrong} == {}
