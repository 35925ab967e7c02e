"""Claude Code's command line: is it an agent, what does it say about the conversation, how is it brought back.

A word that is passed on by mistake is a prompt sent twice, so what is kept is decided by the program's own grammar.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from os.path import basename

from msgspec import Struct, structs

from perdure.agents._options import Grammar, kept
from perdure.agents._program import Program, head_of, locate
from perdure.agents.children import marks_a_child
from perdure.agents.claude.options import ATTACH, KEPT, NOT_INTERACTIVE, ONCE, SUBCOMMANDS
from perdure.model.identity import Identity
from perdure.model.process import Command, Process

#: The package's own launcher (cli-wrapper.cjs) is none of its scripts: it only starts the real program below itself.
PROGRAM = Program(
    names=frozenset({"claude", "claude.exe"}),
    packages=("/@anthropic-ai/claude-code/",),
    scripts=frozenset({"cli.js", "cli.mjs"}),
)

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


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
    #: The background job after `attach`.
    job: str | None = None
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
    score, head = locate(PROGRAM, process)
    if not score:
        return 0.0
    for argument in _grammar().parse(process.argv[head:]):
        if argument.name in NOT_INTERACTIVE:
            return 0.0
    first = next(iter(_operands(process.argv[head:])), None)
    if first == "agents" and "--json" not in process.argv:
        # The list of background agents is a person's; without it, one of them would be taken for the pane's agent.
        return score
    return 0.0 if first in SUBCOMMANDS else score


def read_launch(process: Process) -> Launch:
    """Return what the command line says; much of it is stale once the user has cleared or switched."""
    words = process.argv[locate(PROGRAM, process)[1] :]
    operands = _operands(words)
    launch = Launch(job=operands[1] if operands[:1] == [ATTACH] and len(operands) > 1 else None)
    for argument in _grammar().parse(words):
        value = argument.values[-1] if argument.values else ""
        if argument.name == "--session-id":
            launch = structs.replace(launch, given=value if is_conversation(value) else None)
        elif argument.name == "--resume":
            resumed = _resumed(value)
            launch = structs.replace(launch, resumed=resumed, searched=resumed is None)
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
    head = head_of(PROGRAM, launched.argv)[1]
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
    return kept(_grammar(), words, _once().union(without))


def _environ(launched: Command) -> dict[str, str]:
    return {name: value for name, value in launched.environ.items() if not marks_a_child(name)}


def _resumed(value: str) -> str | None:
    """The conversation `--resume` names, by its id or its file. Ids are never put in other letters: case counts."""
    conversation = basename(value).removesuffix(".jsonl") if value.endswith(".jsonl") else value
    return conversation if is_conversation(conversation) else None


def _operands(words: Sequence[str]) -> list[str]:
    """The words that are no options, up to `--`: after that, none is a subcommand."""
    operands = (argument for argument in _grammar().parse(words) if argument.name is None)
    return [argument.values[0] for argument in operands if argument.words[0] != "--"]
