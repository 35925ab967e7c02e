"""What somebody writes, answers and ends is for who was shown to them, and for nobody who came into the pane meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.looking import Dashboard
from tests.browser.machine import Machine
from tests.tmux_server import TmuxServer


def test_what_was_meant_for_one_agent_reaches_no_other_and_nothing_is_sent_while_what_is_shown_may_be_old(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    machine.agent("roof")

    def another() -> None:
        """Have another agent in the pane, and wait until the page shows its conversation."""
        before = set(machine.agents.running())
        tmux.run("respawn-pane", "-k", "-t", "roof", machine.agents.path, "--think", "0.3")
        watcher.wait_for(lambda: set(machine.agents.running()) - before, "another agent")
        [conversation] = set(machine.agents.running()) - before
        expect(page.locator(".right")).to_contain_text(conversation)

    with machine.watched() as watcher:
        watcher.await_state("roof:0.0", "idle")
        looking = dashboard()
        looking.open_run("roof")
        page = looking.page
        field = page.get_by_label("Tell it something")
        field.fill("tear down the old roof")
        another()
        field.press("Enter")
        expect(page.locator(".said")).to_contain_text(
            "Nothing was typed: another agent was started there meanwhile; look again."
        )
        expect(field).to_have_value("tear down the old roof")
        assert machine.agents.turns() == 0
        # What was sent to one is not sent to another by the same key again, nor by holding it down.
        watcher.await_state("roof:0.0", "idle")
        told: list[str] = []
        page.on("request", lambda each: told.append(each.url) if each.url.endswith("/input") else None)
        with page.expect_response("**/input") as second:
            page.keyboard.down("Enter")
        assert second.value.json()["result"] == "refused"
        expect(page.get_by_role("button", name="Send", exact=True)).to_be_enabled()
        page.keyboard.down("Enter")
        page.keyboard.up("Enter")
        expect(field).to_have_value("tear down the old roof")
        assert machine.agents.turns() == 0
        # Who has looked again says so.
        page.get_by_role("button", name="Send it to the one that is there now").click()
        expect(page.locator(".said")).to_contain_text("It heard you")
        assert len(told) == 2
        expect(field).to_have_value("")
        page.get_by_role("button", name="End…").click()
        another()
        page.get_by_role("button", name="End the pane").click()
        expect(page.get_by_role("dialog")).to_contain_text("another agent was started there meanwhile; look again")
        assert tmux.show("#{pane_dead}", "roof") == "0"
        page.get_by_role("button", name="Cancel").click()
        field.fill("and the cellar")
        expect(page.get_by_role("button", name="Send", exact=True)).to_be_enabled()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
    expect(page.locator(".tell")).to_contain_text("what is shown may be old")
    expect(field).to_have_value("and the cellar")
    page.get_by_role("button", name="End…").click()
    expect(page.get_by_role("button", name="End the pane")).to_be_disabled()
    looking.complaints.clear()  # that nobody answered
