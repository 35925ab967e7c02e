"""Reading and writing rows: one method per thing a verb needs, no policy."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from perdure.model.server import Server
from perdure.model.snapshot import Snapshot, Whereabouts
from perdure.store.driver import Driver, Row, with_list
from perdure.store.queries import queries
from perdure.store.rows import Coming, Standing, packed, snapshot_from, unpacked, whereabouts_from

#: How many digests go into one query.
_BATCH = 500
#: A limit both databases take and no history reaches.
NO_LIMIT = (1 << 31) - 1


class Records:
    """The tables, over whichever driver."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._sql = queries()

    def latest(self, server: Server, origin: str) -> Standing | None:
        """Return the snapshot of a server and origin that was seen last."""
        return _standing(self.driver.fetch(self._sql["latest"], server=server.key, origin=origin))

    def current_at(self, server: Server, origin: str, at: str) -> Standing | None:
        """Return the snapshot that stood when a late capture was taken."""
        return _standing(self.driver.fetch(self._sql["current_at"], server=server.key, origin=origin, at=at))

    def standing(self, id: str) -> Standing | None:
        """Return where a snapshot stands, None when there is none with this id."""
        return _standing(self.driver.fetch(self._sql["standing"], id=id))

    def insert(self, id: str, parent: str | None, taken_at: str, coming: Coming, texts: Mapping[str, bytes]) -> bool:
        """Keep a snapshot under this id with its scrollback; False, and nothing done, when it is there already."""
        server = coming.server
        changed = self.driver.execute(
            self._sql["insert_snapshot"],
            id=id,
            server=server.key,
            host=server.host,
            owner=server.user,
            uid=server.uid,
            socket=server.socket,
            origin=coming.origin,
            content=coming.content,
            parent=parent,
            taken_at=taken_at,
            last_seen_at=coming.at,
            details=packed(coming.details),
            body=packed(coming.body),
            **coming.counts,
        )
        if changed:
            self._refer(id, coming.digests, texts)
        return bool(changed)

    def see_again(self, id: str, coming: Coming, texts: Mapping[str, bytes]) -> None:
        """Move a snapshot, its details and its scrollback forward; nothing happens when that would be back."""
        if self.driver.execute(self._sql["see_again"], id=id, at=coming.at, details=packed(coming.details)):
            self._refer(id, coming.digests, texts)

    def bring_back(self, coming: Coming) -> None:
        """Let nothing of this server and origin have been seen after this capture was taken."""
        self.driver.execute(self._sql["bring_back"], server=coming.server.key, origin=coming.origin, at=coming.at)

    def row(self, id: str) -> Row | None:
        """Return everything of one snapshot, unread."""
        rows = self.driver.fetch_as_is(self._sql["get_snapshot"], id=id)
        return rows[0] if rows else None

    def snapshot(self, id: str) -> Snapshot | None:
        """Return a snapshot by its whole id. Raises `SnapshotDamaged`."""
        row = self.row(id)
        return None if row is None else snapshot_from(row)

    def whereabouts(self, id: str) -> Whereabouts | None:
        """Return who was where in a snapshot, by its whole id. Raises `SnapshotDamaged`."""
        rows = self.driver.fetch_as_is(self._sql["get_whereabouts"], id=id)
        return whereabouts_from(rows[0]) if rows else None

    def ids_beginning(self, prefix: str) -> list[str]:
        """Return up to two ids that begin with these hexadecimal digits."""
        return [row[0] for row in self.driver.fetch(self._sql["ids_from"], low=prefix, high=prefix + "g")]

    def ids(self) -> list[str]:
        """Return every id, oldest first."""
        return [row[0] for row in self.driver.fetch_as_is(self._sql["all_ids"])]

    def ids_of(self, server_key: str, origin: str) -> Iterator[str]:
        """Yield the ids of a server's snapshots, latest first. Whoever needs only the first pays only for it."""
        for limit in (1, NO_LIMIT):
            rows = self.driver.fetch_as_is(self._sql["captured_ids"], server=server_key, origin=origin, limit=limit)
            yield from (row[0] for row in rows[0 if limit == 1 else 1 :])

    def servers(self, origin: str) -> list[str]:
        """Return the keys of all servers that have snapshots of an origin."""
        return [row[0] for row in self.driver.fetch(self._sql["servers"], origin=origin)]

    def servers_of(self, origin: str, host: str, uid: int, since: str) -> list[Row]:
        """Return user and socket of the servers of a user on a host that have snapshots of an origin seen since."""
        return self.driver.fetch(self._sql["servers_of"], origin=origin, host=host, uid=uid, since=since)

    def summaries(self, server: Server | None, before: str | None, limit: int) -> list[Row]:
        """Return rows of the history, latest first."""
        key = None if server is None else server.key
        return self.driver.fetch_as_is(self._sql["list_snapshots"], server=key, before=before, limit=limit)

    def delete(self, id: str) -> int:
        """Forget a snapshot; return how many there were."""
        return self.driver.execute(self._sql["delete_snapshot"], id=id)

    def set_aside(self, id: str, at: str) -> None:
        """Move a snapshot to the damaged ones."""
        self.driver.execute(self._sql["set_snapshot_aside"], id=id, at=at)
        self.delete(id)

    def fact(self, name: str) -> str | None:
        """Return a remembered value."""
        rows = self.driver.fetch_as_is(self._sql["get_fact"], name=name)
        return rows[0][0] if rows else None

    def remember(self, name: str, value: str) -> None:
        """Remember a value."""
        self.driver.execute(self._sql["set_fact"], name=name, value=value)

    def absent(self, digests: Collection[str]) -> set[str]:
        """Return those of `digests` that are not kept."""
        return set(digests) - {row[0] for row in self._by_digest("held_scrollbacks", digests)}

    def scrollbacks(self, digests: Collection[str]) -> Iterator[tuple[str, int, bytes]]:
        """Return (digest, size, packed text) of those that are kept."""
        return ((digest, size, data) for digest, size, data in self._by_digest("get_scrollbacks", digests))

    def scrollback(self, digest: str) -> bytes | None:
        """Return a text, None when it is not kept. Raises ValueError when it is damaged."""
        for _, size, data in self.scrollbacks((digest,)):
            text = unpacked(data)
            if len(text) != size:
                raise ValueError("the size does not match")
            return text
        return None

    def keep_scrollback(self, digest: str, text: bytes) -> None:
        """Keep a text."""
        self.driver.execute(self._sql["insert_scrollback"], digest=digest, size=len(text), data=packed(text))

    def set_scrollback_aside(self, digest: str, at: str) -> None:
        """Move a text to the damaged ones."""
        self.driver.execute(self._sql["set_scrollback_aside"], digest=digest, at=at)
        self.driver.execute(self._sql["delete_scrollback"], digest=digest)

    def digests(self) -> list[str]:
        """Return the digest of every text that is kept."""
        return [row[0] for row in self.driver.fetch_as_is(self._sql["all_scrollbacks"])]

    def missing(self) -> list[str]:
        """Return the digests that are referred to and not kept."""
        return [row[0] for row in self.driver.fetch_as_is(self._sql["missing_scrollbacks"])]

    def give_up_scrollback(self, digest: str) -> None:
        """Let no snapshot refer to a text any more."""
        self.driver.execute(self._sql["unlink_everywhere"], digest=digest)

    def delete_unused_scrollbacks(self) -> None:
        """Forget the texts no snapshot refers to."""
        self.driver.execute(self._sql["delete_unused_scrollbacks"])

    def _refer(self, id: str, digests: frozenset[str], texts: Mapping[str, bytes]) -> None:
        # In order: two saves that insert the same digests the other way round would wait for each other.
        for digest in sorted(self.absent(digests & texts.keys())):
            self.keep_scrollback(digest, texts[digest])
        there = {row[0] for row in self.driver.fetch(self._sql["links_of"], snapshot=id)}
        for digest in sorted(there - digests):
            self.driver.execute(self._sql["unlink"], snapshot=id, digest=digest)
        for digest in sorted(digests - there):
            self.driver.execute(self._sql["link"], snapshot=id, digest=digest)

    def _by_digest(self, query: str, digests: Collection[str]) -> Iterator[Row]:
        wanted = sorted(digests)
        for start in range(0, len(wanted), _BATCH):
            sql, parameters = with_list(self._sql[query], "digests", wanted[start : start + _BATCH])
            yield from self.driver.fetch(sql, **parameters)


def _standing(rows: list[Row]) -> Standing | None:
    return Standing(*rows[0]) if rows else None
