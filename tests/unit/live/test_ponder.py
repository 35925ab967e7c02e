from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime

import msgspec
import pytest
from msgspec import structs

from perdure.agents import roster
from perdure.host import git
from perdure.live.cadence import Backoff, Cadence, Purse
from perdure.live.delivery import accepts, merged
from perdure.live.hear import GIT_FOR, Ears
from perdure.live.ponder import Ponder
from perdure.live.question import Answer, Question
from perdure.live.story import Story, Work
from perdure.model.config import ThoughtsConfig
from perdure.model.git import GitFacts
from perdure.model.identity import AgentDetails
from perdure.model.run import Run, RunState
from perdure.model.thought import Rest, Thought, ThoughtSource, ThoughtState
from tests.builders import NOON, a_server, an_identity, at
from tests.unit.agents.hosts import HOME, DirectoryHost, jsonl
from tests.unit.live.turns import an_agent

PATH = f"{HOME}/.simulant/conversations/c0ffee.jsonl"
KEY = "sk-ant-api03-" + "a1B2" * 8


class Hand:
    """A voice whose answers are given by the test."""

    def __init__(self) -> None:
        self.trouble: str | None = None
        self.asked: list[Question] = []
        self.ready: list[Answer] = []

    def ask(self, question: Question, now: datetime) -> bool:
        self.asked.append(question)
        return True

    def answers(self, now: datetime) -> list[Answer]:
        found, self.ready = self.ready, []
        return found

    def close(self) -> None:
        self.asked.clear()

    def answer(self, text: str, *, changed: bool = False) -> None:
        question = self.asked[-1]
        self.ready.append(
            Answer(
                run=question.run,
                fingerprint=question.fingerprint,
                text=text,
                source=ThoughtSource.MODEL,
                objective_changed=changed,
            )
        )


class Watch:
    """A run, its transcript, and the thoughts that are kept of it."""

    def __init__(self, root: str, config: ThoughtsConfig | None = None) -> None:
        self.host = DirectoryHost(root)
        self.voice = Hand()
        self.ponder = self.another("first", config)
        self.run = an_agent(
            server=a_server(uid=os.getuid()),
            identity=an_identity("simulant"),
            details=AgentDetails(transcript=PATH),
            cwd="",
            last_activity_at=NOON,
        )
        self.records: list[dict[str, str]] = []

    def another(self, stream: str, config: ThoughtsConfig | None = None) -> Ponder:
        return Ponder(config or ThoughtsConfig(), lambda _: self.host, roster(), stream=stream, voice=self.voice)

    def says(self, role: str, text: str) -> None:
        self.records.append({"role": role, "text": text, "time": "2026-11-15T08:00:00Z"})
        self.host.write(PATH, jsonl(*self.records), at=len(self.records))

    def thought(self, seconds: float, state: RunState = RunState.BUSY, lines: Sequence[str] = ()) -> Thought | None:
        self.run = structs.replace(self.run, status=structs.replace(self.run.status, state=state))
        return self.keep(self.ponder.thought(self.run, lines, at(seconds)))

    def keep(self, thought: Thought | None) -> Thought | None:
        if thought is not None:
            before = self.run.thought
            assert before is None or accepts(before.delivery, thought.delivery)
            self.run = structs.replace(self.run, thought=merged(before, thought))
        return thought

    def poll(self, seconds: float) -> list[tuple[str, Thought]]:
        found = self.ponder.poll(lambda id: self.run if id == self.run.id else None, at(seconds))
        for _, thought in found:
            self.keep(thought)
        return found


@pytest.fixture
def watch(tmp_path: object) -> Watch:
    return Watch(str(tmp_path))


def test_a_run_is_thought_about_and_only_news_is_told(watch: Watch) -> None:
    watch.says("user", "sort the mail")
    first = watch.thought(0)
    assert first is not None
    assert (first.text, first.objective) == ("working on: sort the mail", "sort the mail")
    assert (first.delivery.stream, first.delivery.seq) == ("first", 1)
    assert watch.thought(15) is None
    watch.says("assistant", "It is sorted.")
    done = watch.thought(30, RunState.IDLE)
    assert done is not None
    assert (done.text, done.rest, done.delivery.seq) == ("done: It is sorted.", Rest.SLEEPING, 2)
    assert watch.thought(45, RunState.IDLE) is None


def test_what_was_not_stored_comes_again_under_the_same_number(watch: Watch) -> None:
    watch.says("user", "sort the mail")
    lost = watch.ponder.thought(watch.run, (), NOON)
    again = watch.ponder.thought(watch.run, (), NOON)
    assert lost is not None
    assert lost == again


def test_after_a_restart_the_first_thought_is_taken(watch: Watch) -> None:
    watch.says("user", "sort the mail")
    watch.thought(0)
    watch.ponder = watch.another("second")
    watch.says("user", "burn the mail")
    after = watch.thought(15)
    assert after is not None
    assert (after.delivery.stream, after.delivery.seq) == ("second", 1)


