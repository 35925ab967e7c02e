"""Who is in each pane. Pure but for the files an adapter reads through its host view.

One conversation is claimed by one pane of the machine: two panes that would resume the same one would write into
the same file after a restore.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec

from perdure.agents import Roster, agent_of
from perdure.agents.generic import program_of
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Command, Process
from perdure.model.server import Server
from perdure.model.sighting import Seen
from perdure.model.snapshot import Capture, Snapshot
from perdure.model.topology import Pane, PaneDetails
from perdure.ports import AgentAdapter, HostView
from perdure.snapshots.awaited import awaited_agent
from perdure.snapshots.capture import with_panes
from perdure.snapshots.remember import (
    PAST,
    Held,
    Key,
    Memory,
    Strength,
    doubted,
    is_doubtful_still,
    is_sure,
    key_of,
    last_known,
    memories,
    remembered,
    strength,
    unlost,
    weighed,
)

#: Gives the last snapshot of a server, None when there is none.
Earlier = Callable[[Server], Snapshot | None]


#: Agent, profile and conversation: a copied profile has conversations of the same ids that are others.
_Contested = tuple[str, str | None, str | None]


def _contested(claim: Identity) -> _Contested:
    return (claim.agent, claim.profile, claim.conversation)


class _Candidate:
    """A pane with an agent, the identities still open to it, best first, and what it was certainly in before."""

    def __init__(self, seen: Seen, adapter: AgentAdapter, identities: Sequence[Identity]) -> None:
        self.seen = seen
        self.adapter = adapter
        self.open = list(identities)
        self.memory: Memory | None = None
        #: The claim that is certain by the evidence of this moment, if there is one.
        self.sure: Identity | None = None
        self.lost: list[Identity] = []
        self.because: tuple[str, ...] = ()

    @property
    def claim(self) -> Identity:
        return self.open[0]

    @property
    def place(self) -> str:
        return f"pane {self.seen.pane} on {self.seen.server.socket}"

    @property
    def strength(self) -> Strength:
        return strength(self.claim, self.seen.process.started_at, self.seen.pane)

    def recall(self, memory: Identity) -> None:
        """Put what is remembered before all other claims, or after the title's when that is certain and it is not."""
        titled = self.claim.certain and self.claim.evidence is Evidence.TITLE
        self.open.insert(1 if titled and not memory.certain else 0, memory)

    def stay_doubtful(self, doubts: Mapping[tuple[Key, str], datetime]) -> None:
        """Take nothing for certain that was doubtful before, and of which nothing newer is known."""
        key = key_of(self.seen.process)
        self.open = [
            msgspec.structs.replace(each, certain=False, because=(*each.because, "it was doubtful before"))
            if each.certain
            and (since := doubts.get((key, each.conversation or ""))) is not None
            and is_doubtful_still(each, since)
            else each
            for each in self.open
        ]

    def give_way(self) -> None:
        """Drop the best claim, because another pane holds that conversation."""
        lost = self.open.pop(0)
        self.lost.append(lost)
        self.open = self.open or [Identity(agent=lost.agent, profile=lost.profile, because=lost.because)]

    def explain(self, holders: Mapping[_Contested, _Candidate | Held]) -> None:
        """Say in the claim that stands who holds what was given up for it."""
        reasons = tuple(f"{each.conversation}: held by {holders[_contested(each)].place}" for each in self.lost)
        self.because = (*self.claim.because, *reasons)


def identify(
    captures: Sequence[Capture],
    host: HostView,
    earlier: Earlier,
    elsewhere: Callable[[], Sequence[Held]] = tuple,
    known: Roster | None = None,
) -> list[Capture]:
    """Return the captures of one user with every pane's program and agent.

    `elsewhere` gives what the user's panes hold that are not in these captures; it is asked when there is an agent.
    """
    candidates = {}
    for place, capture in enumerate(captures):
        for pane in capture.topology.panes:
            if (found := _look(capture, pane, host, known)) is not None:
                candidates[place, pane.id] = found
    others = elsewhere() if candidates else ()
    _weigh(list(candidates.values()), earlier, others)
    settle(list(candidates.values()), others)
    return [
        _identified(capture, {pane: each for (at, pane), each in candidates.items() if at == place}, host)
        for place, capture in enumerate(captures)
    ]


def _look(capture: Capture, pane: Pane, host: HostView, known: Roster | None) -> _Candidate | None:
    details = capture.details.panes[pane.id]
    found = agent_of(details.processes, known)
    awaited = None if found is not None else awaited_agent(details.processes, known)
    if awaited is not None:
        found = awaited.adapter, awaited.process
    if found is None:
        return None
    adapter, process = found
    seen = Seen(
        server=capture.server,
        pane=pane.id,
        title=details.title,
        process=process,
        tree=details.processes,
        at=capture.taken_at,
    )
    try:
        identities = adapter.identify(seen, host)
    except Exception:
        _complain(f"{adapter.name} could not be identified in pane {pane.id}")
        identities = ()
    if awaited is not None:
        identities = awaited.claims(identities)
    return _Candidate(seen, adapter, identities or [Identity(agent=adapter.name, because=("no evidence",))])


