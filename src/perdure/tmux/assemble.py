"""A survey put together into sessions, windows and panes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from perdure.model.topology import (
    Details,
    Link,
    Pane,
    PaneDetails,
    Session,
    SessionDetails,
    Topology,
    Window,
)
from perdure.model.wrapped import shortened
from perdure.tmux.parse import Garbled, Row, Survey, moment, number, read_options, read_session

# Frames of the spinners agents put before their titles: braille patterns, stars, circles. Not ASCII: a person
# may well begin a title with a dash.
_SPINNER = re.compile(
    "^(?:[\u2800-\u28ff\u2722\u2733\u2736\u273b\u273d\u2217\u25cb-\u25d7\u25f0-\u25f7\u23fa\u00b7]+ ?)+"
)


def calm_title(title: str) -> str:
    """Return a title without the spinner frame before it."""
    return _SPINNER.sub("", title)


def assemble(survey: Survey, settings: Mapping[str, bytes]) -> tuple[Topology, Details]:
    """Return what the survey shows; `settings` are the raw option lines by id.

    Raises `Garbled` when something belongs to nothing, or no number stands where one should: then the reading is not
    whole.
    """
    sessions = tuple(_session(row, settings.get(row.words[0], b"")) for row in survey.sessions)
    links = tuple(_link(row) for row in survey.windows)
    windows = {row.words[1]: _window(row, settings.get(row.words[1], b"")) for row in survey.windows}
    panes = {row.words[1]: _pane(row, settings.get(row.words[1], b"")) for row in survey.panes}
    topology = Topology(
        process=survey.process,
        sessions=tuple(sorted(sessions, key=lambda session: _number(session.id))),
        windows=tuple(sorted(windows.values(), key=lambda window: _number(window.id))),
        links=tuple(sorted(links, key=lambda link: (_number(link.session), link.index))),
        panes=tuple(sorted(panes.values(), key=lambda pane: _number(pane.id))),
    )
    _check(topology)
    details = Details(
        sessions={row.words[0]: _session_details(row) for row in survey.sessions},
        window_flags={row.words[1]: row.texts[1] for row in survey.windows},
        window_activity={row.words[1]: at for row in survey.windows if (at := _moment(row.words[10]))},
        panes={row.words[1]: _pane_details(row) for row in survey.panes},
    )
    return topology, details


def _check(topology: Topology) -> None:
    sessions = {session.id for session in topology.sessions}
    windows = {window.id for window in topology.windows}
    if {link.session for link in topology.links} != sessions:
        raise Garbled("a window belongs to no session, or a session has no window")
    if {pane.window for pane in topology.panes} != windows:
        raise Garbled("a pane belongs to no window, or a window has no pane")


def _session(row: Row, lines: bytes) -> Session:
    id, created, *_ = row.words
    name, group, path = row.texts
    options, environment = read_session(lines)
    return Session(
        id=id,
        name=name,
        created_at=moment(created),
        group=group,
        path=path,
        environment=environment.values,
        removed=environment.removed,
        hidden=environment.hidden,
        options=options,
    )


def _session_details(row: Row) -> SessionDetails:
    _, _, attached, activity, last_attached = row.words
    return SessionDetails(
        attached=number(attached or "0"), activity_at=_moment(activity), last_attached_at=_moment(last_attached)
    )


def _link(row: Row) -> Link:
    session, window, index, active, last, *_ = row.words
    return Link(session=session, window=window, index=number(index), active=active == "1", last=last == "1")


def _window(row: Row, lines: bytes) -> Window:
    _, id, _, _, _, zoomed, width, height, layout, visible, _ = row.words
    return Window(
        id=id,
        name=row.texts[0],
        width=number(width),
        height=number(height),
        layout=layout,
        visible_layout=visible,
        zoomed=zoomed == "1",
        options=read_options(lines),
    )


def _pane(row: Row, lines: bytes) -> Pane:
    window, id, index, pid, tty, width, height, active, last, dead, status, signal, *_ = row.words
    title, start_path, start_command, *located = row.texts
    path, command = located or ("", "")
    return Pane(
        id=id,
        window=window,
        index=number(index),
        pid=number(pid),
        tty=tty,
        width=number(width),
        height=number(height),
        active=active == "1",
        last=last == "1",
        title=calm_title(title),
        start_path=start_path,
        start_command=shortened(start_command),
        cwd=path,
        command=command,
        dead=dead == "1",
        exit_status=number(status) if status else None,
        exit_signal=number(signal) if signal else None,
        options=read_options(lines),
    )


def _pane_details(row: Row) -> PaneDetails:
    history, alternate, column, line, mode = row.words[12:]
    return PaneDetails(
        title=row.texts[0],
        mode=mode,
        history_size=number(history or "0"),
        alternate=alternate == "1",
        cursor=(number(column or "0"), number(line or "0")),
    )


def _moment(seconds: str) -> datetime | None:
    return moment(seconds) if seconds and seconds != "0" else None


def _number(id: str) -> int:
    return number(id[1:])
