"""The version-1 `tmux-state.json` manifest, read.

It tells sessions, panes and addresses, but no directory, layout or window name: those stay "", and a window is
called as tmux calls one by itself, after its active pane's program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta, Struct, ValidationError

from perdure.compat.imported import broken, imported_process
from perdure.compat.json_lines import Path, line_of, path_of
from perdure.compat.tmux_state import HERMES
from perdure.errors import ImportFailed
from perdure.model.decoding import converted
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.secrets import redact_text
from perdure.model.server import Server
from perdure.model.snapshot import Capture
from perdure.model.text import decode
from perdure.model.topology import Details, Link, Pane, PaneDetails, Session, SessionDetails, Topology, Window

_ADDRESS = re.compile(r"(.+):([0-9]{1,9})\.([0-9]{1,9})", re.DOTALL)

# No database keeps a NUL in a text, and tmux has none either.
_Text = Annotated[str, Meta(pattern=r"\A[^\x00]*\Z")]
_Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_Moment = Annotated[int, Meta(ge=0, le=253402300799)]
_Zoned = Annotated[datetime, Meta(tz=True)]
# An id ends up as an argument of the agent's, where a leading dash would make it an option.
_Id = Annotated[str, Meta(pattern=r"\A\w[\w.:@/+-]{0,199}\Z")]


class _Session(Struct):
    name: Annotated[str, Meta(pattern=r"\A[^\x00]+\Z")]
    windows: _Count
    created_epoch: _Moment
    created: str
    attached: bool
    group: _Text
    id: Annotated[str, Meta(pattern=r"\A\$[0-9]{1,9}\Z")]


class _Pane(Struct):
    address: _Text
    pane_id: Annotated[str, Meta(pattern=r"\A%[0-9]{1,9}\Z")]
    pid: _Count
    size: Annotated[str, Meta(pattern=r"\A[0-9]{1,5}x[0-9]{1,5}\Z")]
    active: bool
    command: _Text
    title: _Text
    is_hermes: bool
    profile: _Text | None = None
    model: _Text | None = None
    provider: _Text | None = None
    session_id: _Id | None = None
    task: _Text | None = None
    context_pct: int | None = None


class _Summary(Struct):
    active_pane: _Text | None = None


class _Manifest(Struct):
    timestamp: _Zoned
    sessions: list[_Session]
    panes: list[_Pane]
    summary: _Summary


class _Place(Struct, frozen=True):
    """Where a window is: a session's name and an index in it."""

    session: str
    window: int


class _Entry(Struct):
    """A pane of the file with its address taken apart."""

    number: int
    place: _Place
    index: int
    pane: _Pane


def from_manifest(raw: bytes, *, server: Server) -> Capture:
    """Return what a manifest tells, as a capture taken when the manifest was.

    The script guessed its ids from the screen, so every conversation comes back as a guess. Raises
    `ImportFailed` with the line of what is wrong.
    """
    text, manifest = _parsed(raw)
    sessions = _sessions(text, manifest)
    windows = _windows(text, manifest, sessions)
    taken_at = manifest.timestamp.astimezone(UTC)
    topology = Topology(
        process=imported_process(taken_at),
        sessions=tuple(_imported_session(session) for session in manifest.sessions),
        windows=tuple(_imported_window(id, entries) for id, entries in windows.panes.items()),
        links=tuple(
            Link(
                session=sessions[place.session].id,
                window=window,
                index=place.window,
                active=any(entry.pane.address == manifest.summary.active_pane for entry in windows.shown[place]),
            )
            for place, window in windows.places.items()
        ),
        panes=tuple(_imported_pane(id, entry) for id, entries in windows.panes.items() for entry in entries),
    )
    return Capture(server=server, taken_at=taken_at, topology=topology, details=_details(manifest))


def _parsed(raw: bytes) -> tuple[str, _Manifest]:
    text, value = _json(raw)
    version = value.get("version") if isinstance(value, dict) else None
    if version != 1 or version is True:
        raise _fault(text, ["version"], "this is not a version 1 manifest")
    try:
        return text, converted(value, _Manifest)
    except ValidationError as error:
        what, _, path = str(error).partition(" - at `")
        where = path.removesuffix("`")
        raise _fault(text, path_of(where), f"{what} at {where}") from None


