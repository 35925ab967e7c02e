from __future__ import annotations

import os
import socket
from datetime import UTC, datetime

import pytest

from perdure.host.files import Files
from perdure.host.users import run_as, user_by_uid
from perdure.model.text import decode
from perdure.ports import HostView
from tests.builders import NOON, a_process, at


@pytest.fixture
def home() -> str:
    return os.environ["HOME"]


@pytest.fixture
def files(home: str) -> Files:
    return Files(
        home, spool=os.path.join(home, "spool"), query=lambda path, sql, parameters: [(path, sql, *parameters)]
    )


def put(path: str | bytes, content: bytes = b"content") -> str:
    with open(path, "wb") as file:
        file.write(content)
    return decode(os.fsencode(path))


def test_it_is_a_host_view(files: Files, home: str) -> None:
    view: HostView = files
    assert view.home == home


def test_the_beginning_and_the_end_of_a_file(files: Files, home: str) -> None:
    path = put(f"{home}/x", b"0123456789")
    assert files.read(path) == b"0123456789"
    assert files.read(path, limit=3) == b"012"
    assert files.read(path, limit=3, tail=True) == b"789"
    assert files.read(path, limit=30, tail=True) == b"0123456789"
    assert files.read(path, limit=10, tail=True) == b"0123456789"
    assert files.read(path, limit=0) == b""
    assert files.read(put(f"{home}/empty", b""), tail=True) == b""


def test_more_than_fits_into_one_read(files: Files, home: str) -> None:
    content = os.urandom(3 << 20)
    path = put(f"{home}/big", content)
    assert files.read(path, limit=4 << 20) == content
    assert files.read(path, limit=2 << 20, tail=True) == content[-(2 << 20) :]
    assert files.read(path) == content[: 1 << 20]


def test_a_file_that_says_it_is_empty_is_read_all_the_same(files: Files) -> None:
    assert files.size("/proc/self/status") == 0
    assert (files.read("/proc/self/status", tail=True) or b"").startswith(b"Name:")


def test_what_is_no_file_is_not_read(files: Files, home: str) -> None:
    """A fifo least of all: whoever opens it waits for somebody to write."""
    os.mkfifo(f"{home}/fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{home}/sock")
    for path in (f"{home}/fifo", f"{home}/sock", home, "/dev/null", f"{home}/absent", f"{home}/x\0y", "", "\ud800"):
        assert files.read(path) is None, path


def test_links_are_followed_and_dangling_or_endless_ones_are_nothing(files: Files, home: str) -> None:
    put(f"{home}/x")
    os.symlink("x", f"{home}/link")
    os.symlink("nowhere", f"{home}/dangling")
    os.symlink("loop", f"{home}/loop")
    assert files.read(f"{home}/link") == b"content"
    assert files.physical(f"{home}/link") == os.path.realpath(f"{home}/x")
    assert files.read(f"{home}/dangling") is files.read(f"{home}/loop") is None
    assert files.modified_at(f"{home}/loop") is None
    assert files.size(f"{home}/dangling") is None
    assert files.physical(f"{home}/absent/y") == os.path.realpath(home) + "/absent/y"
    assert files.physical("x\0y") == "x\0y"


def test_names_in_a_directory_byte_for_byte(files: Files, home: str) -> None:
    for name in (b"plain", b"caf\xe9", b"new\nline", "日本語".encode()):
        put(os.path.join(os.fsencode(home), name))
    assert sorted(files.names(home)) == sorted(["plain", "caf\uefe9", "new\nline", "日本語"])
    assert files.read(f"{home}/caf\uefe9") == b"content"
    assert files.size(f"{home}/caf\uefe9") == 7
    for path in (f"{home}/plain", f"{home}/absent", "x\0y"):
        assert list(files.names(path)) == []


def test_when_a_file_was_written(files: Files, home: str) -> None:
    path = put(f"{home}/x")
    os.utime(path, (NOON.timestamp(), NOON.timestamp()))
    assert files.modified_at(path) == NOON
    assert files.modified_at(f"{home}/absent") is None
    assert files.created_at(f"{home}/absent") is None
    born = files.created_at(path)
    assert born is None or born.tzinfo is UTC


@pytest.mark.parametrize("seconds", [1e15, -1e15, 253402300800])
def test_a_time_no_calendar_has_is_not_known(files: Files, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """File systems keep times beyond the year 9999."""
    status = os.stat_result((0o100644, 1, 1, 1, 0, 0, 0, 0, int(seconds), 0))
    monkeypatch.setattr(Files, "_status", staticmethod(lambda path: status))
    assert files.modified_at("x") is None
    assert files.created_at("x") is None


def test_what_a_process_holds_open(files: Files, home: str) -> None:
    path = put(os.path.join(os.fsencode(home), b"caf\xe9"))
    with open(os.path.join(os.fsencode(home), b"caf\xe9"), "rb"), socket.socket():
        assert path in files.open_files(os.getpid())
        assert all(name.startswith("/") for name in files.open_files(os.getpid()))
    assert list(files.open_files(2**22 + 1)) == []


def drop(home: str, agent: str, name: str, content: bytes, when: datetime) -> None:
    os.makedirs(f"{home}/spool/{agent}", exist_ok=True)
    path = put(f"{home}/spool/{agent}/{name}", content)
    os.utime(path, (when.timestamp(), when.timestamp()))


def test_hooks_of_that_very_process_newest_first(files: Files, home: str) -> None:
    process = a_process(40, started_at=NOON)
    drop(home, "some", "40-a", b"first", at(1))
    drop(home, "some", "40-b", b"second", at(2))
    drop(home, "some", "40-0", b"of the one before", at(-1))
    drop(home, "some", "400-a", b"another process", at(3))
    drop(home, "other", "40-a", b"another agent", at(3))
    os.mkdir(f"{home}/spool/some/40-d")
    assert [record for _, record in files.hooks("some", process)] == [b"second", b"first"]
    assert list(files.hooks("nobody", process)) == []


def test_of_two_records_of_one_instant_a_start_is_newer_than_an_end(files: Files, home: str) -> None:
    """Clocks of file systems tick every few milliseconds, and /clear makes both at once."""
    for name in ("40-SessionStart.1.2", "40-SessionEnd.1.2", "40-UserPromptSubmit.1.2"):
        drop(home, "some", name, name.encode(), at(1))
    newest = [record for _, record in files.hooks("some", a_process(40, started_at=NOON))]
    assert newest == [b"40-UserPromptSubmit.1.2", b"40-SessionStart.1.2", b"40-SessionEnd.1.2"]


def test_queries_go_where_they_were_given_to(files: Files) -> None:
    assert files.query("/x", "SELECT ?", ("a",)) == [("/x", "SELECT ?", "a")]


def test_an_unreadable_file_costs_only_itself(files: Files, home: str) -> None:
    nobody = user_by_uid(65534)
    if os.getuid() != 0 or nobody is None:
        pytest.skip("only root can become somebody who may not read")
    put(f"{home}/secret")
    os.chmod(f"{home}/secret", 0o600)
    os.mkdir(f"{home}/closed", 0o700)
    for path in (home, os.path.dirname(home)):
        os.chmod(path, 0o755)
    facts = (
        lambda: files.read(f"{home}/secret"),
        lambda: files.size(f"{home}/secret"),
        lambda: files.size(f"{home}/closed/x"),
        lambda: list(files.names(f"{home}/closed")),
        lambda: list(files.open_files(1)),
    )
    assert run_as(nobody, lambda: repr([fact() for fact in facts]).encode()) == b"[None, 7, None, [], []]"
