"""The dashboard in a real browser, and what it complains of."""

from __future__ import annotations

import os
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, expect

#: How long something may take to be shown, in milliseconds; generous, since nothing is measured by it.
PATIENCE = 60_000
#: The sizes of a desk and of a phone.
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
AXE = os.path.join(ROOT, "web", "node_modules", "axe-core", "axe.min.js")

expect.set_options(timeout=PATIENCE)


def launch(playwright: Playwright, program: str, home: str) -> Browser:
    """Start a browser that keeps what it writes in a directory of its own."""
    return playwright.chromium.launch(
        executable_path=program,
        # As root there is no sandbox; whatever is shown comes from the daemon of the test.
        args=["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"] if os.geteuid() == 0 else [],
        env={"HOME": home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TZ": "UTC"},
    )


class Dashboard:
    """One browser's window on the dashboard."""

    def __init__(self, browser: Browser, *, phone: bool = False, dark: bool = False) -> None:
        self._context = browser.new_context(
            viewport=PHONE if phone else DESK,  # type: ignore[arg-type]  # a size
            has_touch=phone,
            is_mobile=phone,
            device_scale_factor=2 if phone else 1,
            color_scheme="dark" if dark else "light",
            timezone_id="UTC",
            locale="en-GB",
        )
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(PATIENCE)
        #: What the browser found wrong: errors of the program, and whatever the content security policy stopped.
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._heard)

    def _heard(self, message: ConsoleMessage) -> None:
        # That an answer was an error is shown to the person; here it counts what the program itself does wrong.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def log_in(self, link: str) -> None:
        """Follow a link, and wait until the page is up to date."""
        self.page.goto(link)
        expect(self.page.locator(".link.live")).to_be_visible()

    def go(self, screen: str) -> None:
        """Go to a screen by its tab."""
        self.page.locator(f'nav[aria-label=Screens] a[href="/{screen}"]').click()

    def open_run(self, name: str) -> None:
        """Open a run from the first screen, and wait for its terminal."""
        self.page.locator("li.run a", has=self.page.get_by_text(name, exact=True)).click()
        expect(self.page.locator(".xterm-screen")).to_be_visible()

    def findings(self) -> list[str]:
        """Return what axe finds serious on what is shown: a rule, and where it is broken."""
        with open(AXE) as file:
            # By the way of the debugger: the page's own policy lets no foreign script in.
            self.page.evaluate(file.read())
        result: dict[str, Any] = self.page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
        grave = [each for each in result["violations"] if each["impact"] in ("serious", "critical")]
        return [f"{each['id']}: {[node['target'] for node in each['nodes']]}" for each in grave]

    def close(self) -> None:
        """Close the window."""
        self._context.close()
