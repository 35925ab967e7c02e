"""opencode's database: every conversation of a user in one SQLite file, whatever directory it was held in.

A row appears with the first prompt. Sub-agents are conversations too, with a parent; a fork has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from os.path import basename, isabs, join

from msgspec import Struct

from perdure.agents._calls import Call, detail_of, details_of, is_recent, names_of, rows_wanted
from perdure.agents._homes import home_of
from perdure.agents._json import count, decode_object, mapping, text
from perdure.agents._records import Record, moment, turn
from perdure.model.process import Process
from perdure.ports import HostView

USUAL = ".local/share/opencode/opencode.db"

#: How deep sub-agents may call each other before we stop looking for the conversation they belong to.
_DEEPEST = 8
#: How many conversations are looked at, and how many messages back from the end of one.
_MOST, _MOST_BACK = 500, 60
#: How many messages' parts are read at once.
_AT_ONCE = 200

_COLUMNS = "id, parent_id, directory, title, time_created, time_updated"


class Session(Struct, frozen=True, kw_only=True):
    """One conversation as the database has it."""

    id: str
    parent: str | None
    directory: str | None
    title: str
    created_at: datetime | None
    updated_at: datetime | None


def database(process: Process, host: HostView) -> str:
    """Return where this process keeps its conversations."""
    data = join(home_of(process, "XDG_DATA_HOME", ".local/share", host), "opencode")
    chosen = process.environ.get("OPENCODE_DB")
    if chosen:
        return chosen if isabs(chosen) else join(data, chosen)
    return join(data, "opencode.db")


def profile(process: Process, host: HostView) -> str | None:
    """Return a name for a database that is not the usual one."""
    path = database(process, host)
    if host.physical(path) == host.physical(join(host.home, USUAL)):
        return None
    if process.environ.get("OPENCODE_DB"):
        return basename(path)
    return basename(process.environ.get("XDG_DATA_HOME", "").rstrip("/")) or "opencode"


def is_readable(path: str, host: HostView) -> bool:
    """Return whether there is a database to ask."""
    return host.query(path, "SELECT 1 FROM session LIMIT 1") is not None


def find(path: str, conversation: str, host: HostView) -> Session | None:
    """Return a conversation by its id."""
    return next(_sessions(path, "WHERE id = ?", (conversation,), host), None)


def root(path: str, conversation: str, host: HostView) -> Session | None:
    """Return the conversation a person is in when this one, perhaps a sub-agent's, is at work."""
    found = find(path, conversation, host)
    for _ in range(_DEEPEST):
        if found is None or found.parent is None:
            return found
        found = find(path, found.parent, host)
    return None


def called(path: str, shown: str, cut: bool, host: HostView) -> list[Session]:
    """Return the conversations that are shown under this title, newest first; `cut`: it is only how theirs begins."""
    where, values = ("substr(title, 1, ?) = ?", (len(shown), shown)) if cut else ("title = ?", (shown,))
    named = _sessions(path, f"WHERE {where} ORDER BY time_updated DESC LIMIT {_MOST}", values, host)
    roots = [each if each.parent is None else root(path, each.id, host) for each in named]
    return list({each.id: each for each in roots if each is not None}.values())


def touched_since(path: str, since: datetime, host: HostView) -> list[Session]:
    """Return the conversations that were written to since then, newest first; no sub-agents."""
    where = f"WHERE parent_id IS NULL AND time_updated >= ? ORDER BY time_updated DESC LIMIT {_MOST}"
    return list(_sessions(path, where, (int(since.timestamp() * 1000),), host))


def _sessions(path: str, where: str, values: Sequence[object], host: HostView) -> Iterator[Session]:
    for row in host.query(path, f"SELECT {_COLUMNS} FROM session {where}", values) or ():
        ident = text(row[0])
        if ident is not None:
            yield Session(
                id=ident,
                parent=text(row[1]),
                directory=text(row[2]),
                title=text(row[3]) or "",
                created_at=moment(row[4]),
                updated_at=moment(row[5]),
            )


def version(path: str, conversation: str, host: HostView) -> str | None:
    """Return which version of the program began the conversation."""
    rows = host.query(path, "SELECT version FROM session WHERE id = ?", (conversation,))
    return text(rows[0][0]) if rows else None


def newest_messages(path: str, conversation: str, host: HostView) -> Iterator[tuple[str, Record]]:
    """Yield the ids and facts of the last messages, newest first; not what was said in them."""
    sql = f"SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT {_MOST_BACK}"
    for ident, data in host.query(path, sql, (conversation,)) or ():
        yield str(ident), _record(data)


def prompt_of(path: str, message: str, host: HostView) -> str | None:
    """Return what a person typed in a message, None when the program wrote it in the person's place."""
    return _typed(_parts(path, (message,), host).get(message, []))


