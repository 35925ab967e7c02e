"""`perdure export`: the files earlier scripts wrote and others still read, from what is known for certain."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from perdure.cli._setup import Setup, path_argument, with_setup
from perdure.errors import NotFound, PerdureError, Refused, StoreUnusable, UsageError

if TYPE_CHECKING:
    from perdure.model.snapshot import Missed, Snapshot
    from perdure.snapshots.look import Looked

TMUX_STATE, TMUX_PERSIST = "tmux-state", "tmux-persist"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("format", choices=(TMUX_STATE, TMUX_PERSIST))
    parser.add_argument(
        "--to", action="extend", nargs="+", type=path_argument, metavar="PATH", help="tmux-state: where to"
    )
    parser.add_argument(
        "--dir", metavar="DIR", type=path_argument, help="tmux-persist: the directory of the <user>.tsv files"
    )
    parser.add_argument(
        "--socket", metavar="PATH", type=path_argument, help="the server on this socket instead of the default one"
    )
    parser.add_argument("--all-users", action="store_true", help="tmux-persist: every user's, as root")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    """Save first: an export is as fresh as the scripts that read it expect, and never of an empty capture."""
    _check(args)
    questions = setup.ask(args)
    from perdure.cli.render import print_json
    from perdure.cli.save import exit_code, keep
    from perdure.host.clock import now

    at = now()
    looked = setup.look(questions, at)
    results = keep(setup, looked, at, exports=False)
    code = exit_code(results, one_socket=args.socket is not None)
    if code in (5, 6):
        message = next(each.message for each in results if each.result == "failed")
        raise (StoreUnusable if code == 5 else Refused)(message)
    for each in results:
        if each.result == "failed":
            print(f"perdure: {each.message}", file=sys.stderr)
    written, failed = _export(setup, args, _last_good(setup, looked))
    if failed and not written:
        raise failed[0]
    for error in failed:
        print(f"perdure: {error.message}", file=sys.stderr)
    if args.json:
        print_json({"written": written, "failed": [error.message for error in failed]})
    else:
        print("\n".join(f"wrote {path}" for path in written))
    return 4 if failed else code


run = with_setup(_run)


def _check(args: argparse.Namespace) -> None:
    if args.format == TMUX_STATE and (args.dir or args.all_users):
        raise UsageError("--dir and --all-users belong to tmux-persist; tmux-state takes --to.")
    if args.format == TMUX_PERSIST and args.to:
        raise UsageError("--to belongs to tmux-state; tmux-persist takes --dir.")
    if args.socket and args.all_users:
        raise UsageError("--socket and --all-users exclude each other.")


def _export(
    setup: Setup, args: argparse.Namespace, snapshots: Sequence[Snapshot]
) -> tuple[list[str], list[PerdureError]]:
    """Write what is asked for; return the files written, and what became of the others. One costs only itself."""
    from perdure.compat.files import default_tmux_state_paths, write_tmux_state

    if not snapshots:
        raise NotFound("Nothing is saved yet, so there is nothing to export; start tmux first.")
    work: dict[str, Callable[[], object]] = {}
    if args.format == TMUX_PERSIST:
        directory = args.dir or setup.config.export.tmux_persist_dir
        for each in _one_per_user(snapshots):
            work[os.path.join(directory, f"{each.server.user}.tsv")] = partial(_write_tsv, each, directory)
    else:
        snapshot, host = _main_server(snapshots), os.uname().nodename
        for path in args.to or setup.config.export.tmux_state or default_tmux_state_paths(setup.me.home):
            work[path] = partial(write_tmux_state, snapshot, path, hostname=host)
    written, failed = [], []
    for path, write in work.items():
        try:
            write()
            written.append(path)
        except PerdureError as error:
            failed.append(error)
    return written, failed


def _write_tsv(snapshot: Snapshot, directory: str) -> None:
    from perdure.compat.files import write_tmux_persist

    for warning in write_tmux_persist(snapshot, directory):
        print(f"perdure: {warning}", file=sys.stderr)


def export_all(setup: Setup, looked: Sequence[Looked | Missed]) -> None:
    """Write both formats, as the configuration asks for on every save; a file that fails costs only itself."""
    snapshots = _last_good(setup, looked)
    for format in (TMUX_STATE, TMUX_PERSIST):
        mine = [each for each in snapshots if format == TMUX_PERSIST or each.server.uid == setup.me.uid]
        if mine:
            _, failed = _export(setup, argparse.Namespace(format=format, to=None, dir=None), mine)
            for error in failed:
                print(f"perdure: {error.message}", file=sys.stderr)


def _last_good(setup: Setup, looked: Sequence[Looked | Missed]) -> list[Snapshot]:
    from perdure.model.snapshot import Missed

    servers = [each.server if isinstance(each, Missed) else each.capture.server for each in looked]
    found = (setup.store.latest_snapshot(server) for server in servers)
    return [snapshot for snapshot in found if snapshot is not None]


def _main_server(snapshots: Sequence[Snapshot]) -> Snapshot:
    """The format knows one server only: the default one, else the one seen last."""
    default = [each for each in snapshots if os.path.basename(each.server.socket) == "default"]
    return max(default or snapshots, key=lambda each: each.last_seen_at)


def _one_per_user(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """The format has one file a user, and so one server: the sessions of others are left out, and that is said."""
    users: dict[str, list[Snapshot]] = {}
    for each in snapshots:
        users.setdefault(each.server.user, []).append(each)
    chosen = [_main_server(theirs) for theirs in users.values()]
    for each in snapshots:
        if each not in chosen:
            where = f"{each.server.user}'s server on {each.server.socket}"
            print(f"perdure: {where} is left out: this format has room for one.", file=sys.stderr)
    return chosen
