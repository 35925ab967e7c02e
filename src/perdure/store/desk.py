"""Where processes that append to chats of one SQLite database hand that to whoever writes: one commit for all of them.

    <database>-desk                    who waits, what they want written, and what was written

Nothing depends on this file. What is written is written by a transaction of the database, which also notes whose order
it was: so whoever gets no answer, because the one who wrote was killed, looks there. An order is taken, and taken back,
only inside a transaction that writes, of which there is one at a time; and only while its process is alive. Where there
is no desk, or no room on it, or nobody answers, everybody writes for themselves.

A process holds two locks for its place at the desk, for as long as it lives. With the first the place is its own; with
the second, which it takes when no order of somebody before it is left there, it says that it is alive.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from struct import Struct as Layout
from weakref import WeakSet
from zlib import crc32

import msgspec

from perdure import errors
from perdure.store import forking
from perdure.store.appends import Append
from perdure.store.chat_rows import Ready
from perdure.store.door import Door
from perdure.store.driver import Driver
from perdure.store.files import private_file
from perdure.store.queries import queries

#: How many processes have a place, how many bytes an order may have, and how many appends.
_PLACES, _ROOM, _MOST = 32, 32 << 10, 16
#: An order: its ticket, its length, the sum over it, by which name its process is woken, and the sum over these.
_ORDER, _ORDER_STEP = Layout("<QII16sI"), 64
#: An answer: the ticket, the position of the last turn of each append (0 for one that was not written), and the sum.
_ANSWER, _ANSWER_STEP = Layout(f"<Q{_MOST}QI"), 160
_ANSWERS = _PLACES * _ORDER_STEP
_BODIES = 8192
#: Behind everything that is ever written: the bytes that are locked.
_OWNED, _ALIVE = 1 << 40, (1 << 40) + _PLACES
#: As the system has it: type, from where to count, start, length, process.
_LOCK = Layout("hhqqi")
#: And this: seconds, and millionths of one.
_MOMENT = Layout("ll")
_NOBODY = bytes(_ORDER.size)
_NOTHING = bytes(_ANSWERS)
_TICKETS = (1 << 62) - 1
#: Goes into every sum: whoever writes orders in another form has another, and is not understood.
_FORM = 1
#: How long, in seconds, to wait to be woken before looking for oneself; how often in a row that may have been necessary
#: before nothing is handed over any more; and how many times that is so.
_PAUSE, _MISSES, _LATER = 0.02, 3, 1000


class Order(msgspec.Struct):
    """What another process wants written."""

    place: int
    ticket: int
    name: bytes
    appends: list[Append]
    #: Where its appends were written, once they are; 0 for one that was not.
    positions: list[int] = []


class _Line(msgspec.Struct, array_like=True):
    """An append, as it lies on the desk."""

    chat: str
    expect: int | None
    at: datetime
    turns: list[Ready]
    #: The number of its chat, and where whoever wants it written believes the chat goes on; 0 for who does not know.
    number: int = 0
    first: int = 0


#: Of chats their numbers, and where they go on.
Known = Mapping[str, tuple[int, int]]
_UNKNOWN: Known = {}

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[_Line])


class Desk:
    """The desk of one database in this process; `desk_at` has the one that belongs to a door. Raises OSError."""

    _file = -1
    _seen: mmap.mmap | None = None
    _socket: socket.socket | None = None

    def __init__(self, path: str) -> None:
        private_file(path)
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)
        #: Orders and answers, without what is ordered: everybody looks there all the time.
        self._seen = _laid_open(self._file)
        self._place: int | None = None
        self._name = os.urandom(16)
        self._ticket = int.from_bytes(os.urandom(8), "big") & _TICKETS
        #: How often nobody woke us although there was a reason to.
        self._misses = 0
        _DESKS.add(self)

    def close(self) -> None:
        """Leave the desk."""
        file, self._file = self._file, -1
        with suppress(OSError):
            os.close(file)
        if self._seen is not None:
            # It has the file open as well, and the locks would stay with that.
            self._seen.close()
            self._seen = None
        self._sender.close()
        if self._socket is not None:
            self._socket.close()

    def __del__(self) -> None:
        if self._file >= 0:
            self.close()

    @property
    def place(self) -> int | None:
        """This process's place; None as long as it has none."""
        return self._place

    def put(self, appends: Sequence[Append], known: Known = _UNKNOWN) -> int | None:
        """Let whoever writes write these, too; return the ticket, None when they have to be written here.

        `known` says of chats their numbers and where they go on, as far as is known here, and need not be right.
        """
        if len(appends) > _MOST or self._is_deaf():
            return None
        try:
            lines = [
                _Line(each.chat, each.expect, each.at, list(each.turns), *known.get(each.chat, ())) for each in appends
            ]
            body = _ENCODER.encode(lines)
            if len(body) > _ROOM or not self._has_place():
                return None
            assert self._place is not None
            self._ticket = (self._ticket + 1) & _TICKETS or 1
            head = _ORDER.pack(self._ticket, len(body), crc32(body), self._name, 0)
            os.pwrite(self._file, body, _BODIES + self._place * _ROOM)
            # Behind what it speaks of.
            os.pwrite(self._file, _with_sum(head), self._place * _ORDER_STEP)
        except (OSError, ValueError, OverflowError):
            self.take_off()
            return None
        return self._ticket

    def take_off(self) -> None:
        """Let nobody write any more what was put here. One who is writing it already goes on."""
        if self._place is not None:
            with suppress(OSError):
                os.pwrite(self._file, _NOBODY, self._place * _ORDER_STEP)

    def wait(self) -> bool:
        """Wait to be woken, for a moment; return whether we were."""
        assert self._socket is not None
        try:
            self._socket.recv(16)
        except OSError:
            return False
        self._misses = 0
        return True

    def missed(self) -> None:
        """Note that nobody woke us. When that is usual, because nobody can, no order is put here for a while."""
        self._misses += 1

    def _is_deaf(self) -> bool:
        if self._misses >= _MISSES:
            self._misses = 0 if self._misses >= _LATER else self._misses + 1
        return self._misses >= _MISSES

    def answer_to(self, ticket: int) -> list[int] | None:
        """Return the positions of what was put here, None as long as nobody says that it was written."""
        assert self._place is not None
        start = _ANSWERS + self._place * _ANSWER_STEP
        raw = b"" if self._seen is None else self._seen[start : start + _ANSWER.size]
        if not _is_whole(raw, _ANSWER):
            return None
        found, *positions, _ = _ANSWER.unpack(raw)
        return positions if found == ticket else None

    def orders(self) -> list[Order]:
        """Return what others want written, of those who are alive. Only inside a transaction that writes."""
        found = []
        with suppress(OSError, msgspec.MsgspecError):
            for place, ticket, length, sum, name in self._waiting():
                if place == self._place or not self._is_alive(place):
                    continue
                body = os.pread(self._file, length, _BODIES + place * _ROOM)
                if len(body) == length and crc32(body) == sum:
                    found.append(Order(place, ticket, name, _appends(body)))
        return found

    def is_empty(self) -> bool:
        """Return whether nothing lies there, answered or not."""
        return self._seen is None or self._seen[:_ANSWERS] == _NOTHING

    def count(self) -> int:
        """Return how many wait, as far as can be seen at a glance."""
        return len(self._unanswered()[1])

    def answer(self, order: Order) -> None:
        """Say that an order was written, once it is on disk. Whoever cannot be told looks in the database."""
        positions = [*order.positions, *[0] * _MOST][:_MOST]
        with suppress(OSError):
            raw = _with_sum(_ANSWER.pack(order.ticket, *positions, 0))
            os.pwrite(self._file, raw, _ANSWERS + order.place * _ANSWER_STEP)

    def wake(self, name: bytes) -> bool:
        """Wake a process; return whether it is there to be woken."""
        try:
            self._sender.sendto(b"", _address(name))
        except BlockingIOError:
            # It has been woken often enough.
            return True
        except OSError:
            return False
        return True

    def wake_next(self) -> None:
        """Wake one who waits and whom nobody has answered: it is its turn."""
        with suppress(OSError):
            for place, _, _, _, name in self._waiting():
                if place != self._place and self.wake(name):
                    return

    def _waiting(self) -> Iterator[tuple[int, int, int, int, bytes]]:
        """What lies there unanswered: place, ticket, length, sum, name."""
        heads, places = self._unanswered()
        for place in places:
            head = heads[place * _ORDER_STEP :][: _ORDER.size]
            if _is_whole(head, _ORDER):
                ticket, length, sum, name, _ = _ORDER.unpack(head)
                if length <= _ROOM:
                    yield place, ticket, length, sum, name

    def _unanswered(self) -> tuple[bytes, list[int]]:
        """What lies there, and in which places something does that has no answer."""
        if self._seen is None:
            return b"", []
        heads, answers = self._seen[:_ANSWERS], self._seen[_ANSWERS:]
        pairs = enumerate(zip(_tickets(heads, _ORDER_STEP), _tickets(answers, _ANSWER_STEP), strict=False))
        return heads, [place for place, (ticket, answered) in pairs if ticket and ticket != answered]

    def _has_place(self) -> bool:
        if self._place is None:
            self._place = next((place for place in range(_PLACES) if self._is_taken(place)), None)
            if self._place is None:
                self._misses = _MISSES
                return False
            ours = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            # By the system, and not by Python, which would ask twice.
            ours.settimeout(None)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _MOMENT.pack(0, round(_PAUSE * 1_000_000)))
            ours.bind(_address(self._name))
            self._socket = ours
        return self._socket is not None

    def _is_taken(self, place: int) -> bool:
        """Take a place, if it is free."""
        try:
            self._lock(fcntl.F_OFD_SETLK, _OWNED + place)
        except (BlockingIOError, PermissionError):
            return False
        os.pwrite(self._file, _NOBODY, place * _ORDER_STEP)
        self._lock(fcntl.F_OFD_SETLK, _ALIVE + place)
        return True

    def _is_alive(self, place: int) -> bool:
        found = self._lock(fcntl.F_OFD_GETLK, _ALIVE + place)
        return bool(_LOCK.unpack(found)[0] != fcntl.F_UNLCK)

    def _lock(self, command: int, byte: int) -> bytes:
        # Not the kind that a process loses when it closes the file elsewhere, or that a child does not know of.
        asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        return bytes(fcntl.fcntl(self._file, command, asked))