def _json(raw: bytes) -> tuple[str, object]:
    import json

    try:
        text = raw.decode("utf-8-sig")
        return text, json.loads(text)
    except UnicodeDecodeError as error:
        raise broken(raw.count(b"\n", 0, error.start) + 1, "this is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise broken(error.lineno, f"this is not JSON ({error.msg})") from None
    except (ValueError, RecursionError):
        raise broken(1, "a number is too long or the nesting too deep") from None


def _fault(text: str, path: Path, what: str) -> ImportFailed:
    return broken(line_of(text, path), what)


def _sessions(text: str, manifest: _Manifest) -> dict[str, _Session]:
    if not manifest.sessions:
        raise _fault(text, ["sessions"], "there is no session in this manifest")
    sessions: dict[str, _Session] = {}
    ids: set[str] = set()
    for number, session in enumerate(manifest.sessions):
        if session.name in sessions or session.id in ids:
            raise _fault(text, ["sessions", number], "this session was there before")
        sessions[session.name] = session
        ids.add(session.id)
    return sessions


class _Windows(Struct):
    """The windows of the file: their panes by the window's id, and where each is shown."""

    panes: dict[str, list[_Entry]]
    places: dict[_Place, str]
    shown: dict[_Place, list[_Entry]]


def _windows(text: str, manifest: _Manifest, sessions: Mapping[str, _Session]) -> _Windows:
    """Put panes together to windows; places that show the same panes are one window, linked."""
    shown = _by_place(text, manifest)
    windows = _Windows(panes={}, places={}, shown=shown)
    by_panes: dict[frozenset[str], str] = {}
    taken: set[str] = set()
    for place, entries in shown.items():
        panes = frozenset(entry.pane.pane_id for entry in entries)
        first: Path = ["panes", entries[0].number]
        if place.session not in sessions:
            raise _fault(text, first, "the address names a session that is not in the list")
        if panes not in by_panes:
            if len(panes) < len(entries) or panes & taken:
                raise _fault(text, first, "a pane of this window is in another place, too")
            taken |= panes
            id = by_panes[panes] = f"@{len(by_panes)}"
            windows.panes[id] = sorted(entries, key=lambda entry: entry.index)
        windows.places[place] = by_panes[panes]
    used = {place.session for place in shown}
    for number, session in enumerate(manifest.sessions):
        if session.name not in used:
            raise _fault(text, ["sessions", number], "no pane belongs to this session")
    return windows


def _by_place(text: str, manifest: _Manifest) -> dict[_Place, list[_Entry]]:
    shown: dict[_Place, list[_Entry]] = {}
    for number, pane in enumerate(manifest.panes):
        # From the right: whatever a session is called, the last colon and the last dot are tmux's.
        match = _ADDRESS.fullmatch(pane.address)
        if not match:
            raise _fault(text, ["panes", number, "address"], "an address is SESSION:WINDOW.PANE")
        entry = _Entry(number, _Place(match[1], int(match[2])), int(match[3]), pane)
        entries = shown.setdefault(entry.place, [])
        if any(other.index == entry.index for other in entries):
            raise _fault(text, ["panes", number, "address"], "this address was there before")
        entries.append(entry)
    return shown


def _imported_session(session: _Session) -> Session:
    return Session(
        id=session.id,
        name=_stored(session.name),
        created_at=datetime.fromtimestamp(session.created_epoch, tz=UTC),
        group=_stored(session.group),
    )


def _imported_window(id: str, entries: list[_Entry]) -> Window:
    active = next((entry for entry in entries if entry.pane.active), entries[0])
    sizes = [_size(entry.pane) for entry in entries]
    # Without a layout only this much is sure: the window was no smaller than its widest and tallest pane.
    return Window(
        id=id,
        name=_stored(active.pane.command),
        width=max(width for width, _ in sizes),
        height=max(height for _, height in sizes),
        layout="",
        visible_layout="",
    )


def _imported_pane(window: str, entry: _Entry) -> Pane:
    pane = entry.pane
    width, height = _size(pane)
    return Pane(
        id=pane.pane_id,
        window=window,
        index=entry.index,
        pid=pane.pid,
        tty="",
        width=width,
        height=height,
        active=pane.active,
        title=_stored(pane.title),
        command=_stored(pane.command),
        identity=_identity(pane),
    )


def _identity(pane: _Pane) -> Identity | None:
    # Another agent may have an id here, too, but the format has no field that says which agent it is.
    if not pane.is_hermes:
        return None
    return Identity(
        agent=HERMES,
        conversation=pane.session_id,
        evidence=Evidence.GUESS if pane.session_id else None,
        profile=_stored(pane.profile) if pane.profile else None,
        because=("imported from a tmux-state manifest, which does not say how it knew",),
    )


def _details(manifest: _Manifest) -> Details:
    return Details(
        sessions={session.id: SessionDetails(attached=int(session.attached)) for session in manifest.sessions},
        panes={
            pane.pane_id: PaneDetails(title=_stored(pane.title), agent=_agent(pane) if pane.is_hermes else None)
            for pane in manifest.panes
        },
    )


def _agent(pane: _Pane) -> AgentDetails:
    # A share of the context without the number of tokens cannot be kept: the model has no percent of its own.
    return AgentDetails(
        task=None if pane.task is None else redact_text(_stored(pane.task)),
        model=None if pane.model is None else _stored(pane.model),
        provider=None if pane.provider is None else _stored(pane.provider),
    )


def _size(pane: _Pane) -> tuple[int, int]:
    width, _, height = pane.size.partition("x")
    return int(width), int(height)


def _stored(text: str) -> str:
    # JSON can spell half a surrogate pair, which no UTF-8 text and no database can hold.
    return decode(text.encode(errors="surrogatepass"))
