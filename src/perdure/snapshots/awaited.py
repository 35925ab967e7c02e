"""The agent of a pane that waits to resume it. Pure.

A restored pane may wait for its turn, or for days until somebody presses Enter. Nothing of the agent runs then, and
no file of it tells: were such a pane taken for a shell, the next snapshot would have forgotten the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from os.path import basename

from msgspec import Struct, structs

from perdure.agents import Roster, agent_of
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Process
from perdure.model.wrapped import read_wrapper
from perdure.ports import AgentAdapter


class Awaited(Struct, frozen=True, kw_only=True):
    """An agent that is about to be started, as the process it will be."""

    adapter: AgentAdapter
    process: Process
    is_guess: bool

    def claims(self, found: Sequence[Identity]) -> list[Identity]:
        """Return what the agent will be in: what it will be started with, and as certain as that was when it was saved."""
        return [self._launched(each) for each in found if each.conversation is None or each.evidence is Evidence.ARGV]

    def _launched(self, claim: Identity) -> Identity:
        if claim.conversation is None:
            return claim
        because = ("the pane waits to start it in this conversation",)
        return structs.replace(
            claim,
            evidence=Evidence.LAUNCH,
            certain=not self.is_guess,
            because=because,
            written_at=None,
            left=(),
            perhaps_left=(),
        )


def awaited_agent(tree: Sequence[Process], known: Roster | None = None) -> Awaited | None:
    """Return the agent a pane is going to start, None when it is not going to start one."""
    wrapped = read_wrapper(tree[0].argv) if tree else None
    if wrapped is None or not wrapped.argv:
        return None
    process = structs.replace(
        tree[0],
        comm=basename(wrapped.argv[0]),
        exe=None,
        argv=wrapped.argv,
        environ={**tree[0].environ, **wrapped.environ},
    )
    found = agent_of((process,), known)
    return None if found is None else Awaited(adapter=found[0], process=process, is_guess=wrapped.is_guess)
