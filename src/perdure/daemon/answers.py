"""What the daemon answers to those who ask over its socket."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, assert_never

from perdure import __version__
from perdure.daemon import protocol
from perdure.daemon.awaiting import await_state
from perdure.daemon.daemon import Daemon
from perdure.daemon.rounds import Rounds
from perdure.errors import NotFound, Refused, RunNotFound, StoreUnusable, UsageError
from perdure.host.users import user_by_name, user_by_uid
from perdure.live.ending import why_over
from perdure.live.whose import ROOT, is_run_of
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.observation import Told, Watched
from perdure.model.run import Reason, Run
from perdure.model.user import User


class Answers:
    """Everything that can be asked. `uid` is who asks: nobody is told of, or reaches, what is another's."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._began_at = daemon.rounds.world.now()
        #: Makes an address that logs a browser in as a user; raises why that cannot be.
        self.log_in: Callable[[User], str] = _nobody_listens
        #: Is told, in the loop, of a run that nobody wants followed any more.
        self.let_go: Callable[[Run], None] = _nobody_watches

    async def answer(self, request: protocol.AnyRequest, uid: int) -> Any:
        """Return what is asked for. Raises `PerdureError`."""
        match request:
            case protocol.AskStatus():
                return await self._daemon.in_order(self._status)
            case protocol.AskRuns():
                return await self._daemon.in_order(lambda rounds: _runs(rounds, uid, over=request.over))
            case protocol.AskRun():
                return await self._daemon.in_order(lambda rounds: _run(rounds, request.run, uid))
            case protocol.Wait():
                return await self._wait(request, uid)
            case protocol.MarkSeen():
                return await self._daemon.in_order(lambda rounds: _seen(rounds, request.run, uid))
            case protocol.MarkTold():
                return await self._daemon.in_order(lambda rounds: _told(rounds, request, uid))
            case protocol.Detach():
                over = await self._daemon.in_order(lambda rounds: _detach(rounds, request.run, uid))
                self.let_go(over)
                return over
            case protocol.Follow():
                return await self._daemon.in_order(lambda rounds: _follow(rounds, request.run, uid))
            case protocol.Save():
                return await self._daemon.in_order(lambda rounds: rounds.save())
            case protocol.AskLogin():
                return {"url": self.log_in(_user_meant(request.user, uid))}
            case protocol.Reload():
                await self._daemon.in_order(lambda rounds: rounds.reload())
                return {}
            case protocol.Events():
                raise UsageError("Events are read from the log, not asked for.")
        assert_never(request)

    async def read_events(self, asked: protocol.Events) -> Sequence[StoredEvent]:
        """Return the first stored events a request is about."""
        return await self._daemon.in_order(lambda rounds: rounds.telling.read(rounds.world.store, asked))

    def _status(self, rounds: Rounds) -> dict[str, Any]:
        servers, panes, agents = rounds.counts()
        return {
            "problem": None if rounds.trouble is None else rounds.trouble.sentence,
            "problem_since": None if rounds.trouble is None else rounds.trouble.since,
            "version": __version__,
            "since": self._began_at,
            "servers": servers,
            "panes": panes,
            "agents": agents,
            "event": rounds.world.store.last_event(),
            "health": rounds.health(),
        }

    async def _wait(self, request: protocol.Wait, uid: int) -> Run:
        async def find() -> Run:
            return await self._daemon.in_order(lambda rounds: _run(rounds, request.run, uid))

        return await await_state(self._daemon.feed, find, request.run, request.until, request.timeout)


def _nobody_listens(user: User) -> str:
    raise NotFound("This daemon is not asked over HTTP: it was begun with --no-api, or nobody could listen.")


def _nobody_watches(run: Run) -> None:
    """No terminals are open where nobody serves them."""


def _user_meant(name: str | None, uid: int) -> User:
    """Return as whom somebody wants to log in: as themselves, unless they are root."""
    user = user_by_uid(uid) if name is None else user_by_name(name)
    if user is None:
        raise NotFound(f"There is no user {name or uid}.")
    if user.uid != uid and uid != ROOT:
        raise Refused("Only root may log in as somebody else.")
    return user


def _runs(rounds: Rounds, uid: int, *, over: bool) -> list[Run]:
    runs = list(rounds.supervisor.runs)
    if over:
        runs += rounds.world.store.list_runs(host=rounds.world.host, over=True)
    return [run for run in runs if is_run_of(run, uid)]


def _run(rounds: Rounds, id: str, uid: int) -> Run:
    run = rounds.supervisor.get(id)
    if run is None or not is_run_of(run, uid):
        raise RunNotFound(f"There is no run {id!r}; `perdure ls` shows those there are.")
    return run


def _seen(rounds: Rounds, id: str, uid: int) -> Run:
    before = _run(rounds, id, uid)
    if before.is_over:
        raise RunNotFound(why_over(before))
    rounds.supervisor.observe(id, Watched(), rounds.world.now())
    if before.unseen or before.status.reason is Reason.DONE:
        _promise(rounds, id, "taken as seen")
    return _run(rounds, id, uid)


def _promise(rounds: Rounds, id: str, what: str) -> None:
    """See that what somebody has said of a run outlives us. Raises `StoreUnusable` when it may not."""
    if not rounds.is_recorded(id):
        why = "The store did not take it." if rounds.trouble is None else rounds.trouble.sentence
        raise StoreUnusable(f"{id} is {what} only until the daemon ends, unless it is written down before. {why}")


def _told(rounds: Rounds, asked: protocol.MarkTold, uid: int) -> Run | None:
    server = next((run.server for run in rounds.supervisor.runs if run.server.socket == asked.socket), None)
    run = rounds.supervisor.in_pane(server.key, asked.pane) if server is not None else None
    if run is None or not is_run_of(run, uid):
        return None
    now = rounds.world.now()
    rounds.supervisor.observe(run.id, Told(at=asked.at), now)
    data = {"result": asked.result}
    rounds.supervisor.note(Event(kind=EventKind.SENT, at=now, run=run.id, server=run.server.key, data=data))
    return rounds.supervisor.get(run.id)


def _detach(rounds: Rounds, id: str, uid: int) -> Run:
    run = _run(rounds, id, uid)
    if run.is_over:
        raise RunNotFound(why_over(run))
    over = rounds.supervisor.detach(id, rounds.world.now())
    _promise(rounds, id, "let go of")
    return over


def _follow(rounds: Rounds, id: str, uid: int) -> Run:
    run = _run(rounds, id, uid)
    if run.detached:
        rounds.supervisor.follow(id)
        rounds.save(run.server.key)
        run = _run(rounds, id, uid)
    if run.is_over:
        raise RunNotFound(why_over(run))
    return run
