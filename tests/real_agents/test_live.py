"""What the daemon sees of real agents while they work: each state as it comes, why, and how that is known."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from perdure.model.event import EventKind
from perdure.model.run import Run
from tests.acceptance.kit import only_json
from tests.acceptance.watching import watching
from tests.real_agents.agents import PROGRAMS
from tests.real_agents.coming_back import can_run, crash, restore, targets_of
from tests.real_agents.kit import PATIENCE, Stage
from tests.real_agents.living import SEEN, Company, Member, cause_of, set_up

pytestmark = [pytest.mark.real_agent, pytest.mark.crowd]

#: What comes of an errand, and of a question.
ERRAND = ["busy", "attention(permission)", "busy", "attention(done)"]
QUESTION = ["busy", "attention(question)", "busy", "attention(done)"]
#: What can come of anything.
TURN = ("busy", "idle", "attention(done)")
PROMPT = "[[hold]] tell me what became of that"


@contextmanager
def a_company(stage: Stage, *, hooks: bool) -> Iterator[Company]:
    """All agents that are installed, beside each other; the daemon was there before the first of them."""
    names = can_run(PROGRAMS)
    set_up(stage, names, hooks=hooks)
    with watching(stage.perdure) as daemon:
        yield Company(stage, daemon, names)


def test_every_state_is_seen_as_it_comes(stage: Stage) -> None:
    with a_company(stage, hooks=False) as company:
        after = company.daemon.last()
        run_errands(company)
        company.type({each: each.errand.question for each in company.asking})
        ask_questions(company)
        before, quitting = company.runs(), company.daemon.last()
        company.type({each: each.agent.program.quit for each in company.members})
        company.await_word("exited")
        for each in company.members:
            keep_until_the_end(company, each, before[each.run], quitting)
            questions = QUESTION if each in company.asking else []
            check(company, each, [*ERRAND, *questions, "exited"], after, hooks=False)
            assert company.timeline(each, after)[-1].cause == "process:process_exit"


def test_hooks_are_heard_and_what_died_comes_back_as_what_it_was(stage: Stage) -> None:
    with a_company(stage, hooks=True) as company:
        after = company.daemon.last()
        run_errands(company)
        for each in company.members:
            check(company, each, ERRAND, after, hooks=True)
        know_what_they_were_asked(company)
        begin_anew(company)
        after = company.daemon.last()
        tell_everyone(company)
        ask_questions(company)
        others = [each for each in company.members if each not in company.asking]
        company.wait_until(lambda each: company.runs()[each.run].status.waits, others)
        for each in company.members:
            check(company, each, ["busy"] if each in others else QUESTION, after, hooks=True)
        come_back(company)


def run_errands(company: Company) -> None:
    """Have everyone ask leave for something, give it, and see that through."""
    first = company.members[0]
    words = ["wait", first.run, "--until", "permission", "--timeout", "120", "--json"]
    with subprocess.Popen(company.stage.perdure.argv(*words), stdout=subprocess.PIPE) as waiting:
        company.type({each: each.errand.prompt for each in company.members})
        see_asked(company, company.members, "attention(permission)")
        out, _ = waiting.communicate(timeout=PATIENCE)
    assert (waiting.returncode, json.loads(out)["run"]) == (0, first.run)
    rows = {row["run"]: row for row in company.stage.perdure.ok("ls", "--json").json["panes"]}
    stands = {each.name: (rows[each.run]["state"], rows[each.run]["reason"]) for each in company.members}
    assert set(stands.values()) == {("attention", "permission")}, stands
    see_answered(company, {each: each.errand.allow for each in company.members})


def ask_questions(company: Company) -> None:
    """See those through who were told to put a question, with the first answer that they offer."""
    see_asked(company, company.asking, "attention(question)")
    see_answered(company, dict.fromkeys(company.asking, ("Enter",)))


def see_asked(company: Company, members: list[Member], word: str) -> None:
    """See that these are at work, and then that they ask."""
    company.await_word("busy", members)
    company.stage.stub.let_go(1)
    company.await_word(word, members)


def see_answered(company: Company, keys: Mapping[Member, Sequence[str]]) -> None:
    """Answer these, see that they are at work again, and that they come to an end."""
    company.press(keys)
    company.await_word("busy", keys)
    company.stage.stub.let_go(2)
    with open(os.path.join(company.stage.directory("alpha"), SEEN), "w"):
        company.await_word("attention(done)", keys)
    company.stage.stub.let_go(0)


def check(company: Company, member: Member, expected: list[str], after: int, *, hooks: bool) -> None:
    """See that an agent came into these states, and each of them by what it is to be known by.

    On a machine that is busy enough a turn may seem to be over for a moment, but nobody is called who is not asked.
    """
    timeline = company.timeline(member, after)
    print(f"{member.name}: {', '.join(f'{each.word} ({each.cause})' for each in timeline)}")
    others = [each.word for each in timeline if each.word not in TURN]
    assert others == [word for word in expected if word not in TURN], company.told(member)
    left = iter(timeline)
    for word in expected:
        found = next((each for each in left if each.word == word), None)
        assert found is not None, (expected, company.told(member))
        pattern = cause_of(member.name, word, hooks=hooks)
        assert pattern is None or re.match(pattern, found.cause), (pattern, found, company.told(member))


def keep_until_the_end(company: Company, member: Member, before: Run, after: int) -> None:
    """See that an agent that ends stays in its conversation until it has, and as certainly: what is saved then comes back."""
    assert before.identity is not None, company.told(member)
    known = before.identity.conversation, before.identity.certain
    changes = [each.data for each in company.identities(member, after)]
    assert {(each["conversation"], each["certain"]) for each in changes} <= {known}, (known, changes)


def know_what_they_were_asked(company: Company) -> None:
    """See that everyone's conversation is certain that can be, and that a thought has what it was asked for."""

    def is_known(member: Member) -> bool:
        run = company.runs()[member.run]
        # Its file may be another's as well.
        certain = member.name == "aider" or (run.identity is not None and run.identity.certain)
        return certain and run.thought is not None and "run it" in (run.thought.objective or "")

    company.wait_until(is_known, company.members)


