"""One file per server with everything of its latest snapshot: enough to restore when there is no database.

    <state_dir>/latest/<name>.json           {"version":1,"parent":…,"snapshot":{…}}
    <state_dir>/latest/<name>.scrollback     the texts it refers to
    <state_dir>/latest/<name>~<id>.json      kept without a database, and taken into one by the next save

The directory is locked while it is written, so of two writers each sees what the other left.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from perdure import errors
from perdure.model.decoding import decoder_of
from perdure.model.digest import digest_of
from perdure.model.server import Server
from perdure.model.snapshot import CAPTURED, Capture, Problem, Saved, Snapshot
from perdure.store import scrollback_file
from perdure.store.files import TEMPORARY, cannot, damaged_name, locked, private_directory, write_atomically
from perdure.store.inherit import with_scrollback
from perdure.store.rows import canonical, coming_from, content_of, digests_of, packed, snapshot_id

VERSION = 1
#: How many manifests are kept beside the latest one while there is no database to put them into.
_WAITING = 64
_STRAY = timedelta(hours=1)
_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]")


class Manifest(Struct, frozen=True, kw_only=True):
    """What a manifest file holds."""

    version: int = VERSION
    #: The id of the snapshot this one followed.
    parent: str | None = None
    snapshot: Snapshot


class _HeadSnapshot(Struct):
    id: str
    last_seen_at: datetime


class _Head(Struct):
    version: int
    snapshot: _HeadSnapshot


class Shelf:
    """The manifests under one state directory."""

    def __init__(self, state_dir: str) -> None:
        self.directory = os.path.join(state_dir, "latest")

    @contextmanager
    def held(self, now: datetime) -> Iterator[None]:
        """Hold the shelf for writing; what killed writers left long before `now` is cleared away."""
        private_directory(self.directory)
        with locked(self.directory):
            self._clear(now)
            yield

    def path(self, server: Server) -> str:
        """Return where a server's manifest is."""
        return os.path.join(self.directory, f"{manifest_name(server)}.json")

    def waiting(self, server: Server) -> list[str]:
        """Return the manifests of a server that no database has taken yet."""
        return self._named(f"{manifest_name(server)}~")

    def everything(self) -> list[str]:
        """Return the paths of all manifests."""
        return self._named("")

    def head(self, server: Server) -> tuple[str, datetime] | None:
        """Return (id, last seen) of a server's manifest without reading all of it; None when it cannot be read."""
        return _head(self.path(server))

    def read(self, path: str) -> Manifest | None:
        """Return a manifest, None when there is none that can be read."""
        try:
            with open(path, "rb") as file:
                raw = file.read()
            _refuse_newer(decoder_of(_Head).decode(raw).version)
            return decoder_of(Manifest).decode(raw)
        except (OSError, msgspec.MsgspecError, UnicodeError):
            return None

    def unreadable(self, but: Iterable[Server] = ()) -> list[str]:
        """Return the paths of the manifests that cannot be read, apart from those of some servers."""
        known = {manifest_name(server) for server in but}
        return [path for path in self.everything() if _stem(path) not in known and not self._can_read(path)]

    def put(self, manifest: Manifest, texts: scrollback_file.PackedTexts) -> None:
        """Make this the server's manifest; one there that cannot be read is set aside.

        To be called while the shelf is held; raises `StoreUnusable`.
        """
        path = self.path(manifest.snapshot.server)
        self._write(path, manifest, texts)

    def put_waiting(self, manifest: Manifest, texts: scrollback_file.PackedTexts) -> None:
        """Keep a manifest that is not the latest until a database takes it; only so many are kept."""
        stem, _ = os.path.splitext(self.path(manifest.snapshot.server))
        self._write(f"{stem}~{manifest.snapshot.id}.json", manifest, texts)
        oldest_first = sorted(self.waiting(manifest.snapshot.server), key=os.path.getmtime)
        self.remove(oldest_first[:-_WAITING])

    def texts(self, manifest: Manifest, wanted: set[str] | None = None) -> dict[str, bytes]:
        """Return the scrollback texts of a manifest, or those wanted, as far as they lie beside it."""
        return scrollback_file.read(
            self.scrollback_path(manifest.snapshot.server),
            set(digests_of(manifest.snapshot.details)) if wanted is None else wanted,
        )

    def scrollback_path(self, server: Server) -> str:
        """Return where the scrollback of a server's manifests is."""
        return os.path.join(self.directory, f"{manifest_name(server)}.scrollback")

    def remove(self, paths: list[str]) -> None:
        """Let go of manifests a database has taken."""
        for path in paths:
            with suppress(OSError):
                os.unlink(path)

    def _write(self, path: str, manifest: Manifest, texts: scrollback_file.PackedTexts) -> None:
        server = manifest.snapshot.server
        wanted = set(digests_of(manifest.snapshot.details))
        beside = [self.path(server), *self.waiting(server)] if path != self.path(server) else self.waiting(server)
        for other in filter(None, map(self.read, beside)):
            wanted |= digests_of(other.snapshot.details)
        try:
            # The texts first: a crash in between leaves the older manifest without some of its texts, which the
            # database has, rather than the newer one without texts that are nowhere.
            scrollback_file.update(self.scrollback_path(server), wanted, texts)
            aside = damaged_name(path, manifest.snapshot.last_seen_at) if self._is_spoilt(path, manifest) else None
            write_atomically(path, msgspec.json.encode(manifest), aside=aside)
        except OSError as error:
            raise cannot("The manifest", path, "be written", error) from error

    def _is_spoilt(self, path: str, coming: Manifest) -> bool:
        """Return whether there is something at `path` that cannot be read, and not only says the same."""
        head = _head(path)
        if head is None:
            return os.path.lexists(path)
        # All of it is read only when it is another snapshot: most saves find the same one.
        return head[0] != coming.snapshot.id and self.read(path) is None

    def _can_read(self, path: str) -> bool:
        try:
            return self.read(path) is not None
        except errors.StoreTooNew:
            return False

    def _named(self, prefix: str) -> list[str]:
        try:
            names = sorted(os.listdir(self.directory))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise cannot("The directory", self.directory, "be read", error) from error
        return [
            os.path.join(self.directory, name)
            for name in names
            if name.startswith(prefix) and name.endswith(".json") and not name.startswith(".")
        ]

    def _clear(self, now: datetime) -> None:
        with suppress(OSError), os.scandir(self.directory) as entries:
            for entry in entries:
                if entry.name.startswith(".") and entry.name.endswith(TEMPORARY):
                    with suppress(OSError):
                        if entry.stat().st_mtime < (now - _STRAY).timestamp():
                            os.unlink(entry.path)