def tokens(message: Record) -> int | None:
    """Return what an answer and all before it take up in the context, None when it does not say."""
    said = mapping(message.get("tokens"))
    cache = mapping(said.get("cache"))
    kinds = (said.get("input"), said.get("output"), said.get("reasoning"), cache.get("read"), cache.get("write"))
    return (count(said.get("total")) or sum(map(count, kinds))) or None


def turns(path: str, conversation: str, host: HostView, agent: str | None = None) -> Iterator[dict[str, object]]:
    """Yield the turns of a conversation, then those of its sub-agents, each under its own id."""
    yield from _turns_of(path, conversation, host, agent)
    if is_recent(host):
        return
    seen = {conversation}
    waiting = [conversation]
    while waiting:
        where = "WHERE parent_id = ? ORDER BY time_created"
        for child in list(_sessions(path, where, (waiting.pop(0),), host)):
            if child.id not in seen:
                seen.add(child.id)
                waiting.append(child.id)
                yield from _turns_of(path, child.id, host, child.id)


def _turns_of(path: str, conversation: str, host: HostView, agent: str | None) -> Iterator[dict[str, object]]:
    newest = (
        "SELECT id, data, time_created FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT ?"
    )
    rows = [*(host.query(path, newest, (conversation, rows_wanted(host))) or ())][::-1]
    for begin in range(0, len(rows), _AT_ONCE):
        some = rows[begin : begin + _AT_ONCE]
        parts = _parts(path, [str(row[0]) for row in some], host)
        for ident, data, created in some:
            yield from _message_turns(_record(data), parts.get(str(ident), []), moment(created), agent)


def _message_turns(
    message: Record, parts: Sequence[Record], at: datetime | None, agent: str | None
) -> Iterator[dict[str, object]]:
    if message.get("role") == "user":
        typed = _typed(parts)
        if typed is not None:
            yield turn("user", typed, time=at, agent=agent)
        elif any(part.get("type") == "compaction" for part in parts):
            yield turn("system", "The conversation was compacted.", time=at, agent=agent)
        elif said := _joined(parts):
            yield turn("system", said, time=at, agent=agent)
    elif message.get("role") == "assistant":
        tools = [part for part in parts if part.get("type") == "tool"]
        said, calls = _joined(parts), [_call(part) for part in tools]
        if said or calls:
            facts = {"tool": names_of(calls), "detail": details_of(calls), "tokens": tokens(message)}
            yield turn("assistant", said, time=at, agent=agent) | facts | {"final": _is_final(message)}
        yield from (_tool_turn(part, at, agent) for part in tools)
        if failure := _failure(message):
            yield turn("system", failure, time=at, agent=agent)


def _tool_turn(part: Record, at: datetime | None, agent: str | None) -> dict[str, object]:
    state = mapping(part.get("state"))
    ended = moment(mapping(state.get("time")).get("end"))
    said = text(state.get("output")) or text(state.get("error"))
    detail, failed = _call(part)[1], _failed(state)
    return turn("tool", said, tool=text(part.get("tool")), detail=detail, failed=failed, time=ended or at, agent=agent)


def _call(part: Record) -> Call:
    return text(part.get("tool")) or "?", detail_of(mapping(part.get("state")).get("input"))


def _failed(state: Record) -> bool | None:
    """Whether a call came to nothing, None while it goes on. A command that failed is a success of its tool."""
    if state.get("status") not in ("completed", "error"):
        return None
    code = mapping(state.get("metadata")).get("exit")
    return state["status"] == "error" or (isinstance(code, int) and code != 0)


def _is_final(message: Record) -> bool | None:
    finish = text(message.get("finish"))
    return None if finish is None else finish != "tool-calls"


def _failure(message: Record) -> str | None:
    error = mapping(message.get("error"))
    return text(mapping(error.get("data")).get("message")) or text(error.get("name"))


def _typed(parts: Sequence[Record]) -> str | None:
    """What a person typed; the program marks what it adds itself."""
    return _joined([part for part in parts if not part.get("synthetic")])


def _joined(parts: Sequence[Record]) -> str | None:
    said = [text(part.get("text")) for part in parts if part.get("type") == "text"]
    return "\n".join(each for each in said if each) or None


def _parts(path: str, messages: Sequence[str], host: HostView) -> dict[str, list[Record]]:
    """The parts of each of these messages, in order."""
    marks = ", ".join("?" * len(messages))
    rows = host.query(path, f"SELECT message_id, data FROM part WHERE message_id IN ({marks}) ORDER BY id", messages)
    found: dict[str, list[Record]] = {}
    for message, data in rows or ():
        found.setdefault(str(message), []).append(_record(data))
    return found


def _record(data: object) -> Record:
    return decode_object(data.encode(errors="replace") if isinstance(data, str) else None) or {}
