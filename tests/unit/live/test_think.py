from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from perdure.agents._records import turn
from perdure.live.story import story_of
from perdure.live.think import EVIDENCE, carried_over, is_news, think
from perdure.live.words import ASKED, LONGEST, one_line
from perdure.model.git import GitFacts
from perdure.model.identity import AgentDetails, Evidence
from perdure.model.run import Reason, RunState
from perdure.model.thought import Cue, Rest, Thought, ThoughtSource, ThoughtState
from tests.builders import NOON, an_identity, at
from tests.unit.live.events import a_run, a_status
from tests.unit.live.turns import Turn, an_agent, asked, called, done, returned, said

TASK = asked("make the parser faster")
EDITED = done("Edit", "/home/dev/work/src/parser.py")
CHECKED = done("Bash", "pytest -q")
LOOKED = done("Bash", "git status --short")
COMMITTED = done("Bash", "git add -A && git commit -m faster")
FINISHED = said("The parser is twice as fast now.\n\nAll tests pass.", final=True)


def text(turns: list[Turn], state: RunState = RunState.BUSY, reason: Reason | None = None) -> str | None:
    return think(an_agent(state, reason), turns, None, NOON, None).text


@pytest.mark.parametrize(
    ("turns", "line"),
    [
        ([TASK], "working on: make the parser faster"),
        ([TASK, called("Edit", "/home/dev/work/src/parser.py")], "editing parser.py"),
        ([TASK, *EDITED], "editing parser.py"),
        ([TASK, called("apply_patch", "a.py, b/c.py, d.py")], "editing a.py and 2 more"),
        ([TASK, called("exec_command", "uv run pytest -q tests")], "running the tests"),
        ([TASK, called("run_shell_command", "cargo build --release")], "building"),
        ([TASK, called("bash", "ruff check .")], "checking the code"),
        ([TASK, called("bash", "git add -A && git commit -m x")], "committing"),
        ([TASK, called("bash", "git diff --stat")], "looking over the changes"),
        ([TASK, called("bash", "ls -la")], "running ls -la"),
        ([TASK, called("Read", "/etc/hosts")], "reading hosts"),
        ([TASK, called("str_replace_based_edit_tool", "view /a/b.py")], "reading b.py"),
        ([TASK, called("grep", "def main")], "looking for def main"),
        ([TASK, called("mcp__db__lookup")], "using mcp__db__lookup"),
        ([TASK, said("I look at the lexer first.")], "I look at the lexer first."),
        ([TASK, *EDITED, asked("now the lexer")], "working on: now the lexer"),
        ([FINISHED], None),
        # It is through with that, and what it was asked since is not written down yet.
        ([TASK, FINISHED], None),
    ],
)
def test_a_busy_run_says_what_it_is_at(turns: list[Turn], line: str | None) -> None:
    assert text(turns) == line


def test_a_run_that_waits_says_what_for() -> None:
    call = called("Bash", "rm -rf build")
    assert text([TASK, call], RunState.ATTENTION, Reason.PERMISSION) == "waiting: wants to run rm -rf build"
    assert text([TASK], RunState.ATTENTION, Reason.PERMISSION) == "waiting: asks for permission"
    asks = said("Two ways are open.\nI prefer the first. Shall I **rewrite** the lexer too?", final=True)
    assert text([TASK, asks], RunState.IDLE) == "done: Shall I rewrite the lexer too?"
    assert text([TASK, FINISHED], RunState.IDLE) == "done: The parser is twice as fast now."
    assert text([TASK], RunState.ATTENTION, Reason.LOGIN) == "waiting: somebody has to log in"
    assert text([TASK, called("AskUserQuestion")], RunState.ATTENTION, Reason.QUESTION) == "waiting: asks a question"


def test_what_is_said_of_it_never_contradicts_what_it_does() -> None:
    """The last words are of the turn before this one."""
    assert text([TASK, FINISHED], RunState.ERROR) == "stopped by an error: make the parser faster"
    assert text([TASK, FINISHED], RunState.ATTENTION, Reason.STALLED) is None
    assert text([TASK, FINISHED], RunState.ATTENTION) is None
    assert text([TASK, called("Bash", "pytest")], RunState.IDLE) is None


