from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from perdure.model.text import decode, encode
from perdure.model.wrapped import Stage, read_wrapper
from perdure.tmux import wrap
from perdure.tmux.wrap import Start, command, needs_wrapper

#: Words as a process may have them: any bytes but NUL, shells' favourites more often than chance would have it.
HOSTILE = st.one_of(
    st.sampled_from(
        [
            "",
            "x & touch PWNED",
            "$(touch PWNED)",
            "`touch PWNED`",
            "'; touch PWNED; '",
            '"; touch PWNED; "',
            "a\nb",
            "\n",
            "-c",
            "--",
            "-",
            "A=B",
            "=",
            "~",
            "*",
            "\\",
            "#{pane_id}",
            "%1",
            "perdure",
            "{a,b}",
            "!!",
            "caf\u00e9 \U0001f600",
        ]
    ).map(str.encode),
    st.binary(max_size=20),
).map(lambda raw: decode(raw.replace(b"\0", b"")))
PATHS = st.none() | HOSTILE.filter(bool)
NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,5}", fullmatch=True)
ARGV = st.lists(HOSTILE, max_size=5).map(tuple).filter(lambda argv: not argv or argv[0])

STARTS = st.builds(
    Start,
    argv=ARGV,
    environ=st.dictionaries(NAMES, HOSTILE, max_size=3),
    stays=st.booleans(),
    shell=PATHS,
    text=PATHS,
    gate=PATHS,
    asks=st.booleans(),
    is_guess=st.booleans(),
    before=st.none() | st.tuples(st.integers(1, 2**22), st.integers(0, 2**63)),
    status=PATHS,
    name=HOSTILE,
    again=HOSTILE,
    exits=st.none() | st.integers(0, 255),
    signal=st.none() | st.integers(1, 64),
)

DUMP = """
import os, sys
with open(sys.argv[1], "wb") as file:
    file.write(b"\\0".join([os.environb.get(b"LAID", b"-"), os.fsencode(os.getcwd()), *map(os.fsencode, sys.argv[2:])]))
"""


@given(STARTS)
@example(Start(argv=wrap._PLAINLY))
@example(Start(argv=(*wrap._STAYING, "x"), stays=True))
def test_a_pane_is_recognised_by_its_words_whatever_is_in_them(start: Start) -> None:
    found = read_wrapper(command(start))
    assert found is not None
    assert found.stage is Stage.PRELUDE
    assert (found.argv, found.environ) == (start.argv, start.environ)
    assert (found.text, found.gate, found.status) == (start.text, start.gate, start.status)
    assert (found.asks, found.is_guess, found.before) == (start.asks, start.asks and start.is_guess, start.before)


@pytest.mark.parametrize(
    ("word", "asks", "is_guess"), [("", False, False), ("asks", True, False), ("guess", True, True)]
)
def test_panes_that_were_told_of_no_process_before_them_are_still_understood(
    word: str, asks: bool, is_guess: bool
) -> None:
    found = read_wrapper(["/bin/sh", "-c", "x", "perdure", "prelude", "", "", word, *[""] * 6, "0", "agent"])
    assert found is not None
    assert (found.asks, found.is_guess, found.before, found.argv) == (asks, is_guess, None, ("agent",))


@given(STARTS)
def test_tmux_is_given_constant_programs_and_several_words(start: Start) -> None:
    words = command(start)
    assert words[:2] == ("/bin/sh", "-c")
    assert words[2] == command(Start())[2]
    assert words[13] in ("", wrap._RUN)


@given(st.lists(HOSTILE, max_size=20))
@example(["/bin/sh", "-c", "x", "perdure", "prelude"])
@example(["/bin/sh", "-c", "x", "perdure", "other", *"abcdefghi", "0"])
@example(["/bin/sh", "-c", "x", "perdure", "prelude", *"abcdefghi", "²"])
@example(["bash", "-l"])
def test_other_processes_are_not_taken_for_ours(argv: list[str]) -> None:
    assert read_wrapper(argv) is None


def test_a_plain_shell_needs_no_wrapper() -> None:
    assert not needs_wrapper(Start())
    assert not needs_wrapper(Start(name="a shell", again="nothing", status="/home/dev/status"))


