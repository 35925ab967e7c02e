"""`perdure chats mirror`: bring the files of earlier programs up to date with the chats."""

from __future__ import annotations

import argparse
import sys

from perdure.chats.mirror import Mirror, Mirrored, mirror_in
from perdure.cli._setup import Setup, path_argument, with_setup
from perdure.cli.render import counted, print_json, printable
from perdure.errors import PerdureError, UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--to", metavar="DIR", type=path_argument, help="the directory, instead of legacy_dir of [chats]"
    )


def _run(setup: Setup, args: argparse.Namespace) -> int:
    directory = args.to or setup.config.chats.legacy_dir
    if not directory:
        raise UsageError("Nothing says where to: set legacy_dir under [chats], or give --to DIR.")
    done = _mirror(setup, directory).catch_up(everything=True)
    if args.json:
        print_json(
            {
                "directory": directory,
                "written": done.written,
                "removed": done.removed,
                "orphaned": done.orphaned,
                "failed": done.failures,
            }
        )
    else:
        removed = f", removed {len(done.removed)}" if done.removed else ""
        print(f"wrote {counted(len(done.written), 'chat')}{removed} in {directory}")
        for id in done.orphaned:
            what = f"{id} is not there, and nobody is known to have deleted it: its file may be all that is left, and stays."
            print(f"perdure: {printable(what)}", file=sys.stderr)
        _say_failures(done)
    return 4 if done.failures else 0


run = with_setup(_run)


def follow_in_mirror(setup: Setup, *, everything: bool = False) -> None:
    """Bring the configured mirror up to date, if there is one, behind a verb that has changed chats.

    The verb is done by then, whatever becomes of this: it is only said.
    """
    directory = setup.config.chats.legacy_dir
    if not directory:
        return
    try:
        _say_failures(_mirror(setup, directory).catch_up(everything=everything))
    except PerdureError as error:
        print(f"perdure: The mirror is not up to date. {printable(error.message)}", file=sys.stderr)


def _mirror(setup: Setup, directory: str) -> Mirror:
    return mirror_in(directory, setup.readable.chats, setup.config.chats.keys, state_dir=setup.state_dir)


def _say_failures(done: Mirrored) -> None:
    for sentence in done.failures:
        print(f"perdure: {printable(sentence)}", file=sys.stderr)
