"""Chats are found by what was said; a job is followed as it prints; events and settings are all there."""

from __future__ import annotations

import os
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Route, expect

from tests.browser.looking import Dashboard
from tests.browser.machine import Machine


def test_a_chat_is_found_by_its_words_read_and_renamed(machine: Machine, dashboard: Callable[..., Dashboard]) -> None:
    with machine.watched():
        machine.chat("Ann", "Can you plan the roof?", "With <b>tiles</b> over a membrane.", title="The roof")
        machine.chat("Ben", "Is the release out?", "Not yet.")
        looking = dashboard()
        looking.go("chats")
        page = looking.page
        expect(page.locator(".list li")).to_have_count(2)
        page.get_by_role("searchbox").fill("membrane")
        found = page.locator("ul[aria-label='What was found'] li")
        expect(found).to_have_count(1)
        expect(found.locator("mark")).to_have_text("membrane")
        found.locator("a").click()
        expect(page.locator(".turn")).to_have_count(2)
        expect(page.locator(".turn").nth(1)).to_contain_text("With <b>tiles</b> over a membrane.")
        expect(page.locator(".turn.wanted")).to_contain_text("membrane")
        page.get_by_role("button", name="Rename").click()
        page.keyboard.type("A roof over it all")
        page.keyboard.press("Enter")
        expect(page.locator(".transcript h2.grow")).to_have_text("A roof over it all")
        # Somebody says something while it is read.
        machine.chat("Ann", "And slate?", "Too heavy.")
        expect(page.locator(".turn").last).to_contain_text("Too heavy.")
        # It is begun anew only by whoever says so twice, and what was said stays to be read.
        page.get_by_role("button", name="Reset…").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(page.locator(".turn")).to_have_count(4)
        page.get_by_role("button", name="Reset…").click()
        page.get_by_role("dialog").get_by_role("button", name="Begin anew").click()
        expect(page.locator(".transcript")).to_contain_text("0 turns · open")
        page.get_by_role("searchbox").fill("")
        expect(page.locator(".list li")).to_have_count(3)
        page.locator(".list a", has_text="A roof over it all").click()
        expect(page.locator(".transcript")).to_contain_text("closed: a new one was asked for")
        expect(page.get_by_role("button", name="Reset…")).to_have_count(0)


def test_a_job_is_started_followed_told_something_and_seen_to_end(
    machine: Machine, dashboard: Callable[..., Dashboard]
) -> None:
    with machine.watched():
        looking = dashboard()
        looking.go("jobs")
        page = looking.page
        page.get_by_label("A command for your shell").fill(
            "echo begun; read answer; echo heard $answer; echo oh >&2; exit 3"
        )
        page.get_by_role("button", name="Run").click()
        output = page.locator(".job .output")
        expect(output).to_contain_text("begun")
        expect(page.locator(".job .state")).to_have_text("running")
        page.get_by_label("A line for its input").fill("yes")
        page.get_by_role("button", name="Send").click()
        expect(output).to_contain_text("heard yes")
        expect(output.locator(".stderr")).to_contain_text("oh")
        expect(page.locator(".job .state")).to_have_text("failed (3)")
        expect(page.locator(".list li .state")).to_have_text("failed (3)")


def test_events_go_back_to_the_first_there_is(machine: Machine, dashboard: Callable[..., Dashboard]) -> None:
    def told(route: Route) -> None:
        asked = parse_qs(urlsplit(route.request.url).query)
        after, limit = int(asked.get("after", ["0"])[0]), int(asked["limit"][0])
        # The first hundred were forgotten.
        numbers = range(max(101, after + 1), min(1000, max(100, after) + limit) + 1)
        items: list[dict[str, object]] = [
            {"seq": n, "at": "2026-11-15T12:00:00Z", "kind": "saved", "run": None, "server": None, "data": {}}
            for n in numbers
        ]
        route.fulfill(json={"items": items, "next": None, "after": after + limit, "last": 1000})

    with machine.watched():
        looking = dashboard()
        page = looking.page
        page.route("**/api/events?*", told)
        looking.go("events")
        for seen in (300, 600, 900):
            expect(page.locator(".events li")).to_have_count(seen)
            if seen < 900:
                page.get_by_role("button", name="Earlier").click()
        expect(page.get_by_role("button", name="Earlier")).to_have_count(0)


def test_settings_that_are_safe_are_changed_in_the_file(machine: Machine, dashboard: Callable[..., Dashboard]) -> None:
    path = os.path.join(machine.home.home, ".config", "perdure", "config.toml")

    def kept() -> str:
        with open(path) as file:
            return file.read()

    with machine.watched() as watcher:
        looking = dashboard()
        looking.go("settings")
        page = looking.page
        page.get_by_label("Agents starting at once").fill("7")
        page.get_by_label("Bring a server that died back at once").check()
        page.get_by_role("button", name="Keep these settings").click()
        expect(page.get_by_label("Agents starting at once")).to_have_value("7")
        watcher.wait_for(lambda: os.path.exists(path) and "max_parallel = 7" in kept(), "what was chosen")
        assert "restore = true" in kept()
        expect(page.get_by_role("alert")).to_have_count(0)
        page.get_by_role("button", name="Read again").click()
        expect(page.get_by_label("Bring a server that died back at once")).to_be_checked()
        page.get_by_role("button", name="Dark", exact=True).click()
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
        page.reload()
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