def test_better_words_come_later_and_stay(watch: Watch) -> None:
    watch.says("user", "sort the mail")
    watch.thought(0)
    watch.voice.answer("putting letters in order")
    [(run, better)] = watch.poll(3)
    assert (run, better.text, better.source) == ("r1", "putting letters in order", ThoughtSource.MODEL)
    assert better.objective_changed_at == NOON
    assert watch.thought(15) is None
    assert watch.run.thought is not None
    assert watch.run.thought.text == "putting letters in order"


@pytest.mark.parametrize("late", ["it went on", "it waits", "it is gone", "the same words"])
def test_an_answer_that_comes_too_late_or_says_nothing_new_is_dropped(watch: Watch, late: str) -> None:
    watch.says("user", "sort the mail")
    watch.thought(0)
    words = "Working on:  sort the MAIL" if late == "the same words" else "putting letters in order"
    watch.voice.answer(words)
    if late == "it went on":
        watch.says("user", "burn the mail")
        watch.thought(5)
    elif late == "it waits":
        watch.says("assistant", "Sorted.")
        watch.thought(5, RunState.IDLE)
    elif late == "it is gone":
        watch.run = structs.replace(watch.run, ended_at=at(5))
    assert watch.poll(6) == []


def test_nobody_is_asked_twice_the_same_nor_too_often(watch: Watch) -> None:
    watch.says("user", "sort the mail")
    for seconds in range(0, 300, 5):
        watch.thought(seconds)
    assert len(watch.voice.asked) == 1
    for number in range(60):
        watch.says("user", f"sort letter {number}")
        watch.thought(300 + number)
    # Each is a change of the objective, but fifteen seconds lie between two questions all the same.
    assert len(watch.voice.asked) == 1 + 4


def test_nobody_is_asked_about_a_run_that_waits_or_has_ended(watch: Watch) -> None:
    watch.says("user", "sort the mail")
    watch.says("assistant", "Sorted.")
    watch.thought(0, RunState.IDLE)
    watch.thought(60, RunState.EXITED)
    assert watch.voice.asked == []


def test_what_others_are_told_holds_no_secret(watch: Watch) -> None:
    watch.says("user", f"log in with {KEY}")
    watch.thought(0, lines=[f"export API_KEY={KEY}", *["x" * 80] * 5])
    [question] = watch.voice.asked
    told = question.prompt + msgspec.json.encode(question.session).decode()
    assert KEY[:20] not in told
    assert "log in with" in told
    assert question.session["session_id"] == "r1"


def test_without_a_transcript_the_screen_has_to_be_worth_a_question(watch: Watch) -> None:
    watch.run = structs.replace(watch.run, identity=None, command="make")
    watch.thought(0, lines=["short"])
    assert watch.voice.asked == []
    watch.thought(20, lines=["compiling the second half of the compiler " * 4])
    assert len(watch.voice.asked) == 1


def test_the_conversation_of_an_agent_that_has_left_is_not_read(watch: Watch) -> None:
    """Nor is whoever is asked about what runs there now told of it."""
    watch.says("user", "sort the mail")
    watch.says("user", "/commit it")
    watch.run = structs.replace(
        watch.run, program=None, details=AgentDetails(transcript=PATH, task="x", context_used=7)
    )
    assert watch.ponder.ears.hear(watch.run, NOON).story == Story()
    thought = watch.thought(0, lines=["compiling the second half of the compiler " * 4])
    assert thought is None or thought.objective is None
    [question] = watch.voice.asked
    assert (question.session["tool"], question.session["task"], question.session["token_count"]) == (None, None, 0)


def test_what_was_said_of_one_conversation_is_no_hint_for_the_next(watch: Watch) -> None:
    watch.says("user", "sort the mail")
    watch.thought(0)
    watch.voice.answer("putting letters in order")
    watch.poll(3)
    watch.says("user", "burn the mail")
    watch.thought(60)
    assert "putting letters in order" in watch.voice.asked[-1].prompt
    watch.run = structs.replace(watch.run, identity=an_identity("simulant", "other"), details=None, thought=None)
    watch.thought(120, lines=["compiling the second half of the compiler " * 4])
    assert len(watch.voice.asked) == 3
    assert "letters" not in watch.voice.asked[-1].prompt


def test_a_guessed_conversation_is_not_read(watch: Watch) -> None:
    watch.says("user", "somebody else's task")
    watch.run = structs.replace(watch.run, identity=an_identity("simulant", certain=False))
    thought = watch.thought(0)
    assert thought is None or thought.text is None


