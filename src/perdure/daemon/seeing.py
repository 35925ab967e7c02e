"""What a pane shows and what its agent says, as observations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct, structs

from perdure.agents import Roster
from perdure.agents.generic import is_shell, is_waiting_shell
from perdure.host.processes import Entry, children_of, is_stopped, read_entry, read_words
from perdure.model.identity import Identity
from perdure.model.observation import STOPPED, Reading, Source
from perdure.model.run import Confidence, Program, Reason, RunState
from perdure.model.screen import Screen
from perdure.model.sighting import Seen
from perdure.ports import AgentAdapter, HostView, ShowsState, TellsState
from perdure.snapshots.identify import kept
from perdure.snapshots.remember import stands_alone

_HIGH, _MEDIUM = 0.85, 0.6
#: How many shells deep it is looked for what runs.
_DEEPEST = 5


class Tenant(Struct, frozen=True, kw_only=True):
    """The agent that was last found in a pane."""

    adapter: AgentAdapter
    seen: Seen
    #: None when its files are another user's, which are only read as that user, by a whole look.
    view: HostView | None
    #: The best claim of the last look, by which a change is noticed.
    claim: tuple[str | None, bool]
    #: The files whose change is worth a look.
    paths: tuple[str, ...] = ()

    @property
    def is_titled(self) -> bool:
        """Whether its title alone may tell that it is busy."""
        return isinstance(self.adapter, ShowsState) and self.adapter.title_tells


def told(tenant: Tenant) -> Iterator[Reading]:
    """Yield what the agent says itself. An adapter that breaks says nothing."""
    if isinstance(tenant.adapter, TellsState) and tenant.view is not None:
        try:
            yield from tenant.adapter.told(tenant.seen.process, tenant.view, tenant.seen.tree)
        except Exception:
            return


def telling(tenant: Tenant) -> tuple[str, ...]:
    """Return the files whose change is worth a look."""
    if not isinstance(tenant.adapter, TellsState) or tenant.view is None:
        return ()
    try:
        return tuple(tenant.adapter.telling(tenant.seen.process, tenant.view, tenant.seen.tree))
    except Exception:
        return ()


def at_a_halt(tenant: Tenant, now: datetime) -> Reading:
    """Return whether the agent was stopped (Ctrl-Z): what is shown is then what another writes, and it hears nothing."""
    if not is_stopped(tenant.seen.process.pid):
        return Reading(source=Source.PROCESS, at=now)
    return _by_process(RunState.UNKNOWN, STOPPED, now)


def on_screen(tenant: Tenant, lines: Sequence[str], title: str, now: datetime) -> Reading:
    """Return what the screen says; that it says nothing is a reading too."""
    try:
        reading = tenant.adapter.read_screen(Screen(lines=tuple(lines), title=title))
    except Exception:
        reading = None
    if reading is None:
        return Reading(source=Source.SCREEN, at=now)
    return Reading(
        source=Source.SCREEN,
        at=now,
        state=None if reading.state is None else RunState(reading.state.value),
        reason=_reason(reading.reason),
        rule=reading.rule,
        confidence=_confidence(reading.confidence),
        frozen=reading.frozen,
    )


def by_title(tenant: Tenant, title: str, now: datetime) -> Reading | None:
    """Return that the agent is busy, where its title alone says so: then its lines need not be read."""
    if not tenant.is_titled:
        return None
    reading = on_screen(tenant, (), title, now)
    return reading if reading.state is RunState.BUSY else None


def looked_again(tenant: Tenant) -> tuple[Tenant, Identity | None]:
    """Return the tenant with the conversation it would be taken to be in now, and what it is in if that is beyond doubt.

    An adapter that breaks has said nothing.
    """
    if tenant.view is None:
        return tenant, None
    try:
        best = next(iter(tenant.adapter.identify(tenant.seen, tenant.view)), None)
    except Exception:
        return tenant, None
    claim = (None, False) if best is None else (best.conversation, best.certain)
    certain = kept(best) if best is not None and stands_alone(best) else None
    return structs.replace(tenant, claim=claim), certain


def settled(tenant: Tenant, before: Tenant | None) -> Tenant:
    """Return who was found by a whole look, with what will tell that they went on."""
    if before is not None and before.seen.process.pid == tenant.seen.process.pid:
        tenant = structs.replace(tenant, claim=before.claim)
    again, _ = looked_again(tenant)
    return structs.replace(again, paths=telling(tenant))


class Occupant(NamedTuple):
    """The program that has a pane's terminal: by its name too, since one process may become another program."""

    pid: int
    name: str


def at_prompt(shell: Program, now: datetime) -> tuple[Reading | None, Occupant | None]:
    """Return whether a pane waits at a shell's prompt, and who has its terminal when it does not.

    The prompt may be that of another shell than the one the pane was begun with: one that was started by it.
    """
    entry = read_entry(shell.pid)
    if entry is None or entry.start_ticks != shell.start_ticks:
        return None, None
    foreground = entry.pgid if entry.tpgid in (-1, 0) else entry.tpgid
    leader = entry if foreground == entry.pid else read_entry(foreground)
    if leader is None:
        # The first of several has ended, and the others go on.
        occupant = Occupant(foreground, "program")
    elif _waits(leader):
        return _by_process(RunState.IDLE, "prompt", now), None
    else:
        occupant = _occupant(leader)
    return _by_process(RunState.BUSY, occupant.name, now), occupant


def _waits(leader: Entry) -> bool:
    """Whether a process is a shell that was not told to run something; by its name alone where its words are hidden."""
    if not is_shell(leader.comm):
        return False
    _, argv = read_words(leader.pid)
    return is_waiting_shell(argv) if argv else True


def _occupant(leader: Entry) -> Occupant:
    """Return what runs, where a shell was told to run it: what that has started last."""
    for _ in range(_DEEPEST):
        below = [child for pid in children_of(leader.pid) if (child := read_entry(pid)) and child.pgid == leader.pgid]
        if not is_shell(leader.comm) or not below:
            break
        leader = below[-1]
    return Occupant(leader.pid, leader.comm)


def may_be_an_agent(pid: int, known: Roster) -> bool:
    """Tell whether a process is called what some agent may be called."""
    entry = read_entry(pid)
    if entry is None:
        return False
    exe, argv = read_words(pid)
    return bool(known.possible(entry.comm, exe, argv))


def _by_process(state: RunState, rule: str, now: datetime) -> Reading:
    return Reading(source=Source.PROCESS, at=now, state=state, rule=rule, confidence=Confidence.HIGH)


def _reason(reason: str | None) -> Reason | None:
    return Reason(reason) if reason in tuple(Reason) else None


def _confidence(share: float) -> Confidence:
    if share >= _HIGH:
        return Confidence.HIGH
    return Confidence.MEDIUM if share >= _MEDIUM else Confidence.LOW
