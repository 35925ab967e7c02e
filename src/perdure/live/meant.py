"""Whom somebody means who tells a pane something, and whether that is who is there now. Pure.

A pane's name and an agent's name are not enough: another conversation of the same agent may be in the pane by now, and what
it was told cannot be taken back. So whoever sends names a program, as it was when they looked. It may have gone on to
another conversation since: it is still the agent of that run. Another program is only the right one in the very same
conversation, as after a restore.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from perdure.agents import Roster, agent_of
from perdure.live.recognise import Found, sure_conversation
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Process
from perdure.model.run import Program, Run
from perdure.model.who import Who, read_who, who_is
from perdure.model.wrapped import read_wrapper
from perdure.ports import AgentAdapter

ANOTHER_AGENT = "another agent was started there meanwhile; look again"
ANOTHER_PROGRAM = "another program was started there meanwhile; look again"
AN_AGENT = "an agent was started there meanwhile; look again"
ANOTHER_CONVERSATION = "it is not in that conversation any more; look again"
NOBODY = "who was there has ended meanwhile; look again"


#: What tells in which conversation a program is, and not in which it was when it began.
_OF_NOW = (Evidence.REGISTRY, Evidence.OPEN_FILE)


class Meant(Struct, frozen=True, kw_only=True):
    """Who was in a pane when the sender looked."""

    #: The agent's name; None where the pane was a shell's, or a program's that is none.
    agent: str | None = None
    #: What was started in the pane.
    first: Program | None = None
    #: The agent's process, or one that starts it and nothing else. None when it had ended, or there was none.
    program: Program | None = None
    #: The conversation, also of one who had ended.
    identity: Identity | None = None
    #: The conversation that the sender named: it is told in that one or not at all.
    conversation: str | None = None
    #: The sender was shown that nobody is there.
    is_nobody: bool = False


class There(Struct, frozen=True, kw_only=True):
    """Who is in a pane now."""

    first: Program | None = None
    agent: str | None = None
    program: Program | None = None
    #: What has started the agent and waits for its end, so that nothing else can be below it.
    launchers: tuple[Program, ...] = ()
    #: Everything that runs in the pane.
    programs: frozenset[Program] = frozenset()


def meant_by(seen: Run | Found, conversation: str | None = None) -> Meant:
    """Return whom somebody means who was shown this."""
    agent = seen.identity.agent if seen.identity else None
    return Meant(agent=agent, first=seen.first, program=seen.program, identity=seen.identity, conversation=conversation)


def meant_as(run: Run, who: str | None) -> Meant:
    """Return the same of somebody who hands back the word for who was shown, where that is still so (`changed_since`).

    Such a one means the conversation too, as far as it was certain.
    """
    if who is not None and read_who(who).is_nobody:
        return Meant(is_nobody=True)
    sure = sure_conversation(run.identity) if who is not None and run.program is not None else None
    return meant_by(run, sure[2] if sure is not None else None)


def shown_in(seen: Run | Found) -> Who:
    """Return who is shown to those who are shown this, to be handed back."""
    return who_is(seen.process, seen.first, seen.program, seen.identity)


def changed_since(who: str | None, run: Run) -> str:
    """Return why a run is not who was shown under that word any more, "" when it is or no word was handed back.

    That is as far as is known of the run: whether it is who is there, `stranger` says.
    """
    if who is None:
        return ""
    was, now = read_who(who), shown_in(run)
    if was.is_nobody and not now.is_nobody:
        return ANOTHER_PROGRAM if run.program is None else AN_AGENT
    if run.program is None and was.program != now.program:
        return NOBODY
    is_alike = was.conversation is not None and was.conversation == now.conversation
    if was.program == now.program:
        # What was not known then may be by now.
        return "" if is_alike or was.conversation is None else ANOTHER_CONVERSATION
    if is_alike and was.certain and now.certain:
        return ""
    shell = who_is(run.process, run.first, None, None)
    return AN_AGENT if shell.program == was.program else ANOTHER_AGENT


def there_in(tree: Sequence[Process], found: tuple[AgentAdapter, Process] | None, known: Roster) -> There:
    """Return who is in a pane with these processes, parents before children, where that is its agent (`agent_of`)."""
    programs = frozenset(map(program_of, tree))
    first = program_of(tree[0]) if tree else None
    if found is None:
        return There(first=first, programs=programs)
    adapter, process = found
    by_pid = {each.pid: each for each in tree}
    launchers: dict[int, Program] = {}
    above = by_pid.get(process.ppid)
    while above is not None and above.pid not in launchers:
        own = agent_of((above,), known)
        # A shell that is left when an agent has ended has the same number, and may start anything.
        if read_wrapper(above.argv) is None and (own is None or own[0] is not adapter):
            break
        launchers[above.pid] = program_of(above)
        above = by_pid.get(above.ppid)
    return There(
        first=first,
        agent=adapter.name,
        program=program_of(process),
        launchers=tuple(launchers.values()),
        programs=programs,
    )


def program_of(process: Process) -> Program:
    """Return a process as what it is never mistaken for another by."""
    return Program(pid=process.pid, start_ticks=process.start_ticks)


def stranger(meant: Meant, there: There, is_in: Callable[[], Identity | None]) -> str:
    """Return why those who are there must not hear what somebody else was to be told, "" when they may.

    `is_in` finds out the conversation of who is there, None where that cannot be told; it is asked only when that matters.
    """
    if meant.is_nobody:
        return "" if there.first is None else ANOTHER_PROGRAM if there.program is None else AN_AGENT
    if there.program is None:
        if None not in (meant.first, there.first) and meant.first != there.first:
            return ANOTHER_PROGRAM
        return "" if meant.conversation is None else ANOTHER_CONVERSATION
    if meant.program is None and meant.identity is None:
        return AN_AGENT
    is_named_alike = meant.agent in (None, there.agent)
    is_same = is_named_alike and meant.program == there.program
    if is_same and meant.conversation is None:
        return ""
    now = is_in()
    if is_same:
        return "" if _is_still_in(meant, now) else ANOTHER_CONVERSATION
    was, is_ = sure_conversation(meant.identity), sure_conversation(now)
    if meant.conversation is not None:
        is_right = is_named_alike and is_ is not None and is_[2] == meant.conversation
    elif was is None or is_ is None:
        is_right = is_named_alike and meant.program in there.launchers
    else:
        is_right = was == is_
    return "" if is_right else ANOTHER_AGENT


def _is_still_in(meant: Meant, now: Identity | None) -> bool:
    """Whether the same program is in the conversation the sender named: by what tells of this moment, or as it was known."""
    known = now if now is not None and now.certain and now.evidence in _OF_NOW else meant.identity
    return known is not None and known.conversation == meant.conversation
