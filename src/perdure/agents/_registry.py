"""Which agents are known, and which process of a pane is its agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from os.path import basename

from perdure.agents._program import is_shell
from perdure.agents._spec import Ordinary
from perdure.agents.aider import Aider
from perdure.agents.amp import Amp
from perdure.agents.claude import Claude
from perdure.agents.codex import Codex
from perdure.agents.copilot import Copilot
from perdure.agents.cursor import Cursor
from perdure.agents.gemini import Gemini
from perdure.agents.goose import Goose
from perdure.agents.hermes import Hermes
from perdure.agents.opencode import OpenCode
from perdure.agents.qwen import Qwen
from perdure.errors import ConfigError
from perdure.model.agent import AgentSpec
from perdure.model.process import Process
from perdure.ports import AgentAdapter

_BUILT_IN: tuple[AgentAdapter, ...] = (
    Aider(),
    Amp(),
    Claude(),
    Codex(),
    Copilot(),
    Cursor(),
    Gemini(),
    Goose(),
    Hermes(),
    OpenCode(),
    Qwen(),
)

#: How far into a command line an interpreter's script may stand.
_SCRIPT_WITHIN = 6

#: What any program may need to be itself again. Names that could hold a secret have no place here, nor have
#: those that tie a process to the terminal it was started in (TMUX, TMUX_PANE, TERM).
_BASE_ENVIRONMENT = frozenset(
    """
    HOME PATH SHELL LANG LC_ALL LC_CTYPE TZ EDITOR VISUAL PAGER
    VIRTUAL_ENV CONDA_DEFAULT_ENV CONDA_PREFIX NODE_ENV
    XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME
    """.split()
)


#: Depth, in the background, minus the score, order in the tree: the least of these is the pane's agent.
_Claim = tuple[int, bool, float, int, AgentAdapter, Process]


def adapters(added: Mapping[str, AgentSpec] | None = None) -> tuple[AgentAdapter, ...]:
    """Return every known agent, always in the same order: those that come with the program, then those `added`."""
    if not added:
        return _BUILT_IN
    taken = {adapter.name for adapter in _BUILT_IN} & added.keys()
    if taken:
        raise ConfigError(
            f"There is an agent called {min(taken)} already: give yours another name than [agents.{min(taken)}]."
        )
    return (*_BUILT_IN, *(Ordinary(name, spec) for name, spec in added.items()))


def environment_names(known: Iterable[AgentAdapter] = _BUILT_IN) -> frozenset[str]:
    """Return the variables worth reading from a process: where agents live and whom they talk to, never secrets."""
    return _BASE_ENVIRONMENT.union(*(adapter.environment for adapter in known))


def agent_of(
    tree: Sequence[Process], known: tuple[AgentAdapter, ...] = _BUILT_IN
) -> tuple[AgentAdapter, Process] | None:
    """Return the pane's agent and its process, None when no process is one.

    `tree` has parents before children. The process nearest the root wins: what an agent starts (a sub-agent, a
    hook, a tool) is not the pane's agent. Among equals the one in the foreground, then the higher score.
    """
    depths: dict[int, int] = {}
    claims: list[_Claim] = []
    for process in tree:
        depths[process.pid] = depth = depths.get(process.ppid, -1) + 1
        adapter, score = _best(process, known)
        if adapter is not None:
            claims.append((depth, not process.foreground, -score, len(claims), adapter, process))
    if not claims:
        return None
    first = min(claims, key=lambda claim: claim[:4])
    return _past_launchers(first, claims, {process.pid: process.ppid for process in tree})


def _past_launchers(
    claim: _Claim, claims: Sequence[_Claim], parents: Mapping[int, int]
) -> tuple[AgentAdapter, Process]:
    """A wrapper script steps aside for the program it started, which the same adapter is surer of.

    A shell is never an agent itself, so it does for one further down as well: it may run it through others.
    """
    while True:
        launcher = claim[5]
        inner = [
            c
            for c in claims
            if c[4] is claim[4]
            and c[2] < claim[2]
            and (c[5].ppid == launcher.pid or (is_shell(launcher.argv) and _is_below(c[5].pid, launcher.pid, parents)))
        ]
        if not inner:
            return claim[4], launcher
        claim = min(inner, key=lambda c: c[:4])


def _is_below(pid: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    seen: set[int] = set()
    while pid in parents and pid not in seen:
        seen.add(pid)
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


def _best(process: Process, known: tuple[AgentAdapter, ...]) -> tuple[AgentAdapter | None, float]:
    best: AgentAdapter | None = None
    highest = 0.0
    for adapter in _possible(process, known):
        score = _score(adapter, process)
        if score > highest:
            best, highest = adapter, score
    return best, highest


def _possible(process: Process, known: tuple[AgentAdapter, ...]) -> Iterable[AgentAdapter]:
    """Those adapters that know the process by name: most processes are nobody's, and a machine has many."""
    index = _index(known)
    names = {process.comm, basename(process.exe or ""), *map(basename, process.argv[:_SCRIPT_WITHIN])}
    # A module is named with dots: `python -m agent.main`.
    found = [index[name] for name in (*names, *(name.partition(".")[0] for name in names)) if name in index]
    return dict.fromkeys(adapter for adapters in found for adapter in adapters)


@cache
def _index(known: tuple[AgentAdapter, ...]) -> dict[str, list[AgentAdapter]]:
    index: dict[str, list[AgentAdapter]] = {}
    for adapter in known:
        for name in adapter.programs:
            index.setdefault(name, []).append(adapter)
    return index


def _score(adapter: AgentAdapter, process: Process) -> float:
    try:
        return adapter.score(process)
    except Exception:  # one broken adapter costs only itself
        import logging

        logging.getLogger(__name__).exception("adapter %s could not judge process %d", adapter.name, process.pid)
        return 0.0
