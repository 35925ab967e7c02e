"""What is known of each agent for the tests every adapter has to pass: one module in `cases/` an agent."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from perdure.agents import adapters
from perdure.model.process import Process
from perdure.ports import AgentAdapter
from tests.unit.agents.hosts import DirectoryHost

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")


class Transcript(NamedTuple):
    """A recorded transcript, and how it lies on a machine."""

    conversation: str
    data: bytes
    #: Where the file goes.
    path: str
    #: (role, beginning of the text) of its first turns, in order.
    begins: Sequence[tuple[str, str]]
    #: How many turns there are.
    turns: int
    #: Puts what else the agent needs to find it beside the file.
    around: Callable[[DirectoryHost], None] = lambda host: None
    #: A line the file's own lines depend on is first in it, and stays when the rest is cut.
    header: bool = False


class AgentCase(NamedTuple):
    """One agent as it was recorded."""

    agent: str
    #: A conversation's id as the agent makes them.
    conversation: str
    #: Processes that are the agent of their pane.
    mine: Sequence[Process]
    #: Processes of the same program that are not: daemons, one-off runs, sub-commands.
    others: Sequence[Process] = ()
    #: Options and words of its command line, to be mixed at random.
    words: Sequence[str] = ()
    transcripts: Sequence[Transcript] = ()

    @property
    def adapter(self) -> AgentAdapter:
        """The adapter that has to live up to this."""
        return next(adapter for adapter in adapters() if adapter.name == self.agent)


def every_case() -> list[AgentCase]:
    """Return the case of every agent, by name."""
    names = sorted(name.removesuffix(".py") for name in os.listdir(_FOLDER) if name.endswith(".py"))
    cases = [importlib.import_module(f"tests.contract.agents.cases.{name}").CASE for name in names]
    assert all(isinstance(case, AgentCase) for case in cases)
    return cases
