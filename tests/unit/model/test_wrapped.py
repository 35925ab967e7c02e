"""What is kept of the command of a pane that was restored."""

from __future__ import annotations

import shlex

from perdure.model.wrapped import shortened
from perdure.restore.match import step_in
from perdure.tmux.wrap import Start, command

FILES = "/home/dev/.local/state/perdure/restores/r1"


def printed(start: Start) -> str:
    return shlex.join(command(start))


def test_a_restored_pane_keeps_whose_it_is_and_little_else() -> None:
    agent = printed(Start(argv=("agent", "--resume", "c1"), gate=f"{FILES}/7.gate", status=f"{FILES}/7.status"))
    text = printed(Start(text=f"{FILES}/3.text"))
    assert [step_in(shortened(each), "r1") for each in (agent, text)] == [7, 3]
    assert step_in(shortened(agent), "r2") is None
    assert max(len(shortened(agent)), len(shortened(text))) < 100


def test_captured_words_do_not_speak_for_the_pane() -> None:
    other = "/restores/r1/9.text"
    claims = printed(Start(argv=("agent", other), again=other, status=f"{FILES}/7.status"))
    assert step_in(shortened(claims), "r1") == 7


def test_what_others_started_stays_as_it_is() -> None:
    theirs = ("", "htop", '/bin/sh -c "sleep 1; exec sh"', f"cat {FILES}/3.text perdure prelude x")
    assert [shortened(each) for each in theirs] == list(theirs)
