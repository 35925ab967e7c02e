"""A user's files in a directory, and the processes and sightings adapters are asked about."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec

from perdure.model.process import Process
from perdure.model.server import Server

HOME = "/home/dev"
CWD = "/home/dev/work/proj1"
STARTED = datetime(2026, 11, 15, 8, 30, tzinfo=UTC)
#: Seconds after the process started.
BEFORE, LATER, LATEST = -60.0, 60.0, 120.0


class DirectoryHost:
    """`ports.HostView` over a directory that stands for the root of a machine."""

    def __init__(self, root: str, home: str = HOME) -> None:
        self.root = root
        self.home = home
        #: What hooks of any process recorded, newest first.
        self.hook_records: list[bytes] = []
        #: By process what it holds open.
        self.opened: dict[int, list[str]] = {}

    def real(self, path: str) -> str:
        return self.root + path

    def write(self, path: str, data: bytes | str, *, at: float = LATER) -> str:
        """Write a file `at` seconds after the processes of the tests started."""
        real = self.real(path)
        os.makedirs(os.path.dirname(real), exist_ok=True)
        with open(real, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        when = STARTED.timestamp() + at
        os.utime(real, (when, when))
        return path

    def read(self, path: str, *, limit: int = 1 << 20, tail: bool = False) -> bytes | None:
        try:
            with open(self.real(path), "rb") as file:
                if tail:
                    file.seek(max(0, os.path.getsize(self.real(path)) - limit))
                return file.read(limit)
        except (OSError, ValueError):
            return None

    def names(self, directory: str) -> Sequence[str]:
        try:
            return os.listdir(self.real(directory))
        except (OSError, ValueError):
            return ()

    def modified_at(self, path: str) -> datetime | None:
        try:
            return datetime.fromtimestamp(os.stat(self.real(path)).st_mtime, UTC)
        except (OSError, ValueError):
            return None

    def created_at(self, path: str) -> datetime | None:
        return None

    def size(self, path: str) -> int | None:
        try:
            return os.stat(self.real(path)).st_size
        except (OSError, ValueError):
            return None

    def physical(self, path: str) -> str:
        try:
            return os.path.realpath(self.real(path)).removeprefix(os.path.realpath(self.root))
        except ValueError:
            return path

    def open_files(self, pid: int) -> Sequence[str]:
        return self.opened.get(pid, ())

    def hooks(self, agent: str, process: Process) -> Sequence[tuple[datetime, bytes]]:
        return [(process.started_at, record) for record in self.hook_records]

    def query(self, path: str, sql: str, parameters: Sequence[object] = ()) -> Sequence[tuple[object, ...]] | None:
        try:
            with closing(sqlite3.connect(f"file:{quote(self.real(path))}?mode=ro", uri=True)) as database:
                return database.execute(sql, tuple(parameters)).fetchall()
        except sqlite3.Error:
            return None

    def make_database(self, path: str, script: str, *, at: float = LATER) -> str:
        """Make an SQLite file of the statements in `script`."""
        self.write(path, b"", at=at)
        with closing(sqlite3.connect(self.real(path))) as database:
            database.executescript(script)
        return path


class Seen:
    """`ports.Sighting` of one process."""

    def __init__(self, process: Process, *below: Process, title: str = "", at: datetime | None = None) -> None:
        self.process = process
        self.tree = (process, *below)
        self.title = title
        self.at = at
        self.pane = "%0"
        self.server = Server(host="box", user="dev", uid=1000, socket="/tmp/tmux-1000/default")


def process(
    *argv: str,
    pid: int = 100,
    ppid: int = 1,
    ticks: int = 5000,
    pgid: int | None = None,
    foreground: bool = True,
    comm: str | None = None,
    exe: str | None = None,
    cwd: str | None = CWD,
    environ: Mapping[str, str] | None = None,
) -> Process:
    """Return a process; the name it goes by is its argv[0]'s unless told otherwise."""
    return Process(
        pid=pid,
        ppid=ppid,
        start_ticks=ticks,
        started_at=STARTED,
        pgid=pid if pgid is None else pgid,
        foreground=foreground,
        comm=os.path.basename(argv[0]) if comm is None and argv else comm or "",
        exe=exe,
        argv=argv,
        cwd=cwd,
        environ=environ or {},
    )


def jsonl(*records: Mapping[str, Any]) -> bytes:
    """Return records as a transcript has them."""
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)
