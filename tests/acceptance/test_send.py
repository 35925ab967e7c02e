from __future__ import annotations

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from shlex import join, quote

import pytest

from perdure.model.run import Run
from tests.acceptance.boxing import Ring, screen
from tests.acceptance.kit import only_json, sentence, wait_for
from tests.acceptance.simulants import Simulants
from tests.acceptance.watching import watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import LETTING_GO, TmuxServer


@pytest.fixture
def ring(private_home: PrivateHome) -> Ring:
    return Ring(private_home)


def test_an_agents_transcript_confirms_what_it_was_told(
    private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure
) -> None:
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", agents.path, "--think", "0.1")
    agents.await_running(1, 0)
    wait_for(lambda: "you ▸" in screen(tmux, "work:"), "the input")
    canary = os.path.join(private_home.root, "canary")
    confirmed: list[str] = []
    for text in (
        f'\'; touch {canary}; "$(touch {canary})" `touch {canary}` #',
        "-n leading dash",
        ";",
        "~ % #{pid} \\",
    ):
        told = only_json(perdure.ok("send", "--json", "work", "--", text))
        assert (told["result"], told["agent"]) == ("delivered", "simulant")
        # Where the machine hardly keeps up, a second one may be needed; were it one too many, it would be a turn too many.
        assert told["enters"] in (1, 2)
        confirmed.append(told["by"])
        agents.await_running(1, 2 * len(confirmed))
    assert not os.path.exists(canary)
    assert agents.turns() == 8
    assert "transcript" in confirmed
    agents.end_all()


def test_lines_arrive_as_one_prompt(ring: Ring, tmux: TmuxServer, perdure: Perdure) -> None:
    pane = ring.start(tmux, "b")
    told = only_json(perdure.ok("send", "--json", pane, "first line\r\n\r\n  third 'line' ü 漢\n"))
    assert (told["result"], told["by"]) == ("delivered", "screen")
    wait_for(lambda: ring.told() == ["first line\n\n  third 'line' ü 漢"], "the prompt")


def test_several_at_once_are_several_prompts(ring: Ring, tmux: TmuxServer, perdure: Perdure) -> None:
    pane = ring.start(tmux, "b")
    texts = [f"number {number} of several" for number in range(3)]
    with ThreadPoolExecutor(len(texts)) as pool:
        told = list(pool.map(lambda text: only_json(perdure("send", "--json", "--timeout", "60", pane, text)), texts))
    assert [each["result"] for each in told] == ["delivered"] * len(texts)
    assert sorted(ring.told()) == texts


def test_an_enter_that_is_swallowed_is_pressed_once_more_and_the_text_never_typed_again(
    ring: Ring, tmux: TmuxServer, perdure: Perdure
) -> None:
    pane = ring.start(tmux, "b", "--swallow", "1")
    told = only_json(perdure.ok("send", "--json", pane, "say it once"))
    assert (told["result"], told["enters"]) == ("delivered", 2)
    assert ring.told() == ["say it once"]


def test_a_text_that_stays_in_the_input_is_unconfirmed(ring: Ring, tmux: TmuxServer, perdure: Perdure) -> None:
    pane = ring.start(tmux, "b", "--swallow", "9")
    ran = perdure("send", "--json", pane, "never heard", "--timeout", "2.5")
    told = only_json(ran)
    assert (ran.code, told["result"], told["enters"]) == (4, "unconfirmed", 2)
    assert "still stands" in told["why"]
    assert screen(tmux, pane).count("never heard") == 1
    assert ring.told() == []


def test_a_pane_in_copy_mode_is_taken_out_of_it(ring: Ring, tmux: TmuxServer, perdure: Perdure) -> None:
    pane = ring.start(tmux, "b")
    tmux.run("copy-mode", "-t", pane)
    assert only_json(perdure.ok("send", "--json", "b:0", "are you there"))["result"] == "delivered"
    assert tmux.show("#{pane_in_mode}", pane) == "0"
    assert ring.told() == ["are you there"]


def test_a_text_never_answers_a_question(ring: Ring, tmux: TmuxServer, perdure: Perdure) -> None:
    pane = ring.start(tmux, "b", "--trust")
    ran = perdure("send", "b", "yes please")
    assert ran.code == 6
    assert "asks for permission" in ran.err
    assert "Allow this?" in screen(tmux, pane)
    assert only_json(perdure.ok("send", "--json", "b", "--key", "y"))["result"] == "delivered"
    assert "answered y" in screen(tmux, pane)


