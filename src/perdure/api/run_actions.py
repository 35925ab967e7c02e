"""What is done to runs: starting one, telling it something, answering it, waiting for it, ending it. All by the functions of the commands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, TypeAlias

from litestar import delete, get, post
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct, structs

from perdure.agents import roster
from perdure.api.asking import Id, Who, World
from perdure.api.caller import Caller
from perdure.api.errors import ScreenChanged
from perdure.api.failures import failures
from perdure.api.panes import Mode, recipient_of, run_with_pane, spot_of
from perdure.api.run_rows import RunRow
from perdure.api.world import ApiWorld
from perdure.daemon import protocol
from perdure.errors import NotReached, PerdureError, Refused, RunReplaced, StoreUnusable, UsageError
from perdure.host.clock import pause
from perdure.host.directories import is_directory
from perdure.host.users import user_by_uid
from perdure.live.alone import alone
from perdure.live.deliver import Delivery, Recipient, Result, deliver
from perdure.live.launch import Launched, Readiness, agent_called, launch, request
from perdure.live.meant import changed_since
from perdure.live.present import end_run
from perdure.live.prompts import is_same, prompt_on
from perdure.live.typed import Message, message
from perdure.live.until import Outcome, outcome, words_of
from perdure.model.masked import without_keys
from perdure.model.run import Run
from perdure.model.user import User
from perdure.tmux.shown import read_shown
from perdure.tmux.sockets import canonical, socket_dir

#: How wide a pane is of which that is not known, as far as keys on its screen go.
_WIDTH = 80
_LONGEST_WAIT = 600.0
#: How often, and how many seconds apart, it is seen whether the daemon knows who was started.
_LOOKS = 100
_INTERVAL = 0.05

Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=120)]
_LONGEST_WORD = 100
Word: TypeAlias = Annotated[str, Meta(min_length=1, max_length=_LONGEST_WORD)]


class Input(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run is told: a text, or keys, or both. See `perdure send`."""

    #: Pasted as a whole.
    text: str = ""
    #: By tmux's names for them, pressed behind the text and in place of Enter.
    keys: Annotated[list[str], Meta(max_length=100)] = []
    #: Press Enter behind the text.
    enter: bool = True
    #: Even where it would answer a question, be a shell's command, or join what is begun there.
    anyway: bool = False
    #: Behind what somebody has begun to type there, so that both are sent as one.
    joined: bool = False
    #: Only if it is in this conversation still.
    conversation: Annotated[str, Meta(min_length=1, max_length=1000)] | None = None
    #: Only if this is who is there still: the word in the run's row when somebody looked at it.
    who: Word | None = None
    #: How long to wait for a sign that it was heard, in seconds.
    timeout: Seconds = 10.0


class Answer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer to what a run asks."""

    #: What is answered, as `/prompt` told it.
    prompt: Annotated[str, Meta(min_length=1, max_length=65536)]
    #: One of the choices, by its key; or a key by tmux's name for it.
    choice: Annotated[str, Meta(min_length=1, max_length=20)]
    #: Only if this is who asks it still, as `/prompt` told.
    who: Word | None = None
    timeout: Seconds = 10.0


class Delivered(Delivery, frozen=True, kw_only=True):
    """What came of it: `delivered`, `unconfirmed` (typed, and nothing shows that it was heard) or `refused` (not typed)."""

    run: str
    socket: str
    pane: str
    target: str


class NewRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be started. See `perdure new`."""

    #: The session's name; the next number without.
    name: Annotated[str, Meta(max_length=200)] | None = None
    #: Where it starts, from the root or from home (`~/…`) on; at home without.
    cwd: Annotated[str, Meta(max_length=4096)] | None = None
    agent: Annotated[str, Meta(max_length=100)] | None = None
    #: A command's words; with `agent`, how that is started.
    argv: Annotated[list[str], Meta(max_length=1000)] = []
    #: What it is asked for first.
    prompt: str = ""
    #: On the server of this socket; on the usual one without.
    socket: Annotated[str, Meta(max_length=1000)] | None = None
    #: How long it may take to be ready, in seconds.
    timeout: Annotated[float, Meta(ge=0, le=300)] = 60.0


