"""What is told of a restore that was run aside."""

from __future__ import annotations

import msgspec

from perdure.daemon.outcome import message_of
from perdure.host.run import Ran
from perdure.model.plan import Result
from perdure.restore.shown import Restored, StepRow, Summary


def _row(n: int, result: Result, why: str = "the pane is gone") -> StepRow:
    return StepRow(
        n=n,
        target=f"work:{n}.0",
        action="resume",
        agent="claude",
        conversation=None,
        argv=(),
        cwd="/home/dev",
        result=result,
        why=why,
        user="dev",
        socket="/tmp/tmux-1000/default",
        pane=None,
        screen=(),
    )


def _out(*rows: StepRow) -> bytes:
    restored = Restored(snapshot=None, snapshots=(), steps=rows, summary=Summary(), errors=())
    return msgspec.json.encode(restored)


def test_panes_that_have_failed_are_named_with_why() -> None:
    out = _out(_row(1, Result.VERIFIED, "as it was"), _row(2, Result.FAILED))
    assert message_of(Ran(4, out, "")) == "work:2.0: the pane is gone"
    assert message_of(Ran(4, out, "perdure: it waits.\n")) == "perdure: it waits.\nwork:2.0: the pane is gone"


def test_of_many_some_are_named() -> None:
    told = message_of(Ran(4, _out(*(_row(n, Result.FAILED) for n in range(9))), ""))
    assert told.endswith("work:2.0: the pane is gone; and 6 more")


def test_one_that_ended_before_it_could_say_anything_has_what_it_said_instead() -> None:
    assert message_of(Ran(-9, b"", "")) == ""
    assert message_of(Ran(6, b'{"error": 1}', "perdure: Another restore is at work.\n")).endswith("at work.")


def test_nothing_is_wrong_with_one_that_went_well() -> None:
    assert message_of(Ran(0, _out(_row(1, Result.DONE)), "")) == ""