def test_who_insists_may_answer_with_a_text(ring: Ring, tmux: TmuxServer, perdure: Perdure) -> None:
    pane = ring.start(tmux, "b", "--trust")
    ran = perdure("send", "b", "n", "--anyway", "--no-enter", "--timeout", "1")
    assert ran.code in (0, 4)
    wait_for(lambda: "answered n" in screen(tmux, pane), "the answer")


def test_no_enter_leaves_the_text_where_it_was_typed(ring: Ring, tmux: TmuxServer, perdure: Perdure) -> None:
    pane = ring.start(tmux, "b")
    told = only_json(perdure.ok("send", "--json", pane, "only typed", "--no-enter"))
    assert (told["result"], told["enters"]) == ("delivered", 0)
    assert "> only typed" in screen(tmux, pane)
    assert only_json(perdure.ok("send", "--json", pane, "--key", "Enter"))["result"] == "delivered"
    wait_for(lambda: ring.told() == ["only typed"], "the prompt")


def test_a_long_text_comes_from_standard_input_and_nowhere_near_a_command_line(
    ring: Ring, private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure
) -> None:
    pane = ring.start(tmux, "b")
    seen = os.path.join(private_home.root, "seen")
    shim = os.path.join(private_home.root, "shim")
    os.mkdir(shim)
    with open(os.path.join(shim, "tmux"), "w") as file:
        file.write(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{seen}\nexec {shutil.which("tmux")} "$@"\n')
    os.chmod(os.path.join(shim, "tmux"), 0o755)
    text = "\n".join(f"line {number} of the treasure map" for number in range(20_000))
    path = f"{shim}:{os.environ['PATH']}"
    ran = perdure("send", "--json", pane, "-", input=text, env={"PATH": path})
    assert only_json(ran)["result"] == "delivered"
    wait_for(lambda: ring.told() == [text], "all of it")
    with open(seen) as file:
        assert "treasure" not in file.read()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([""], "nothing to send"),
        (["\x1b[201~ls"], "control character"),
        (["a", "--key", "NoSuchKey"], "no key"),
        (["a", "--key", "Enter", "--no-enter"], "--key"),
        (["a", "--timeout", "soon"], "seconds"),
        (["a", "--", "b"], "Several texts"),
    ],
)
def test_what_cannot_be_sent_is_said(perdure: Perdure, words: list[str], said: str) -> None:
    ran = perdure("send", "%0", *words)
    assert ran.code == 2
    assert said in sentence(ran)


def test_too_long_a_text_is_said(perdure: Perdure) -> None:
    ran = perdure("send", "%0", "-", input="x" * (800 << 10))
    assert ran.code == 2
    assert "bytes" in sentence(ran)


def test_a_target_that_is_not_there_is_not_found(tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "a", "-n", "w", "cat", "-")
    for target in ("%99", "b", "a:7", "r5"):
        ran = perdure("send", target, "hello")
        assert ran.code == 3, ran
        sentence(ran)


def test_a_shell_that_shows_the_text_has_it(ring: Ring, tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "s", "-n", "w")
    wait_for(lambda: "$" in screen(tmux, "s:"), "the prompt")
    assert only_json(perdure.ok("send", "--json", "s", "echo 4'2'"))["by"] == "screen"
    wait_for(lambda: "\n42\n" in screen(tmux, "s:"), "the command's output")


def test_a_program_that_shows_nothing_is_unconfirmed(tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "s", "-n", "w", "sh", "-c", "stty -echo; exec sleep 1000")
    wait_for(lambda: tmux.show("#{pane_current_command}", "s:") == "sleep", "the program")
    ran = perdure("send", "s", "hello", "--timeout", "0.5")
    assert ran.code == 4


def test_a_dead_pane_is_told_nothing(tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "keep", "-n", "w", "cat", "-")
    tmux.run("set-option", "-g", "remain-on-exit", "on")
    tmux.run("new-session", "-d", "-s", "d", "-n", "w", "sh", "-c", LETTING_GO + "exit 3")
    wait_for(lambda: tmux.show("#{pane_dead}", "d:") == "1", "the end")
    ran = perdure("send", "d", "hello")
    assert ran.code == 6
    assert "ended" in ran.err


def test_a_mode_that_cannot_be_left_without_a_trace_is_left_alone(
    ring: Ring, tmux: TmuxServer, perdure: Perdure
) -> None:
    pane = ring.start(tmux, "b")
    tmux.run("clock-mode", "-t", pane)
    ran = perdure("send", "b", "hello")
    assert ran.code == 6
    assert "clock-mode" in ran.err
    assert ring.told() == []


