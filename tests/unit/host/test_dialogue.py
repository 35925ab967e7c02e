from __future__ import annotations

import os
import sys

import pytest

from perdure.errors import PerdureError
from perdure.host import dialogue
from perdure.host.dialogue import Dialogue
from perdure.host.waiting import wait_until

ECHO = "import sys\nfor line in sys.stdin: print(line.strip()[::-1], flush=True)"


def start(program: str) -> Dialogue:
    return Dialogue([sys.executable, "-c", program], environ=os.environ, cwd="/")


def test_it_answers_in_lines_for_as_long_as_it_is_asked() -> None:
    talk = start(ECHO)
    try:
        for word in (b"abc", b"x" * 200_000, b""):
            talk.tell(word, 20)
            assert talk.hear(20) == word[::-1]
    finally:
        talk.close()
        talk.close()
    assert not os.path.exists(f"/proc/{talk.pid}")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("pass", "has ended"),
        ("import time; time.sleep(60)", "did not answer"),
        ("print('no end', end='')", "has ended"),
        ("import sys\nwhile True: sys.stdout.write('x' * 4096)", "too much"),
    ],
)
def test_one_that_does_not_is_given_up(program: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialogue, "LONGEST", 1 << 16)
    talk = start(program)
    try:
        with pytest.raises(PerdureError, match=why):
            talk.hear(0.3 if "did not" in why else 20)
    finally:
        talk.close()


def test_one_that_does_not_listen_is_given_up() -> None:
    talk = start("import time; time.sleep(60)")
    try:
        with pytest.raises(PerdureError, match="does not read"):
            talk.tell(b"x" * (1 << 20), 0.3)
    finally:
        talk.close()


def test_what_it_has_started_ends_with_it() -> None:
    talk = start("import os, time\npid = os.fork()\nif pid: print(pid, flush=True)\ntime.sleep(60)")
    below = int(talk.hear(20))
    talk.close()
    with pytest.raises(PerdureError, match="cannot be started"):
        Dialogue(["/nowhere/at/all"], environ={}, cwd="/")
    # It belongs to whoever collects orphans now. The signal is on its way, and it may not have been collected yet.
    assert wait_until(lambda: has_ended(below), 20)


def has_ended(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True
