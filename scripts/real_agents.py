"""Install the real agent programs that tests/real_agents run.

Every agent has a directory of its own in the cache, is installed on its own, and carries a stamp of the pins it was
installed from, which is written last: an interrupted installation is no installation. A pin is a file in
requirements/real-agents/<agent>/; where packages come from is left to the settings of npm and pip.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PINS = os.path.join(ROOT, "requirements", "real-agents")

#: How much may be going on at once: unpacking is bound by two cores as much as by the network.
NPM_AT_ONCE, PIP_AT_ONCE = 2, 1
#: Half an hour: a slow line is no failure, a hanging one is.
PATIENCE = 1800

NODE_HINT = "node is not installed: `brew install node`, `sudo apt-get install -y nodejs npm` or https://nodejs.org"


class Failed(Exception):
    """An agent could not be installed; the reason is one line for a person."""


class Agent(NamedTuple):
    """One program, and what is special about installing it."""

    name: str
    #: The script to run with node once the files are there. npm itself no longer does, and of the rest none is needed.
    postinstall: str | None = None

    @property
    def pins(self) -> str:
        """The directory with its pins."""
        return os.path.join(PINS, self.name)

    @property
    def from_npm(self) -> bool:
        """It is an npm package; the others come from a Python index."""
        return os.path.exists(os.path.join(self.pins, "package.json"))

    @property
    def version(self) -> str:
        """The pinned version."""
        with open(os.path.join(self.pins, "package.json" if self.from_npm else "requirements.txt")) as file:
            found = re.search(r'(?:": "|==)(\d[\w.]*)', file.read())
        assert found is not None, f"{self.name} has no pin"
        return found[1]

    @property
    def stamp(self) -> str:
        """What an installation from these pins is marked with."""
        digest = hashlib.sha256()
        for name in sorted(os.listdir(self.pins)):
            with open(os.path.join(self.pins, name), "rb") as file:
                digest.update(file.read())
        return f"{self.version} {digest.hexdigest()}\n"

    def directory(self, cache: str) -> str:
        """Where it is installed."""
        return os.path.join(cache, self.name)

    def binaries(self, cache: str) -> str:
        """The directory to put before PATH."""
        inside = os.path.join("node_modules", ".bin") if self.from_npm else "bin"
        return os.path.join(self.directory(cache), inside)

    def is_installed(self, cache: str) -> bool:
        """It is there, from these very pins."""
        return _read(os.path.join(self.directory(cache), ".installed")) == self.stamp

    def missing(self, cache: str) -> str | None:
        """Why it is not there, for a person; None when it is."""
        if self.is_installed(cache):
            return None
        reason = _read(_failure(cache, self))
        return reason.strip() if reason else "not installed: run scripts/real-agents"


AGENTS: Mapping[str, Agent] = {
    agent.name: agent
    for agent in (
        Agent("claude", postinstall="@anthropic-ai/claude-code/install.cjs"),
        Agent("codex"),
        Agent("gemini"),
        Agent("qwen"),
        Agent("opencode", postinstall="opencode-ai/postinstall.mjs"),
        Agent("copilot"),
        Agent("cline", postinstall="cline/postinstall.mjs"),
        Agent("goose"),
        Agent("hermes"),
        Agent("aider"),
    )
}


def cache_directory(environ: Mapping[str, str]) -> str:
    """Return where the programs are, for somebody with this environment."""
    named = environ.get("PERDURE_REAL_AGENTS")
    if named:
        return os.path.abspath(named)
    caches = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".cache")
    return os.path.join(caches, "perdure", "real-agents")


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _failure(cache: str, agent: Agent) -> str:
    """Where the reason is kept for which an agent is not there: tests that skip repeat it."""
    return os.path.join(cache, f"{agent.name}.failed")


def install(agent: Agent, cache: str) -> str:
    """Return "installed" or "already there"; raises Failed, and keeps the reason."""
    if agent.is_installed(cache):
        return "already there"
    directory = agent.directory(cache)
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    try:
        (_install_npm if agent.from_npm else _install_python)(agent, directory)
    except Failed as problem:
        _write(_failure(cache, agent), f"{problem}\n")
        raise
    _write(os.path.join(directory, ".installed"), agent.stamp)
    if os.path.exists(_failure(cache, agent)):
        os.unlink(_failure(cache, agent))
    return "installed"


def _install_npm(agent: Agent, directory: str) -> None:
    if shutil.which("npm") is None or shutil.which("node") is None:
        raise Failed(NODE_HINT)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(agent.pins, name), directory)
    # Errors only: several of these packages name a newer node than they need, and each says so ten times.
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    # Where there is no way out, that is known after seconds and not after minutes.
    quiet += ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"]
    # Not `npm ci`: the lock may lack optional packages of other systems, and that insists on them.
    _run(["npm", "install", "--no-save", "--ignore-scripts", "--omit=dev", *quiet], directory)
    if agent.postinstall is not None:
        script = os.path.join(directory, "node_modules", agent.postinstall)
        _run(["node", script], os.path.dirname(script))


def _install_python(agent: Agent, directory: str) -> None:
    # Neither takes the newest Pythons.
    names = os.environ.get("PYTHON") or "python3.12 python3.11 python3 /usr/bin/python3"
    find = [os.path.join(ROOT, "scripts", "find-python")]
    python = _run(find, directory, env={**os.environ, "PYTHON": names}).strip()
    _run([python, "-m", "venv", directory], directory)
    pins = [os.path.join(agent.pins, name) for name in ("requirements.txt", "constraints.txt")]
    pip = [os.path.join(directory, "bin", "python"), "-m", "pip", "install", "-qq", "-r", pins[0], "-c", pins[1]]
    # A user's own settings must not lead out of the directory.
    own = {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    kept = {name: value for name, value in os.environ.items() if name not in ("PIP_TARGET", "PIP_PREFIX", "PYTHONHOME")}
    _run(pip, directory, env={**kept, **own}, name="pip")


def _run(command: Sequence[str], cwd: str, env: Mapping[str, str] | None = None, name: str | None = None) -> str:
    """Return what a command printed; raises Failed with its last words."""
    name = name or os.path.basename(command[0])
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Failed(f"{name}: {problem}") from None
    if done.returncode:
        said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        words = next((line for line in said if re.match(r"(?i)(npm )?error", line)), (said or ["no reason given"])[-1])
        raise Failed(f"{name} exited with {done.returncode}: {words}")
    return done.stdout


def install_all(agents: Iterable[Agent], cache: str, say: Callable[[str], None]) -> int:
    """Install what is missing, a line for each as it is done; return how many are not there."""
    told = threading.Lock()

    def one(agent: Agent) -> bool:
        try:
            outcome, there = install(agent, cache), True
        except (Failed, OSError) as problem:
            outcome, there = f"FAILED: {problem}", False
        with told:
            say(f"{agent.name:<9} {agent.version:<9} {outcome}")
        return there

    with ThreadPoolExecutor(NPM_AT_ONCE) as npm, ThreadPoolExecutor(PIP_AT_ONCE) as pip:
        done = [(npm if agent.from_npm else pip).submit(one, agent) for agent in agents]
        return sum(not each.result() for each in done)


def main(arguments: Sequence[str]) -> int:
    unknown = [name for name in arguments if name not in AGENTS]
    if unknown:
        print(f"no such agent: {', '.join(unknown)} (there are {', '.join(AGENTS)})", file=sys.stderr)
        return 2
    wanted = [AGENTS[name] for name in arguments] or list(AGENTS.values())
    cache = cache_directory(os.environ)
    os.makedirs(cache, exist_ok=True)
    with open(os.path.join(cache, ".lock"), "w") as lock:
        # Two at once would take each other's half-made directories away.
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = install_all(wanted, cache, lambda line: print(line, flush=True))
    if not missing:
        return 0
    print(f"{missing} of {len(wanted)} agents are missing, and tests that need them will be skipped", file=sys.stderr)
    return 4


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
