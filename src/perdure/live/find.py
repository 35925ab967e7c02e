"""Which run is meant. Pure.

Only exact names count: `r7`, a pane's id, SESSION, SESSION:WINDOW, SESSION:WINDOW.PANE. A beginning that happens to fit
today fits another run tomorrow, and what is typed or killed there cannot be taken back.
"""

from __future__ import annotations

from collections.abc import Sequence

from perdure.errors import AmbiguousRun, RunNotFound
from perdure.model.run import Run

#: How many candidates are named.
_NAMED = 8


def find_run(runs: Sequence[Run], target: str) -> Run:
    """Return the one run a target means. Raises `RunNotFound`, or `AmbiguousRun` with those it may mean.

    A run whose pane is gone is found by its id alone: its place may be another's by now. A session that is called like
    another run's id makes the name ambiguous; with a colon behind it, it is a session's.
    """
    found = [run for run in runs if run.id == target]
    found += [run for run in runs_at(runs, target) if run not in found]
    if not found:
        raise RunNotFound(f"There is no run {target!r}; `perdure ls` shows those there are.")
    if len(found) > 1:
        named = ", ".join(f"{run.id} ({run.place.target}, {run.pane} on {run.server.socket})" for run in found[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        candidates = [run.id for run in found]
        raise AmbiguousRun(f"{target!r} may mean {named}{more}; name one by its id.", candidates=candidates)
    return found[0]


def runs_at(runs: Sequence[Run], target: str) -> list[Run]:
    """Return the runs at a place: `%id`, or SESSION[:WINDOW[.PANE]] by exact name and index.

    A session's name holds no colon. A window's may hold dots: it is first taken whole, then up to the last one. A `=`
    before it, as tmux has it, is for names that would be taken for an option.
    """
    alive = [run for run in runs if not run.is_over]
    return next((found for each in spellings(target) if (found := _at(alive, each))), [])


def spellings(target: str) -> tuple[str, ...]:
    """Return what a target may be called in tmux, by which one is to be looked for first.

    As it stands; without a `=` before it; and as tmux calls what is given such a name: it doubles every backslash.
    """
    plain = (target, target.removeprefix("="))
    return tuple(dict.fromkeys((*plain, *(each.replace("\\", "\\\\") for each in plain))))


def _at(alive: Sequence[Run], target: str) -> list[Run]:
    session, _, rest = target.partition(":")
    window, dot, pane = rest.rpartition(".")
    # Without a dot that would be pane 1 of any window, for a window 1 that is not there.
    inside = [run for run in alive if dot and pane in (str(run.place.pane), run.pane)]
    return (
        [run for run in alive if run.pane == target]
        or _in_window(alive, session, rest)
        or _in_window(inside, session, window)
    )


def _in_window(runs: Sequence[Run], session: str, window: str) -> list[Run]:
    """The runs of a window by its number, or else by its name; of all windows when none is named."""
    mine = [run for run in runs if run.place.session == session]
    if not window:
        return mine
    return [run for run in mine if str(run.place.window) == window] or [
        run for run in mine if run.place.window_name == window
    ]
