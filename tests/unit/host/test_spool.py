from __future__ import annotations

import os
import subprocess
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.host.clock import now
from perdure.host.spool import KEPT, clear, newest, prune, spool_dir, stale
from tests.builders import NOON
from tests.conftest import PrivateHome

LONG_AGO = KEPT + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("name", "age", "goes"),
    [
        ("40-Stop", LONG_AGO, False),
        ("41-Stop.4242.3", LONG_AGO, True),
        ("41-Stop", KEPT, False),
        (".40-Stop.99", LONG_AGO, True),
        (".40-Stop.99", timedelta(0), False),
        ("not ours", LONG_AGO, True),
        ("²-Stop", LONG_AGO, True),
        ("41-Stop", timedelta(days=-9), False),
    ],
)
def test_what_is_stale(name: str, age: timedelta, goes: bool) -> None:
    assert stale([(name, NOON - age)], NOON, lambda pid: pid == 40) == ([name] if goes else [])


@given(st.lists(st.tuples(st.text(max_size=12), st.datetimes().map(lambda at: at.replace(tzinfo=NOON.tzinfo)))))
def test_no_record_of_a_living_process_is_stale(records: list[tuple[str, datetime]]) -> None:
    living = [(f"{number}-x", written) for number, (_, written) in enumerate(records)]
    assert stale(living, NOON, lambda pid: True) == []
    stale(records, NOON, lambda pid: False)


def put(path: str, age: timedelta = timedelta(0)) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb"):
        pass
    at = (now() - age).timestamp()
    os.utime(path, (at, at))
    return path


def ended() -> int:
    """Return the number of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid


def test_pruning_deletes_what_is_stale_and_nothing_else(private_home: PrivateHome) -> None:
    spool = spool_dir(private_home.state)
    kept = {
        put(f"{spool}/some/{os.getpid()}-Stop", LONG_AGO),
        put(f"{spool}/some/{ended()}-Stop"),
        put(f"{spool}/loose", LONG_AGO),
    }
    put(f"{spool}/some/{ended()}-Stop.1.2", LONG_AGO)
    put(f"{spool}/other/.{os.getpid()}-Stop.1", LONG_AGO)
    os.makedirs(f"{spool}/some/1-directory")
    os.symlink("/", f"{spool}/root")
    prune(spool, now())
    assert {os.path.join(at, name) for at, _, names in os.walk(spool) for name in names} == kept
    assert os.path.isdir(f"{spool}/some/1-directory")


def test_nothing_to_prune_is_nothing_to_do(private_home: PrivateHome) -> None:
    prune(spool_dir(private_home.state), now())
    assert not os.path.exists(private_home.state)


def test_the_newest_record(private_home: PrivateHome) -> None:
    directory = f"{spool_dir(private_home.state)}/some"
    assert newest(directory) is None
    put(f"{directory}/1-Stop", timedelta(hours=2))
    put(f"{directory}/.1-Stop.9")
    found = newest(directory)
    assert found is not None
    assert timedelta(hours=2) <= now() - found < timedelta(hours=3)


def test_clearing_takes_the_directory_with_it(private_home: PrivateHome) -> None:
    directory = f"{spool_dir(private_home.state)}/some"
    put(f"{directory}/1-Stop")
    put(f"{directory}/.1-Stop.9")
    assert clear(directory)
    assert os.listdir(spool_dir(private_home.state)) == []
    assert clear(directory)


def test_clearing_deletes_records_and_nothing_else(private_home: PrivateHome) -> None:
    directory = f"{spool_dir(private_home.state)}/some"
    put(f"{directory}/1-Stop.4242.3")
    notes = put(f"{directory}/notes.txt", LONG_AGO)
    os.mkdir(f"{directory}/2-directory")
    os.symlink(notes, f"{directory}/3-link")
    prune(spool_dir(private_home.state), now())
    assert not clear(directory)
    assert sorted(os.listdir(directory)) == ["2-directory", "3-link", "notes.txt"]
    assert os.listdir(spool_dir(private_home.state)) == ["some"]


def test_clearing_follows_no_link(private_home: PrivateHome) -> None:
    record = put(f"{private_home.root}/elsewhere/1-Stop")
    os.makedirs(spool_dir(private_home.state))
    os.symlink(os.path.dirname(record), f"{spool_dir(private_home.state)}/some")
    assert not clear(f"{spool_dir(private_home.state)}/some")
    assert os.path.exists(record)


def test_clearing_does_not_fail_while_hooks_run(private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """One writes to where the directory was, right before what is left of it is removed."""
    directory = f"{spool_dir(private_home.state)}/some"
    put(f"{directory}/1-Stop")
    rmdir = os.rmdir

    def hooked(path: str) -> None:
        if os.path.isdir(directory):
            put(f"{directory}/2-Stop")
        rmdir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", hooked)
        assert clear(directory)
    assert os.listdir(spool_dir(private_home.state)) == []