class Started(Struct, frozen=True, kw_only=True):
    """A session that was made, and what came of what was started in it."""

    result: Readiness
    state: str
    why: str
    session: str
    name: str
    pane: str
    server: int
    agent: str | None
    delivery: Delivery | None
    screen: tuple[str, ...]
    #: Its program could not be started at all, and the session was ended again.
    gone: bool
    socket: str
    #: The run's id; null when the daemon has not seen it yet, or there is nothing left of it.
    run: str | None


class Gone(Struct, frozen=True, kw_only=True):
    """What became of a run that was let go of."""

    #: `detached`, `killed`, or `gone`: it was already.
    result: str
    run: str
    pane: str
    target: str
    socket: str
    #: The snapshot from which it can be brought back.
    snapshot: str | None = None


class Awaited(RunRow, frozen=True, kw_only=True):
    """A run that was waited for, as it is."""

    #: Whether it is in one of the states; if not, the time was up.
    reached: bool


LetGo: TypeAlias = Annotated[Mode, QueryParameter(description="Only follow it no longer, or end its pane.")]
Anyway: TypeAlias = Annotated[bool, QueryParameter(description="End it even when it could not be saved before.")]
Shown: TypeAlias = Annotated[
    str | None,
    QueryParameter(
        min_length=1, max_length=_LONGEST_WORD, description="Only if this, of the run's row, is who is there still."
    ),
]
Until: TypeAlias = Annotated[str, QueryParameter(min_length=1, max_length=200, description="States, with commas.")]
Timeout: TypeAlias = Annotated[float, QueryParameter(ge=0, le=_LONGEST_WAIT, description="In seconds.")]


@post("/api/runs/{id:str}/input", status_code=200, responses=failures(404, 504))
async def tell(world: World, caller: Who, id: Id, data: JSONBody[Input]) -> Delivered:
    """Tell a run something, and find out whether it heard."""
    run = await run_with_pane(world, id, caller)
    told = message(data.text, data.keys, enter=data.enter, anyway=data.anyway, joined=data.joined)
    at = world.now()
    with world.logs.auditing(caller, "send", run.id, text=told.text, keys=" ".join(told.keys)) as came:
        to = recipient_of(world, run, data.conversation, data.who)
        delivery = _another(run, data.who) or await _deliver(world, to, told, data.timeout)
        came["result"] = delivery.result.value
    if told.text and told.enter and delivery.result is not Result.REFUSED:
        await _note(world, caller, run, delivery, at)
    return _delivered(run, delivery)


@post("/api/runs/{id:str}/answer", status_code=200, responses=failures(404, 409, 504))
async def answer(world: World, caller: Who, id: Id, data: JSONBody[Answer]) -> Delivered:
    """Answer what a run asks, only if its screen still shows exactly that (else 409 `SCREEN_CHANGED`)."""
    run = await run_with_pane(world, id, caller)
    if (another := _another(run, data.who)) is not None:
        said = {"prompt": data.prompt, "choice": data.choice}
        world.logs.audit(caller, "answer", run.id, **said, result=another.result.value)
        return _delivered(run, another)
    shown = await world.do(lambda: read_shown(spot_of(world, run)))
    width = shown.cols
    asked = prompt_on(without_keys(shown.lines, width))
    if not is_same(asked.text, data.prompt):
        raise ScreenChanged
    changed: list[bool] = []

    def unless(lines: Sequence[str]) -> str:
        # Once more, in the moment before the keys.
        if is_same(prompt_on(without_keys(lines, width)).text, data.prompt):
            return ""
        changed.append(True)
        return "it asks something else by now"

    told = message("", asked.keys_for(data.choice))
    with world.logs.auditing(caller, "answer", run.id, prompt=data.prompt, choice=data.choice) as came:
        delivery = await _deliver(world, recipient_of(world, run, None, data.who), told, data.timeout, unless)
        came["result"] = delivery.result.value
    if changed:
        raise ScreenChanged
    return _delivered(run, delivery)


@get("/api/runs/{id:str}/wait", responses=failures(404, 409))
async def wait(world: World, caller: Who, id: Id, until: Until, timeout: Timeout = 30.0) -> Awaited:
    """Answer once a run is in one of these states, or when the time is up: `reached` says which; 409 `RUN_ENDED`."""
    await world.run(id, caller)
    words = words_of(until)
    try:
        run = await world.answers.answer(protocol.Wait(run=id, until=words, timeout=timeout), caller.uid)
    except NotReached:
        run = await world.run(id, caller)
    # Of what is told, and not of a moment before.
    return Awaited(reached=outcome(run, words) is Outcome.REACHED, **structs.asdict(world.rows.of(run)))


