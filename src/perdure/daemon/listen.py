"""The daemon's socket: lets in who may come in, reads requests, writes answers, and hands on what happens.

Nobody who is connected can hold up the daemon or anybody else: what each may send, keep open and leave unread is bounded,
and whoever goes beyond is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from msgspec import Struct

from perdure.daemon import protocol
from perdure.daemon.protocol import AnyRequest, Events, Line, Page
from perdure.errors import PerdureError, Refused, UsageError
from perdure.host.unix_socket import Listener, listening, peer_uid
from perdure.live.feed import Feed, Wants
from perdure.live.whose import ROOT, is_event_for
from perdure.model.event import Lagged, StoredEvent

#: Answers everything but `Events`, for the user whose process asks: they may see and touch only what is theirs (`live.whose`).
#: Cancelled when whoever asked has gone.
Answer = Callable[[AnyRequest, int], Awaitable[object]]
#: Reads the first stored events a request is about, whoever asks; none only when there are none.
ReadEvents = Callable[[Events], Awaitable[Sequence[StoredEvent]]]
#: Says whether this is still the daemon that watches: where the lock was removed, another may have begun.
HasLease = Callable[[], Awaitable[bool]]

_log = logging.getLogger(__name__)


class Limits(Struct, frozen=True, kw_only=True):
    """How much anybody may ask for, and how long anybody is waited for."""

    connections: int = 64
    #: At once, on one connection.
    requests: int = 32
    #: How long somebody may leave unread what was written for them, in seconds.
    patience: float = 30.0
    #: How long, in the end, what has happened may still be read.
    drain: float = 2.0
    #: How often it is seen whether somebody has removed the socket, while nobody comes.
    removal: float = 2.0


async def serve(
    path: str,
    answer: Answer,
    feed: Feed,
    *,
    read: ReadEvents,
    has_lease: HasLease,
    ready: Callable[[], object] = lambda: None,
    me: int | None = None,
    limits: Limits | None = None,
) -> None:
    """Listen at `path` until cancelled, calling `ready` once anybody can connect.

    Raises `Refused` when another daemon listens there. Cancelled, it lets nobody in any more, closes the feed, and
    gives those who follow it a moment to read the rest; requests that are not answered by then never are. `me` is who
    may connect besides root; root lets everybody in.
    """
    desk = _Desk(answer, feed, read, os.geteuid() if me is None else me, limits or Limits())
    with listening(path, "daemon") as listener:
        door = _Door(listener, has_lease, desk.limits.removal)
        ready()
        async with asyncio.TaskGroup() as group:
            try:
                await desk.receive(door, group)
            except asyncio.CancelledError:
                door.close()
                await desk.drain()
                raise


class _Door:
    """Where people come in. One whose name was removed, as who clears old files away may do, is put back.

    So is the lock beside it, and the directory of both, but only where no other daemon watches: its door it is then.
    """

    def __init__(self, listener: Listener, has_lease: HasLease, every: float) -> None:
        self._listener = listener
        self._has_lease = has_lease
        self._every = every
        self._trouble = ""

    async def knock(self) -> socket.socket:
        """Return the listener once somebody wants to be let in."""
        while not await _readable(self._listener.socket, self._every):
            try:
                await self._put_back()
            except PerdureError as error:
                if error.message != self._trouble:
                    _log.warning("nobody can ask any more: %s", error.message)
                self._trouble = error.message
        return self._listener.socket

    def close(self) -> None:
        """Let nobody in any more; the lock stays until those who are in have gone."""
        self._listener.socket.close()

    async def _put_back(self) -> None:
        there = self._listener
        if not there.has_lock():
            if not await self._has_lease():
                return
            there.take_lock()
            _log.warning("%s.lock had been removed, and was made again", there.path)
        if not there.has_name():
            there.take_name()
            _log.warning("%s had been removed, and was made again", there.path)
        if self._trouble:
            # Another sentence: the one above may have been said a moment ago, and is not repeated then.
            _log.warning("whoever asks at %s is answered again", there.path)
        self._trouble = ""


class _Desk:
    """Who is connected, and what all of them share."""

    def __init__(self, answer: Answer, feed: Feed, read: ReadEvents, me: int, limits: Limits) -> None:
        self.answer = answer
        self.feed = feed
        self.read = read
        self.limits = limits
        self.me = me
        self._guests: set[asyncio.Task[None]] = set()
        #: Those of them that follow what happens.
        self.followers: set[asyncio.Task[None]] = set()

    async def receive(self, door: _Door, group: asyncio.TaskGroup) -> None:
        """Let everybody in who comes, for ever."""
        while True:
            listener = await door.knock()
            try:
                # Nothing is awaited between here and the task: whoever is let in has somebody who closes the door.
                connection, _ = listener.accept()
            except BlockingIOError:
                continue
            except OSError as error:
                # No more files may be open, as a rule. It passes, and whoever waits outside is still there then.
                _log.warning("nobody can be let in: %s", error.strerror or error)
                await asyncio.sleep(0.2)
                continue
            connection.setblocking(False)
            guest = group.create_task(self._welcome(connection))
            self._guests.add(guest)
            guest.add_done_callback(partial(self._forget, connection))

    async def drain(self) -> None:
        """Let those who follow read the rest."""
        self.feed.close()
        if self.followers:
            await asyncio.wait(self.followers, timeout=self.limits.drain)

    async def _welcome(self, connection: socket.socket) -> None:
        """Be there for one who has connected, until they leave; what goes wrong with them is nobody else's trouble."""
        try:
            uid = peer_uid(connection)
            reader, writer = await asyncio.open_unix_connection(sock=connection, limit=protocol.LONGEST_LINE)
            guest = _Guest(self, reader, writer, -1 if uid is None else uid)
            try:
                await guest.attend(self._objection(uid))
            finally:
                writer.transport.abort()
        except Exception:
            _log.exception("a connection failed")

    def _forget(self, connection: socket.socket, guest: asyncio.Task[None]) -> None:
        # Also of one who was sent away before anybody was there for them.
        connection.close()
        self._guests.discard(guest)

    def _objection(self, uid: int | None) -> PerdureError | None:
        """Return why this one may not come in, None when they may."""
        if uid is None or (uid not in (ROOT, self.me) and self.me != ROOT):
            return Refused("This daemon is another user's.")
        if len(self._guests) > self.limits.connections:
            return Refused(f"{self.limits.connections} are connected already; try again.")
        return None


