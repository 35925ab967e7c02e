"""What a job prints, what it reads, and its terminal: with real processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from perdure.errors import JobOver, PerdureError, Refused
from perdure.jobs import control, hiring, output
from perdure.model.job import JobStatus, Terminal
from tests.conftest import PrivateHome
from tests.integration.hired import Jobs, children_of, is_there, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="jobs need Linux")


@pytest.fixture
def jobs(private_home: PrivateHome) -> Iterator[Jobs]:
    started = Jobs(os.path.join(private_home.root, "jobs"))
    yield started
    started.end()


def test_a_job_prints_and_ends(jobs: Jobs) -> None:
    job = jobs.shell("printf out; read go; printf err >&2; read go; printf more; exit 7")
    # Two streams have no order but that in which they are read.
    for said in (b"out", b"err"):
        job.until_said(said)
        job.write(b"\n")
    assert job.ended().exit_code == 7
    kept = output.read(job.path, 0)
    assert kept.data == b"outerrmore"
    assert kept.errors == ((3, 6),)
    assert job.status is JobStatus.EXITED


def test_the_command_gets_its_directory_its_variables_and_nothing_else(
    jobs: Jobs, private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "hidden")
    job = jobs.start("/usr/bin/env", env={"NAME": "va=l\nue", "PERDURE_JOB": "another"})
    job.ended()
    assert b"SECRET_OF_THE_CALLER" not in job.said()
    assert b"NAME=va=l\nue\n" in job.said()
    assert f"PERDURE_JOB={os.path.basename(job.path)}\n".encode() in job.said()
    assert b"FOREMAN" not in job.said()
    here = jobs.start("/bin/pwd", cwd=private_home.home)
    here.ended()
    assert here.said() == os.fsencode(private_home.home) + b"\n"


def test_words_that_are_no_text_arrive_as_they_are(jobs: Jobs) -> None:
    word = "a b\n'\"\uef80\u20ac"
    job = jobs.python("import os, sys; os.write(1, os.fsencode(sys.argv[1]))", word)
    job.ended()
    assert job.said() == b"a b\n'\"\x80\xe2\x82\xac"


def test_what_cannot_be_run_is_a_job_that_ended(jobs: Jobs, private_home: PrivateHome) -> None:
    missing = jobs.start("no-such-program").ended()
    assert (missing.exit_code, missing.why) == (127, "no-such-program could not be run: No such file or directory.")
    place = os.path.join(private_home.home, "no", "place")
    nowhere = jobs.start("true", cwd=place).ended()
    assert (nowhere.exit_code, nowhere.why) == (
        127,
        f"It could not be started in {place}: No such file or directory.",
    )
    plain = os.path.join(private_home.home, "plain")
    with open(plain, "w", encoding="utf-8") as file:
        file.write("text")
    assert jobs.start(plain).ended().exit_code == 126
    assert jobs.start("true", env={"PATH": "/nowhere"}).ended().exit_code == 127


def test_words_nobody_can_be_given_are_refused(jobs: Jobs) -> None:
    with pytest.raises(Refused):
        jobs.start("echo", "a\0b")
    with pytest.raises(Refused):
        jobs.start("echo", id="../elsewhere")
    with pytest.raises(Refused):
        jobs.start()


def test_an_id_is_started_once(jobs: Jobs) -> None:
    id = f"same-{os.urandom(4).hex()}"
    job = jobs.shell("echo first", id=id)
    job.ended()
    with pytest.raises(Refused):
        jobs.shell("echo second", id=id)
    assert job.said() == b"first\n"


def test_signals_and_the_mask_are_those_of_a_fresh_program(jobs: Jobs) -> None:
    job = jobs.shell("grep -E '^Sig(Ign|Blk)' /proc/self/status; umask; echo $$; cat /proc/$$/stat")
    job.ended()
    lines = job.said().decode().splitlines()
    # Two are the C library's own, which `make` lets its children ignore and nobody can change.
    of_the_library = 1 << 31 | 1 << 32
    assert [int(line.split()[1], 16) & ~of_the_library for line in lines[:2]] == [0, 0]
    before = os.umask(0o022)
    os.umask(before)
    assert int(lines[2], 8) == before
    assert lines[3] == lines[4].rpartition(")")[2].split()[3], "not the leader of its session"


def test_it_reads_what_is_written_until_that_is_closed(jobs: Jobs) -> None:
    job = jobs.start("cat")
    big = bytes(range(256)) * 2048
    assert job.write(b"first\n") == 6
    job.until_said(b"first\n")
    assert job.write(big) == len(big)
    control.close_stdin(job.path)
    assert job.ended().exit_code == 0
    assert job.said() == b"first\n" + big
    with pytest.raises(JobOver):
        job.write(b"late")
    with pytest.raises(JobOver):
        control.close_stdin(job.path)


def test_what_was_closed_stays_closed(jobs: Jobs) -> None:
    job = jobs.start("sleep", "1000")
    control.close_stdin(job.path)
    control.close_stdin(job.path)
    with pytest.raises(Refused):
        job.write(b"late")


def test_what_nobody_reads_waits_up_to_a_limit(jobs: Jobs) -> None:
    job = jobs.start("sleep", "1000")
    taken = control.write(job.path, b"x" * (3 << 20), patience=0.0)
    assert 1 << 20 <= taken < 3 << 20
    assert 0 < control.standing(job.path).unread <= taken


def test_a_job_that_closes_its_input_says_so(jobs: Jobs) -> None:
    job = jobs.shell("exec 0<&-; echo closed; exec sleep 1000")
    job.until_said(b"closed")
    with pytest.raises(Refused):
        job.write(b"x")
    assert job.status is JobStatus.RUNNING


def test_python_talks_in_a_terminal(jobs: Jobs) -> None:
    job = jobs.start(sys.executable, "-I", "-q", terminal=Terminal(rows=40, columns=100), env={"TERM": "dumb"})
    job.until_said(b">>> ")
    job.write(b"print(6 * 7, __import__('os').get_terminal_size())\n")
    job.until_said(b"42 os.terminal_size(columns=100, lines=40)")
    job.write(b"import sys; print(sys.stdin.isatty(), open('/dev/tty').isatty())\n")
    job.until_said(b"True True")
    until(lambda: job.said().endswith(b">>> "), "it to read again: before that, the sign may get lost in the terminal")
    control.close_stdin(job.path)
    assert job.ended().exit_code == 0
    assert output.read(job.path, 0).errors == ()


def test_a_half_line_in_a_terminal_is_read_before_the_end(jobs: Jobs) -> None:
    job = jobs.shell("stty -echo; echo ready; cat; echo over", terminal=Terminal())
    job.until_said(b"ready")
    job.write(b"half")
    control.close_stdin(job.path)
    assert job.ended().exit_code == 0
    assert job.said() == b"ready\r\nhalfover\r\n"


def test_a_terminal_is_resized(jobs: Jobs) -> None:
    script = "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done"
    job = jobs.shell(script, terminal=Terminal(rows=10, columns=20))
    job.until_said(b"10 20")
    control.resize(job.path, 33, 77)
    job.until_said(b"33 77")
    for rows, columns in ((0, 5), (5, 1 << 16)):
        with pytest.raises(Refused):
            control.resize(job.path, rows, columns)


def test_without_a_terminal_there_is_nothing_to_resize(jobs: Jobs) -> None:
    job = jobs.start("sleep", "1000")
    with pytest.raises(Refused, match="no terminal"):
        control.resize(job.path, 10, 10)


def test_a_terminal_may_be_closed_and_opened_again(jobs: Jobs) -> None:
    script = "exec </dev/null >/dev/null 2>&1; sleep 0.2; echo back >/dev/tty; exit 4"
    job = jobs.shell(script, terminal=Terminal())
    assert job.ended().exit_code == 4
    assert job.said() == b"back\r\n"


def test_a_job_that_closes_everything_is_waited_for(jobs: Jobs) -> None:
    job = jobs.shell("echo begin; exec 0<&- 1>&- 2>&-; sleep 0.3; exit 9")
    job.until_said(b"begin")
    assert job.ended().exit_code == 9


def test_a_signal_is_told_as_a_shell_does(jobs: Jobs) -> None:
    ended = jobs.shell("kill -USR1 $$").ended()
    assert (ended.exit_code, ended.signal, ended.killed) == (128 + 10, 10, False)


def test_a_lot_of_output_is_kept_to_its_cap_with_the_right_end(jobs: Jobs) -> None:
    cap, size = 4 << 20, 100 << 20
    job = jobs.python(
        "import os, sys\nfor number in range(int(sys.argv[1])): os.write(1, b'%015d\\n' % number * 4096)\n",
        str(size // 65536),
        cap=cap,
    )
    assert job.ended().printed == size == output.size(job.path)
    kept = sum(os.stat(os.path.join(job.path, name)).st_size for name in os.listdir(job.path))
    assert cap * 3 // 4 < kept <= cap + 8192
    assert output.tail(job.path, 32).data == b"%015d\n" % (size // 65536 - 1) * 2
    last = output.lines(job.path, -1, 3)
    assert (last.total, last.first) == (size // 16, size // 16 - 3)
    everything = output.read(job.path, 0, size)
    assert everything.missing == everything.start > 0
    assert everything.end == size
    expected = b"".join(b"%015d\n" % (at // 65536) for at in range(everything.start // 16 * 16, size, 16))
    assert everything.data == expected[everything.start % 16 :]


def test_dozens_at_once_and_none_is_left_unreaped(jobs: Jobs) -> None:
    started = [jobs.shell(f"read word; (true &) ; echo {number} $word; exit {number}") for number in range(30)]
    for job in started:
        job.write(b"said\n")
    for number, job in enumerate(started):
        assert job.ended().exit_code == number
        assert job.said() == b"%d said\n" % number
    for job in started:
        until(lambda job=job: not is_there(job.began.supervisor.pid), "the supervisor to leave")  # type: ignore[misc]
    for pid in jobs.foremen():
        assert all(state != "Z" for _, state in children_of(pid))


def test_orphans_are_reaped_while_the_job_goes_on(jobs: Jobs) -> None:
    job = jobs.shell("for i in 1 2 3 4 5; do (sh -c 'sleep 0.01 & exit') ; done; sleep 0.3; echo done; exec sleep 1000")
    job.until_said(b"done")
    until(
        lambda: [state for _, state in children_of(job.began.supervisor.pid)].count("Z") == 0,
        "no child that was not reaped",
    )


def test_what_a_job_leaves_behind_goes_on_being_kept(jobs: Jobs) -> None:
    job = jobs.shell("(read go; echo late; echo more) <&0 & echo early; exit 5")
    # Its input is a copy of the job's, so that it can be told to go on: by the job's end, which closes it.
    ended = job.ended()
    assert ended.exit_code == 5
    assert b"early\n" in job.said()
    job.until_said(b"more\n")


def test_nobody_else_may_be_hired_by_a_word(jobs: Jobs) -> None:
    jobs.start("true").ended()
    from perdure.host.unix_socket import connected

    for request in (b"hire ../x y\n", b"nonsense\n", b"hire a b c d\n"):
        with connected(os.path.join(jobs.directory, "foreman"), timeout=10) as connection:
            connection.sendall(request)
            assert connection.recv(100) == b"no request\n"
    assert jobs.shell("exit 3").ended().exit_code == 3


def test_a_foreman_of_another_version_makes_room(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.start("true").ended()
    (old, *_) = jobs.foremen()
    monkeypatch.setattr(hiring, "_stamp", lambda: b"other")
    assert jobs.shell("exit 3").ended().exit_code == 3
    until(lambda: not is_there(old), "the old foreman to leave")


def test_a_foreman_leaves_when_nobody_asks(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hiring, "IDLE", 0.2)
    job = jobs.start("sleep", "1000")
    until(lambda: not jobs.foremen(), "the foreman to leave")
    assert job.status is JobStatus.RUNNING
    assert jobs.shell("exit 3").ended().exit_code == 3


def test_a_directory_nobody_can_write_to_is_said(jobs: Jobs, private_home: PrivateHome) -> None:
    with open(os.path.join(private_home.root, "file"), "w", encoding="utf-8"):
        pass
    with pytest.raises(PerdureError):
        Jobs(os.path.join(private_home.root, "file", "jobs")).start("true")


def test_a_long_path_is_no_hindrance(private_home: PrivateHome) -> None:
    started = Jobs(os.path.join(private_home.root, "d" * 120, "e" * 120))
    job = started.start("cat")
    try:
        job.write(b"hello")
        control.close_stdin(job.path)
        job.ended()
        assert job.said() == b"hello"
    finally:
        started.end()
