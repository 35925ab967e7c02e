"""How agents' hooks stand: which files hold what of ours, and when something was last recorded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from perdure.agents import hook_facts
from perdure.hooks import apply
from perdure.hooks.apply import Place
from perdure.hooks.merge import State
from perdure.host import spool


class FileState(Struct, frozen=True, kw_only=True):
    """What one file holds of ours."""

    path: str
    state: State


class HookStatus(Struct, frozen=True, kw_only=True):
    """How an agent stands."""

    agent: str
    #: As of the file that needs somebody most; `not there` without a config directory.
    state: str
    home: str
    files: tuple[FileState, ...]
    last_record: datetime | None


def hook_places(environ: Mapping[str, str], home: str, state_dir: str, named: Collection[str] = ()) -> list[Place]:
    """Return where the files are of every agent that has hooks, or of those that are named."""
    facts = hook_facts()
    wanted = [name for name in facts if not named or name in named]
    return [apply.place(name, facts[name], environ, home, state_dir) for name in wanted]


def status_of(where: Place) -> HookStatus:
    """Return how an agent stands."""
    files = tuple(FileState(path=path, state=state) for path, state in apply.states(where)) if where.is_there else ()
    return HookStatus(
        agent=where.agent,
        state=_worst([file.state for file in files]) if files else "not there",
        home=where.home,
        files=files,
        last_record=spool.newest(where.records),
    )


def _worst(states: Sequence[State]) -> State:
    """Return what is to be said of several files: the one that needs somebody most."""
    order = (State.UNREADABLE, State.EDITED, State.OUTDATED, State.ABSENT, State.THEIRS, State.INSTALLED)
    worst = min(states, key=order.index)
    # With one of two there, installing again completes it.
    return State.OUTDATED if worst is State.ABSENT and State.INSTALLED in states else worst