@pytest.mark.parametrize("reason", [Reason.DONE, Reason.QUESTION, None])
def test_only_whoever_has_called_for_a_person_asks(reason: Reason | None) -> None:
    """Words that end with a question mark are an answer like others: that somebody is asked is told, never guessed."""
    state = RunState.ATTENTION if reason else RunState.UNKNOWN
    prose = [TASK, said("It works now. Anything else?", final=True)]
    expected = "waiting: asks a question" if reason is Reason.QUESTION else "done: Anything else?"
    assert text(prose, state, reason) == expected
    asks = [TASK, called("AskUserQuestion", "Which lexer?")]
    asked_for = "waiting: asks Which lexer?" if reason is not Reason.DONE else None
    assert text(asks, state, reason) == asked_for


@pytest.mark.parametrize("key", ["ghp_abcdefghijklmnopqrstuvwxyz0123456789", "sk_live_abcdefghijklmnop0123456789"])
def test_no_key_comes_out_of_the_marks_it_stood_in(key: str) -> None:
    for answer in (f"Your token is **{key}**.", f"_{key}_ it is, `{key}`"):
        line = text([asked("give me a key"), said(answer)], RunState.IDLE) or ""
        assert key[8:] not in line
    line = text([asked("name it"), said("Set `MY_NAME` in __init__.py and _look_.")], RunState.IDLE) or ""
    assert line.endswith("Set MY_NAME in __init__.py and look.")


@pytest.mark.parametrize("evidence", [Evidence.REGISTRY, Evidence.KEPT])
@pytest.mark.parametrize("state", [RunState.BUSY, RunState.IDLE, RunState.UNKNOWN])
def test_what_runs_where_an_agent_was_has_none_of_its_objective(state: RunState, evidence: Evidence) -> None:
    """Nobody asked for it what the agent was asked for, and it neither waits for a person nor has work to commit."""
    there = an_agent(
        state, identity=an_identity(evidence=evidence), details=AgentDetails(task="make the parser faster")
    )
    left = structs.replace(there, program=None, command="sleep")
    ended = think(structs.replace(left, status=a_status(RunState.EXITED)), [TASK], None, NOON, None)
    for turns in ([], [TASK], [TASK, *EDITED, FINISHED]):
        thought = think(left, turns, None, at(1), ended)
        assert (thought.text, thought.objective, thought.cues) == (None, None, ())
        assert thought.state is not ThoughtState.SLEEPING
    assert think(there, [], None, at(1), ended).objective == "make the parser faster"


def test_a_shell_says_what_runs_in_it_and_never_sleeps() -> None:
    shell = a_run(status=a_status(RunState.BUSY), command="make")
    assert think(shell, (), None, NOON, None).text == "running make"
    idle = structs.replace(shell, status=a_status(), last_activity_at=NOON)
    thought = think(idle, [FINISHED], None, at(7200), None)
    assert (thought.rest, thought.state) == (Rest.DROWSY, ThoughtState.ACTIVE)


@pytest.mark.parametrize(
    ("turns", "state", "waits"),
    [
        ([TASK, said("Done.", final=True)], RunState.IDLE, True),
        ([TASK, said("Done.", final=True)], RunState.UNKNOWN, True),
        ([TASK, said("Done.", final=True)], RunState.BUSY, False),
        ([TASK, said("Let me see.", final=False)], RunState.IDLE, False),
        # The transcript does not say whether more is to come: the run has to be seen to wait.
        ([TASK, said("Done.")], RunState.IDLE, True),
        ([TASK, said("Done.")], RunState.UNKNOWN, False),
        ([TASK, said("Done.", final=True), asked("more")], RunState.IDLE, False),
        ([TASK, said("Done.", final=True), called("Bash", "ls")], RunState.IDLE, False),
        ([TASK, said("Done.", final=True), returned("Bash", "ls")], RunState.IDLE, False),
        ([TASK, called("AskUserQuestion")], RunState.ATTENTION, True),
        ([TASK, *done("AskUserQuestion")], RunState.IDLE, False),
        ([TASK], RunState.IDLE, False),
        ([], RunState.IDLE, False),
    ],
)
def test_it_sleeps_only_when_the_transcript_says_that_it_waits(turns: list[Turn], state: RunState, waits: bool) -> None:
    thought = think(an_agent(state, last_activity_at=at(-7200)), turns, None, NOON, None)
    assert (thought.rest is Rest.SLEEPING) == waits == (thought.state is ThoughtState.SLEEPING)
    assert (Cue.AWAITING_USER in thought.cues) == waits


def test_an_answer_is_of_its_time_until_something_follows_it() -> None:
    answer = turn("assistant", "Done.", time=at(5), final=True)
    assert story_of([asked("do it"), answer]).answered_at == at(5)
    for after in (asked("more"), called("Bash"), turn("assistant", "And …", final=False)):
        assert story_of([asked("do it"), answer, after]).answered_at is None
    assert story_of([turn("assistant", "Theirs.", time=at(6), agent="sub"), answer]).answered_at == at(5)