@pytest.mark.parametrize(
    "start",
    [
        Start(argv=("vim",)),
        Start(argv=("fish",), stays=True),
        Start(text="/home/dev/1.text"),
        Start(gate="/home/dev/1.gate"),
        Start(asks=True),
        Start(before=(1, 2)),
        Start(environ={"A": "B"}),
        Start(exits=0),
        Start(signal=9),
        Start(shell="/bin/zsh"),
    ],
)
def test_anything_else_does(start: Start) -> None:
    assert needs_wrapper(start)


def test_what_is_said_in_the_pane_cannot_steer_its_terminal() -> None:
    words = command(Start(argv=("x",), name="\x1b[2J", again="\x07\nrm"))
    assert words[10:12] == (r"\x1b[2J", r"\x07\nrm")


@pytest.mark.parametrize("text", [wrap._PRELUDE, wrap._RUN, wrap._PLAINLY[2], wrap._STAYING[2]])
def test_every_program_is_one_line_a_shell_can_read(text: str) -> None:
    assert "\n" not in text
    subprocess.run(["/bin/sh", "-n", "-c", text], check=True)


def run(start: Start, cwd: str, entered: bytes = b"", sh: str = "/bin/sh") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [encode(word) for word in (*sh.split(), *command(start)[1:])],
        cwd=encode(cwd),
        input=entered,
        capture_output=True,
        timeout=60,
        check=False,
    )


@settings(max_examples=60)
@given(
    argv=st.lists(HOSTILE, max_size=4).map(tuple),
    value=HOSTILE,
    folder=HOSTILE.map(lambda word: word.replace("/", "_")).filter(lambda word: word not in ("", ".", "..")),
    name=HOSTILE,
    stays=st.booleans(),
)
@example(argv=("--", "-l", "=", "A=B"), value="$(touch PWNED)", folder="x & touch PWNED", name="`x`", stays=False)
def test_a_program_gets_exactly_its_words_and_nothing_else_is_run(
    argv: tuple[str, ...], value: str, folder: str, name: str, stays: bool
) -> None:
    home = os.environ["HOME"]
    cwd = os.path.join(home, folder)
    os.makedirs(encode(cwd), exist_ok=True)
    dumped, status = os.path.join(home, "dumped"), os.path.join(home, "status")
    for path in (dumped, status):
        if os.path.exists(path):
            os.unlink(path)
    start = Start(
        argv=(sys.executable, "-c", DUMP, dumped, *argv),
        environ={"LAID": value},
        stays=stays,
        shell="/bin/sh",
        status=status,
        name=name,
        again=name,
    )
    run(start, cwd)
    with open(dumped, "rb") as file:
        assert file.read() == b"\0".join(map(encode, (value, cwd, *argv)))
    assert os.path.exists(status) is not stays
    assert not [where for where, folders, files in os.walk(home) if "PWNED" in (*folders, *files)]


@pytest.mark.parametrize("name", ["a=b", "-x", "has space", "x & touch PWNED"])
@pytest.mark.parametrize("stays", [True, False])
def test_a_program_of_any_name_is_started(name: str, stays: bool) -> None:
    home = os.environ["HOME"]
    program = os.path.join(home, name)
    with open(program, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\necho "$@" >{home}/said\n')
    os.chmod(program, 0o755)
    run(Start(argv=(program, "hello"), stays=stays, shell="/bin/sh"), home)
    with open(os.path.join(home, "said"), encoding="utf-8") as file:
        assert file.read() == "hello\n"


@pytest.mark.parametrize(("ends", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)])
def test_the_status_is_written_and_said(ends: str, status: int) -> None:
    home = os.environ["HOME"]
    path = os.path.join(home, "status")
    start = Start(
        argv=("/bin/sh", "-c", ends), shell="/bin/sh", status=path, name="agent", again="agent --resume 'a b'"
    )
    said = run(start, home, b"echo the shell\n").stdout.decode()
    with open(path, encoding="ascii") as file:
        assert file.read() == f"{status}\n"
    assert f"perdure: agent ended with status {status}." in said
    assert ("To try again: agent --resume 'a b'" in said) is (status != 0)
    assert said.endswith("the shell\n")


def test_a_program_that_is_not_there_leaves_a_shell() -> None:
    for stays in (True, False):
        start = Start(argv=("/nowhere/agent",), stays=stays, shell="/bin/sh", name="agent")
        said = run(start, os.environ["HOME"], b"echo the shell\n").stdout.decode()
        assert said.endswith("the shell\n")
        assert ("status 127" in said) is not stays


