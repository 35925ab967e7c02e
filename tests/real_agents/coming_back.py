"""The crash, and the way back: what tests of restoring real agents stand on.

    names = prepare(stage, ("claude", …))     # their files, their hooks, and those of the user's shell
    agents = start_all(stage, names)
    back = crash_and_restore(stage, agents)   # saved, the server killed with -9, `perdure restore --json`
    assert back.row(agents[0])["result"] == "verified"

An agent that is started again finds nothing of the pane it was first started in: its program's place and its key come
from the files of a shell, as they do for whoever logs in after a crash, and its addresses from what Perdure saved.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import psutil

from perdure.model.screen import State
from perdure.model.wrapped import Stage as Wrapping
from perdure.model.wrapped import read_wrapper
from perdure.restore.replay import below_marker
from tests.real_agents.agents import KNOWN_PRICES, PROGRAMS
from tests.real_agents.kit import PATIENCE, SYSTEM_PATH, Agent, Sign, Stage, has_terminal
from tests.real_agents.seeing import state_of, wait_until
from tests.real_agents.stub_model import Seen

#: What the words of a key are in the name of a variable: Perdure neither keeps nor replays it.
KEYS = ("KEY", "TOKEN")

#: Those that are only certain of their conversation with our hooks, plugin or title. The others always are.
HOOKED = ("codex", "gemini", "hermes", "opencode", "qwen")

#: What is on the screen of those who leave there what was said before, once a new conversation has begun.
BEGUN: Mapping[str, Sign] = {
    "aider": r"All chat history cleared",
    "goose": r"Chat context cleared",
    "hermes": r"New session started",
}


def live_at_home(stage: Stage) -> None:
    """Write the files of the user's shell: where programs are, the keys, and nothing that says which model to ask."""
    node = os.path.dirname(shutil.which("node") or "")
    path = [node, SYSTEM_PATH, *(program.binaries for program in PROGRAMS.values() if program.missing is None)]
    lines = [f"export PATH={shlex.quote(':'.join(filter(None, path)))}", "PS1='$ '"]
    for name, value in _exported(stage).items():
        lines.append(f"export {name}={shlex.quote(value)}")
    stage.write(".bashrc", "\n".join(lines) + "\n")
    stage.write(".profile", ". ~/.bashrc\n")
    # With a plugin, opencode looks for packages before it starts, and would go on looking for a minute.
    stage.write(".npmrc", "fetch-retries=0\n")


def _exported(stage: Stage) -> dict[str, str]:
    found: dict[str, str] = {}
    for program in PROGRAMS.values():
        environ = stage.environ(program)
        found |= {name: environ[name] for name in ("TMPDIR", "PIP_NO_INDEX", "LANG")}
        found |= {name: value for name, value in environ.items() if name.endswith(KEYS)}
    # No agent is to ask the world outside for a newer one of itself.
    quiet = ("OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE", "GOOSE_DISABLE_KEYRING")
    return {**found, **dict.fromkeys(quiet, "1"), "GOOSE_TELEMETRY_ENABLED": "false", **KNOWN_PRICES}


def prepare(stage: Stage, names: Iterable[str]) -> list[str]:
    """Set up those of these agents that are installed, with hooks where they need them, and the user's shell."""
    live_at_home(stage)
    found = can_run(names)
    for name in found:
        stage.configure(name)
        if name in HOOKED:
            stage.perdure.ok("hooks", "install", name)
    return found


def can_run(names: Iterable[str]) -> list[str]:
    """Return those of these agents that are installed."""
    return [name for name in names if PROGRAMS[name].missing is None]


def start_all(stage: Stage, names: Iterable[str], args: Mapping[str, Sequence[str]] | None = None) -> list[Agent]:
    """Start agents beside each other, and wait until all are ready."""
    words = args or {}
    agents = [stage.start(name, *words.get(name, ()), ready="") for name in names]
    for agent in agents:
        agent.wait_for(agent.program.ready, timeout=agent.program.patience)
    return agents