class Handing:
    """Some appends of this process that wait at a door: handed to whoever is inside."""

    def __init__(self, desk: Desk, appends: Sequence[Append], known: dict[str, tuple[int, int]]) -> None:
        self._desk = desk
        self._appends = appends
        #: Where chats go on, as far as is known here.
        self._known = known
        #: None for what does not lie on the desk.
        self.ticket: int | None = None
        #: Where somebody else has written them, once that is known; 0 for one that was not written.
        self.positions: list[int] | None = None
        #: Whether somebody has said so, and it is not our turn.
        self.is_served = False

    def wait(self, is_our_turn: Callable[[], bool], patience: float) -> bool:
        """Wait until they are written, or until it is our turn; False when there is nobody to hand them to."""
        self.ticket = self._desk.put(self._appends, self._known)
        if self.ticket is None:
            return False
        try:
            was_woken = True
            for _ in range(max(1, round(patience / _PAUSE))):
                if self.is_served or is_our_turn():
                    if not was_woken:
                        self._desk.missed()
                    break
                was_woken = self._desk.wait()
                self.positions = self._desk.answer_to(self.ticket)
                self.is_served = self.positions is not None
            if self.is_served:
                self._desk.take_off()
        except BaseException:
            self._desk.take_off()
            raise
        return True

    @property
    def is_out(self) -> bool:
        """Whether somebody may still write them."""
        return self.ticket is not None and self.positions is None

    def rest(self) -> list[Append]:
        """Note in the appends where they were written, if they were; return those that were left."""
        if self.positions is None:
            return []
        for append, position in zip(self._appends, self.positions, strict=False):
            append.position = position
            known = self._known.get(append.chat)
            if known is not None and position >= known[1]:
                self._known[append.chat] = known[0], position + 1
        return [append for append in self._appends if not append.position]

    def settle(self, driver: Driver) -> None:
        """Learn what became of them, inside a transaction that writes, and take them off the desk."""
        if self.is_out:
            found = driver.fetch(queries()["handed_over_at"], place=self._desk.place)
            self.positions = _positions(found[0][1]) if found and found[0][0] == self.ticket else None
            self._desk.take_off()
            self.ticket = None


