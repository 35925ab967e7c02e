"""Fields of strangers' files that are not what they should be: none is lost without a word, none costs anybody else."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from perdure.chats.importing import Taken, import_chats
from perdure.chats.jsonl import lines_of, read_export
from perdure.chats.service import Chats
from perdure.compat.hermes_database import read_database
from perdure.compat.hermes_fields import moment
from perdure.compat.hermes_sessions import read_directory
from perdure.model.chat import Chat, Source, Transcript
from perdure.model.config import Config
from perdure.store.foreign import query
from perdure.store.store import Store
from tests.contract.store.chats import Clock, a_chat, a_source, a_turn

SAMPLE = Path(__file__).parents[2] / "unit" / "compat" / "samples" / "hermes-0.19.0" / "state.db"
#: Found again wherever it was kept, and nowhere else.
WORD, NUMBER = "gibberish", 7654321
TIMES = ("started_at", "ended_at", "timestamp", "created_at", "updated_at", "last_resume_marked_at")
#: Text of a database that is no UTF-8.
NO_TEXT = object()
STORED = (WORD, f"\0{WORD}", NO_TEXT, b"\xff\xfe" + WORD.encode(), WORD.encode(), NUMBER, NUMBER + 0.5, -NUMBER)
#: As JSON says it.
TOLD = (
    WORD,
    f"\0{WORD}",
    f"\ud800{WORD}",
    f"\ud83d\ude00{WORD}",
    NUMBER,
    NUMBER + 0.5,
    -NUMBER,
    10**400 + NUMBER,
    [WORD],
    {WORD: [NUMBER]},
)
WORDS = ("one", "two", "three")
SESSION = {"source": "telegram", "chat_type": "dm", "model": "m", "started_at": 1794730000.0, "input_tokens": 3}


class Spoilt(NamedTuple):
    """A session of which one field holds something else."""

    id: str
    field: str
    value: object

    def is_kept_in(self, written: str) -> bool:
        """Whether what was in the field is in what came in, or was a time after all."""
        if self.field in TIMES and moment(self.value) is not None:
            return True
        text = self.value.decode(errors="ignore") if isinstance(self.value, bytes) else str(self.value)
        return (WORD if WORD in text or self.value is NO_TEXT else str(NUMBER)) in written


@pytest.fixture
def chats(store: Store) -> Chats:
    """The chats of a new store."""
    return Chats(store.chats, Config(), Clock())


def written_of(store: Store, id: str) -> str:
    """Everything that came in of a session."""
    lines = b"".join(lines_of(store.chats.get_chat(id), store.chats.load_turns(id, hidden=True)))
    return lines.decode()


def assert_each_costs_itself_and_is_told(store: Store, taken: Taken, healthy: list[str], spoilt: list[Spoilt]) -> None:
    told = [f"{each.where}: {each.what}" for each in taken.mishaps]
    there = {each.chat.id for each in taken.arrived}
    assert {*healthy} <= there
    for id in healthy:
        assert [turn.content for turn in store.chats.load_turns(id).turns] == [*WORDS]
        assert not [each for each in told if is_about(each, id)]
    for each in spoilt:
        is_told = any(is_about(one, each.id) for one in told)
        assert is_told or (each.id in there and each.is_kept_in(written_of(store, each.id))), each
    assert store.check() == ()


def is_about(told: str, id: str) -> bool:
    return f"'{id}'" in told or f"/{id}.jsonl" in told


def insert(connection: sqlite3.Connection, table: str, row: Mapping[str, object]) -> None:
    names = ", ".join(f'"{name}"' for name in row)
    marks = ", ".join("CAST(? AS TEXT)" if value is NO_TEXT else "?" for value in row.values())
    values = [b"\xff\xfe" + WORD.encode() if value is NO_TEXT else value for value in row.values()]
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)


def add_session(connection: sqlite3.Connection, id: str, table: str = "", changes: Mapping[str, object] = {}) -> None:
    """A session with its messages, of which the second, or another row of it, is not what it should be."""
    origin = json.dumps({"platform": "telegram", "chat_id": id, "user_id": id, "chat_type": "dm"})
    rows = [
        ("sessions", {"id": id, **SESSION, "title": f"T {id}", "origin_json": origin}),
        *(
            ("messages", {"session_id": id, "role": "user", "content": text, "timestamp": 1794730001.0})
            for text in WORDS
        ),
        ("session_model_usage", {"session_id": id, "model": "m", "input_tokens": 3, "output_tokens": 4}),
        ("gateway_routing", {"session_key": id, "entry_json": json.dumps({"session_id": id}), "updated_at": 0}),
    ]
    of_table = [place for place, (name, _) in enumerate(rows) if name == table]
    for place, (name, row) in enumerate(rows):
        insert(connection, name, {**row, **(changes if of_table and place == of_table[len(of_table) // 2] else {})})


def columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [str(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]


#: What says which session is meant. What was said in none is told of by its number.
LINKS = {
    ("sessions", "id"): len(STORED) * len(WORDS),
    ("messages", "session_id"): len(STORED),
    ("session_model_usage", "session_id"): 0,
}
#: What is read into something of its own; the id of a message only says which comes first.
PLACED = {
    "sessions": (
        *("id", "source", "user_id", "chat_id", "model", "model_config", "parent_session_id", "started_at", "ended_at"),
        *("end_reason", "input_tokens", "output_tokens", "title", "origin_json"),
    ),
    "messages": (
        *("session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp", "token_count"),
        *("active", "reasoning_details"),
    ),
    "session_model_usage": ("session_id", "model", "input_tokens", "output_tokens"),
    "gateway_routing": ("entry_json",),
}
#: Where a session was held, in the versions that say it so.
PEER = ("source", "user_id", "chat_id", "chat_type", "thread_id", "display_name")


def lots(table: str, names: list[str]) -> Iterator[list[str]]:
    """Columns that are spoilt together: each that has a place for itself, and all those that are only kept as they are."""
    yield from ([name] for name in PLACED[table])
    if table in ("sessions", "messages"):
        yield [name for name in names if name not in PLACED[table] and name != "id"]


@pytest.mark.parametrize("table", ["sessions", "messages", "session_model_usage", "gateway_routing"])
def test_whatever_stands_in_a_column_of_hermes_costs_itself_and_is_told(
    chats: Chats, store: Store, tmp_path: Path, table: str
) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(SAMPLE.read_bytes())
    spoilt: list[Spoilt] = []
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        for name in ("sessions", "messages", "session_model_usage", "gateway_routing"):
            connection.execute(f"DELETE FROM {name}")
        add_session(connection, "first")
        for names in lots(table, columns(connection, table)):
            for number, value in enumerate(STORED):
                id = f"{names[0]}_{number}"
                add_session(connection, id, table, dict.fromkeys(names, value))
                if (table, names[0]) not in LINKS:
                    spoilt.append(Spoilt(id, names[0], value))
        for name in PEER if table == "sessions" else ():
            for number, value in enumerate(STORED):
                id = f"peer_{name}_{number}"
                add_session(connection, id, table, {"chat_id": id, "origin_json": None, name: value})
                spoilt.append(Spoilt(id, name, value))
        add_session(connection, "last")
        connection.commit()
    taken = import_chats(chats, read_database(str(path), query))
    assert_each_costs_itself_and_is_told(store, taken, ["first", "last"], spoilt)
    homeless = sum(number for (name, _), number in LINKS.items() if name == table)
    assert [each.what for each in taken.mishaps if "belong to no session" in each.what] == (
        [f"{homeless} of its messages belong to no session: they were not taken over"] if homeless else []
    )
    again = import_chats(chats, read_database(str(path), query))
    assert again.mishaps == taken.mishaps
    assert not [each for each in again.arrived if each.added]


def entry(id: str, **changes: object) -> dict[str, Any]:
    """An entry of an index, with everything that is read of one."""
    return {
        "session_id": id,
        "created_at": "2026-11-15T08:37:02",
        "updated_at": "2026-11-15T08:40:02",
        "platform": "telegram",
        "chat_type": "dm",
        "display_name": "Ann",
        "origin": origin(id),
        "input_tokens": 1,
        "output_tokens": 2,
        "suspended": False,
        "resume_pending": True,
        "last_resume_marked_at": "2026-11-15T08:40:02",
        **changes,
    }


def origin(id: str, **changes: object) -> dict[str, Any]:
    """Where a session was held, with everything that is read of that."""
    names = ("chat_name", "user_name", "chat_topic", "user_id_alt", "chat_id_alt", "parent_chat_id", "message_id")
    told = dict.fromkeys((*names, "profile", "auto_thread_initial_name", "scope_id", "user_id", "chat_id"), id)
    return {"platform": "telegram", "chat_type": "dm", "thread_id": None, **told, **changes}


def message(text: str, **changes: object) -> bytes:
    """A line of a session, with everything that is read of one."""
    said = {"role": "user", "content": text, "timestamp": "2026-11-15T08:38:00", "reasoning": None, "model": "m"}
    called = {"tool_name": "ls", "tool_call_id": "c", "tool_calls": [{"id": "c"}], "token_count": 3}
    return json.dumps({**said, **called, **changes}).encode() + b"\n"


def test_whatever_stands_in_a_field_of_an_index_costs_itself_and_is_told(
    chats: Chats, store: Store, tmp_path: Path
) -> None:
    spoilt: list[Spoilt] = []
    index = {"first": entry("first")}
    for number, value in enumerate(TOLD):
        for name in entry(""):
            id = f"entry_{name}_{number}"
            index[id] = entry(id, **{name: value})
            # One that names another session is that one's.
            if name != "session_id":
                spoilt.append(Spoilt(id, name, value))
        for name in origin(""):
            id = f"origin_{name}_{number}"
            index[id] = entry(id, origin=origin(id, **{name: value}))
            spoilt.append(Spoilt(id, name, value))
    index["last"] = entry("last")
    (tmp_path / "sessions.json").write_text(json.dumps(index))
    for id in index:
        (tmp_path / f"{id}.jsonl").write_bytes(b"".join(map(message, WORDS)))
    taken = import_chats(chats, read_directory(str(tmp_path)))
    assert_each_costs_itself_and_is_told(store, taken, ["first", "last"], spoilt)


def test_whatever_stands_in_a_field_of_a_message_costs_itself_and_is_told(
    chats: Chats, store: Store, tmp_path: Path
) -> None:
    spoilt: list[Spoilt] = []
    index = {"first": entry("first"), "last": entry("last")}
    for number, value in enumerate(TOLD):
        for name in json.loads(message("")):
            id = f"{name}_{number}"
            spoilt.append(Spoilt(id, name, value))
            index[id] = entry(id)
    for id in index:
        (tmp_path / f"{id}.jsonl").write_bytes(b"".join(map(message, WORDS)))
    for id, name, value in spoilt:
        (tmp_path / f"{id}.jsonl").write_bytes(message("one") + message("two", **{name: value}) + message("three"))
    (tmp_path / "sessions.json").write_text(json.dumps(index))
    taken = import_chats(chats, read_directory(str(tmp_path)))
    assert_each_costs_itself_and_is_told(store, taken, ["first", "last"], spoilt)


def fields_of(kind: type[msgspec.Struct]) -> list[str]:
    """The fields of a chat or of its source that are texts."""
    return [each.name for each in msgspec.structs.fields(kind) if each.type in (str, str | None)]


def test_no_text_of_a_chat_that_was_written_down_costs_anybody_else(chats: Chats, store: Store, tmp_path: Path) -> None:
    heads = {"first": a_chat("first"), "last": a_chat("last")}
    for number, value in enumerate((f"\0{WORD}", f"\ud800{WORD}", f"\ud83d\ude00{WORD}", WORD * 1000)):
        for name in (*fields_of(Chat), *(f"source.{each}" for each in fields_of(Source))):
            id = f"{name}_{number}"
            heads[id] = with_text(a_chat(id, key=id, source=a_source(id)), name, value)
    incoming = []
    for id, chat in heads.items():
        turns = tuple(a_turn(text, position=place) for place, text in enumerate(WORDS, 1))
        path = tmp_path / f"{id}.jsonl"
        path.write_bytes(b"".join(lines_of(chat, Transcript(chat=id, turns=turns, next=4))))
        incoming.append(read_export(str(path)))
    taken = import_chats(chats, incoming)
    for id in ("first", "last"):
        assert [turn.content for turn in store.chats.load_turns(id).turns] == [*WORDS]
    told = " ".join(each.where for each in taken.mishaps)
    there = {each.chat.id for each in taken.arrived}
    assert not [id for id in heads if id not in there and f"/{id}.jsonl" not in told]
    assert store.check() == ()


def with_text(chat: Chat, name: str, value: str) -> Chat:
    """A chat that says something else in one of its fields."""
    if name.startswith("source."):
        return replace(chat, source=replace(chat.source, **{name.removeprefix("source."): value}))
    return replace(chat, **{name: value})
