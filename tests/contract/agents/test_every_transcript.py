"""Every recorded transcript yields its turns, and nothing that is missing from one makes reading it fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import cast

import pytest

from perdure.model.identity import Evidence, Identity
from perdure.ports import ReadsTranscripts
from tests.contract.agents import samples
from tests.contract.agents.case import AgentCase, Transcript, every_case
from tests.unit.agents.hosts import DirectoryHost, process

RECORDED = [(case, transcript) for case in every_case() for transcript in case.transcripts]
each = pytest.mark.parametrize(
    ("case", "transcript"), RECORDED, ids=[f"{case.agent}-{transcript.conversation}" for case, transcript in RECORDED]
)
ROLES = {"user", "assistant", "tool", "system"}


@pytest.fixture
def host(tmp_path: object) -> DirectoryHost:
    return DirectoryHost(str(tmp_path))


def turns(case: AgentCase, transcript: Transcript, host: DirectoryHost) -> list[dict[str, object]]:
    reader = case.adapter
    assert isinstance(reader, ReadsTranscripts)
    return [dict(turn) for turn in reader.turns(transcript.conversation, host)]


@each
def test_a_recorded_transcript_yields_its_turns(case: AgentCase, transcript: Transcript, host: DirectoryHost) -> None:
    transcript.around(host)
    host.write(transcript.path, transcript.data)
    found = turns(case, transcript, host)
    assert len(found) == transcript.turns
    for turn, (role, beginning) in zip(found, transcript.begins, strict=False):
        assert turn["role"] == role
        assert cast(str, turn["text"]).startswith(beginning)
    for turn in found:
        assert set(turn) == {"role", "text", "tool", "tokens", "time", "agent", "detail", "failed", "final"}
        assert turn["role"] in ROLES
        assert isinstance(turn["text"], str)
        assert turn["time"] is None or cast(datetime, turn["time"]).tzinfo is not None


@each
def test_the_path_that_was_found_before_reads_the_same(
    case: AgentCase, transcript: Transcript, host: DirectoryHost
) -> None:
    transcript.around(host)
    host.write(transcript.path, transcript.data)
    found = turns(case, transcript, host)
    reader = cast(ReadsTranscripts, case.adapter)
    assert [dict(turn) for turn in reader.turns(transcript.conversation, host, transcript.path)] == found


def cuts(transcript: Transcript) -> Iterator[bytes]:
    """Yield the file cut off within every line, with one whole line before the cut, which is all a reader can mix up."""
    data = transcript.data
    if data.startswith(b"SQLite format 3"):
        yield from (data[:end] for end in range(0, len(data), 509))
        return
    lines = data.splitlines(keepends=True)
    header = lines[0] if transcript.header and lines else b""
    before = b""
    for line in lines:
        yield from (header + before + line[:end] for end in samples.ends(line))
        before = line


class Cut(DirectoryHost):
    """A machine on which one file is what we say it is, without a disk in between."""

    path = ""
    data = b""

    def read(self, path: str, *, limit: int = 1 << 20, tail: bool = False) -> bytes | None:
        if path != self.path:
            return super().read(path, limit=limit, tail=tail)
        return self.data[-limit:] if tail else self.data[:limit]

    def size(self, path: str) -> int | None:
        return len(self.data) if path == self.path else super().size(path)

    def cut(self, data: bytes) -> None:
        self.data = data
        if data.startswith(b"SQLite"):  # which reads the disk
            self.write(self.path, data)


@each
def test_cut_off_anywhere_nothing_raises(case: AgentCase, transcript: Transcript, tmp_path: object) -> None:
    host = Cut(str(tmp_path))
    transcript.around(host)
    host.path = host.write(transcript.path, b"")
    identity = Identity(agent=case.agent, conversation=transcript.conversation, evidence=Evidence.ARGV)
    for count, data in enumerate(cuts(transcript)):
        host.cut(data)
        turns(case, transcript, host)
        if count % 16 == 0:
            case.adapter.describe(identity, process(case.agent), host)


@each
def test_a_transcript_that_is_something_else_altogether_has_no_turns(
    case: AgentCase, transcript: Transcript, host: DirectoryHost
) -> None:
    transcript.around(host)
    for data in (b"", b"\0" * 4096, b"[[[[" * 1000, b"null\n" * 10, b'{"type":' * 500, os.urandom(1000)):
        host.write(transcript.path, data)
        assert turns(case, transcript, host) == []


def test_every_agent_with_files_of_its_own_has_a_transcript() -> None:
    reading = {case.agent for case in every_case() if isinstance(case.adapter, ReadsTranscripts)}
    assert reading == {case.agent for case in every_case() if case.transcripts}
