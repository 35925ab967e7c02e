"""What a Codex thread is about right now: the end of its rollout, its first line, and its row among all threads."""

from __future__ import annotations

from datetime import datetime
from os.path import join

from msgspec import Struct

from perdure.agents import _records
from perdure.agents._json import count, mapping, one_line, text
from perdure.agents._records import Record, moment
from perdure.agents.codex.home import codex_home, find_rollout, header, made_at, state_database
from perdure.agents.codex.rollout import ancestors, is_packed, payload_of, prompt_text
from perdure.model.identity import AgentDetails, Identity
from perdure.model.process import Process
from perdure.ports import HostView

_ROW = "SELECT name, title, git_branch, model, model_provider, cli_version FROM threads WHERE id = ?"
_SUB_AGENTS = """
    SELECT child.rollout_path FROM thread_spawn_edges AS edge JOIN threads AS child ON child.id = edge.child_thread_id
    WHERE edge.parent_thread_id = ? ORDER BY child.id LIMIT 100
"""


class _Latest(Struct):
    """The newest of each thing, filled from the end of the rollout backwards."""

    used: int | None = None
    limit: int | None = None
    model: str | None = None
    task: str | None = None
    at: datetime | None = None

    @property
    def complete(self) -> bool:
        return None not in (self.used, self.model, self.task)


class _Row(Struct):
    """What the database of all threads says of one."""

    name: str | None = None
    title: str | None = None
    branch: str | None = None
    model: str | None = None
    provider: str | None = None
    version: str | None = None


def describe(identity: Identity, process: Process, host: HostView) -> AgentDetails:
    """Return what is known of the thread now."""
    thread = identity.conversation
    if thread is None:
        return AgentDetails()
    home = codex_home(process, host)
    database = state_database(process, home, host)
    path = find_rollout(home, thread, host)
    readable = path if path and not is_packed(path) else None
    latest = _read(readable, host) if readable else _Latest()
    meta = header(readable, host) if readable else {}
    row = _row(database, thread, host)
    forebears = list(ancestors(meta, home, host))
    return AgentDetails(
        # A thread is named after its first turn; until then it goes by its first prompt.
        title=one_line(row.name or _indexed(home, thread, host) or row.title),
        task=one_line(latest.task),
        model=latest.model or row.model,
        provider=row.provider or text(meta.get("model_provider")),
        branch=row.branch or text(mapping(meta.get("git")).get("branch")),
        transcript=path,
        companions=(*(each for _, each, _ in forebears if each), *_sub_agents(database, thread, host)),
        parent=forebears[0][0] if forebears else None,
        version=row.version or text(meta.get("cli_version")),
        context_used=latest.used,
        context_limit=latest.limit,
        began_at=made_at(thread),
        last_activity_at=latest.at or (host.modified_at(path) if path else None),
    )


def _read(path: str, host: HostView) -> _Latest:
    latest = _Latest()
    for record in _records.newest_first(path, host):
        _take(latest, record)
        if latest.complete:
            break
    return latest


def _take(latest: _Latest, record: Record) -> None:
    latest.at = latest.at or moment(record.get("timestamp"))
    latest.model = latest.model or text(payload_of(record, "turn_context").get("model"))
    latest.task = latest.task or prompt_text(payload_of(record, "response_item"))
    event = payload_of(record, "event_msg")
    info = mapping(event.get("info")) if event.get("type") == "token_count" else {}
    latest.used = latest.used or count(mapping(info.get("last_token_usage")).get("total_tokens")) or None
    window = info.get("model_context_window") or event.get("model_context_window")
    latest.limit = latest.limit or count(window) or None


def _row(database: str | None, thread: str, host: HostView) -> _Row:
    rows = host.query(database, _ROW, (thread,)) if database else None
    return _Row(*(text(value) for value in rows[0])) if rows else _Row()


def _sub_agents(database: str | None, thread: str, host: HostView) -> tuple[str, ...]:
    rows = host.query(database, _SUB_AGENTS, (thread,)) if database else None
    paths = (text(row[0]) for row in rows or ())
    return tuple(path for path in paths if path and host.size(path) is not None)


def _indexed(home: str, thread: str, host: HostView) -> str | None:
    """The thread's name in the list that is kept for a person to choose from."""
    for record in _records.newest_first(join(home, "session_index.jsonl"), host):
        if record.get("id") == thread:
            return text(record.get("thread_name"))
    return None
