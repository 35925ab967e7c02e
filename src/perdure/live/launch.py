"""A new session with a program in it, and whether that came up.

    name -> make -> watch until it is ready, wants somebody, or has ended -> type what is asked for

The pane outlives its program: a login shell is left in it, with what the program said last. Where nothing could be
started at all, there is nothing to come back to: the session is ended again, and its name is free for the next try.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, structs

from perdure.agents import Roster, agent_of
from perdure.errors import NotFound, PerdureError, UsageError
from perdure.host.clock import ticking
from perdure.host.directories import make_for
from perdure.host.processes import read_processes
from perdure.host.scope import outside_service
from perdure.live.deliver import Delivery, Recipient, Result, deliver
from perdure.live.meant import Meant, program_of
from perdure.live.recognise import next_name
from perdure.live.typed import last_lines, message
from perdure.model.process import Process
from perdure.model.run import number_of
from perdure.model.screen import Screen, ScreenReading, State
from perdure.model.secrets import redact_argv
from perdure.model.user import User
from perdure.model.wrapped import read_wrapper
from perdure.ports import AgentAdapter, Begins, HostView
from perdure.tmux.act import Made, NameTaken, Spot, end_unused, new_session, session_names
from perdure.tmux.peek import Peeked, peek
from perdure.tmux.sockets import refuse_strangers
from perdure.tmux.wrap import Start, command, ended_with, is_starting

_INTERVAL = 0.15
#: How long the shell behind a program may take to come up.
_LEAVING = 5.0
#: How often a number is tried that others may take at the same moment.
_TRIES = 50
#: What shells say of a program that is not there, or that is none.
_UNSTARTED = (126, 127)


class Readiness(StrEnum):
    """What came of a launch."""

    READY = "ready"
    #: It wants somebody before it does anything.
    ATTENTION = "attention"
    #: It was started, and does not say within its time that it is ready.
    NOT_READY = "not_ready"
    #: It was started and is over.
    ENDED = "ended"


class Request(Struct, frozen=True, kw_only=True):
    """What is to be started, and where."""

    #: The session's name; None for the next number.
    name: str | None = None
    cwd: str
    #: The words of the program; () for a shell.
    argv: tuple[str, ...] = ()
    #: What the program is called, and how a person would start it again.
    called: str = ""
    again: str = ""
    agent: AgentAdapter | None = None
    #: What is typed once it is ready.
    prompt: str = ""


class Launched(Struct, frozen=True, kw_only=True):
    """A session that was made, and what came of what was started in it."""

    result: Readiness
    #: `idle`, `busy`, `attention(permission)` …, as far as the screen tells.
    state: str
    why: str
    session: str
    name: str
    pane: str
    #: The server's process.
    server: int
    agent: str | None = None
    #: What came of the prompt: refused where it was not typed. None where there was none, or it stood on the command line.
    delivery: Delivery | None = None
    #: What the pane shows, where it is not ready.
    screen: tuple[str, ...] = ()
    #: Its program could not be started at all, and the session was ended again.
    gone: bool = False


class Look(Struct, frozen=True, kw_only=True):
    """A new pane at one moment."""

    pane: Peeked | None
    tree: tuple[Process, ...] = ()
    agent: AgentAdapter | None = None
    reading: ScreenReading | None = None


class Verdict(Struct, frozen=True, kw_only=True):
    """What a look says: something that is final only when `is_sure`."""

    result: Readiness
    why: str
    is_sure: bool = True
    #: What a program that has ended did so with, where its pane says that.
    status: int | None = None


#: What a target begins with that is no name: tmux's ids, its special targets, an option.
_MEANING = "%@$={-+!~"


def request(
    name: str | None, cwd: str, *, agent: AgentAdapter | None = None, argv: Sequence[str] = (), prompt: str = ""
) -> Request:
    """Return what is to be started. Raises UsageError for what cannot be."""
    if name is not None and (not name.strip() or not name.isprintable() or set(name) & set(":.")):
        raise UsageError(f"{name!r} cannot be a session's name: it must be printable, and hold no colon and no dot.")
    if name is not None and (name.strip()[0] in _MEANING or number_of(name.strip()) is not None):
        raise UsageError(f"{name!r} cannot be a session's name: it would be taken for something else's.")
    if any("\0" in word for word in (*argv, cwd)):
        raise UsageError("No word of a command can hold a NUL.")
    if argv and not argv[0]:
        raise UsageError("The first word of a command is the program's name, and cannot be empty.")
    if prompt and agent is None:
        raise UsageError("A prompt needs an agent that hears it: say which.")
    if prompt:
        message(prompt)
    words, again, asked = tuple(argv), tuple(argv), False
    if agent is not None and not argv:
        if not isinstance(agent, Begins):
            raise UsageError(f"How {agent.name} is started is not known; give its command as well.")
        again = agent.begin()[0]
        words, asked = agent.begin(prompt)
    called = agent.name if agent is not None else os.path.basename(words[0]) if words else ""
    return Request(
        name=name,
        cwd=cwd,
        argv=words,
        called=called,
        again=shlex.join(redact_argv(again)),
        agent=agent,
        prompt="" if asked else prompt,
    )


def agent_called(name: str | None, known: Roster) -> AgentAdapter | None:
    """Return the agent of that name, None without a name. Raises `NotFound`."""
    if name is None:
        return None
    found = known.called({name}).get(name)
    if found is None:
        names = ", ".join(adapter.name for adapter in known.everyone())
        raise NotFound(f"There is no agent called {name!r}; there are {names}.")
    return found


def judge(asked: Request, look: Look, *, was_started: bool) -> Verdict | None:
    """Return what a look at a new pane says, None when nothing yet."""
    pane = look.pane
    if pane is None:
        return Verdict(result=Readiness.ENDED, why="its session is gone")
    if pane.is_dead:
        return Verdict(result=Readiness.ENDED, why=f"it ended with status {pane.status}")
    if not asked.argv:
        is_there = bool(look.tree) and bool(last_lines(pane.lines))
        return Verdict(result=Readiness.READY, why="a shell is there") if is_there else None
    status = ended_with(pane.lines)
    is_wrapped = bool(look.tree) and read_wrapper(look.tree[0].argv) is not None
    if not is_wrapped and (was_started or status is not None):
        how = f" with status {status}" if status is not None else ""
        # The screen was read before the processes: what it says of the end may have come between.
        is_sure = status is not None
        return Verdict(result=Readiness.ENDED, why=f"{asked.called} ended{how}", is_sure=is_sure, status=status)
    if look.agent is None:
        is_up = asked.agent is None and is_wrapped and _is_up(look.tree)
        return Verdict(result=Readiness.READY, why="it runs", is_sure=False) if is_up else None
    return _judge_screen(look.agent, look.reading)


def _judge_screen(agent: AgentAdapter, reading: ScreenReading | None) -> Verdict | None:
    if reading is None or reading.frozen:
        return None
    if reading.state is State.ATTENTION:
        return Verdict(result=Readiness.ATTENTION, why=f"{agent.name} wants somebody: {reading.reason}")
    if reading.state is State.ERROR:
        return Verdict(result=Readiness.NOT_READY, why=f"{agent.name} shows an error")
    # An input may be drawn before a question about the directory covers it.
    return Verdict(result=Readiness.READY, why=f"{agent.name} is {reading.state}", is_sure=reading.state is State.BUSY)


def _is_up(tree: Sequence[Process]) -> bool:
    """Whether the pane's own program runs: what the first process started is not the user's shell reading its files."""
    children = [each for each in tree[1:] if each.ppid == tree[0].pid]
    return bool(children) and not any(is_starting(each.argv) for each in children)


def launch(
    asked: Request,
    *,
    socket: str,
    owner: User,
    known: Roster,
    view: HostView | None,
    environ: Mapping[str, str],
    inherits: bool,
    names: Collection[str] = (),
    now: Callable[[], datetime],
    pause: Callable[[float], None],
    timeout: float,
    patience: float,
) -> Launched:
    """Make a session and return when what is started in it is ready, or why it is not, after `timeout` seconds at most.

    `environ` is what a server gets that has to be started; `inherits`: the session of one that runs gets of it what tmux
    takes over from a person's terminal. `names` are numbers not to be given again, `patience` how long tmux may take to
    answer. Raises NameTaken, Refused when the socket is somebody else's, UsageError when it is none, Unanswered, and what `act.new_session` does.
    """
    made = _make(asked, socket, owner, environ, inherits, names, patience)
    spot = Spot(socket, owner, made.pane, made.server, patience)
    deadline = ticking() + timeout
    verdict, look = _watch(asked, spot, known, pause, deadline)
    is_gone = verdict.status in _UNSTARTED and _end_unused(spot, made.session, look)
    delivery = None
    agent = look.agent or asked.agent
    if verdict.result is Readiness.READY and asked.prompt:
        # What a pane is made with starts one program, and waits for it: whoever is below is the one that was started.
        first = program_of(look.tree[0]) if look.tree else None
        meant = Meant(agent=agent.name if agent is not None else None, first=first, program=first)
        to = Recipient(spot=spot, meant=meant)
        left = max(1.0, deadline - ticking())
        delivery = deliver(message(asked.prompt), to, known=known, view=view, now=now, pause=pause, timeout=left)
        verdict, look = _after(delivery, asked, spot._replace(first=first.pid if first else None), known, pause)
    elif asked.prompt:
        delivery = Delivery(result=Result.REFUSED, why=verdict.why, agent=agent.name if agent is not None else None)
        verdict = structs.replace(verdict, why=f"{verdict.why}; the prompt was not typed")
    is_ready = verdict.result is Readiness.READY
    return Launched(
        result=verdict.result,
        state=_state(verdict, look),
        why=verdict.why,
        session=made.session,
        name=made.name,
        pane=made.pane,
        server=made.server,
        agent=agent.name if agent is not None else None,
        delivery=delivery,
        screen=() if is_ready or look.pane is None else last_lines(look.pane.lines),
        gone=is_gone,
    )


def _end_unused(spot: Spot, session: str, look: Look) -> bool:
    """End a session in which nothing could be started; False when it is still there, because somebody uses it."""
    assert look.pane is not None
    try:
        end_unused(spot._replace(first=look.pane.pid), session)
        return peek(spot) is None
    except PerdureError:
        return False


def _make(
    asked: Request,
    socket: str,
    owner: User,
    environ: Mapping[str, str],
    inherits: bool,
    names: Collection[str],
    patience: float,
) -> Made:
    start = Start(argv=asked.argv, name=asked.called, again=asked.again)
    words = command(start) if asked.argv else ()
    tried: list[str] = []
    refuse_strangers(socket, owner)
    while True:
        there = session_names(socket, owner, timeout=patience) if os.path.lexists(socket) else None
        if there is None:
            make_for(owner, os.path.dirname(socket))
        name = asked.name if asked.name is not None else next_name((*(there or ()), *names, *tried))
        try:
            return new_session(
                socket,
                owner,
                name,
                words,
                cwd=asked.cwd,
                environ=environ,
                inherits=inherits,
                prefix=outside_service(owner) if there is None else (),
                timeout=patience,
            )
        except NameTaken:
            tried.append(name)
            if asked.name is not None or len(tried) >= _TRIES:
                raise


def _watch(
    asked: Request, spot: Spot, known: Roster, pause: Callable[[float], None], deadline: float
) -> tuple[Verdict, Look]:
    """Look until something is certain: twice the same, where once may be passing."""
    was_started, before = False, None
    while True:
        look = _look(spot, known)
        verdict = judge(asked, look, was_started=was_started)
        if verdict is not None and (verdict.is_sure or verdict == before):
            return verdict, look
        was_started = was_started or (bool(look.tree) and read_wrapper(look.tree[0].argv) is not None)
        if ticking() >= deadline and verdict is not None and verdict.result is Readiness.ENDED:
            return verdict, look
        if ticking() >= deadline:
            what = f"{asked.called or 'the shell'} was started, and does not show that it is ready"
            return Verdict(result=Readiness.NOT_READY, why=what), look
        before = verdict
        pause(_INTERVAL)


def _after(
    delivery: Delivery, asked: Request, spot: Spot, known: Roster, pause: Callable[[float], None]
) -> tuple[Verdict, Look]:
    """Look at what became of a program that was told what is asked for first: that may have ended it.

    What was started in the pane since, in place of what `spot` says was there first, is no concern of ours.
    """
    until, before = ticking() + _LEAVING, None
    while True:
        look = _look(spot, known)
        if look.agent is not None or (look.pane is not None and look.pane.pid != spot.first):
            break
        # An agent that is gone leaves its shell to say so.
        ended = judge(asked, look, was_started=True)
        if ended is not None and ended.result is Readiness.ENDED and (ended.is_sure or ended == before):
            return ended, look
        if ticking() >= until:
            break
        before = ended
        pause(_INTERVAL)
    result = Readiness.READY if delivery.result is Result.DELIVERED else Readiness.NOT_READY
    return Verdict(result=result, why=f"the prompt is {delivery.result}: {delivery.why}"), look


def _look(spot: Spot, known: Roster) -> Look:
    pane = peek(spot)
    if pane is None:
        return Look(pane=None)
    tree = read_processes(known.environment).tree(pane.pid, pane.tty)
    found = agent_of(tree[1:], known)
    if found is None:
        return Look(pane=pane, tree=tree)
    reading = found[0].read_screen(Screen(lines=pane.lines, title=pane.title))
    return Look(pane=pane, tree=tree, agent=found[0], reading=reading)


def _state(verdict: Verdict, look: Look) -> str:
    if verdict.result is Readiness.ENDED:
        return "exited"
    reading = look.reading
    if reading is None or reading.state is None:
        return "unknown"
    return f"{reading.state}({reading.reason})" if reading.reason else str(reading.state)
