"""Whether an agent that was started is in the conversation it was started for. Pure."""

from __future__ import annotations

import re

from msgspec import Struct, structs

from perdure.model.identity import Evidence, Identity
from perdure.model.plan import Action, Result, Step
from perdure.model.screen import ScreenReading, State

#: An agent's screen says why it does not go on: it waits for a key or a password.
LOGIN = "login"
#: How many letters of what was last asked for have to be on the screen to be believed.
_ENOUGH = 24
#: With fewer than these it could stand anywhere: it has to have a line for itself.
_TELLING = 12
#: A title says little else, so fewer will do.
_NAMING = 8


class Seen(Struct, frozen=True, kw_only=True):
    """What is to be seen of a pane in which an agent was started."""

    #: The pane is there.
    there: bool = True
    identity: Identity | None = None
    #: Its files tell of nothing that was asked for in its conversation.
    is_bare: bool = False
    #: The exit status, when the agent has ended.
    status: int | None = None
    #: What the pane shows; None when it was not looked at.
    screen: tuple[str, ...] | None = None
    #: The same with what the agent wrote before and has scrolled away.
    whole: tuple[str, ...] = ()
    #: The agent has given the pane the conversation's name for a title.
    is_titled: bool = False
    reading: ScreenReading | None = None


class Verdict(Struct, frozen=True, kw_only=True):
    """How a start ended."""

    result: Result
    why: str = ""


def judge(step: Step, seen: Seen, *, is_late: bool, was_up: bool = False, task: str | None = None) -> Verdict | None:
    """Return how the start ended, None while that is open. `task` is what was last asked for in the conversation.

    `was_up` says that the agent showed a screen of its own before this look (`is_up`).

    Only evidence of this moment counts. A command line merely repeats what we wrote into it ourselves, so it needs
    the conversation on the screen beside it, or its name in the pane's title.
    """
    if not seen.there:
        return Verdict(result=Result.FAILED, why="the pane is gone")
    if seen.status is not None:
        return Verdict(result=Result.FAILED, why=f"{step.agent} ended with status {seen.status}")
    identity = _agent_in(step, seen)
    if identity is None and not is_late:
        return None
    if seen.reading is not None and seen.reading.reason == LOGIN:
        return Verdict(result=Result.UNVERIFIED, why=f"{step.agent} asks to log in")
    if identity is None:
        return Verdict(result=Result.FAILED, why=f"{step.agent} did not start in time")
    if step.action is Action.START:
        return _begun(step, identity, is_over=is_late or was_up)
    if task is None:
        seen = structs.replace(seen, is_bare=False)
    return _resumed(step, identity, seen, task) or (_too_late(step, identity, seen) if is_late else None)


def needs_screen(step: Step, seen: Seen, *, is_late: bool) -> bool:
    """Say whether what the pane shows belongs to the judgement.

    Even to that on an agent whose conversation is certain: it may be in it, and ask to log in. Not while the agent has
    not come up: until then the pane shows what others have left there.
    """
    return seen.there and (seen.status is not None or is_late or _agent_in(step, seen) is not None)


def is_up(step: Step, seen: Seen) -> bool:
    """Say whether an agent has come so far that it shows a screen of its own: it is not starting any more."""
    return _agent_in(step, seen) is not None and seen.reading is not None and seen.reading.state is not None


def is_present(identity: Identity) -> bool:
    """Say whether an identity rests on what the agent itself shows now, and not on what it was started with."""
    return identity.evidence in (Evidence.REGISTRY, Evidence.HOOK, Evidence.OPEN_FILE, Evidence.TITLE)


def is_on_screen(task: str | None, lines: tuple[str, ...]) -> bool:
    """Say whether what was last asked for stands on a screen, however it is broken into lines there."""
    wanted = _squeezed(task or "")[:_ENOUGH]
    if len(wanted) < _TELLING:
        # Beside it there may be the time of day.
        return bool(wanted) and any(re.fullmatch(rf"{wanted}\d*", _squeezed(line)) for line in lines)
    return wanted in _squeezed("".join(lines))


def is_in_title(name: str | None, title: str) -> bool:
    """Say whether a pane's title, which may be cut, has the name of a conversation in it."""
    wanted = _squeezed(name or "")[:_ENOUGH]
    return len(wanted) >= _NAMING and wanted in _squeezed(title)


def _agent_in(step: Step, seen: Seen) -> Identity | None:
    """The step's agent, None while it has not come up: that we have launched it ourselves is no word of its own."""
    identity = seen.identity
    if identity is None or identity.agent != step.agent or identity.evidence in (Evidence.LAUNCH, Evidence.KEPT):
        return None
    return identity


def _is_sure(identity: Identity) -> bool:
    return identity.certain and is_present(identity) and identity.conversation is not None


def _begun(step: Step, identity: Identity, *, is_over: bool) -> Verdict | None:
    is_sure = _is_sure(identity)
    if is_sure and identity.conversation == step.conversation:
        return Verdict(result=Result.VERIFIED, why="nothing was ever said in it, so it began anew under the same id")
    # What it shows was read after everything else: one that has only just come up may be known by the next look.
    if is_sure or is_over:
        unknown = "which conversation it was in is not known, so it began anew"
        return Verdict(
            result=Result.DONE,
            why=unknown if step.conversation is None else "nothing was ever said in it, so it began anew",
        )
    return None


def _resumed(step: Step, identity: Identity, seen: Seen, task: str | None) -> Verdict | None:
    same = identity.conversation == step.conversation
    if same and identity.prompted is False:
        # Something was said in it when it was saved: it may not have read that yet, or it has lost it.
        return None
    if _is_sure(identity) and not (same and seen.is_bare):
        if same:
            return Verdict(result=Result.VERIFIED, why=f"known by {identity.evidence}")
        return Verdict(result=Result.FAILED, why=f"it came up in {identity.conversation} instead")
    # Where nothing can be read of what was asked, it may be the same conversation by name only: its screen has to tell.
    # That a turn failed long ago is said on the screen as well, so an error speaks against nothing here. A question
    # does: until it is answered, nobody knows where it leads.
    asks = seen.reading is not None and seen.reading.state is State.ATTENTION
    if not same or not identity.certain or asks:
        return None
    if is_on_screen(task, (*seen.whole, *(seen.screen or ()))):
        return Verdict(
            result=Result.VERIFIED, why=f"known by {identity.evidence}, and what was last asked is on its screen"
        )
    if seen.is_titled:
        return Verdict(result=Result.VERIFIED, why=f"known by {identity.evidence}, and its title has the same name")
    return None


def _too_late(step: Step, identity: Identity, seen: Seen) -> Verdict:
    if seen.reading is not None and seen.reading.state is State.ERROR:
        return Verdict(result=Result.FAILED, why=f"{step.agent} shows an error")
    if seen.reading is not None and seen.reading.state is State.ATTENTION:
        return Verdict(result=Result.UNVERIFIED, why=f"{step.agent} waits for an answer")
    if identity.conversation == step.conversation:
        if identity.prompted is False:
            return Verdict(result=Result.FAILED, why="it came up with nothing of what was said in this conversation")
        if seen.is_bare:
            return Verdict(result=Result.UNVERIFIED, why="nothing of what was said in this conversation can be read")
        return Verdict(
            result=Result.UNVERIFIED, why=f"only its {identity.evidence} says that it is in this conversation"
        )
    return Verdict(result=Result.UNVERIFIED, why="which conversation it is in cannot be told")


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()
