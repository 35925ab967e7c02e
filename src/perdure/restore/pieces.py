"""What each pane is started with and what it says, from its step. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import datetime
from os.path import basename

from perdure.host.scratch import Kind
from perdure.model.plan import Action, Step
from perdure.model.process import Process
from perdure.model.secrets import redact_argv
from perdure.model.topology import Pane
from perdure.restore.plan import starts_an_agent
from perdure.restore.replay import replayed
from perdure.tmux.wrap import Start, command, needs_wrapper

#: Where a step's files are: `text`, `gate` and `status`.
PathOf = Callable[[int, Kind], str]


def text_of(step: Step, scrollback: bytes | None, *, saved_at: datetime, now: datetime, width: int) -> bytes | None:
    """Return what is printed in a step's pane before anything starts there, None for nothing."""
    return replayed(scrollback, said(step), saved_at=saved_at, now=now, width=width)


def said(step: Step) -> list[str]:
    """Return the sentences a pane says about itself. Secrets stay in the store."""
    line = shown_command(step)
    if step.action is Action.SHOW:
        what = step.agent or basename(step.argv[0] if step.argv else "the program")
        sentences = [f"perdure: {what} was not started: {step.why}."]
        return [*sentences, f"To start it: {line}"] if step.argv else sentences
    if step.asks:
        return [f"perdure: {step.why}.", f"It will run: {line}"]
    return []


def shown_command(step: Step) -> str:
    """Return a step's command as a person would type it, without the secrets in it."""
    return shlex.join(redact_argv(step.argv))


def start_of(step: Step, pane: Pane, path: PathOf, *, has_text: bool, before: Process | None = None) -> Start:
    """Return what a step's pane does; what it starts waits until `before` is gone."""
    text = path(step.n, Kind.TEXT) if has_text else None
    if step.action is Action.DEAD:
        # One that a signal ended has a status too, which is not its own.
        status = None if pane.exit_signal else pane.exit_status or 0
        return Start(text=text, exits=status, signal=pane.exit_signal)
    if step.action in (Action.SHELL, Action.SHOW):
        argv = step.argv if step.action is Action.SHELL else ()
        return Start(text=text, argv=argv, stays=bool(argv))
    return Start(
        argv=step.argv,
        environ=step.environ,
        text=text,
        gate=path(step.n, Kind.GATE) if starts_an_agent(step) else None,
        asks=step.asks,
        is_guess=step.is_guess,
        before=(before.pid, before.start_ticks) if before is not None else None,
        status=path(step.n, Kind.STATUS),
        name=step.agent or basename(step.argv[0]),
        again=shown_command(step),
    )


def words_of(start: Start) -> tuple[str, ...]:
    """Return the words for tmux, () where the shell it starts by itself will do."""
    return command(start) if needs_wrapper(start) else ()
