"""Hermes' `state.db`, read and never written: sessions, messages, what was spent on which model.

Its columns have grown from version to version; whatever columns there are are read, and those nobody knows here are kept
as they are. Times are seconds since 1970; the order of messages is that of their ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from perdure.compat.hermes_fields import (
    KEPT,
    close_reason,
    is_count,
    is_moment,
    is_origin,
    is_text,
    moment,
    parsed,
    short,
    text_of,
    tokens,
    turn_of,
    unusable,
    unusable_in_message,
)
from perdure.errors import ImportFailed
from perdure.model.chat import LOCAL, PLATFORMS, Kinship, Tokens, Turn
from perdure.model.chat_import import Incoming, Mishap, Words
from perdure.model.text import encode
from perdure.ports import ForeignQuery

_SESSIONS, _MESSAGES, _USAGE, _ROUTES = "sessions", "messages", "session_model_usage", "gateway_routing"
#: What a session says that a chat has a place for.
_PLACED = frozenset(
    {
        "id",
        "started_at",
        "ended_at",
        "title",
        "model",
        "input_tokens",
        "output_tokens",
        "parent_session_id",
        "origin_json",
    }
)
#: What must be a text to say which session is meant: bytes that spell the same are somebody else's.
_IDS = frozenset({"id", "session_id", "parent_session_id"})
#: Columns of messages in which JSON stands as text.
_JSON = ("tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items")
#: What a message's row says of its place, and what is said by leaving it out.
_ROW = frozenset({"id", "session_id", "active", "last_active"})
_QUIET = ("observed", "compacted")
_USAGE_READ = ("session_id", "model", "input_tokens", "output_tokens")
#: Stands before content that is not a text.
_STRUCTURED = "\0json:"
_LAST = "last_active"


def read_database(path: str, query: ForeignQuery) -> Iterator[Incoming | Mishap]:
    """Yield the sessions of a database, the oldest first. Raises `ImportFailed` when it is none that can be read.

    What was said in each is read at one moment, whoever writes there meanwhile. Each that cannot be read costs only itself.
    """
    database = _Database(path, query)
    columns = database.columns(_SESSIONS)
    if not {"id", "source", "started_at"} <= {*columns} or "session_id" not in database.columns(_MESSAGES):
        raise ImportFailed(f"{path} holds no sessions and messages that could be read.", path=path)
    last = f"(SELECT max(timestamp) FROM {_MESSAGES} WHERE session_id = {_SESSIONS}.id) AS {_LAST}"
    rows = database.rows(_SESSIONS, columns, also=(_LAST, last), order="started_at, id")
    if rows is None:
        raise ImportFailed(f"The sessions in {path} cannot be read: it is locked or damaged.", path=path)
    usage, current = database.usage(), database.current()
    parents = {row["id"]: row for row in rows}
    for row in rows:
        found = _incoming(database, row, parents.get(row.get("parent_session_id")), usage, current)
        if isinstance(found, Incoming):
            yield from (Mishap(where=found.where, what=what) for what in unusable(row, _SESSION_KINDS))
        yield found
    yield from (*database.mishaps, *database.homeless())


class _Database:
    def __init__(self, path: str, query: ForeignQuery) -> None:
        self.path = path
        self._query = query
        self._known: dict[str, tuple[str, ...]] = {}
        #: What could not be used of what is not a session's own row.
        self.mishaps: list[Mishap] = []

    def columns(self, table: str) -> tuple[str, ...]:
        if table not in self._known:
            found = self._query(self.path, "SELECT name FROM pragma_table_info(?)", (table,))
            if found is None:
                raise ImportFailed(f"{self.path} cannot be read as a database: it is none, locked or damaged.")
            self._known[table] = tuple(str(name) for (name,) in found)
        return self._known[table]

    def rows(
        self,
        table: str,
        columns: Sequence[str],
        *,
        also: tuple[str, str] | None = None,
        where: str = "",
        parameters: Sequence[object] = (),
        order: str = "",
    ) -> list[dict[str, Any]] | None:
        """Rows by the names of their columns; None when they cannot be read."""
        wanted = [*(_quoted(each) for each in columns), *([also[1]] if also else [])]
        sql = f"SELECT {', '.join(wanted)} FROM {table}"
        sql += f" WHERE {where}" if where else ""
        sql += f" ORDER BY {order}" if order else ""
        found = self._query(self.path, sql, parameters)
        names = [*columns, *([also[0]] if also else [])]
        return None if found is None else [dict(zip(names, map(_plain, names, row), strict=True)) for row in found]

    def usage(self) -> dict[str, dict[str, Tokens]]:
        """What was spent on which model, by session."""
        columns = self.columns(_USAGE)
        found: dict[str, dict[str, Tokens]] = {}
        if not {*_USAGE_READ} <= {*columns}:
            return found
        for row in self.rows(_USAGE, _USAGE_READ) or ():
            id, model = row["session_id"], text_of(row["model"])
            where = f"{self.path}, session {short(id)}, {_USAGE}"
            if not isinstance(id, str) or model is None:
                self.mishaps.append(
                    Mishap(where=where, what="it does not say which session or which model used tokens")
                )
                continue
            self.mishaps += (Mishap(where=where, what=what) for what in unusable(row, _TOKEN_KINDS))
            spent, of_model = tokens(row), found.setdefault(id, {})
            before = of_model.get(model, Tokens())
            of_model[model] = Tokens(input=before.input + spent.input, output=before.output + spent.output)
        return found

    def current(self) -> frozenset[str]:
        """The sessions conversations are known to go on in."""
        columns = self.columns(_ROUTES)
        wanted = [name for name in ("entry_json", "session_key") if name in columns]
        found = set()
        for row in self.rows(_ROUTES, wanted) or () if "entry_json" in wanted else ():
            entry = _parsed(row["entry_json"])
            id = entry.get("session_id") if isinstance(entry, dict) else None
            if isinstance(id, str):
                found.add(id)
            else:
                where = f"{self.path}, {_ROUTES}, {short(row.get('session_key'))}"
                self.mishaps.append(
                    Mishap(where=where, what="it does not say which session the conversation goes on in")
                )
        return frozenset(found)

    def homeless(self) -> Iterator[Mishap]:
        """Yield how many messages are of no session there is."""
        none = f"NOT EXISTS (SELECT 1 FROM {_SESSIONS} WHERE {_SESSIONS}.id = {_MESSAGES}.session_id)"
        counted = self._query(self.path, f"SELECT count(*) FROM {_MESSAGES} WHERE {none}", ())
        for (number,) in counted or ():
            if number:
                yield Mishap(
                    where=self.path, what=f"{number} of its messages belong to no session: they were not taken over"
                )

    def words(self, id: str) -> Words:
        """What was said in a session; never less because it could not be read."""
        columns = self.columns(_MESSAGES)
        where = f"{self.path}, session {short(id)}"
        rows = self.rows(_MESSAGES, columns, where="session_id = ?", parameters=(id,), order="id")
        if rows is None:
            raise ImportFailed(f"What was said in {where} cannot be read: it is locked or damaged.", path=self.path)
        turns: list[Turn] = []
        mishaps: list[Mishap] = []
        for row in rows:
            at = moment(row.get("timestamp")) or (turns[-1].at if turns else None)
            if at is None or text_of(row.get("role")) is None:
                mishaps.append(Mishap(where=f"{where}, message {row.get('id')}", what="it says no role, or no time"))
                continue
            message = _message(row)
            wrong = (*unusable_in_message(message), *unusable(row, _ACTIVE_KIND))
            mishaps += (Mishap(where=f"{where}, message {row.get('id')}", what=what) for what in wrong)
            if isinstance(message["content"], str) and message["content"].startswith(_STRUCTURED):
                mishaps.append(Mishap(where=f"{where}, message {row.get('id')}", what="its content is not JSON"))
            turns.append(turn_of(message, len(turns) + 1, at, hidden=row.get("active", 1) == 0))
        return Words(turns=tuple(turns), mishaps=tuple(mishaps))


def _incoming(
    database: _Database,
    row: Mapping[str, Any],
    parent: Mapping[str, Any] | None,
    usage: Mapping[str, Mapping[str, Tokens]],
    current: frozenset[str],
) -> Incoming | Mishap:
    id, opened_at = row["id"], moment(row.get("started_at"))
    if not isinstance(id, str) or not id or opened_at is None:
        return Mishap(where=database.path, what=f"session {short(id)} says no time, or has no id")
    closed_at, model, spent = moment(row.get("ended_at")), text_of(row.get("model")), tokens(row)
    settings = _parsed(row.get("model_config"))
    settings = settings if isinstance(settings, dict) else {}
    last = max(filter(None, (opened_at, moment(row.get(_LAST)))))
    is_delegate = bool(settings.get("_delegate_from"))
    # Nobody goes on with one that has ended, whether or not it can be told when.
    has_ended = is_delegate or row.get("ended_at") not in (None, "")
    kept = {name: value for name, value in row.items() if name not in _PLACED | {_LAST} and value is not None}
    return Incoming(
        id=id,
        where=f"{database.path}, session {short(id)}",
        opened_at=opened_at,
        touched_at=last,
        # A delegate's session is a part of somebody else's work: no conversation goes on in it.
        closed_at=closed_at or (last if has_ended else None),
        close_reason=None if row.get("ended_at") in (None, "") else close_reason(row.get("end_reason")),
        read=partial(database.words, id),
        origin=_origin(row),
        is_current=id in current and not is_delegate,
        title=text_of(row.get("title")),
        follows=text_of(row.get("parent_session_id")),
        kinship=_kinship(row, parent, settings),
        tokens=spent,
        by_model=usage.get(id) or ({model: spent} if model and spent.total else {}),
        model=model,
        extra={KEPT: kept},
    )


def _kinship(row: Mapping[str, Any], parent: Mapping[str, Any] | None, settings: Mapping[str, Any]) -> Kinship | None:
    if text_of(row.get("parent_session_id")) is None:
        return None
    if settings.get("_branched_from"):
        return Kinship.BRANCH
    if settings.get("_delegate_from") or parent is None or parent.get("end_reason") != "compression":
        return Kinship.SUCCESSOR
    return Kinship.CONTINUATION


def _origin(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where a session was held, as far as it is written down whole; half of a place is nobody's."""
    origin = _parsed(row.get("origin_json"))
    if isinstance(origin, dict) and origin:
        return origin
    source = text_of(row.get("source")) or ""
    if source not in PLATFORMS and not row.get("chat_id") and not row.get("user_id"):
        # `cli`, `tui`, `cron`: whoever used the machine itself.
        return {"platform": LOCAL, "chat_id": source or "cli"}
    names = ("user_id", "thread_id", *(("chat_id",) if row.get("chat_type") else ()), "chat_type")
    told = {name: text for name in names if (text := text_of(row.get(name))) is not None}
    return {"platform": source, **told, "chat_name": text_of(row.get("display_name"))}