def orders(desk: Desk, driver: Driver) -> tuple[list[Order], list[Order]]:
    """Return what others want written, and what was written already for those who were not told, inside a transaction."""
    lying = desk.orders()
    if not lying:
        return [], []
    written = {place: (ticket, positions) for place, ticket, positions in driver.fetch(queries()["handed_over"])}
    new, old = [], []
    for order in lying:
        ticket, positions = written.get(order.place, (0, ""))
        if ticket == order.ticket:
            # Whoever wrote it was killed before saying so.
            order.positions = _positions(positions)
            old.append(order)
        else:
            new.append(order)
    return new, old


def note(driver: Driver, taken: Sequence[Order]) -> None:
    """Note whose orders are written in this transaction, and where."""
    for order in taken:
        order.positions = [append.position for append in order.appends]
    driver.execute_many(
        queries()["note_handed_over"],
        [
            {"place": each.place, "ticket": each.ticket, "positions": ",".join(map(str, each.positions))}
            for each in taken
        ],
    )


def desk_at(door: Door) -> Desk | None:
    """Return the desk at a door; None where there can be none."""
    with _GUARD:
        if door.desk is None and not door.has_no_desk:
            # Elsewhere there are neither such locks nor such names.
            door.has_no_desk = sys.platform != "linux" or not hasattr(fcntl, "F_OFD_SETLK")
            try:
                door.desk = None if door.has_no_desk else Desk(f"{door.path}-desk")
            except (errors.StoreUnusable, OSError, ValueError):
                door.has_no_desk = True
        return door.desk


