"""Every action on jobs, as users run them, on real processes."""

from __future__ import annotations

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.acceptance.jobs import PYTHON, JobCommands, jobs
from tests.acceptance.kit import Fields, configure, has_fields, only_json, sentence, wait_for
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure

__all__ = ["jobs"]

POLLED: Fields = {"job": str, "status": str, "exit_code": (int, type(None)), "output": str, "truncated": bool}
TALKS = "import sys\nprint('ready', flush=True)\nfor line in sys.stdin: print('heard', line.strip(), flush=True)\nprint('end')"


def pid_of(jobs: JobCommands, id: str) -> int:
    (row,) = [row for row in jobs.ok("ls")["jobs"] if row["job"] == id]
    pid: int = row["pid"]
    return pid


def is_there(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_job_is_started_polled_and_waited_for(jobs: JobCommands) -> None:
    id = jobs.run("sh", "-c", "echo out; echo err >&2; exit 3")
    waited = jobs.wait(id)
    assert (waited["job"], waited["status"], waited["exit_code"]) == (id, "exited", 3)
    assert sorted(waited["output"].split()) == ["err", "out"]
    polled = jobs.poll(id)
    has_fields(polled, POLLED)
    assert set(polled) == set(POLLED)
    assert (polled["status"], polled["exit_code"], polled["truncated"]) == ("exited", 3, False)
    assert sorted(polled["output"].split()) == ["err", "out"]
    assert jobs.poll(id)["output"] == ""


def test_run_gives_the_id_and_nothing_else(jobs: JobCommands) -> None:
    answer = jobs.ok("run", "--", "true")
    assert list(answer) == ["job"]
    plain = jobs("run", "--", "true")
    assert plain.code == 0
    assert jobs.wait(plain.out.strip()[:9])["job"] == plain.out.strip()


def test_poll_gives_what_is_new_each_time(jobs: JobCommands) -> None:
    id = jobs.run(PYTHON, "-c", TALKS)
    jobs.await_text(id, "ready")
    first = jobs.poll(id)
    assert (first["status"], first["exit_code"], first["output"]) == ("running", None, "ready\n")
    jobs.ok("submit", id, "one")
    jobs.await_text(id, "heard one")
    assert jobs.poll(id)["output"] == "heard one\n"
    assert jobs.poll(id)["output"] == ""


def test_input_is_written_submitted_and_closed_without_a_terminal(jobs: JobCommands) -> None:
    id = jobs.run(PYTHON, "-c", TALKS)
    assert jobs.ok("write", id, "half ") == {"job": id, "bytes_written": 5}
    assert jobs.ok("submit", id, "a line") == {"job": id, "bytes_written": 7}
    assert jobs("write", id, "-", input="piped\n").code == 0
    assert jobs("write", id, "--", "--dashed\n").code == 0
    assert jobs.ok("close", id)["result"] == "closed"
    waited = jobs.wait(id)
    assert waited["exit_code"] == 0
    assert waited["output"].splitlines() == ["ready", "heard half a line", "heard piped", "heard --dashed", "end"]
    late = jobs("submit", id, "late")
    assert late.code == 1
    assert "ended" in sentence(late)


def test_an_interactive_program_on_a_terminal(jobs: JobCommands) -> None:
    id = jobs.run(PYTHON, "-q", "-i", options=("--pty",))
    jobs.await_text(id, ">>>")
    jobs.ok("submit", id, "import os, sys; print(sys.stdin.isatty(), 6 * 7)")
    jobs.await_text(id, "True 42")
    assert jobs.ok("resize", id, "40x100") == {"job": id, "rows": 40, "columns": 100}
    jobs.ok("submit", id, "print('size', *os.get_terminal_size())")
    jobs.await_text(id, "size 100 40")
    jobs.ok("close", id)
    assert jobs.wait(id)["exit_code"] == 0


def test_a_job_without_a_terminal_has_no_size(jobs: JobCommands) -> None:
    id = jobs.run("sleep", "60")
    ran = jobs("resize", id, "40x100")
    assert ran.code == 6
    assert "terminal" in sentence(ran)
    assert jobs("resize", id, "0x100").code == 2
    assert jobs("resize", id, "forty").code == 2


def test_the_log_by_lines_and_by_streams(jobs: JobCommands) -> None:
    id = jobs.run(PYTHON, "-c", "import os\nfor n in range(9): os.write(1 + (n == 4), b'line %d\\n' % n)")
    jobs.wait(id)
    everything = jobs("log", id)
    # Two pipes have no common order.
    assert sorted(everything.out.split("\n")) == sorted(["", *(f"line {n}" for n in range(9) if n != 4)])
    assert everything.err == "line 4\n"
    piece = jobs.ok("log", id, "--offset", "2", "--limit", "3")
    assert (piece["offset"], piece["total_lines"], piece["output"].count("\n")) == (2, 9, 3)
    assert jobs.ok("log", id, "--tail", "2")["output"].count("\n") == 2
    streams = jobs.ok("log", id)["streams"]
    assert [each["text"] for each in streams if each["stream"] == "stderr"] == ["line 4\n"]
    assert jobs("log", id, "--tail", "2", "--limit", "1").code == 2


def test_the_log_is_followed_to_the_end(jobs: JobCommands) -> None:
    id = jobs.run(PYTHON, "-c", TALKS)
    jobs.await_text(id, "ready")
    with subprocess.Popen(jobs.perdure.argv("jobs", "log", "-f", id), stdout=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"ready\n"
        jobs.ok("submit", id, "more")
        assert follower.stdout.readline() == b"heard more\n"
        jobs.ok("close", id)
        assert follower.stdout.read() == b"end\n"
        assert follower.wait(60) == 0


def test_what_is_no_text_is_shown_as_such_and_kept_as_it_is(jobs: JobCommands) -> None:
    id = jobs.run(PYTHON, "-c", "import os; os.write(1, b'caf\\xc3\\xa9 \\xff\\xfe\\n')")
    assert jobs.wait(id)["output"] == "café \ufffd\ufffd\n"
    assert jobs.poll(id)["output"] == "café \ufffd\ufffd\n"
    followed = jobs("log", "-f", id, "--json")
    assert followed.json == {"job": id, "start": 0, "end": 9, "output": "café \ufffd\ufffd\n"}
    raw = subprocess.run(jobs.perdure.argv("jobs", "log", id), capture_output=True, check=True).stdout
    assert raw == b"caf\xc3\xa9 \xff\xfe\n"


def test_a_job_that_ignores_being_asked_is_ended_with_everything_it_started(jobs: JobCommands) -> None:
    deaf = "trap '' TERM; setsid sleep 300 & (trap '' TERM; sleep 300) & echo $! ready; while :; do sleep 1; done"
    id = jobs.run("sh", "-c", deaf)
    jobs.await_text(id, "ready")
    pid = pid_of(jobs, id)
    killed = jobs.ok("kill", id)
    assert (killed["result"], killed["status"], killed["left"]) == ("killed", "killed", 0)
    assert not is_there(pid)
    assert not is_there(int(jobs.printed(id).split()[0]))
    again = jobs.ok("kill", id)
    assert (again["result"], again["status"], again["exit_code"]) == ("already_ended", "killed", killed["exit_code"])


def test_two_who_wait_for_one_job_both_get_it(jobs: JobCommands) -> None:
    id = jobs.run(PYTHON, "-c", TALKS)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(jobs.wait, id) for _ in range(2)]
        jobs.await_text(id, "ready")
        jobs.ok("close", id)
        one, other = (each.result(60) for each in waiting)
    assert one == other
    assert (one["exit_code"], one["output"]) == (0, "ready\nend\n")


def test_waiting_is_no_longer_than_is_allowed_and_says_so(jobs: JobCommands, private_home: PrivateHome) -> None:
    configure(private_home, "[jobs]\nwait_seconds = 1")
    id = jobs.run("sleep", "300")
    ran = jobs("wait", id, "--timeout", "600", "--json")
    assert ran.code == 4
    answer = ran.json
    assert (answer["status"], answer["exit_code"]) == ("running", None)
    assert "600 s" in answer["note"]
    assert "1 s" in answer["note"]
    short = jobs("wait", id, "--timeout", "0.1")
    assert short.code == 4
    assert "0.1 s" in short.err


def test_a_wait_that_is_interrupted_leaves_the_job_alone(jobs: JobCommands) -> None:
    id = jobs.run("sleep", "300")
    with subprocess.Popen(jobs.perdure.argv("jobs", "wait", id), stderr=subprocess.PIPE) as waiting:
        wait_for(lambda: b"eventpoll" in _held(waiting.pid), "somebody who waits")
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(60) == 130
        assert waiting.stderr is not None
        assert b"Traceback" not in waiting.stderr.read()
    assert jobs.poll(id)["status"] == "running"


def _held(pid: int) -> bytes:
    """What a process holds open."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")
        return b" ".join(os.readlink(f"/proc/{pid}/fd/{name}").encode() for name in names)
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("argv", "code", "said"), [(("no-such-program",), 127, "no-such-program"), (("/etc/passwd",), 126, "/etc/passwd")]
)
def test_what_cannot_be_started_is_a_job_that_ended(
    jobs: JobCommands, argv: tuple[str, ...], code: int, said: str
) -> None:
    ran = jobs("run", "--json", "--", *argv)
    assert ran.code == 1
    assert said in sentence(ran)
    polled = jobs.poll(ran.json["job"])
    assert (polled["status"], polled["exit_code"]) == ("exited", code)
    assert said in polled["why"]


def test_a_directory_that_is_not_there_is_said(jobs: JobCommands) -> None:
    ran = jobs("run", "--cwd", "/no/such/place", "--", "true")
    assert ran.code == 1
    assert "/no/such/place" in sentence(ran)


def test_where_and_with_what_it_runs(jobs: JobCommands, private_home: PrivateHome) -> None:
    script = "pwd; echo $GIVEN; echo ${OPENAI_API_KEY-none}; echo ${KEPT_TOKEN-none}; echo ${TMUX-none}"
    configure(private_home, '[jobs]\nsecrets = ["KEPT_TOKEN"]')
    env = {"OPENAI_API_KEY": "k", "KEPT_TOKEN": "kept", "TMUX": "/tmp/x,1,0"}
    options = ("--cwd", private_home.home, "--env", "GIVEN=a=b", "--json")
    id = only_json(jobs("run", *options, "--", "sh", "-c", script, env=env))["job"]
    assert jobs.wait(id)["output"].split() == [private_home.home, "a=b", "none", "kept", "none"]


def test_a_text_is_for_the_users_shell_and_words_are_for_nobody(jobs: JobCommands) -> None:
    id = jobs.ok("run", "--shell", "echo $((6 * 7)) | cat; exit 5")["job"]
    waited = jobs.wait(id)
    assert (waited["output"], waited["exit_code"]) == ("42\n", 5)
    plain = jobs.run("echo", "$((6 * 7)) | cat")
    assert jobs.wait(plain)["output"] == "$((6 * 7)) | cat\n"


@pytest.mark.parametrize(
    "words", [("run",), ("run", "--"), ("run", "--shell", "a", "--", "b"), ("run", "--env", "A", "--", "b")]
)
def test_what_is_to_be_run_has_to_be_said_in_one_way(jobs: JobCommands, words: tuple[str, ...]) -> None:
    ran = jobs(*words)
    assert ran.code == 2
    sentence(ran)


def test_a_backend_that_is_not_there_runs_nothing_here(jobs: JobCommands, private_home: PrivateHome) -> None:
    mark = os.path.join(private_home.home, "ran")
    ran = jobs("run", "--backend", "elsewhere", "--", "touch", mark)
    assert ran.code == 2
    assert "elsewhere" in sentence(ran)
    assert jobs.ok("ls")["jobs"] == []
    assert not os.path.exists(mark)


def test_a_job_is_named_by_the_beginning_of_its_id(jobs: JobCommands) -> None:
    one, _ = jobs.run("true"), jobs.run("true")
    assert jobs.wait(one[:10])["job"] == one
    several = jobs("poll", "j")
    assert several.code == 2
    assert "More than one" in sentence(several)
    for name in ("jffffffffffffffff", "../..", "j\x7f"):
        ran = jobs("poll", name)
        assert ran.code == 3, name
        sentence(ran)


def test_what_is_listed_holds_no_secret(jobs: JobCommands) -> None:
    key = "sk-abcdefghijklmnopqrstuvwxyz"
    words = ("sh", "-c", "sleep 60", "--token", key)
    id = jobs.run(*words, options=("--owner", "r7", "--env", f"MY_KEY={key}", "--pty"))
    listed = jobs("ls", "--json")
    assert key not in listed.out
    (row,) = listed.json["jobs"]
    assert (row["job"], row["status"], row["owner"], row["pty"], row["backend"]) == (id, "running", "r7", True, "local")
    assert row["argv"][:3] == ["sh", "-c", "sleep 60"]
    assert row["uptime"] >= 0
    table = jobs("ls")
    assert id in table.out
    assert key not in table.out
    assert jobs.ok("ls", "--owner", "r8")["jobs"] == []
    assert jobs.ok("ls", "--ended")["jobs"] == []


def test_of_too_many_at_once_only_so_many_are_started(jobs: JobCommands, private_home: PrivateHome) -> None:
    configure(private_home, "[jobs]\nmax_per_owner = 3\nmax_running = 5")
    jobs.ok("ls")
    with ThreadPoolExecutor(6) as pool:
        started = list(pool.map(lambda _: jobs("run", "--owner", "r7", "--", "sleep", "300"), range(6)))
    assert sorted(ran.code for ran in started) == [0, 0, 0, 6, 6, 6]
    refused = next(ran for ran in started if ran.code == 6)
    assert "r7 has 3 jobs running already, and 3 are allowed" in sentence(refused)
    assert len(jobs.ok("ls", "--running")["jobs"]) == 3
    jobs.run("sleep", "300")
    jobs.run("sleep", "300")
    assert jobs("run", "--", "sleep", "300").code == 6
    assert jobs("kill", "--owner", "r7").code == 0
    assert len(jobs.ok("ls", "--running")["jobs"]) == 2
    jobs.run("sleep", "300", options=("--owner", "r7"))


def test_one_that_ended_unseen_makes_room(jobs: JobCommands, private_home: PrivateHome) -> None:
    configure(private_home, "[jobs]\nmax_running = 1")
    pid = pid_of(jobs, jobs.run("sleep", "300"))
    assert jobs("run", "--", "true").code == 6
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_there(pid), "the end")
    wait_for(lambda: jobs("run", "--", "true").code == 0, "room")


def test_ending_an_owner_ends_all_its_jobs_and_no_other(jobs: JobCommands) -> None:
    mine = {jobs.run("sleep", "300", options=("--owner", "r7")) for _ in range(3)}
    other = jobs.run("sleep", "300", options=("--owner", "r8"))
    ended = jobs.ok("kill", "--owner", "r7")["jobs"]
    assert {row["job"] for row in ended} == mine
    assert {row["status"] for row in ended} == {"killed"}
    assert [row["job"] for row in jobs.ok("ls", "--running")["jobs"]] == [other]
    assert jobs.ok("kill", "--owner", "r7")["jobs"] == []
    assert jobs("kill", "--owner", "r7", other).code == 2


def test_what_has_ended_is_forgotten_and_what_runs_is_not(jobs: JobCommands, private_home: PrivateHome) -> None:
    configure(private_home, "[jobs]\nkeep_ended = 1")
    runs = jobs.run("sleep", "300")
    for _ in range(3):
        jobs.wait(jobs.run("true"))
    listed = {row["job"] for row in jobs.ok("ls")["jobs"]}
    assert runs in listed
    assert len(listed) == 2
    assert {name for name in os.listdir(jobs.directory) if name.startswith("j")} == listed


def test_one_that_began_is_never_said_not_to_have(jobs: JobCommands, private_home: PrivateHome) -> None:
    """Whoever is told to start it again would run it twice."""
    ran = os.path.join(private_home.root, "ran")
    id = jobs.run("sh", "-c", f"echo once >> {ran}; kill -9 $PPID; exit 5")
    wait_for(lambda: jobs.ok("poll", id)["status"] == "lost", "a job nobody looks after")
    with open(ran) as file:
        assert file.read() == "once\n"


def test_a_secret_in_what_could_not_be_started_is_not_listed(jobs: JobCommands, perdure: Perdure) -> None:
    secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    perdure("jobs", "run", "--", secret)
    assert secret not in perdure.ok("jobs", "ls").out


def test_what_happens_to_a_job_is_told(jobs: JobCommands, perdure: Perdure) -> None:
    id = jobs.run("sh", "-c", "exit 3", options=("--owner", "r7"))
    jobs.wait(id)
    events = only_json(perdure.ok("events", "--run", "r7", "--json"))["events"]
    assert [(event["kind"], event["data"]["job"]) for event in events] == [("job_started", id), ("job_ended", id)]
    assert events[1]["data"] == {"job": id, "owner": "r7", "status": "exited", "exit_code": 3, "why": None}


def test_a_store_that_cannot_be_used_is_said(jobs: JobCommands) -> None:
    ran = jobs("run", "--", "true", env={"PERDURE_STORE": "sqlite:////dev/null"})
    assert ran.code == 5
    sentence(ran)
