"""A part of what was there: only what is asked for, only what is missing, and nothing at all when that is wanted."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Callable, Iterator

import msgspec
import pytest

from tests.acceptance.kit import history, only_json, save, sentence, wait_for
from tests.acceptance.restoring import (
    Picture,
    await_calm,
    await_same,
    by_target,
    contents,
    count_panes,
    foreground,
    picture,
    restored,
    user_configuration,
)
from tests.acceptance.simulants import Simulants, starts
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

STEP = {"n", "target", "action", "agent", "conversation", "argv", "cwd", "result", "why"}
SUMMARY = {"panes", "created", "resumed", "verified", "skipped", "failed"}
RESULTS = {"planned", "done", "verified", "unverified", "skipped", "failed"}


@pytest.fixture
def work(private_home: PrivateHome, tmux: TmuxServer) -> Picture:
    """Two sessions of a group and one beside them: eight panes, each with a program that says which it is."""
    user_configuration(private_home, "set -g automatic-rename off\n")
    home = private_home.home
    tmux.run("new-session", "-d", "-s", "a", "-n", "three", "-x", "120", "-y", "40", "-c", home, "sleep", "1001")
    tmux.run("set-option", "-g", "automatic-rename", "off")
    tmux.run("split-window", "-d", "-t", "a:0", "-h", "-l", "30", "-c", home, "sleep", "1002")
    tmux.run("split-window", "-d", "-t", "a:0.1", "-v", "-l", "9", "-c", home, "sleep", "1003")
    tmux.run("new-window", "-d", "-t", "a:3", "-n", "log.s", "-c", home, "sleep", "1004")
    tmux.run("new-window", "-d", "-t", "a:5", "-n", "last", "-c", home, "sleep", "1005")
    tmux.run("new-session", "-d", "-s", "two", "-t", "a", ";", "select-window", "-t", "two:3")
    tmux.run("new-session", "-d", "-s", "b", "-n", "bee", "-x", "100", "-y", "30", "-c", home, "sleep", "1006")
    return await_calm(tmux)


def running(tmux: TmuxServer) -> dict[str, str]:
    """What runs where, by its place; a window of a group by each of its sessions."""
    format = "#{session_name}:#{window_index}.#{pane_index} #{pane_pid}"
    rows = tmux.run("list-panes", "-a", "-F", format).decode().splitlines()
    words = {place: foreground(int(pid))[0] for place, pid in (row.split(" ") for row in rows)}
    return {place: argv[-1] if argv else "" for place, argv in words.items()}


def pids(tmux: TmuxServer) -> set[bytes]:
    return set(tmux.run("list-panes", "-a", "-F", "#{pane_pid}").split())


def files(home: PrivateHome) -> dict[str, tuple[int, int]]:
    """Everything in the state directory, with size and time of change."""
    found = {}
    for folder, _, names in os.walk(home.state):
        for name in names:
            status = os.stat(os.path.join(folder, name))
            found[os.path.join(folder, name)] = (status.st_size, status.st_mtime_ns)
    return found


# What is asked for


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("b", {"b:0.0": "1006"}),
        ("two:3", {"two:3.0": "1004"}),
        ("a:log.s", {"a:3.0": "1004"}),
        ("a:0.1", {"a:0.0": "1002"}),
    ],
)
def test_only_what_is_asked_for(
    work: Picture, perdure: Perdure, tmux: TmuxServer, target: str, wanted: dict[str, str]
) -> None:
    save(perdure)
    tmux.kill9()
    answer = restored(perdure, "--programs", "all", target)
    wait_for(lambda: running(tmux) == wanted, f"{wanted}")
    assert answer["summary"]["created"] == len(wanted)
    left = [step for step in answer["steps"] if step["action"] == "leave"]
    assert len(left) == len(answer["steps"]) - len(wanted)
    assert {step["result"] for step in left} == {"skipped"}


def test_the_rest_comes_later_and_in_its_place(work: Picture, perdure: Perdure, tmux: TmuxServer) -> None:
    save(perdure)
    tmux.kill9()
    restored(perdure, "--programs", "all", "a:0.2")
    restored(perdure, "--programs", "all", "two")
    restored(perdure, "--programs", "all")
    for session in ("a", "two"):
        # It was the only one for a while, and so tmux remembers it as the last one.
        work[session]["windows"][0]["panes"][2]["last"] = "1"
    await_same(work, tmux)


def test_a_pane_by_its_id_and_several_targets(work: Picture, perdure: Perdure, tmux: TmuxServer) -> None:
    pane = tmux.show("#{pane_id}", "a:5")
    save(perdure)
    tmux.kill9()
    restored(perdure, "--programs", "all", pane, "b:0")
    wait_for(lambda: set(running(tmux).values()) == {"1005", "1006"}, "both")


def test_what_nobody_saved_is_not_found(work: Picture, perdure: Perdure, tmux: TmuxServer) -> None:
    save(perdure)
    for target in ("c", "a:9", "a:0.7", "%999", "a*", ""):
        ran = perdure("restore", target)
        assert ran.code == 3, target
        assert repr(target) in sentence(ran)
        assert ran.out == ""


@pytest.mark.parametrize(
    "words",
    [
        ["--programs", "some"],
        ["--max-parallel", "0"],
        ["--max-parallel", "many"],
        ["--from", "latest", "--all-users"],
        ["--progress"],
        ["--progress", "--json", "--dry-run"],
        ["--nonsense"],
        ["--from"],
    ],
)
def test_what_makes_no_sense_is_refused(perdure: Perdure, tmux: TmuxServer, words: list[str]) -> None:
    ran = perdure("restore", *words)
    assert ran.code == 2, ran
    assert "Traceback" not in ran.err
    assert not tmux.alive


# What is missing


def test_a_living_server_gets_only_what_it_lacks(work: Picture, perdure: Perdure, tmux: TmuxServer) -> None:
    save(perdure)
    assert restored(perdure)["summary"]["created"] == 0
    for lost in (["kill-pane", "-t", "a:0.1"], ["kill-pane", "-t", "a:0.2"], ["kill-window", "-t", "a:3"]):
        tmux.run(*lost)
        left = pids(tmux)
        answer = restored(perdure, "--programs", "all")
        assert answer["summary"]["created"] == 1
        wait_for(lambda: len(pids(tmux)) == 6, "the lost pane")
        assert left < pids(tmux)
        assert restored(perdure, "--programs", "all")["summary"]["created"] == 0
        await_same({**work, "two": picture(tmux)["two"]}, tmux)
    for lost in (["kill-session", "-t", "two"], ["kill-session", "-t", "b"]):
        tmux.run(*lost)
    left = pids(tmux)
    restored(perdure, "--programs", "all")
    await_same(work, tmux)
    assert left < pids(tmux)


def test_a_session_of_the_same_name_is_left_alone(
    private_home: PrivateHome, work: Picture, perdure: Perdure, tmux: TmuxServer
) -> None:
    save(perdure)
    tmux.kill9()
    tmux.run("new-session", "-d", "-s", "b", "-n", "mine", "sleep", "2000", ";", "new-window", "-d", "-t", "b:7")
    mine = await_calm(tmux)
    left = pids(tmux)
    answer = restored(perdure, "--programs", "all")
    await_same({**work, "b": mine["b"]}, tmux)
    assert left < pids(tmux)
    assert by_target(answer)["b:0.0"]["action"] == "keep"


# What is in use


@pytest.fixture
def simulants(private_home: PrivateHome) -> Iterator[Simulants]:
    agents = Simulants(private_home)
    yield agents
    agents.end_all()


def begin(simulants: Simulants, tmux: TmuxServer, session: str, prompt: str) -> str:
    """Start an agent in a session of its own, ask it something, and return its conversation."""
    known = simulants.running()
    words = [simulants.path, "--think", "0.1", prompt]
    tmux.run("new-session", "-d", "-s", session, "-x", "100", "-y", "30", "-c", os.environ["HOME"], *words)
    wait_for(lambda: any("Noted as number 1" in line for line in contents(tmux, f"={session}:")), "an answer")
    (found,) = simulants.running().keys() - known.keys()
    return found


def crash(simulants: Simulants, tmux: TmuxServer) -> None:
    """Kill the server, and wait until its agents have noticed."""
    tmux.kill9()
    simulants.await_gone()


@pytest.fixture
def elsewhere(simulants: Simulants, tmux_server: Callable[[str], TmuxServer]) -> Iterator[Callable[[str, str], None]]:
    """Resumes a conversation by hand: in another session, on another server, outside tmux."""
    started: list[tuple[subprocess.Popen[bytes], int]] = []

    def resume(where: str, conversation: str) -> None:
        words = [simulants.path, "--resume", conversation]
        home = os.environ["HOME"]
        if where == "outside tmux":
            controller, terminal = pty.openpty()
            process = subprocess.Popen(
                words, stdin=terminal, stdout=terminal, stderr=terminal, cwd=home, start_new_session=True
            )
            os.close(terminal)
            started.append((process, controller))
        else:
            server = tmux_server("default" if where == "another session" else "other")
            server.run("new-session", "-d", "-s", "mine", "-c", home, *words)
        wait_for(lambda: conversation in simulants.running(), "the agent")

    yield resume
    for process, controller in started:
        process.send_signal(signal.SIGTERM)
        process.wait()
        os.close(controller)


@pytest.mark.parametrize("lost", [False, True])
def test_agents_that_were_moved_stay_and_the_others_come_back(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer, lost: bool
) -> None:
    known = [begin(simulants, tmux, name, f"for {name}") for name in ("a", "b", "c")]
    save(perdure)
    tmux.run("join-pane", "-d", "-s", "b:0.0", "-t", "a:0.0")
    if lost:
        tmux.run("kill-session", "-t", "c")
        wait_for(lambda: known[2] not in simulants.running(), "the end of the agent")
    left = pids(tmux)
    planned = [(step["target"], step["action"]) for step in restored(perdure, "--dry-run")["steps"]]
    answer = restored(perdure)
    assert [(step["target"], step["action"]) for step in answer["steps"]] == planned
    assert dict(planned) == {"a:0.0": "keep", "b:0.0": "keep", "c:0.0": "resume" if lost else "keep"}
    assert left <= pids(tmux)
    assert starts(simulants.records()) == dict(zip(known, (1, 1, 1 + lost), strict=True))
    assert restored(perdure)["summary"]["created"] == 0


def test_an_agent_comes_back_into_a_window_that_only_has_others_now(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer
) -> None:
    begin(simulants, tmux, "a", "the first")
    tmux.run("split-window", "-d", "-t", "a:0")
    conversation = begin(simulants, tmux, "b", "the second")
    tmux.run("move-window", "-s", "b:0", "-t", "a:1")
    save(perdure)
    tmux.run("swap-pane", "-d", "-s", "a:0.1", "-t", "a:1.0", ";", "kill-pane", "-t", "a:0.1")
    wait_for(lambda: conversation not in simulants.running(), "the end of the agent")
    left = pids(tmux)
    step = by_target(restored(perdure))["a:1.0"]
    assert (step["result"], step["conversation"]) == ("verified", conversation)
    assert left < pids(tmux)
    assert tmux.show("#{window_panes}", "a:1") == "2"


@pytest.mark.parametrize("where", ["another session", "another server", "outside tmux"])
def test_a_conversation_that_is_alive_is_not_resumed_again(
    simulants: Simulants,
    elsewhere: Callable[[str, str], None],
    perdure: Perdure,
    tmux: TmuxServer,
    where: str,
) -> None:
    busy, free = begin(simulants, tmux, "busy", "the first"), begin(simulants, tmux, "free", "the second")
    save(perdure)
    crash(simulants, tmux)
    elsewhere(where, busy)
    answer = restored(perdure)
    steps = by_target(answer)
    assert (steps["free:0.0"]["result"], steps["free:0.0"]["conversation"]) == ("verified", free)
    # One outside tmux may be about to end: it is waited for, and then for Enter in the pane.
    action = "resume" if where == "outside tmux" else "show"
    assert (steps["busy:0.0"]["action"], steps["busy:0.0"]["result"]) == (action, "skipped")
    assert (steps["busy:0.0"]["agent"], steps["busy:0.0"]["conversation"]) == ("simulant", busy)
    place = {"another session": "pane %", "another server": "/other", "outside tmux": "outside tmux"}[where]
    assert place in steps["busy:0.0"]["why"]
    told = "Enter in the pane resumes it" if where == "outside tmux" else "was not started"
    wait_for(lambda: told in " ".join(contents(tmux, "=busy:")), told)
    wait_for(lambda: f"--resume {busy}" in "\n".join(contents(tmux, "=busy:")), "how it is started")
    assert starts(simulants.records()) == {busy: 2, free: 2}
    assert answer["summary"] == {"panes": 2, "created": 2, "resumed": 1, "verified": 1, "skipped": 1, "failed": 0}


def test_an_agent_that_does_not_come_up_fails_the_restore(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer
) -> None:
    conversation = begin(simulants, tmux, "a", "the first")
    save(perdure)
    crash(simulants, tmux)
    with open(os.path.join(os.environ["HOME"], ".simulant", "conversations", f"{conversation}.jsonl"), "a") as file:
        file.write("no line of a conversation\n")
    ran = perdure("restore", "--json")
    assert ran.code == 4
    (step,) = only_json(ran)["steps"]
    assert (step["result"], step["conversation"]) == ("failed", conversation)
    assert only_json(ran)["summary"]["failed"] == 1
    for text in ("JSONDecodeError", f"--resume {conversation}"):
        wait_for(lambda text=text: text in "\n".join(contents(tmux, "=a:")), text)  # type: ignore[misc]


# Which snapshot, where to, and how


def test_an_older_snapshot(work: Picture, perdure: Perdure, tmux: TmuxServer) -> None:
    old = save(perdure)["snapshot"]
    tmux.run("kill-session", "-t", "b", ";", "rename-window", "-t", "a:5", "later")
    new = save(perdure)["snapshot"]
    assert new != old
    tmux.kill9()
    answer = restored(perdure, "--programs", "all", "--from", old[:12])
    assert answer["snapshot"] == old
    await_same(work, tmux)


def test_another_socket(
    work: Picture, perdure: Perdure, tmux: TmuxServer, tmux_server: Callable[[str], TmuxServer]
) -> None:
    snapshot = save(perdure)["snapshot"]
    other = tmux_server("other")
    left = pids(tmux)
    restored(perdure, "--programs", "all", "--from", snapshot, "--socket", other.socket)
    await_same(work, other)
    assert pids(tmux) == left
    ran = perdure("restore", "--socket", f"{other.socket}-nobody")
    assert ran.code == 3
    assert f"{other.socket}-nobody" in sentence(ran)


def test_a_dry_run_does_nothing_at_all(
    private_home: PrivateHome, work: Picture, perdure: Perdure, tmux: TmuxServer
) -> None:
    save(perdure)
    tmux.run("kill-session", "-t", "b", ";", "kill-pane", "-t", "a:0.1")
    shown, alive, kept = picture(tmux), pids(tmux), files(private_home)
    ran = perdure.ok("restore", "--dry-run", "--programs", "all")
    assert "2 panes would be brought back; nothing was done" in ran.out
    answer = restored(perdure, "--dry-run", "--programs", "all")
    assert answer["summary"]["created"] == 0
    planned = {step["target"]: step["argv"] for step in answer["steps"] if step["result"] == "planned"}
    assert planned == {"b:0.0": ["sleep", "1006"], "a:0.1": ["sleep", "1002"]}
    assert (picture(tmux), pids(tmux)) == (shown, alive)
    assert files(private_home) == kept
    tmux.kill9()
    restored(perdure, "--dry-run")
    assert not tmux.alive
    assert files(private_home) == kept


def test_programs_of_the_list_all_and_none(private_home: PrivateHome, perdure: Perdure, tmux: TmuxServer) -> None:
    path = os.path.join(private_home.home, "log")
    with open(path, "w"):
        pass
    # Named: what prints nothing may be called after tmux itself for ever.
    tmux.run("new-session", "-d", "-s", "a", "-n", "log", "-c", private_home.home, "tail", "-f", path)
    tmux.run("new-session", "-d", "-s", "b", "-n", "rest", "-c", private_home.home, "sleep", "1000")
    await_calm(tmux)
    save(perdure)
    for words, started in ((["--programs", "none"], set()), ([], {"a"}), (["--programs", "all"], {"a", "b"})):
        tmux.kill9()
        answer = by_target(restored(perdure, *words))
        assert {target[0] for target, step in answer.items() if step["action"] == "run"} == started
        for name, argv in (("a", ["tail", "-f", path]), ("b", ["sleep", "1000"])):
            if name in started:
                assert answer[f"{name}:0.0"]["result"] == "done"
                pid = int(tmux.show("#{pane_pid}", name))
                wait_for(lambda pid=pid, argv=argv: foreground(pid)[0] == argv, "the program")  # type: ignore[misc]
            else:
                assert (answer[f"{name}:0.0"]["action"], answer[f"{name}:0.0"]["result"]) == ("show", "skipped")
                command = f"To start it: {' '.join(argv)}"
                wait_for(lambda name=name, command=command: command in contents(tmux, name), "the text")  # type: ignore[misc]


def test_the_answer_in_json(work: Picture, perdure: Perdure, tmux: TmuxServer) -> None:
    snapshot = save(perdure)["snapshot"]
    tmux.kill9()
    answer = restored(perdure, "--programs", "all")
    assert answer["snapshot"] == snapshot
    assert set(answer["summary"]) == SUMMARY
    assert answer["summary"] == {"panes": 6, "created": 6, "resumed": 0, "verified": 0, "skipped": 0, "failed": 0}
    assert [step["n"] for step in answer["steps"]] == [1, 2, 3, 4, 5, 6]
    for step in answer["steps"]:
        assert set(step) >= STEP, step
        assert step["result"] in RESULTS
        assert (step["agent"], step["conversation"], step["action"]) == (None, None, "run")
    assert count_panes(await_calm(tmux)) == 11


def test_how_far_it_has_come_line_by_line(work: Picture, perdure: Perdure, tmux: TmuxServer) -> None:
    save(perdure)
    tmux.kill9()
    ran = perdure.ok("restore", "--json", "--progress", "--programs", "all")
    lines = [msgspec.json.decode(line) for line in ran.out.splitlines()]
    assert [list(line) for line in lines] == [["planned"], *[["step"]] * (len(lines) - 2), ["restored"]]
    planned, answer = lines[0]["planned"], lines[-1]["restored"]
    assert {row["result"] for row in planned} == {"planned"}
    assert [(row["n"], row["target"]) for row in planned] == [(row["n"], row["target"]) for row in answer["steps"]]
    last = {line["step"]["n"]: line["step"] for line in lines[1:-1]}
    assert [last[row["n"]] for row in planned] == answer["steps"]
    again = [msgspec.json.decode(line) for line in perdure.ok("restore", "--json", "--progress").out.splitlines()]
    assert {row["result"] for row in again[0]["planned"]} == {"skipped"}


def test_progress_that_cannot_be_begun_is_one_line(perdure: Perdure, tmux: TmuxServer) -> None:
    ran = perdure("restore", "--json", "--progress", "--from", "0123")
    assert ran.code == 3
    assert list(only_json(ran)) == ["error"]


def test_after_a_sharp_drop_the_big_state_is_taken(work: Picture, perdure: Perdure, tmux: TmuxServer) -> None:
    big = save(perdure)["snapshot"]
    tmux.kill9()
    tmux.run("new-session", "-d", "-s", "new", "sleep", "3000")
    save(perdure)
    assert len(history(perdure)) == 2
    ran = perdure.ok("restore", "--programs", "all")
    assert "before the crash: 6 panes, now: 1" in ran.out
    assert big in ran.out
    await_same(work, tmux, leaving=["new"])
    assert "Nothing to do" in perdure.ok("restore").out


def test_nothing_saved(perdure: Perdure, tmux: TmuxServer) -> None:
    ran = perdure("restore")
    assert ran.code == 3
    assert "Nothing is saved" in sentence(ran)
    ran = perdure("restore", "--from", "0123abcd")
    assert ran.code == 3
    sentence(ran)


def test_a_store_that_cannot_be_used(
    private_home: PrivateHome, work: Picture, perdure: Perdure, tmux: TmuxServer
) -> None:
    save(perdure)
    left = pids(tmux)
    (database,) = [name for name in files(private_home) if name.endswith(".db")]
    with open(database, "r+b") as file:
        file.write(b"nothing of a database" * 100)
    ran = perdure("restore")
    assert ran.code == 5, ran
    sentence(ran)
    assert pids(tmux) == left


def test_two_at_once(work: Picture, simulants: Simulants, perdure: Perdure, tmux: TmuxServer) -> None:
    conversation = begin(simulants, tmux, "agent", "the first")
    before = await_calm(tmux)
    save(perdure)
    crash(simulants, tmux)
    both = [
        subprocess.Popen(
            perdure.argv("restore", "--json", "--programs", "all"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    said = [each.communicate(timeout=120) for each in both]
    codes = [each.returncode for each in both]
    assert sorted(codes) in ([0, 0], [0, 6]), said
    wait_for(lambda: count_panes(picture(tmux)) == count_panes(before), "every pane once")
    assert starts(simulants.records()) == {conversation: 2}
