"""The text of the units that keep a machine saved and bring it back: systemd's and launchd's."""

from __future__ import annotations

import os
import plistlib
import re
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from perdure.host.unit_program import Program
from perdure.model.digest import digest_of

PLATFORMS = ("linux", "macos")
SAVE_SERVICE, SAVE_TIMER, RESTORE_SERVICE = "perdure-save.service", "perdure-save.timer", "perdure-restore.service"
SAVE_AGENT, RESTORE_AGENT = "perdure.save", "perdure.restore"

_MARK = re.compile(r"^(?P<before>(?:# |<!-- )Written by perdure, sum=)(?P<sum>[0-9a-f]{8})", re.MULTILINE)
_BLANK = "0" * 8
#: systemd takes no quotes and no backslash in the name of a program, and reads a dollar sign in it twice, differently.
_PLAIN_PROGRAM = re.compile(r"""/[^'"\\$]*[^'"\\$/]""")
#: Runs what follows; the words are arguments and never part of the text.
_THROUGH_SHELL = ("/bin/sh", "-c", 'exec "$@"', "perdure")

_SAVE = """\
[Unit]
Description=Save tmux sessions and agent conversations
# A restore that is at work comes first: half a machine is not what anybody wants kept.
After=perdure-restore.service

[Service]
Type=oneshot
{program}
# Ends perdure alone, and nothing that was started meanwhile.
KillMode=process
# Memory that runs out is no reason to give up what can still be saved.
OOMPolicy=continue
# A save that hangs would keep all later ones from starting.
TimeoutStartSec=10min
# Once a minute is too often for the journal; what goes wrong is kept.
StandardOutput=null
SyslogLevel=warning
LogLevelMax=notice
"""

_TIMER = """\
[Unit]
Description=Save tmux sessions and agent conversations every minute

[Timer]
# Since the service manager came up; after that, since the last save. Persistent= is for times of the day: what was
# missed while the machine was off cannot be saved any more.
OnStartupSec=1min
OnUnitActiveSec=1min
# Left alone it is a minute, which makes two minutes of one.
AccuracySec=5s

[Install]
WantedBy=timers.target
"""

_RESTORE = """\
[Unit]
Description=Bring back tmux sessions and agent conversations
{order}
[Service]
Type=oneshot
# Once for every start of the service manager: what counts as running is not started again.
RemainAfterExit=yes
{program}
# Where nothing was saved yet, there is nothing to bring back.
SuccessExitStatus=3
# The tmux servers this starts get scopes of their own; where that cannot be done, they and every agent in them live
# on in this unit. Only perdure itself ends with it.
KillMode=process
# One agent that is killed for want of memory must not take the server and all other agents along, as it would with
# the default, `stop`, and with a systemd-oomd that looks for the largest unit.
OOMPolicy=continue
ManagedOOMPreference=avoid
# The usual limit is meant for one service, not for everything people run in their panes.
TasksMax=infinity

[Install]
WantedBy={target}
"""

_USER_ORDER = """\
# A login does not wait for this. With linger it runs when the machine starts, before anybody can attach; without,
# beside the first login. Sessions that somebody makes meanwhile are left as they are.
# Saves wait for it no longer than that. It ends the waiting only: the restore goes on.
JobRunningTimeoutSec=5min
"""

_SYSTEM_ORDER = """\
# Homes and accounts have to be there. Not network-online.target: where no network comes up, nobody could log in.
# systemd-user-sessions.service is not what to be before, though it lets users in: until it has run, some versions of
# systemd start nothing in a user's slice, and tmux servers belong there.
After=remote-fs.target nss-user-lookup.target systemd-user-sessions.service
# Before anybody can attach: these are what people come in through.
Wants=getty-pre.target
Before=getty-pre.target ssh.service sshd.service display-manager.service
# Nobody waits longer than that at the login, and no save does. It ends the waiting only: the restore goes on.
JobRunningTimeoutSec=30s
"""


class UnitFile(Struct, frozen=True, kw_only=True):
    """A file of ours, as it is to be."""

    name: str
    text: str


class FileState(StrEnum):
    """What is where a unit of ours belongs."""

    MISSING = "missing"
    INSTALLED = "installed"
    #: Ours, from another version or for another environment.
    OUTDATED = "outdated"
    #: Ours, and changed by somebody since.
    EDITED = "edited"
    FOREIGN = "not ours"


