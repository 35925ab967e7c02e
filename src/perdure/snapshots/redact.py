"""A snapshot as it may be shown. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

import msgspec
from msgspec import Struct

from perdure.model.process import Command, Process
from perdure.model.secrets import HIDDEN, is_secret_name, redact_argv, redact_text
from perdure.model.snapshot import Snapshot
from perdure.model.topology import Options, Pane, PaneDetails, Session


class Discretion(Struct, frozen=True, kw_only=True):
    """Which variables may be shown, besides what their names and values look like."""

    #: Variables of processes that may be. Any other was kept because somebody asked for it by name, and may be a
    #: secret without looking like one.
    harmless: frozenset[str] = frozenset()
    #: Variables that never are, wherever they are set.
    private: frozenset[str] = frozenset()


def redacted(snapshot: Snapshot, discretion: Discretion) -> Snapshot:
    """Return the snapshot without the secrets it holds in arguments, variables, options, titles and tasks.

    The store keeps arguments and variables as they were, because a program is started again with them; nothing that
    leaves it does.
    """
    replace = msgspec.structs.replace
    topology = replace(
        snapshot.topology,
        sessions=tuple(_session(each, discretion) for each in snapshot.topology.sessions),
        windows=tuple(replace(each, options=redact_options(each.options)) for each in snapshot.topology.windows),
        panes=tuple(_pane(pane, discretion) for pane in snapshot.topology.panes),
    )
    details = {id: _details(each, discretion) for id, each in snapshot.details.panes.items()}
    return replace(
        snapshot,
        topology=topology,
        details=replace(snapshot.details, panes=details),
    )


def redact_options(options: Options, private: Collection[str] = ()) -> Options:
    """Return options, or an environment, without the secrets among their values and without the private ones."""
    return {
        name: HIDDEN if name in private or is_secret_name(name) else redact_text(value)
        for name, value in options.items()
    }


def _session(session: Session, discretion: Discretion) -> Session:
    return msgspec.structs.replace(
        session,
        options=redact_options(session.options),
        environment=redact_options(session.environment, discretion.private),
    )


def _pane(pane: Pane, discretion: Discretion) -> Pane:
    return msgspec.structs.replace(
        pane,
        title=redact_text(pane.title),
        start_command=redact_text(pane.start_command),
        options=redact_options(pane.options),
        program=_started(pane.program, discretion) if pane.program else None,
    )


_Started = TypeVar("_Started", Command, Process)


def _started(started: _Started, discretion: Discretion) -> _Started:
    private = (started.environ.keys() - discretion.harmless) | discretion.private
    cleaned: _Started = msgspec.structs.replace(
        started, argv=redact_argv(started.argv), environ=redact_options(started.environ, private)
    )
    return cleaned


def _details(details: PaneDetails, discretion: Discretion) -> PaneDetails:
    agent = details.agent
    if agent is not None:
        title, task = (text and redact_text(text) for text in (agent.title, agent.task))
        agent = msgspec.structs.replace(agent, title=title, task=task)
    return msgspec.structs.replace(
        details,
        title=redact_text(details.title),
        processes=tuple(_started(each, discretion) for each in details.processes),
        agent=agent,
    )
