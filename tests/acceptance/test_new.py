from __future__ import annotations

import json
import os
import sys
from glob import glob

import pytest

from perdure.agents import roster
from perdure.host.clock import now, pause
from perdure.host.files import Files
from perdure.host.users import current_user
from perdure.live.launch import Readiness, launch, request
from perdure.tmux.act import Spot, end_unused
from tests.acceptance.boxing import Ring, screen
from tests.acceptance.kit import only_json, sentence, wait_for
from tests.acceptance.simulants import Simulants
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure, Ran
from tests.tmux_server import TmuxServer

HOSTILE = [
    "do $(touch {canary}) now",
    "do `touch {canary}` now",
    "'; touch {canary}; '",
    '"; touch {canary}; "',
    "one & touch {canary} | cat > {canary}; #(touch {canary})",
    "-x $(touch {canary})",
    "a\nb; touch {canary}\n",
    "ends with ;",
    "ends with a backslash \\",
    "#{{pane_id}} %H ~ * ! \\; ü 漢",
    "help",
]


@pytest.fixture
def agents(private_home: PrivateHome) -> Simulants:
    return Simulants(private_home)


def test_a_new_agent_is_ready_in_a_session_of_its_own(
    agents: Simulants, private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure
) -> None:
    made = only_json(perdure.ok("new", "--json", "work", "--agent", "simulant", "--cwd", private_home.home))
    assert (made["result"], made["state"], made["agent"], made["name"]) == ("ready", "idle", "simulant", "work")
    assert "you ▸" in screen(tmux, made["pane"])
    assert tmux.show("#{pane_current_path}", made["pane"]) == os.path.realpath(private_home.home)
    tmux.run("send-keys", "-t", made["pane"], "/quit", "Enter")
    wait_for(lambda: "simulant ended with status 0" in screen(tmux, made["pane"]), "the end of the agent")
    wait_for(lambda: screen(tmux, made["pane"]).rstrip().endswith("$"), "the shell that is left")
    agents.end_all()


def test_what_is_asked_for_first_is_asked_exactly_and_by_no_shell(
    agents: Simulants, private_home: PrivateHome, tmux: TmuxServer
) -> None:
    canary = os.path.join(private_home.root, "canary")
    known, me = roster(), current_user()
    view = Files(me.home, spool=os.path.join(private_home.state, "spool"), query=lambda *_: None)
    adapter = known.called({"simulant"})["simulant"]
    wanted = [text.format(canary=canary) for text in HOSTILE]
    for prompt in wanted:
        made = launch(
            request(None, private_home.home, agent=adapter, prompt=prompt),
            socket=tmux.socket,
            owner=me,
            known=known,
            view=view,
            environ=dict(os.environ),
            inherits=True,
            now=now,
            pause=pause,
            timeout=60,
            patience=60,
        )
        assert made.result is Readiness.READY, (prompt, made)
    wait_for(lambda: len(_asked(private_home)) == len(wanted), "all of them")
    assert sorted(_asked(private_home)) == sorted(wanted)
    assert not os.path.exists(canary)
    agents.end_all()


def _asked(home: PrivateHome) -> list[str]:
    """What the agents say they were asked, as far as whole lines of it are there."""
    found = []
    for path in glob(os.path.join(home.home, ".simulant", "conversations", "*.jsonl")):
        with open(path) as file:
            turns = [json.loads(line) for line in file if line.endswith("\n")]
        found += [turn["text"] for turn in turns if turn.get("role") == "user"]
    return found


def test_sessions_without_a_name_are_numbered_on(tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "7", "-n", "w", "cat", "-")
    assert [only_json(perdure.ok("new", "--json"))["name"] for _ in range(2)] == ["8", "9"]


