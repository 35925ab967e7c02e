"""Every agent that Perdure starts anew is ready when it is said to be, hears what it is sent, answers, and ends."""

from __future__ import annotations

import pytest

from tests.acceptance.kit import only_json
from tests.real_agents.agents import PROGRAMS
from tests.real_agents.kit import Agent, Stage

FIRST = "tell me of \"this\"; $HOME and 'that'"
TEXT = "-please answer this: \"quoted\" 'too' $HOME; and\nthe second line"

#: Their cursor is not where one types, or nothing shows where that begins.
DRAFTS_NOT_TOLD = ("qwen", "goose")


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_agent_is_started_hears_answers_and_ends(stage: Stage, name: str) -> None:
    agent = start_with_something_to_do(stage, name)
    for text in (TEXT, "and a short one"):
        since = len(stage.stub.seen)
        ran = stage.perdure("send", "--json", agent.pane, "--timeout", "60", "--", text)
        told = only_json(ran)
        assert (ran.code, told["result"], told["agent"]) == (0, "delivered", name), (told, str(agent))
        see_answered(agent, text, since)
        print(f"{name}: by {told['by']}, {told['enters']} Enter")
    if name not in DRAFTS_NOT_TOLD:
        see_draft_left_alone(agent)
    agent.quit()


def start_with_something_to_do(stage: Stage, name: str) -> Agent:
    """Let Perdure start an agent with a prompt, and see that it is ready, was given it, and has answered."""
    program = stage.configure(name)
    environ = stage.environ(program)
    stage.write(".profile", f"PATH='{environ['PATH']}'\n")
    given = [name, *program.words, *program.options(stage.place)]
    # Without options of the set-up it is started as Perdure starts it.
    words = ["--", *given] if program.options(stage.place) or len(program.words) > 1 else []
    asking = ["new", "--json", "fresh", "--agent", name, "--cwd", stage.directory("alpha"), "--prompt", FIRST]
    stage.note_start(name)
    ran = stage.perdure(*asking, "--timeout", str(program.patience), *words, env=environ)
    made = only_json(ran)
    assert (ran.code, made["result"], made["agent"]) == (0, "ready", name), made
    agent = Agent(stage, program, made["pane"])
    see_answered(agent, FIRST)
    print(f"{name}: {made['state']}, {'typed' if made['delivery'] else 'on its command line'}")
    return agent


def see_answered(agent: Agent, text: str, since: int = 0) -> None:
    """See that the model was asked this, that its answer is on the screen, and that the agent has come to rest."""
    seen = agent.wait_for_request(text, since)
    agent.wait_for(rf"STUB-REPLY {seen.number}\b", where="history")
    # What is typed into one that is still drawing itself is nobody's fault when it is lost.
    agent.wait_until_still()


def see_draft_left_alone(agent: Agent) -> None:
    """See that nothing is joined with what a person has begun to type, which is theirs to go on with or to take back."""
    for draft in ("half typed", " and so long that it takes several lines " + "of it " * 30 + "end"):
        agent.write(draft)
        before = agent.wait_until_still()
        ran = agent.stage.perdure("send", "--json", agent.pane, "--", "something else")
        assert (ran.code, only_json(ran)["result"]) == (6, "refused"), (ran.out, str(agent))
        assert only_json(ran)["draft"]
        assert "something else" not in before
        assert "something else" not in agent.screen()
    while "half typed" in agent.screen():
        agent.keys(*["BSpace"] * 300)
        agent.wait_until_still()