def manifest_name(server: Server) -> str:
    """Return a file name for a server that a person can read and no other server has."""
    user = _UNUSUAL.sub("_", server.user)[:32].lstrip(".") or "_"
    socket = _UNUSUAL.sub("_", os.path.basename(server.socket))[:48]
    return f"{user}-{socket}-{digest_of(server.key.encode(), size=4)}"


def read_manifests(state_dir: str) -> Iterator[Manifest | Problem]:
    """Yield every manifest that can be read, and a problem for each that cannot."""
    shelf = Shelf(state_dir)
    for path in shelf.everything():
        try:
            manifest = shelf.read(path)
        except errors.StoreTooNew as error:
            yield Problem(where=path, what=error.message, repairable=False)
        else:
            yield manifest or Problem(where=path, what="The manifest cannot be read.", repairable=True)


def latest_manifests(state_dir: str) -> dict[str, Snapshot]:
    """Return by server key the snapshot of each server's manifest, as far as they can be read."""
    found: dict[str, Snapshot] = {}
    for each in read_manifests(state_dir):
        if isinstance(each, Manifest):
            snapshot = each.snapshot
            known = found.get(snapshot.server.key)
            if known is None or known.last_seen_at < snapshot.last_seen_at:
                found[snapshot.server.key] = snapshot
    return found