def test_a_name_with_a_backslash_is_found_as_it_was_given_and_as_tmux_has_it(
    tmux: TmuxServer, perdure: Perdure
) -> None:
    made = only_json(perdure.ok("new", "--json", "b\\s", "--", "cat", "-"))
    assert tmux.run("list-sessions", "-F", "#{session_name}").decode() == f"{made['name']}\n"
    for name in ("b\\s", made["name"], f"={made['name']}", "b\\s:0"):
        assert only_json(perdure.ok("send", "--json", name, "hello"))["pane"] == made["pane"]
    assert perdure("new", "b\\s").code == 6
    assert only_json(perdure.ok("kill", "--json", "b\\s"))["target"] == made["name"]


def test_a_name_that_is_taken_is_refused(tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "mine", "-n", "w", "cat", "-")
    ran = perdure("new", "mine")
    assert ran.code == 6
    assert "mine" in sentence(ran)
    assert tmux.run("list-sessions", "-F", "#{session_name}") == b"mine\n"


def test_any_command_is_started_word_for_word(private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure) -> None:
    out = os.path.join(private_home.root, "words")
    script = "import json, os, sys, time; json.dump(sys.argv[2:], open(sys.argv[1] + '.new', 'w'));"
    script += "os.rename(sys.argv[1] + '.new', sys.argv[1]); time.sleep(1000)"
    words = ["a b", "", ";", "x;", "\\;", "$(id)", "'", '"', "-n", "--", "#{pid}", "ü\n漢"]
    made = only_json(perdure.ok("new", "--json", "job", "--", sys.executable, "-c", script, out, *words))
    assert (made["result"], made["agent"]) == ("ready", None)
    wait_for(lambda: os.path.exists(out), "the words")
    with open(out) as file:
        assert json.load(file) == words


def test_a_program_that_is_not_there_is_told_with_what_the_pane_shows(perdure: Perdure) -> None:
    ran = perdure("new", "--json", "--", "no-such-program", "now")
    made = only_json(ran)
    assert (ran.code, made["result"], made["state"]) == (1, "ended", "exited")
    assert "127" in made["why"]
    assert any("no-such-program" in line for line in made["screen"])


def test_nothing_is_left_of_a_session_in_which_nothing_could_be_started(tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "mine", "-n", "w", "cat", "-")
    # Again by the same name: that is free for another try.
    for _ in range(2):
        ran = perdure("new", "fix", "--agent", "goose", "--", "no-such-program")
        assert ran.code == 1
        assert "ended with status 127; its session was ended again." in ran.err
        assert tmux.run("list-sessions", "-F", "#{session_name}") == b"mine\n"


def test_a_program_that_was_started_and_failed_leaves_its_session(tmux: TmuxServer, perdure: Perdure) -> None:
    made = only_json(perdure("new", "--json", "fix", "--", "false"))
    assert (made["result"], made["gone"]) == ("ended", False)
    assert tmux.show("#{pane_id}", made["pane"]) == made["pane"]


@pytest.mark.parametrize("used", ["split-window", "new-window", "link-window", "group"])
def test_a_session_that_somebody_uses_already_is_not_ended(tmux: TmuxServer, used: str) -> None:
    tmux.run("new-session", "-d", "-s", "mine", "-n", "w", "cat", "-")
    tmux.run("new-session", "-d", "-s", "fix", "-n", "w", "cat", "-")
    tmux.run(
        *{
            "split-window": ("split-window", "-d", "-t", "fix", "cat", "-"),
            "new-window": ("new-window", "-d", "-t", "fix", "cat", "-"),
            "link-window": ("link-window", "-d", "-s", "fix:0", "-t", "mine:9"),
            "group": ("new-session", "-d", "-s", "more", "-t", "fix"),
        }[used]
    )
    pane, session, first, server = tmux.show("#{pane_id} #{session_id} #{pane_pid} #{pid}", "fix:0.0").split()
    spot = Spot(tmux.socket, current_user(), pane, int(server), first=int(first))
    end_unused(spot, session)
    assert "fix" in tmux.run("list-sessions", "-F", "#{session_name}").decode().split()
    # And it would have been ended without that.
    tmux.run("new-session", "-d", "-s", "alone", "-n", "w", "cat", "-")
    pane, session, first = tmux.show("#{pane_id} #{session_id} #{pane_pid}", "alone:0.0").split()
    end_unused(spot._replace(pane=pane, first=int(first)), session)
    assert "alone" not in tmux.run("list-sessions", "-F", "#{session_name}").decode().split()


