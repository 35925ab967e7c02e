from __future__ import annotations

import pytest

from perdure.agents import adapters
from perdure.live.story import story_of
from perdure.live.tail import TailView
from perdure.ports import HostView, ReadsTranscripts, RecentView
from tests.contract.agents.case import AgentCase, Transcript, every_case
from tests.unit.agents.hosts import HOME, DirectoryHost, jsonl

PATH = f"{HOME}/big.jsonl"
RECORDED = [(case, transcript) for case in every_case() for transcript in case.transcripts]


class CountingHost(DirectoryHost):
    """A machine that counts what is read of it."""

    taken = 0

    def read(self, path: str, *, limit: int = 1 << 20, tail: bool = False) -> bytes | None:
        found = super().read(path, limit=limit, tail=tail)
        self.taken += len(found or b"")
        return found


@pytest.fixture
def host(tmp_path: object) -> DirectoryHost:
    return DirectoryHost(str(tmp_path))


def test_only_a_view_of_the_end_is_one() -> None:
    whole: HostView = DirectoryHost("/")
    assert isinstance(TailView(whole), RecentView)
    assert not isinstance(whole, RecentView)


def test_of_a_long_transcript_the_end_is_read_and_tells_the_same(tmp_path: object) -> None:
    host = CountingHost(str(tmp_path))
    record = {"type": "user", "timestamp": "2026-11-15T08:00:00Z", "message": {"content": "x" * 1000}}
    last = {**record, "message": {"content": "the last task"}}
    host.write(PATH, jsonl(*[record] * 3000, last))
    reader = next(adapter for adapter in adapters() if adapter.name == "claude")
    assert isinstance(reader, ReadsTranscripts)
    turns = [*reader.turns("c", TailView(host), PATH)]
    assert turns[-1]["text"] == "the last task"
    assert 100 < len(turns) < 1000
    assert host.taken <= 1 << 19


def test_a_document_that_is_too_long_is_not_read_at_all(tmp_path: object) -> None:
    host = CountingHost(str(tmp_path))
    host.write(PATH, b"x" * 5000)
    view = TailView(host, whole=4096)
    assert view.read(PATH, limit=1 << 26) is None
    assert host.taken == 0
    assert view.read(PATH, limit=100) == b"x" * 100
    assert len(view.read(PATH, limit=1 << 26, tail=True) or b"") == 5000


@pytest.mark.parametrize(("case", "transcript"), RECORDED, ids=[f"{c.agent}-{t.conversation}" for c, t in RECORDED])
def test_every_recorded_conversation_tells_the_same_story_by_its_end(
    case: AgentCase, transcript: Transcript, host: DirectoryHost
) -> None:
    transcript.around(host)
    host.write(transcript.path, transcript.data)
    reader = case.adapter
    assert isinstance(reader, ReadsTranscripts)
    whole = story_of(reader.turns(transcript.conversation, host))
    recent = [*reader.turns(transcript.conversation, TailView(host))]
    assert story_of(recent) == whole
    assert whole.tells
    assert all(turn["agent"] is None for turn in recent) or case.agent == "copilot"


def test_a_database_is_asked_for_its_latest_messages_only(host: DirectoryHost) -> None:
    case, transcript = next((c, t) for c, t in RECORDED if t.data.startswith(b"SQLite"))
    transcript.around(host)
    host.write(transcript.path, transcript.data)
    reader = case.adapter
    assert isinstance(reader, ReadsTranscripts)
    whole = [*reader.turns(transcript.conversation, host)]
    end = [*reader.turns(transcript.conversation, TailView(host, rows=1))]
    main = [turn for turn in whole if turn["agent"] is None]
    assert 0 < len(end) < len(main)
    assert end == main[-len(end) :]
