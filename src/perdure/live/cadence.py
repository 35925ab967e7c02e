"""How often somebody may be asked, and for how much. Time is handed in."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


class Cadence:
    """When each run may be asked about again: often just after it turned to something else, and then ever more rarely."""

    def __init__(self, hot: float, warm: float, cold: float) -> None:
        self._hot, self._warm, self._cold = (timedelta(seconds=each) for each in (hot, warm, cold))
        self._asked: dict[str, datetime] = {}

    def interval(self, changed_at: datetime | None, now: datetime) -> timedelta:
        """Return the least time between two questions about a run that turned to what it is at then."""
        age = self._cold if changed_at is None else now - changed_at
        if age < self._warm:
            return self._hot
        return self._warm if age < self._cold else self._cold

    def is_due(self, run: str, changed_at: datetime | None, now: datetime) -> bool:
        """Return whether a run may be asked about. A clock that was set back does not silence it for long."""
        asked = self._asked.get(run)
        return asked is None or not timedelta() <= now - asked < self.interval(changed_at, now)

    def asked(self, run: str, now: datetime) -> None:
        """Say that it was."""
        self._asked[run] = now

    def forget(self, run: str) -> None:
        """Let go of a run."""
        self._asked.pop(run, None)


class Purse:
    """How many calls an hour, and how much a day, may still be spent. Costs are held back until they are known."""

    def __init__(self, *, calls_per_hour: int, cost_per_day: float) -> None:
        self._most_calls = calls_per_hour
        self._most_cost = cost_per_day
        self._calls: deque[datetime] = deque()
        self._costs: deque[tuple[datetime, float]] = deque()
        self._held = 0.0

    def hold(self, cost: float, now: datetime) -> bool:
        """Hold back what a call may cost; False when there is not enough left for it, or too many were made."""
        while self._calls and not timedelta() <= now - self._calls[0] < _HOUR:
            self._calls.popleft()
        while self._costs and not timedelta() <= now - self._costs[0][0] < _DAY:
            self._costs.popleft()
        spent = sum(each for _, each in self._costs) + self._held
        if len(self._calls) >= self._most_calls or spent + cost > self._most_cost:
            return False
        self._calls.append(now)
        self._held += cost
        return True

    def settle(self, held: float, cost: float, now: datetime) -> None:
        """Say what a call really cost that so much was held back for."""
        self._held = max(0.0, self._held - held)
        if cost:
            self._costs.append((now, cost))


class Backoff:
    """How long to leave somebody alone who failed: twice as long every time."""

    def __init__(self, first: float, longest: float) -> None:
        self._first, self._longest = first, longest
        self._failures = 0
        self._until: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        """Return whether they may be tried again."""
        return self._until is None or now >= self._until or self._until - now > timedelta(seconds=self._longest)

    def failed(self, now: datetime) -> None:
        """Say that they failed."""
        seconds = min(self._first * 2 ** min(self._failures, 30), self._longest)
        self._failures += 1
        self._until = now + timedelta(seconds=seconds)

    def succeeded(self) -> None:
        """Say that they did not."""
        self._failures, self._until = 0, None
