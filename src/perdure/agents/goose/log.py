"""The log a goose process holds open, which tells the session it is in.

Its lines carry the session once something was said. A log is called after the second its process started in, so two
that started in the same second write into one; each begins with a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from os.path import dirname

from msgspec import Struct

from perdure.agents._json import mapping, text
from perdure.agents._records import FIRST_WINDOW, Record, newest_first, oldest_first
from perdure.model.process import Process
from perdure.ports import HostView

_BEGINS = "CLI command executed"


class Log(Struct, frozen=True, kw_only=True):
    """One log, and how many processes began it."""

    path: str
    launches: int


def find_log(process: Process, host: HostView) -> Log | None:
    """Return the log a process writes, None when it holds none open or we may not know."""
    for path in host.open_files(process.pid):
        if path.endswith(".log") and dirname(dirname(path)).endswith("/logs/cli"):
            records = (mapping(each.get("fields")) for each in oldest_first(path, host, FIRST_WINDOW))
            return Log(path=path, launches=sum(map(_is_launch, records)))
    return None


def _is_launch(fields: Record) -> bool:
    # The servers of its own tools write into its log too when they start in the same second.
    return fields.get("message") == _BEGINS and fields.get("command") != "mcp"


def sessions(log: Log, host: HostView) -> Iterator[str]:
    """Yield the sessions a log tells of, its process's own and its sub-agents', the last one first, each once."""
    seen: set[str] = set()
    for record in newest_first(log.path, host):
        for session in _spans(record):
            if session not in seen:
                seen.add(session)
                yield session


def _spans(record: Record) -> Iterator[str]:
    """The sessions of a line, outermost first: a sub-agent works within the session that asked for it."""
    spans = record.get("spans")
    for span in (*(spans if isinstance(spans, list) else ()), record.get("span")):
        session = text(mapping(span).get("session.id"))
        if session is not None:
            yield session
