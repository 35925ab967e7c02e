"""Who is in each pane. Pure but for the files an adapter reads through its host view.

One conversation is claimed by one pane of the machine: two panes that would resume the same one would write into
the same file after a restore.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from perdure.agents import agent_of
from perdure.agents.generic import program_of
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Command, Process
from perdure.model.server import Server
from perdure.model.snapshot import Capture, Snapshot
from perdure.model.topology import Pane, PaneDetails
from perdure.ports import AgentAdapter, HostView
from perdure.snapshots.capture import with_panes
from perdure.snapshots.remember import Key, certain_before, key_of, remembered

#: Gives the last snapshot of a server, None when there is none.
Earlier = Callable[[Server], Snapshot | None]


class Seen(Struct, frozen=True, kw_only=True):
    """`ports.Sighting`: an agent in a pane."""

    server: Server
    pane: str
    title: str
    process: Process
    tree: tuple[Process, ...]


class _Candidate:
    """A pane with an agent, and the identities still open to it, best first."""

    def __init__(self, seen: Seen, adapter: AgentAdapter, identities: Sequence[Identity]) -> None:
        self.seen = seen
        self.adapter = adapter
        self.open = list(identities)

    @property
    def claim(self) -> Identity:
        return self.open[0]

    @property
    def strength(self) -> tuple[bool, int, float, str]:
        """Smaller is stronger: certain before uncertain, better evidence, then who was there first."""
        rank = self.claim.evidence.rank if self.claim.evidence else len(Evidence)
        return (not self.claim.certain, rank, self.seen.process.started_at.timestamp(), self.seen.pane)

    def give_way(self, other: _Candidate) -> None:
        """Drop the best claim, because another pane holds that conversation."""
        lost = self.open.pop(0)
        reason = f"{lost.conversation}: held by pane {other.seen.pane} on {other.seen.server.socket}"
        self.open = [msgspec.structs.replace(each, because=(*each.because, reason)) for each in self.open] or [
            Identity(agent=lost.agent, profile=lost.profile, because=(*lost.because, reason))
        ]


def identify(captures: Sequence[Capture], host: HostView, earlier: Earlier) -> list[Capture]:
    """Return the captures of one user with every pane's program and agent."""
    candidates = {}
    for place, capture in enumerate(captures):
        for pane in capture.topology.panes:
            if (found := _look(capture, pane, host)) is not None:
                candidates[place, pane.id] = found
    _remember(list(candidates.values()), earlier)
    settle(list(candidates.values()))
    return [
        _identified(capture, {pane: each for (at, pane), each in candidates.items() if at == place}, host)
        for place, capture in enumerate(captures)
    ]


def _look(capture: Capture, pane: Pane, host: HostView) -> _Candidate | None:
    details = capture.details.panes[pane.id]
    found = agent_of(details.processes)
    if found is None:
        return None
    adapter, process = found
    seen = Seen(server=capture.server, pane=pane.id, title=details.title, process=process, tree=details.processes)
    try:
        identities = adapter.identify(seen, host)
    except Exception:
        _complain(f"{adapter.name} could not be identified in pane {pane.id}")
        identities = ()
    return _Candidate(seen, adapter, identities or [Identity(agent=adapter.name, because=("no evidence",))])


def _remember(candidates: Sequence[_Candidate], earlier: Earlier) -> None:
    """Put back what an agent was certainly in when it was last saved, where nothing as good is known now."""
    known: dict[str, dict[Key, Identity]] = {}
    held = {each.claim.conversation for each in candidates if _is_sure(each.claim)}
    for each in candidates:
        server = each.seen.server
        if _is_sure(each.claim):
            continue
        if server.key not in known:
            known[server.key] = certain_before(earlier(server))
        before = known[server.key].get(key_of(each.seen.process))
        if before is not None and before.agent == each.adapter.name:
            each.open.insert(0, remembered(before, each.open, held))


def _is_sure(claim: Identity) -> bool:
    """By evidence of this moment, better than any memory."""
    return claim.certain and claim.evidence is not None and claim.evidence.rank < Evidence.REMEMBERED.rank


def settle(candidates: Sequence[_Candidate]) -> None:
    """Let every conversation be claimed by one pane, the one with the strongest evidence."""
    holders: dict[tuple[str, str], _Candidate] = {}
    queue = list(candidates)
    while queue:
        each = queue.pop()
        if each.claim.conversation is None:
            continue
        key = (each.claim.agent, each.claim.conversation)
        holder = holders.get(key)
        if holder is None or each.strength < holder.strength:
            holders[key] = each
            loser, winner = holder, each
        else:
            loser, winner = each, holder
        if loser is not None:
            loser.give_way(winner)
            queue.append(loser)


def _identified(capture: Capture, candidates: dict[str, _Candidate], host: HostView) -> Capture:
    panes, details = [], dict(capture.details.panes)
    for pane in capture.topology.panes:
        each = candidates.get(pane.id)
        if each is None:
            program = program_of(details[pane.id].processes)
            panes.append(msgspec.structs.replace(pane, program=program) if program else pane)
            continue
        # Reasons name files and times; in the identity they would make a new snapshot of every save.
        identity = msgspec.structs.replace(each.claim, because=())
        panes.append(msgspec.structs.replace(pane, program=_launched(each.seen.process, pane), identity=identity))
        details[pane.id] = _described(details[pane.id], each, host)
    return with_panes(capture, panes, details)


def _launched(process: Process, pane: Pane) -> Command:
    return Command(argv=process.argv, cwd=process.cwd or pane.cwd, environ=process.environ)


def _described(details: PaneDetails, each: _Candidate, host: HostView) -> PaneDetails:
    try:
        described = each.adapter.describe(each.claim, each.seen.process, host)
    except Exception:
        _complain(f"the conversation in pane {each.seen.pane} could not be described")
        described = None
    pid, because = each.seen.process.pid, each.claim.because
    return msgspec.structs.replace(details, agent=described, agent_pid=pid, because=because)


def _complain(what: str) -> None:
    import logging  # dear to import, and needed only when an adapter is broken

    logging.getLogger(__name__).exception(what)
