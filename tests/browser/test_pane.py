"""A pane: its terminal is live in both directions, and says when it is not."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.acceptance.kit import settle
from tests.browser.looking import Dashboard
from tests.browser.machine import Machine
from tests.tmux_server import TmuxServer


def _size(tmux: TmuxServer, target: str) -> str:
    return tmux.show("#{pane_width}x#{pane_height}", target)


def _rows(page: Page) -> str:
    return page.locator(".xterm-rows").inner_text()


def test_what_is_typed_in_the_browser_arrives_in_tmux_and_what_comes_of_it_is_shown(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    # A shell that knows what was typed before.
    shell = "PS1='> ' bash --norc --noprofile"
    tmux.run("new-session", "-d", "-x", "90", "-y", "20", "-s", "work", "-n", "w", shell)
    with machine.watched() as watcher:
        watcher.await_run("work:0.0")
        looking = dashboard()
        looking.open_run("work")
        page = looking.page
        expect(page.locator(".size")).to_have_text("90x20")
        page.locator(".terminal-view").click()
        page.keyboard.type("echo $((6*7)) ü")
        page.keyboard.press("Enter")
        expect(page.locator(".xterm-rows")).to_contain_text("42 ü")
        watcher.wait_for(lambda: "42 ü" in machine.screen("work"), "the answer in tmux")
        # Keys for a finger, the arrow that brings the last command back, a colour that is no name.
        page.get_by_role("button", name="Up", exact=True).click()
        page.get_by_role("button", name="Enter", exact=True).click()
        watcher.wait_for(lambda: machine.screen("work").count("42 ü") == 2, "the same once more")
        page.keyboard.type("printf '\\033[38;2;10;200;30mgreen\\033[0m\\n'")
        page.keyboard.press("Enter")
        green = page.locator(".xterm-rows span", has_text="green").last
        expect(green).to_have_css("color", "rgb(10, 200, 30)")
        # What is copied elsewhere is pasted as everywhere, and goes to the program as it is.
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.evaluate("navigator.clipboard.writeText('echo pasted $((5*5))')")
        page.keyboard.press("Control+v")
        page.keyboard.press("Enter")
        expect(page.locator(".xterm-rows")).to_contain_text("pasted 25")
        # Whoever has only keys gets out again, also where no agent can be told anything.
        page.keyboard.press("F6")
        expect(page.get_by_role("button", name="Scrollback")).to_be_focused()
        # Looking has changed nothing for whoever is at the terminal.
        assert _size(tmux, "work") == "90x20"


def test_a_viewer_takes_the_size_only_when_told_to_and_gives_it_back(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    tmux.run("new-session", "-d", "-x", "90", "-y", "70", "-s", "work", "-n", "w", "sleep 3600")
    with machine.watched() as watcher:
        watcher.await_run("work:0.0")
        looking = dashboard(phone=True)
        looking.open_run("work")
        page = looking.page
        expect(page.locator(".size")).to_have_text("90x70")
        page.get_by_role("button", name="Take size").click()
        shown = page.locator(".size")
        watcher.wait_for(lambda: shown.inner_text() == _size(tmux, "work") != "90x70", "another size")
        cols, rows = _size(tmux, "work").split("x")
        assert int(cols) < 60
        assert int(rows) < 40
        page.get_by_role("link", name="All runs").click()
        watcher.wait_for(lambda: _size(tmux, "work") == "90x70", "its own size again")


def test_whoever_lost_the_size_to_another_is_offered_to_take_it_again(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    tmux.run("new-session", "-d", "-x", "90", "-y", "30", "-s", "work", "-n", "w", "sleep 3600")
    with machine.watched() as watcher:
        watcher.await_run("work:0.0")
        pages = []
        for phone in (False, True):
            looking = dashboard(phone=phone)
            looking.open_run("work")
            expect(looking.page.locator(".size")).to_have_text("90x30")
            pages.append(looking.page)
        first, second = pages
        for page in pages:
            page.get_by_role("button", name="Take size").click()
            expect(page.get_by_role("button", name="Give size back")).to_be_visible()
        expect(first.get_by_role("button", name="Take size")).to_be_visible()
        expect(first.get_by_role("button", name="Give size back")).to_have_count(0)
        second.get_by_role("button", name="Give size back").click()
        expect(second.get_by_role("button", name="Take size")).to_be_visible()
        watcher.wait_for(lambda: _size(tmux, "work") == "90x30", "its own size again")


def test_what_scrolled_away_is_fetched_when_asked_for(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    numbers = "seq 1001 1200; read go; seq 1201 1300; exec sleep 3600"
    tmux.run("new-session", "-d", "-x", "80", "-y", "10", "-s", "work", "-n", "w", numbers)
    with machine.watched() as watcher:
        watcher.wait_for(lambda: "1200" in machine.screen("work"), "the numbers")
        looking = dashboard()
        looking.open_run("work")
        page = looking.page
        expect(page.locator(".xterm-rows")).to_contain_text("1200")
        assert "1001" not in _rows(page)
        page.get_by_role("button", name="Scrollback").click()
        # It begins with what has scrolled away last, right above what is live.
        expect(page.locator(".xterm-rows > div").first).to_have_text("1182")
        expect(page.locator(".xterm-rows > div").last).to_have_text("1191")
        # Also where it is clicked below its last line.
        page.locator(".terminal-view").click()
        page.keyboard.press("Shift+PageUp")
        expect(page.locator(".xterm-rows > div").first).to_have_text("1173")
        # Whoever reads there stays there, though more has scrolled away meanwhile.
        tmux.run("send-keys", "-t", "work", "Enter")
        watcher.wait_for(lambda: "1300" in machine.screen("work"), "more of them")
        page.get_by_role("button", name="Scrollback").click()
        expect(page.locator(".note")).to_contain_text("live again")
        expect(page.locator(".xterm-rows > div").first).to_have_text("1173")
        page.locator(".xterm-screen").click()
        page.keyboard.press("Enter")
        expect(page.locator(".xterm-rows")).to_contain_text("1300")


def test_a_text_is_delivered_and_its_delivery_is_told(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    machine.agent("roof")
    with machine.watched() as watcher:
        watcher.await_state("roof:0.0", "idle")
        looking = dashboard()
        looking.open_run("roof")
        page = looking.page
        page.get_by_label("Tell it something").fill("plan the roof")
        page.keyboard.press("Enter")
        expect(page.locator(".said")).to_contain_text("It heard you")
        expect(page.locator(".xterm-rows")).to_contain_text("Noted as number 1 of this conversation: plan the roof")
        page.get_by_role("button", name="How is that known?").click()
        expect(page.locator(".because")).to_contain_text("registry")
        # What somebody has begun at the terminal is not sent along, unless that is wanted.
        watcher.await_state("roof:0.0", "idle", "attention(done)")
        tmux.run("send-keys", "-t", "roof", "-l", "and then ")
        watcher.wait_for(lambda: "you ▸ and then" in machine.screen("roof"), "what was begun")
        page.get_by_label("Tell it something").fill("the cellar")
        page.keyboard.press("Enter")
        expect(page.locator(".said")).to_contain_text("'and then' stands in its input")
        expect(page.get_by_label("Tell it something")).to_have_value("the cellar")
        assert "cellar" not in machine.screen("roof")
        page.get_by_role("button", name="Add it to that and send both").click()
        expect(page.locator(".xterm-rows")).to_contain_text("number 2 of this conversation: and then the cellar")


def test_the_page_goes_on_by_itself_when_the_daemon_was_restarted(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", "PS1='> ' sh")
    with machine.watched() as watcher:
        watcher.await_run("work:0.0")
        looking = dashboard()
        port = looking.page.url.split(":")[-1].strip("/")
        looking.open_run("work")
    expect(looking.page.locator(".link.lost")).to_be_visible()
    looking.complaints.clear()  # that nobody answered
    looking.page.locator(".terminal-view").click()
    looking.page.keyboard.type("a")
    expect(looking.page.locator(".note")).to_contain_text("nothing was typed")
    with machine.watched(port=port):
        expect(looking.page.locator(".link.live")).to_be_visible()
        looking.page.keyboard.type("b")
        expect(looking.page.locator(".xterm-rows")).to_contain_text("> b")
        # What was said of before is not said for ever.
        expect(looking.page.locator(".note")).to_contain_text("Typing in the terminal goes to the pane")
        looking.page.get_by_role("link", name="All runs").click()
        tmux.run("new-session", "-d", "-s", "later", "-n", "w", "sleep 3600")
        expect(looking.page.locator("li.run")).to_have_count(2)
    looking.complaints.clear()


def test_a_viewer_answers_nothing_that_a_program_asks_its_terminal(
    machine: Machine, tmux: TmuxServer, dashboard: Callable[..., Dashboard]
) -> None:
    # What kind it is, where the cursor is, which colours, modes and settings it has: that is tmux's to answer, once.
    asked = r"\033[c\033[>c\033[=c\033[5n\033[6n\033[?6n\033[18t\033[>q\033[?25$p\033[4$p\033]11;?\007\033]4;1;?\007\033P$qm\033\\"
    script = f"""stty -echo -icanon; read go; printf '{asked}'; sleep 1; printf 'end\\n'; cat -v"""
    for name in ("watched", "alone"):
        tmux.run("new-session", "-d", "-x", "100", "-y", "20", "-s", name, "-n", "w", "sh", "-c", script)
    # What is typed before they listen, tmux shows.
    settle(tmux)
    with machine.watched() as watcher:
        watcher.await_run("watched:0.0")
        looking = dashboard()
        looking.open_run("watched")
        for name in ("watched", "alone"):
            tmux.run("send-keys", "-t", name, "Enter")
        expect(looking.page.locator(".xterm-rows")).to_contain_text("end")
        for name in ("watched", "alone"):
            # Whatever was answered came before this.
            tmux.run("send-keys", "-t", name, "-l", "over")
            watcher.wait_for(lambda: "over" in machine.screen(name), "the end")  # noqa: B023 - waited for at once
        assert machine.screen("watched") == machine.screen("alone")
