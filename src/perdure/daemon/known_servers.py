"""What the daemon remembers of each tmux server between two looks."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from perdure.host.demise import Vigil
from perdure.model.run import Health, Program
from perdure.model.server import Server, ServerProcess
from perdure.model.user import User

#: A server is not looked at whole more often than this, in seconds.
LOOK_GAP = 0.5
#: While a server does things, it is seen this often whether its outline changed.
OUTLINE_GAP = 0.7
#: What a program that has just started may still do to be known: it is looked at again after this long.
FOLLOW_UPS = (0.3, 1.0, 3.0)
#: How often a server that did not answer is asked again.
RETRY = 2.0
#: After so many failures a server is overloaded, and no longer only slow.
OVERLOADED_AFTER = 3


class Known(Struct, kw_only=True):
    """One server."""

    server: Server
    owner: User
    process: ServerProcess | None = None
    program: Program | None = None
    vigil: Vigil | None = None
    vigil_at: datetime | None = None
    #: What its outline was when it was last looked at whole.
    outline: str | None = None
    #: When it is to be looked at whole, in seconds of the clock that only grows.
    looks: list[float] = []
    looked_at: float = float("-inf")
    outline_at: float | None = None
    outlined_at: float = float("-inf")
    failures: int = 0
    health: Health = Health.HEALTHY
    #: When it was last seen whole.
    seen_at: datetime | None = None
    #: The snapshot that was last saved of it.
    snapshot: str | None = None

    def look_by(self, at: float) -> None:
        """Have it looked at whole at that time, or as soon after as it may be."""
        self.looks = sorted({*self.looks, at})

    def next_look(self) -> float | None:
        """When it is to be looked at whole next."""
        return max(self.looks[0], self.looked_at + LOOK_GAP) if self.looks else None

    def next_outline(self) -> float | None:
        """When its outline is to be compared next."""
        return None if self.outline_at is None else max(self.outline_at, self.outlined_at + OUTLINE_GAP)

    def looked(self, at: float) -> None:
        """Count it as looked at: whatever was to be looked at by now is."""
        self.looked_at, self.outline_at = at, None
        self.looks = [each for each in self.looks if each > at]
