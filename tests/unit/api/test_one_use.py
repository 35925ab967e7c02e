"""Secrets that are good once, how often one may be wrong, and the lines that are written of it."""

from __future__ import annotations

import os
import stat

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from perdure.api.caller import Caller, Scope
from perdure.api.logs import LineFile, Logs
from perdure.api.one_use import OneUse
from perdure.api.wrong_tries import WrongTries
from perdure.host.clock import now
from tests.conftest import PrivateHome


def test_a_secret_is_good_once_and_not_for_long() -> None:
    waiting: OneUse[str] = OneUse(30.0)
    first, second = waiting.issue("a", 0.0), waiting.issue("b", 10.0)
    assert waiting.use(first, 29.9) == "a"
    assert waiting.use(first, 29.9) is None
    assert waiting.use("pdr_wrong", 29.9) is None
    assert waiting.use(second, 40.0) is None


def test_only_so_many_wait() -> None:
    waiting: OneUse[int] = OneUse(30.0, most=3)
    secrets = [waiting.issue(number, 0.0) for number in range(5)]
    assert [waiting.use(secret, 1.0) for secret in secrets] == [None, None, 2, 3, 4]


@given(st.lists(st.integers(min_value=0, max_value=200), max_size=60).map(sorted))
def test_whoever_is_wrong_too_often_is_sent_away_until_the_span_is_over(times: list[int]) -> None:
    tries = WrongTries(allowed=3, within=60.0)
    for at in times:
        wait = tries.failed("127.0.0.1", at)
        assert wait is None or 0 < wait <= 60.0
        if wait is not None:
            assert sum(at - 60.0 <= each <= at for each in times) > 3
    assert tries.failed("10.0.0.1", 500.0) is None


def test_only_so_many_peers_are_remembered() -> None:
    tries = WrongTries(allowed=0, most=2)
    assert tries.failed("a", 0.0) is not None
    for peer in ("b", "c", "a"):
        assert tries.failed(peer, 0.0) is not None
    assert len(tries._peers) == 2


def test_a_file_of_lines_is_ones_own_and_is_set_aside(private_home: PrivateHome) -> None:
    path = os.path.join(private_home.home, "x.log")
    lines = LineFile(path, largest=100, kept=2)
    for number in range(30):
        lines.add(b"%030d\n" % number)
    assert sorted(os.listdir(private_home.home)) == ["x.log", "x.log.1", "x.log.2"]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path, "rb") as file:
        assert file.read().endswith(b"29\n")
    with open(f"{path}.1", "rb") as file:
        assert len(file.read()) <= 100


def test_what_is_written_down_holds_no_secret_and_no_end_of_a_line(private_home: PrivateHome) -> None:
    os.mkdir(private_home.state)
    logs = Logs(private_home.state, now)
    secret = "pdr_" + "k" * 43
    caller = Caller(uid=1, user="dev", scope=Scope.WRITE, token="main")
    logs.audit(caller, "send", "r1", text=f"--token {secret}\nsecond \udcff" + "x" * 5000)
    logs.access(path=f"/api/{secret}", status=404)
    logs.close()
    for name in ("audit.log", "access.log"):
        path = os.path.join(private_home.state, name)
        with open(path, "rb") as file:
            raw = file.read()
        assert secret.encode() not in raw
        assert raw.count(b"\n") == 1
        assert len(raw) < 1000
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert msgspec.json.decode(raw)["at"]
