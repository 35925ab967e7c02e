"""tmux servers that a run of the tests has left behind: found by what they were started with, and by where they listen.

Whoever leaves one fails, at the end of the run: on a machine where tests run every day such servers add up, and each has
programs of its own.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterator
from typing import NamedTuple

#: How a private home is called.
HOMES = "/tmp/pd-"
_HOME = re.compile(re.escape(HOMES.encode()) + rb"\w+")
_TEST = re.compile(rb"PYTEST_CURRENT_TEST=([^\0]*)")
#: What a client calls itself, and a server where it does: its words are those of the client that has started it.
_TMUX, _CLIENT = b"tmux", b"tmux: client"
#: One that was told to end may take its time on a busy machine.
_PATIENCE = 30.0


class Left(NamedTuple):
    """A server that is there."""

    pid: int
    #: Its words, and the test it was started in as far as that is known.
    what: str


def servers_of(homes: Collection[str]) -> list[Left]:
    """Return the servers that were started with one of these private homes, or for a socket in one."""
    wanted = {home.encode() for home in homes}
    return [Left(pid, what) for pid, what, found in _servers() if wanted & found]


def servers_left(homes: Collection[str]) -> list[Left]:
    """Return those of them that do not end by themselves."""
    deadline = time.monotonic() + _PATIENCE
    while (left := servers_of(homes)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def listening_below(directory: str) -> list[str]:
    """Return the sockets below a directory that somebody listens on; [] where the kernel does not tell."""
    inside = os.path.realpath(directory) + os.sep
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.rstrip("\n").split(None, 7) for line in file]
    except OSError:
        return []
    # The fourth says that it takes connections.
    paths = [row[7] for row in rows if len(row) == 8 and row[3] == "00010000"]
    return sorted({path for path in paths if path.startswith(inside)})


def is_server(pid: int) -> bool:
    """Return whether a process is a tmux server."""
    name = _read(pid, "comm")
    return name.startswith(_TMUX) and not name.startswith(_CLIENT)


def _servers() -> Iterator[tuple[int, str, set[bytes]]]:
    """Every server there is, with the private homes it knows of."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return
    for pid in pids:
        if not is_server(pid):
            continue
        words, environ = _read(pid, "cmdline"), _read(pid, "environ")
        # Of one that has ended and that nobody has collected, nothing else is left.
        if words:
            test = _TEST.search(environ)
            said = words.replace(b"\0", b" ").decode(errors="replace").strip()
            in_test = f", of {test[1].decode(errors='replace')}" if test else ""
            yield pid, f"{said[:120]}{in_test}", set(_HOME.findall(words + b"\0" + environ))


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def let_fish_be(home: str) -> None:
    """Keep the first fish of a home from reading every manual of the machine.

    What does that is let go of at once: it would outlive its test, and fill the home after that was removed.
    """
    os.makedirs(os.path.join(home, ".local", "share", "fish", "generated_completions"), exist_ok=True)