def test_an_agent_that_wants_somebody_first_says_so(
    private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure
) -> None:
    ring = Ring(private_home)
    ran = perdure("new", "b", "--agent", "boxer", "--prompt", "do it", "--", ring.path, "--trust")
    assert ran.code == 4
    assert "attention(permission)" in ran.err
    assert "Allow this?" in ran.err
    assert "; the prompt was not typed." in ran.err
    assert ring.told() == []


def test_an_agent_that_does_not_get_ready_is_not_waited_for_forever(
    private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure
) -> None:
    ring = Ring(private_home)
    # A shell, which has shown something long before the time is up.
    with open(ring.path, "w") as file:
        file.write("#!/bin/sh\necho loading\nexec sleep 1000\n")
    ran = perdure("new", "--json", "--agent", "boxer", "--timeout", "2", "--", ring.path)
    made = only_json(ran)
    assert (ran.code, made["result"], made["screen"]) == (4, "not_ready", ["loading"])
    assert tmux.show("#{pane_id}", made["pane"]) == made["pane"]


def test_what_is_said_of_an_agent_is_of_the_moment_its_state_is_of(agents: Simulants, perdure: Perdure) -> None:
    made = only_json(perdure.ok("new", "--json", "--agent", "simulant", "--prompt", "go", "--", agents.path))
    assert (made["result"], made["delivery"]["result"]) == ("ready", "delivered")
    assert made["why"] == f"the prompt is delivered: {made['delivery']['why']}"
    agents.end_all()


def test_an_agent_that_its_first_prompt_ends_has_ended(agents: Simulants, perdure: Perdure) -> None:
    ran: list[Ran] = []
    # One that takes its time to end may still be seen there.
    while len(ran) < 5 and (not ran or ran[-1].code != 1):
        ran.append(perdure("new", "--json", "--agent", "simulant", "--prompt", "/quit"))
    made = only_json(ran[-1])
    assert (ran[-1].code, made["result"], made["state"]) == (1, "ended", "exited")
    assert made["why"] == "simulant ended with status 0"


def test_a_prompt_for_an_agent_without_words_for_it_is_typed(
    private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure
) -> None:
    ring = Ring(private_home)
    made = only_json(perdure.ok("new", "--json", "--agent", "boxer", "--prompt", "first\nsecond; $(x)"))
    assert (made["result"], made["delivery"]["result"]) == ("ready", "delivered")
    assert ring.told() == ["first\nsecond; $(x)"]


def test_a_server_that_is_started_learns_nothing_of_ours(
    private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure
) -> None:
    ran = perdure("new", "--json", env={"TMUX": "/nowhere,1,0", "TMUX_PANE": "%9", "MY_OWN": "kept"})
    assert only_json(ran)["result"] == "ready"
    names = {line.partition("=")[0] for line in tmux.run("show-environment", "-g").decode().splitlines()}
    assert "MY_OWN" in names
    assert not {name for name in names if name.startswith(("TMUX_PANE", "PERDURE_"))}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--cwd", "/no/such/place"], 2),
        (["a:b"], 2),
        (["a.b"], 2),
        ([" "], 2),
        (["--prompt", "x y"], 2),
        (["--"], 2),
        (["--", ""], 2),
        (["--agent", "nobody"], 3),
        (["--timeout", "-1"], 2),
    ],
)
def test_what_cannot_be_started_is_said(tmux: TmuxServer, perdure: Perdure, words: list[str], code: int) -> None:
    ran = perdure("new", *words)
    assert ran.code == code
    sentence(ran)
    assert not tmux.alive


def test_no_directory_is_made_for_a_socket(private_home: PrivateHome, perdure: Perdure) -> None:
    missing = os.path.join(private_home.sockets, "missing")
    ran = perdure("new", "--socket", os.path.join(missing, "socket"))
    assert ran.code == 2
    assert missing in sentence(ran)
    assert not os.path.exists(missing)