def test_switched_off_it_takes_back_what_it_said_once(tmp_path: object) -> None:
    watch = Watch(str(tmp_path), ThoughtsConfig(enabled=False))
    watch.says("user", "sort the mail")
    assert watch.thought(0) is None
    said = Thought(at=NOON, text="sorting", state=ThoughtState.ACTIVE)
    watch.run = structs.replace(watch.run, thought=said)
    cleared = watch.thought(15)
    assert cleared is not None
    assert cleared.text is None
    assert watch.thought(30) is None


def test_an_unchanged_transcript_is_not_read_again(watch: Watch) -> None:
    watch.says("user", "sort the mail")
    first = watch.ponder.ears.hear(watch.run, NOON)
    assert watch.ponder.ears.hear(watch.run, at(1)).story is first.story
    watch.says("user", "/commit it")
    assert watch.ponder.ears.hear(watch.run, at(2)).story.skill == "commit"
    watch.ponder.forget("r1")
    watch.ponder.close()


def test_root_reads_a_users_transcript_as_that_user(watch: Watch, tmp_path: object) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    watch.says("user", "what only root may read")
    watch.run = structs.replace(watch.run, server=a_server(uid=65534))
    private = os.path.dirname(watch.host.real(PATH))
    os.chmod(private, 0o700)
    assert not watch.ponder.ears.hear(watch.run, NOON).story.tells
    folder = private
    while folder not in ("/", "/tmp"):
        os.chmod(folder, 0o755)
        folder = os.path.dirname(folder)
    watch.ponder.forget("r1")
    assert watch.ponder.ears.hear(watch.run, NOON).story.task == "what only root may read"


def test_the_longer_a_run_is_at_the_same_thing_the_rarer_it_is_asked_about() -> None:
    cadence = Cadence(15, 45, 120)
    seconds = [cadence.interval(at(-age), NOON).total_seconds() for age in (0, 44, 45, 119, 120, 9999)]
    assert seconds == [15, 15, 45, 45, 120, 120]
    cadence.asked("r1", NOON)
    assert not cadence.is_due("r1", NOON, at(14))
    assert cadence.is_due("r1", NOON, at(15))
    assert cadence.is_due("r1", NOON, at(-1))
    assert cadence.is_due("r2", NOON, NOON)


def test_no_more_is_spent_than_is_allowed() -> None:
    purse = Purse(calls_per_hour=3, cost_per_day=1.0)
    assert purse.hold(0.6, NOON)
    assert not purse.hold(0.6, NOON)
    purse.settle(0.6, 0.1, NOON)
    assert purse.hold(0.6, at(1))
    purse.settle(0.6, 0.9, at(1))
    assert not purse.hold(0.1, at(2))
    assert purse.hold(0.0, at(3))
    assert not purse.hold(0.0, at(4))
    assert purse.hold(0.0, at(3600))
    assert not purse.hold(0.5, at(7300))
    assert purse.hold(0.5, at(86401))


def test_who_fails_is_left_alone_for_longer_and_longer() -> None:
    backoff = Backoff(0.5, 60)
    assert backoff.is_over(NOON)
    for seconds in (0.5, 1, 2, 4, 8, 16, 32, 60, 60):
        backoff.failed(NOON)
        assert not backoff.is_over(at(seconds - 0.1))
        assert backoff.is_over(at(seconds))
    backoff.succeeded()
    assert backoff.is_over(NOON)


def test_runs_are_independent_even_in_one_directory(watch: Watch) -> None:
    watch.says("user", "sort the mail")
    other: Run = structs.replace(watch.run, id="r2", identity=an_identity("simulant", "other"), details=None)
    watch.thought(0)
    found = watch.ponder.thought(other, (), NOON)
    assert found is None or found.objective is None


def test_whoever_is_in_a_hurry_does_not_wait_for_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of state is told at once; a large repository takes its time. What git last said will do; else it is not known."""
    asked: list[str] = []

    def facts(directory: str, now: datetime) -> GitFacts:
        asked.append(directory)
        return GitFacts(at=NOON, root=directory, dirty=len(asked))

    monkeypatch.setattr(git, "facts", facts)
    monkeypatch.setattr(Ears, "_story", lambda *_: Story(task="x", work=Work(edited=True)))
    ears, run = Ears(lambda _: None, roster()), an_agent(cwd="/home/dev/work")
    unknown = ears.hear(run, NOON, quickly=True)
    assert (unknown.git, unknown.story.work, unknown.story.task, asked) == (None, Work(), "x", [])
    assert ears.hear(run, NOON).git == GitFacts(at=NOON, root="/home/dev/work", dirty=1)
    later = NOON + 2 * GIT_FOR
    known = ears.hear(run, later, quickly=True)
    assert (known.git, known.story.work.edited) == (GitFacts(at=NOON, root="/home/dev/work", dirty=1), True)
    assert ears.hear(run, later).git == GitFacts(at=NOON, root="/home/dev/work", dirty=2)