def test_a_sub_agents_words_are_not_the_agents() -> None:
    other = {**said("I am through.", final=True), "agent": "sub"}
    assert think(an_agent(RunState.IDLE), [TASK, called("Task", "look"), other], None, NOON, None).cues == ()


@pytest.mark.parametrize(
    ("turns", "cue"),
    [
        ([*EDITED, *CHECKED, *LOOKED], Cue.COMMIT_READY),
        (
            [*done("apply_patch", "a.py"), *done("exec_command", "cargo test"), *done("exec_command", "git diff")],
            Cue.COMMIT_READY,
        ),
        ([*EDITED, *done("Bash", "pytest -q && git status")], Cue.COMMIT_READY),
        ([*EDITED, *CHECKED, *LOOKED, *COMMITTED], None),
        ([*EDITED, *CHECKED, *LOOKED, *done("Bash", "git commit -m x", failed=True)], Cue.COMMIT_READY),
        ([*EDITED, *CHECKED, *LOOKED, *EDITED], Cue.VALIDATION_MISSING),
        ([*EDITED, *CHECKED], Cue.DIRTY_CHECK_MISSING),
        ([*EDITED], Cue.VALIDATION_MISSING),
        ([*EDITED, *done("Bash", "pytest -q", failed=True), *LOOKED], Cue.VALIDATION_MISSING),
        ([*CHECKED, *LOOKED], None),
        ([*done("Edit", "a.py", failed=True), *CHECKED, *LOOKED], None),
        ([*CHECKED, *LOOKED, *EDITED], Cue.VALIDATION_MISSING),
        # It may have gone well, and may not: nothing is said.
        ([*EDITED, *done("Bash", "pytest -q | tail -3"), *LOOKED], None),
        ([*EDITED, *done("Bash", "pytest -q", failed=None), *LOOKED], None),
        ([*EDITED, *done("Bash", "pytest; true"), *LOOKED], None),
        ([*EDITED, *CHECKED, *done("Bash", "git diff | head")], None),
        # Somebody else was at the files in between.
        ([*EDITED, *CHECKED, *LOOKED, *done("Task", "tidy up")], Cue.VALIDATION_MISSING),
        ([*EDITED, *CHECKED, *LOOKED, *done("invoke_agent")], Cue.VALIDATION_MISSING),
        ([*EDITED, *CHECKED, *LOOKED, *done("Bash", "sed -i s/a/b/ x.py")], Cue.VALIDATION_MISSING),
        ([*EDITED, *CHECKED, *LOOKED, *done("Bash", "git checkout main -- x.py")], Cue.VALIDATION_MISSING),
        ([*EDITED, *CHECKED, *LOOKED, *done("mcp__fs__write_thing")], Cue.VALIDATION_MISSING),
        ([*EDITED, *CHECKED, *done("Bash", "git diff HEAD~3..HEAD")], None),
    ],
)
def test_what_there_is_to_do_about_the_work(turns: list[Turn], cue: Cue | None) -> None:
    thought = think(an_agent(), [TASK, *turns], None, NOON, None)
    assert thought.cues == (() if cue is None else (cue,))
    assert thought.commit_candidate == (cue is Cue.COMMIT_READY)


def test_in_a_clean_work_tree_nothing_is_left_to_commit() -> None:
    turns = [TASK, *EDITED, *CHECKED, *LOOKED]
    dirty = GitFacts(at=NOON, root="/home/dev/work", dirty=1)
    assert think(an_agent(), turns, dirty, NOON, None).commit_candidate
    assert not think(an_agent(), turns, structs.replace(dirty, dirty=0), NOON, None).cues


def test_every_cue_has_the_evidence_others_know_it_by() -> None:
    assert set(EVIDENCE) == set(Cue)
    assert EVIDENCE[Cue.COMMIT_READY][0] == "edit_seen"


def test_the_change_of_the_objective_is_known_until_the_next() -> None:
    run = an_agent()
    first = think(run, [TASK, called("Read", "a.py")], None, NOON, None)
    assert (first.objective, first.state, first.objective_changed_at) == (
        "make the parser faster",
        ThoughtState.ACTIVE,
        NOON,
    )
    second = think(run, [TASK, called("Read", "b.py")], None, at(15), first)
    assert (second.state, second.objective_changed_at) == (ThoughtState.HOLDING, NOON)
    third = think(run, [TASK, called("Edit", "b.py")], None, at(30), second)
    assert (third.state, third.objective_changed_at) == (ThoughtState.ACTIVE, at(30))
    assert think(structs.replace(run, status=a_status()), [TASK], None, at(31), third).objective_changed_at == at(31)