def test_a_text_is_printed_once_and_then_a_shell_is_left() -> None:
    text = os.path.join(os.environ["HOME"], "-n 1.text")
    with open(text, "wb") as file:
        file.write(b"\x1b[31mred\x1b[m\n")
    start = Start(text=text, shell="/bin/sh")
    assert run(start, os.environ["HOME"], b"echo shell\n").stdout == b"\x1b[31mred\x1b[m\nshell\n"
    assert os.path.getsize(text) == 0
    assert run(start, os.environ["HOME"], b"echo shell\n").stdout == b"shell\n"
    os.unlink(text)
    assert run(start, os.environ["HOME"], b"echo shell\n").stdout == b"shell\n"
    assert not os.path.exists(text)


@pytest.mark.parametrize(("exits", "signal", "code"), [(0, None, 0), (3, None, 3), (None, 9, -9), (None, 15, -15)])
def test_a_dead_pane_ends_as_it_did(exits: int | None, signal: int | None, code: int) -> None:
    text = os.path.join(os.environ["HOME"], "text")
    with open(text, "wb") as file:
        file.write(b"before\n")
    done = run(Start(text=text, exits=exits, signal=signal), os.environ["HOME"])
    assert (done.returncode, done.stdout) == (code, b"before\n")


def test_no_enter_is_no_start() -> None:
    status = os.path.join(os.environ["HOME"], "status")
    start = Start(argv=("echo", "ran"), asks=True, shell="/bin/sh", status=status, name="agent", again="agent -r 1")
    said = run(start, os.environ["HOME"]).stdout.decode()
    assert said == "\nperdure: agent was not started.\nTo start it: agent -r 1\n"
    with open(status, encoding="ascii") as file:
        assert file.read() == "130\n"
    assert "ran\n" in run(start, os.environ["HOME"], b"\n").stdout.decode()


@pytest.fixture
def old(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """A process whose name looks like what the kernel tells after a name."""
    program = os.path.join(tmp_path, "a) S\n1 2")
    os.symlink("/bin/sleep", program)
    process = subprocess.Popen([program, "1000"])
    with open(f"/proc/{process.pid}/stat", "rb") as file:
        ticks = int(file.read().rpartition(b")")[2].split()[19])
    yield process.pid, ticks
    process.kill()
    process.wait()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="there is no /proc to tell start times")
@pytest.mark.parametrize("sh", ["/bin/sh", "dash", "bash --posix", "busybox sh"])
def test_nothing_starts_while_the_process_before_it_lives(old: tuple[int, int], sh: str) -> None:
    if shutil.which(sh.split()[0]) is None:
        pytest.skip(f"{sh} is not installed")
    home = os.environ["HOME"]
    start = Start(argv=("echo", "ran"), asks=True, before=old, shell="/bin/sh", name="agent", again="agent -r 1")
    still = f"perdure: agent still runs as process {old[0]}; Enter tries again.\n"
    not_started = "\nperdure: agent was not started.\nTo start it: agent -r 1\n"
    assert run(start, home, b"\n\n\n", sh).stdout.decode() == 3 * still + not_started
    # One that does not wait for Enter does so then.
    assert run(structs.replace(start, asks=False), home, b"\n", sh).stdout.decode() == 2 * still + not_started
    # The kernel gives numbers again.
    assert run(structs.replace(start, before=(old[0], old[1] - 1)), home, b"\n", sh).stdout.startswith(b"ran\n")
    os.kill(old[0], signal.SIGKILL)
    os.waitid(os.P_PID, old[0], os.WEXITED | os.WNOWAIT)
    # Nobody has collected it yet, and it does nothing any more.
    assert run(start, home, b"\n", sh).stdout.startswith(b"ran\n")
    os.waitpid(old[0], 0)
    assert run(start, home, b"\n", sh).stdout.startswith(b"ran\n")
    assert run(structs.replace(start, asks=False), home, b"", sh).stdout.startswith(b"ran\n")


def test_without_start_times_the_number_of_a_process_has_to_do() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    for pid, is_alive in ((os.getpid(), True), (ended.pid, False)):
        start = Start(argv=("echo", "ran"), asks=True, before=(pid, 1), shell="/bin/sh", name="agent")
        words = [word.replace("/proc/self/stat", "/nowhere/stat") for word in command(start)]
        said = subprocess.run(words, input=b"\n", capture_output=True, timeout=60, check=False).stdout
        assert (f"agent still runs as process {pid};".encode() in said) is is_alive
        assert (b"ran\n" in said) is not is_alive