def units(platform: str, program: Program, *, system: bool, home: str) -> tuple[UnitFile, ...]:
    """Return the units for a platform: of a user, or with `system` those of root for everybody."""
    if platform == "macos":
        logs = "/var/log" if system else os.path.join(home, "Library", "Logs")
        return _launchd_units(program, system=system, log=os.path.join(logs, "perdure.log"))
    return _systemd_units(program, system=system)


def directory(platform: str, *, system: bool, home: str, config_home: str = "") -> str:
    """Return where the platform looks for them. `config_home` is $XDG_CONFIG_HOME; only an absolute one counts."""
    if platform == "macos":
        return "/Library/LaunchDaemons" if system else os.path.join(home, "Library", "LaunchAgents")
    if system:
        return "/etc/systemd/system"
    base = config_home if os.path.isabs(config_home) else os.path.join(home, ".config")
    return os.path.join(base, "systemd", "user")


def judge(text: str | None, wanted: str) -> FileState:
    """Say what a file is that should be `wanted`. None is a file that is not there."""
    if text is None:
        return FileState.MISSING
    if text == wanted:
        return FileState.INSTALLED
    mark = _MARK.search(text)
    if mark is None:
        return FileState.FOREIGN
    return FileState.OUTDATED if mark["sum"] == _sum(text) else FileState.EDITED


def exec_start(words: Sequence[str]) -> str:
    """Return the words as the value of `ExecStart=`: systemd then runs exactly these.

    Spaces, quotes, backslashes, `%` and `$` are all they may hold besides ordinary characters; see `Program`.
    """
    if not _PLAIN_PROGRAM.fullmatch(words[0]):
        words = (*_THROUGH_SHELL, *words)
    # The program itself is not searched for variables, so a dollar sign is doubled in its arguments only.
    return " ".join([_quoted(words[0]), *(_quoted(word.replace("$", "$$")) for word in words[1:])])


def assignment(name: str, value: str) -> str:
    """Return the value of `Environment=` that sets one variable. A dollar sign means nothing there."""
    return _quoted(f"{name}={value}")


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _systemd_units(program: Program, *, system: bool) -> tuple[UnitFile, ...]:
    everybody = ("--all-users",) if system else ()

    def command(name: str) -> str:
        lines = [f"Environment={assignment(*each)}" for each in program.environment.items()]
        return "\n".join([f"ExecStart={exec_start((*program.words, name, *everybody))}", *lines])

    restore = _RESTORE.format(
        order=_SYSTEM_ORDER if system else _USER_ORDER,
        target="multi-user.target" if system else "default.target",
        program=command("restore"),
    )
    texts = {SAVE_SERVICE: _SAVE.format(program=command("save")), SAVE_TIMER: _TIMER, RESTORE_SERVICE: restore}
    systemctl = "systemctl" if system else "systemctl --user"
    return tuple(
        UnitFile(name=name, text=_stamped(f"# {_MARKED}. To change it: {systemctl} edit {name}\n{text}"))
        for name, text in texts.items()
    )


def _launchd_units(program: Program, *, system: bool, log: str) -> tuple[UnitFile, ...]:
    everybody = ("--all-users",) if system else ()

    def job(label: str, command: str, **settings: object) -> UnitFile:
        content = {
            "Label": label,
            "ProgramArguments": [*program.words, command, *everybody],
            # What perdure starts outlives it; otherwise launchd ends all of it.
            "AbandonProcessGroup": True,
            "StandardErrorPath": log,
            **settings,
        }
        if program.environment:
            content["EnvironmentVariables"] = dict(program.environment)
        first, second, rest = plistlib.dumps(content, sort_keys=False).decode().split("\n", 2)
        text = _stamped("\n".join([first, second, f"<!-- {_MARKED} -->", rest]))
        return UnitFile(name=f"{label}.plist", text=text)

    return (
        # The first time a minute after it was loaded, when the restore has begun: launchd knows no other order.
        job(SAVE_AGENT, "save", StartInterval=60, ProcessType="Background"),
        # What runs in the panes inherits how this is treated, so not as something in the background.
        job(RESTORE_AGENT, "restore", RunAtLoad=True, ProcessType="Interactive"),
    )


_MARKED = f"Written by perdure, sum={_BLANK}"


def _stamped(text: str) -> str:
    return _MARK.sub(lambda mark: mark["before"] + _sum(text), text, count=1)


def _sum(text: str) -> str:
    blank = _MARK.sub(lambda mark: mark["before"] + _BLANK, text, count=1)
    return digest_of(blank.encode(errors="surrogatepass"), 4)
