"""Hermes's database: every conversation of a profile, and when and why each one was left.

A row appears with the first prompt, or with `/new`. Leaving a conversation ends its row with a reason; coming back opens it
again. Sub-agents have rows too, with a parent, and so have branches and what a compaction went on in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from os.path import basename, dirname, join

from msgspec import DecodeError, Struct, json

from perdure.agents._calls import Call, detail_of, details_of, failed_by, is_recent, names_of, rows_wanted
from perdure.agents._homes import home_of
from perdure.agents._json import decode_object, mapping, text
from perdure.agents._options import Argument
from perdure.agents._records import moment, turn
from perdure.model.process import Process
from perdure.ports import HostView

DATABASE = "state.db"
USUAL_HOME = ".hermes"
_PROFILES = "profiles"

#: Why a row ends when its process goes on to another conversation.
_LEFT = frozenset({"new_session", "resumed_other", "branched"})
_COMPACTED = "compression"
#: A conversation that is begun in place of another has its row this much later.
_AT_ONCE = timedelta(seconds=2)
#: Messages copied by a compaction are microseconds apart; nobody speaks that fast.
_SAME_MOMENT = 1e-4

_DEEPEST = 100
_MOST = 500
_COLUMNS = (
    "id, source, parent_session_id, model_config, started_at, ended_at, end_reason, cwd, title, message_count,"
    " (SELECT max(timestamp) FROM messages WHERE session_id = sessions.id)"
)
#: How Hermes stores content that is no plain text.
_STRUCTURED = "\0json:"
#: What it writes in the user's place.
_NOT_TYPED = ("[ASYNC DELEGATION ", "[CONTEXT COMPACTION", "[CONTEXT SUMMARY", "[IMPORTANT: ", "[USER INITIATED SKILLS")


class Session(Struct, frozen=True, kw_only=True):
    """One conversation as the database has it."""

    id: str
    parent: str | None
    #: Nobody talks to it: a sub-agent's, or a tool's.
    hidden: bool
    #: What it was branched from.
    branched_from: str | None
    started_at: datetime | None
    ended_at: datetime | None
    end_reason: str | None
    cwd: str | None
    title: str | None
    messages: int
    written_at: datetime | None

    @property
    def was_left(self) -> bool:
        """Its process went on to another conversation."""
        return self.ended_at is not None and self.end_reason in _LEFT


def home(process: Process, arguments: Sequence[Argument], host: HostView) -> str:
    """Return where a process keeps its data: where it holds its database open, else where it would look for it.

    In Hermes's own order: `--profile`, a home that is a profile's, the profile that was chosen for good, the home.
    """
    for path in host.open_files(process.pid):
        if basename(path) == DATABASE:
            return dirname(path)
    mine = home_of(process, "HERMES_HOME", USUAL_HOME, host).rstrip("/")
    is_profile = basename(dirname(mine)) == _PROFILES
    root = dirname(dirname(mine)) if is_profile else mine
    named = next((each.values[-1] for each in arguments if each.name == "--profile" and each.values), None)
    if named is None and is_profile:
        return mine
    if named is None:
        named = (host.read(join(root, "active_profile"), limit=200) or b"").decode(errors="replace").strip()
    return root if named in ("", "default") else join(root, _PROFILES, named)


def profile(home: str, host: HostView) -> str | None:
    """Return the name of a home that is not the usual one."""
    return None if host.physical(home) == host.physical(join(host.home, USUAL_HOME)) else basename(home.rstrip("/"))


def holding(conversation: str, host: HostView) -> str:
    """Return the database that has a conversation: the usual one, or one of a profile's."""
    usual = join(host.home, USUAL_HOME)
    profiles = join(usual, _PROFILES)
    paths = [join(home, DATABASE) for home in (usual, *(join(profiles, name) for name in sorted(host.names(profiles))))]
    return next((path for path in paths if find(path, conversation, host) is not None), paths[0])


def is_readable(path: str, host: HostView) -> bool:
    """Return whether there is a database to ask."""
    return host.query(path, "SELECT 1 FROM sessions LIMIT 1") is not None


