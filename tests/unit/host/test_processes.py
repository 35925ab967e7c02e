from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from perdure.host import processes
from perdure.host.processes import Entry, ProcessTable, Replayed, is_alive, is_inhabited, read_entry, read_processes
from perdure.host.users import run_as, user_by_uid
from perdure.model.process import Process
from tests.builders import keeping

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc to read")

#: No process has this number.
NOBODY = 2**22 + 1


def an_entry(pid: int, ppid: int = 1, *, pts: int | None = 5, tpgid: int = -1, comm: str = "sh") -> Entry:
    tty = 0 if pts is None else (136 << 8) | (pts & 0xFF) | ((pts & ~0xFF) << 12)
    return Entry(pid, ppid, pid, tty, tpgid, 1000, comm)


def a_table(*entries: Entry, names: frozenset[str] = frozenset()) -> ProcessTable:
    return ProcessTable(entries, boot=0.0, names=keeping(*names))


@pytest.fixture
def child() -> Iterator[Callable[..., int]]:
    """Start programs that are still there when they are looked at."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*argv: str | bytes, env: dict[str, str] | None = None, cwd: str | None = None) -> int:
        started.append(subprocess.Popen(argv, env=env, cwd=cwd))
        while not open_cmdline(started[-1].pid)[0]:
            time.sleep(0.001)  # the program is in place, its arguments are not yet
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()


def open_cmdline(pid: int) -> list[bytes]:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().split(b"\0")


def the(pid: int, *names: str, replayed: Replayed | None = None) -> Process:
    """Read one process, wherever it sits."""
    found = read_entry(pid)
    assert found is not None
    entries = [msgspec.structs.replace(found, tty=0)]
    table = ProcessTable(entries, boot=0.0, names=keeping(*names), replayed=replayed)
    (process,) = table.tree(pid, "none")
    return process


def test_a_tree_has_parents_before_children() -> None:
    table = a_table(an_entry(30, 20), an_entry(20, 10), an_entry(21, 10), an_entry(10), an_entry(99), an_entry(40, 30))
    pids = [process.pid for process in table.tree(10, "/dev/pts/5")]
    assert set(pids) == {10, 20, 21, 30, 40}
    assert pids.index(10) < pids.index(20) < pids.index(30) < pids.index(40)


def test_a_circle_ends() -> None:
    table = a_table(an_entry(10, 30), an_entry(20, 10), an_entry(30, 20))
    assert sorted(process.pid for process in table.tree(10, "/dev/pts/5")) == [10, 20, 30]


@pytest.mark.parametrize("pts", [0, 5, 255, 256, 300, 614, 5000])
def test_a_process_belongs_to_a_pane_by_its_terminal(pts: int) -> None:
    table = a_table(an_entry(10, pts=pts), an_entry(20, 10, pts=None))
    assert len(table.tree(10, f"/dev/pts/{pts}")) == 2
    for other in (pts + 1, pts + 256):
        assert table.tree(10, f"/dev/pts/{other}") == ()


def test_a_number_that_is_anothers_by_now_is_not_believed() -> None:
    table = a_table(an_entry(10, pts=None), an_entry(20, pts=7))
    assert table.tree(10, "/dev/pts/5") == ()
    assert table.tree(20, "/dev/pts/5") == ()
    assert table.tree(NOBODY, "/dev/pts/5") == ()


def test_the_foreground_is_what_the_terminal_says() -> None:
    table = a_table(an_entry(10, tpgid=20), an_entry(20, 10, tpgid=20), an_entry(30, 10, tpgid=20))
    assert [process.pid for process in table.tree(10, "/dev/pts/5") if process.foreground] == [20]


def test_a_process_that_is_gone_costs_only_itself() -> None:
    me = read_entry(os.getpid())
    assert me is not None
    table = a_table(an_entry(NOBODY), msgspec.structs.replace(me, ppid=NOBODY))
    gone, there = table.tree(NOBODY, "/dev/pts/5")
    assert (gone.argv, gone.cwd, gone.exe, dict(gone.environ)) == ((), None, None, {})
    assert there.argv[0] == open_cmdline(os.getpid())[0].decode()


def test_arguments_are_a_list_byte_for_byte(child: Callable[..., int]) -> None:
    odd = (b"sleep", b"1000", b"", b"two  words", b"new\nline", b"caf\xe9", "日本語".encode(), b"a=b", b"--", b"")
    pid = child(sys.executable, "-c", "import time; time.sleep(1000)", *odd)
    process = the(pid)
    assert process.argv[3:] == (*(word.decode() for word in odd[:5]), "caf\uefe9", "日本語", "a=b", "--", "")
    assert process.comm.startswith("python")


def test_long_arguments_are_whole(child: Callable[..., int]) -> None:
    words = [f"{number:0100}" for number in range(3000)]
    pid = child(sys.executable, "-c", "import time; time.sleep(1000)", *words)
    assert list(the(pid).argv[3:]) == words


def test_where_a_process_is(child: Callable[..., int], tmp_path: object) -> None:
    odd = os.path.join(os.fsencode(str(tmp_path)), b"caf\xe9\n ")
    os.mkdir(odd)
    pid = child("sleep", "1000", cwd=os.fsdecode(odd))
    assert the(pid).cwd == f"{tmp_path}/caf\uefe9\n "
    assert the(pid).exe == os.path.realpath(subprocess.check_output(["which", "sleep"]).decode().strip())
    os.rmdir(odd)
    assert the(pid).cwd == f"{tmp_path}/caf\uefe9\n "


def test_only_allowed_variables_and_never_a_secret(child: Callable[..., int]) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "EDITOR": "vi two\nlines",
        "XEDITOR": "no",
        "EDITORX": "no",
        "OTHER": "EDITOR=no",
        "MODEL": "ghp_" + "a1B2" * 9,
        "API_KEY": "hunter2",
        "EMPTY": "",
    }
    pid = child("sleep", "1000", env=env)
    assert the(pid, "EDITOR", "MODEL", "API_KEY", "EMPTY", "ABSENT").environ == {"EDITOR": "vi two\nlines", "EMPTY": ""}
    assert the(pid).environ == {}


def test_a_secret_somebody_asked_for_is_kept_with_the_processes_it_was_asked_for(child: Callable[..., int]) -> None:
    key = "sk-proj-" + "E5f6" * 10
    pid = child("sleep", "1000", env={"API_KEY": "hunter2", "MODEL": key, "OTHER_KEY": "x"})
    asked: list[tuple[str, ...]] = []

    def replayed(comm: str, exe: str | None, argv: tuple[str, ...], foreground: bool) -> frozenset[str]:
        asked.append(argv)
        return frozenset({"API_KEY", "MODEL", "ABSENT"})

    assert the(pid, "MODEL", "OTHER_KEY", replayed=replayed).environ == {"API_KEY": "hunter2", "MODEL": key}
    assert asked == [("sleep", "1000")]


def test_a_large_environment_is_read_whole(child: Callable[..., int]) -> None:
    env = {f"V{number}": "x" * 1000 for number in range(200)} | {"PATH": os.environ["PATH"], "ZLAST": "here"}
    assert the(child("sleep", "1000", env=env), "ZLAST").environ == {"ZLAST": "here"}


@pytest.mark.parametrize("name", ["a b", "a)b(c", "(x) S 1", "é"])
def test_a_name_with_anything_in_it(child: Callable[..., int], tmp_path: object, name: str) -> None:
    path = os.path.join(str(tmp_path), name)
    os.symlink(subprocess.check_output(["which", "sleep"]).decode().strip(), path)
    pid = child(path, "1000")
    entry = read_entry(pid)
    assert entry is not None
    assert entry.comm == name
    assert entry.ppid == os.getpid()
    assert the(pid).start_ticks == entry.start_ticks


def test_a_process_is_that_very_process(child: Callable[..., int]) -> None:
    entry = read_entry(child("sleep", "1000"))
    assert entry is not None
    assert is_alive(entry.pid, entry.start_ticks)
    assert not is_alive(entry.pid, entry.start_ticks + 1)
    assert not is_alive(NOBODY, 1)
    assert read_entry(NOBODY) is None


def test_the_start_is_the_real_one(child: Callable[..., int]) -> None:
    before = time.time()
    pid = child("sleep", "1000")
    table = read_processes(keeping())
    entry = table.entry(pid)
    assert entry is not None
    (process,) = ProcessTable([msgspec.structs.replace(entry, tty=0)], boot=table._boot, names=keeping()).tree(
        pid, "none"
    )
    assert abs(process.started_at.timestamp() - before) < 60


def test_the_table_of_this_machine_has_this_process() -> None:
    table = read_processes(keeping("HOME"))
    entry = table.entry(os.getpid())
    assert entry is not None
    assert entry.ppid == os.getppid()
    assert entry.pgid == os.getpgid(0)
    assert table.entry(NOBODY) is None


def test_somebody_elses_process_shows_what_anybody_may_see() -> None:
    nobody = user_by_uid(65534)
    if os.getuid() != 0 or nobody is None:
        pytest.skip("only root can be somebody else")
    pid = os.getpid()
    process = msgspec.json.decode(run_as(nobody, lambda: msgspec.json.encode(the(pid, "HOME"))), type=Process)
    assert process.argv == the(pid).argv
    assert (process.cwd, process.exe, dict(process.environ)) == (None, None, {})


def test_a_process_that_becomes_another_program_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    words = processes._argv
    asked: list[str] = []

    def at_first_none(path: str) -> tuple[str, ...]:
        asked.append(path)
        return () if len(asked) < 4 else words(path)

    table = processes.read_processes(keeping())
    monkeypatch.setattr(processes, "_argv", at_first_none)
    tree = table.tree(os.getpid(), "")
    assert tree[0].argv == words("/proc/self/cmdline")
    assert len(asked) >= 4


def test_one_that_waits_to_be_reaped_is_over() -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        before = read_entry(process.pid)
        assert before is not None
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert read_entry(process.pid) is None
        assert not is_alive(process.pid, before.start_ticks)
        table = read_processes(keeping())
        assert table.entry(process.pid) is None
        assert table.entry(os.getpid()) is not None


def test_one_whose_first_thread_has_ended_is_not(child: Callable[..., int]) -> None:
    number = {"x86_64": 60, "aarch64": 93}.get(os.uname().machine)
    if number is None:
        pytest.skip("how a thread ends here is not known")
    script = "import ctypes, threading; threading.Thread(target=threading.Event().wait, args=(600,)).start()"
    pid = child(sys.executable, "-c", f"{script}; ctypes.CDLL(None).syscall({number}, 0)")
    while open_cmdline(pid)[0]:
        time.sleep(0.001)
    entry = read_entry(pid)
    assert entry is not None
    assert is_alive(pid, entry.start_ticks)
    assert the(pid).is_wordless


def test_a_directory_is_inhabited_while_somebody_works_below_it(tmp_path: Path) -> None:
    room = tmp_path / "house" / "room"
    room.mkdir(parents=True)
    assert not is_inhabited(str(tmp_path / "house"))
    with subprocess.Popen(["sleep", "60"], cwd=room) as sleeping:
        assert is_inhabited(str(tmp_path / "house"))
        assert not is_inhabited(str(tmp_path / "hous"))
        sleeping.kill()
    assert not is_inhabited(str(tmp_path / "house"))
