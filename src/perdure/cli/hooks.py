"""`perdure hooks`: let agents record which conversation they are in, or let them no longer."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Callable, Sequence

from msgspec import Struct

from perdure.agents import hook_facts
from perdure.cli._setup import Setup, with_setup
from perdure.cli.render import age, print_json, print_table, printable
from perdure.errors import NotFound, PerdureError, Refused
from perdure.hooks import apply
from perdure.hooks.apply import Change, Place
from perdure.hooks.merge import State
from perdure.hooks.status import hook_places, status_of
from perdure.host.clock import now
from perdure.model.decoding import converted
from perdure.model.secrets import HIDDEN, is_secret_name, redact_text

#: Results that leave somebody something to do.
_UNDONE = ("refused", "failed", "partly")
#: A line of YAML or TOML that sets something; what is hidden already, and JSON that goes on behind it, stays.
_SETTING = re.compile(
    r"""(?P<before>\s*(?:- )?["']?(?P<name>[\w.-]+)["']?[ \t]*[:=][ \t]*)"""
    r"""(?P<value>"(?:[^"\\]|\\.)*"|'[^']*'|(?!\*\*\*)[^\s\[{"'].*)"""
)
ACTIONS = ("install", "uninstall", "status", "diff")


class Result(Struct, frozen=True, kw_only=True):
    """What became of one agent."""

    agent: str
    #: installed, removed, partly, unchanged, skipped, refused or failed
    result: str
    files: tuple[str, ...] = ()
    message: str | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", choices=ACTIONS, help="diff shows what install would change, and changes nothing")
    parser.add_argument(
        "agents", nargs="*", metavar="AGENT", help="all that have a config directory, when none is named"
    )


def _run(setup: Setup, args: argparse.Namespace) -> int:
    places = _places(setup, args.agents)
    if args.action == "status":
        return _status(places, as_json=args.json)
    if args.action == "diff":
        return _diff(places, as_json=args.json)
    if args.action == "install":
        results = [_carried_out(each, apply.install, "installed") for each in places]
    else:
        results = [_carried_out(each, apply.uninstall, "removed") for each in places]
    _report(results, as_json=args.json)
    return _exit_code(results)


run = with_setup(_run)


def _places(setup: Setup, named: Sequence[str]) -> list[Place]:
    """Return the agents that are meant. One that is named has to be there."""
    facts = hook_facts()
    for name in named:
        if name not in facts:
            raise NotFound(f"There are no hooks for {name!r}, only for {', '.join(facts)}.")
    places = hook_places(os.environ, setup.me.home, setup.state_dir, named)
    for each in places if named else ():
        if not each.is_there and not each.is_relative:
            raise NotFound(f"{each.agent} has no directory {each.home}; start it once, or set the variable it uses.")
    return places


def _relative(where: Place) -> str:
    return (
        f"{where.agent} is told to keep its files in {where.home!r}, which is another directory wherever it is started;"
        " use a path that begins with a slash."
    )


def _carried_out(where: Place, work: Callable[[Place], list[Change]], done: str) -> Result:
    if where.is_relative:
        return Result(agent=where.agent, result="refused", message=_relative(where))
    if not where.is_there:
        return Result(agent=where.agent, result="skipped", message=f"there is no {where.home}")
    try:
        states = {state for _, state in apply.states(where)}
        changes = work(where)
    except PerdureError as error:
        kind = "refused" if isinstance(error, Refused) else "failed"
        changed = converted(error.data.get("changed", ()), tuple[str, ...])
        return Result(agent=where.agent, result=kind, files=changed, message=error.message)
    files = apply.changed_in(changes)
    if lefts := apply.lefts_of(changes):
        return Result(agent=where.agent, result="partly", files=files, message=lefts)
    note = where.facts.note if changes and done == "installed" else None
    result = done if changes or states == {State.OUTDATED} else "unchanged"
    return Result(agent=where.agent, result=result, files=files, message=note or None)


def _report(results: Sequence[Result], *, as_json: bool) -> None:
    for each in results:
        if each.result in _UNDONE:
            changed = f" Changed: {', '.join(each.files)}." if each.files else ""
            print(f"perdure: {printable((each.message or '') + changed)}", file=sys.stderr)
    if as_json:
        print_json({"agents": results})
        return
    for each in results:
        if each.result not in _UNDONE:
            detail = ", ".join(each.files) or (each.message if each.result == "skipped" else "")
            print(printable(f"{each.agent}: {each.result}{f': {detail}' if detail else ''}"))
            if each.files and each.message:
                print(f"  {each.message}")
    if any(each.result == "installed" for each in results):
        print("Agents that run already are recorded when they are started the next time.")


def _exit_code(results: Sequence[Result]) -> int:
    """Return 0 when everything that is there was done; else what kept it from being done."""
    kinds = {each.result for each in results} - {"skipped"}
    if not kinds & set(_UNDONE):
        return 0
    if kinds <= {"refused"}:
        return Refused.exit_code
    return 1 if kinds <= {"refused", "failed"} else 4


def _status(places: Sequence[Place], *, as_json: bool) -> int:
    found = [status_of(each) for each in places]
    if as_json:
        print_json({"agents": found})
        return 0
    at = now()
    rows = [
        (
            each.agent,
            each.state,
            age(each.last_record, at) if each.last_record else None,
            ", ".join(file.path for file in each.files) or each.home,
        )
        for each in found
    ]
    print_table(("agent", "hooks", "last record", "file"), rows, whole=("agent", "hooks"), spare=("file",))
    return 0


def _diff(places: Sequence[Place], *, as_json: bool) -> int:
    found, results = [], []
    for each in places:
        try:
            if each.is_relative:
                raise Refused(_relative(each))
            changes = apply.plan_install(each) if each.is_there else []
        except PerdureError as error:
            print(f"perdure: {printable(error.message)}", file=sys.stderr)
            results.append(Result(agent=each.agent, result="refused", message=error.message))
            continue
        if lefts := apply.lefts_of(changes):
            print(f"perdure: {printable(lefts)}", file=sys.stderr)
        results.append(Result(agent=each.agent, result="partly" if lefts else "unchanged"))
        shown = [change for change in changes if change.before != change.after]
        found += [{"agent": each.agent, "path": change.path, "diff": _unified(change)} for change in shown]
    if as_json:
        print_json({"changes": found})
    else:
        print("".join(str(change["diff"]) for change in found), end="")
    return _exit_code(results)


def _unified(change: Change) -> str:
    old, new = (_lines(text) for text in (change.before, change.after))
    before = "/dev/null" if change.before is None else change.path
    shown = difflib.unified_diff(old, new, printable(before), printable(change.path))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in shown)


def _without_secret(line: str) -> str:
    setting = _SETTING.match(line)
    if not setting or not is_secret_name(setting["name"]):
        return line
    return f"{setting['before']}{HIDDEN}{line[setting.end() :]}"


def _lines(text: str | None) -> list[str]:
    """Return the lines as they can be shown, without secrets; a line break of another kind is part of the line."""
    pieces = [_without_secret(line) for line in redact_text(text or "").split("\n")]
    shown = [printable(piece.replace("\t", "    ")) + "\n" for piece in pieces[:-1]]
    return [*shown, printable(pieces[-1])] if pieces[-1] else shown
