"""A pane that waits to resume an agent is that agent's, in that conversation."""

from __future__ import annotations

from perdure.model.identity import Evidence, Identity
from perdure.snapshots.awaited import awaited_agent
from perdure.tmux.wrap import Start, command
from tests.builders import a_process

ID = "0b6f2a0e-4f0d-4c29-9a63-0c1f4f1f2a11"
ARGV = ("simulant", "--resume", ID)


def waiting(**changes: object) -> tuple[str, ...]:
    start = Start(argv=ARGV, gate="/home/dev/1.gate", status="/home/dev/1.status", **changes)  # type: ignore[arg-type]
    return command(start)


def test_it_is_known_by_what_it_will_start() -> None:
    process = a_process(argv=waiting(environ={"SIMULANT_HOME": "/home/dev/sim"}), comm="sh", environ={"LANG": "C"})
    found = awaited_agent((process,))
    assert found is not None
    assert found.adapter.name == "simulant"
    assert (found.process.argv, found.process.pid) == (ARGV, process.pid)
    assert found.process.environ == {"LANG": "C", "SIMULANT_HOME": "/home/dev/sim"}


def test_its_conversation_is_as_certain_as_it_was() -> None:
    claims = [
        Identity(agent="simulant", conversation=ID, evidence=Evidence.ARGV, certain=True),
        Identity(agent="simulant", conversation="another", evidence=Evidence.GUESS),
        Identity(agent="simulant"),
    ]
    for asks, is_guess, certain in ((False, False, True), (True, False, True), (True, True, False)):
        found = awaited_agent((a_process(argv=waiting(asks=asks, is_guess=is_guess), comm="sh"),))
        assert found is not None
        first, *rest = found.claims(claims)
        assert (first.conversation, first.evidence, first.certain) == (ID, Evidence.LAUNCH, certain)
        # What somebody else wrote in the directory meanwhile is not what this pane will start.
        assert [each.conversation for each in rest] == [None]


def test_nobody_is_awaited_in_other_panes() -> None:
    assert awaited_agent(()) is None
    for argv in (("bash",), ("/bin/sh", "-c", "x", "perdure"), command(Start(argv=("vim", "x"))), command(Start())):
        assert awaited_agent((a_process(argv=argv, comm="sh"),)) is None