def test_without_a_transcript_the_screen_decides_and_a_clock_does_not() -> None:
    run = an_agent(identity=None)
    lines = ["\x1b[1mbuilding\x1b[0m", "⠋ step 3 of 9", "", "12:00:01"]
    first = think(run, (), None, NOON, None, lines=lines)
    second = think(run, (), None, at(15), first, lines=["building", "⠙ step 4 of 9", "", "12:00:16"])
    assert second.fingerprint == first.fingerprint
    assert think(run, (), None, at(30), second, lines=["linking"]).fingerprint != first.fingerprint


def test_words_are_carried_over_while_nothing_changes() -> None:
    run = an_agent(RunState.IDLE, identity=None)
    before = structs.replace(think(run, (), None, NOON, None), text="sorting the mail")
    after = think(run, (), None, at(5), before)
    assert (after.text, after.source) == ("sorting the mail", ThoughtSource.CARRIED)


def test_better_words_stay_until_the_objective_changes() -> None:
    run, turns = an_agent(), [TASK, called("Read", "a.py")]
    first = think(run, turns, None, NOON, None)
    better = structs.replace(first, text="finding the slow loop", source=ThoughtSource.MODEL)
    again = carried_over(think(run, turns, None, at(15), better), better)
    assert (again.text, again.source) == ("finding the slow loop", ThoughtSource.MODEL)
    assert not is_news(again, better)
    moved = think(run, [*turns, called("Edit", "a.py")], None, at(30), better)
    assert carried_over(moved, better).text == "editing a.py"


def test_an_ended_run_has_nothing_to_say() -> None:
    before = think(an_agent(), [TASK], None, NOON, None)
    ended = think(an_agent(RunState.EXITED), [TASK], None, at(1), before)
    assert (ended.text, ended.rest, ended.cues) == (None, Rest.DEEP_SLEEP, ())
    assert ended.objective_changed_at == NOON
    assert is_news(ended, before)
    assert not is_news(ended, ended)


def test_no_secret_gets_into_a_thought() -> None:
    key = "sk-ant-api03-" + "a1B2" * 8
    run = an_agent()
    for turns in ([asked(f"use {key}")], [TASK, called("Bash", f"curl -H 'X-Api-Key: {key}' x")]):
        thought = think(run, turns, None, NOON, None)
        assert key[:20] not in f"{thought.text} {thought.objective}"
    waiting = think(an_agent(RunState.IDLE), [said(f"Is {key} right?", final=True)], None, NOON, None)
    assert key[:20] not in (waiting.text or "")


@given(st.text(max_size=400), st.integers(min_value=2, max_value=LONGEST))
def test_a_line_is_one_line_and_short(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert line is None or (0 < len(line) <= limit and line.isprintable() and line == " ".join(line.split()))


ROLES = st.sampled_from(["user", "assistant", "tool", "system", "other"])
ANY = st.fixed_dictionaries(
    {
        "role": ROLES,
        "text": st.text(max_size=60),
        "tool": st.none() | st.sampled_from(["Edit", "Bash", "Bash, Edit", "?", "Task", "x, , y"]),
        "detail": st.none() | st.text(max_size=40) | st.sampled_from(["pytest", "git commit", "git status", "a\nb"]),
        "failed": st.sampled_from([None, True, False]),
        "final": st.sampled_from([None, True, False]),
        "agent": st.sampled_from([None, "sub"]),
    }
)
STATES = st.sampled_from(RunState)


@given(st.lists(ANY, max_size=12), STATES)
def test_whatever_is_in_a_transcript_a_thought_keeps_its_promises(turns: list[Turn], state: RunState) -> None:
    run = an_agent(state)
    thought = think(run, turns, None, NOON, None)
    assert thought.text is None or len(thought.text) <= ASKED
    assert thought.commit_candidate == (Cue.COMMIT_READY in thought.cues)
    assert len(thought.cues) == len(set(thought.cues)) <= 2
    if state in (RunState.BUSY, RunState.EXITED):
        assert thought.rest is not Rest.SLEEPING
    again: Thought = think(run, turns, None, at(1), thought)
    assert again.objective_changed_at == thought.objective_changed_at
    assert again.state is not ThoughtState.ACTIVE