def begin_anew(company: Company) -> None:
    """Begin new conversations, and see that the runs are in those at once."""
    members = [each for each in company.members if each.name in ("claude", "codex")]
    before, after = company.runs(), company.daemon.last()
    company.type({each: each.agent.program.new for each in members})
    company.wait_until(lambda each: bool(company.entered(each, after)), members)
    for member in members:
        identity, entered = before[member.run].identity, company.entered(member, after)[-1]
        assert identity is not None
        assert entered["was"] == identity.conversation != entered["conversation"]
    # A command of its own is work for a moment.
    company.wait_until(lambda each: company.runs()[each.run].status.waits, members)


def tell_everyone(company: Company) -> None:
    """Say something to everyone through `perdure send`, and see that each has heard it."""

    def send(member: Member) -> object:
        words = [member.run, "--timeout", "60", "--", member.errand.question or PROMPT]
        told = only_json(company.stage.perdure("send", "--json", *words))
        return told.get("result", str(told))

    after = company.daemon.last()
    with ThreadPoolExecutor(max_workers=3) as pool:
        results = dict(zip([each.name for each in company.members], pool.map(send, company.members), strict=True))
    assert set(results.values()) == {"delivered"}, results
    sent = {each.event.run for each in company.daemon.events(after, EventKind.SENT)}
    assert sent == {each.run for each in company.members}


def come_back(company: Company) -> None:
    """Kill the server with -9: everyone ends with it, and comes back as the run it was, in its conversation."""
    agents = [each.agent for each in company.members]
    before, targets, after = company.runs(), targets_of(agents), company.daemon.last()
    crash(company.stage, agents)
    company.await_word("exited")
    (died,) = company.daemon.events(after, EventKind.SERVER_DIED)
    assert died.event.data["agents"] == len(agents)
    assert {company.timeline(each, after)[-1] for each in company.members} == {("exited", "process:server_died")}

    restore(company.stage, targets)

    def is_back(member: Member) -> bool:
        run, was = company.runs().get(member.run), before[member.run].identity
        if run is None or run.pane != member.agent.pane or run.identity is None or was is None:
            return False
        # What is not certain waits for a person.
        return run.identity.conversation == was.conversation and (run.status.waits or not was.certain)

    company.wait_until(is_back, company.members)
    assert company.runs().keys() == before.keys()