def _weigh(candidates: Sequence[_Candidate], earlier: Earlier, others: Sequence[Held]) -> None:
    """Put back what an agent was certainly in before, where nothing as good is known now, and doubt what is doubtful."""
    servers = {each.seen.server.key: each.seen.server for each in candidates}
    before = {key: earlier(server) for key, server in servers.items()} if _needed(candidates) else {}
    known = {key: memories(snapshot) for key, snapshot in before.items()}
    doubts = {key: doubted(snapshot) for key, snapshot in before.items()}
    last = {key: last_known(snapshot) for key, snapshot in before.items()}
    for each in candidates:
        each.memory = known.get(each.seen.server.key, {}).get(key_of(each.seen.process))
        each.sure = each.claim if is_sure(each.claim, each.memory) else None
    # What others were in before is theirs too: agents that lose their registries together must not doubt each other.
    held = {each.sure.conversation for each in candidates if each.sure}
    held |= {each.memory.identity.conversation for each in candidates if each.memory and not each.sure}
    held |= {each.identity.conversation for each in others}
    for each in candidates:
        each.open = weighed(each.open, held)
        if each.memory and not each.sure and (memory := remembered(each.memory, each.open, held)):
            each.recall(memory)
        if each.claim.conversation is None:
            known_before = last.get(each.seen.server.key, {}).get(key_of(each.seen.process))
            if (kept := unlost(known_before, each.open)) is not None:
                each.recall(kept)
        each.stay_doubtful(doubts.get(each.seen.server.key, {}))


def _needed(candidates: Sequence[_Candidate]) -> bool:
    """Whether memories can change anything: a registry that can be read is better than any."""
    return any(not is_sure(each.claim) or each.claim.written_at for each in candidates)


def settle(candidates: Sequence[_Candidate], others: Sequence[Held] = ()) -> None:
    """Let every conversation be claimed by one pane, the one with the strongest evidence."""
    holders: dict[_Contested, _Candidate | Held] = {_contested(each.identity): each for each in others}
    queue = list(candidates)
    _doubt_shared(candidates)
    while queue:
        each = queue.pop()
        if each.claim.conversation is None:
            continue
        key = _contested(each.claim)
        holder = holders.get(key)
        if holder is not None and holder.strength <= each.strength:
            each.give_way()
            queue.append(each)
            continue
        holders[key] = each
        if isinstance(holder, _Candidate):
            holder.give_way()
            queue.append(holder)
    for each in candidates:
        each.explain(holders)


def _doubt_shared(candidates: Sequence[_Candidate]) -> None:
    """Let nobody be certain by what tells of the past, where another pane is in the same conversation too.

    One who was there and went on leaves no trace once the other has taken it up again.
    """
    claimed: dict[_Contested, int] = {}
    for each in candidates:
        if each.claim.certain:
            claimed[_contested(each.claim)] = claimed.get(_contested(each.claim), 0) + 1
    for each in candidates:
        claim = each.claim
        if claim.certain and claim.evidence in PAST and claimed[_contested(claim)] > 1:
            because = (*claim.because, "another pane is in it too, so that this one may have gone on")
            each.open[0] = msgspec.structs.replace(claim, certain=False, because=because)


def _identified(capture: Capture, candidates: dict[str, _Candidate], host: HostView) -> Capture:
    panes, details = [], dict(capture.details.panes)
    for pane in capture.topology.panes:
        each = candidates.get(pane.id)
        if each is None:
            program = program_of(details[pane.id].processes)
            panes.append(msgspec.structs.replace(pane, program=program) if program else pane)
            continue
        identity = kept(each.claim)
        panes.append(msgspec.structs.replace(pane, program=_launched(each.seen.process, pane), identity=identity))
        details[pane.id] = _described(details[pane.id], each, host, capture.taken_at)
    return with_panes(capture, panes, details)


def _launched(process: Process, pane: Pane) -> Command:
    return Command(argv=process.argv, cwd=process.cwd or pane.cwd, environ=process.environ)


def kept(claim: Identity) -> Identity:
    """Return a claim as it is kept: without what was only for weighing it."""
    return msgspec.structs.replace(claim, because=(), written_at=None, left=(), perhaps_left=())


def _described(details: PaneDetails, each: _Candidate, host: HostView, now: datetime) -> PaneDetails:
    try:
        described = each.adapter.describe(each.claim, each.seen.process, host)
    except Exception:
        _complain(f"the conversation in pane {each.seen.pane} could not be described")
        described = None
    memory = Memory(identity=kept(each.claim), at=now) if each.claim is each.sure else each.memory
    return msgspec.structs.replace(
        details,
        agent=described,
        agent_pid=each.seen.process.pid,
        sure=memory.identity if memory else None,
        sure_at=memory.at if memory else None,
        because=each.because,
    )


def _complain(what: str) -> None:
    import logging  # dear to import, and needed only when an adapter is broken

    logging.getLogger(__name__).exception(what)