@post("/api/runs/{id:str}/seen", status_code=200, responses=failures(404))
async def seen(world: World, caller: Who, id: Id) -> RunRow:
    """Say that somebody has seen how a run stands: what was done and not seen is idle from then on."""
    await run_with_pane(world, id, caller)
    return world.rows.of(await world.answers.answer(protocol.MarkSeen(run=id), caller.uid))


@post("/api/runs/{id:str}/follow", status_code=200, responses=failures(404))
async def follow(world: World, caller: Who, id: Id) -> RunRow:
    """Follow a run again that was let go of, under the id it had; 404 when its pane is gone."""
    await world.run(id, caller)
    run = await world.answers.answer(protocol.Follow(run=id), caller.uid)
    world.logs.audit(caller, "follow", run.id)
    return world.rows.of(run)


@post("/api/runs", responses=failures(404, 409, 504))
async def begin(world: World, caller: Who, data: JSONBody[NewRun]) -> Started:
    """Start an agent, a command or a shell in a session of its own, and say when it is ready."""
    user = _user_of(world, caller)
    known = roster(world.config.agents)
    cwd, socket = await world.do(lambda: _where(world, data, user))
    agent = agent_called(data.agent, known)
    asked = request(data.name, cwd, agent=agent, argv=tuple(data.argv), prompt=data.prompt)
    is_mine = user.uid == world.ground.me.uid
    with world.logs.auditing(caller, "new", data.name or "", agent=data.agent, cwd=cwd, prompt=data.prompt) as came:
        launched = await world.do(
            lambda: launch(
                asked,
                socket=socket,
                owner=user,
                known=known,
                view=world.around.view_of(user) if is_mine else None,
                environ=world.ground.environ_of(user),
                # What the daemon finds in its environment is not what a person has in their terminal.
                inherits=False,
                now=world.now,
                pause=pause,
                timeout=data.timeout,
                patience=world.config.tmux.timeout_seconds,
            )
        )
        came |= {"result": launched.result.value, "session": launched.name, "pane": launched.pane}
    run = None if launched.gone else await _as_started(world, caller, socket, launched)
    screen = tuple(without_keys(launched.screen, _WIDTH))
    facts = structs.asdict(structs.replace(launched, screen=screen))
    return Started(**facts, socket=socket, run=run.id if run is not None else None)


@delete("/api/runs/{id:str}", status_code=200, responses=failures(404, 409, 504))
async def let_go(world: World, caller: Who, id: Id, mode: LetGo, anyway: Anyway = False, who: Shown = None) -> Gone:
    """Follow a run no longer, or end its pane: kept first, so that it can be brought back.

    When another agent was started there meanwhile, nothing is ended (409 `RUN_REPLACED`).
    """
    run = await run_with_pane(world, id, caller)
    if why := changed_since(who, run):
        raise RunReplaced(f"{run.id} ({run.place.target}): {why}.")
    gone = Gone(result="detached", run=run.id, pane=run.pane, target=run.place.target, socket=run.server.socket)
    if mode is Mode.DETACH:
        await world.answers.answer(protocol.Detach(run=run.id), caller.uid)
        world.logs.audit(caller, "detach", run.id)
        return gone
    with world.logs.auditing(caller, "kill", run.id, place=run.place.target) as came:
        snapshot = await _kept(world, run, anyway=anyway)
        came["snapshot"] = snapshot
        was_there = await world.do(lambda: _end(world, run, who))
        came["result"] = "killed" if was_there else "gone"
    return structs.replace(gone, result="killed" if was_there else "gone", snapshot=snapshot)


def _end(world: ApiWorld, run: Run, who: str | None) -> bool:
    """End a run's pane, False when it was gone already. Raises `RunReplaced` when another is in it by now."""
    known, spot = roster(world.config.agents), spot_of(world, run)
    is_mine = spot.owner.uid == world.ground.me.uid
    view = world.around.view_of(spot.owner) if is_mine else None
    return end_run(run, spot, known=known, view=view, now=world.now, who=who)


def _another(run: Run, who: str | None) -> Delivery | None:
    """What comes of telling a run something that was meant for who was shown under that word, None where that is still so."""
    why = changed_since(who, run)
    return Delivery(result=Result.REFUSED, why=why, agent=run.agent) if why else None


