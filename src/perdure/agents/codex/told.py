"""What Codex says it is doing in the rollout of its thread, where it runs without a daemon.

Which of a daemon's threads a pane shows only its title tells, and that tells the rest too.
"""

from __future__ import annotations

from os.path import join

from perdure.agents._told import BUSY, FAILED, IDLE, by_registry
from perdure.agents.codex.home import Loaded, codex_home, header, is_sub_agent, loaded_by
from perdure.agents.codex.rollout import is_packed, last_turn
from perdure.model.observation import Reading
from perdure.model.process import Process
from perdure.ports import HostView


def told(process: Process, host: HostView) -> list[Reading]:
    """Return whether the last turn of its thread is over. An approval that is waited for is part of a turn."""
    path = _rollout(process, host)
    turn = last_turn(path, host) if path else None
    # One that was begun before was cut off when the process before this one was killed.
    if turn is None or turn.at is None or turn.at < process.started_at:
        return []
    sign = BUSY if turn.running else (FAILED if turn.failed else IDLE)
    return by_registry(sign, turn.at, turn.event)


def telling(process: Process, host: HostView) -> list[str]:
    """Return the rollout it writes, and where its locks come and go."""
    path = _rollout(process, host)
    return [*([path] if path else ()), join(codex_home(process, host), "thread-writer-locks")]


def _rollout(process: Process, host: HostView) -> str | None:
    """The file of the thread it loaded last; None when that has none yet, or belongs to a daemon."""
    loaded = [each for each in loaded_by(process.pid, host) or () if not _is_sub_agents(each, host)]
    last = max(loaded, key=lambda each: each.loaded_at or process.started_at, default=None)
    return last.rollout if last and last.rollout and not is_packed(last.rollout) else None


def _is_sub_agents(each: Loaded, host: HostView) -> bool:
    return each.rollout is not None and is_sub_agent(header(each.rollout, host))