_GUARD = threading.Lock()
_DESKS: WeakSet[Desk] = WeakSet()


def _positions(text: str) -> list[int]:
    return [int(position) for position in text.split(",")]


def _appends(body: bytes) -> list[Append]:
    return [
        Append(line.chat, line.turns, line.expect, line.at, (line.number, line.first) if line.number else None)
        for line in _DECODER.decode(body)
    ]


def _tickets(raw: bytes, step: int) -> list[int]:
    """The tickets that orders or answers begin with, those that are not there as 0."""
    found: list[int] = memoryview(raw).cast("Q")[:: step // 8].tolist()
    return found


def _with_sum(raw: bytes) -> bytes:
    """Bytes that end in room for the sum over the rest, with the sum."""
    return raw[:-4] + crc32(raw[:-4], _FORM).to_bytes(4, "little")


def _is_whole(raw: bytes, layout: Layout) -> bool:
    return len(raw) == layout.size and crc32(raw[:-4], _FORM) == int.from_bytes(raw[-4:], "little")


def _laid_open(file: int) -> mmap.mmap:
    """The first part of the file, to look at without asking the system. Raises OSError."""
    size = os.fstat(file).st_size
    # Written, and not only made longer: where the disk is full by then, whoever looks there would be ended.
    if size < _BODIES and os.pwrite(file, bytes(_BODIES - size), size) < _BODIES - size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return mmap.mmap(file, _BODIES, prot=mmap.PROT_READ)


def _address(name: bytes) -> str:
    # Not a file: a name that goes with the socket.
    return f"\0perdure-{name.hex()}"


class _Desks:
    """All desks of a process."""

    def begin_anew(self) -> None:
        """Let go, in a child, of what its parent has: a place is the parent's, and free when the parent ends."""
        global _GUARD
        _GUARD = threading.Lock()
        for desk in list(_DESKS):
            desk.close()


_ALL = _Desks()
forking.begins_anew(_ALL)