class _Guest:
    """One connection."""

    def __init__(self, desk: _Desk, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, uid: int) -> None:
        self._desk = desk
        self._reader = reader
        self._writer = writer
        self._uid = uid
        self._writing = asyncio.Lock()
        self._requests: set[asyncio.Task[None]] = set()

    async def attend(self, objection: PerdureError | None) -> None:
        """Answer what is asked until they have gone, or were dropped."""
        if objection is not None:
            await self._fail(None, objection)
            await self._leave()
            return
        async with asyncio.TaskGroup() as group:
            while (raw := await self._next_line()) is not None:
                if not raw.strip():
                    continue
                if len(self._requests) >= self._desk.limits.requests:
                    await self._fail(protocol.id_of(raw), Refused("Too much is asked for at once."))
                    continue
                request = group.create_task(self._respond(raw))
                self._requests.add(request)
                request.add_done_callback(self._requests.discard)
            # Who has only said that nothing more comes still reads the answers.
            while self._requests and not self._has_gone():
                await asyncio.wait(self._requests, timeout=0.5)
            for each in self._requests:
                each.cancel()
        await self._leave()

    async def _next_line(self) -> bytes | None:
        """Return the next line, None when no more comes."""
        try:
            return await self._reader.readline() or None
        except ConnectionError:
            return None
        except ValueError:
            await self._fail(None, UsageError(f"A request is longer than {protocol.LONGEST_LINE} bytes."))
            return None

    async def _respond(self, raw: bytes) -> None:
        id = protocol.id_of(raw)
        try:
            request = protocol.decode_request(raw)
            if isinstance(request, Events) and request.follow:
                await self._follow(request)
            elif isinstance(request, Events):
                await self._say(Line(id=id, ok=await self._page(request)))
            else:
                await self._say(Line(id=id, ok=await self._desk.answer(request, self._uid)))
        except PerdureError as error:
            await self._fail(id, error)
        except Exception:
            _log.exception("a request failed")
            await self._fail(id, PerdureError("The daemon could not do this; its log says why."))

    async def _page(self, request: Events) -> Page:
        found = await self._desk.read(request)
        wanted = self._wanted(request)
        after = found[-1].seq if found else request.after
        return Page(events=tuple(filter(wanted, found)), after=after, more=bool(found))

    async def _follow(self, request: Events) -> None:
        task = asyncio.current_task()
        assert task is not None

        async def read(after: int) -> Sequence[StoredEvent]:
            page = Events(after=after, run=request.run, kinds=request.kinds, limit=request.limit)
            return await self._desk.read(page)

        self._desk.followers.add(task)
        try:
            with self._desk.feed.subscribe(request.after, read, self._wanted(request)) as events:
                async for each in events:
                    if not await self._say(_told(request.id, each)):
                        return
            # Dropped, or the daemon ends: nothing more comes, and they are to notice.
            await self._leave()
        finally:
            self._desk.followers.discard(task)

    def _wanted(self, request: Events) -> Wants:
        def is_wanted(stored: StoredEvent) -> bool:
            event = stored.event
            return (
                is_event_for(event, self._uid, owner=self._desk.me)
                and request.run in (None, event.run)
                and (not request.kinds or event.kind in request.kinds)
            )

        return is_wanted

    async def _fail(self, id: int | None, error: PerdureError) -> None:
        await self._say(Line(id=id, error=protocol.failure_from(error)))

    async def _say(self, line: Line) -> bool:
        """Write a line; return False when nobody reads: they have gone, or are dropped for being slow."""
        raw = protocol.encode_line(line)
        async with self._writing:
            self._writer.write(raw)
            return await self._done(self._writer.drain())

    async def _leave(self) -> None:
        """Close once they have what was written."""
        self._writer.close()
        await self._done(self._writer.wait_closed())

    async def _done(self, writing: Awaitable[None]) -> bool:
        try:
            async with asyncio.timeout(self._desk.limits.patience):
                await writing
        except (ConnectionError, TimeoutError):
            self._writer.transport.abort()
            return False
        return True

    def _has_gone(self) -> bool:
        """Whether the other end is closed altogether, not only for what they would send."""
        if self._writer.transport.is_closing():
            return True
        poll = select.poll()
        poll.register(self._writer.get_extra_info("socket").fileno(), 0)
        return bool(poll.poll(0))


async def _readable(listener: socket.socket, timeout: float) -> bool:
    """Return whether somebody wants to be let in, as soon as that is so, or when the time is up."""
    loop = asyncio.get_running_loop()
    somebody = asyncio.Event()
    loop.add_reader(listener, somebody.set)
    try:
        async with asyncio.timeout(timeout):
            await somebody.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(listener)
    return True


def _told(id: int, each: StoredEvent | Lagged) -> Line:
    return Line(id=id, lagged=each) if isinstance(each, Lagged) else Line(id=id, event=each)
