"""A word for the very program and conversation that somebody is shown, to be handed back with what is done to them. Pure.

    9f2c41d07be3.5a60e1c8d2f4   a program, and the conversation it is certainly in
    9f2c41d07be3~5a60e1c8d2f4   the conversation is a guess
    9f2c41d07be3                none is known
    nobody                      nothing runs there, as in a pane that is kept after its program has ended

Nobody outside has to know what it is made of: it says nothing but whether it is the same.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.json import encode

from perdure.model.digest import digest_of
from perdure.model.identity import Identity
from perdure.model.run import Program
from perdure.model.server import ServerProcess
from perdure.model.text import as_text

_SURE, _GUESSED = ".", "~"
_SIZE = 6
_NOBODY = "nobody"


class Who(Struct, frozen=True, kw_only=True):
    """What such a word tells."""

    program: str
    #: None where none was known.
    conversation: str | None = None
    certain: bool = False

    def __str__(self) -> str:
        if self.conversation is None:
            return self.program
        return f"{self.program}{_SURE if self.certain else _GUESSED}{self.conversation}"

    @property
    def is_nobody(self) -> bool:
        """Nothing was there that could be told of."""
        return self.program == _NOBODY


def who_is(
    server: ServerProcess | None, first: Program | None, program: Program | None, identity: Identity | None
) -> Who:
    """Return who is in a pane: its agent, or else what was started in it, or nobody where neither is known.

    `program` is the agent's process, None when it has ended or there is none: then no conversation is anybody's.
    """
    shown = program or first
    if shown is None:
        # A word too: whoever was shown nobody means nobody who comes later.
        return Who(program=_NOBODY)
    agent = identity if program is not None else None
    # A number and a start are given again after the machine was started anew. A shell that becomes an agent keeps both.
    began = (server.pid, server.started_at.timestamp()) if server is not None else None
    own = _digest(began, shown.pid, shown.start_ticks, agent.agent if agent is not None else None)
    if agent is None or agent.conversation is None:
        return Who(program=own)
    conversation = _digest(agent.agent, agent.profile, agent.conversation)
    return Who(program=own, conversation=conversation, certain=agent.certain)


def read_who(word: str) -> Who:
    """Return what a word tells; one that was never given tells of a program that is nowhere."""
    for mark in (_SURE, _GUESSED):
        program, found, conversation = word.partition(mark)
        if found:
            return Who(program=program, conversation=conversation, certain=mark == _SURE)
    return Who(program=word)


def _digest(*parts: object) -> str:
    return digest_of(encode(as_text(parts)), _SIZE)
