"""Which run is meant. Pure.

Only exact names count: `r7`, a pane's id, SESSION, SESSION:WINDOW, SESSION:WINDOW.PANE. A beginning that happens to fit
today fits another run tomorrow, and what is typed or killed there cannot be taken back. For the same reason what several
things are called means none of them: a session may be called like a run, like a pane of another session, or like another
with what makes a name of an id before it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from perdure.errors import AmbiguousRun, RunNotFound
from perdure.model.run import Run

#: How many candidates are named.
_NAMED = 8


def find_run(runs: Sequence[Run], target: str) -> Run:
    """Return the one run a target means. Raises `RunNotFound`, or `AmbiguousRun` with those it may mean.

    A run whose pane is gone is found by its id alone: its place may be another's by now. A session that is called like
    a run's id, or a pane's, makes the name ambiguous; with a `=` before it or a colon behind it, it is the session's. So do
    two sessions that a target may be the name of, each by another of its `spellings`.
    """
    alive = [run for run in runs if not run.is_over]
    by_id = [run for run in runs if run.id == target]
    in_pane = [run for run in alive if run.pane == target]
    by_name = [found for each in spellings(target) if (found := _named(alive, each))]
    named = [run for found in by_name for run in found]
    candidates = list(dict.fromkeys(run.id for run in (*by_id, *in_pane, *named)))
    if not candidates:
        raise RunNotFound(f"There is no run {target!r}; `perdure ls` shows those there are.")
    if by_id and named:
        own = [run.pane for run in by_id if not run.is_over]
        such = [run for run in alive if run.pane in own]
        socket = by_id[0].server.socket if len(such) > 1 else None
        raise AmbiguousRun(both(target, "run", _panes(by_id), _panes(named), own, socket), candidates=candidates)
    if in_pane and named:
        own = [run.place.target for run in in_pane]
        raise AmbiguousRun(both(target, "pane", own, _panes(named), own), candidates=candidates)
    if len(by_name) > 1:
        sessions = [(found[0].place.session, _panes(found)) for found in by_name]
        every = {run.place.session for run in alive}
        raise AmbiguousRun(which_session(target, sessions, every), candidates=candidates)
    if len(candidates) > 1:
        found = in_pane or named
        told = [f"{run.id} ({run.place.target}, {run.pane} on {run.server.socket})" for run in found]
        raise AmbiguousRun(f"{target!r} may mean {enumerated(told)}; name one by its id.", candidates=candidates)
    return (by_id or in_pane or named)[0]


def both(
    target: str,
    kind: str,
    ones: Sequence[str],
    others: Sequence[str],
    instead: Sequence[str],
    socket: str | None = None,
) -> str:
    """Return that a target is a run or a pane, these `ones`, and a session, of these panes, and what to say `instead`.

    The very id that was given is no help: it has to be another name. With a `=` before it, it may be that of a third.
    `socket` is that of its server, where others have such a pane, too.
    """
    where = f" with --socket {socket}" if socket is not None else ""
    own = f"{instead[0]!r}{where} for the {kind}, " if len(instead) == 1 else ""
    return (
        f"{target!r} is both a {kind} ({enumerated(ones)}) and a session ({enumerated(others)}); "
        f"say {own}'{target}:' for the session."
    )


def which_session(target: str, found: Sequence[tuple[str, Sequence[str]]], names: Collection[str]) -> str:
    """Return that a target may mean each of these sessions, of these panes, and what to say instead.

    `names` are those of all sessions there are.
    """
    rest = target.partition(":")[2]
    told = [f"the session '{name}' ({enumerated(panes)})" for name, panes in found]
    ways = [(name, spelled_for(name, names)) for name, _ in found]
    instead = [f"'{way}:{rest}' for '{name}'" if way else f"the id of a pane for '{name}'" for name, way in ways]
    return f"{target!r} may mean {' or '.join(told)}; say {', '.join(instead)}."


def spelled_for(name: str, names: Collection[str]) -> str | None:
    """Return how a session is named in a target so that it is no other of these, no option and no session's id.

    None where that cannot be: a name that others have with one `=` more and with one less.
    """
    given = name.replace("\\\\", "\\")
    for each in (name, f"={name}", given, f"={given}"):
        if not each.startswith(("-", "$")) and [one for one in spellings(each) if one in names] == [name]:
            return each
    return None


def enumerated(names: Sequence[str]) -> str:
    """Return names one after the other, the first of them where they are many."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def spellings(target: str) -> tuple[str, ...]:
    """Return what a session's name in a target may be in tmux; where several of these are there, none of them is meant.

    As it stands; without a `=` before it, which as in tmux says that it is a name and no id; and as tmux calls what is
    given such a name: it doubles every backslash.
    """
    plain = (target, target.removeprefix("="))
    return tuple(dict.fromkeys((*plain, *(each.replace("\\", "\\\\") for each in plain))))


def _panes(runs: Sequence[Run]) -> list[str]:
    return [f"{run.pane} on {run.server.socket}" for run in runs]


def _named(alive: Sequence[Run], target: str) -> list[Run]:
    """The runs at SESSION[:WINDOW[.PANE]], by exact name and index.

    A session's name holds no colon. A window's may hold dots: it is first taken whole, then up to the last one.
    """
    session, _, rest = target.partition(":")
    window, dot, pane = rest.rpartition(".")
    # Without a dot that would be pane 1 of any window, for a window 1 that is not there.
    inside = [run for run in alive if dot and pane in (str(run.place.pane), run.pane)]
    return _in_window(alive, session, rest) or _in_window(inside, session, window)


def _in_window(runs: Sequence[Run], session: str, window: str) -> list[Run]:
    """The runs of the windows of that number or name; of all windows when none is named."""
    mine = [run for run in runs if run.place.session == session]
    return [run for run in mine if window in ("", str(run.place.window), run.place.window_name)]
