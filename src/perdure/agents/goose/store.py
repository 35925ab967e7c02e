"""Goose's database: every session of a user, and all that was said in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from os.path import basename, dirname, isabs, join
from typing import Any

from msgspec import Struct

from perdure.agents._calls import Call, detail_of, details_of, is_recent, names_of, rows_wanted
from perdure.agents._json import count, decode_object, mapping, text
from perdure.agents._records import moment, turn
from perdure.model.process import Process
from perdure.ports import HostView

USUAL_HOME = ".local/share/goose"
DATABASE = "sessions/sessions.db"

#: What a person talks to; sub-agents, schedules and editors have sessions of other kinds.
_OWN = "user"
_COLUMNS = "id, name, session_type, working_dir, created_at, updated_at, total_tokens, provider_name, model_config_json"
_MOST_SESSIONS = 500
#: Among so many of the newest messages the last prompt is looked for; the others are answers of tools.
_MOST_MESSAGES = 200

Part = dict[str, Any]


class Session(Struct, frozen=True, kw_only=True):
    """A session as the database describes it."""

    id: str
    name: str | None
    #: A person talks to it.
    own: bool
    directory: str | None
    created_at: datetime | None
    updated_at: datetime | None
    tokens: int | None
    provider: str | None
    model: str | None
    context_limit: int | None


def home(process: Process, host: HostView) -> str:
    """Return the directory in which a process keeps its data."""
    root, data = process.environ.get("GOOSE_PATH_ROOT", ""), process.environ.get("XDG_DATA_HOME", "")
    if isabs(root):
        return join(root, "data")
    return join(data, "goose") if isabs(data) else join(process.environ.get("HOME") or host.home, USUAL_HOME)


def profile(process: Process, host: HostView) -> str | None:
    """Return the name of a data directory that is not the usual one."""
    mine = home(process, host)
    return None if host.physical(mine) == host.physical(join(host.home, USUAL_HOME)) else basename(dirname(mine))


def database(process: Process, host: HostView) -> str:
    """Return the path of the database a process writes."""
    return join(home(process, host), DATABASE)


def find(path: str, session: str, host: HostView) -> Session | None:
    """Return one session by its id."""
    return next(iter(_sessions(path, "id = ?", (session,), host)), None)


def called(path: str, name: str, host: HostView) -> list[Session]:
    """Return the sessions goose would take for a name, the one it takes first."""
    return _sessions(path, "(name = ?1 OR id = ?1) ORDER BY updated_at DESC", (name,), host)


def touched_since(path: str, at: datetime, host: HostView) -> list[Session]:
    """Return a person's sessions that were begun, resumed or written to since, in the order they were begun."""
    since = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    which = "session_type = ? AND datetime(updated_at) >= ? ORDER BY created_at, rowid"
    return _sessions(path, which, (_OWN, since), host)


def _sessions(path: str, which: str, parameters: Sequence[object], host: HostView) -> list[Session]:
    rows = host.query(path, f"SELECT {_COLUMNS} FROM sessions WHERE {which} LIMIT {_MOST_SESSIONS}", parameters)
    return [each for row in rows or () if (each := _session(*row)) is not None]


def _session(
    id: object,
    name: object,
    kind: object,
    directory: object,
    created: object,
    updated: object,
    tokens: object,
    provider: object,
    settings: object,
) -> Session | None:
    key = text(id)
    if key is None:
        return None
    model = _decoded(settings)
    return Session(
        id=key,
        name=text(name),
        own=kind == _OWN,
        directory=text(directory),
        created_at=moment(created),
        updated_at=moment(updated),
        tokens=count(tokens) or None,
        provider=text(provider),
        model=text(model.get("model_name")),
        context_limit=count(model.get("context_limit")) or None,
    )


def is_prompted(path: str, session: str, host: HostView) -> bool | None:
    """Return whether anything is left of what was said in a session; `/clear` deletes it."""
    rows = host.query(path, "SELECT 1 FROM messages WHERE session_id = ? LIMIT 1", (session,))
    return None if rows is None else bool(rows)


