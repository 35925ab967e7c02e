"""Who needs me: the first screen, as agents go from one state to the next."""

from __future__ import annotations

import os
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.looking import Dashboard
from tests.browser.machine import Machine
from tests.tmux_server import TmuxServer


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


def test_an_agent_goes_busy_asks_is_answered_and_is_idle_again_without_a_reload(
    machine: Machine, dashboard: Callable[..., Dashboard]
) -> None:
    # Long enough for a browser that has much else to do to show that it is busy.
    machine.agent("deploy", think=5)
    with machine.watched() as watcher:
        watcher.await_state("deploy:0.0", "idle")
        looking = dashboard()
        page = looking.page
        machine.tell("deploy", "get the release ready")
        expect(page.locator(".busy li.run")).to_contain_text("deploy")
        watcher.await_state("deploy:0.0", "attention(done)")
        expect(page.locator(".needs li.run")).to_contain_text("done, unseen")
        machine.tell("deploy", "run git push --tags")
        expect(page.locator(".needs li.run")).to_contain_text("wants permission")
        expect(page).to_have_title("(1) Runs · Perdure")
        looking.open_run("deploy")
        approval = page.locator(".approval")
        expect(approval).to_contain_text("$ git push --tags")
        approval.get_by_role("button", name="yes").click()
        expect(approval).to_have_count(0)
        watcher.await_state("deploy:0.0", "attention(done)")
        page.get_by_role("button", name="I have seen it").click()
        expect(page.locator(".pane-head .state")).to_have_text("idle")
        expect(page.locator(".timeline")).to_contain_text("wants permission")
        noted = "number 2 of this conversation: run git push --tags"
        watcher.wait_for(lambda: noted in machine.screen("deploy"), "that it was done")


def test_an_answer_to_what_is_no_longer_asked_is_not_sent(
    machine: Machine, dashboard: Callable[..., Dashboard]
) -> None:
    machine.agent("deploy")
    with machine.watched() as watcher:
        watcher.await_state("deploy:0.0", "idle")
        machine.tell("deploy", "run rm -rf build")
        watcher.await_state("deploy:0.0", "attention(permission)")
        looking = dashboard()
        looking.open_run("deploy")
        page = looking.page
        button = page.locator(".approval").get_by_role("button", name="yes")
        expect(button).to_be_visible()
        # Between the look and the click, somebody at the terminal says no, and it asks for something worse. The page
        # does not hear of it: it is kept from asking again.
        page.route("**/prompt", lambda route: route.abort())
        machine.tell("deploy", "n")
        machine.tell("deploy", "run rm -rf /")
        watcher.wait_for(lambda: "$ rm -rf /\n" in machine.screen("deploy"), "the other question")
        button.click()
        expect(page.locator(".approval [role=alert]")).to_be_visible()
        assert "Noted" not in machine.screen("deploy")


def test_runs_are_reached_by_keys_and_found_by_words(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    for name in ("alpha", "beta", "gamma"):
        tmux.run("new-session", "-d", "-s", name, "-n", "w", "sleep 3600")
    with machine.watched() as watcher:
        for name in ("alpha", "beta", "gamma"):
            # Those whose state changes change places.
            watcher.await_state(f"{name}:0.0", "busy")
        page = dashboard().page
        rows = page.locator("li.run a")
        expect(rows).to_have_count(3)
        for key in ("j", "j", "j", "k"):
            page.keyboard.press(key)
        expect(rows.nth(1)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="beta:0.0")).to_be_visible()
        page.keyboard.press("u")
        expect(rows.nth(1)).to_be_focused()
        page.keyboard.press("/")
        page.keyboard.type("gam")
        expect(rows).to_have_count(1)
        page.keyboard.press("Escape")
        expect(rows).to_have_count(3)
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.keyboard.press("g")
        page.keyboard.press("e")
        expect(page.get_by_role("heading", name="Events", level=1)).to_be_visible()


