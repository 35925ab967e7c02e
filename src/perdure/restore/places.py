"""In which order sessions and windows are made, and which of them makes which. Pure.

tmux makes a session together with its first window, and a window belongs to whoever made it; the others link it.
Sessions of one group share their windows, so only the first of them brings any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from perdure.model.plan import Plan
from perdure.model.topology import Link, Session, Topology
from perdure.restore.match import other_name


class NewSession(Struct, frozen=True, kw_only=True):
    """A session to be made, and the windows it brings or links."""

    session: Session
    #: What it is called in the end: its name may be another's now.
    called: str
    #: What it is called while it is made: a group is called after its first session.
    name: str
    #: The session of the snapshot it shares its windows with.
    shares: str | None = None
    #: Windows it makes, by index.
    makes: tuple[Link, ...] = ()
    #: Windows it only shows.
    links: tuple[Link, ...] = ()


class Places(Struct, frozen=True, kw_only=True):
    """Everything that has to be made, in this order."""

    sessions: tuple[NewSession, ...] = ()
    #: Windows that sessions which are there make and link.
    makes: tuple[Link, ...] = ()
    links: tuple[Link, ...] = ()
    #: Sessions of groups of one: tmux only makes a group for a second session, which then has to end.
    alone: tuple[str, ...] = ()


def arrange(saved: Topology, plan: Plan, living: Topology | None) -> Places:
    """Return what to make. `living` is what was there when the plan was made."""
    new = [session for session in saved.sessions if session.id in plan.making]
    groups = {session.id: session.group for session in living.sessions} if living else {}
    names = {session.name for session in living.sessions} if living else set()
    called = _called(saved, new, names)
    leaders = _leaders(saved, plan, groups)
    owned, shown = _divided(plan, new, leaders)
    made = []
    for session in sorted(new, key=lambda session: session.id in leaders):
        leader = leaders.get(session.id)
        made.append(
            NewSession(
                session=session,
                called=called[session.id],
                name=_first_name(session, called, {*names, *groups.values()}) if leader is None else called[session.id],
                shares=leader,
                makes=_of(session, owned),
                links=_of(session, shown),
            )
        )
    return Places(
        sessions=tuple(made),
        makes=tuple(link for link in owned if link.session in plan.sessions),
        links=tuple(link for link in shown if link.session in plan.sessions),
        alone=tuple(_alone(saved, plan, groups)),
    )


def _called(saved: Topology, new: Sequence[Session], names: Collection[str]) -> dict[str, str]:
    """Return what each new session will be called: as it was, unless another is called so now."""
    taken = {*names, *(session.name for session in saved.sessions)}
    called: dict[str, str] = {}
    for session in new:
        name = session.name if session.name not in names else other_name(session.name, taken)
        called[session.id] = name
        taken.add(name)
    return called


def _first_name(session: Session, called: Mapping[str, str], taken: Collection[str]) -> str:
    """Return what a session that leads a group is called while others join: a group is called after it.

    A group of this name that somebody else has would take our session in.
    """
    name = called[session.id]
    if not session.group:
        return name
    others = {other for id, other in called.items() if id != session.id} | {*taken}
    return session.group if session.group not in others else other_name(name, others)


def _of(session: Session, links: Iterable[Link]) -> tuple[Link, ...]:
    return tuple(link for link in links if link.session == session.id)


def _leaders(saved: Topology, plan: Plan, groups: Mapping[str, str]) -> dict[str, str]:
    """Return for each session that gets its windows from another of its group, which one that is."""
    leaders: dict[str, str] = {}
    for group in dict.fromkeys(session.group for session in saved.sessions if session.group):
        members = [session for session in saved.sessions if session.group == group]
        there = [session.id for session in members if session.id in plan.sessions]
        made = [session for session in members if session.id in plan.making]
        # What is there may have the name and no group: then it neither leads nor follows one that has.
        grouped = [id for id in there if groups.get(plan.sessions[id])]
        if grouped or there:
            first = (grouped or there)[0]
        elif made:
            first = next((session.id for session in made if session.name == group), made[0].id)
        else:
            continue
        followers = [id for id in grouped if _is_together(id, first, plan, groups)] + [each.id for each in made]
        leaders |= {id: first for id in followers if id != first}
    return leaders


def _is_together(one: str, other: str, plan: Plan, groups: Mapping[str, str]) -> bool:
    return groups[plan.sessions[one]] == groups[plan.sessions[other]]


def _divided(plan: Plan, new: Sequence[Session], leaders: Mapping[str, str]) -> tuple[list[Link], list[Link]]:
    """Return the places in which windows are made, and those in which they are only shown.

    A window is made once, by a session that is there when there is one, else by the first of the new.
    """
    order = {session.id: place for place, session in enumerate(new)}
    links = [link for link in plan.links if link.session not in leaders]
    first: dict[str, Link] = {}
    for link in sorted(links, key=lambda link: order.get(link.session, -1)):
        if link.window in plan.making:
            first.setdefault(link.window, link)
    owned = [link for link in links if first.get(link.window) is link]
    return owned, [link for link in links if first.get(link.window) is not link]


def _alone(saved: Topology, plan: Plan, groups: Mapping[str, str]) -> Iterable[str]:
    members = Counter(
        session.group for session in saved.sessions if session.id in plan.making or session.id in plan.sessions
    )
    for session in saved.sessions:
        is_unfinished = session.id in plan.unfinished and not groups.get(plan.sessions.get(session.id, ""))
        if session.group and members[session.group] == 1 and (session.id in plan.making or is_unfinished):
            yield session.id
