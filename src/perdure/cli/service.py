"""`perdure service`: watch and save from login or boot on, and bring everything back, by systemd or launchd."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from msgspec import Struct

import perdure
from perdure.cli.daemon_status import DaemonStatus, daemon_status
from perdure.cli.render import age, print_json, print_table, printable
from perdure.errors import NotFound, Refused, UsageError
from perdure.host import service, units
from perdure.host.clock import now
from perdure.host.places import state_dir
from perdure.host.service import Found
from perdure.host.service_manager import Manager, Standing, linger, manager, run_program
from perdure.host.unit_program import Program, program
from perdure.host.units import FileState, UnitFile
from perdure.host.users import current_user
from perdure.model.user import User
from perdure.store.files import write_atomically

ACTIONS = ("install", "uninstall", "status")
#: Done in part.
_PARTLY = 4
_OURS = (FileState.INSTALLED, FileState.OUTDATED)


class Unit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One unit, as `--json` shows it."""

    name: str
    path: str
    #: written, unchanged, removed or left; of `status` and `--print`: what lies there.
    state: str
    text: str | None = None


class Answer(Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    platform: str
    system: bool
    units: Sequence[object]
    #: Whether the user's units run without a login; None where that is no question, or nobody can tell.
    linger: bool | None
    #: What could not be done, with the line that does it later.
    problem: str | None = None


class StatusAnswer(Answer, frozen=True, kw_only=True):
    """What `status --json` prints."""

    #: What the daemon says of itself, whoever started it; None when there is none.
    daemon: DaemonStatus | None


class Scene:
    """Which units are meant, and where they go."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.platform: str = args.platform or ("macos" if sys.platform == "darwin" else "linux")
        self.system: bool = args.system
        self.me: User = current_user()
        config_home = os.environ.get("XDG_CONFIG_HOME", "")
        home = self.me.home
        self.directory = units.directory(self.platform, system=self.system, home=home, config_home=config_home)

    def units(self) -> tuple[UnitFile, ...]:
        """Return the units as they are to be."""
        tmux = shutil.which("tmux")
        what = program(sys.argv[0], sys.executable, os.environ, platform=self.platform, tmux=tmux)
        return units.units(self.platform, what, system=self.system, home=self.me.home)

    def names(self) -> tuple[UnitFile, ...]:
        """Return the units, as far as their names go: for when it matters little, or cannot be said, what they hold."""
        return units.units(self.platform, Program(words=("perdure",), environment={}), system=self.system, home="/")

    def earlier(self) -> tuple[UnitFile, ...]:
        """Return the units of earlier versions."""
        return units.earlier_units(self.platform)

    def manager(self) -> Manager:
        """Return what runs them."""
        return manager(self.platform, system=self.system, directory=self.directory, run=run_program)

    def linger(self) -> bool | None:
        """Say whether this user's units run without a login."""
        return None if self.system or self.platform != "linux" else linger(self.me.name, run_program)

    def answer(self, shown: Sequence[object], *, linger: bool | None, problem: str | None = None) -> Answer:
        """Return what `--json` prints."""
        return Answer(platform=self.platform, system=self.system, units=shown, linger=linger, problem=problem)

    def refuse_what_is_not_ours(self) -> None:
        """Raise Refused when this is for somebody else to do."""
        if not self.system:
            service.refuse_other_home(self.directory)
        elif self.me.uid != 0:
            raise Refused("--system is for root: its units run for every user of the machine.")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", choices=ACTIONS, help="status says how the units stand, and changes nothing")
    parser.add_argument("--system", action="store_true", help="for every user of the machine, from boot on (root)")
    parser.add_argument("--print", action="store_true", help="with install: print the files and change nothing")
    parser.add_argument("--platform", choices=units.PLATFORMS, help="with --print: of this one instead of ours")


def run(args: argparse.Namespace) -> int:
    """Do it and return the exit code."""
    if args.print and args.action != "install":
        raise UsageError("--print shows what install would write and goes with nothing else.")
    if args.platform and not args.print:
        raise UsageError("--platform goes with --print: units of another platform cannot be used here.")
    scene = Scene(args)
    if args.print:
        return _print(scene, as_json=args.json)
    if args.action == "status":
        return _status(scene, as_json=args.json)
    scene.refuse_what_is_not_ours()
    return (_install if args.action == "install" else _uninstall)(scene, as_json=args.json)


def _print(scene: Scene, *, as_json: bool) -> int:
    found = service.look(scene.units(), scene.directory)
    if as_json:
        shown = [Unit(name=each.unit.name, path=each.path, state=each.state, text=each.unit.text) for each in found]
        print_json(scene.answer(shown, linger=scene.linger()))
        return 0
    for each in found:
        comment = ("<!-- ", " -->") if scene.platform == "macos" else ("# ", "")
        print(f"{comment[0]}{printable(each.path)}{comment[1]}\n{each.unit.text}")
    return 0


def _install(scene: Scene, *, as_json: bool) -> int:
    if scene.system:
        service.refuse_what_others_can_change((sys.argv[0], sys.executable, perdure.__file__))
    found = service.install(scene.units(), scene.directory, partial(write_atomically, mode=0o644))
    changed = [each.unit.name for each in found if each.state is not FileState.INSTALLED]
    acting = scene.manager()
    problem = acting.start(changed)
    before: list[Found] = []
    if problem is None:
        # Only now that something else saves.
        before, problem = _take_out_earlier(scene, acting)
    lingers = scene.linger()
    shown = [*_shown(found, {FileState.INSTALLED: "unchanged"}, "written"), *_shown(before, {}, "removed")]
    _report(scene.answer(shown, linger=lingers, problem=problem), as_json=as_json)
    if not as_json:
        for hint in _hints(scene, lingers):
            print(hint)
    return _PARTLY if problem else 0


def _take_out_earlier(scene: Scene, acting: Manager) -> tuple[list[Found], str | None]:
    """Remove the units of earlier versions; return those that were, and the sentence for what is left of them."""
    found = service.look(scene.earlier(), scene.directory)
    ours = [each for each in found if each.state in _OURS]
    problem = None
    if ours:
        problem = acting.stop([each.unit.name for each in ours])
        service.remove(ours)
        problem = problem or acting.forget()
    edited = ", ".join(each.path for each in found if each.state is FileState.EDITED)
    if edited and not problem:
        problem = (
            f"Of an earlier version, edited and left as it is: {edited}; it saves beside the daemon until deleted."
        )
    return ours, problem


def _hints(scene: Scene, lingers: bool | None) -> list[str]:
    said = []
    if lingers is False:
        said.append(
            "Linger is off: these units start with your first login and stop, with what they brought back, after your"
            f" last logout. To have them from boot on: loginctl enable-linger {printable(scene.me.name)}"
        )
    if scene.platform == "linux":
        said.append(
            "A tmux server that you start yourself is in a unit of its own. If an agent killed for want of memory"
            " takes it along, that unit needs OOMPolicy=continue as well: see docs/service.md."
        )
    return said


def _uninstall(scene: Scene, *, as_json: bool) -> int:
    found = service.look((*scene.names(), *scene.earlier()), scene.directory)
    ours = [each for each in found if each.state in _OURS]
    left = [each for each in found if each.state not in (*_OURS, FileState.MISSING)]
    problem = None
    if ours:
        acting = scene.manager()
        problem = acting.stop([each.unit.name for each in ours])
        service.remove(ours)
        problem = problem or acting.forget()
    if left:
        named = ", ".join(each.path for each in left)
        problem = " ".join(filter(None, [problem, f"Not as perdure wrote it, and left as it is: {named}."]))
    there = [each for each in found if each.state is not FileState.MISSING]
    shown = _shown(there, dict.fromkeys((FileState.FOREIGN, FileState.EDITED), "left"), "removed")
    _report(scene.answer(shown, linger=scene.linger(), problem=problem), as_json=as_json)
    if not there and not as_json:
        print(f"There is nothing of perdure's in {printable(scene.directory)}.")
    if left and not ours:
        return Refused.exit_code
    return _PARTLY if problem else 0


def _shown(found: Sequence[Found], words: Mapping[FileState, str], otherwise: str) -> list[Unit]:
    return [Unit(name=each.unit.name, path=each.path, state=words.get(each.state, otherwise)) for each in found]


def _report(answer: Answer, *, as_json: bool) -> None:
    if answer.problem:
        print(f"perdure: {printable(answer.problem)}", file=sys.stderr)
    if as_json:
        print_json(answer)
        return
    for each in answer.units:
        if isinstance(each, Unit):
            print(printable(f"{each.name}: {each.state}: {each.path}"))


class UnitStatus(Struct, frozen=True, kw_only=True):
    """How one unit stands."""

    name: str
    path: str
    state: FileState
    enabled: bool | None
    active: bool | None
    result: str | None
    last_run: datetime | None


def _status(scene: Scene, *, as_json: bool) -> int:
    try:
        wanted = scene.units()
    except Refused:
        wanted = scene.names()  # nothing would be written, so whatever there is is something else
    found = service.look(wanted, scene.directory)
    at = now()
    is_there = any(each.state is not FileState.MISSING for each in found)
    standings = scene.manager().standings(at) if is_there else {}
    rows = [_status_of(each, standings.get(each.unit.name, Standing())) for each in found]
    lingers = scene.linger()
    problem = _missing(rows) or _left_over(scene)
    daemon = daemon_status(state_dir(os.environ, scene.me.home))
    if as_json:
        print_json(
            StatusAnswer(
                platform=scene.platform,
                system=scene.system,
                units=rows,
                linger=lingers,
                problem=problem,
                daemon=daemon,
            )
        )
    else:
        _print_status(rows, at)
        print(f"daemon: {daemon.sentence(at) if daemon else 'nobody watches'}")
        if lingers is not None:
            print(f"linger: {'on' if lingers else 'off'}")
    if problem:
        print(f"perdure: {problem}", file=sys.stderr)
    if not problem:
        return 0
    return NotFound.exit_code if all(row.state is FileState.MISSING for row in rows) else _PARTLY


def _left_over(scene: Scene) -> str | None:
    """Return the sentence when units of an earlier version still save."""
    found = service.look(scene.earlier(), scene.directory)
    names = ", ".join(each.unit.name for each in found if each.state in (*_OURS, FileState.EDITED))
    return f"Of an earlier version, {names} is still there; `perdure service install` takes it out." if names else None


def _missing(rows: Sequence[UnitStatus]) -> str | None:
    """Return the sentence when something is not installed."""
    missing = [row.name for row in rows if row.state in (FileState.MISSING, FileState.FOREIGN)]
    if not missing:
        return None
    what = "The units are" if len(missing) == len(rows) else f"Of the units, {', '.join(missing)} is"
    return f"{what} not installed; `perdure service install` does that."


def _status_of(found: Found, standing: Standing) -> UnitStatus:
    return UnitStatus(
        name=found.unit.name,
        path=found.path,
        state=found.state,
        enabled=standing.enabled,
        active=standing.active,
        result=standing.result,
        last_run=standing.last_run,
    )


def _print_status(rows: Sequence[UnitStatus], at: datetime) -> None:
    def said(value: bool | None) -> str:
        return "unknown" if value is None else "yes" if value else "no"

    cells = [
        (
            row.name,
            row.state,
            said(row.enabled),
            said(row.active),
            f"{age(row.last_run, at)}, {row.result}" if row.last_run else None,
            row.path,
        )
        for row in rows
    ]
    columns = ("unit", "file", "enabled", "active", "started", "path")
    print_table(columns, cells, whole=("unit", "file"), spare=("path",))
