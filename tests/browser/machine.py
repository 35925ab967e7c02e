"""A machine with agents on it, watched by a real daemon, for a browser to look at."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from perdure.chats.service import Chats
from perdure.chats.source import source_from
from perdure.host.places import store_url
from perdure.model.chat import Turn
from perdure.model.config import Config
from perdure.store import open_store
from tests.acceptance.simulants import Simulants
from tests.acceptance.watching import Watching, state_dir, watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


class Machine:
    """Simulated agents in a real tmux server, and the daemon that watches them."""

    def __init__(self, home: PrivateHome, tmux: TmuxServer, perdure: Perdure) -> None:
        self.home = home
        self.tmux = tmux
        self.perdure = perdure
        self.agents = Simulants(home)
        #: Set while it is watched.
        self.watcher: Watching | None = None

    def folder(self, name: str, *, branch: str | None = None) -> str:
        """Return a directory, which is a repository when it has a branch."""
        path = os.path.join(self.home.home, name)
        os.makedirs(path, exist_ok=True)
        if branch is not None and not os.path.isdir(os.path.join(path, ".git")):
            subprocess.run(["git", "init", "-q", "-b", branch, path], check=True)
        return path

    def agent(
        self, session: str, *prompt: str, think: float = 0.3, folder: str | None = None, branch: str | None = None
    ) -> None:
        """Start an agent in a session of its own."""
        where = self.folder(folder or session, branch=branch)
        words = [self.agents.path, "--think", str(think), *prompt]
        self.tmux.run("new-session", "-d", "-x", "100", "-y", "28", "-s", session, "-n", "w", "-c", where, *words)

    def tell(self, session: str, text: str) -> None:
        """Type a line into an agent, as somebody at its terminal does."""
        self.tmux.run("send-keys", "-t", session, "-l", text)
        self.tmux.run("send-keys", "-t", session, "Enter")

    def screen(self, session: str) -> str:
        """Return what a session's pane shows."""
        return self.tmux.run("capture-pane", "-p", "-t", session).decode()

    @contextmanager
    def watched(self, port: str = "0") -> Iterator[Watching]:
        """Have it watched, at whatever port is free, or at a certain one."""
        with watching(self.perdure, "--port", port) as watcher:
            self.watcher = watcher
            yield watcher
        self.watcher = None

    def link(self) -> str:
        """Return an address that logs in, once."""
        url: str = self.perdure.ok("open", "--json").json["url"]
        return url

    def chat(self, person: str, *said: str, title: str | None = None) -> str:
        """Have a chat, in which a person and an agent take turns."""
        store = open_store(store_url(os.environ, state_dir()), state_dir=state_dir())
        try:
            chats = Chats(store.chats, Config(), lambda: datetime.now(UTC))
            source = source_from({"platform": "telegram", "chat_id": person, "user_id": person, "user_name": person})
            chat = chats.open(source)
            roles = ("user", "assistant")
            at = datetime.now(UTC)
            turns = [Turn(position=0, role=roles[n % 2], content=text, at=at) for n, text in enumerate(said)]
            chats.append(chat.id, *turns)
            if title is not None:
                chats.set_title(source, chat.id, title)
            return chat.id
        finally:
            store.close()

    def job(self, text: str) -> str:
        """Start a command that goes on by itself."""
        job: str = self.perdure.ok("jobs", "run", "--json", "--cwd", self.home.home, "--shell", text).json["job"]
        return job


def chromium() -> str | None:
    """Return the browser of this machine, None where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name)) is not None), None)
