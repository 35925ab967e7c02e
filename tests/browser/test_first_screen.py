"""Who needs me: the first screen, as agents go from one state to the next."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.looking import Dashboard
from tests.browser.machine import Machine


def test_a_newcomer_is_told_what_to_do_and_sees_their_first_agent_come(
    machine: Machine, dashboard: Callable[..., Dashboard]
) -> None:
    with machine.watched():
        page = dashboard().page
        expect(page.get_by_role("heading", name="Nothing runs yet")).to_be_visible()
        expect(page.get_by_text("perdure new fix --agent")).to_be_visible()
        machine.agent("roof")
        expect(page.locator(".idle li.run")).to_contain_text("roof")
        expect(page.get_by_role("heading", name="Nobody needs you")).to_be_visible()
