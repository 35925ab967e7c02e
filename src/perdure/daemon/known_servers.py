"""What the daemon remembers of each tmux server between two looks."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from perdure.host.demise import Vigil
from perdure.host.exits import switches
from perdure.model.run import Health, Program
from perdure.model.server import Server, ServerProcess
from perdure.model.user import User

#: A server is not looked at whole more often than this, in seconds, once it was a few times in a short while.
LOOK_GAP = 0.5
#: Until then it may be looked at again almost at once: what changes rarely is seen soon, and what changes all the time
#: does not keep us busy.
SHORT_GAP = 0.1
AT_ONCE, IN_A_WHILE = 4, 4.0
#: How soon a server is looked at whole in which something has ended, whatever its outline says.
AFTER_END = 0.3
#: While a server does things, it is seen this often whether its outline changed.
OUTLINE_GAP = 0.7
#: What a server does is explained by what was printed in its panes this long before, or since, in seconds. What is not is
#: worth an outline almost at once.
EXPLAINS = 0.35
#: Once nothing has changed, it is seen this much later that nothing did meanwhile: what a server does at the very moment
#: it is asked cannot be told from what it does because of that.
LAST_GAP = 3.0
#: What a program that has just started may still do to be known: it is looked at again after this long.
FOLLOW_UPS = (0.3, 1.0, 3.0)
#: How soon a server that did not answer is asked again: the more often it did not, the later.
RETRY, RETRY_AT_MOST = 1.0, 10.0
#: One that has done nothing at all since it did not answer cannot answer, and is not asked but this often.
ASLEEP = 30.0
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
    #: When it was looked at the last few times.
    lately: tuple[float, ...] = ()
    outline_at: float | None = None
    outlined_at: float = float("-inf")
    #: How long after that there is none.
    outline_gap: float = OUTLINE_GAP
    #: When something was last printed in one of its panes.
    printed_at: float = float("-inf")
    #: Whether the next outline is there to see that nothing has changed.
    is_last: bool = False
    failures: int = 0
    #: When it did not answer, and how much it had done by then.
    failed_at: float = float("-inf")
    done_by_then: int | None = None
    #: It is there and has no session.
    empty: bool = False
    #: A pane was seen in it that was not only there for a restore to speak through.
    is_peopled: bool = False
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
        if not self.looks:
            return None
        is_often = len(self.lately) == AT_ONCE and self.looked_at - self.lately[0] < IN_A_WHILE
        return max(self.looks[0], self.looked_at + (LOOK_GAP if is_often else SHORT_GAP))

    def outline_by(self, at: float) -> None:
        """Have its outline compared at that time, or as soon after as it may be."""
        self.outline_at, self.is_last = at if self.outline_at is None else min(at, self.outline_at), False

    def stirred(self, at: float) -> None:
        """Take note that it did something."""
        self.outline_by(at)
        if at - self.printed_at > EXPLAINS:
            self.outline_gap = SHORT_GAP

    def outlined(self, at: float) -> None:
        """Count its outline as compared; unless something is noticed, it is once more."""
        self.outline_gap = OUTLINE_GAP
        self.outline_at = None if self.is_last else at + LAST_GAP
        self.outlined_at, self.is_last = at, not self.is_last

    def next_outline(self) -> float | None:
        """When its outline is to be compared next."""
        return None if self.outline_at is None else max(self.outline_at, self.outlined_at + self.outline_gap)

    def looked(self, at: float) -> None:
        """Count it as looked at: whatever was to be looked at by now is."""
        self.looked_at, self.outline_at = at, None
        self.lately = (*self.lately, at)[-AT_ONCE:]
        self.looks = [each for each in self.looks if each > at]

    def hurry(self, at: float) -> None:
        """Have its outline compared at once, and the whole of it looked at soon: something in it is over."""
        self.outline_by(float("-inf"))
        self.outlined_at = float("-inf")
        self.look_by(at + AFTER_END)

    def did_not_answer(self, at: float) -> None:
        """Count a failure, and have it asked again, once, instead of whenever it was to be looked at."""
        if not self.is_asleep(at):
            self.failed_at, self.done_by_then = at, switches(self.program.pid) if self.program else None
        self.failures += 1
        # One that never answered may be no tmux at all, and nothing tells when it wakes.
        self.looks = []
        self.look_by(at + min(RETRY * self.failures**2, RETRY_AT_MOST if self.process is not None else ASLEEP))

    def is_asleep(self, at: float) -> bool:
        """Return whether it has not done anything since it did not answer: asking it would only keep everybody waiting."""
        if not self.failures or self.program is None or self.done_by_then is None or at >= self.failed_at + ASLEEP:
            return False
        return switches(self.program.pid) == self.done_by_then

    def answered(self, now: datetime) -> None:
        """Take note that it was seen whole."""
        self.failures, self.seen_at, self.empty, self.done_by_then = 0, now, False, None

    def ended(self) -> None:
        """Forget its process: there may be another later."""
        self.process = self.program = self.vigil = self.vigil_at = self.outline = self.outline_at = None
        self.failures, self.empty, self.is_peopled, self.done_by_then = 0, False, False, None
