"""What a session, window or pane is given after it was made, as commands for tmux. Pure.

All of it can be done twice: an interrupted restore is finished by doing it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perdure.model.topology import Link, Options, Pane, Session, Window
from perdure.snapshots.kept import OPTION
from perdure.tmux.quote import literal, unescaped

Words = Sequence[str]

#: tmux sets it on a session that is made with a size, and on a window that is made with a name.
_SIZE, _RENAME = "default-size", "automatic-rename"
_REMAIN = "remain-on-exit"
#: Would end a session that nobody looks at, and nobody looks at one that has just been made.
_ENDING = "destroy-unattached"
#: What a pane is given when it is made, and keeps.
_AT_BIRTH = frozenset({"history-limit", "default-command", "default-shell"})


def named(name: str) -> str:
    """Return what to tell tmux so that a session is called as it was."""
    return literal(unescaped(name))


def is_set_before_panes(session: Session) -> bool:
    """Say whether even the first pane of a session has to be made after the session's options were set."""
    return not _AT_BIRTH.isdisjoint(session.options)


def left_out(session: Session) -> str:
    """Return what a session is not given, "" when it is given everything."""
    if session.options.get(_ENDING, "off") == "off":
        return ""
    return f"{_ENDING} was not set: tmux would have ended the session as nobody looks at it"


def session_settings(session: Session, id: str) -> Iterator[Words]:
    """Yield what gives a session its options and its environment, before it is given its windows."""
    for name, value in session.options.items():
        if name not in (_SIZE, _ENDING) or (name == _ENDING and value == "off"):
            yield ("set-option", "-t", id, "--", literal(name), value)
    for name, value in session.environment.items():
        yield ("set-environment", "-t", id, "--", name, value)
    for name in session.removed:
        yield ("set-environment", "-r", "-t", id, "--", name)


def session_size(session: Session, id: str) -> Words:
    """Return what gives a session the size for new windows that it had, after its windows were made with their own."""
    size = session.options.get(_SIZE)
    return ("set-option", "-u", "-t", id, _SIZE) if size is None else ("set-option", "-t", id, _SIZE, size)


def window_settings(window: Window, id: str) -> Iterator[Words]:
    """Yield what gives a window its options. It is made with its name: `rename-window` would put backslashes into some."""
    if _RENAME not in window.options:
        yield ("set-option", "-w", "-u", "-t", id, _RENAME)
    yield from _options(window.options, id, "-w")


def arrangement(window: Window, id: str, panes: Sequence[tuple[Pane, str]], *, is_whole: bool) -> Iterator[Words]:
    """Yield what puts the panes of a window into their places.

    `panes` are those of its own that are in it, with what they are called now; `is_whole` says that it has all of
    them and no other.
    """
    if is_whole and (window.layout or len(panes) > 1):
        # For a single pane too: while anybody is attached, to whatever session, a new window has the size of theirs.
        yield ("select-layout", "-t", id, window.layout or "tiled")
    if len(panes) > 1 or not is_whole:
        for _, now in (*(each for each in panes if each[0].last), *(each for each in panes if each[0].active)):
            yield ("select-pane", "-t", now)
    if window.zoomed and is_whole and len(panes) > 1:
        # A toggle; nothing is zoomed after a layout was chosen. (Not `if-shell`: what it runs is answered as well.)
        yield ("resize-pane", "-Z", "-t", next((now for pane, now in panes if pane.active), panes[0][1]))


def pane_settings(pane: Pane, id: str, words: Words) -> Iterator[Words]:
    """Yield what gives a pane its title and its options; `words` let a dead one end as it did, unless it has."""
    if pane.identity is None:
        # An agent's title is its own to set: one that we set would speak for it when it is verified.
        yield ("select-pane", "-t", id, "-T", literal(pane.title))
    # The mark is about the pane that was: this one gets its own, if it needs one.
    yield from _options({name: value for name, value in pane.options.items() if name != OPTION}, id, "-p")
    if pane.dead:
        # Without it the pane would be gone with its program; where it is on for all, nothing is set on this one.
        goes = f"#{{==:#{{{_REMAIN}}},off}}"
        if not pane.exit_status and not pane.exit_signal:
            goes = f"#{{||:{goes},#{{==:#{{{_REMAIN}}},failed}}}}"
        # Where it is not needed, what is set is an option nobody knows, which -q forgives.
        yield ("set-option", "-q", "-p", "-t", id, f"#{{?{goes},{_REMAIN},perdure-none}}", "on")
        if words:
            yield ("respawn-pane", "-k", "-t", id, *words)


def shown(
    links: Sequence[Link], session: str, windows: Mapping[str, str], *, is_alone: bool = False
) -> Iterator[Words]:
    """Yield what makes a session show the window it showed. `windows` are what they are called now.

    `is_alone` says that the session has no others than those of `links`: then there may be nothing to choose.
    """
    if len(links) == 1 and is_alone:
        return
    often = {link.window for link in links if sum(1 for each in links if each.window == link.window) > 1}
    for link in (*(each for each in links if each.last), *(each for each in links if each.active)):
        if link.window in windows:
            # By its id, for it may have got another index; unless it is there twice.
            place = link.index if link.window in often else windows[link.window]
            yield ("select-window", "-t", f"{session}:{place}")


def _options(options: Options, id: str, kind: str) -> Iterator[Words]:
    for name, value in options.items():
        # The name is expanded as a format, the value is not.
        yield ("set-option", kind, "-t", id, "--", literal(name), value)
