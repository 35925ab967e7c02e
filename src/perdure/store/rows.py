"""A snapshot as the database has it: canonical bytes, their digest, the id made of it, times as text."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

import msgspec
from msgspec import Struct

from perdure import errors
from perdure.model.decoding import decoder_of
from perdure.model.digest import digest_of
from perdure.model.server import Server, ServerProcess
from perdure.model.snapshot import Capture, Snapshot, SnapshotSummary, Whereabouts
from perdure.model.topology import Details, Topology
from perdure.store.driver import Row, Spoilt

_Kind = TypeVar("_Kind", bound=Struct)
_ENCODER = msgspec.json.Encoder(order="deterministic")
#: What is shorter, in bytes, is not worth compressing.
_SHORT = 256
#: What reading a row that is damaged can raise, or one that is deeper than can be gone into.
UNREADABLE = (zlib.error, msgspec.MsgspecError, UnicodeError, ValueError, TypeError, RecursionError)


class Standing(Struct, frozen=True):
    """Where a snapshot stands among those of its server. Times are stamps."""

    id: str
    content: str
    parent: str | None
    taken_at: str
    last_seen_at: str


class Coming(Struct, frozen=True, kw_only=True):
    """A capture made ready to be kept."""

    server: Server
    origin: str
    #: When it was taken, as a stamp.
    at: str
    content: str
    body: bytes
    details: bytes
    counts: Mapping[str, int]
    #: The scrollback its details refer to.
    digests: frozenset[str]


def coming_from(capture: Capture | Snapshot, origin: str) -> Coming:
    """Return a capture, or what is known of a snapshot by now, ready to be kept."""
    body = canonical(capture.topology)
    at = capture.last_seen_at if isinstance(capture, Snapshot) else capture.taken_at
    return Coming(
        server=capture.server,
        origin=origin,
        at=stamp(at),
        content=content_of(body),
        body=body,
        details=canonical(capture.details),
        counts=counts_of(capture.topology),
        digests=digests_of(capture.details),
    )


def counts_of(topology: Topology) -> dict[str, int]:
    """Return the numbers of a snapshot's line in the history."""
    return {
        "sessions": len(topology.sessions),
        "windows": len(topology.windows),
        "panes": len(topology.panes),
        "agents": topology.agents,
    }


def digests_of(details: Details) -> frozenset[str]:
    """Return the digests of all scrollback that details refer to."""
    return frozenset(pane.scrollback for pane in details.panes.values() if pane.scrollback is not None)


def canonical(value: Struct) -> bytes:
    """Return the one JSON text for this value, whatever order its mappings are in."""
    return _ENCODER.encode(value)


def content_of(body: bytes) -> str:
    """Return the digest of a topology's canonical text."""
    return digest_of(body)


def snapshot_id(server: Server, origin: str, content: str, parent: str | None, *, late: str = "") -> str:
    """Return the id of a snapshot by what it says and which one it follows, so that A, B, A are three.

    `late` is the stamp of a capture that arrived after a newer one. It may say the same, and follow the same, as
    a snapshot still to come, and must not be taken for it.
    """
    named = _ENCODER.encode((server.key, origin, content, parent or "", late))
    return digest_of(named)[:16]


def packed(raw: bytes) -> bytes:
    """Return `raw` compressed, quickly rather than best; a short one as it is, with a checksum."""
    if len(raw) < _SHORT:
        # Some fifteen times as quick, where there is next to nothing to gain.
        plain = zlib.compressobj(0, zlib.DEFLATED, 9, 1)
        return plain.compress(raw) + plain.flush()
    return zlib.compress(raw, 1)


def unpacked(data: bytes) -> bytes:
    """Return what was packed. Raises ValueError when it is damaged."""
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise ValueError(str(error)) from error


def decoded(kind: type[_Kind], data: bytes) -> _Kind:
    """Return a value of which the canonical text was packed. Raises one of `UNREADABLE` when it is damaged."""
    value: _Kind = decoder_of(kind).decode(unpacked(data))
    return value


