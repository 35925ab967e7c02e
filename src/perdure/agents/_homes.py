"""Where an agent keeps its files: a directory of its own below the user's home, or the one a variable names."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import basename, isabs, join

from perdure.model.process import Process
from perdure.ports import HostView


def home_of(process: Process, variable: str, usual: str, host: HostView) -> str:
    """Return what `variable` says, seen from where the process is, else `usual` below the user's home."""
    chosen = process.environ.get(variable)
    if chosen:
        return chosen if isabs(chosen) else join(process.cwd or host.home, chosen)
    return join(process.environ.get("HOME") or host.home, usual)


def profile_of(process: Process, variable: str, usual: str, host: HostView) -> str | None:
    """Return the name of a home that a variable names and that is not the usual one."""
    if not process.environ.get(variable):
        return None
    home = home_of(process, variable, usual, host).rstrip("/")
    return None if host.physical(home) == host.physical(join(host.home, usual)) else basename(home)


def every_home(usual: str, host: HostView) -> Iterator[str]:
    """Yield the homes that can be found without a process: the usual one, then those named after it."""
    yield join(host.home, usual)
    for name in sorted(host.names(host.home)):
        if name.startswith((f"{usual}-", f"{usual}_")):
            yield join(host.home, name)
