"""What a session, window or pane is given after it was made, as commands for tmux. Pure.

All of it can be done twice: an interrupted restore is finished by doing it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perdure.model.topology import Link, Options, Pane, Session, Window
from perdure.tmux.quote import literal

Words = Sequence[str]

#: tmux sets it on a session that is made with a size, and on a window that is made with a name.
_SIZE, _RENAME = "default-size", "automatic-rename"
_REMAIN = "remain-on-exit"


def session_settings(session: Session, id: str) -> Iterator[Words]:
    """Yield what gives a session its options and its environment. Its name is given when it is made."""
    if _SIZE not in session.options:
        yield ("set-option", "-u", "-t", id, _SIZE)
    yield from _options(session.options, id)
    for name, value in session.environment.items():
        yield ("set-environment", "-t", id, name, value)
    for name in session.removed:
        yield ("set-environment", "-r", "-t", id, name)


def window_settings(window: Window, id: str) -> Iterator[Words]:
    """Yield what gives a window its name and its options."""
    yield ("rename-window", "-t", id, literal(window.name))
    if _RENAME not in window.options:
        yield ("set-option", "-w", "-u", "-t", id, _RENAME)
    yield from _options(window.options, id, "-w")


def arrangement(window: Window, id: str, panes: Sequence[Pane], now: Mapping[str, str]) -> Iterator[Words]:
    """Yield what puts the panes of a window into their places. `panes` are all it has, `now` what they are called."""
    if any(pane.id not in now for pane in panes):
        return
    if len(panes) > 1:
        yield ("select-layout", "-t", id, window.layout or "tiled")
    for pane in (*(each for each in panes if each.last), *(each for each in panes if each.active)):
        yield ("select-pane", "-t", now[pane.id])
    if window.zoomed:
        active = next((pane for pane in panes if pane.active), panes[0])
        # Zooming is a toggle: what is zoomed already stays so.
        yield (
            "if-shell",
            "-F",
            "-t",
            now[active.id],
            "#{window_zoomed_flag}",
            "",
            f"resize-pane -Z -t {now[active.id]}",
        )


def pane_settings(pane: Pane, id: str, words: Words) -> Iterator[Words]:
    """Yield what gives a pane its title and its options; `words` let a dead one end as it did."""
    if pane.identity is None:
        # An agent's title is its own to set: one that we set would speak for it when it is verified.
        yield ("select-pane", "-t", id, "-T", literal(pane.title))
    yield from _options(pane.options, id, "-p")
    if pane.dead:
        # Without it the pane would be gone with its program; where it is on for all, nothing is set on this one.
        is_off = f"#{{==:#{{{_REMAIN}}},off}}"
        yield ("if-shell", "-F", "-t", id, is_off, f"set-option -p -t {id} {_REMAIN} on")
        yield ("respawn-pane", "-k", "-t", id, *words)


def shown(links: Sequence[Link], session: str, indexes: Mapping[str, int]) -> Iterator[Words]:
    """Yield what makes a session show the window it showed. `indexes` are where its windows are now."""
    for link in (*(each for each in links if each.last), *(each for each in links if each.active)):
        if link.window in indexes:
            yield ("select-window", "-t", f"{session}:{indexes[link.window]}")


def _options(options: Options, id: str, *kind: str) -> Iterator[Words]:
    for name, value in options.items():
        yield ("set-option", *kind, "-t", id, name, value)
