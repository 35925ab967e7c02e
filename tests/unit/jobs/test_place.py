"""What can be said of a job from what is written down and who is there."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import Refused
from perdure.jobs import orders
from perdure.jobs.place import Began, Ended, Facts, JobPlace, job_path, judge
from perdure.model.job import JobProcess, JobStatus, Terminal

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
BOOTS = st.sampled_from(["one", "two"])


def began(boot: str) -> Began:
    return Began(
        supervisor=JobProcess(pid=10, started=5, boot=boot), process=JobProcess(pid=11, started=6, boot=boot), at=NOW
    )


ENDED = st.builds(
    Ended,
    exit_code=st.none() | st.integers(0, 255),
    killed=st.booleans(),
    at=st.just(NOW),
    why=st.none() | st.just("so"),
)
FACTS = st.builds(
    Facts,
    ordered=st.none() | BOOTS,
    began=st.none() | BOOTS.map(began),
    ended=st.none() | ENDED,
    boot=BOOTS,
    supervisor_runs=st.booleans(),
    process_runs=st.booleans(),
    is_gone=st.booleans(),
)


@given(facts=FACTS)
def test_an_end_that_was_seen_is_what_is_said(facts: Facts) -> None:
    judged = judge(facts)
    if facts.ended is not None:
        assert judged.status is (JobStatus.KILLED if facts.ended.killed else JobStatus.EXITED)
        assert (judged.exit_code, judged.ended_at) == (facts.ended.exit_code, facts.ended.at)
    else:
        assert judged.status in (JobStatus.RUNNING, JobStatus.LOST)
        assert (judged.exit_code, judged.ended_at) == (None, None)


@given(facts=FACTS)
def test_whoever_runs_is_never_lost_and_whoever_is_gone_never_runs(facts: Facts) -> None:
    if facts.ended is not None or facts.began is None:
        return
    judged = judge(facts)
    is_this_boot = facts.began.supervisor.boot == facts.boot
    is_there = is_this_boot and (facts.supervisor_runs or facts.process_runs)
    assert judged.status is (JobStatus.RUNNING if is_there else JobStatus.LOST)
    assert judged.why is not None or (facts.supervisor_runs and not facts.is_gone)


@given(facts=FACTS)
def test_what_is_not_plain_is_said_in_words(facts: Facts) -> None:
    judged = judge(facts)
    if judged.status is JobStatus.LOST:
        assert judged.why


@pytest.mark.parametrize(
    ("ordered", "status"),
    [("one", JobStatus.RUNNING), (None, JobStatus.RUNNING), ("two", JobStatus.LOST)],
)
def test_one_that_has_not_begun(ordered: str | None, status: JobStatus) -> None:
    facts = Facts(ordered=ordered, began=None, ended=None, boot="one")
    assert judge(facts).status is status


@pytest.mark.parametrize("id", ["", ".", "..", "a/b", "-a", "a b", "a\n", "é", "a" * 101])
def test_what_is_no_id_leads_nowhere(id: str) -> None:
    with pytest.raises(Refused):
        job_path("/home/dev/jobs", id)


def test_an_id_leads_into_the_directory() -> None:
    assert job_path("/home/dev/jobs", "proc_1aB-2") == "/home/dev/jobs/proc_1aB-2"


WORDS = st.binary(max_size=30).map(lambda raw: raw.replace(b"\0", b""))


@given(
    argv=st.lists(WORDS, min_size=1, max_size=6),
    env=st.dictionaries(WORDS.map(lambda raw: raw.replace(b"=", b"")).filter(bool), WORDS, max_size=6),
    cwd=WORDS,
    numbers=st.tuples(st.integers(0, 0o777), st.integers(0, 1 << 40), st.integers(0, 500), st.integers(0, 500)),
    cut=st.integers(0, 400),
)
def test_an_order_is_read_as_it_was_written_or_not_at_all(
    argv: list[bytes], env: dict[bytes, bytes], cwd: bytes, numbers: tuple[int, int, int, int], cut: int
) -> None:
    umask, cap, rows, columns = numbers
    sheet = orders.Sheet(boot=b"b-1", umask=umask, cap=cap, rows=rows, columns=columns, cwd=cwd, argv=argv, env=env)
    raw = orders.pack(sheet)
    read = orders.unpack(raw)
    assert read is not None
    for name in orders.Sheet.__slots__:
        assert getattr(read, name) == getattr(sheet, name)
    if cut < len(raw):
        part = orders.unpack(raw[:cut])
        assert part is None or raw[:cut].endswith(b"\0that is all")


@given(raw=st.binary(max_size=200))
def test_what_is_no_order_is_none(raw: bytes) -> None:
    orders.unpack(raw)
    orders.unpack(b"perdure order 1\0" + raw + b"\0that is all")


def test_what_was_half_written_is_not_there(tmp_path: object) -> None:
    place = JobPlace(os.path.join(str(tmp_path), "jobs", "one"))
    assert place.began() is None
    place.write_order(argv=["true"], cwd="/", env={}, terminal=Terminal(), cap=1 << 20)
    for name in ("began.json", "ended.json"):
        for raw in (b"", b" " * 512, b'{"exit_code":3,', b"\xff\xfe", b"[]"):
            with open(os.path.join(place.directory, name), "wb") as file:
                file.write(raw)
            assert place.began() is None
            assert place.ended() is None
    assert os.stat(place.directory).st_mode & 0o777 == 0o700
    assert os.stat(os.path.join(place.directory, "order")).st_mode & 0o777 == 0o600
    with pytest.raises(Refused):
        place.write_order(argv=["true"], cwd="/", env={}, cap=1 << 20)
    place.remove()
    place.remove()
    assert not os.path.exists(place.directory)


def test_what_nobody_ordered_can_be_given_up_before_it_is(tmp_path: object) -> None:
    place = JobPlace(os.path.join(str(tmp_path), "jobs", "one"))
    assert place.judgement().status is JobStatus.RUNNING
    assert place.give_up("Nobody came.", NOW)
    assert place.judgement().status is JobStatus.EXITED
    with pytest.raises(Refused):
        place.write_order(argv=["true"], cwd="/", env={}, cap=1 << 20)