def answers_to(prompts: Mapping[Agent, str]) -> dict[Agent, Seen]:
    """Ask every agent something, wait until each has answered, and return the requests they made."""
    before = {agent: len(agent.stage.stub.seen) for agent in prompts}
    for agent, prompt in prompts.items():
        _wait_until_at_rest(agent)
        agent.type(prompt)
    made = {agent: agent.wait_for_request(prompt, before[agent]) for agent, prompt in prompts.items()}
    for agent, seen in made.items():
        agent.wait_for(rf"STUB-REPLY {seen.number}\b", where="history")
    for agent in prompts:
        wait_until(agent, State.IDLE)
    return made


def _wait_until_at_rest(agent: Agent) -> None:
    """Wait until it takes a prompt. What became of the turn in which its server died may have been an error."""
    agent.wait_for(lambda screen: state_of(agent, screen) in (State.IDLE, State.ERROR))


def begin_anew(agent: Agent, said: str) -> None:
    """Begin a new conversation where `said` was the last thing on the screen, and wait until it has begun."""
    wait_until(agent, State.IDLE)
    agent.new_conversation()
    if agent.program.name == "hermes":
        agent.wait_for(r"Approve Once")
        agent.type("1")
    agent.wait_for(BEGUN.get(agent.program.name, lambda screen: said not in screen))
    agent.wait_until_still()


def own_screen(agent: Agent) -> str:
    """Return what the pane shows, without what Perdure has replayed in it."""
    return "\n".join(below_marker(agent.screen().split("\n")))


def wait_for_words(agent: Agent, *words: str) -> None:
    """Wait until the agent itself shows all of these."""
    agent.wait_for(lambda screen: all(each in own_screen(agent) for each in words), timeout=agent.program.patience)


def press_enter(agent: Agent) -> None:
    """Press Enter until something starts: the one before may still be on its way out, which the pane then says."""
    deadline = time.monotonic() + agent.program.patience
    agent.keys("Enter")
    while _waits_for_enter(agent):
        assert time.monotonic() < deadline, agent
        time.sleep(0.5)
        if agent.screen().endswith("Enter tries again."):
            agent.keys("Enter")


def _waits_for_enter(agent: Agent) -> bool:
    """Whether nothing was started yet in a pane that Perdure has made."""
    wrapped = read_wrapper(psutil.Process(int(agent.show("#{pane_pid}"))).cmdline())
    return wrapped is not None and wrapped.stage is Wrapping.PRELUDE


class Back(NamedTuple):
    """What `perdure restore --json` said, with the agents in the panes they have now."""

    code: int
    said: Any
    targets: Mapping[Agent, str]

    def row(self, agent: Agent) -> Any:
        """Return the step of an agent's pane."""
        return next(row for row in self.said["steps"] if row["target"] == self.targets[agent])


def crash(stage: Stage, agents: Iterable[Agent]) -> None:
    """Kill the server with -9, and wait until nothing is left that may still write: some do as they end."""
    # A daemon has no terminal, and stays.
    left = [process for agent in agents for process in agent.tree() if has_terminal(process.pid)]
    stage.tmux.kill9()
    assert not psutil.wait_procs(left, PATIENCE)[1]


def targets_of(agents: Iterable[Agent]) -> dict[Agent, str]:
    """Return where agents are, as a step of a restore names it."""
    return {agent: agent.show("#{session_name}:#{window_index}.#{pane_index}") for agent in agents}


def restore(stage: Stage, targets: Mapping[Agent, str], *args: str) -> Back:
    """Bring the last snapshot back; every agent is in the pane then that took the place of its own."""
    ran = stage.perdure("restore", "--json", *args, env={"SHELL": "/bin/bash"}, timeout=300)
    assert ran.code in (0, 4), ran
    back = Back(ran.code, ran.json, targets)
    for agent in targets:
        if (pane := back.row(agent)["pane"]) is not None:
            agent.pane = pane
    return back


def crash_and_restore(stage: Stage, agents: Sequence[Agent], *args: str) -> Back:
    """Save, kill the server with -9, and bring everything back."""
    targets = targets_of(agents)
    stage.save()
    stage.tmux.kill9()
    return restore(stage, targets, *args)