def _message(row: Mapping[str, Any]) -> dict[str, Any]:
    message = {name: value for name, value in row.items() if name not in _ROW and value is not None}
    message = {name: value for name, value in message.items() if name not in _QUIET or value}
    for name in _JSON:
        value = _parsed(message.get(name))
        if value is not None:
            message[name] = value
    content = message.get("content")
    if isinstance(content, str) and content.startswith(_STRUCTURED):
        structured = _parsed(content.removeprefix(_STRUCTURED))
        content = content if structured is None else structured
    return {**message, "content": content}


def _parsed(value: object) -> Any:
    """The JSON in a text; None when there is none."""
    if not isinstance(value, str) or not value:
        return None
    try:
        return parsed(value)
    except (ValueError, RecursionError):
        return None


def _plain(name: str, value: object) -> object:
    """A value of a column as it was written: every text of a chat is one, not a path or the like."""
    raw = encode(value) if isinstance(value, str) else value
    if not isinstance(raw, bytes) or (raw is value and name in _IDS):
        return raw
    return raw.decode(errors="surrogateescape")


def _quoted(name: str) -> str:
    # As it is in the file, whatever that is.
    return '"' + encode(name).decode(errors="surrogateescape").replace('"', '""') + '"'


_TOKEN_KINDS = {"input_tokens": is_count, "output_tokens": is_count}
_SESSION_KINDS = {
    **_TOKEN_KINDS,
    "ended_at": is_moment,
    "title": is_text,
    "model": is_text,
    "parent_session_id": is_text,
    "origin_json": lambda value: is_origin(_parsed(value)),
}
_ACTIVE_KIND = {"active": lambda value: value in (0, 1)}