def last_prompt(path: str, session: str, host: HostView) -> str | None:
    """Return the last thing a person said."""
    sql = "SELECT content_json, metadata_json FROM messages WHERE session_id = ? AND role = 'user' ORDER BY id DESC"
    for content, about in host.query(path, f"{sql} LIMIT {_MOST_MESSAGES}", (session,)) or ():
        said = _said(_parts(content))
        if said and _decoded(about).get("userVisible") is not False:
            return said
    return None


def turns(path: str, session: str, host: HostView, agent: str | None = None) -> Iterator[Mapping[str, object]]:
    """Yield what was said in a session, then in those of its sub-agents."""
    sql = "SELECT role, content_json, created_timestamp, metadata_json FROM messages WHERE session_id = ?"
    rows = host.query(path, f"{sql} ORDER BY id DESC LIMIT ?", (session, rows_wanted(host))) or ()
    started: list[str] = []
    tools: dict[str, Call] = {}
    for role, content, at, about in reversed(rows):
        parts = _parts(content)
        started += _started(parts)
        yield from _turn(str(role), parts, moment(at), _decoded(about), agent, tools)
    if agent is None and not is_recent(host):
        for each in dict.fromkeys(started):
            yield from turns(path, each, host, each)


def _turn(
    role: str, parts: Sequence[Part], at: datetime | None, about: Part, agent: str | None, tools: dict[str, Call]
) -> Iterator[dict[str, object]]:
    said = _said(parts)
    if about.get("userVisible") is False:
        # What was summed up for the model; what is for neither is an old copy.
        if said and about.get("agentVisible") is True:
            yield turn("system", said, time=at, agent=agent)
        return
    called = [call for part in parts if part.get("type") == "toolRequest" and (call := _call(part, tools)) is not None]
    if said or called:
        known = role if role in ("user", "assistant") else "system"
        yield turn(known, said, tool=names_of(called), detail=details_of(called), time=at, agent=agent)
    results = [part for part in parts if part.get("type") == "toolResponse"]
    if results:
        answers = "\n".join(each for part in results for each in _contents(part))
        asked = [tools[id] for part in results if (id := text(part.get("id"))) in tools and id is not None]
        failed = True if any(_is_failure(part) for part in results) else None
        names, details = names_of(asked), details_of(asked)
        yield turn("tool", answers, tool=names, detail=details, failed=failed, time=at, agent=agent)


def _decoded(value: object) -> Part:
    return decode_object(value.encode(errors="replace")) or {} if isinstance(value, str) else {}


def _parts(content: object) -> list[Part]:
    """The parts of a message, which are a list of objects."""
    parts = _decoded(f'{{"parts":{content}}}').get("parts") if isinstance(content, str) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _said(parts: Sequence[Part]) -> str:
    return "\n".join(said for part in parts if part.get("type") == "text" and (said := text(part.get("text"))))


def _call(part: Part, tools: dict[str, Call]) -> Call | None:
    value = mapping(mapping(part.get("toolCall")).get("value"))
    name = text(value.get("name"))
    if name is None:
        return None
    tools[text(part.get("id")) or ""] = call = (name, detail_of(value.get("arguments")))
    return call


def _is_failure(part: Part) -> bool:
    result = mapping(part.get("toolResult"))
    return result.get("status") == "error" or bool(_answer(part).get("isError"))


def _answer(part: Part) -> Part:
    return mapping(mapping(part.get("toolResult")).get("value"))


def _contents(part: Part) -> list[str]:
    contents = _answer(part).get("content")
    found = contents if isinstance(contents, list) else []
    return [said for each in found if (said := text(mapping(each).get("text"))) is not None]


def _started(parts: Sequence[Part]) -> list[str]:
    """The sessions of the sub-agents whose answers these are."""
    metas = (mapping(_answer(part).get("_meta")) for part in parts if part.get("type") == "toolResponse")
    return [session for meta in metas if (session := text(meta.get("subagent_session_id"))) is not None]
