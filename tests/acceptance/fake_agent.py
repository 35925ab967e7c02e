"""An agent that only waits, with the files a real one keeps: what identification sees of it is the same."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime

from tests.acceptance.kit import wait_for
from tests.at_rest import has_begun
from tests.conftest import PrivateHome
from tests.tmux_server import TmuxServer

CONVERSATION = "11111111-2222-4333-8444-555555555555"
ANOTHER = "99999999-8888-4777-8666-555555555555"
MODEL = "claude-opus-4-1"


class FakeAgent:
    """A process called like the agent in a pane, and its registry and transcripts as far as a test writes them."""

    def __init__(self, home: PrivateHome, name: str) -> None:
        folder = os.path.join(home.root, "bin")
        os.makedirs(folder, exist_ok=True)
        os.chmod(home.root, 0o711)
        self.script = os.path.join(folder, "claude")
        if not os.path.exists(self.script):  # written once: an earlier agent may be about to read it
            with open(self.script, "w") as file:
                file.write("#!/bin/sh\nwhile :; do sleep 1000; done\n")
            os.chmod(self.script, 0o755)
        self.name = name
        self.home = home.home
        self.cwd = os.path.realpath(home.home)
        self.pane = ""
        self.pid = 0

    def start(self, tmux: TmuxServer, *args: str, cwd: str | None = None) -> FakeAgent:
        """Start it in a new session."""
        self.cwd = os.path.realpath(cwd or self.cwd)
        format = "#{pane_id} #{pane_pid}"
        command = ["new-session", "-d", "-P", "-F", format, "-s", self.name, "-c", self.cwd, self.script, *args]
        # One word would go through a shell.
        made = tmux.run(*command) if args else tmux.run(*command[:-1], "/bin/sh", self.script)
        self.pane, pid = made.decode().split()
        self.pid = int(pid)
        wait_for(lambda: has_begun(tmux, self.pane), "the agent")
        return self

    @property
    def started(self) -> int:
        """When the process began, in the kernel's ticks."""
        with open(f"/proc/{self.pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[19])

    def register(self, conversation: str = CONVERSATION, *, started: int | None = None, pid: int | None = None) -> None:
        """Write the live registry entry of this process."""
        entry = {
            "pid": self.pid if pid is None else pid,
            "sessionId": conversation,
            "cwd": self.cwd,
            "procStart": str(self.started if started is None else started),
            "version": "2.1.325",
            "kind": "interactive",
            "status": "idle",
        }
        self._write(os.path.join("sessions", f"{self.pid}.json"), json.dumps(entry))

    def write_transcript(self, prompt: str, conversation: str = CONVERSATION) -> str:
        """Write one prompt and one answer; return the file."""
        at = datetime.now(UTC).isoformat()
        common = {
            "sessionId": conversation,
            "cwd": self.cwd,
            "version": "2.1.325",
            "gitBranch": "trunk",
            "timestamp": at,
        }
        usage = {
            "input_tokens": 10,
            "cache_creation_input_tokens": 200,
            "cache_read_input_tokens": 3000,
            "output_tokens": 40,
        }
        answer = {"id": "m1", "role": "assistant", "model": MODEL, "content": [{"type": "text", "text": "Done."}]}
        lines = [
            {"type": "user", "message": {"role": "user", "content": prompt}, "uuid": "u1", **common},
            {"type": "assistant", "message": {**answer, "usage": usage}, "uuid": "a1", **common},
        ]
        folder = re.sub(r"[^A-Za-z0-9]", "-", self.cwd)
        text = "".join(json.dumps(line) + "\n" for line in lines)
        return self._write(os.path.join("projects", folder, f"{conversation}.jsonl"), text)

    def _write(self, name: str, text: str) -> str:
        path = os.path.join(self.home, ".claude", name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path
