"""Watching panes: who wants to see one is given a viewer, and tmux a client for each session that has viewers."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine

from perdure.daemon.sizes import Asks
from perdure.daemon.viewing import PaneWatch, SessionWatch, Viewer
from perdure.errors import NotFound, PerdureError, Refused
from perdure.live.ending import why_over
from perdure.model.run import Run
from perdure.model.user import User
from perdure.tmux.act import Spot
from perdure.tmux.attached import Whereabouts, attach, is_safe, locate
from perdure.tmux.occasional import Occasional

log = logging.getLogger(__name__)

#: How long clients may take to leave when everything ends, in seconds.
LEAVING = 4.0

_Key = tuple[str, int, str]


class Terminals:
    """Everybody who watches a pane. All of it belongs to one event loop; to be closed there."""

    def __init__(self, attaches: Callable[[str], bool] = is_safe) -> None:
        """Begin with nobody. `attaches` is asked whether a client may be attached to a tmux of a version."""
        self._attaches = attaches
        self._sessions: dict[_Key, SessionWatch] = {}
        self._doors: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving: set[Asks] = set()
        self._is_closed = False

    def __len__(self) -> int:
        """Return how many sessions are watched."""
        return len(self._sessions)

    async def open(self, run: Run, owner: User) -> Viewer:
        """Return a viewer of the pane a run is in. Raises NotFound, Refused and Unanswered."""
        if run.process is None or run.is_over:
            raise NotFound(why_over(run))
        since = int(run.process.started_at.timestamp())
        return await self.view(Spot(run.server.socket, owner, run.pane, run.process.pid, since=since))

    def let_go(self, run: Run) -> None:
        """Let everybody who watches the pane of a run know that it is followed no longer, and type nothing into it for them."""
        for (socket, server, _), session in self._sessions.items():
            pane = session.panes.get(run.pane)
            is_there = run.process is not None and (socket, server) == (run.server.socket, run.process.pid)
            if pane is not None and is_there:
                pane.close(why_over(run).rstrip("."))

    async def close(self) -> None:
        """Let every viewer know that it is over, and have every client leave."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        for session in list(self._sessions.values()):
            for pane in list(session.panes.values()):
                pane.close("the daemon ends")
                for viewer in list(pane.viewers):
                    viewer.close()
        if self._leaving:
            gone = [asyncio.get_running_loop().create_task(client.gone()) for client in self._leaving]
            await asyncio.wait(gone, timeout=LEAVING)
            for each in gone:
                each.cancel()

    def find_again(self, pane: PaneWatch, *, is_unwanted: bool = False) -> None:
        """See `viewing.Home`."""
        pane.session.panes.pop(pane.id, None)
        self._aside(self._find_again(pane, is_unwanted))

    def is_deserted(self, session: SessionWatch) -> None:
        """See `viewing.Home`."""
        for key in [key for key, each in self._sessions.items() if each is session]:
            del self._sessions[key]
        self._leaving.add(session.client)
        self._aside(self._see_off(session.client))

    async def _see_off(self, client: Asks) -> None:
        await client.gone()
        self._leaving.discard(client)

    def _aside(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def view(self, spot: Spot) -> Viewer:
        """Return a viewer of a pane. Raises NotFound, Refused and Unanswered."""
        async with self._doors[spot.socket]:
            session = await self._session(spot)
            return Viewer(session.pane(spot.pane))

    async def _session(self, spot: Spot) -> SessionWatch:
        where: Whereabouts = await asyncio.get_running_loop().run_in_executor(None, locate, spot)
        if where.is_fleeting:
            # With our leaving tmux would end it. And tmux 3.3a itself ends when any client leaves while somebody is on the way out of
            # such a session (tmux/control.py): not a server to ask again and again, either.
            raise Refused(
                "Its session ends when nobody is attached any more (destroy-unattached), so it is not watched."
            )
        key = (spot.socket, where.server, where.session)
        if key in self._sessions:
            return self._sessions[key]
        # From here on it is this process of the server, whoever may be on the socket later.
        spot = spot._replace(server=where.server, since=where.since)
        session = SessionWatch(self, spot, where.session)
        if self._attaches(where.version):
            session.begin(await attach(spot, where.session, session.hear, session.ended))
        else:
            session.begin(Occasional(spot, session.ended), is_polled=True)
        self._sessions[key] = session
        return session

    async def _find_again(self, lost: PaneWatch, is_unwanted: bool) -> None:
        before, spot = lost.session, lost.session.spot._replace(pane=lost.id)
        try:
            if is_unwanted:
                await asyncio.get_running_loop().run_in_executor(None, locate, spot)
                raise Refused("somebody detaches whoever watches it.")
            async with self._doors[spot.socket]:
                session = await self._session(spot)
                if session is not before:
                    session.sizes.inherit(before.sizes)
                pane = session.pane(lost.id)
                for viewer in list(lost.viewers):
                    viewer.move(pane)
                session.has_left(pane)
        except NotFound:
            lost.close("its pane is not there any more")
        except PerdureError as error:
            lost.close(error.message.rstrip("."))
        before.leave_if_deserted()
