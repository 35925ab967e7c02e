"""Hermes' directory of sessions, as both generations leave it, whole and broken."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.compat.hermes_sessions import entries_of, read_directory, words_of
from perdure.errors import ImportFailed
from perdure.model.chat import Tokens
from perdure.model.chat_import import Incoming, Mishap, Words

BERLIN = timezone(timedelta(hours=1))
BEGUN = datetime(2026, 2, 17, 8, tzinfo=UTC)
ORIGIN = {
    "platform": "telegram",
    "chat_id": "99",
    "chat_name": "Ann",
    "chat_type": "dm",
    "user_id": "99",
    "user_name": "Ann",
    "thread_id": None,
}


def entry(id: str = "20260217_090000_0badcafe", **changes: Any) -> dict[str, Any]:
    """An entry as the first generation writes it."""
    return {
        "session_key": "agent:main:telegram:dm",
        "session_id": id,
        "created_at": "2026-02-17T09:00:00.250000",
        "updated_at": "2026-02-17T09:30:00",
        "display_name": "Ann",
        "platform": "telegram",
        "chat_type": "dm",
        "input_tokens": 20,
        "output_tokens": 10,
        "total_tokens": 30,
        "origin": ORIGIN,
        **changes,
    }


def directory(path: Path, index: object, **files: str | bytes) -> str:
    """A directory of sessions; the names of files have no ending."""
    if index is not None:
        (path / "sessions.json").write_text(index if isinstance(index, str) else json.dumps(index))
    for name, content in files.items():
        (path / f"{name}.jsonl").write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def sessions(found: list[Incoming | Mishap]) -> list[Incoming]:
    return [each for each in found if isinstance(each, Incoming)]


def mishaps(found: list[Incoming | Mishap]) -> list[str]:
    return [each.what for each in found if isinstance(each, Mishap)]


def said(words: Words) -> list[tuple[str, object]]:
    return [(turn.role, turn.content) for turn in words.turns]


def test_an_entry_of_the_first_generation_comes_with_what_was_said(tmp_path: Path) -> None:
    lines = '{"role": "user", "content": "Wie gehts, 😀?"}\n\n{"role": "assistant", "content": "Gut."}\n'
    place = directory(tmp_path, {"agent:main:telegram:dm": entry("s1")}, s1=lines)
    (found,) = sessions(list(read_directory(place, BERLIN)))
    assert found.origin == ORIGIN
    assert found.opened_at == datetime(2026, 2, 17, 8, 0, 0, 250000, tzinfo=UTC)
    assert found.touched_at == datetime(2026, 2, 17, 8, 30, tzinfo=UTC)
    assert (found.tokens, found.is_current, found.closed_at) == (Tokens(input=20, output=10), True, None)
    assert found.extra["imported"]["total_tokens"] == 30
    words = found.read()
    assert said(words) == [("user", "Wie gehts, 😀?"), ("assistant", "Gut.")]
    assert [turn.position for turn in words.turns] == [1, 2]
    assert {turn.at for turn in words.turns} == {found.opened_at}


def test_an_entry_of_the_newest_generation_keeps_what_is_unknown_here(tmp_path: Path) -> None:
    newest = entry(
        "s1",
        suspended=True,
        resume_pending=True,
        last_resume_marked_at="2026-02-17T09:10:00",
        estimated_cost_usd=0.5,
        model_override={"model": "m"},
        something_new=[1],
    )
    index = {"_README": "A mirror.", "agent:main:telegram:dm:99": newest}
    (found,) = sessions(list(read_directory(directory(tmp_path, index), BERLIN)))
    assert found.suspended
    assert found.resume_pending_at == datetime(2026, 2, 17, 8, 10, tzinfo=UTC)
    kept = found.extra["imported"]
    assert (kept["something_new"], kept["model_override"]) == ([1], {"model": "m"})
    assert kept["session_key"] == "agent:main:telegram:dm:99"
    assert found.read() == Words()


def test_a_message_keeps_its_reasoning_its_tools_and_its_time(tmp_path: Path) -> None:
    message = {
        "role": "assistant",
        "content": None,
        "timestamp": "2026-02-17T09:01:00",
        "tool_calls": [{"id": "call_1"}],
        "reasoning": "why",
        "reasoning_details": [{"type": "summary"}],
        "finish_reason": "tool_calls",
    }
    answer = {"role": "tool", "content": "ok", "tool_call_id": "call_1", "tool_name": "terminal"}
    place = directory(tmp_path, {"k": entry("s1")}, s1=f"{json.dumps(message)}\n{json.dumps(answer)}\n")
    first, second = sessions(list(read_directory(place, BERLIN)))[0].read().turns
    assert first.at == second.at == datetime(2026, 2, 17, 8, 1, tzinfo=UTC)
    assert first.tool_calls == ({"id": "call_1"},)
    assert first.extra == {
        "reasoning": "why",
        "reasoning_details": [{"type": "summary"}],
        "finish_reason": "tool_calls",
    }
    assert (second.tool_call_id, second.tool_name, second.extra) == ("call_1", "terminal", {})


def test_each_bad_entry_costs_only_itself(tmp_path: Path) -> None:
    index = {
        "a": entry("s1"),
        "b": "no entry",
        "c": entry("../s2"),
        "d": entry("when", created_at="yesterday"),
        "e": {"session_key": "e"},
        "f": entry("s3", origin=None),
    }
    found = list(read_directory(directory(tmp_path, index)))
    assert [each.id for each in sessions(found)] == ["s1", "s3"]
    assert len(mishaps(found)) == 4
    assert sessions(found)[1].origin == {"platform": "telegram", "chat_type": "dm"}


@pytest.mark.parametrize("index", ["", '{"a": {', "[]", "null", "[" * 100_000])
def test_a_broken_index_costs_no_transcript(tmp_path: Path, index: str) -> None:
    place = directory(tmp_path, index, **{"20260217_090000_0badcafe": '{"role": "user", "content": "hi"}\n'})
    found = list(read_directory(place, BERLIN))
    assert len(mishaps(found)) == 1
    (one,) = sessions(found)
    assert (one.opened_at, one.origin) == (BEGUN, {})
    assert one.closed_at is not None
    assert said(one.read()) == [("user", "hi")]


def test_a_bad_line_costs_itself_and_a_half_written_one_too() -> None:
    lines = [
        b'{"role": "user", "content": "a"}\n',
        b"no JSON\n",
        b'["no message"]\n',
        b'{"content": "nobody"}\n',
        b'{"role": "user", "content": NaN}\n',
        b'{"role": 5, "content": "a number"}\n',
        b'{"role": "assistant", "content": "half',
    ]
    words = words_of(lines, "f", BEGUN)
    assert said(words) == [("user", "a"), ("user", None)]
    assert [each.where for each in words.mishaps] == ["f:2", "f:3", "f:4", "f:6", "f:7"]
    assert words.mishaps[-1].what == "it ends in the middle of this line"


def test_a_line_of_ten_megabytes_is_a_line(tmp_path: Path) -> None:
    long = "x" * (10 << 20)
    place = directory(tmp_path, {"k": entry("s1")}, s1=json.dumps({"role": "user", "content": long}) + "\n")
    (turn,) = sessions(list(read_directory(place)))[0].read().turns
    assert turn.content == long


def test_bytes_that_are_no_text_are_kept() -> None:
    (turn,) = words_of([b'{"role": "user", "content": "a\xffb"}\n'], "f", BEGUN).turns
    assert turn.content.encode(errors="surrogateescape") == b"a\xffb"


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s1.jsonl")
    (tmp_path / "s2.jsonl").mkdir()
    (tmp_path / "request_dump_x.jsonl").write_text("{}")
    found = list(read_directory(directory(tmp_path, {"k": entry("s1")})))
    assert mishaps(found) == ["it is no file"]
    with pytest.raises(ImportFailed):
        sessions(found)[0].read()


@given(st.binary(max_size=200))
def test_no_index_whatever_it_holds_raises(raw: bytes) -> None:
    list(entries_of(raw, "f"))


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_no_line_whatever_it_holds_raises(lines: list[bytes]) -> None:
    words = words_of([line + b"\n" for line in lines], "f", BEGUN)
    assert len(words.turns) + len(words.mishaps) <= len(lines)
