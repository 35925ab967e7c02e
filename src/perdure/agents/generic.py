"""Plain programs and shells: what a pane runs when no agent is in it."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import basename

from perdure.model.identity import AgentDetails, Identity
from perdure.model.process import Command, Process
from perdure.model.screen import Screen, ScreenReading
from perdure.ports import HostView, Sighting

_SHELLS = frozenset("ash bash csh dash elvish fish ksh ksh93 mksh nu pwsh rbash sh tcsh xonsh yash zsh".split())


def is_shell(name: str) -> bool:
    """Tell whether a process of this name waits for commands at a prompt, unless it was told to run one."""
    return name.lstrip("-") in _SHELLS


#: Shell options whose value is a word of its own, and which leave the shell interactive.
_VALUED = frozenset({"--rcfile", "--init-file", "-o", "+o", "-O", "+O", "--init-command", "--config", "--env-config"})
_FISH_VALUED = frozenset({"-C", "-d", "-D"})
_RUNS_SOMETHING = frozenset({"--command", "--commands", "-Command", "-File", "-EncodedCommand"})


class Generic:
    """Any program at all: it never claims a process, and starts again exactly as it was started."""

    name = "generic"
    programs: frozenset[str] = frozenset()
    same_directory = False
    environment: frozenset[str] = frozenset()
    signs: tuple[str, ...] = ()

    def score(self, process: Process) -> float:
        """Return 0: a plain program is what no agent claims."""
        return 0.0

    def identify(self, sighting: Sighting, host: HostView) -> Sequence[Identity]:
        """Return the one thing there is to say: a program has no conversation."""
        return (Identity(agent=self.name, because=("a plain program has no conversation",)),)

    def describe(self, identity: Identity, process: Process, host: HostView) -> AgentDetails:
        """Return nothing known."""
        return AgentDetails()

    def read_screen(self, screen: Screen) -> ScreenReading | None:
        """Return None: any text may be on a program's screen."""
        return None

    def resume(self, identity: Identity, launched: Command) -> Command | None:
        """Return the command as it was started."""
        return launched


def program_of(tree: Sequence[Process]) -> Command | None:
    """Return what runs in the foreground of a pane, None for a shell at its prompt or when it cannot be known.

    `tree` has parents before children. That is the leader of the foreground process group; a pipeline whose
    first program has ended already is known by the oldest one left.
    """
    foreground = [process for process in tree if process.foreground]
    leaders = [process for process in foreground if process.pid == process.pgid]
    if leaders:
        program = leaders[0]
    elif foreground:
        program = min(foreground, key=lambda process: process.pid)
    else:
        return None
    if not program.argv or is_waiting_shell(program.argv):
        return None
    return Command(argv=program.argv, cwd=_cwd(program, tree), environ=program.environ)


def is_waiting_shell(argv: Sequence[str]) -> bool:
    """Return whether this command line is an interactive shell's, not that of a shell running a script."""
    shell = basename(argv[0]).removeprefix("-") if argv else ""
    if shell not in _SHELLS:
        return False
    valued = _VALUED | _FISH_VALUED if shell == "fish" else _VALUED
    words = iter(argv[1:])
    for word in words:
        if word in valued:
            next(words, None)
        elif word in ("-", "--"):
            return next(words, None) is None
        elif _runs_something(word):
            return False
    return True


def _runs_something(word: str) -> bool:
    """A script, or -c alone or among other letters."""
    if word.startswith("--") or word in _RUNS_SOMETHING:
        return word in _RUNS_SOMETHING
    return not word.startswith(("-", "+")) or "c" in word[1:]


def _cwd(process: Process, tree: Sequence[Process]) -> str:
    """A program that hides its directory (sudo) is started again where its parent is."""
    by_pid = {other.pid: other for other in tree}
    at: Process | None = process
    for _ in tree:
        if at is None or at.cwd is not None:
            break
        at = by_pid.get(at.ppid)
    return at.cwd if at is not None and at.cwd is not None else ""
