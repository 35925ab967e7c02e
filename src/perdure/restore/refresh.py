"""What agents did after they were last saved, by the files they have left behind.

A save is a minute old as a rule. An agent that was asked its first question since, or went on to another conversation,
says so itself: in its registry, in the records of its hooks, in its transcript. The saved process is looked at once more,
against the files as they are now; nothing that somebody else wrote makes it be in another conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from msgspec import Struct, structs

from perdure.agents import Roster
from perdure.errors import SnapshotDamaged, SnapshotNotFound
from perdure.host.processes import ProcessTable
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.plan import AGENT_ACTIONS, Action, Plan, Step
from perdure.model.process import Process
from perdure.model.sighting import Seen
from perdure.model.snapshot import CAPTURED, Snapshot
from perdure.model.topology import Pane, PaneDetails
from perdure.ports import AgentAdapter, HostView, SnapshotStore
from perdure.restore.plan import Conversation

#: What an agent says of itself, and nobody else of it.
_OWN = (Evidence.REGISTRY, Evidence.HOOK)
#: What is read by the number of a process, which may be another's by now.
_NUMBERED = (*_OWN, Evidence.OPEN_FILE)
#: Number and start time, which name a process that is never another.
Number = tuple[int, int]
_TOLD = AGENT_ACTIONS | {Action.SHOW}


class Newer(Struct, frozen=True, kw_only=True):
    """What is known of the agent in a pane of the snapshot beyond the snapshot."""

    identity: Identity
    #: None: what was saved of the conversation is all that is known.
    agent: AgentDetails | None = None
    #: One sentence when the identity is another than the saved one, else "".
    why: str = ""


def refreshed(
    saved: Identity, claims: Sequence[Identity], described: AgentDetails | None, last_seen_at: datetime
) -> Identity | None:
    """Return what an agent is known to be in by now, None when what was saved stands.

    `claims` are those of the saved process by the files of now, without what belongs to others; `described` is what is
    known of the saved conversation. Another conversation than the saved one is taken only on the process's own word, or
    as a guess where none was known.
    """
    own = own_word(claims, last_seen_at)
    if own is not None and (own.conversation != saved.conversation or not saved.certain):
        return _kept(own)
    if saved.conversation is None:
        guess = next((claim for claim in claims if claim.conversation is not None), None)
        return None if guess is None else structs.replace(_kept(guess), certain=False)
    if saved.prompted is not False:
        return None
    return _begun(saved, claims, described)


def own_word(claims: Sequence[Identity], last_seen_at: datetime) -> Identity | None:
    """Return the conversation a process certainly was in by its own word after it was last seen, if there is one."""
    best = claims[0] if claims else None
    if best is None or best.conversation is None or not best.certain or best.evidence not in _OWN:
        return None
    # A registry is as new as the process. What a hook recorded before was weighed when it was saved.
    if best.evidence is Evidence.HOOK and (best.written_at is None or best.written_at <= last_seen_at):
        return None
    return best


def _begun(saved: Identity, claims: Sequence[Identity], described: AgentDetails | None) -> Identity | None:
    """Return a conversation in which nothing had been said as it is now, None when nothing has."""
    same = [claim for claim in claims if claim.conversation == saved.conversation]
    spoken = next((claim for claim in same if claim.prompted), None)
    if spoken is not None:
        return structs.replace(saved, prompted=True, taken=False, home=spoken.home)
    if described is not None and described.task is not None:
        return structs.replace(saved, prompted=True, taken=False)
    if not saved.taken and any(claim.taken for claim in same):
        return structs.replace(saved, taken=True)
    return None


def _kept(claim: Identity) -> Identity:
    return structs.replace(claim, because=(), written_at=None, left=(), perhaps_left=())


# -- all agents of a snapshot ---------------------------------------------------------------------------------------


def moved_on(snapshot: Snapshot, store: SnapshotStore) -> frozenset[Number]:
    """Return the agents that a later save found in another conversation: who asks for this snapshot wants this one."""
    ours = {_number(process): identity for _, identity, _, process in _agents(snapshot)}
    lineage = store.list_snapshots(server=snapshot.server) if ours else ()
    found: set[Number] = set()
    for summary in reversed(lineage):
        if summary.last_seen_at <= snapshot.last_seen_at or summary.id == snapshot.id or summary.origin != CAPTURED:
            continue
        with suppress(SnapshotNotFound, SnapshotDamaged):
            later = {_number(process): each for _, each, _, process in _agents(store.get_snapshot(summary.id))}
            found |= {number for number in ours.keys() & later.keys() if _key(ours[number]) != _key(later[number])}
            # Whoever has ended does not come again.
            ours = {number: ours[number] for number in (ours.keys() & later.keys()) - found}
        if not ours:
            break
    return frozenset(found)


class _Look(Struct, frozen=True, kw_only=True):
    """One agent of the snapshot, looked at again."""

    pane: str
    number: Number
    saved: Identity
    #: When the saved identity was last known to hold.
    at: datetime
    claims: tuple[Identity, ...]
    describe: Callable[[Identity], AgentDetails | None]


def newer(
    snapshot: Snapshot,
    known: Roster,
    view: HostView,
    table: ProcessTable,
    *,
    held: Collection[Conversation],
    alive: Collection[Number],
    settled: Collection[Number] = (),
) -> dict[str, Newer]:
    """Return by pane what is known of the snapshot's agents beyond it. `held` is what others are in now.

    `alive` are the processes that are in a pane now: those are known by what they do. Those that are `settled` stay in
    the conversation they were saved in.
    """
    looks = [_stayed(look) if look.number in settled else look for look in _looks(snapshot, known, view, table, alive)]
    words = {look.pane: own_word(look.claims, look.at) for look in looks}
    offers = _offers([look for look in looks if words[look.pane] is None], _others(snapshot, words, held))
    went_to = {_key(word): pane for pane, word in words.items() if word is not None}
    found = {}
    for look in looks:
        claims = look.claims
        if look.saved.conversation is None and words[look.pane] is None:
            claims = offers.get(look.pane, ())
        described = look.describe(look.saved)
        identity = refreshed(look.saved, claims, described, look.at) or look.saved
        taker = went_to.get(_key(identity)) if identity.certain and words[look.pane] is None else None
        if taker is not None:
            # Its own word is newer. Who of the two is in it now only a person can tell.
            identity = structs.replace(identity, certain=False)
        if identity.conversation != look.saved.conversation:
            described = look.describe(identity)
        found[look.pane] = Newer(identity=identity, agent=described, why=_why(look.saved, identity, taker))
    return found


def _agents(snapshot: Snapshot) -> Iterator[tuple[Pane, Identity, PaneDetails, Process]]:
    for pane in snapshot.topology.panes:
        details = snapshot.details.panes.get(pane.id)
        for process in details.processes if details is not None and pane.identity is not None else ():
            if details is not None and pane.identity is not None and process.pid == details.agent_pid:
                yield pane, pane.identity, details, process


def _number(process: Process) -> Number:
    return (process.pid, process.start_ticks)


def _stayed(look: _Look) -> _Look:
    return structs.replace(look, claims=tuple(each for each in look.claims if _key(each) == _key(look.saved)))


def _looks(
    snapshot: Snapshot, known: Roster, view: HostView, table: ProcessTable, alive: Collection[Number]
) -> Iterator[_Look]:
    adapters = known.called({identity.agent for _, identity, _, _ in _agents(snapshot)})
    for pane, identity, details, process in _agents(snapshot):
        adapter = adapters.get(identity.agent)
        if adapter is not None and _number(process) not in alive:
            yield _look(snapshot, pane, identity, details, process, adapter, view, table)


def _look(
    snapshot: Snapshot,
    pane: Pane,
    saved: Identity,
    details: PaneDetails,
    process: Process,
    adapter: AgentAdapter,
    view: HostView,
    table: ProcessTable,
) -> _Look:
    def describe(identity: Identity) -> AgentDetails | None:
        try:
            described = adapter.describe(identity, process, view) if identity.conversation is not None else None
        except Exception:  # one broken adapter costs only itself
            return None
        # What is empty or gone tells less than what was saved.
        return described if described and described.transcript and view.size(described.transcript) else None

    # What the title was is not what it is: it would speak for the conversation that was in sight then.
    seen = Seen(server=snapshot.server, pane=pane.id, title="", process=process, tree=details.processes)
    try:
        claims = tuple(adapter.identify(seen, view))
    except Exception:
        claims = ()
    return _Look(
        pane=pane.id,
        number=_number(process),
        saved=saved,
        # Of a pane that a later snapshot has too, what is known may be newer than all else.
        at=max(snapshot.last_seen_at, details.sure_at or snapshot.last_seen_at),
        claims=believed(claims, process, table),
        describe=describe,
    )


def believed(claims: Sequence[Identity], process: Process, table: ProcessTable) -> tuple[Identity, ...]:
    """Return the claims that can be of this process: its number may have been given to another since."""
    now = table.entry(process.pid)
    is_anothers = now is not None and now.start_ticks != process.start_ticks
    booted = table.booted_at
    until = booted if process.started_at < booted else None
    return tuple(
        claim
        for claim in claims
        if not (is_anothers and claim.evidence in _NUMBERED)
        and not (until is not None and claim.written_at is not None and claim.written_at > until)
    )


def _others(
    snapshot: Snapshot, words: Mapping[str, Identity | None], held: Collection[Conversation]
) -> frozenset[Conversation | None]:
    """What no agent may be guessed to be in: a conversation of another pane, or of somebody who is at work in it."""
    saved = {_key(pane.identity) for pane in snapshot.topology.panes if pane.identity is not None}
    own = {_key(word) for word in words.values() if word is not None}
    return frozenset(saved | own | set(held) | {None})


def _offers(looks: Sequence[_Look], others: Collection[Conversation | None]) -> dict[str, tuple[Identity, ...]]:
    """Give every agent that was in no known conversation one it may be in, each another.

    Where there are fewer conversations than agents that may be in them, none of these gets one: whose it is nobody knows.
    """
    open = {look.pane: _offered(look, others) for look in looks if look.saved.conversation is None}
    given: dict[str, Conversation | None] = {}
    for pane, claims in sorted(open.items(), key=lambda each: len(each[1])):
        given[pane] = next((key for key in claims if key not in given.values()), None)
    short = {key for pane, claims in open.items() if given[pane] is None for key in claims}
    return {pane: (open[pane][key],) for pane, key in given.items() if key is not None and key not in short}


def _offered(look: _Look, others: Collection[Conversation | None]) -> dict[Conversation | None, Identity]:
    """Return what may be offered, best first, by the best claim of each: alone, any of them would look like a word.

    What was last written before the agent was last seen was weighed then, and it was not in it.
    """
    found: dict[Conversation | None, Identity] = {}
    for claim in look.claims:
        is_old = claim.written_at is not None and claim.written_at <= look.at
        if (key := _key(claim)) not in others and not is_old:
            found.setdefault(key, structs.replace(claim, certain=False))
    return found


def _why(saved: Identity, now: Identity, taker: str | None) -> str:
    if taker is not None:
        return f"pane {taker} went on to {now.conversation} after the last save"
    if now.conversation != saved.conversation:
        if not now.certain:
            return f"{now.conversation} was written to after the last save"
        before = f", from {saved.conversation}" if saved.conversation is not None else ""
        return f"it went on to {now.conversation} after the last save{before}"
    if now.prompted and saved.prompted is False:
        return "the first was said in it after the last save"
    return ""


def _key(identity: Identity | None) -> Conversation | None:
    if identity is None or identity.conversation is None:
        return None
    return (identity.agent, identity.profile, identity.conversation)


# -- what comes of it -----------------------------------------------------------------------------------------------


def renewed(snapshot: Snapshot, found: Mapping[str, Newer]) -> Snapshot:
    """Return the snapshot with what is known beyond it; all else is as it was."""
    panes, details = [], dict(snapshot.details.panes)
    for pane in snapshot.topology.panes:
        each = found.get(pane.id)
        if each is not None:
            saved = details.get(pane.id)
            # What was saved of one conversation says nothing about another.
            if saved is not None and _key(each.identity) != _key(pane.identity):
                details[pane.id] = structs.replace(saved, agent=each.agent)
            elif saved is not None and each.agent is not None:
                details[pane.id] = structs.replace(saved, agent=_with_task_of(each.agent, saved.agent))
            pane = structs.replace(pane, identity=each.identity)
        panes.append(pane)
    return structs.replace(
        snapshot,
        topology=structs.replace(snapshot.topology, panes=tuple(panes)),
        details=structs.replace(snapshot.details, panes=details),
    )


def _with_task_of(now: AgentDetails, saved: AgentDetails | None) -> AgentDetails:
    """What is known now. What was asked for was, whatever has become of the file that said so."""
    return now if now.task is not None or saved is None else structs.replace(now, task=saved.task)


def told(plan: Plan, found: Mapping[str, Newer]) -> Plan:
    """Return the plan with a word at every step that is about something newer than the snapshot."""
    return structs.replace(plan, steps=tuple(_told(step, found.get(step.pane)) for step in plan.steps))


def _told(step: Step, found: Newer | None) -> Step:
    if found is None or not found.why or step.action not in _TOLD:
        return step
    return structs.replace(step, why=f"{step.why}; {found.why}" if step.why else found.why)
