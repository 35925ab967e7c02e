"""What a restore is going to do, and what came of it: one step for every pane of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from perdure.model.identity import AgentDetails, Identity
from perdure.model.process import Command
from perdure.model.server import Server, ServerProcess
from perdure.model.snapshot import Snapshot
from perdure.model.topology import Link


class Action(StrEnum):
    """What becomes of a pane."""

    #: It is there already, and nothing is done to it.
    KEEP = "keep"
    #: Nobody asked for it.
    LEAVE = "leave"
    SHELL = "shell"
    #: An agent, in the conversation it was in.
    RESUME = "resume"
    #: An agent with the flags it had: nothing was ever said in it.
    START = "start"
    #: A program, exactly as it was started.
    RUN = "run"
    #: A shell below the text of a command that is not run.
    SHOW = "show"
    #: A pane that shows how its program ended.
    DEAD = "dead"


#: What starts an agent: bounded in number, held back under memory pressure, and verified.
AGENT_ACTIONS = frozenset({Action.RESUME, Action.START})


class Result(StrEnum):
    """How far a step has come."""

    PLANNED = "planned"
    DONE = "done"
    #: The same conversation by certain evidence.
    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    SKIPPED = "skipped"
    FAILED = "failed"


class Step(Struct, frozen=True, kw_only=True):
    """What is done about one pane of the snapshot."""

    n: int
    #: The pane's id in the snapshot.
    pane: str
    #: `session:window.pane` as it was.
    target: str
    action: Action
    agent: str | None = None
    conversation: str | None = None
    #: What is started, or for SHOW what would have been; () for a login shell.
    argv: tuple[str, ...] = ()
    #: Variables laid over what the user's own shell gives.
    environ: Mapping[str, str] = {}
    #: The same of variables nobody else may read.
    private: Mapping[str, str] = {}
    #: Where it starts: a directory that is there.
    cwd: str = ""
    #: The agent waits in its pane until somebody presses Enter.
    asks: bool = False
    #: That it was in this conversation is not certain.
    is_guess: bool = False
    #: When its conversation last saw life: the newest start first.
    active_at: datetime | None = None
    #: One sentence, "" when there is nothing to say.
    why: str = ""


class Plan(Struct, frozen=True, kw_only=True):
    """Everything a restore does on one server. Ids without a word are the snapshot's."""

    snapshot: str
    server: Server
    steps: tuple[Step, ...]
    #: Sessions, windows and panes that are there already, by their ids now.
    sessions: Mapping[str, str] = {}
    windows: Mapping[str, str] = {}
    panes: Mapping[str, str] = {}
    #: Of those, what an interrupted restore made and may have left unfinished.
    unfinished: frozenset[str] = frozenset()
    #: Sessions, windows and panes that are not there and will be made.
    making: frozenset[str] = frozenset()
    #: Places to be made for windows in sessions, with an index that is free there.
    links: tuple[Link, ...] = ()
    #: Windows an interrupted restore left at another index than theirs.
    moves: tuple[Link, ...] = ()
    #: Windows, by their ids now, that an interrupted restore only put there until a session has its own.
    placeholders: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to do."""
        return not self.unfinished and not self.making and not self.links


class Kept(Struct, frozen=True, kw_only=True):
    """A conversation that was not resumed, so that another restore can try again: as this one took it."""

    identity: Identity
    program: Command | None = None
    agent: AgentDetails | None = None


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of a step."""

    step: Step
    result: Result
    why: str = ""
    #: The pane's id now; None when there is none.
    pane: str | None = None
    #: The last lines the pane showed, when something is wrong with it.
    screen: tuple[str, ...] = ()
    #: What a later restore may resume in the pane's stead.
    kept: Kept | None = None


class Scope(Struct, frozen=True, kw_only=True):
    """What of a snapshot is brought back, and what it is taken for."""

    #: The sessions and panes asked for; None for all.
    sessions: frozenset[str] | None = None
    panes: frozenset[str] | None = None
    #: What starts the agents of panes that were imported, where the format they come from says how.
    commands: Mapping[str, Command] = {}
    #: The snapshot is meant as it was saved: what an agent went on to later is not looked at.
    as_saved: bool = False

    def wants(self, pane: str) -> bool:
        """Say whether a pane was asked for."""
        return self.panes is None or pane in self.panes


class Restore(Struct, frozen=True, kw_only=True):
    """A restore as the journal keeps it: what it was going to make, so that another can go on with it."""

    id: str
    snapshot: str
    #: What was made of the snapshot for this restore (restore/merge.py, restore/lost.py): whoever goes on with it must
    #: mean the same by its panes. None when it was brought back as it was saved.
    composed: Snapshot | None = None
    #: What of it was asked for, by all runs of this restore together; None in what was written before that was kept.
    scope: Scope | None = None
    server: Server
    began_at: datetime
    #: The server it works on; None until one answers.
    process: ServerProcess | None = None
    #: Sessions, windows and panes of the snapshot that it makes.
    making: frozenset[str] = frozenset()
    #: Where it puts windows, `Plan.links` of every run of it: an index may have been somebody else's.
    links: tuple[Link, ...] = ()
    #: Panes it makes whose own words tell whose they are; of others only the place does.
    worded: frozenset[str] = frozenset()
    ended_at: datetime | None = None
    #: By pane of the snapshot, as far as they are known.
    outcomes: Mapping[str, Outcome] = {}
