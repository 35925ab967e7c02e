"""What an agent was certainly in when it was last saved. Pure.

An agent's registry may be half written at this very moment, or gone because the agent is being ended. Then what was
known of the very same process still holds, until something speaks against it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from perdure.model.identity import Evidence, Identity
from perdure.model.process import Process
from perdure.model.snapshot import Snapshot

#: What tells a process from every other. exec keeps number and start time, so what it runs has to be the same too.
Key = tuple[int, int, str | None, tuple[str, ...]]


def key_of(process: Process) -> Key:
    """Return what makes this process this process."""
    return (process.pid, process.start_ticks, process.exe, process.argv)


def certain_before(snapshot: Snapshot | None) -> dict[Key, Identity]:
    """Return by agent process what a snapshot was certain of."""
    return dict(_certain(snapshot)) if snapshot else {}


def _certain(snapshot: Snapshot) -> Iterator[tuple[Key, Identity]]:
    for pane in snapshot.topology.panes:
        details = snapshot.details.panes.get(pane.id)
        if pane.identity is None or not pane.identity.certain or pane.identity.conversation is None or details is None:
            continue
        for process in details.processes:
            if process.pid == details.agent_pid:
                yield key_of(process), pane.identity


def remembered(before: Identity, now: Sequence[Identity], held: Collection[str | None]) -> Identity:
    """Return what was known before as evidence for now.

    It is certain no longer when a conversation was written to since, one that nobody else certainly holds (`held`):
    the agent may have gone on there.
    """
    guesses = [each.conversation for each in now if each.evidence in (Evidence.TITLE, Evidence.GUESS)]
    # Guesses come newest first: those behind the conversation itself are older than it.
    newer = guesses[: guesses.index(before.conversation)] if before.conversation in guesses else guesses
    doubts = [each for each in newer if each is not None and each not in held]
    because = ["as it was last saved", *(f"{each} was written to since" for each in doubts)]
    return msgspec.structs.replace(before, evidence=Evidence.REMEMBERED, certain=not doubts, because=tuple(because))
