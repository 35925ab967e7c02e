"""Sessions, windows and panes of one server, as tmux has them.

`Topology` is what a snapshot's id is made of: it changes when there is something new to bring back, and not
when a spinner turns. What turns is in `Details`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from perdure.model.identity import AgentDetails, Identity
from perdure.model.process import Command, Process
from perdure.model.server import ServerProcess

#: Options set on one session, window or pane itself, in tmux's own names; an array option is `name[index]`.
Options = Mapping[str, str]


class Session(Struct, frozen=True, kw_only=True):
    """A tmux session."""

    id: str
    name: str
    created_at: datetime
    #: The group's name, "" when the session is in none.
    group: str = ""
    path: str = ""
    #: Variables set in the session's own environment; those that look like secrets are only named in `hidden`.
    environment: Mapping[str, str] = {}
    #: Variables the session removes from what its programs inherit.
    removed: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    options: Options = {}


class Window(Struct, frozen=True, kw_only=True):
    """A tmux window; which sessions show it where is in `Link`."""

    id: str
    name: str
    width: int
    height: int
    #: The layout without the zoom.
    layout: str
    #: What is shown now: differs from `layout` while zoomed.
    visible_layout: str
    zoomed: bool = False
    options: Options = {}


class Link(Struct, frozen=True, kw_only=True):
    """A window's place in a session. Grouped sessions and `link-window` give a window several."""

    session: str
    window: str
    index: int
    active: bool = False
    #: The window `last-window` would go back to.
    last: bool = False


class Pane(Struct, frozen=True, kw_only=True):
    """A tmux pane and what is in it."""

    id: str
    window: str
    index: int
    pid: int
    tty: str
    width: int
    height: int
    active: bool = False
    last: bool = False
    #: Without spinner frames; the title as it was read is in the details.
    title: str = ""
    #: Where the foreground program is; "" when tmux cannot tell (a dead pane).
    cwd: str = ""
    start_path: str = ""
    #: The foreground program's name, as tmux shows it.
    command: str = ""
    start_command: str = ""
    dead: bool = False
    exit_status: int | None = None
    exit_signal: int | None = None
    options: Options = {}
    #: What runs in the foreground, exactly as it was started; None for a shell at its prompt.
    program: Command | None = None
    identity: Identity | None = None


class Topology(Struct, frozen=True, kw_only=True):
    """Everything a snapshot's id is made of."""

    process: ServerProcess
    sessions: tuple[Session, ...] = ()
    windows: tuple[Window, ...] = ()
    links: tuple[Link, ...] = ()
    panes: tuple[Pane, ...] = ()

    @property
    def agents(self) -> int:
        """How many panes hold an agent, or a conversation that is kept for them."""
        return sum(1 for pane in self.panes if pane.identity is not None)


class SessionDetails(Struct, frozen=True, kw_only=True):
    """How many clients look at a session, and when it last saw life."""

    attached: int = 0
    activity_at: datetime | None = None
    last_attached_at: datetime | None = None


class PaneDetails(Struct, frozen=True, kw_only=True):
    """What changes in a pane all the time."""

    title: str = ""
    #: The mode a person is in (copy-mode, …), "" for none.
    mode: str = ""
    history_size: int = 0
    alternate: bool = False
    #: Column and line.
    cursor: tuple[int, int] = (0, 0)
    #: The pane's first process and all below it.
    processes: tuple[Process, ...] = ()
    agent: AgentDetails | None = None
    #: Which of the processes is the agent.
    agent_pid: int | None = None
    #: What this agent was last certainly in by evidence of that moment, and when that was.
    sure: Identity | None = None
    sure_at: datetime | None = None
    #: How the agent's conversation was found: what was looked at, in order, and why it did or did not decide.
    because: tuple[str, ...] = ()
    #: Digest of the kept scrollback, None when none was kept, and when it was read.
    scrollback: str | None = None
    scrollback_at: datetime | None = None


class Details(Struct, frozen=True, kw_only=True):
    """The latest of what flickers by nature: kept with the snapshot it was last seen with."""

    sessions: Mapping[str, SessionDetails] = {}
    #: tmux's flag characters of each window, bell and activity among them.
    window_flags: Mapping[str, str] = {}
    #: When something in a window last printed anything, to the second.
    window_activity: Mapping[str, datetime] = {}
    panes: Mapping[str, PaneDetails] = {}
