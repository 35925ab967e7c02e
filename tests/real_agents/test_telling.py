"""Every agent that is started anew is ready when it is said to be, and hears what it is sent."""

from __future__ import annotations

import pytest

from tests.acceptance.kit import only_json
from tests.real_agents.agents import PROGRAMS
from tests.real_agents.kit import Agent, Stage

TEXT = "-please answer this: \"quoted\" 'too' $HOME; and\nthe second line"


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_agent_hears_what_it_is_sent(stage: Stage, name: str) -> None:
    agent = stage.start(name)
    # What is typed into one that is still drawing itself is nobody's fault when it is lost.
    agent.wait_until_still()
    for text in (TEXT, "and a short one"):
        since = len(stage.stub.seen)
        ran = stage.perdure("send", "--json", agent.pane, "--timeout", "60", "--", text)
        told = only_json(ran)
        assert (ran.code, told["result"], told["agent"]) == (0, "delivered", name), (told, str(agent))
        agent.wait_for_request(text, since)
        agent.wait_until_still()
        print(f"{name}: by {told['by']}, {told['enters']} Enter")
    agent.quit()


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_agent_is_started_with_something_to_do(stage: Stage, name: str) -> None:
    program = stage.configure(name)
    environ = stage.environ(program)
    stage.write(".profile", f"PATH='{environ['PATH']}'\n")
    given = [name, *program.words, *program.options(stage.place)]
    # Without options of the set-up it is started as Perdure starts it.
    words = ["--", *given] if program.options(stage.place) or len(program.words) > 1 else []
    prompt = "tell me of \"this\"; $HOME and 'that'"
    asking = ["new", "--json", "fresh", "--agent", name, "--cwd", stage.directory("alpha"), "--prompt", prompt]
    ran = stage.perdure(*asking, "--timeout", str(program.patience), *words, env=environ)
    made = only_json(ran)
    assert (ran.code, made["result"], made["agent"]) == (0, "ready", name), made
    agent = Agent(stage, program, made["pane"])
    agent.wait_for_request(prompt)
    print(f"{name}: {made['state']}, {'typed' if made['delivery'] else 'on its command line'}")
    agent.wait_until_still()