def find(path: str, conversation: str, host: HostView) -> Session | None:
    """Return a conversation by its id."""
    return next(_sessions(path, "WHERE id = ?", (conversation,), host), None)


def own(path: str, conversation: str, host: HostView) -> Session | None:
    """Return the conversation a person is in when this one is at work: the one that called a sub-agent, and of a
    compacted one what it went on in, which is also what Hermes resumes in its place."""
    found = find(path, conversation, host)
    for _ in range(_DEEPEST):
        if found is None or not found.hidden or found.parent is None:
            break
        found = find(path, found.parent, host)
    for _ in range(_DEEPEST):
        if found is None or found.end_reason != _COMPACTED:
            break
        onward = [each for each in _children(path, found.id, host) if not each.hidden and not each.branched_from]
        if not onward:
            break
        found = max(onward, key=lambda each: (each.ended_at is None, str(each.written_at or each.started_at)))
    return found


def went_on(path: str, session: Session, host: HostView) -> Session | None:
    """Return the conversation that was begun when this one was left, None when that cannot be told."""
    if not session.was_left or session.ended_at is None:
        return None
    until = session.ended_at + _AT_ONCE
    where = f"WHERE started_at >= ? AND started_at <= ? ORDER BY started_at LIMIT {_MOST}"
    begun = _sessions(path, where, (session.ended_at.timestamp() - 0.001, until.timestamp()), host)
    branch = session.id if session.end_reason == "branched" else None
    return next((each for each in begun if not each.hidden and each.branched_from == branch), None)


def touched_since(path: str, since: datetime, host: HostView) -> list[Session]:
    """Return the conversations that were begun or written to since then and are not over, newest first."""
    where = (
        "WHERE ended_at IS NULL AND (started_at >= ?1 OR"
        " EXISTS (SELECT 1 FROM messages WHERE session_id = sessions.id AND timestamp >= ?1))"
        f" ORDER BY started_at DESC LIMIT {_MOST}"
    )
    return [each for each in _sessions(path, where, (since.timestamp(),), host) if not each.hidden]


def begun_since(path: str, since: datetime, host: HostView) -> list[Session]:
    """Return the conversations that were begun since then, oldest first, those that are over too."""
    where = f"WHERE started_at >= ? ORDER BY started_at LIMIT {_MOST}"
    return [each for each in _sessions(path, where, (since.timestamp(),), host) if not each.hidden]


def titled(path: str, title: str, host: HostView) -> list[Session]:
    """Return the conversations of this title."""
    return [each for each in _sessions(path, f"WHERE title = ? LIMIT {_MOST}", (title,), host) if not each.hidden]


def _children(path: str, conversation: str, host: HostView) -> list[Session]:
    return list(_sessions(path, "WHERE parent_session_id = ? ORDER BY started_at", (conversation,), host))


def _sessions(path: str, where: str, values: Sequence[object], host: HostView) -> Iterator[Session]:
    for row in host.query(path, f"SELECT {_COLUMNS} FROM sessions {where}", values) or ():
        ident = text(row[0])
        if ident is None:
            continue
        config = decode_object(_encoded(row[3])) or {}
        yield Session(
            id=ident,
            hidden=row[1] in ("subagent", "tool") or bool(config.get("_delegate_from")),
            parent=text(row[2]),
            branched_from=text(config.get("_branched_from")),
            started_at=moment(row[4]),
            ended_at=moment(row[5]),
            end_reason=text(row[6]),
            cwd=text(row[7]),
            title=text(row[8]),
            messages=row[9] if isinstance(row[9], int) else 0,
            written_at=moment(row[10]) or moment(row[4]),
        )


def whom(path: str, conversation: str, host: HostView) -> tuple[str | None, str | None, str | None]:
    """Return the model of a conversation, who provides it, and the branch it is on."""
    sql = "SELECT model, billing_provider, git_branch FROM sessions WHERE id = ?"
    rows = host.query(path, sql, (conversation,))
    model, provider, branch = rows[0] if rows else (None, None, None)
    return text(model), text(provider), text(branch)


