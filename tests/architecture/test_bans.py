"""What may be used only in its place, or nowhere. Ruff bans some of it too; here it is judged per folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.architecture.source import Finding, Module, imports, modules, parse, report


class Ban(NamedTuple):
    """Names (with everything below them) that only these modules (with everything below them) may use."""

    names: tuple[str, ...]
    allowed: tuple[str, ...]
    why: str


PROCESSES = ("perdure.tmux", "perdure.host", "perdure.jobs")
#: A program of its own, which stands for somebody else's.
SIMULATED = "perdure.demo.agent"
#: Run by themselves, without the rest of the program: what looks after jobs, and its watch.
SUPERVISOR = ("perdure.jobs.supervisor", "perdure.jobs.keeping")

BANS = (
    Ban(("subprocess", "pty", "asyncio.create_subprocess_exec"), PROCESSES, "processes are started at the edges only"),
    Ban(
        tuple(
            f"os.{name}"
            for name in (
                "fork forkpty posix_spawn posix_spawnp execl execle execlp execlpe execv execve execvp execvpe "
                "spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe"
            ).split()
        ),
        PROCESSES,
        "processes are started at the edges only",
    ),
    Ban(("sqlite3", "psycopg", "psycopg_pool"), ("perdure.store",), "databases are the store's business"),
    Ban(
        (
            "datetime.datetime.now",
            "datetime.datetime.utcnow",
            "datetime.datetime.today",
            "datetime.date.today",
            "time.time",
            "time.time_ns",
            "time.localtime",
            "time.gmtime",
        ),
        ("perdure.host.clock", "perdure.jobs.supervisor", SIMULATED),
        "time is an argument: take `now`",
    ),
    Ban(
        ("time.monotonic", "time.monotonic_ns", "time.perf_counter", "time.perf_counter_ns", "time.clock_gettime"),
        ("perdure.tmux", "perdure.host", *SUPERVISOR, SIMULATED),
        "only the edges wait for something",
    ),
    Ban(
        ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"),
        (),
        "commands are argv, no shell",
    ),
    Ban(("asyncio.create_subprocess_shell",), (), "commands are argv, no shell"),
    Ban(("asyncio.create_task", "asyncio.ensure_future"), (), "a task nobody owns loses its exceptions"),
)


def banned_uses(module: Module) -> list[Finding]:
    """Return every use of a name outside the place it is for, under whatever alias it was imported."""
    found = {
        Finding(module.at(node), f"{dotted}: {ban.why}")
        for dotted, node in _names(module)
        for ban in BANS
        if _is_below(dotted, ban.names) and not _is_below(module.name, ban.allowed)
    }
    return sorted(found | set(_shells(module)) | set(_learning(module)))


#: What is told a text for the user's shell, to say it on, and runs nothing.
SAYING = frozenset({"Order", "JobRow", "replace"})


def _shells(module: Module) -> Iterator[Finding]:
    """Yield every call that asks for a shell, or might."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in SAYING):
            for keyword in node.keywords:
                is_off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                if keyword.arg == "shell" and not is_off:
                    yield Finding(module.at(node), "shell=: commands are argv, no shell")


#: Where a kind may be asked for: in its place, and where there is one thread.
LEARNING = ("perdure.model.decoding", "perdure.cli")


