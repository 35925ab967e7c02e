"""Which agents are known, and which process of a pane is its agent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from os.path import basename
from typing import TYPE_CHECKING

from perdure.agents._program import is_shell
from perdure.agents.generic import is_waiting_shell
from perdure.model.process import Process, is_below

if TYPE_CHECKING:
    from perdure.model.agent import AgentSpec
    from perdure.ports import AgentAdapter

#: Every agent that comes with the program, and what its processes may be called. `<name>` holds its adapter as
#: `ADAPTER`, and is imported when such a process is seen: most machines run two or three of these, and a save is short.
_BUILT_IN: Mapping[str, tuple[str, ...]] = {
    "aider": ("aider", "__main__.py", "main.py"),
    "amp": ("amp", "main.js"),
    "claude": ("claude", "claude.exe", "cli.js", "cli.mjs"),
    "cline": ("cline", ".cline"),
    "codex": ("codex", "codex.js"),
    "copilot": ("copilot", "index.js", "npm-loader.js"),
    "cursor": ("cursor-agent", "agent", "index.js"),
    "gemini": ("gemini", "gemini.js", "index.js"),
    "goose": ("goose",),
    "hermes": ("hermes", "hermes_cli"),
    "opencode": ("opencode", "opencode.exe"),
    "qwen": ("qwen", "cli.js", "index.js"),
    "simulant": ("simulant", "agent.py"),
}

#: Those that can record their conversation themselves; `<name>/hooks.py` tells how.
HOOKED = ("claude", "codex", "copilot", "gemini", "hermes", "opencode", "qwen")

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
_Claim = tuple[int, bool, float, int, "AgentAdapter", Process]


_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class Roster:
    """The agents that are known, each imported when it is first needed."""

    def __init__(self, late: Mapping[str, tuple[str, ...]], at_hand: Sequence[AgentAdapter] = ()) -> None:
        self._late = late
        self._at_hand = tuple(at_hand)
        self._index: dict[str, list[str | AgentAdapter]] = {}
        for name, programs in late.items():
            for program in programs:
                self._index.setdefault(program, []).append(name)
        for adapter in self._at_hand:
            for program in adapter.programs:
                self._index.setdefault(program, []).append(adapter)

    def everyone(self) -> tuple[AgentAdapter, ...]:
        """Return every agent, always in the same order."""
        return (*map(_load, self._late), *self._at_hand)

    def called(self, names: Collection[str]) -> dict[str, AgentAdapter]:
        """Return those with these names, by their names, as far as they are known; no other is imported."""
        late = (_load(name) for name in self._late if name in names)
        at_hand = (adapter for adapter in self._at_hand if adapter.name in names)
        return {adapter.name: adapter for adapter in (*late, *at_hand)}

    def possible(self, comm: str, exe: str | None, argv: Sequence[str]) -> Collection[AgentAdapter]:
        """Return those that know a process by name: most processes are nobody's, and a machine has many."""
        names = {comm, basename(exe or ""), *map(basename, argv[:_SCRIPT_WITHIN])}
        # A module is named with dots: `python -m agent.main`.
        found = [
            self._index[name] for name in (*names, *(name.partition(".")[0] for name in names)) if name in self._index
        ]
        if not found:
            return ()
        adapters = (_load(each) if isinstance(each, str) else each for some in found for each in some)
        return dict.fromkeys(adapters)

    def environment(self, comm: str, exe: str | None, argv: Sequence[str]) -> frozenset[str]:
        """Return the variables worth keeping of a process: what any may need, and what its agent does. Never secrets."""
        return _environment(tuple(self.possible(comm, exe, argv)))

    def replays(self, comm: str, exe: str | None, argv: Sequence[str], foreground: bool) -> bool:
        """Return whether a process may be started again: an agent, or a program in the foreground. No shell at its prompt."""
        return not is_waiting_shell(argv) and (foreground or bool(self.possible(comm, exe, argv)))


@cache
def _environment(adapters: tuple[AgentAdapter, ...]) -> frozenset[str]:
    return _BASE_ENVIRONMENT.union(*(adapter.environment for adapter in adapters))


@cache
def _load(name: str) -> AgentAdapter:
    adapter: AgentAdapter = import_module(f"perdure.agents.{name}").ADAPTER
    return adapter


@cache
def _built_in() -> Roster:
    return Roster(_BUILT_IN)


def roster(added: Mapping[str, AgentSpec] | None = None) -> Roster:
    """Return the agents that come with the program, and after them those `added`."""
    own = {name: spec for name, spec in (added or {}).items() if name not in _BUILT_IN}
    if not own:
        return _built_in()
    from perdure.agents._spec import Ordinary

    return Roster(_BUILT_IN, [Ordinary(name, spec) for name, spec in own.items()])


def clashes(added: Mapping[str, AgentSpec]) -> Iterator[str]:
    """Yield a sentence for each of these agents that stands back behind one that comes with the program.

    No failure: a table somebody wrote may meet an agent that a later version knows by itself, and must not stop a save.
    """
    for name, spec in added.items():
        if name in _BUILT_IN:
            yield f"[agents.{name}] is left out: perdure knows an agent of that name itself."
            continue
        for binary in spec.binaries:
            process = Process(
                pid=0, ppid=0, start_ticks=0, started_at=_LONG_AGO, pgid=0, foreground=True, comm=binary, argv=(binary,)
            )
            for adapter in _built_in().possible(binary, None, (binary,)):
                if _score(adapter, process) > 0:
                    yield f"[agents.{name}] does not get {binary!r}: that is the agent {adapter.name}."


def adapters(added: Mapping[str, AgentSpec] | None = None) -> tuple[AgentAdapter, ...]:
    """Return every known agent, always in the same order: those that come with the program, then those `added`."""
    return roster(added).everyone()


def environment_names(added: Mapping[str, AgentSpec] | None = None) -> frozenset[str]:
    """Return every variable that is read from some process by itself; none of them is a secret by its name."""
    return _environment(adapters(added))


def agent_of(tree: Sequence[Process], known: Roster | None = None) -> tuple[AgentAdapter, Process] | None:
    """Return the pane's agent and its process, None when no process is one.

    `tree` has parents before children. The process nearest the root wins: what an agent starts (a sub-agent, a
    hook, a tool) is not the pane's agent. Among equals the one in the foreground, then the higher score.
    """
    known = known or _built_in()
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
            and (c[5].ppid == launcher.pid or (is_shell(launcher.argv) and is_below(c[5].pid, launcher.pid, parents)))
        ]
        if not inner:
            return claim[4], launcher
        claim = min(inner, key=lambda c: c[:4])


def _best(process: Process, known: Roster) -> tuple[AgentAdapter | None, float]:
    best: AgentAdapter | None = None
    highest = 0.0
    if process.is_wordless:
        # Its name alone does not say what it was told to do, and it ends this moment.
        return None, 0.0
    for adapter in known.possible(process.comm, process.exe, process.argv):
        score = _score(adapter, process)
        if score > highest:
            best, highest = adapter, score
    return best, highest


def _score(adapter: AgentAdapter, process: Process) -> float:
    try:
        return adapter.score(process)
    except Exception:  # one broken adapter costs only itself
        import logging

        logging.getLogger(__name__).exception("adapter %s could not judge process %d", adapter.name, process.pid)
        return 0.0
