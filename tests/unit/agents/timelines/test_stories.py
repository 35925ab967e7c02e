"""Recorded screens and hook records of every agent give the states a person would have named, by the right cause."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import structs

from perdure.agents import adapters, hook_facts
from perdure.ports import TellsState
from tests.builders import NOON, at
from tests.contract.agents import samples
from tests.unit.agents.hosts import HOME
from tests.unit.agents.timelines.player import Exited, Hooked, Looked, RecordingHost, Stage, Wrote
from tests.unit.agents.timelines.stories import CASTS, Cast

#: What a person who saw it all would say, and from when on.
LABELS = (
    (1, "idle"),
    (10, "busy"),
    (20, "attention(permission)"),
    (30, "busy"),
    (40, "attention(done)"),
    (45, "idle"),
    (60, "busy"),
    (70, "attention(done)"),
    (75, "idle"),
    (90, "busy"),
    (95, "attention(question)"),
    (110, "exited"),
)
#: No state may come later than this.
LATE = 2.0

HOOKED = [cast for cast in CASTS if cast.prompted]
#: What the others show stands above their prompt.
VIEWED = [cast for cast in CASTS if cast.agent not in ("aider", "goose")]


@pytest.fixture
def host(tmp_path: object) -> RecordingHost:
    return RecordingHost(str(tmp_path))


def stage(cast: Cast, host: RecordingHost) -> Stage:
    return Stage(cast.agent, cast.process, host, *cast.below)


def causes_with_hooks(cast: Cast) -> list[str]:
    screen, begun = f"screen:{cast.agent}.", f"hook:{cast.prompted[0]}"
    ended = "hook:" + cast.ends[-1].partition("=")[0]
    first = f"hook:{cast.begins[-1]}" if cast.begins else screen
    once = [first, begun, f"hook:{cast.asks[-1]}", screen, ended, "seen"]
    return [*once, begun, screen, "seen", begun, screen, "process:process_exit"]


def without_rule(cause: str, agent: str) -> str:
    """Return the cause, of a screen without which rule it was."""
    before = f"screen:{agent}."
    return before if cause.startswith(before) else cause


@pytest.mark.parametrize("cast", CASTS, ids=[cast.agent for cast in CASTS])
def test_screens_alone_tell_the_story(cast: Cast, host: RecordingHost) -> None:
    found = stage(cast, host).play(cast.story(hooks=False))
    assert [each.word for each in found] == [word for _, word in LABELS]
    for each, (since, _) in zip(found, LABELS, strict=True):
        assert since <= each.seconds <= since + LATE, each
    shown = f"screen:{cast.agent}."
    causes = [without_rule(each.cause, cast.agent) for each in found]
    assert causes == [shown] * 5 + ["seen"] + [shown] * 2 + ["seen"] + [shown] * 2 + ["process:process_exit"]


@pytest.mark.parametrize("cast", HOOKED, ids=[cast.agent for cast in HOOKED])
def test_with_hooks_the_story_is_the_same_and_told_sooner(cast: Cast, host: RecordingHost) -> None:
    found = stage(cast, host).play(cast.story(hooks=True))
    assert [each.word for each in found] == [word for _, word in LABELS]
    for each, (since, _) in zip(found, LABELS, strict=True):
        assert since <= each.seconds <= since + LATE, each
    assert [without_rule(each.cause, cast.agent) for each in found] == causes_with_hooks(cast)


def test_everybody_who_is_hooked_has_a_story_with_hooks() -> None:
    assert {cast.agent for cast in HOOKED} == {name for name, facts in hook_facts().items() if facts.records}


@pytest.mark.parametrize("cast", HOOKED, ids=[cast.agent for cast in HOOKED])
@pytest.mark.parametrize(
    ("stage_of", "word"), [("first_prompt", "idle"), ("cleared", "idle"), ("approval", "attention(permission)")]
)
def test_the_records_a_real_agent_left_say_where_it_was(
    cast: Cast, stage_of: str, word: str, host: RecordingHost
) -> None:
    lines = samples.read(cast.version, f"hook_records/{stage_of}.jsonl").splitlines()
    kept = [msgspec.json.decode(line) for line in lines]
    written = [msgspec.convert(each["written"], type=type(NOON)) for each in kept]
    started = min(written).replace(hour=14)
    pid = int(kept[0]["name"].partition("-")[0])
    for at_, each in zip(written, kept, strict=True):
        host.hook(pid, at_, each["record"])
    adapter = stage(cast, host).adapter
    process = structs.replace(cast.process, pid=pid, started_at=started)
    assert isinstance(adapter, TellsState)
    (reading,) = adapter.told(process, host)
    # Copilot's conversation ends when it is cleared, and the next one begins with its first prompt.
    silent = cast.agent == "copilot" and stage_of == "cleared"
    said = f"{reading.state}({reading.reason})" if reading.reason else str(reading.state)
    assert said == ("None" if silent else word), reading


def registry(status: str, since: float, waiting: str | None = None) -> Wrote:
    raw = msgspec.json.decode(samples.read("claude-code-2.1.325", "registry_waiting.json"))
    raw |= {"pid": 100, "procStart": "5000", "status": status, "statusUpdatedAt": at(since).timestamp() * 1000}
    raw["waitingFor"] = waiting
    return Wrote(since, f"{HOME}/.claude/sessions/100.json", msgspec.json.encode(raw))


def test_a_live_registry_tells_all_that_hooks_do_not(host: RecordingHost) -> None:
    """Leave that was given, and an interruption; a hook of the same moment adds nothing, and one that is late neither."""
    cast = CASTS[0]
    found = stage(cast, host).play(
        [
            registry("idle", 1),
            *cast.hook(10, "UserPromptSubmit"),
            registry("busy", 10.1),
            *cast.hook(20, "PermissionRequest"),
            registry("waiting", 20.1, "permission prompt"),
            registry("busy", 25),
            *cast.hook(26.5, "Notification"),
            registry("waiting", 30, "input needed"),
            registry("busy", 35),
            registry("waiting", 40, "dialog open"),
            registry("busy", 42),
            registry("idle", 50),
            Looked(55),
            Exited(60),
        ]
    )
    assert [(each.word, each.cause) for each in found] == [
        ("idle", "registry:idle"),
        ("busy", "registry:busy"),
        ("attention(permission)", "registry:permission prompt"),
        ("busy", "registry:busy"),
        ("attention(question)", "registry:input needed"),
        ("busy", "registry:busy"),
        ("attention(done)", "registry:idle"),
        ("idle", "seen"),
        ("exited", "process:process_exit"),
    ]


def test_what_was_allowed_at_once_calls_nobody(host: RecordingHost) -> None:
    cast = next(cast for cast in CASTS if cast.agent == "opencode")
    asked = [*cast.hook(5, "message.updated"), *cast.hook(10, "permission.asked")]
    replied = Hooked(10.2, {**asked[-1].record, "hook_event_name": "permission.replied"})  # type: ignore[union-attr]
    found = stage(cast, host).play([*asked, replied, cast.show(11, cast.busy)])
    assert [each.word for each in found] == ["busy"]


@pytest.mark.parametrize("cast", VIEWED, ids=[cast.agent for cast in VIEWED])
def test_a_viewer_over_a_busy_agent_leaves_it_busy(cast: Cast, host: RecordingHost) -> None:
    steps = [cast.show(1, cast.busy), cast.show(5, cast.viewer), cast.show(20, cast.viewer)]
    assert [each.word for each in stage(cast, host).play(steps)] == ["busy"]


def test_whoever_tells_is_listed_in_the_stories() -> None:
    told = {each.name for each in adapters() if isinstance(each, TellsState)}
    assert told - {"simulant"} == {cast.agent for cast in CASTS} - {"aider"}