def stamp(moment: datetime) -> str:
    """Return a time as text of fixed width in UTC, whose order is the order in time."""
    if moment.tzinfo is UTC and moment.microsecond:
        # Nearly always, and every turn has two: the same as below, in a fifth of the time.
        return str(_ENCODER.encode(moment), "ascii")[1:-1]
    if moment.tzinfo is None:
        raise ValueError("a time without a zone")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def moment_of(text: str) -> datetime:
    """Return the time of a stamp. Raises ValueError when it is none."""
    if not text.isascii():
        # Python would take anything for what stands between the date and the time.
        raise ValueError("a stamp that is no ASCII")
    return datetime.fromisoformat(text)


def summary_from(row: Row) -> SnapshotSummary:
    """Return a line of the history. Raises `SnapshotDamaged`."""
    id, host, owner, uid, socket, origin, taken_at, last_seen_at, sessions, windows, panes, agents = row
    try:
        if Spoilt in map(type, row):
            raise ValueError("text that is no UTF-8")
        return SnapshotSummary(
            id=id,
            server=Server(host=host, user=owner, uid=uid, socket=socket),
            origin=origin,
            taken_at=moment_of(taken_at),
            last_seen_at=moment_of(last_seen_at),
            sessions=sessions,
            windows=windows,
            panes=panes,
            agents=agents,
        )
    except UNREADABLE as error:
        raise damaged(id) from error


def snapshot_from(row: Row) -> Snapshot:
    """Return a whole snapshot, checked against its digest. Raises `SnapshotDamaged`."""
    summary = summary_from(row[:12])
    content, _parent, details, body = row[12:]
    try:
        raw = zlib.decompress(body)
        if content_of(raw) != content:
            raise ValueError("the digest does not match")
        return Snapshot(
            id=summary.id,
            server=summary.server,
            origin=summary.origin,
            taken_at=summary.taken_at,
            last_seen_at=summary.last_seen_at,
            topology=decoder_of(Topology).decode(raw),
            details=decoded(Details, details),
        )
    except UNREADABLE as error:
        raise damaged(summary.id) from error


class _Lodger(Struct, frozen=True):
    agent: str
    conversation: str | None = None


class _Room(Struct, frozen=True):
    identity: _Lodger | None = None


class _Named(Struct, frozen=True):
    id: str
    name: str


class _Place(Struct, frozen=True):
    session: str
    index: int


class _Outline(Struct, frozen=True):
    """As much of a topology as tells who was where: the rest is passed over, and not made anything of."""

    process: ServerProcess
    sessions: tuple[_Named, ...]
    links: tuple[_Place, ...]
    panes: tuple[_Room, ...]


def whereabouts_from(row: Row) -> Whereabouts:
    """Return who was where in a snapshot, checked against its digest. Raises `SnapshotDamaged`."""
    id, last_seen_at, content, body = row
    try:
        raw = zlib.decompress(body)
        if content_of(raw) != content:
            raise ValueError("the digest does not match")
        outline = decoder_of(_Outline).decode(raw)
        names = {each.id: each.name for each in outline.sessions}
        lodgers = (each.identity for each in outline.panes if each.identity is not None)
        return Whereabouts(
            id=id,
            last_seen_at=moment_of(last_seen_at),
            process=outline.process,
            conversations=frozenset((one.agent, one.conversation) for one in lodgers if one.conversation is not None),
            places=frozenset((names[each.session], each.index) for each in outline.links),
        )
    except (*UNREADABLE, LookupError) as error:
        raise damaged(id) from error


def damaged(id: str) -> errors.SnapshotDamaged:
    """Return the sentence for a snapshot that cannot be read."""
    return errors.SnapshotDamaged(f"Snapshot {id} cannot be read back; the others are not affected.", snapshot=str(id))