@pytest.mark.parametrize("told", [("yes, do it",), ("--key", "Enter")])
def test_nothing_is_typed_that_others_would_get_too(
    ring: Ring, tmux: TmuxServer, perdure: Perdure, told: tuple[str, ...]
) -> None:
    """What one is asked and another would take for its answer."""
    pane = ring.start(tmux, "b")
    tmux.run("split-window", "-d", "-t", "=b:", "cat")
    neighbour = tmux.show("#{pane_id}", "=b:.1")
    tmux.run("set-option", "-w", "-t", "=b:", "synchronize-panes", "on")
    ran = perdure("send", "--json", pane, *told)
    assert (ran.code, only_json(ran)["result"]) == (6, "refused")
    assert "synchronize-panes" in only_json(ran)["why"]
    assert not tmux.run("capture-pane", "-p", "-t", neighbour).strip()
    tmux.run("kill-pane", "-t", neighbour)
    # Alone in its window, it is nobody else's.
    assert only_json(perdure("send", "--json", pane, *told))["result"] in ("delivered", "unconfirmed")


def test_a_pane_that_takes_no_input_is_told_nothing(ring: Ring, tmux: TmuxServer, perdure: Perdure) -> None:
    pane = ring.start(tmux, "b")
    tmux.run("select-pane", "-d", "-t", pane)
    ran = perdure("send", "--json", pane, "hello")
    assert (ran.code, only_json(ran)["result"], only_json(ran)["why"]) == (6, "refused", "it was told to take no input")


# -- another agent in the same pane -----------------------------------------------------------------------------------

ONE, OTHER = (f"{digit * 8}-{digit * 4}-4{digit * 3}-8{digit * 3}-{digit * 12}" for digit in "12")


@pytest.fixture
def agents(private_home: PrivateHome) -> Simulants:
    return Simulants(private_home)


def begun(agents: Simulants, tmux: TmuxServer, *, said: str = "", session: str = ONE) -> str:
    """Start a simulated agent in a session of its own, and return its pane once it waits."""
    words = (agents.path, "--think", "0.1", "--session", session, *((said,) if said else ()))
    made = tmux.run("new-session", "-d", "-P", "-F", "#{pane_id}", "-s", "work", "-n", "w", *words)
    agents.await_running(1, 2 if said else 0)
    pane = made.decode().strip()
    wait_for(lambda: screen(tmux, pane).rstrip().endswith("you ▸"), "the input")
    return pane


def await_only(agents: Simulants, tmux: TmuxServer, conversation: str) -> None:
    """Wait until nobody but the agent in this conversation is there, and it waits."""
    wait_for(lambda: list(agents.running()) == [conversation], f"nobody but {conversation}")
    wait_for(lambda: screen(tmux, "work:").rstrip().endswith("you ▸"), "the input")


def replaced(agents: Simulants, tmux: TmuxServer, *words: str) -> None:
    """Start another agent in the pane, in place of the one that is there."""
    tmux.run("respawn-pane", "-k", "-t", "work:", agents.path, "--think", "0.1", *words)


def is_known(run: Run) -> bool:
    return run.identity is not None and run.identity.conversation == ONE and run.program is not None


def test_a_run_whose_pane_has_another_agent_by_now_is_told_nothing(
    agents: Simulants, tmux: TmuxServer, perdure: Perdure
) -> None:
    """What the daemon has not seen yet, its run is not."""
    begun(agents, tmux)
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0", is_known, "with its agent")
        watcher.process.send_signal(signal.SIGSTOP)
        try:
            replaced(agents, tmux, "--session", OTHER)
            await_only(agents, tmux, OTHER)
            ran = perdure("send", "--json", run.id, "for the first one alone")
        finally:
            watcher.process.send_signal(signal.SIGCONT)
        told = only_json(ran)
        assert (ran.code, told["result"], told["enters"]) == (6, "refused", 0), told
        assert told["why"] == "another agent was started there meanwhile; look again"
        assert "for the first one" not in screen(tmux, "work:")
        # Once it is seen, the run is this agent's.
        watcher.await_run(run.id, lambda run: run.identity is not None and run.identity.conversation == OTHER)
        assert only_json(perdure.ok("send", "--json", run.id, "for the second one"))["result"] == "delivered"
    agents.await_running(1, 2)
    agents.end_all()


