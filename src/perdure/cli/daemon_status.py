"""Whether somebody watches, as the daemon itself tells."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct

from perdure.cli.render import age, counted, lasting, printable
from perdure.daemon import protocol
from perdure.daemon.call import call
from perdure.errors import NoDaemon, PerdureError
from perdure.model.decoding import converted

#: How long it may take to answer: it may be looking at every server there is.
_PATIENCE = 5.0


class DaemonStatus(Struct, frozen=True, kw_only=True):
    """What a daemon says of itself. One that is there and gives no answer is known by its `problem` alone."""

    #: Why it cannot be asked, or, with everything else, why it does not write down what happens.
    problem: str | None = None
    #: Since when it does not write down what happens.
    problem_since: datetime | None = None
    version: str | None = None
    since: datetime | None = None
    servers: int | None = None
    panes: int | None = None
    agents: int | None = None
    #: The number of the last event that is stored.
    event: int | None = None
    #: By socket: how far what is said of the runs there can be up to date.
    health: dict[str, str] = {}

    def sentence(self, now: datetime) -> str:
        """Say it to a person."""
        if self.since is None:
            return printable((self.problem or "it does not say since when it watches").rstrip("."))
        what = f"{counted(self.panes or 0, 'pane')} of {counted(self.servers or 0, 'server')}"
        slow = [f"{socket} is {health}" for socket, health in self.health.items() if health != "healthy"]
        lasts = f" (for {lasting(self.problem_since, now)})" if self.problem_since else ""
        wrong = [self.problem[:1].lower() + self.problem[1:].rstrip(".") + lasts] if self.problem else []
        return printable("; ".join([f"watching {what}, started {age(self.since, now)}", *slow, *wrong]))


def daemon_status(state_dir: str) -> DaemonStatus | None:
    """Return what the daemon of a state directory says; None when there is none."""
    try:
        answer = call(state_dir, protocol.AskStatus(), _PATIENCE)
        return converted(answer, DaemonStatus, strict=False)
    except NoDaemon:
        return None
    except (PerdureError, msgspec.ValidationError) as error:
        return DaemonStatus(problem=error.message if isinstance(error, PerdureError) else "Its answer cannot be read.")
