"""What goose says it is doing: who has the last word in the session that its own log names.

An answer is written once it is complete, a prompt at once. A turn that was interrupted leaves the prompt last.
"""

from __future__ import annotations

from datetime import timedelta

from perdure.agents._records import moment
from perdure.agents._told import BUSY, IDLE, by_registry
from perdure.agents.goose import store
from perdure.agents.goose.log import find_log, sessions
from perdure.model.observation import Reading
from perdure.model.process import Process
from perdure.ports import HostView

#: Who said the last thing, whether that calls a tool, and when it was written. In a text such quotes would be escaped.
_LAST = """
    SELECT role, content_json LIKE '%"type":"toolRequest"%', timestamp FROM messages
    WHERE session_id = ? ORDER BY id DESC LIMIT 1
"""
#: The database knows whole seconds.
_SECOND = timedelta(seconds=1)


def told(process: Process, host: HostView) -> list[Reading]:
    """Return whether the last message of its session waits for an answer, by the model or by a tool."""
    log, path = find_log(process, host), store.database(process, host)
    if log is None or log.launches != 1:
        return []
    named = sessions(log, host)
    session = next((each for each in named if (found := store.find(path, each, host)) and found.own), None)
    role, calls, written = next(iter(host.query(path, _LAST, (session,)) or ()), (None, None, None))
    at = moment(written)
    # What is from before was cut off, or is over.
    if at is None or at < process.started_at - _SECOND:
        return []
    answered = role == "assistant" and not calls
    return by_registry(IDLE if answered else BUSY, max(at, process.started_at), "answered" if answered else "asked")


def telling(process: Process, host: HostView) -> list[str]:
    """Return the log it writes, and what is written of the database before it gets there."""
    log = find_log(process, host)
    return [*([log.path] if log else ()), store.database(process, host) + "-wal"]
