"""What an agent was certainly in before, and what others hold who were not looked at. Pure.

An agent's registry may be half written at this very moment, or gone because the agent is being ended. Then what was
known of the very same process still holds, until something speaks against it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from perdure.model.identity import Evidence, Identity
from perdure.model.process import Process
from perdure.model.snapshot import Snapshot

#: What tells a process from every other. exec keeps number and start time, so what it runs has to be the same too.
Key = tuple[int, int, str | None, tuple[str, ...]]


class Memory(Struct, frozen=True, kw_only=True):
    """A conversation an agent's process was certainly in, by the evidence of that moment, and when that was."""

    identity: Identity
    at: datetime


class Held(Struct, frozen=True, kw_only=True):
    """A conversation that a pane certainly holds which is not in this look."""

    identity: Identity
    started_at: datetime
    place: str

    @property
    def strength(self) -> Strength:
        """How strong the claim is: a memory, which the evidence of this moment outweighs."""
        claim = msgspec.structs.replace(self.identity, evidence=Evidence.REMEMBERED)
        return strength(claim, self.started_at, self.place)


#: Smaller is stronger: certain before uncertain, better evidence, then who was there first.
Strength = tuple[bool, int, float, str]


def strength(claim: Identity, started_at: datetime, place: str) -> Strength:
    """Return how strong a claim is beside others to the same conversation."""
    rank = claim.evidence.rank if claim.evidence else len(Evidence)
    return (not claim.certain, rank, started_at.timestamp(), place)


def is_sure(claim: Identity, memory: Memory | None = None) -> bool:
    """Say whether a claim is certain by evidence of this moment that is better than any memory.

    A title is, which an agent that ends takes back. A command line is not: it is there to be judged anew every time. Nor
    is a hook record that is older than what is remembered.
    """
    if not claim.certain or claim.evidence is None:
        return False
    if claim.evidence is not Evidence.TITLE and claim.evidence.rank >= Evidence.REMEMBERED.rank:
        return False
    return memory is None or claim.written_at is None or claim.written_at > memory.at


def key_of(process: Process) -> Key:
    """Return what makes this process this process."""
    return (process.pid, process.start_ticks, process.exe, process.argv)


def memories(snapshot: Snapshot | None) -> dict[Key, Memory]:
    """Return by agent process what it was last certainly in, as far as this snapshot tells."""
    found = {}
    for process, _, memory in _agents(snapshot) if snapshot else ():
        if memory is not None:
            found[key_of(process)] = memory
    return found


def last_known(snapshot: Snapshot | None) -> dict[Key, Identity]:
    """Return by agent process what it was certainly in when it was last saved, by whichever evidence."""
    agents = _agents(snapshot) if snapshot else ()
    return {key_of(process): identity for process, identity, _ in agents if identity.certain}


def unlost(known: Identity | None, now: Sequence[Identity]) -> Identity | None:
    """Return what an agent was last certainly in where nothing is known now, None when it is known to have left it.

    Whatever told of it is gone, and nothing tells why. An agent that comes back without its conversation has lost it.
    """
    if known is None or known.conversation is None or any(known.conversation in each.left for each in now):
        return None
    because = ("as it was last saved; nothing tells that it was left, nor that it was not",)
    return msgspec.structs.replace(known, evidence=Evidence.REMEMBERED, certain=False, because=because)


#: Evidence that tells where an agent was, not where it is.
PAST = (Evidence.HOOK, Evidence.REMEMBERED, Evidence.ARGV)


def doubted(snapshot: Snapshot | None) -> dict[tuple[Key, str], datetime]:
    """Return which agents' conversations a snapshot was not certain of, though there was more than a guess, and when.

    Doubt stays until better evidence comes: what raised it may be out of sight by now.
    """
    return {
        (key_of(process), identity.conversation): snapshot.last_seen_at
        for process, identity, _ in (_agents(snapshot) if snapshot else ())
        if snapshot and not identity.certain and identity.evidence in PAST and identity.conversation is not None
    }


def stands_alone(claim: Identity) -> bool:
    """Say whether nothing that is remembered, and nothing that is found in other panes, can make a claim doubtful.

    Unless another is in the same conversation.
    """
    return is_sure(claim) and claim.evidence not in PAST and claim.evidence is not Evidence.TITLE