async def _deliver(world: ApiWorld, to: Recipient, told: Message, timeout: float, unless: Any = None) -> Delivery:
    is_mine = to.spot.owner.uid == world.ground.me.uid
    known = roster(world.config.agents)

    def work() -> Delivery:
        with alone(world.ground.state_dir, to.spot, timeout):
            return deliver(
                told,
                to,
                known=known,
                # Other people's files are theirs to lead us astray with: of them only the screen is believed.
                view=world.around.view_of(to.spot.owner) if is_mine else None,
                now=world.now,
                pause=pause,
                timeout=timeout,
                **({} if unless is None else {"unless": unless}),
            )

    return await world.do(work)


async def _note(world: ApiWorld, caller: Caller, run: Run, delivery: Delivery, at: datetime) -> None:
    """Say that something was typed: what is typed is also seen, and the run is at work from now on."""
    told = protocol.MarkTold(socket=run.server.socket, pane=run.pane, result=delivery.result.value, at=at)
    await world.answers.answer(told, caller.uid)


async def _as_started(world: ApiWorld, caller: Caller, socket: str, launched: Launched) -> Run | None:
    """Return the run of what was started, None when the daemon has not seen its pane yet.

    One that has seen the pane alone is given a moment to see the agent too: until then it would be told nothing, for
    what is told to a shell is for no agent.
    """
    for _ in range(_LOOKS):
        run = next(
            (each for each in world.runs(caller) if (each.server.socket, each.pane) == (socket, launched.pane)), None
        )
        if run is None or launched.agent is None or run.program is not None or launched.result is Readiness.ENDED:
            break
        await asyncio.sleep(_INTERVAL)
    return run


def _delivered(run: Run, delivery: Delivery) -> Delivered:
    shown = tuple(without_keys(delivery.screen, _WIDTH))
    facts = structs.asdict(structs.replace(delivery, screen=shown))
    return Delivered(**facts, run=run.id, socket=run.server.socket, pane=run.pane, target=run.place.target)


async def _kept(world: ApiWorld, run: Run, *, anyway: bool) -> str | None:
    """Save the run's server, and return the snapshot from which it can be brought back."""
    results = await world.daemon.in_order(lambda rounds: rounds.save(run.server.key))
    result = next(iter(results), None)
    if result is not None and result.result in ("saved", "unchanged"):
        return result.snapshot
    if anyway:
        return None
    why = (result.message if result is not None else None) or "its server was not there"
    failure = StoreUnusable if result is not None and result.reason == "store" else PerdureError
    raise failure(f"It could not be saved: {why.rstrip('.')}; so nothing was ended (`anyway` does it all the same).")


def _user_of(world: ApiWorld, caller: Caller) -> User:
    """As whom something is started: as the caller, which only root can do for somebody else."""
    if caller.uid == world.ground.me.uid:
        return world.ground.me
    user = user_by_uid(caller.uid)
    if user is None or world.ground.me.uid != 0:
        raise Refused(f"Nothing can be started for {caller.user} here.")
    return user


def _where(world: ApiWorld, data: NewRun, user: User) -> tuple[str, str]:
    """Return where something is started, and on which server. Raises `UsageError` and `Refused`.

    For somebody else nothing is looked at that is not theirs for certain: what is there, tmux finds out as that user.
    """
    is_mine = user.uid == world.ground.me.uid
    asked = data.cwd or "~"
    # As a person writes it; `~ann` is somebody else's.
    cwd = f"{user.home}{asked[1:]}" if asked == "~" or asked.startswith("~/") else asked
    if not os.path.isabs(cwd) or (is_mine and not is_directory(cwd)):
        raise UsageError(f"{asked} is no directory that can be entered; it has to begin with / or ~/.")
    usual = os.path.join(socket_dir(world.ground.environ if is_mine else {}, user.uid), "default")
    if data.socket is None:
        return cwd, canonical(usual)
    if not is_mine:
        if data.socket not in (usual, *(run.server.socket for run in world.current.runs if run.server.uid == user.uid)):
            raise Refused("On a server of your own only, that runs already, or the usual one.")
        return cwd, data.socket
    if not os.path.isabs(data.socket) or not is_directory(os.path.dirname(data.socket)):
        raise UsageError(f"{data.socket} is no path that a socket can be made at; it has to be absolute.")
    return cwd, canonical(data.socket)


ROUTES = (tell, answer, wait, seen, follow, begin, let_go)
