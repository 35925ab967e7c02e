"""A snapshot as it may be shown. Pure."""

from __future__ import annotations

import msgspec

from perdure.model.process import Command, Process
from perdure.model.secrets import redact_argv, redact_text
from perdure.model.snapshot import Snapshot
from perdure.model.topology import Pane, PaneDetails


def redacted(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without the secrets it holds in arguments, titles and tasks.

    The store keeps the arguments as they were, because a program is started again with them; nothing that
    leaves it does.
    """
    replace = msgspec.structs.replace
    panes = tuple(_pane(pane) for pane in snapshot.topology.panes)
    details = {id: _details(each) for id, each in snapshot.details.panes.items()}
    return replace(
        snapshot,
        topology=replace(snapshot.topology, panes=panes),
        details=replace(snapshot.details, panes=details),
    )


def _pane(pane: Pane) -> Pane:
    return msgspec.structs.replace(
        pane,
        title=redact_text(pane.title),
        start_command=redact_text(pane.start_command),
        program=_command(pane.program) if pane.program else None,
    )


def _command(command: Command) -> Command:
    return msgspec.structs.replace(command, argv=redact_argv(command.argv))


def _process(process: Process) -> Process:
    return msgspec.structs.replace(process, argv=redact_argv(process.argv))


def _details(details: PaneDetails) -> PaneDetails:
    agent = details.agent
    if agent is not None and agent.task:
        agent = msgspec.structs.replace(agent, task=redact_text(agent.task))
    return msgspec.structs.replace(
        details,
        title=redact_text(details.title),
        processes=tuple(_process(each) for each in details.processes),
        agent=agent,
    )