@pytest.mark.parametrize("key", [(), ("--key", "Enter"), ("--anyway",)])
def test_a_run_from_before_is_not_the_agent_that_is_there_now(
    agents: Simulants, tmux: TmuxServer, perdure: Perdure, key: tuple[str, ...]
) -> None:
    """Without a daemon nobody has seen it at all; whoever names the place means whoever is there."""
    pane = begun(agents, tmux)
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0", is_known, "with its agent")
    replaced(agents, tmux, "--session", OTHER)
    await_only(agents, tmux, OTHER)
    ran = perdure("send", "--json", run.id, *(key if "Enter" in key else ("for the first one alone", *key)))
    told = only_json(ran)
    assert (ran.code, told["result"], told["enters"]) == (6, "refused", 0), told
    assert told["why"] == "another agent was started there meanwhile; look again"
    assert "for the first one" not in screen(tmux, pane)
    assert agents.turns() == 0
    if not key:
        assert only_json(perdure.ok("send", "--json", pane, "for whoever is there"))["result"] == "delivered"
        agents.await_running(1, 2)
    agents.end_all()


def test_an_agent_that_was_quit_and_started_anew_is_another(
    agents: Simulants, tmux: TmuxServer, perdure: Perdure
) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "w")
    wait_for(lambda: "$" in screen(tmux, "work:"), "the prompt")
    tmux.run("send-keys", "-t", "work:", f"{agents.path} --think 0.1 --session {ONE}", "Enter")
    await_only(agents, tmux, ONE)
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0", is_known, "with its agent")
    tmux.run("send-keys", "-t", "work:", "/quit", "Enter")
    wait_for(lambda: not agents.running(), "its end")
    tmux.run("send-keys", "-t", "work:", f"{agents.path} --think 0.1 --session {OTHER}", "Enter")
    await_only(agents, tmux, OTHER)
    ran = perdure("send", "--json", run.id, "for the first one alone")
    assert (ran.code, only_json(ran)["why"]) == (6, "another agent was started there meanwhile; look again")
    assert agents.turns() == 0
    agents.end_all()


def test_the_same_conversation_in_another_process_is_who_is_meant(
    agents: Simulants, tmux: TmuxServer, perdure: Perdure
) -> None:
    begun(agents, tmux, said="first things first")
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0", is_known, "with its agent")
    tmux.run("set-option", "-g", "remain-on-exit", "on")
    agents.end_all()
    replaced(agents, tmux, "--resume", ONE)
    await_only(agents, tmux, ONE)
    told = only_json(perdure.ok("send", "--json", run.id, "and then the rest"))
    assert (told["result"], told["agent"]) == ("delivered", "simulant")
    agents.await_running(1, 4)
    agents.end_all()


def test_a_conversation_that_is_named_is_the_only_one_that_is_told(
    agents: Simulants, tmux: TmuxServer, perdure: Perdure
) -> None:
    """The same agent may have gone on to another since."""
    pane = begun(agents, tmux)
    tmux.run("send-keys", "-t", pane, "/new", "Enter")
    wait_for(lambda: agents.running() and ONE not in agents.running(), "another conversation")
    [current] = agents.running()
    ran = perdure("send", "--json", "work", "for the first one alone", "--conversation", ONE)
    assert (ran.code, only_json(ran)["result"]) == (6, "refused")
    assert only_json(ran)["why"] == "it is not in that conversation any more; look again"
    assert agents.turns() == 0
    assert only_json(perdure.ok("send", "--json", "work", "go on", "--conversation", current))["result"] == "delivered"
    agents.await_running(1, 2)
    agents.end_all()


def interposed(home: PrivateHome, tmux: TmuxServer, word: str, script: str, *, behind: str = "") -> dict[str, str]:
    """Return an environment in which this is done, once, in the moment before tmux is told a word for the first time.

    Or for the first time behind another word.
    """
    shim = os.path.join(home.root, "interposed")
    os.mkdir(shim)
    real = shutil.which("tmux")
    assert real is not None
    with open(os.path.join(shim, "tmux"), "w") as file:
        file.write(
            f'#!/bin/sh\nhere={quote(shim)}\ntmux() {{ {quote(real)} -S {quote(tmux.socket)} "$@"; }}\n'
            f'case "$*" in *{word}*) [ -e "$here/behind{behind}" ] && mkdir "$here/done" 2>/dev/null && {{ {script}; }};; esac\n'
            f'case "$*" in *"{behind}"*) true >"$here/behind{behind}";; esac\n'
            f'exec {quote(real)} "$@"\n'
        )
    os.chmod(os.path.join(shim, "tmux"), 0o755)
    if not behind:
        os.mknod(os.path.join(shim, "behind"))
    return {"PATH": f"{shim}:{os.environ['PATH']}"}


