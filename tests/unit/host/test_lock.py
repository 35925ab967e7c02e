"""One at a time. Every other process is a real one."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator

import pytest

from perdure.errors import Refused
from perdure.host.lock import held

WORK = "restore of /tmp/tmux-1000/default"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))

#: Holds the file, says so, and holds on until its input ends.
HOLDER = """
import sys
from perdure.host.lock import held
with held(sys.argv[1], "restore"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: os.PathLike[str]) -> str:
    return os.path.join(tmp_path, "work.lock")


@pytest.fixture
def holder(path: str) -> Iterator[subprocess.Popen[str]]:
    """Another process, which holds the file."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "src")},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def is_free(path: str) -> bool:
    try:
        with held(path, WORK):
            return True
    except Refused:
        return False


def test_it_is_held_for_as_long_as_the_block_lasts(path: str) -> None:
    with held(path, WORK):
        assert not is_free(path)
    assert is_free(path)
    with pytest.raises(KeyError), held(path, WORK):
        raise KeyError
    assert is_free(path)


def test_whoever_holds_it_can_tell_whether_others_find_it(path: str) -> None:
    with held(path, WORK) as hold:
        assert hold.is_found()
        os.unlink(path)
        assert not hold.is_found()
        with held(path, WORK) as other:
            assert (hold.is_found(), other.is_found()) == (False, True)


def test_who_comes_second_is_told_who_was_first(path: str, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(Refused) as caught, held(path, WORK):
        pass
    assert caught.value.message == f"Another {WORK} is at work (pid {holder.pid})."
    assert caught.value.exit_code == 6


def test_being_refused_changes_nothing(path: str, holder: subprocess.Popen[str]) -> None:
    for _ in range(2):
        with pytest.raises(Refused, match=str(holder.pid)), held(path, WORK):
            pass


def test_a_holder_that_is_killed_holds_nothing(path: str, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with held(path, WORK), pytest.raises(Refused, match=f"pid {os.getpid()}"), held(path, WORK):
        pass


def test_a_program_that_was_started_meanwhile_does_not_keep_it(path: str) -> None:
    with held(path, WORK):
        # As tmux is: with every handle that lets itself be inherited.
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        assert is_free(path)
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("left", [b"", b"none", b"-1\n", b"0x10", b"99999999999999999999999", b"4194305\n"])
def test_a_name_nobody_answers_to_is_not_said(path: str, left: bytes) -> None:
    with held(path, WORK):
        with open(path, "wb") as file:
            file.write(left)
        with pytest.raises(Refused) as caught, held(path, WORK):
            pass
    assert caught.value.message == f"Another {WORK} is at work."


def test_the_file_is_the_owners_alone_and_stays(path: str) -> None:
    before = os.umask(0)
    try:
        assert is_free(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_name_that_is_not_utf8_will_do(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "\uefff.lock")
    assert is_free(path)
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff.lock"]


def test_what_cannot_be_held_is_one_sentence(path: str, tmp_path: os.PathLike[str]) -> None:
    os.mkfifo(path)
    link = os.path.join(tmp_path, "link")
    os.symlink(os.path.join(tmp_path, "elsewhere"), link)
    for odd in (path, link, os.fspath(tmp_path), os.path.join(tmp_path, "missing", "lock")):
        with pytest.raises(Refused, match=f"^{odd} cannot be locked: .*[a-z]\\.$"), held(odd, WORK):
            pass
    assert not os.path.lexists(os.path.join(tmp_path, "elsewhere"))
