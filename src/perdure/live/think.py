"""One line of what a run is doing and why, from its transcript, its repository and its screen. Pure.

What cannot be known is left out: a run without a transcript never sleeps, and nothing is ready to commit unless it was seen
to be edited, checked and looked over, in this order, and not committed since.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b

from msgspec import structs

from perdure.live.outlived import cleared
from perdure.live.rest import rest_by_age
from perdure.live.story import Story, Work, story_of
from perdure.live.tools import doing, wanting
from perdure.live.words import ASKED, one_line
from perdure.model.git import GitFacts
from perdure.model.run import Reason, Run, RunState
from perdure.model.secrets import redact_text
from perdure.model.thought import Cue, Delivery, Rest, Thought, ThoughtSource, ThoughtState

#: What each cue rests on, in the words other programs know. A cue with other evidence is no fact.
EVIDENCE: Mapping[Cue, tuple[str, ...]] = {
    Cue.AWAITING_USER: ("awaiting_user_input",),
    Cue.COMMIT_READY: (
        "edit_seen",
        "validation_succeeded",
        "dirty_tree_checked_after_latest_edit",
        "commit_not_seen_after_latest_edit",
    ),
    Cue.VALIDATION_MISSING: ("edit_seen", "fresh_validation_not_seen", "commit_not_seen_after_latest_edit"),
    Cue.DIRTY_CHECK_MISSING: (
        "edit_seen",
        "validation_succeeded",
        "dirty_tree_check_not_seen_after_latest_edit",
        "commit_not_seen_after_latest_edit",
    ),
}
_LAST_TOOLS, _LAST_LINES = 3, 6
_REASONS = {
    Reason.PERMISSION: "waiting: asks for permission",
    Reason.QUESTION: "waiting: asks a question",
    Reason.LOGIN: "waiting: somebody has to log in",
    Reason.LIMIT: "waiting: a limit is reached",
}
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")
#: What changes on a screen on which nothing happens: clocks, counters, and whatever turns round.
_RESTLESS = re.compile(r"\d+|[^\w\s]")


def think(
    run: Run,
    turns: Iterable[Mapping[str, object]],
    git: GitFacts | None,
    now: datetime,
    before: Thought | None,
    *,
    lines: Sequence[str] = (),
) -> Thought:
    """Return what a run is doing. `turns` are the last ones of its conversation, `lines` those on its screen."""
    return thought_of(run, story_of(turns), git, now, before, lines=lines)


def thought_of(
    run: Run,
    story: Story,
    git: GitFacts | None,
    now: datetime,
    before: Thought | None,
    *,
    lines: Sequence[str] = (),
) -> Thought:
    """Return what a run is doing, by what its turns have been found to tell."""
    if run.status.state is RunState.EXITED or run.is_over:
        return cleared(now, before, Rest.DEEP_SLEEP)
    if run.occupant is None:
        # What was asked of an agent that is not there is not asked of what runs in its place.
        story = Story()
    awaits = is_awaited(run, story)
    mark = fingerprint(run, story, lines)
    changed = before is None or before.fingerprint != mark
    text = one_line(_text(run, story, awaits), ASKED)
    carried = text is None and before is not None and not changed
    cues = _cues(story.work, awaits, git)
    return Thought(
        at=now,
        text=before.text if carried and before else text,
        objective=one_line(_task(run, story), 300),
        objective_changed_at=now if changed else before.objective_changed_at if before else None,
        fingerprint=mark,
        state=ThoughtState.SLEEPING if awaits else ThoughtState.ACTIVE if changed else ThoughtState.HOLDING,
        source=ThoughtSource.CARRIED if carried else ThoughtSource.DERIVED,
        rest=Rest.SLEEPING if awaits else rest_by_age(run.status.state, run.last_activity_at, now),
        commit_candidate=Cue.COMMIT_READY in cues,
        cues=cues,
        delivery=before.delivery if before else Delivery(),
    )


def is_awaited(run: Run, story: Story) -> bool:
    """Return whether the transcript says that the agent waits for a person.

    Its last words must be an answer after which nothing was called, or a question it called for. Where the transcript does
    not say whether the answer was the last of its turn, the run must be seen to wait as well. A run that is busy does not
    wait: what was said to it is not written down yet.
    """
    if run.occupant is None or run.status.state is RunState.BUSY:
        return False
    if story.asks:
        return True
    if not story.answer or story.final is False:
        return False
    return story.final is True or run.status.waits


def fingerprint(run: Run, story: Story, lines: Sequence[str] = ()) -> str:
    """Return what the objective is recognised by: what is asked and done, or else what the screen shows.

    Numbers and signs of a screen are left out: a clock or a spinner is no change of mind.
    """
    if story.tells:
        tools = [action.tool for action in story.actions[-_LAST_TOOLS:]]
        parts = [story.task or "", story.current.tool if story.current else "", *tools]
    else:
        shown = [_ESCAPES.sub("", line) for line in lines]
        parts = [_RESTLESS.sub("", line) for line in shown if line.strip()][-_LAST_LINES:]
    said = "|".join(" ".join(part.lower().split()) for part in (run.status.word, *parts))
    return blake2b(said.encode(errors="replace"), digest_size=16).hexdigest()


def carried_over(thought: Thought, before: Thought | None) -> Thought:
    """Return a thought with the words a model or a command found for the same objective, which say more than ours."""
    if before is None or before.fingerprint != thought.fingerprint or before.text is None:
        return thought
    if before.source not in (ThoughtSource.MODEL, ThoughtSource.COMMAND) or thought.state is ThoughtState.SLEEPING:
        return thought
    return structs.replace(thought, text=before.text, source=before.source)


def is_news(thought: Thought, before: Thought | None) -> bool:
    """Return whether a thought says anything that the one before does not."""
    if before is None:
        return thought.text is not None or bool(thought.cues)
    return structs.replace(thought, at=before.at, state=before.state, delivery=before.delivery) != before or (
        thought.state is not before.state and ThoughtState.SLEEPING in (thought.state, before.state)
    )


def _cues(work: Work, awaits: bool, git: GitFacts | None) -> tuple[Cue, ...]:
    return (*((Cue.AWAITING_USER,) if awaits else ()), *_of_work(work, git))


def _of_work(work: Work, git: GitFacts | None) -> tuple[Cue, ...]:
    # In a clean work tree nothing is left to commit, whoever has done it.
    if not work.edited or work.committed or (git is not None and git.dirty == 0):
        return ()
    if work.validated is False:
        return (Cue.VALIDATION_MISSING,)
    if work.validated and work.looked_over is not None:
        return (Cue.COMMIT_READY if work.looked_over else Cue.DIRTY_CHECK_MISSING,)
    return ()


def _text(run: Run, story: Story, awaits: bool) -> str | None:
    status = run.status
    if status.reason in _REASONS and status.state is RunState.ATTENTION:
        return _asked_for(status.reason, story)
    if status.state is RunState.BUSY or status.reason is Reason.STALLED:
        said = _busy(run, story)
        return f"silent for a while: {said}" if said and status.reason is Reason.STALLED else said
    if status.state is RunState.ERROR:
        return f"stopped by an error: {story.task}" if story.task else "stopped by an error"
    return _awaiting(run, story) if awaits else None


def _asked_for(reason: Reason | None, story: Story) -> str:
    call = story.current
    if reason is Reason.PERMISSION and call is not None:
        return f"waiting: wants to {wanting(call.tool, call.detail)}"
    if reason is Reason.QUESTION and story.asks and call is not None and call.detail:
        return f"waiting: asks {call.detail}"
    return _REASONS[reason] if reason else "waiting"


def _awaiting(run: Run, story: Story) -> str | None:
    status = run.status
    if story.asks:
        # A call that nobody answers any more: whoever took the conversation up again is not asked.
        return None if status.waits else _asked_for(Reason.QUESTION, story)
    said = _telling(story.answer or "") if status.waits or status.state is RunState.UNKNOWN else None
    return f"done: {_bare(said)}" if said else None


def _telling(answer: str) -> str | None:
    """The part of an answer that tells most: what it ends with when that is a question, or else what it begins with.

    Whether somebody has to answer it nobody can tell by that; only a call for a person is one.
    """
    lines = [line for line in answer.splitlines() if re.search(r"\w", line)]
    asked = [line for line in lines[-2:] if line.rstrip(" *_`\"')").endswith("?")]
    return re.split(r"(?<=[.!:;])\s+", _bare(asked[-1]))[-1] if asked else lines[0] if lines else None


def _first_line(text: str) -> str | None:
    return next((line for line in text.splitlines() if re.search(r"\w", line)), None)


def _bare(line: str) -> str:
    """A line without the marks it is set with, and without secrets: a key that lost an underscore looks like none."""
    bare = re.sub(r"(?<!\w)_(?!_)(\S(?:.*?\S)?)(?<!_)_(?!\w)", r"\1", line)
    return re.sub(r"^[\s#>*\-•`]+|[*`]+", "", redact_text(bare)).strip()


def _task(run: Run, story: Story) -> str | None:
    known = run.details if run.occupant is not None else None
    return story.task or (known.task if known else None)


def _busy(run: Run, story: Story) -> str | None:
    if story.final is True:
        # It is through with that, and at something that is not written down yet.
        return None
    if story.answer:
        return _bare(_first_line(story.answer) or "")
    call = story.current or story.last
    if call is not None:
        return doing(call.tool, call.detail)
    task = _task(run, story)
    if task:
        return f"working on: {task}"
    return f"running {run.command}" if run.agent is None and run.command else None
