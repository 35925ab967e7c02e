"""Whoever appends may be interrupted at any moment, as by Ctrl-C: nobody else waits for good, and nothing is lost."""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from types import CodeType, FrameType, TracebackType
from typing import Any

import pytest

from perdure import errors
from perdure.store import appends, door, pooled, sqlite, together
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import a_chat, a_turn

pytestmark = pytest.mark.parametrize("place", ["sqlite"], indirect=True)

#: What an append goes through, where somebody else could be left waiting.
MODULES = frozenset(str(module.__file__) for module in (appends, door, together, sqlite, pooled))
LONG = 60.0


class Interrupted(BaseException):
    """What a signal's handler raises."""


@cache
def strikes(code: CodeType) -> frozenset[int]:
    """Where Python looks whether there is a signal: behind every call, and where a function begins.

    Nowhere else, such as between the last line of a `with` and its end.
    """
    found = list(dis.get_instructions(code))
    return frozenset(after.offset for before, after in pairwise(found) if before.opname.startswith(("CALL", "RESUME")))


class Interruption:
    """Raises in the so-manieth of such moments in these modules that this thread comes to, and in no other."""

    def __init__(self, moments: int) -> None:
        self.left = moments
        self.where = "nowhere"

    def __enter__(self) -> None:
        sys.settrace(self._called)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> bool:
        sys.settrace(None)
        return kind is Interrupted

    def _called(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in MODULES:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._struck

    def _struck(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        if event == "opcode" and frame.f_lasti in strikes(frame.f_code):
            self.left -= 1
            if self.left == 0:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise Interrupted
        return self._struck


class Others:
    """Threads that append meanwhile, each a few turns; and what they were told was written."""

    def __init__(self, store: Store, count: int, name: str) -> None:
        self._store = store
        self._name = name
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        self._threads = [threading.Thread(target=self._append, args=(each,), daemon=True) for each in range(count)]
        for thread in self._threads:
            thread.start()

    def _append(self, each: int) -> None:
        for number in range(4):
            text = f"{self._name} {each} {number}"
            try:
                self._store.chats.append_turns("common", [a_turn(text)], at(1))
            except errors.StoreUnusable as error:
                self.refused.append(error.message)
            else:
                self.acknowledged.append(text)

    def are_done(self) -> bool:
        for thread in self._threads:
            thread.join(LONG)
        return not any(thread.is_alive() for thread in self._threads)


@pytest.mark.parametrize("others", [0, 3])
def test_nobody_waits_for_good_wherever_one_is_interrupted(threaded: Store, others: int) -> None:
    threaded.chats.begin_chat(a_chat("common"))
    expected: list[str] = []
    moments = 0
    is_over = False
    while not is_over:
        moments += 1
        crowd = Others(threaded, others, f"crowd {moments}")
        interruption = Interruption(moments)
        with interruption:
            threaded.chats.append_turns("common", [a_turn("interrupted")], at(1))
        # Until it is not interrupted any more: in a crowd that may take more of them the one time than the other.
        is_over = interruption.left > (100 if others else 0)
        assert crowd.are_done(), f"somebody waits since {interruption.where}"
        assert all("interrupted" in message for message in crowd.refused)
        expected += crowd.acknowledged
        behind = f"behind {moments}"
        finish = threading.Thread(target=threaded.chats.append_turns, args=("common", [a_turn(behind)], at(2)))
        finish.daemon = True
        finish.start()
        finish.join(LONG)
        assert not finish.is_alive(), f"nobody gets in since {interruption.where}"
        expected.append(behind)
    said = [turn.content for turn in threaded.chats.load_turns("common").turns if turn.content != "interrupted"]
    assert moments > 50
    # Everything that was acknowledged, and nothing twice.
    assert set(expected) <= set(said)
    assert len(set(map(str, said))) == len(said)
    assert threaded.check() == ()
