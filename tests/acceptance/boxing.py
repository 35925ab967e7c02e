"""The program with an input of its own, put where panes find it and known to Perdure as an agent of the user's."""

from __future__ import annotations

import json
import os
import shutil
import sys

from tests.acceptance import boxer
from tests.acceptance.kit import configure, wait_for
from tests.conftest import PrivateHome
from tests.tmux_server import TmuxServer

CONFIG = r"""
[agents.boxer]
binaries = ["boxer"]
screen = [
    { id = "attention.form", match = "^Allow this\\?", state = "attention", reason = "permission" },
    { id = "busy.work", match = "^~ working", region = "bottom", lines = 40, state = "busy" },
    { id = "idle.input", match = "^  ready$", region = "last", state = "idle" },
]
"""


class Ring:
    """Where boxers are, and what they were told."""

    def __init__(self, home: PrivateHome) -> None:
        folder = os.path.join(home.root, "bin")
        os.makedirs(folder, exist_ok=True)
        #: The program.
        self.path = os.path.join(folder, "boxer")
        with open(boxer.__file__) as source, open(self.path, "w") as file:
            file.write(f"#!{sys.executable} -I\n")
            shutil.copyfileobj(source, file)
        os.chmod(self.path, 0o755)
        self._told = os.path.join(home.home, "boxer.jsonl")
        with open(os.path.join(home.home, ".profile"), "a") as file:
            file.write(f"PATH='{folder}':$PATH\nPS1='$ '\n")
        configure(home, CONFIG)

    def start(self, tmux: TmuxServer, name: str, *words: str) -> str:
        """Start one in a session, and return its pane once it is there."""
        made = tmux.run(
            "new-session", "-d", "-P", "-F", "#{pane_id}", "-s", name, "-n", "w", self.path, *(words or ("",))
        )
        pane = made.decode().strip()
        wait_for(lambda: screen(tmux, pane).strip(), "the boxer")
        return pane

    def told(self) -> list[str]:
        """Return everything that was ever sent to any of them."""
        if not os.path.exists(self._told):
            return []
        with open(self._told) as file:
            return [json.loads(line) for line in file]


def screen(tmux: TmuxServer, pane: str) -> str:
    """Return what a pane shows."""
    return tmux.run("capture-pane", "-p", "-t", pane).decode()
