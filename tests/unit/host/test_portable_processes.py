from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest

psutil = pytest.importorskip("psutil")

from perdure.host.portable_processes import PortableTable, read_portably  # noqa: E402
from tests.builders import keeping  # noqa: E402


@pytest.fixture
def odd() -> Iterator[int]:
    script = "import sys, time; print(flush=True); time.sleep(1000)"
    env = {"PATH": os.environ["PATH"], "EDITOR": "vi", "API_KEY": "hunter2"}
    argv: list[str | bytes] = [sys.executable, "-c", script, b"caf\xe9", b""]
    with subprocess.Popen(argv, env=env, cwd="/", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_bytes_that_are_no_text_can_be_stored(odd: int) -> None:
    table = read_portably(keeping("EDITOR", "API_KEY"))
    assert isinstance(table, PortableTable)
    process = table._read_one(psutil.Process(odd))
    assert process is not None
    assert process.argv[3:] == ("caf\uefe9", "")
    assert process.cwd == "/"
    assert process.environ == {"EDITOR": "vi"}
    assert msgspec.json.encode(process)


def test_a_secret_somebody_asked_for_is_kept(odd: int) -> None:
    def replayed(comm: str, exe: str | None, argv: tuple[str, ...], foreground: bool) -> frozenset[str]:
        return frozenset({"API_KEY"}) if argv[0] == sys.executable else frozenset()

    table = read_portably(keeping("EDITOR"), replayed)
    assert isinstance(table, PortableTable)
    process = table._read_one(psutil.Process(odd))
    assert process is not None
    assert process.environ == {"EDITOR": "vi", "API_KEY": "hunter2"}


def test_a_process_that_is_gone_costs_only_itself(odd: int) -> None:
    found = psutil.Process(odd)
    found.kill()
    found.wait()
    assert PortableTable(keeping())._read_one(found) is None


def test_a_process_elsewhere_is_in_no_pane(odd: int) -> None:
    assert PortableTable(keeping()).tree(odd, "/dev/pts/99999") == ()
    assert PortableTable(keeping()).tree(2**22 + 1, "/dev/pts/99999") == ()