def last_prompt(path: str, conversation: str, host: HostView) -> str | None:
    """Return the last thing a person said."""
    sql = "SELECT content FROM messages WHERE session_id = ? AND role = 'user' AND active = 1 ORDER BY id DESC LIMIT 40"
    said = (_said(content) for (content,) in host.query(path, sql, (conversation,)) or ())
    return next((each for each in said if each and not each.startswith(_NOT_TYPED)), None)


def turns(path: str, conversation: str, host: HostView) -> Iterator[dict[str, object]]:
    """Yield the turns of a conversation, before them those it was compacted from, and then those of its sub-agents."""
    if is_recent(host):
        yield from _turns_of(path, conversation, host, None)
        return
    line = _line_to(path, conversation, host)
    for place, ident in enumerate(line):
        if place:
            yield turn("system", "The conversation was compacted.")
        yield from _turns_of(path, ident, host, None)
    for ident in line:
        for child in _children(path, ident, host):
            if child.hidden:
                yield from _turns_of(path, child.id, host, child.id)


def _line_to(path: str, conversation: str, host: HostView) -> list[str]:
    """The conversations one grew out of by compaction, the oldest first, and itself."""
    line = [conversation]
    found = find(path, conversation, host)
    while found is not None and found.parent and not found.branched_from and len(line) < _DEEPEST:
        parent = find(path, found.parent, host)
        if parent is None or parent.end_reason != _COMPACTED or parent.id in line:
            break
        line.insert(0, parent.id)
        found = parent
    return line


def _turns_of(path: str, conversation: str, host: HostView, agent: str | None) -> Iterator[dict[str, object]]:
    columns = "role, content, tool_calls, tool_name, timestamp, compacted"
    # What was neither compacted nor is active was taken back.
    where = "session_id = ? AND (active = 1 OR compacted = 1)"
    newest = f"SELECT {columns} FROM messages WHERE {where} ORDER BY id DESC LIMIT ?"
    rows = [*(host.query(path, newest, (conversation, rows_wanted(host))) or ())][::-1]
    asked: list[Call] = []
    times = [row[4] if isinstance(row[4], int | float) else float(place) for place, row in enumerate(rows)]
    archived = False
    for place, (role, content, calls, tool, at, compacted) in enumerate(rows):
        near = (times[other] for other in (place - 1, place + 1) if 0 <= other < len(times))
        copied = archived and any(abs(times[place] - other) < _SAME_MOMENT for other in near)
        archived = archived or bool(compacted)
        said = _said(content)
        if (said or "").startswith("[CONTEXT COMPACTION") or (role == "user" and (said or "").startswith(_NOT_TYPED)):
            yield turn("system", said, time=moment(at), agent=agent)
        elif not copied and role in ("user", "assistant", "tool"):
            if role == "tool":
                failed, name = failed_by(said), text(tool)
                detail = _answered(asked, name)
                if said or name:
                    yield turn("tool", said, tool=name, detail=detail, failed=failed, time=moment(at), agent=agent)
                continue
            used = _called(calls) if role == "assistant" else []
            asked += used
            if said or used:
                names, details = names_of(used), details_of(used)
                yield turn(str(role), said, tool=names, detail=details, time=moment(at), agent=agent)


def _called(calls: object) -> list[Call]:
    """The tools an answer calls."""
    functions = [mapping(mapping(call).get("function")) for call in _decoded(calls)]
    return [(text(each.get("name")) or "?", detail_of(each.get("arguments"))) for each in functions]


def _answered(asked: list[Call], name: str | None) -> str | None:
    """What the tool was called with that answers now: each answers in the order they were called."""
    found = next((call for call in asked if call[0] == name), None)
    if found is not None:
        asked.remove(found)
    return found[1] if found else None


def _said(content: object) -> str | None:
    if not isinstance(content, str) or not content.startswith(_STRUCTURED):
        return text(content)
    parts = [mapping(part) for part in _decoded(content.removeprefix(_STRUCTURED))]
    return "\n".join(filter(None, (text(part.get("text")) for part in parts))) or None


def _decoded(value: object) -> list[object]:
    """A list in JSON, empty when it is none."""
    try:
        found = json.decode(_encoded(value) or b"[]")
    except (DecodeError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def _encoded(value: object) -> bytes | None:
    return value.encode(errors="replace") if isinstance(value, str) else None
