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
UP_SERVICE, RESTORE_SERVICE = "perdure-up.service", "perdure-restore.service"
UP_AGENT, RESTORE_AGENT = "perdure.up", "perdure.restore"
#: What saved every minute in earlier versions; the daemon does that now.
SAVE_SERVICE, SAVE_TIMER, SAVE_AGENT = "perdure-save.service", "perdure-save.timer", "perdure.save"

_MARK = re.compile(r"^(?P<before>(?:# |<!-- )Written by perdure, sum=)(?P<sum>[0-9a-f]{8})", re.MULTILINE)
_BLANK = "0" * 8
#: systemd takes no quotes and no backslash in the name of a program, and reads a dollar sign in it twice, differently.
_PLAIN_PROGRAM = re.compile(r"""/[^'"\\$]*[^'"\\$/]""")
#: Runs what follows; the words are arguments and never part of the text.
_THROUGH_SHELL = ("/bin/sh", "-c", 'exec "$@"', "perdure")

_UP = """\
[Unit]
Description=Watch tmux sessions and agents, and save what changes
# A restore that is at work comes first: half a machine is not what anybody wants kept.
After=perdure-restore.service
# Never give up: what nobody watches is not saved.
StartLimitIntervalSec=0

[Service]
Type=exec
{program}
ExecReload=/bin/sh -c 'kill -HUP "$$MAINPID"'
Restart=always
RestartSec=1
# A wrong configuration, a store that cannot be used, another perdure that already watches: not gone within a second.
ExecStopPost=/bin/sh -c 'case "$$EXIT_STATUS" in 2|5|6) sleep 10 ;; esac'
# Told to end, it saves once more.
TimeoutStopSec=15
# Ends perdure alone. A tmux server it has brought back gets a scope of its own; where that cannot be done, it lives on
# in this unit, and so do all agents in it.
KillMode=process
# Memory that runs out is no reason to end what watches, nor a server that may be in here. No OOMScoreAdjust=: what is
# brought back would inherit it, and everything else on the machine be killed first.
OOMPolicy=continue
ManagedOOMPreference=avoid
TasksMax=infinity
# Complaints come on the other stream, and nothing else does.
StandardOutput=null
SyslogLevel=warning

[Install]
WantedBy={target}
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

#: That somebody else has the port is no reason to leave the panes unwatched.
_OPTIONAL = "--api-optional"

_USER_ORDER = """\
# A login does not wait for this. With linger it runs when the machine starts, before anybody can attach; without,
# beside the first login. Sessions that somebody makes meanwhile are left as they are.
# The daemon waits for it no longer than that. It ends the waiting only: the restore goes on.
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
# Nobody waits longer than that at the login, nor does the daemon. It ends the waiting only: the restore goes on.
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


def earlier_units(platform: str) -> tuple[UnitFile, ...]:
    """Return the units earlier versions wrote and this one does not, as far as their names go."""
    names = (f"{SAVE_AGENT}.plist",) if platform == "macos" else (SAVE_TIMER, SAVE_SERVICE)
    return tuple(UnitFile(name=name, text=_NO_LONGER) for name in names)


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

    def command(name: str, *options: str) -> str:
        lines = [f"Environment={assignment(*each)}" for each in program.environment.items()]
        return "\n".join([f"ExecStart={exec_start((*program.words, name, *options, *everybody))}", *lines])

    target = "multi-user.target" if system else "default.target"
    order = _SYSTEM_ORDER if system else _USER_ORDER
    texts = {
        UP_SERVICE: _UP.format(target=target, program=command("up", _OPTIONAL)),
        RESTORE_SERVICE: _RESTORE.format(order=order, target=target, program=command("restore")),
    }
    systemctl = "systemctl" if system else "systemctl --user"
    return tuple(
        UnitFile(name=name, text=_stamped(f"# {_MARKED}. To change it: {systemctl} edit {name}\n{text}"))
        for name, text in texts.items()
    )


def _launchd_units(program: Program, *, system: bool, log: str) -> tuple[UnitFile, ...]:
    everybody = ("--all-users",) if system else ()

    def job(label: str, *command: str, **settings: object) -> UnitFile:
        content = {
            "Label": label,
            "ProgramArguments": [*program.words, *command, *everybody],
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
        # launchd knows no order. Until the restore has made the first server there is nothing to save; after that, what
        # is not back yet is found in the snapshot before. Neither is to be treated as something in the background:
        # what runs in panes that are brought back inherits that.
        job(UP_AGENT, "up", _OPTIONAL, RunAtLoad=True, KeepAlive=True, ExitTimeOut=15, ProcessType="Interactive"),
        job(RESTORE_AGENT, "restore", RunAtLoad=True, ProcessType="Interactive"),
    )


_MARKED = f"Written by perdure, sum={_BLANK}"
#: What no file holds: whatever lies in the place of such a unit is from before.
_NO_LONGER = "\0"


def _stamped(text: str) -> str:
    return _MARK.sub(lambda mark: mark["before"] + _sum(text), text, count=1)


def _sum(text: str) -> str:
    blank = _MARK.sub(lambda mark: mark["before"] + _BLANK, text, count=1)
    return digest_of(blank.encode(errors="surrogatepass"), 4)