def test_what_strangers_say_is_text_and_reads_as_it_is(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    hostile = "<img src=x onerror=document.title='owned'>\u202eeman\u200b"
    tmux.run("new-session", "-d", "-s", hostile, "-n", "w", "sleep 3600")
    with machine.watched():
        page = dashboard().page
        shown = page.locator("li.run .name")
        expect(shown).to_contain_text("<img src=x onerror")
        expect(shown).to_contain_text("⟨U+202E⟩eman⟨U+200B⟩")
        expect(page.locator("main img")).to_have_count(0)
        expect(page).to_have_title("Runs · Perdure")


def test_who_is_not_logged_in_is_told_how_and_sees_nothing(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    tmux.run("new-session", "-d", "-s", "secret", "-n", "w", "sleep 3600")
    with machine.watched():
        looking = dashboard()
        page = looking.page
        expect(page.locator("li.run")).to_have_count(1)
        looking.go("settings")
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("heading", name="You are not logged in")).to_be_visible()
        page.reload()
        expect(page.get_by_text("perdure open")).to_be_visible()
        expect(page.get_by_text("secret")).to_have_count(0)
        # Whoever follows old links again and again is told so, and let in by a new one all the same.
        old = page.url.replace("/settings", "/login?once=old")
        while page.request.get(old).status != 429:
            pass
        page.goto(old)
        expect(page.get_by_role("alert")).to_contain_text("Too many wrong tries")
        looking.log_in(machine.link())


def test_an_agent_is_started_from_the_page_and_ended_again_once_it_is_kept(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    with machine.watched() as watcher:
        page = dashboard().page
        page.get_by_role("button", name="Start an agent here").click()
        page.get_by_role("combobox", name="Agent").fill("nobody")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("no agent called 'nobody'")
        page.get_by_label("What it is to do").fill("plan the roof")
        # One whose program is not on this machine: what was written is not lost.
        page.get_by_role("combobox", name="Agent").fill("goose")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text(
            "It could not be started: goose ended with status 127"
        )
        expect(page.get_by_role("dialog").locator(".output")).to_contain_text("To try again: goose")
        expect(page.get_by_role("dialog")).to_contain_text("Nothing is left of it.")
        watcher.wait_for(lambda: not tmux.alive, "the end of the server that was made for it")
        page.get_by_role("combobox", name="Agent").fill("simulant")
        page.get_by_label("Name of the session").fill("roof")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("heading", name="roof:0.0")).to_be_visible()
        expect(page.locator(".xterm-rows")).to_contain_text("Noted as number 1 of this conversation: plan the roof")
        page.get_by_role("button", name="End…").click()
        page.get_by_role("button", name="End the pane").click()
        expect(page.locator(".ended li.run")).to_contain_text("roof")
        watcher.await_gone("roof:0.0")


def test_what_an_agent_was_not_told_at_its_start_is_said_and_kept_also_for_who_did_not_wait(
    machine: Machine, dashboard: Callable[..., Dashboard]
) -> None:
    gate = os.path.join(machine.home.root, "gate")
    with open(machine.agents.path) as file:
        own = file.read()
    # One that takes its time, and asks something before it can be told anything.
    assert own.count(' "$@"') == 1
    waits = own.replace(' "$@"', ' "$@" "run make all"').replace(
        "exec ", f"until [ -e '{gate}' ]; do sleep 0.1; done\nexec "
    )
    with open(machine.agents.path, "w") as file:
        file.write(waits)
    with machine.watched():
        looking = dashboard()
        page = looking.page
        page.get_by_role("button", name="Start an agent here").click()
        page.get_by_role("combobox", name="Agent").fill("simulant")
        page.get_by_label("What it is to do").fill("refactor")
        page.get_by_label("Name of the session").fill("roof")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("dialog")).to_contain_text("It is started all the same when you close this.")
        expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
        with page.expect_response(
            lambda each: each.url.endswith("/api/runs") and each.request.method == "POST"
        ) as came:
            page.get_by_role("button", name="Close").click()
            page.get_by_role("link", name="Settings").first.click()
            with open(gate, "w"):
                pass
        started = came.value.json()
        assert (started["result"], started["delivery"]["result"]) == ("attention", "refused")
        assert started["why"].endswith("; the prompt was not typed")
        # Whoever went elsewhere is left there.
        expect(page.get_by_role("heading", name="Settings")).to_be_visible()
        page.get_by_role("link", name="Runs").first.click()
        looking.open_run("roof")
        expect(page.get_by_label("Tell it something")).to_have_value("refactor")
        expect(page.locator(".said")).to_contain_text("Nothing was typed: simulant wants somebody")


def test_nothing_moves_about_while_the_page_is_loaded(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    for number in range(30):
        tmux.run("new-session", "-d", "-s", f"shell{number}", "-n", "w", "sleep 3600")
    with machine.watched():
        page = dashboard().page
        page.reload()
        expect(page.locator("li.run")).to_have_count(30)
        moved = page.evaluate(
            """() => new Promise(resolve => {
                const told = each => [each.value, ...each.sources.map(source => source.node?.className ?? '')];
                const observer = new PerformanceObserver(list => resolve(list.getEntries().map(told)));
                observer.observe({ type: 'layout-shift', buffered: true });
                setTimeout(() => resolve([]), 500);
            })"""
        )
        assert sum(value for value, *_ in moved) < 0.001, moved


def test_nothing_is_offered_to_be_brought_back_where_nothing_was_saved(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    with machine.watched() as watcher:
        page = dashboard().page
        expect(page.get_by_role("heading", name="No pane is open")).to_be_visible()
        page.wait_for_load_state("networkidle")
        expect(page.get_by_role("link", name="Bring back what was saved")).to_have_count(0)
        machine.agent("roof")
        watcher.await_state("roof:0.0", "idle")
        expect(page.locator("li.run")).to_have_count(1)
        machine.perdure.ok("save")
        tmux.kill()
        expect(page.get_by_role("link", name="Bring back what was saved")).to_be_visible()
