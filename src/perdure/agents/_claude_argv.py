"""Claude Code's command line: is it an agent, what does it say about the conversation, how is it brought back.

A word that is passed on by mistake is a prompt sent twice, so what is kept is decided by the program's own grammar.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from os.path import basename

from msgspec import Struct, structs

from perdure.agents._claude_options import KEPT, NOT_INTERACTIVE, ONCE, SUBCOMMANDS
from perdure.agents._options import Argument, Grammar
from perdure.model.identity import Identity
from perdure.model.process import Command, Process

_NAMES = frozenset({"claude", "claude.exe"})
_PACKAGE = "/@anthropic-ai/claude-code/"
_PACKAGE_SCRIPTS = frozenset({"cli.js", "cli.mjs"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
_RUNNERS = _SHELLS | {"node", "nodejs", "bun", "deno", "python", "python3"}
_VERSIONED_RUNNER = re.compile(r"(?:node|python)[\d.]+")

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)

#: Marks a process that runs below an agent; one started anew must not take itself for such a child.
_CHILD_MARKERS = frozenset({"CLAUDECODE", "CLAUDE_PID", "CLAUDE_EFFORT", "AI_AGENT"})
_CHILD_PREFIXES = ("CLAUDE_CODE_SESSION", "CLAUDE_CODE_CHILD", "CLAUDE_CODE_MESSAGING", "CLAUDE_CODE_ENTRYPOINT")


class Launch(Struct, frozen=True, kw_only=True):
    """What a command line says about the conversation it was started with."""

    #: The id after `--session-id`.
    given: str | None = None
    #: The id after `--resume`.
    resumed: str | None = None
    #: What `--resume` looks for when that is no id.
    searched: bool = False
    forked: bool = False
    continued: bool = False
    model: str | None = None

    @property
    def conversation(self) -> str | None:
        """The conversation the process began in; None when the line does not name it."""
        return self.given or (None if self.forked else self.resumed)


@cache
def _grammar() -> Grammar:
    return Grammar(ONCE + KEPT)


@cache
def _once() -> frozenset[str]:
    return Grammar(ONCE).names


def is_conversation(text: str) -> bool:
    """Return whether `text` can be a conversation's id."""
    return _UUID.fullmatch(text) is not None


def recognise(process: Process) -> float:
    """Return how surely this process is an interactive agent, 0 for no."""
    score, head = _program(process)
    if not score:
        return 0.0
    for argument in _grammar().parse(process.argv[head:]):
        if argument.name in NOT_INTERACTIVE:
            return 0.0
    return 0.0 if _operand(process.argv[head:]) in SUBCOMMANDS else score


def read_launch(process: Process) -> Launch:
    """Return what the command line says; much of it is stale once the user has cleared or switched."""
    launch = Launch()
    for argument in _grammar().parse(process.argv[_program(process)[1] :]):
        value = argument.values[-1] if argument.values else ""
        if argument.name == "--session-id":
            launch = structs.replace(launch, given=value if is_conversation(value) else None)
        elif argument.name == "--resume":
            named = is_conversation(value)
            launch = structs.replace(launch, resumed=value if named else None, searched=not named)
        elif argument.name == "--fork-session":
            launch = structs.replace(launch, forked=True)
        elif argument.name == "--continue":
            launch = structs.replace(launch, continued=True)
        elif argument.name == "--model":
            launch = structs.replace(launch, model=value or None)
    return launch


def resume(identity: Identity, launched: Command) -> Command | None:
    """Return `launched` with its flags, in this conversation instead of the one it was started with."""
    conversation = identity.conversation
    if conversation is None or not is_conversation(conversation) or not launched.argv:
        return None
    head = _head(launched.argv)[1]
    words = launched.argv[head:]
    if identity.prompted is not False:
        # The name lives in the conversation; passing it again would undo a later /rename.
        flags = [*_kept(words, without=("--name",)), "--resume", conversation]
    elif identity.taken:
        flags = _kept(words)
    else:
        flags = [*_kept(words), "--session-id", conversation]
    return Command(argv=(*launched.argv[:head], *flags), cwd=launched.cwd, environ=_environ(launched))


def _kept(words: Sequence[str], without: Sequence[str] = ()) -> list[str]:
    arguments = list(_grammar().parse(words))
    kept: list[str] = []
    for at, argument in enumerate(arguments):
        if argument.known:
            keep = argument.name is not None and argument.name not in _once() and argument.name not in without
            keep = keep and argument.complete
        else:
            # A word after an unknown option is its value or a prompt. A prompt must not be sent again, and a
            # flag without its value would not start, so both go; alone or with `=` it can only be itself.
            followed = at + 1 < len(arguments) and arguments[at + 1].name is None
            keep = "=" in argument.words[0] or not followed
        if keep:
            kept.extend(argument.words)
    return kept


def _environ(launched: Command) -> dict[str, str]:
    return {
        name: value
        for name, value in launched.environ.items()
        if name not in _CHILD_MARKERS and not name.startswith(_CHILD_PREFIXES)
    }


def _operand(words: Sequence[str]) -> str | None:
    operands: list[Argument] = [argument for argument in _grammar().parse(words) if argument.name is None]
    return operands[0].values[0] if operands and operands[0].words[0] != "--" else None


def _program(process: Process) -> tuple[float, int]:
    """How surely this is the program, and how many words of argv come before its options."""
    score, head = _head(process.argv)
    if score:
        return score, head
    exe = process.exe or ""
    if basename(exe) in _NAMES or _PACKAGE in exe:
        return 0.8, head
    return (0.5, head) if process.comm in _NAMES and not _is_runner(process.argv) else (0.0, head)


def _head(argv: Sequence[str]) -> tuple[float, int]:
    if not argv:
        return 0.0, 0
    if basename(argv[0]) in _NAMES:
        return 1.0, 1
    at = _script(argv) if _is_runner(argv) else 0
    script = argv[at]
    # The package's own launcher (cli-wrapper.cjs) only starts the real program below itself.
    if at and _PACKAGE in script and basename(script) in _PACKAGE_SCRIPTS:
        return 0.9, at + 1
    return (0.6, at + 1) if at and basename(script) in _NAMES else (0.0, 1)


def _script(argv: Sequence[str]) -> int:
    """Where in an interpreter's command line its script is, 0 when it runs none."""
    shell = basename(argv[0]) in _SHELLS
    for at, word in enumerate(argv[1:], 1):
        if not word.startswith("-") and word != "run":
            return at
        # `sh -c` and `node -e` are given code, not a script.
        if not word.startswith("--") and word != "run" and not (shell and "c" not in word):
            return 0
    return 0


def _is_runner(argv: Sequence[str]) -> bool:
    name = basename(argv[0]) if argv else ""
    return name in _RUNNERS or _VERSIONED_RUNNER.fullmatch(name) is not None