def replacing(agents: Simulants) -> str:
    """What starts another agent in the pane, in place of whatever is there."""
    return f"tmux respawn-pane -k -t work: {join((agents.path, '--think', '0.1', '--session', OTHER))}"


@pytest.mark.parametrize(
    ("word", "text", "result"),
    [
        # Before the pane is looked at once more, before the text, before keys alone, and between the text and Enter.
        ("capture-pane", ("for the first one alone",), "refused"),
        ("load-buffer", ("for the first one alone",), "refused"),
        ("send-keys", ("--key", "x", "--key", "Enter"), "refused"),
        ("send-keys", ("for the first one alone",), "unconfirmed"),
    ],
)
def test_nobody_hears_what_another_was_to_be_told_whenever_they_came(
    private_home: PrivateHome,
    agents: Simulants,
    tmux: TmuxServer,
    perdure: Perdure,
    word: str,
    text: tuple[str, ...],
    result: str,
) -> None:
    pane = begun(agents, tmux)
    env = interposed(private_home, tmux, word, replacing(agents))
    told = only_json(perdure("send", "--json", pane, *text, env=env))
    assert (told["result"], told["enters"]) == (result, 0), told
    assert told["why"].endswith("look again" if result == "refused" else "Enter was not pressed")
    await_only(agents, tmux, OTHER)
    assert "for the first one" not in screen(tmux, pane)
    assert agents.turns() == 0
    agents.end_all()


@pytest.mark.parametrize(
    ("word", "behind", "result"),
    [
        # Before it is looked at, while what somebody has begun to type there is waited for, before it is taken out of copy
        # mode, and between the text and Enter.
        ("capture-pane", "", "refused"),
        ("capture-pane", "capture-pane", "refused"),
        ("cancel", "", "refused"),
        ("capture-pane", "load-buffer", "unconfirmed"),
    ],
)
def test_an_agent_that_was_stopped_for_another_in_the_same_shell_is_not_there(
    private_home: PrivateHome,
    agents: Simulants,
    tmux: TmuxServer,
    perdure: Perdure,
    word: str,
    behind: str,
    result: str,
) -> None:
    """Both live, and the pane's first process is the same."""
    tmux.run("new-session", "-d", "-s", "work", "-n", "w")
    wait_for(lambda: "$" in screen(tmux, "work:"), "the prompt")
    tmux.run("send-keys", "-t", "work:", f"{agents.path} --think 0.1 --session {ONE}", "Enter")
    await_only(agents, tmux, ONE)
    if word == "cancel":
        tmux.run("copy-mode", "-t", "work:")
    if behind == "capture-pane":
        tmux.run("send-keys", "-t", "work:", "-l", "half a ")
        wait_for(lambda: "▸ half a" in screen(tmux, "work:"), "what was begun")
    shown = "until tmux capture-pane -p -t work: | grep -q {}; do sleep 0.05; done"
    steps = [
        *(["tmux send-keys -t work: -X cancel"] if word == "cancel" else []),
        "tmux send-keys -t work: C-z",
        shown.format("Stopped"),
        f"tmux send-keys -t work: 'clear; {agents.path} --think 0.1 --session {OTHER}' Enter",
        shown.format(f"'conversation {OTHER}'"),
        shown.format("'^you ▸'"),
        *(["tmux copy-mode -t work:"] if word == "cancel" else []),
    ]
    env = interposed(private_home, tmux, word, "; ".join(steps), behind=behind)
    told = only_json(perdure("send", "--json", "work", "for the first one alone", env=env))
    assert (told["result"], told["enters"]) == (result, 0), told
    if result == "refused":
        assert told["why"] == "another agent was started there meanwhile; look again"
        assert "for the first one" not in screen(tmux, "work:")
    else:
        assert told["why"].startswith("another program was started there just then")
    assert sorted(agents.running()) == [ONE, OTHER]
    assert agents.turns() == 0
    agents.end_all()


def test_what_a_new_agent_was_to_be_asked_no_other_is(
    private_home: PrivateHome, agents: Simulants, tmux: TmuxServer, perdure: Perdure
) -> None:
    tmux.run("new-session", "-d", "-s", "keep", "-n", "w", "cat", "-")
    env = interposed(private_home, tmux, "load-buffer", replacing(agents))
    words = (agents.path, "--session", ONE)
    ran = perdure("new", "work", "--json", "--agent", "simulant", "--prompt", "first this", "--", *words, env=env)
    made = only_json(ran)
    assert (ran.code, made["result"], made["delivery"]["result"]) == (4, "not_ready", "refused"), made
    await_only(agents, tmux, OTHER)
    assert agents.turns() == 0
    agents.end_all()
