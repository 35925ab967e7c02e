"""Talking to systemd and launchd: what was written takes effect, and how it has gone since."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from msgspec import Struct

from perdure.host.units import RESTORE_AGENT, RESTORE_SERVICE, SAVE_AGENT, SAVE_SERVICE, SAVE_TIMER

#: Seconds. Starting the timer starts the first save, but does not wait for it.
_PATIENCE = 60
_SHOWN = "Id,LoadState,UnitFileState,ActiveState,Result,ExecMainStartTimestampMonotonic,NextElapseUSecMonotonic"
#: Microseconds, as `systemctl show` writes lengths of time.
_SPANS = {
    "y": 31_557_600_000_000,
    "month": 2_629_800_000_000,
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "min": 60_000_000,
    "s": 1_000_000,
    "ms": 1000,
    "us": 1,
}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(y|month|w|d|h|min|s|ms|us)")


class Answer(NamedTuple):
    """What a program said. A status of None: it is not installed, or did not come back."""

    status: int | None
    out: str
    err: str


#: Runs a program by its arguments and waits for it.
Run = Callable[[Sequence[str]], Answer]


class Standing(Struct, frozen=True, kw_only=True):
    """How a unit stands; None is what nobody could say."""

    enabled: bool | None = None
    active: bool | None = None
    #: systemd's word for how the last run ended: `success`, `exit-code`, `oom-kill`, …
    result: str | None = None
    last_run: datetime | None = None
    next_run: datetime | None = None


class Manager(Protocol):
    """What runs units on a platform. `start` and `stop` return the sentence for what could not be done."""

    def start(self, changed: Sequence[str]) -> str | None:
        """See that what lies in the directory takes effect; `changed` names the files that were written."""

    def stop(self, present: Sequence[str]) -> str | None:
        """See that the files in `present`, which are about to be removed, have no effect any more."""

    def forget(self) -> str | None:
        """See that files that were removed are not known any more."""

    def standings(self, now: datetime) -> Mapping[str, Standing]:
        """Return how the units stand, by the names of their files; nothing when there is no answer."""


def run_program(argv: Sequence[str]) -> Answer:
    """Run a program, for at most a minute, with the user's own service manager in reach."""
    environ = dict(os.environ)
    # A shell that came by `su` lacks it, and systemctl would not find the user's manager.
    runtime = f"/run/user/{os.geteuid()}"
    if not environ.get("XDG_RUNTIME_DIR") and os.path.isdir(runtime):
        environ["XDG_RUNTIME_DIR"] = runtime
    # Everything below reads words and numbers that are only the same everywhere in this locale.
    environ["LC_ALL"] = "C"
    try:
        done = subprocess.run(
            list(argv), env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except FileNotFoundError:
        return Answer(None, "", f"{argv[0]} is not installed")
    except subprocess.TimeoutExpired:
        return Answer(None, "", f"{argv[0]} did not answer within {_PATIENCE} seconds")
    except OSError as error:
        return Answer(None, "", f"{argv[0]} cannot be run: {error.strerror}")
    return Answer(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def manager(platform: str, *, system: bool, directory: str, run: Run) -> Manager:
    """Return what runs the units in `directory`."""
    return Launchd(system, directory, run) if platform == "macos" else Systemd(system, run)


class Systemd:
    """A `Manager` over systemctl."""

    def __init__(self, system: bool, run: Run) -> None:
        self._systemctl = ("systemctl",) if system else ("systemctl", "--user")
        self._run = run

    def start(self, changed: Sequence[str]) -> str | None:
        """Enable both; the restore only from the next start of the manager on, for what runs now is there."""
        commands = [
            (*self._systemctl, "daemon-reload"),
            (*self._systemctl, "enable", RESTORE_SERVICE),
            (*self._systemctl, "enable", "--now", SAVE_TIMER),
        ]
        return _all(self._run, commands, "The units are written but do not run")

    def stop(self, present: Sequence[str]) -> str | None:
        """Disable both. The restore is not stopped: tmux servers live in it."""
        commands = []
        if SAVE_TIMER in present:
            commands.append((*self._systemctl, "disable", "--now", SAVE_TIMER))
        if RESTORE_SERVICE in present:
            commands.append((*self._systemctl, "disable", RESTORE_SERVICE))
        # What is no longer there cannot be disabled, only stopped; the links are removed with the files.
        later = [(*self._systemctl, "stop", SAVE_TIMER), (*self._systemctl, "daemon-reload")]
        return _all(self._run, commands, "The units are removed but may still run", later)

    def forget(self) -> str | None:
        """Let systemd read its directory again."""
        return _all(self._run, [(*self._systemctl, "daemon-reload")], "The units are removed but still loaded")

    def standings(self, now: datetime) -> Mapping[str, Standing]:
        """Ask for all three at once."""
        answer = self._run((*self._systemctl, "show", "-p", _SHOWN, SAVE_TIMER, SAVE_SERVICE, RESTORE_SERVICE))
        if answer.status != 0:
            return {}
        found = {}
        for block in answer.out.split("\n\n"):
            values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
            if "Id" in values:
                found[values["Id"]] = _standing(values, now, time.monotonic())
        return found


def _standing(values: Mapping[str, str], now: datetime, ticks: float) -> Standing:
    """Read what `systemctl show` says; `ticks` is `now` on the clock that its numbers are of."""
    if values.get("LoadState") == "not-found":
        return Standing(enabled=False, active=False)
    ran = values.get("ExecMainStartTimestampMonotonic", "")
    started = int(ran) if ran.isascii() and ran.isdigit() else 0
    next_run = span(values.get("NextElapseUSecMonotonic", ""))

    def moment(microseconds: float) -> datetime:
        return now + timedelta(seconds=microseconds / 1_000_000 - ticks)

    state = values.get("UnitFileState")
    return Standing(
        enabled=state.startswith("enabled") if state else None,
        active=values["ActiveState"] in ("active", "activating", "reloading") if values.get("ActiveState") else None,
        result=values.get("Result") or None,
        last_run=moment(started) if started else None,
        next_run=moment(next_run) if next_run else None,
    )


def span(text: str) -> float | None:
    """Return the microseconds of a length of time such as `1h 2min 3.5s`; None for `infinity` and what is none."""
    words = text.split()
    parts = [_SPAN.fullmatch(word) for word in words]
    if not parts or None in parts:
        return None
    return sum(float(part[1]) * _SPANS[part[2]] for part in parts if part)


class Launchd:
    """A `Manager` over launchctl."""

    def __init__(self, system: bool, directory: str, run: Run) -> None:
        self._domain = "system" if system else f"gui/{os.geteuid()}"
        self._directory = directory
        self._run = run

    def start(self, changed: Sequence[str]) -> str | None:
        """Load the save. The restore is loaded with the next login: loading it runs it, and what runs now is there."""
        save = f"{self._domain}/{SAVE_AGENT}"
        file = f"{SAVE_AGENT}.plist"
        restore = f"{self._domain}/{RESTORE_AGENT}"
        commands: list[tuple[str, ...]] = [("launchctl", "enable", restore), ("launchctl", "enable", save)]
        if self._is_loaded(SAVE_AGENT):
            if file not in changed:
                return _all(self._run, commands, "The jobs are written but not enabled")
            commands.append(("launchctl", "bootout", save))
        commands.append(("launchctl", "bootstrap", self._domain, os.path.join(self._directory, file)))
        return _all(self._run, commands, "The jobs are written but do not run")

    def stop(self, present: Sequence[str]) -> str | None:
        """Unload the save. The restore is left: it has run, and goes with the next login."""
        if f"{SAVE_AGENT}.plist" not in present or not self._is_loaded(SAVE_AGENT):
            return None
        command = ("launchctl", "bootout", f"{self._domain}/{SAVE_AGENT}")
        return _all(self._run, [command], "The job could not be unloaded")

    def forget(self) -> str | None:
        """Nothing: launchd keeps no list of files."""
        return None

    def standings(self, now: datetime) -> Mapping[str, Standing]:
        """Say which are loaded; launchd does not tell when they ran."""
        loaded = {label: self._is_loaded(label) for label in (SAVE_AGENT, RESTORE_AGENT)}
        return {f"{label}.plist": Standing(active=is_loaded) for label, is_loaded in loaded.items()}

    def _is_loaded(self, label: str) -> bool | None:
        answer = self._run(("launchctl", "print", f"{self._domain}/{label}"))
        return None if answer.status is None else answer.status == 0


def _all(run: Run, commands: Sequence[Sequence[str]], what: str, later: Sequence[Sequence[str]] = ()) -> str | None:
    """Run one command after the other; at the first that fails, return a sentence with the line to run later."""
    for command in commands:
        answer = run(command)
        if answer.status != 0:
            said = answer.err.strip().splitlines() or [f"{shlex.join(command)} ended with {answer.status}"]
            line = " && ".join(shlex.join(each) for each in later or commands)
            return f"{what}: {said[0].strip().rstrip('.')}; run later: {line}"
    return None


def linger(user: str, run: Run, *, directory: str = "/var/lib/systemd/linger") -> bool | None:
    """Say whether a user's units run without a login; None when nobody can tell."""
    answer = run(("loginctl", "show-user", user, "--property=Linger"))
    if answer.status == 0 and answer.out.strip() in ("Linger=yes", "Linger=no"):
        return answer.out.strip() == "Linger=yes"
    # loginctl knows of nobody who is neither logged in nor lingering.
    if os.path.exists(os.path.join(directory, user)):
        return True
    return False if os.path.isdir("/run/systemd/system") else None