def read_scrollback(state_dir: str, digest: str) -> bytes | None:
    """Return a scrollback text kept beside the manifests, None when it is in none of them."""
    directory = Shelf(state_dir).directory
    names = os.listdir(directory) if os.path.isdir(directory) else []
    for name in sorted(names):
        if name.endswith(".scrollback"):
            found = scrollback_file.read(os.path.join(directory, name), {digest})
            if found:
                return found[digest]
    return None


def write_manifest(state_dir: str, capture: Capture, scrollback: Mapping[str, bytes] | None) -> Saved:
    """Keep a capture when there is no database to keep it in.

    A newer manifest is never replaced, and one that says something else is put beside the new one; the next save
    into a database takes all of them. Raises `StoreUnusable` when even that cannot be done.
    """
    private_directory(state_dir)
    shelf = Shelf(state_dir)
    with shelf.held(capture.taken_at):
        there = shelf.read(shelf.path(capture.server))
        if scrollback is None:
            capture = _inheriting(capture, there)
        coming = _follow(capture, there)
        texts = _packer(scrollback or {})
        if there is None or coming.snapshot.id == there.snapshot.id:
            if there is None or capture.taken_at >= there.snapshot.last_seen_at:
                shelf.put(coming, texts)
            return Saved(id=coming.snapshot.id, new=there is None)
        if capture.taken_at < there.snapshot.last_seen_at:
            shelf.put_waiting(coming, texts)
        else:
            shelf.put_waiting(there, texts)
            shelf.put(coming, texts)
        return Saved(id=coming.snapshot.id, new=True)


def _inheriting(capture: Capture, there: Manifest | None) -> Capture:
    if there is None or there.snapshot.topology.process != capture.topology.process:
        return capture
    before = {pane.id: pane.pid for pane in there.snapshot.topology.panes}
    same = {pane.id for pane in capture.topology.panes if before.get(pane.id) == pane.pid}
    panes = ((id, pane) for id, pane in there.snapshot.details.panes.items() if id in same)
    return with_scrollback(
        capture, {id: (pane.scrollback, pane.scrollback_at) for id, pane in panes if pane.scrollback}
    )


def _follow(capture: Capture, there: Manifest | None) -> Manifest:
    """Return the manifest of a capture: the one that is there seen again, or one that follows it."""
    coming = coming_from(capture, CAPTURED)
    if there is not None and content_of(canonical(there.snapshot.topology)) == coming.content:
        return Manifest(parent=there.parent, snapshot=_snapshot(capture, there.snapshot.id, there.snapshot.taken_at))
    parent = None if there is None else there.snapshot.id
    is_late = there is not None and capture.taken_at < there.snapshot.last_seen_at
    id = snapshot_id(capture.server, CAPTURED, coming.content, parent, late=coming.at if is_late else "")
    return Manifest(parent=parent, snapshot=_snapshot(capture, id, capture.taken_at))


def _snapshot(capture: Capture, id: str, taken_at: datetime) -> Snapshot:
    return Snapshot(
        id=id,
        server=capture.server,
        taken_at=taken_at,
        last_seen_at=capture.taken_at,
        topology=capture.topology,
        details=capture.details,
    )


def _packer(scrollback: Mapping[str, bytes]) -> scrollback_file.PackedTexts:
    return lambda digests: {digest: packed(scrollback[digest]) for digest in digests if digest in scrollback}


def _head(path: str) -> tuple[str, datetime] | None:
    try:
        with open(path, "rb") as file:
            head = decoder_of(_Head).decode(file.read())
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None
    _refuse_newer(head.version)
    return head.snapshot.id, head.snapshot.last_seen_at


def _stem(path: str) -> str:
    """Return the `manifest_name` of the server a manifest is of."""
    return os.path.basename(path).removesuffix(".json").partition("~")[0]


def _refuse_newer(version: int) -> None:
    if version > VERSION:
        raise errors.StoreTooNew("The manifest was written by a newer perdure than this one; it was left alone.")
