"""In which order sessions and windows are made, and which of them makes which. Pure.

tmux makes a session together with its first window, and a window belongs to whoever made it; the others link it.
Sessions of one group share their windows, so only the first of them brings any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from perdure.model.plan import Plan
from perdure.model.topology import Link, Session, Topology


class NewSession(Struct, frozen=True, kw_only=True):
    """A session to be made, and the windows it brings or links."""

    session: Session
    #: What it is called while it is made: a group is called after its first session.
    name: str
    #: The session it shares its windows with: an id that is there, or `=name` of one that was made before.
    shares: str | None = None
    #: Whether a second session has to be made and ended, because a group of one would not be one.
    needs_second: bool = False
    #: Windows it makes, by index; the first comes with the session.
    makes: tuple[Link, ...] = ()
    #: Windows it only shows.
    links: tuple[Link, ...] = ()


class Places(Struct, frozen=True, kw_only=True):
    """Everything that has to be made, in this order."""

    sessions: tuple[NewSession, ...] = ()
    #: Windows that sessions which are there make and link.
    makes: tuple[Link, ...] = ()
    links: tuple[Link, ...] = ()


def arrange(saved: Topology, plan: Plan, names_taken: frozenset[str]) -> Places:
    """Return what to make. `names_taken` are the names of the sessions that are there."""
    new = [session for session in saved.sessions if session.id in plan.making]
    leaders = _leaders(saved, plan, new)
    owners = _owners(plan, new, leaders)
    ordered = sorted(new, key=lambda session: leaders.get(session.id) is not None)
    members: dict[str, int] = {}
    for session in saved.sessions:
        if session.group and (session.id in plan.making or session.id in plan.sessions):
            members[session.group] = members.get(session.group, 0) + 1
    made: dict[str, NewSession] = {}
    for session in ordered:
        leader = leaders.get(session.id)
        first = bool(session.group) and leader is None
        own = [link for link in plan.links if link.session == session.id and leader is None]
        # A group of this name that somebody else has would take our session in.
        name = session.group if first and session.group not in names_taken | {s.name for s in new} else session.name
        made[session.id] = NewSession(
            session=session,
            name=name,
            shares=None if leader is None else plan.sessions.get(leader) or f"={made[leader].name}",
            needs_second=first and members[session.group] == 1,
            makes=tuple(link for link in own if owners.get(link.window) == session.id),
            links=tuple(link for link in own if owners.get(link.window) != session.id),
        )
    there = [link for link in plan.links if link.session in plan.sessions and not _follows(link, leaders)]
    return Places(
        sessions=tuple(made.values()),
        makes=tuple(link for link in there if owners.get(link.window) == link.session),
        links=tuple(link for link in there if owners.get(link.window) != link.session),
    )


def _leaders(saved: Topology, plan: Plan, new: Sequence[Session]) -> dict[str, str | None]:
    """Return for each session of a group the one that brings the windows; None for that one itself."""
    leaders: dict[str, str | None] = {}
    for group in {session.group for session in new if session.group}:
        members = [session for session in saved.sessions if session.group == group]
        there = [session.id for session in members if session.id in plan.sessions]
        made = [session for session in members if session.id in plan.making]
        first = there[0] if there else next((s.id for s in made if s.name == group), made[0].id)
        leaders |= {session.id: None if session.id == first else first for session in made}
        # Sessions of a group that lives get a window that is missing once, through the first of them.
        leaders |= {id: None if id == first else first for id in there}
    return leaders


def _follows(link: Link, leaders: Mapping[str, str | None]) -> bool:
    return leaders.get(link.session) is not None


def _owners(plan: Plan, new: Sequence[Session], leaders: Mapping[str, str | None]) -> dict[str, str]:
    """Return which session makes each window that is not there: one that is there already, else the first of the new."""
    order = {session.id: place for place, session in enumerate(new)}
    owners: dict[str, str] = {}
    for link in sorted(plan.links, key=lambda link: order.get(link.session, -1)):
        if link.window in plan.making and not _follows(link, leaders):
            owners.setdefault(link.window, link.session)
    return owners
