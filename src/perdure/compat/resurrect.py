"""tmux-resurrect's save file, read: sessions, windows with their layouts, panes, and grouped sessions.

What ran in a pane is kept as text to look at. Its arguments were joined by spaces, so it cannot be started
again from here without running something else.
"""

from __future__ import annotations

import os.path
import re
from datetime import UTC, datetime, tzinfo

from perdure.compat.imported import broken, imported_process
from perdure.compat.resurrect_rows import GroupRow, PaneRow, SaveFile, WindowRow, read_rows
from perdure.model.process import Process
from perdure.model.secrets import redact_text
from perdure.model.server import Server
from perdure.model.snapshot import Capture
from perdure.model.topology import Details, Link, Pane, PaneDetails, Session, SessionDetails, Topology, Window

_FILE_NAME = re.compile(r"tmux_resurrect_(\d{8}T\d{6}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.txt", re.ASCII)

#: A window's place in the file: its session's name and its index there.
_Place = tuple[str, int]


def from_resurrect(raw: bytes, *, server: Server, taken_at: datetime) -> Capture:
    """Return what a save file tells. Raises `ImportFailed` with the line of what is wrong."""
    file = read_rows(raw)
    windows = _windows(file)
    panes = _panes(file, windows)
    sessions = _sessions(file, windows, taken_at)
    topology = Topology(
        process=imported_process(taken_at),
        sessions=tuple(sessions.values()),
        windows=tuple(_window(id, row, panes[place]) for place, (id, row) in windows.items()),
        links=(*_links(windows, sessions), *_grouped_links(file.groups, windows, sessions)),
        panes=tuple(pane for place, (id, row) in windows.items() for pane in _imported_panes(id, row, panes[place])),
    )
    details = _details(file, windows, panes, sessions, taken_at)
    return Capture(server=server, taken_at=taken_at, topology=topology, details=details)


def saved_at(path: str, zone: tzinfo | None = None) -> datetime | None:
    """Return when a save was made, by its file's name; None for any other name, such as the link `last`.

    The name has the local time of the machine that saved: of `zone`, or of this machine.
    """
    match = _FILE_NAME.fullmatch(os.path.basename(path))
    if not match:
        return None
    try:
        return datetime.fromisoformat(match[1]).replace(tzinfo=zone).astimezone(UTC)
    except ValueError:
        return None


def _windows(file: SaveFile) -> dict[_Place, tuple[str, WindowRow]]:
    windows: dict[_Place, tuple[str, WindowRow]] = {}
    for row in file.windows:
        if (row.session, row.index) in windows:
            raise broken(row.line, "this window was there before")
        windows[row.session, row.index] = (f"@{len(windows)}", row)
    return windows


def _panes(file: SaveFile, windows: dict[_Place, tuple[str, WindowRow]]) -> dict[_Place, list[PaneRow]]:
    panes: dict[_Place, list[PaneRow]] = {place: [] for place in windows}
    for row in file.panes:
        place = row.session, row.window
        if place not in panes:
            raise broken(row.line, "no line tells of this pane's window")
        if any(other.index == row.index for other in panes[place]):
            raise broken(row.line, "this pane was there before")
        panes[place].append(row)
    for place, (_, window) in windows.items():
        # Panes and windows are saved one after the other: what changed in between belongs to neither.
        if len(panes[place]) != len(window.cells):
            raise broken(window.line, f"{len(window.cells)} panes in the layout, but {len(panes[place])} in the file")
        panes[place].sort(key=lambda row: row.index)
    return panes


def _sessions(file: SaveFile, windows: dict[_Place, tuple[str, WindowRow]], taken_at: datetime) -> dict[str, Session]:
    if not windows:
        raise broken(1, "there is no session in this save")
    names = dict.fromkeys(session for session, _ in windows)
    groups: dict[str, str] = {}
    for row in file.groups:
        if row.original not in names:
            raise broken(row.line, f"session {row.original!r}, whose windows this one shows, is not in the file")
        if row.session in names or row.session in groups:
            raise broken(row.line, f"session {row.session!r} was there before")
        # A group is called after the session it began with.
        groups[row.session] = groups[row.original] = row.original
    every = dict.fromkeys((*names, *groups))
    return {
        name: Session(id=f"${number}", name=name, created_at=taken_at, group=groups.get(name, ""))
        for number, name in enumerate(every)
    }


def _links(windows: dict[_Place, tuple[str, WindowRow]], sessions: dict[str, Session]) -> list[Link]:
    return [
        Link(session=sessions[name].id, window=id, index=index, active=row.active, last="-" in row.flags)
        for (name, index), (id, row) in windows.items()
    ]


def _grouped_links(
    groups: list[GroupRow], windows: dict[_Place, tuple[str, WindowRow]], sessions: dict[str, Session]
) -> list[Link]:
    links: list[Link] = []
    for row in groups:
        shown = {index: id for (name, index), (id, _) in windows.items() if name == row.original}
        if any(index is not None and index not in shown for index in (row.active, row.last)):
            raise broken(row.line, f"session {row.original!r} has no such window")
        links += [
            Link(
                session=sessions[row.session].id,
                window=id,
                index=index,
                active=index == row.active,
                last=index == row.last,
            )
            for index, id in shown.items()
        ]
    return links


def _window(id: str, row: WindowRow, panes: list[PaneRow]) -> Window:
    name = row.name if row.name is not None else panes[0].window_name
    return Window(
        id=id,
        name=name or "",
        width=row.width,
        height=row.height,
        layout=row.layout,
        visible_layout=row.layout,
        zoomed="Z" in row.flags,
        options={} if row.automatic_rename is None else {"automatic-rename": row.automatic_rename},
    )


def _imported_panes(window: str, row: WindowRow, panes: list[PaneRow]) -> list[Pane]:
    return [
        Pane(
            id=_pane_id(pane),
            window=window,
            index=pane.index,
            pid=0,
            tty="",
            width=width,
            height=height,
            active=pane.active,
            title=pane.title,
            cwd=pane.cwd,
            start_path=pane.cwd,
            command=pane.command,
        )
        for pane, (width, height) in zip(panes, row.cells, strict=True)
    ]


def _pane_id(row: PaneRow) -> str:
    # Any number that is not given twice will do, and a line of the file is one.
    return f"%{row.line - 1}"


def _details(
    file: SaveFile,
    windows: dict[_Place, tuple[str, WindowRow]],
    panes: dict[_Place, list[PaneRow]],
    sessions: dict[str, Session],
    taken_at: datetime,
) -> Details:
    attached = sessions.get(file.attached)
    return Details(
        sessions={attached.id: SessionDetails(attached=1)} if attached else {},
        window_flags={id: row.flags for id, row in windows.values()},
        panes={
            _pane_id(row): PaneDetails(title=row.title, processes=_processes(row, taken_at))
            for rows in panes.values()
            for row in rows
        },
    )


def _processes(row: PaneRow, taken_at: datetime) -> tuple[Process, ...]:
    """Return what ran, as text: one argument, since nobody can say where the real ones ended."""
    return tuple(
        Process(
            pid=0,
            ppid=0,
            start_ticks=0,
            started_at=taken_at,
            pgid=0,
            foreground=True,
            comm=row.command,
            argv=(redact_text(text),),
        )
        for text in row.full_command.splitlines()
        if text
    )
