"""A snapshot as it may be shown. Pure."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from perdure.model.process import Command, Process
from perdure.model.secrets import HIDDEN, is_secret_name, redact_argv, redact_text
from perdure.model.snapshot import Snapshot
from perdure.model.topology import Options, Pane, PaneDetails, Session, Window


def redacted(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without the secrets it holds in arguments, options, titles and tasks.

    The store keeps the arguments as they were, because a program is started again with them; nothing that
    leaves it does.
    """
    replace = msgspec.structs.replace
    topology = replace(
        snapshot.topology,
        sessions=tuple(_with_clean_options(each) for each in snapshot.topology.sessions),
        windows=tuple(_with_clean_options(each) for each in snapshot.topology.windows),
        panes=tuple(_pane(pane) for pane in snapshot.topology.panes),
    )
    details = {id: _details(each) for id, each in snapshot.details.panes.items()}
    return replace(
        snapshot,
        topology=topology,
        details=replace(snapshot.details, panes=details),
    )


def redact_options(options: Options) -> Options:
    """Return options, or an environment, without the secrets among their values."""
    return {name: HIDDEN if is_secret_name(name) else redact_text(value) for name, value in options.items()}


_Part = TypeVar("_Part", Session, Window)


def _with_clean_options(part: _Part) -> _Part:
    cleaned: _Part = msgspec.structs.replace(part, options=redact_options(part.options))
    return cleaned


def _pane(pane: Pane) -> Pane:
    return msgspec.structs.replace(
        pane,
        title=redact_text(pane.title),
        start_command=redact_text(pane.start_command),
        options=redact_options(pane.options),
        program=_command(pane.program) if pane.program else None,
    )


def _command(command: Command) -> Command:
    return msgspec.structs.replace(command, argv=redact_argv(command.argv))


def _process(process: Process) -> Process:
    return msgspec.structs.replace(process, argv=redact_argv(process.argv))


def _details(details: PaneDetails) -> PaneDetails:
    agent = details.agent
    if agent is not None:
        title, task = (text and redact_text(text) for text in (agent.title, agent.task))
        agent = msgspec.structs.replace(agent, title=title, task=task)
    return msgspec.structs.replace(
        details,
        title=redact_text(details.title),
        processes=tuple(_process(each) for each in details.processes),
        agent=agent,
    )