def is_doubtful_still(claim: Identity, since: datetime) -> bool:
    """Say whether a claim rests on nothing newer than what was doubted at that time."""
    if claim.evidence not in PAST:
        return False
    return claim.evidence is not Evidence.HOOK or claim.written_at is None or claim.written_at <= since


def held_elsewhere(snapshots: Iterable[Snapshot], is_alive: Callable[[int, int], bool]) -> list[Held]:
    """Return what the agents of these snapshots certainly hold, as far as they still run."""
    return [
        Held(
            identity=identity,
            started_at=process.started_at,
            place=f"{snapshot.server.user}'s {snapshot.server.socket}",
        )
        for snapshot in snapshots
        for process, identity, _ in _agents(snapshot)
        if identity.certain and identity.conversation is not None and is_alive(process.pid, process.start_ticks)
    ]


def _agents(snapshot: Snapshot) -> Iterator[tuple[Process, Identity, Memory | None]]:
    for pane in snapshot.topology.panes:
        details = snapshot.details.panes.get(pane.id)
        if pane.identity is None or details is None:
            continue
        memory = Memory(identity=details.sure, at=details.sure_at) if details.sure and details.sure_at else None
        for process in details.processes:
            if process.pid == details.agent_pid:
                yield process, pane.identity, memory


def remembered(memory: Memory, now: Sequence[Identity], held: Collection[str | None]) -> Identity | None:
    """Return what was known before as evidence for now, None when the agent is known to have left it.

    It is certain no longer when another conversation was written to since, one that nobody else holds (`held`): the
    agent may have gone on there. Nor when its own title names another, whoever holds that, or when there is better
    evidence that is not certain: what made that doubtful makes this so.
    """
    mine = memory.identity.conversation
    if any(mine in each.left for each in now):
        return None
    doubts = [_doubt(each) for each in now if _speaks_against(each, memory) and not _is_others(each, held)]
    doubts += ["it may just have been left" for each in now if mine in each.perhaps_left]
    doubts += [f"{each.evidence} says so too, but not for certain" for each in now if _is_shaken(each)]
    because = ["as it was last certainly known", *doubts]
    return msgspec.structs.replace(
        memory.identity, evidence=Evidence.REMEMBERED, certain=not doubts, because=tuple(because)
    )


def weighed(claims: Sequence[Identity], held: Collection[str | None]) -> list[Identity]:
    """Return the claims with a command line made doubtful by conversations that were written to and are nobody's."""
    against = [each for each in claims if each.evidence in (Evidence.TITLE, Evidence.GUESS)]
    against = [each for each in against if each.conversation is not None and not _is_others(each, held)]
    return [_weigh(each, [other for other in against if other.conversation != each.conversation]) for each in claims]


def _weigh(claim: Identity, others: Sequence[Identity]) -> Identity:
    if claim.evidence is not Evidence.ARGV or not claim.certain or not others:
        return claim
    reasons = (f"{_doubt(other)}, perhaps by this process" for other in others)
    return msgspec.structs.replace(claim, certain=False, because=(*claim.because, *reasons))


def _is_others(claim: Identity, held: Collection[str | None]) -> bool:
    """Whether what a claim rests on is explained by another pane. A title is this pane's own."""
    return claim.evidence is not Evidence.TITLE and claim.conversation in held


def _is_shaken(claim: Identity) -> bool:
    """Whether there is evidence of this moment that would be better than memory, were it certain."""
    if claim.certain or claim.conversation is None or claim.evidence is None:
        return False
    return claim.evidence.rank < Evidence.REMEMBERED.rank


def _doubt(claim: Identity) -> str:
    return f"{claim.conversation} " + (
        "is in the title" if claim.evidence is Evidence.TITLE else "was written to since"
    )


def _speaks_against(claim: Identity, memory: Memory) -> bool:
    if claim.conversation in (None, memory.identity.conversation):
        return False
    if claim.evidence is Evidence.ARGV:
        return claim.written_at is not None and claim.written_at > memory.at
    if claim.evidence is Evidence.TITLE:
        return True  # it is read now, whenever what it names was written
    if claim.evidence is not Evidence.GUESS:
        return False
    return claim.written_at is None or claim.written_at > memory.at
