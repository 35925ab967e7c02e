"""`perdure check [--repair]`: read everything back and say what is wrong."""

from __future__ import annotations

import argparse
import os

from perdure.cli._setup import Setup, with_setup
from perdure.cli.render import print_json, printable
from perdure.errors import StoreDamaged
from perdure.host import places
from perdure.host.clock import now
from perdure.model.snapshot import Problem


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--repair", action="store_true", help="set damaged parts aside and rebuild from the manifests")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    url = places.store_url(os.environ, setup.state_dir)
    actions: tuple[str, ...] = ()
    if args.repair:
        from perdure.store.repair import repair

        actions = repair(url, setup.state_dir, now())
    problems = _problems(setup, repaired=args.repair)
    if args.json:
        print_json({"ok": not problems, "problems": problems, "repaired": actions})
    else:
        for line in (*actions, *(f"{each.where}: {each.what}" for each in problems)):
            print(printable(line))
        if not problems:
            print("Everything reads back.")
        elif any(each.repairable for each in problems):
            print("`perdure check --repair` mends what can be mended and deletes nothing.")
    return _exit_code(problems)


run = with_setup(_run)


def _problems(setup: Setup, *, repaired: bool) -> tuple[Problem, ...]:
    try:
        return (setup.store if repaired else setup.readable).check()
    except StoreDamaged as error:
        return (Problem(where="database", what=error.message, repairable=True),)


def _exit_code(problems: tuple[Problem, ...]) -> int:
    if not problems:
        return 0
    return 5 if any(each.where == "database" for each in problems) else 4
