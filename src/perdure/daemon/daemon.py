"""The loop: it waits for streams, and hands all work to one thread."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TypeVar

from perdure.daemon.current import Current
from perdure.daemon.outcome import message_of
from perdure.daemon.rounds import Rounds
from perdure.daemon.stimuli import Gone, Key, Round, Stimuli, What
from perdure.daemon.telling import Publish
from perdure.daemon.untold import Promise
from perdure.daemon.world import World
from perdure.errors import PerdureError, Refused
from perdure.host.child import run_aside, was_interrupted
from perdure.host.clock import ticking
from perdure.host.exits import Exit, Exits, switches
from perdure.host.lock import AT_WORK
from perdure.host.run import Ran
from perdure.host.watch import EVERYTHING, Watch, watch
from perdure.live.feed import Feed
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.run import Program
from perdure.model.server import Server

T = TypeVar("T")

#: How often it is seen whether servers did anything, in seconds: what costs a read of one small file each.
PULSE = 0.25
#: How long a server may have to do with what we have asked it, in seconds, after it has answered.
REST = 0.06
#: So often a server is woken by one of our clients that has just left, as a rule; by anybody else's at least twice.
OURS = 1
#: What is told in quick succession is heard together, in seconds: agents at work print all the time, and terminals come
#: and go on the whole machine.
HUSH = 0.04
#: How often everything is looked at where the machine tells nothing by itself.
POLL = 1.0
#: How often it is seen whether others have written something down, for those who follow what happens.
OTHERS = 0.5
#: How long the last round may take when the daemon is told to end, until it is said.
DRAIN = 10.0
#: So often a restore that a signal has ended is gone on with, and so often one is tried again while another is at work.
MOST_INTERRUPTED, MOST_REFUSED = 2, 240
#: How long after that, in seconds: the longer, the more often, up to the latter.
AGAIN, AGAIN_AT_MOST = 2.0, 15.0
#: How long nothing is tried after rounds have failed, at most.
SLOWEST = 60.0

log = logging.getLogger(__name__)


class Daemon:
    """Watches until it is told to end."""

    def __init__(self, open_world: Callable[[], World]) -> None:
        self._open_world = open_world
        # One thread: what is looked at, advanced and written down happens in one order, and the store is used where
        # it was opened.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rounds")
        self._rounds: Rounds | None = None
        self.feed = Feed()
        self._noticed = Stimuli()
        self._wake = asyncio.Event()
        self._stopping = False
        self._stopped = asyncio.Event()
        self._is_at_work = False
        self._reload = False
        self._watch: Watch[Key] | None = None
        #: Whoever uses what is below of ended processes holds it: the rounds ask for them, too, in their own thread.
        self._hearing = threading.Lock()
        self._exits: Exits[Key] = Exits()
        #: Processes that have ended and are not known to be waited for no longer.
        self._gone: dict[Key, Gone] = {}
        self._paths: Mapping[Key, str] = {}
        self._programs: Mapping[Key, Program] = {}
        self._servers: dict[Key, int] = {}
        self._pulses: dict[Key, int | None] = {}
        #: Servers that are just done with what we asked of them.
        self._resting: dict[Key, int] = {}
        self._next_at: float | None = None
        self._polled_at = 0.0
        #: Whether anybody followed what happens when it was last seen what others have written down, and when that was.
        self._is_followed = False
        self._is_hearing = False
        self._heard_at = 0.0
        self._needs_terminals = False
        #: Servers that died and are brought back one after the other.
        self._fallen: list[Server] = []
        self._aside: set[asyncio.Task[None]] = set()

    @property
    def rounds(self) -> Rounds:
        """What does the work; only its own thread may touch it."""
        assert self._rounds is not None
        return self._rounds

    @property
    def current(self) -> Current:
        """The runs as they were last written down, for everybody and every thread."""
        return self._rounds.current if self._rounds is not None else Current()

    async def in_order(self, work: Callable[[Rounds], T]) -> T:
        """Run something in the thread of the rounds; what came of it is written down and published, whoever still waits."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, lambda: self._recorded(work))

    async def has_lease(self) -> bool:
        """Return whether this is still the one that watches. What becomes of a store that fails the next round sees."""
        try:
            # Nothing is written down here: it would be in the store of whoever has the lease.
            return await asyncio.get_running_loop().run_in_executor(self._worker, lambda: self.rounds.has_lease())
        finally:
            self._wake.set()

    async def run(self, listen: Callable[[Daemon], asyncio.Task[None]], ready: Callable[[int, int, int], None]) -> None:
        """Watch until SIGTERM or SIGINT; `listen` starts whoever answers others. Raises what the beginning raises.

        `ready` is told how many servers, panes and agents there are, once all of them were seen.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._ask_to_reload)
        self._watch = watch()

        def publish(events: Sequence[StoredEvent], has_more: bool) -> None:
            # From the thread that has stored them, so that they are published in this order, and also when nobody
            # waits any more for what they came of.
            loop.call_soon_threadsafe(self._publish, events, has_more)

        def ended_by_now() -> Mapping[Key, Gone]:
            with self._hearing:
                if fresh := self._hear(self._exits.read()):
                    loop.call_soon_threadsafe(self._notice_ends, fresh)
                return dict(self._gone)

        try:
            first = await loop.run_in_executor(self._worker, self._begin, publish, ended_by_now)
            listening = listen(self)
            # Without anybody to answer there is no use in going on: whoever asks would think that nobody is there.
            listening.add_done_callback(lambda _: self.stop())
            try:
                self._attach(loop)
                self._take(first)
                self._restore_fallen()
                counts = await self.in_order(lambda rounds: rounds.counts())
                if not self._stopping:
                    ready(*counts)
                await self._go_round()
                await self._drain()
            finally:
                await self._leave_restoring()
                listening.cancel()
                with suppress(asyncio.CancelledError):
                    await listening
        finally:
            self._stopping = True
            await loop.run_in_executor(self._worker, self._close)
            self._worker.shutdown(wait=True)
            self._detach(loop)

    def stop(self) -> None:
        """Have the daemon end after the round it is in."""
        self._stopping = True
        self._stopped.set()
        self._wake.set()

    # In the thread of the rounds

    def _begin(self, publish: Publish, ended_by_now: Callable[[], Mapping[Key, Gone]]) -> Round:
        world = self._open_world()
        self._rounds = Rounds(world, publish, ended_by_now)
        try:
            return self._rounds.begin()
        except BaseException:
            self._rounds = None
            world.close()
            raise

    def _close(self) -> None:
        if self._rounds is not None:
            self._rounds.world.close()

    def _recorded(self, work: Callable[[Rounds], T]) -> T:
        try:
            return work(self.rounds)
        finally:
            self.rounds.record()

    def _heard(self, is_followed: bool) -> None:
        telling = self.rounds.telling
        if is_followed:
            telling.others(self.rounds.world.store)
        else:
            telling.rest()

    # In the loop

    def _publish(self, events: Sequence[StoredEvent], has_more: bool) -> None:
        if has_more:
            self.feed.fall_behind()
        for event in events:
            self.feed.publish(event)

    def _hear_of_others(self) -> None:
        """See whether others have written something down, as long as somebody follows what happens."""
        loop = asyncio.get_running_loop()
        is_followed = bool(len(self.feed))
        is_known = self._is_followed == is_followed
        if (
            self._stopping
            or self._is_hearing
            or loop.time() < self._heard_at + OTHERS
            or (is_known and not is_followed)
        ):
            return
        self._heard_at = loop.time()
        self._is_followed, self._is_hearing = is_followed, True
        loop.run_in_executor(self._worker, self._heard, is_followed).add_done_callback(self._has_heard)

    def _has_heard(self, done: asyncio.Future[None]) -> None:
        self._is_hearing = False
        if not done.cancelled() and (error := done.exception()) is not None:
            log.error("what others have written down was not seen: %s", error)

    def _attach(self, loop: asyncio.AbstractEventLoop) -> None:
        self._listen()
        loop.add_reader(self._exits.fileno(), self._something_ended)
        self._pulse()

    def _detach(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._watch is not None:
            loop.remove_reader(self._watch.fileno())
            self._watch.close()
            self._watch = None
        loop.remove_reader(self._exits.fileno())
        self._exits.close()

    def _listen(self) -> None:
        if self._watch is not None:
            asyncio.get_running_loop().add_reader(self._watch.fileno(), self._something_changed)

    def _something_changed(self) -> None:
        assert self._watch is not None
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._watch.fileno())
        loop.call_later(HUSH, self._listen)
        for key in self._watch.read():
            if key is EVERYTHING:
                self._noticed.everything = True
            elif key.what is What.TERMINALS:
                # Anybody's, on the whole machine: one of ours only when its server did something.
                self._count()
                if self._needs_terminals:
                    self._noticed.keys.add(key)
            else:
                self._noticed.keys.add(key)
                self._watch_on(key)
        if self._noticed:
            self._wake.set()

    def _watch_on(self, key: Key) -> None:
        """Watch what is to be watched, where it is not: another terminal may have been given the name of one that is gone."""
        path = self._paths.get(key)
        if self._watch is None or path is None or self._watch.has(key):
            return
        if self._watch.add(path, key) and key.what is What.PANE:
            # What was printed between the look that found it and now, nobody has told.
            self._noticed.polled.add(key)
            self._wake.set()

    def _something_ended(self) -> None:
        with self._hearing:
            fresh = self._hear(self._exits.read())
        self._notice_ends(fresh)

    def _hear(self, ended: Mapping[Key, Exit]) -> dict[Key, Gone]:
        at = ticking()
        fresh = {key: Gone(self._programs[key], how, at) for key, how in ended.items() if key in self._programs}
        self._gone |= fresh
        return fresh

    def _notice_ends(self, fresh: Mapping[Key, Gone]) -> None:
        self._noticed.ended.update(fresh)
        self._wake.set()

    def _pulse(self) -> None:
        """See whether servers did anything: tmux does not tell those who are not attached."""
        with self._hearing:
            fresh = self._hear(self._exits.poll()) if self._exits.needs_polling else {}
        if fresh:
            self._notice_ends(fresh)
        self._count()
        loop = asyncio.get_running_loop()
        if self._watch is not None and self._watch.unwatched and loop.time() >= self._polled_at + POLL:
            # What the kernel does not tell of is looked at instead.
            self._polled_at = loop.time()
            self._noticed.polled.update(self._watch.unwatched)
            self._wake.set()
        self._hear_of_others()
        loop.call_later(PULSE, self._pulse)

    def _count(self) -> None:
        if self._is_at_work:
            return  # it may just be asking them
        for key, pid in self._servers.items():
            count = switches(pid)
            if key not in self._resting and count != self._pulses.get(key):
                self._pulses[key] = count
                self._noticed.keys.add(key)
                self._wake.set()

    def _rest(self, asked: frozenset[Key]) -> None:
        """Let what servers do because we asked them pass, and count from there."""
        for key in asked:
            self._resting[key] = self._resting.get(key, 0) + 1
            if key in self._servers:
                self._pulses[key] = switches(self._servers[key])
        asyncio.get_running_loop().call_later(REST, self._count_from_here, asked)

    def _count_from_here(self, asked: frozenset[Key]) -> None:
        for key in asked:
            self._resting[key] -= 1
            if not self._resting[key]:
                del self._resting[key]
                self._count_on(key)

    def _count_on(self, key: Key) -> None:
        """Count from here, unless a server did more than we are the reason of: somebody else was there too."""
        if key not in self._servers:
            return
        before, count = self._pulses.get(key), switches(self._servers[key])
        if count is not None and before is not None and count - before <= OURS:
            self._pulses[key] = count

    async def _go_round(self) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        while not self._stopping:
            await self._wait()
            if self._reload:
                self._reload = False
                await self._read_again()
            noticed, self._noticed = self._noticed, Stimuli()
            if self._watch is None:
                noticed.everything = True
            self._is_at_work = True
            try:
                done = await loop.run_in_executor(self._worker, self.rounds.round, noticed)
            except Refused:
                # Another watches by now: whatever is done here is done twice.
                raise
            except Exception as error:
                failures += 1
                self._failed(noticed, error, failures)
                # What was noticed is not forgotten, and yet nothing is tried again at once.
                with suppress(TimeoutError):
                    pause = min(POLL * 2 ** min(failures - 1, 10), SLOWEST)
                    await asyncio.wait_for(self._stopped.wait(), pause)
                continue
            finally:
                self._is_at_work = False
            failures = 0
            self._take(done)
            self._restore_fallen()

    def _failed(self, noticed: Stimuli, error: Exception, failures: int) -> None:
        """A round has failed: what it was about is the next one's, which has to look at everything."""
        self._noticed.again(noticed)
        self._noticed.everything = True
        if failures == 1:
            expected = isinstance(error, PerdureError)
            log.error("a round failed: %s", error, exc_info=None if expected else error)

    async def _wait(self) -> None:
        """Wait until something is noticed or due; what is noticed together is looked at together."""
        now = asyncio.get_running_loop().time()
        timeout = max(0.0, (self._next_at or now) - now)
        if self._watch is None:
            timeout = min(timeout, POLL)
        if not self._noticed:
            self._wake.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), timeout)
        self._wake.clear()

    def _take(self, done: Round) -> None:
        """Watch what a round asks for."""
        self._next_at = done.next_at
        self._needs_terminals = done.needs_terminals
        self._servers = dict(done.servers)
        if done.asked:
            self._rest(done.asked)
        if self._watch is not None and self._paths is not done.paths:
            before, self._paths = self._paths, done.paths
            for key in [key for key, path in before.items() if done.paths.get(key) != path]:
                self._watch.remove(key)
            for key in done.paths:
                self._watch_on(key)
        if self._programs is not done.programs:
            with self._hearing:
                self._wait_for(done.programs)

    def _wait_for(self, programs: Mapping[Key, Program]) -> None:
        """Wait for the ends of these processes, and of no others."""
        for key in self._programs.keys() - programs.keys():
            self._exits.remove(key)
        for key, program in programs.items():
            if self._programs.get(key) != program:
                self._exits.remove(key)
                self._exits.add(program.pid, program.start_ticks, key)
        self._programs = programs
        self._gone = {key: gone for key, gone in self._gone.items() if programs.get(key) == gone.program}

    def _restore_fallen(self) -> None:
        """Bring back servers that died, where that is wished for: in a process of its own, for it takes its time."""
        is_at_it = bool(self._fallen)
        while self.rounds.to_restore:
            server = self.rounds.to_restore.pop(0)
            # The one that is at work may just have ended, and is asked for again then.
            if server not in self._fallen[1:]:
                self._fallen.append(server)
        if self._fallen and not is_at_it:
            task = asyncio.get_running_loop().create_task(self._restore_all())
            self._aside.add(task)
            task.add_done_callback(self._aside.discard)

    async def _restore_all(self) -> None:
        # One after the other: two restores for one user would refuse each other.
        while self._fallen:
            try:
                await self._restore(self._fallen[0])
            except Exception as error:
                # The others are still to be brought back, and those that will die later.
                log.error("%s could not be brought back: %s", self._fallen[0].socket, error)
            finally:
                del self._fallen[0]

    async def _restore(self, server: Server) -> None:
        """Bring a server back, for as long as that is to be done and was not: it may fall again meanwhile."""
        interrupted = refused = 0
        while (promise := await self.in_order(lambda rounds: rounds.promised(server))) is not None:
            world = self.rounds.world
            began_at = world.now()
            ran = await run_aside(world.restore_words(server.socket), environ=world.environ, cwd="/")
            if was_interrupted(ran) and interrupted < MOST_INTERRUPTED:
                interrupted += 1
                log.warning("bringing back %s was interrupted (%d); it is gone on with", server.socket, ran.status)
                await asyncio.sleep(min(AGAIN * interrupted, AGAIN_AT_MOST))
            elif _met_another(ran) and refused < MOST_REFUSED:
                refused += 1
                await asyncio.sleep(min(AGAIN * refused, AGAIN_AT_MOST))
            else:
                data = {"socket": server.socket, "exit_code": ran.status, "message": message_of(ran)}
                event = Event(kind=EventKind.RESTORED, at=world.now(), server=server.key, data=data)
                await self.in_order(partial(_take_in, promise, began_at, event))
                # It may have to be brought back again.
                self._wake.set()

    def _ask_to_reload(self) -> None:
        self._reload = True
        self._wake.set()

    async def _read_again(self) -> None:
        try:
            await self.in_order(lambda rounds: rounds.reload())
        except PerdureError as error:
            log.warning("the configuration stays what it was: %s", error.message)
        else:
            log.info("the configuration was read again")

    async def _drain(self) -> None:
        await self._leave_restoring()
        ending = asyncio.get_running_loop().run_in_executor(self._worker, self.rounds.end)
        try:
            await asyncio.wait_for(asyncio.shield(ending), DRAIN)
        except TimeoutError:
            log.warning("the last save takes more than %.0f s", DRAIN)
            await ending

    async def _leave_restoring(self) -> None:
        """Have a restore that is at work end; `perdure restore` goes on from there."""
        for task in self._aside:
            task.cancel()
        await asyncio.gather(*self._aside, return_exceptions=True)


def _take_in(promise: Promise, began_at: datetime, event: Event, rounds: Rounds) -> None:
    rounds.restored(promise, began_at, event)


def _met_another(ran: Ran) -> bool:
    """Return whether a restore was refused because another was at work for the same user."""
    return ran.status == Refused.exit_code and AT_WORK in ran.err