def _learning(module: Module) -> Iterator[Finding]:
    """Yield every call that has msgspec learn a kind by itself, which only one thread at a time may."""
    if _is_below(module.name, LEARNING):
        return
    stands_for = {imported.bound: imported.stands_for for imported in imports(module)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            first, _, rest = _dotted(node.func).partition(".")
            dotted = f"{stands_for.get(first, first)}.{rest}".rstrip(".")
            is_told_kind = len(node.args) > 1 or any(keyword.arg == "type" for keyword in node.keywords)
            if dotted in ("msgspec.convert", "msgspec.json.Decoder") or (
                dotted == "msgspec.json.decode" and is_told_kind
            ):
                yield Finding(module.at(node), f"{dotted}: kinds are learnt one at a time, by model/decoding.py")


def _names(module: Module) -> Iterator[tuple[str, ast.stmt | ast.expr]]:
    """Yield every dotted name that is imported or used, resolved through the module's imports."""
    stands_for = {}
    for imported in imports(module):
        yield imported.dotted, imported.node
        stands_for[imported.bound] = imported.stands_for
    for expression in ast.walk(module.tree):
        if isinstance(expression, ast.Attribute | ast.Name):
            first, _, rest = _dotted(expression).partition(".")
            if first in stands_for:
                yield f"{stands_for[first]}.{rest}".rstrip("."), expression


def _dotted(node: ast.expr) -> str:
    """`a.b.c` as text; "" when it does not begin with a plain name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def _is_below(dotted: str, roots: tuple[str, ...]) -> bool:
    return any(dotted == root or dotted.startswith(f"{root}.") for root in roots)


def test_everything_banned_stays_in_its_place() -> None:
    findings = [finding for module in modules() for finding in banned_uses(module)]
    assert not findings, report(findings)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("perdure.cli.save", "import subprocess"),
        ("perdure.store.rows", "import msgspec\nmsgspec.json.decode(raw, type=Chat)"),
        ("perdure.jobs.record", "from msgspec import convert as to\nto(value, Job)"),
        ("perdure.daemon.protocol", "import msgspec\nread = msgspec.json.Decoder(Line)"),
        ("perdure.snapshots.capture", "def f():\n    from subprocess import run as go"),
        ("perdure.cli.main", "import os\nos.execvp('tmux', ['tmux'])"),
        ("perdure.snapshots.retention", "import sqlite3"),
        ("perdure.cli.check", "from psycopg.rows import dict_row"),
        ("perdure.snapshots.plan", "from datetime import datetime\nnow = datetime.now(UTC)"),
        ("perdure.snapshots.plan", "from datetime import datetime as dt\nnow = dt.utcnow()"),
        ("perdure.host.files", "import datetime\ndatetime.date.today()"),
        ("perdure.store.store", "import time\ndef f(clock=time.time): pass"),
        ("perdure.store.store", "from time import time_ns as ticks"),
        ("perdure.store.store", "import time as t\nt.monotonic()"),
        ("perdure.host.clock", "import os\nos.system('date')"),
        ("perdure.host.users", "import subprocess\nsubprocess.run('id', shell=True)"),
        ("perdure.host.users", "import subprocess\nsubprocess.run('id', shell=wanted)"),
        ("perdure.daemon.app", "import asyncio\nasyncio.create_task(f())"),
        ("perdure.daemon.app", "from asyncio import ensure_future"),
    ],
)
def test_a_banned_use_is_found(name: str, text: str) -> None:
    assert banned_uses(parse(name, text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("perdure.tmux.run", "import subprocess, time\nsubprocess.run(['tmux'], shell=False)\ntime.monotonic()"),
        ("perdure.store.sqlite", "import sqlite3"),
        ("perdure.live.theme", "import msgspec\nmsgspec.json.decode(raw)"),
        ("perdure.host.clock", "from datetime import datetime\ndatetime.now(UTC)"),
        ("perdure.snapshots.plan", "from datetime import datetime\nat = datetime.fromisoformat(text)"),
        ("perdure.daemon.app", "async with asyncio.TaskGroup() as group:\n    group.create_task(f())"),
        ("perdure.snapshots.plan", "def f(self, time):\n    return time.time"),
        ("perdure.cli.jobs_run", "from perdure.model.job import Order\nOrder(shell=text)"),
    ],
)
def test_an_ordinary_use_is_left_alone(name: str, text: str) -> None:
    assert not banned_uses(parse(name, text.replace("async with", "async def f():\n  async with")))
