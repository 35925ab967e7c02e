"""The time machine: a server is killed, and brought back with a click."""

from __future__ import annotations

import signal
from collections.abc import Callable

from playwright.sync_api import expect

from tests.acceptance.kit import settle
from tests.browser.looking import Dashboard
from tests.browser.machine import Machine
from tests.tmux_server import TmuxServer


def test_a_killed_server_is_brought_back_and_its_conversations_verified(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    for name in ("roof", "cellar"):
        machine.agent(name, f"plan the {name}")
    machine.agents.await_running(2, 4)
    conversations = set(machine.agents.running())
    with machine.watched() as watcher:
        for name in ("roof", "cellar"):
            watcher.await_state(f"{name}:0.0", "idle", "attention(done)")
        machine.perdure.ok("save")
        looking = dashboard()
        page = looking.page
        expect(page.locator("li.run")).to_have_count(2)
        tmux.kill9()
        expect(page.get_by_role("heading", name="Nothing runs any more")).to_be_visible()
        expect(page.locator(".notice.call")).to_contain_text("What was last saved of it is from")
        page.get_by_role("link", name="Bring it back").click()
        page.get_by_role("button", name="Show what would be done").click()
        expect(page.locator(".restoring")).to_contain_text("2 panes would be brought back")
        expect(page.locator(".steps li")).to_have_count(2)
        assert not tmux.alive
        page.get_by_role("button", name="Restore 2 panes").click()
        expect(page.locator(".restoring")).to_contain_text("Back: 2 of 2 panes, 2 conversations verified")
        assert set(machine.agents.running()) == conversations
        # What was brought back is told afterwards, too, by when, from what, and what came of it.
        looking.go("time-machine")
        restores = page.locator(".restores li")
        expect(restores).to_have_count(1)
        expect(restores).to_contain_text("Back: 2 panes opened, 2 agents resumed, 2 verified")
        expect(restores.get_by_role("link", name="the moment")).to_be_visible()
        restores.locator("summary").click()
        expect(restores.locator(".steps li")).to_have_count(2)
        looking.go("")
        expect(page.locator("li.run")).to_have_count(2)


def test_a_moment_that_is_not_there_is_said_not_to_be(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", "sleep 3600")
    with machine.watched() as watcher:
        watcher.await_run("work:0.0")
        tmux.run("split-window", "-d", "-t", "work", "sleep 3600")
        watcher.await_run("work:0.1")
        snapshot = machine.perdure.ok("save", "--json").json["servers"][0]["snapshot"]
        page = dashboard().page
        address = page.url.rstrip("/")
        page.goto(f"{address}/time-machine/nope")
        expect(page.get_by_role("alert")).to_contain_text("There is no snapshot nope.")
        page.goto(f"{address}/time-machine/{snapshot[:6]}")
        expect(page.locator("h2.moment")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)


def test_a_restore_that_was_cut_short_is_told_of_and_gone_on_with(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    machine.agent("roof", "plan the roof")
    for number in range(12):
        tmux.run("new-session", "-d", "-s", f"shell{number}", "-n", "w", "sleep 3600")
    machine.agents.await_running(1, 2)
    conversations = set(machine.agents.running())
    with machine.watched() as watcher:
        watcher.await_state("roof:0.0", "idle", "attention(done)")
        machine.perdure.ok("save")
        looking = dashboard()
        page = looking.page
        port = page.url.split(":")[-1].strip("/")
        tmux.kill9()
        page.get_by_role("link", name="Bring it back").click()
        page.get_by_role("button", name="Show what would be done").click()
        page.get_by_role("button", name="Restore 13 panes").click()
        watcher.wait_for(lambda: tmux.alive, "the first of it")
        watcher.end(signal.SIGKILL)
    expect(page.locator(".link.lost")).to_be_visible()
    looking.complaints.clear()  # that nobody answered
    with machine.watched(port=port):
        restoring = page.locator(".restoring")
        expect(page.locator(".link.live")).to_be_visible()
        on = restoring.get_by_role("button", name="Go on with it")
        expect(on.or_(restoring.get_by_text("Back:"))).to_be_visible()
        if on.is_visible():
            on.click()
        expect(restoring).to_contain_text("1 conversation verified")
        expect(restoring.get_by_role("alert")).to_have_count(0)
        assert set(machine.agents.running()) == conversations
        page.get_by_role("button", name="Look again").click()
        expect(restoring).to_contain_text("Everything of it is there already")
        # What is planned is so now: it is planned again when a pane goes.
        tmux.run("kill-session", "-t", "shell3")
        expect(restoring).to_contain_text("1 pane would be brought back")
    looking.complaints.clear()


def test_what_changed_between_two_moments_is_shown(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    # Two moments and no more: whoever watches would save it while its program is yet to start, too.
    for name in ("one", "two"):
        tmux.run("new-session", "-d", "-s", name, "-n", "w", "sleep 3600")
        settle(tmux)
        machine.perdure.ok("save")
    with machine.watched():
        looking = dashboard()
        looking.go("time-machine")
        page = looking.page
        expect(page.locator(".mark").first).to_be_visible()
        page.locator(".snapshots a").first.click()
        expect(page.locator(".changes")).to_contain_text("session two")
