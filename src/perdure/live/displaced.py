"""Whether an agent that is there has its pane's terminal, or another has it in its place. Pure.

An agent that was stopped (Ctrl-Z), or put into the background, lives, and hears nothing: what is typed goes to whoever has
the terminal, and the shell it was started from would run it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from perdure.agents.generic import is_shell, is_waiting_shell
from perdure.model.process import Process, is_below
from perdure.model.wrapped import read_wrapper


def displaced_by(tree: Sequence[Process], agent: Process, groups: Iterable[int | None]) -> Process | None:
    """Return who has the terminal in place of the agent, None where nobody has, or that is not known.

    `tree` are the processes of the pane, `groups` the process groups in the foreground of its terminal, and of the agent's
    own where that is another. What the agent has started may have the terminal for it, in a group of its own; and so may what
    has started it, unless that is a shell which waits for commands meanwhile.
    """
    parents = {each.pid: each.ppid for each in tree}
    for group in groups:
        holders = [each for each in tree if each.pgid == group]
        if holders and not any(_is_with(each, agent, parents) for each in holders):
            return holders[0]
    return None


def why_displaced(tree: Sequence[Process], agent: Process, holder: Process, *, name: str, is_stopped: bool) -> str:
    """Return in a sentence without its full stop that an agent of this name hears nothing, and what would."""
    how = "is stopped (Ctrl-Z)" if is_stopped else "is in the background"
    if not is_shell(holder.comm):
        return f"{name} {how}, and {holder.comm} would get what is typed"
    parents = {each.pid: each.ppid for each in tree}
    if is_below(agent.pid, holder.pid, parents):
        back = "; `fg` brings it back"
    elif tree and read_wrapper(tree[0].argv) is not None and holder.ppid == tree[0].pid:
        back = "; `exit` leaves that shell and brings it back"
    else:
        back = ""
    return f"{name} {how}, and the shell would run what is typed{back}"


def _is_with(each: Process, agent: Process, parents: Mapping[int, int]) -> bool:
    if each.pid == agent.pid or is_below(each.pid, agent.pid, parents):
        return True
    waits = is_waiting_shell(each.argv) or read_wrapper(each.argv) is not None
    return not waits and is_below(agent.pid, each.pid, parents)
