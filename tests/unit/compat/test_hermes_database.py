"""Hermes' database: one it wrote itself, and ones of other versions."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from perdure.compat.hermes_database import read_database
from perdure.errors import ImportFailed
from perdure.model.chat import CloseReason, Kinship, Tokens
from perdure.model.chat_import import Incoming, Mishap
from perdure.store.foreign import query

SAMPLE = str(Path(__file__).parent / "samples" / "hermes-0.19.0" / "state.db")
ROOF, ROOF_2, TERMINAL, NOWHERE = (
    "20261115_083702_cab80001",
    "20261115_090000_cab80002",
    "20261115_091000_abc123",
    "20261115_092000_cab80004",
)
#: The columns of the first version that had a database.
OLD = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, model_config TEXT, system_prompt TEXT,
    parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0,
    tool_call_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, title TEXT
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT,
    tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, token_count INTEGER, finish_reason TEXT
);
"""


def sessions(path: str) -> dict[str, Incoming]:
    return {each.id: each for each in read_database(path, query) if isinstance(each, Incoming)}


@contextmanager
def database(path: Path, schema: str = OLD) -> Iterator[sqlite3.Connection]:
    """A database in the shape Hermes keeps it in, open to be written."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(schema)
        yield connection


def test_what_hermes_wrote_is_read_whole() -> None:
    found = sessions(SAMPLE)
    assert list(found) == [ROOF, ROOF_2, TERMINAL, NOWHERE]
    roof = found[ROOF]
    assert roof.origin["chat_id"] == "99"
    assert roof.origin["user_name"] == "Ann"
    assert (roof.title, roof.model, roof.close_reason) == ("The roof", "stub-model", CloseReason.COMPRESSED)
    assert roof.tokens == Tokens(input=200, output=100)
    assert roof.by_model == {"stub-model": Tokens(input=200, output=100)}
    assert roof.closed_at is not None
    assert roof.opened_at < roof.touched_at <= roof.closed_at
    kept = roof.extra["imported"]
    assert (kept["system_prompt"], kept["api_call_count"]) == ("You are helpful.", 2)
    words = roof.read()
    assert not words.mishaps
    question, call, result, answer, picture, mind, fine = words.turns
    assert (question.role, question.content) == ("user", "Which roof is cheaper?")
    assert question.extra == {"platform_message_id": "501"}
    assert call.tool_calls[0]["function"]["name"] == "terminal"
    assert call.extra["reasoning"] == "I look first."
    assert call.extra["reasoning_details"] == [{"type": "summary", "text": "look"}]
    assert (result.role, result.tool_name, result.tool_call_id) == ("tool", "terminal", "call_1")
    assert (answer.content, answer.tokens) == ("Slate is dearer.", 12)
    assert [part["type"] for part in picture.content] == ["text", "image_url"]
    assert (mind.hidden, fine.hidden, picture.hidden) == (True, True, False)


def test_lineage_and_what_goes_on_are_read() -> None:
    found = sessions(SAMPLE)
    second = found[ROOF_2]
    assert (second.follows, second.kinship, second.is_current) == (ROOF, Kinship.CONTINUATION, True)
    assert second.closed_at is None
    terminal = found[TERMINAL]
    assert (terminal.origin, terminal.is_current) == ({"platform": "local", "chat_id": "cli"}, False)
    assert terminal.extra["imported"]["cwd"] == "/home/dev/work"
    # Who it was with is known, and not where: half of a place is none.
    assert found[NOWHERE].origin == {"platform": "telegram", "user_id": "77", "chat_name": None}


def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    copy = tmp_path / "state.db"
    copy.write_bytes(Path(SAMPLE).read_bytes())
    before = copy.stat()
    for each in sessions(str(copy)).values():
        each.read()
    assert os.listdir(tmp_path) == ["state.db"]
    assert copy.read_bytes() == Path(SAMPLE).read_bytes()
    assert copy.stat().st_mtime_ns == before.st_mtime_ns


def test_one_of_the_first_version_is_read_too(tmp_path: Path) -> None:
    with database(tmp_path / "state.db") as old:
        old.execute(
            "INSERT INTO sessions (id, source, user_id, started_at, model_config, parent_session_id, title) "
            "VALUES ('s1', 'telegram', '7', 1771315200.5, '{\"_branched_from\": \"s0\"}', 's0', 'T')"
        )
        old.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s1', 'user', 'hi', 1771315201)"
        )
        found = sessions(str(tmp_path / "state.db"))["s1"]
    assert (found.kinship, found.follows, found.title) == (Kinship.BRANCH, "s0", "T")
    assert [turn.content for turn in found.read().turns] == ["hi"]


def test_a_bad_row_costs_only_itself(tmp_path: Path) -> None:
    with database(tmp_path / "state.db") as old:
        old.execute("INSERT INTO sessions (id, source, started_at) VALUES ('s1', 'cli', 'never'), ('s2', 'cli', 5)")
        old.execute("INSERT INTO sessions (id, source, started_at) VALUES (NULL, 'cli', 5)")
        old.executemany(
            "INSERT INTO messages (session_id, role, content, tool_calls, timestamp) VALUES ('s2', ?, ?, ?, ?)",
            [
                ("user", "a", None, "when"),
                ("user", "b\ue000\uef80\0c", None, 5.5),
                ("assistant", "\0json:{", "[broken", 6),
                ("user", b"a\xffb", None, 7),
            ],
        )
        found = list(read_database(str(tmp_path / "state.db"), query))
    assert sum(isinstance(each, Mishap) for each in found) == 2
    (good,) = [each for each in found if isinstance(each, Incoming)]
    words = good.read()
    assert [turn.content for turn in words.turns] == ["b\ue000\uef80\0c", "\0json:{", "a\udcffb"]
    assert words.turns[1].tool_calls == ("[broken",)
    assert len(words.mishaps) == 2


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"x" * 5000])
def test_what_is_no_database_is_said_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state.db").write_bytes(content)
    with pytest.raises(ImportFailed):
        list(read_database(str(tmp_path / "state.db"), query))


def test_a_database_of_something_else_is_said_so(tmp_path: Path) -> None:
    with database(tmp_path / "state.db", "CREATE TABLE sessions (id TEXT)"), pytest.raises(ImportFailed):
        list(read_database(str(tmp_path / "state.db"), query))


def test_what_is_written_meanwhile_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with database(path) as old:
        old.execute("INSERT INTO sessions (id, source, started_at) VALUES ('s1', 'cli', 5)")
    is_enough = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as writer:
            for number in range(2000):
                # Two at a time: nobody sees one without the other.
                writer.execute("BEGIN IMMEDIATE")
                for part in ("a", "b"):
                    sql = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s1', 'user', ?, 6)"
                    writer.execute(sql, (f"{number}{part}",))
                writer.execute("COMMIT")
                if is_enough.is_set():
                    return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        seen = 0
        for _ in range(15):
            turns = sessions(str(path))["s1"].read().turns
            expected = [f"{number}{part}" for number in range(len(turns) // 2) for part in "ab"]
            assert [turn.content for turn in turns] == expected
            assert len(turns) >= seen
            seen = len(turns)
    finally:
        is_enough.set()
        thread.join()
