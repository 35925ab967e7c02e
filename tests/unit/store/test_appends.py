"""Those who append at once: written together, and nobody held up for others who do not come."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from perdure.store import appends
from perdure.store.appends import Append, Appends
from tests.builders import at


def an_append() -> Append:
    return Append("c1", [], None, at(0))


def test_one_who_is_alone_after_a_crowd_does_not_go_on_waiting_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    begun, may_go_on = threading.Event(), threading.Event()

    def commit(batch: list[Append]) -> None:
        written.append(len(batch))
        begun.set()
        may_go_on.wait()

    all_appends = Appends(commit)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(all_appends.run, an_append())
        begun.wait()
        crowd = [pool.submit(all_appends.run, an_append()) for _ in range(7)]
        while len(all_appends._waiting) < 7:
            threading.Event().wait(0.001)
        may_go_on.set()
        for each in (first, *crowd):
            each.result()
    assert written == [1, 7]
    looks: list[float] = []
    monkeypatch.setattr(appends, "sleep", looks.append)
    all_appends.run(an_append())
    assert written == [1, 7, 1]
    assert len(looks) == 1
