"""Talking to systemd and launchd: what was written takes effect, and how it has gone since."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from msgspec import Struct

from perdure.host.units import RESTORE_AGENT, RESTORE_SERVICE, SAVE_AGENT, SAVE_TIMER, UP_AGENT, UP_SERVICE

#: Seconds. The daemon ends within fifteen when it is started again.
_PATIENCE = 60
_SHOWN = "Id,LoadState,UnitFileState,ActiveState,SubState,Result,ExecMainStartTimestampMonotonic"
_RUNS = ("active", "activating", "reloading")


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
    #: When it was last started.
    last_run: datetime | None = None


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
        """Enable both, and start the daemon, again if it runs: it may be of an earlier version.

        The restore comes only with the next start of the manager: what runs now is there.
        """
        commands = [
            (*self._systemctl, "daemon-reload"),
            (*self._systemctl, "enable", RESTORE_SERVICE, UP_SERVICE),
            (*self._systemctl, "restart", UP_SERVICE),
        ]
        return _all(self._run, commands, "The units are written but do not run")

    def stop(self, present: Sequence[str]) -> str | None:
        """Disable all. The restore is not stopped: tmux servers live in it."""
        ending = [name for name in (UP_SERVICE, SAVE_TIMER) if name in present]
        commands = [(*self._systemctl, "disable", "--now", name) for name in ending]
        if RESTORE_SERVICE in present:
            commands.append((*self._systemctl, "disable", RESTORE_SERVICE))
        # What is no longer there cannot be disabled, only stopped; the links are removed with the files.
        later = [*((*self._systemctl, "stop", name) for name in ending), (*self._systemctl, "daemon-reload")]
        return _all(self._run, commands, "The units are removed but may still run", later)

    def forget(self) -> str | None:
        """Let systemd read its directory again."""
        return _all(self._run, [(*self._systemctl, "daemon-reload")], "The units are removed but still loaded")

    def standings(self, now: datetime) -> Mapping[str, Standing]:
        """Ask for both at once."""
        answer = self._run((*self._systemctl, "show", "-p", _SHOWN, UP_SERVICE, RESTORE_SERVICE))
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
    state = values.get("UnitFileState")
    # Between two attempts it counts as activating, and nothing runs.
    runs = values.get("SubState") != "auto-restart" and values.get("ActiveState") in _RUNS
    return Standing(
        enabled=state.startswith("enabled") if state else None,
        active=runs if values.get("ActiveState") else None,
        result=values.get("Result") or None,
        last_run=now + timedelta(seconds=started / 1_000_000 - ticks) if started else None,
    )


class Launchd:
    """A `Manager` over launchctl."""

    def __init__(self, system: bool, directory: str, run: Run) -> None:
        self._domain = "system" if system else f"gui/{os.geteuid()}"
        self._directory = directory
        self._run = run

    def start(self, changed: Sequence[str]) -> str | None:
        """Load the daemon, or start it again. The restore comes with the next login: what runs now is there."""
        up = f"{self._domain}/{UP_AGENT}"
        file = f"{UP_AGENT}.plist"
        restore = f"{self._domain}/{RESTORE_AGENT}"
        commands: list[tuple[str, ...]] = [("launchctl", "enable", restore), ("launchctl", "enable", up)]
        if self._is_loaded(UP_AGENT) and file not in changed:
            commands.append(("launchctl", "kickstart", "-k", up))
            return _all(self._run, commands, "The jobs are written but do not run")
        if self._is_loaded(UP_AGENT):
            commands.append(("launchctl", "bootout", up))
        commands.append(("launchctl", "bootstrap", self._domain, os.path.join(self._directory, file)))
        return _all(self._run, commands, "The jobs are written but do not run")

    def stop(self, present: Sequence[str]) -> str | None:
        """Unload what runs. The restore is left: it has run, and goes with the next login."""
        running = [label for label in (UP_AGENT, SAVE_AGENT) if f"{label}.plist" in present and self._is_loaded(label)]
        commands = [("launchctl", "bootout", f"{self._domain}/{label}") for label in running]
        return _all(self._run, commands, "The job could not be unloaded")

    def forget(self) -> str | None:
        """Nothing: launchd keeps no list of files."""
        return None

    def standings(self, now: datetime) -> Mapping[str, Standing]:
        """Say which are loaded; launchd does not tell when they ran."""
        loaded = {label: self._is_loaded(label) for label in (UP_AGENT, RESTORE_AGENT)}
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
