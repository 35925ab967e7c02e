"""`perdure save`: keep the state of every server now."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from perdure.cli._setup import Setup, add_server_arguments, with_setup

if TYPE_CHECKING:
    from datetime import datetime

    from perdure.model.snapshot import Missed
    from perdure.snapshots.look import Looked
    from perdure.snapshots.save import SaveResult


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_server_arguments(parser)
    parser.add_argument(
        "--no-scrollback", action="store_true", help="do not read what the panes show; what is kept of it stays"
    )


def _run(setup: Setup, args: argparse.Namespace) -> int:
    questions = setup.ask(args)
    # Only now the rest of the program: it loads while tmux answers.
    from perdure.cli import render
    from perdure.host.clock import now

    at = now()
    _warm_up(setup)
    looked = setup.look(questions, at, scrollback=not args.no_scrollback)
    results = keep(setup, looked, at)
    if args.json:
        render.print_json({"servers": results})
    for each in results:
        if each.result == "failed":
            print(f"perdure: {_sentence(each)}", file=sys.stderr)
        elif not args.json:
            print(_sentence(each))
    return exit_code(results, one_socket=args.socket is not None)


run = with_setup(_run)


def _warm_up(setup: Setup) -> None:
    """Open the store while tmux is still at work. What is wrong with it is said when something is to be saved."""
    from perdure.errors import StoreUnusable

    try:
        setup.store  # noqa: B018
    except StoreUnusable:
        return


def _complain(sentence: str) -> None:
    print(f"perdure: {sentence}", file=sys.stderr)


def keep(
    setup: Setup,
    looked: Sequence[Looked | Missed],
    at: datetime,
    *,
    exports: bool = True,
    say: Callable[[str], None] = _complain,
) -> list[SaveResult]:
    """Save what was looked at. What the store cannot take, the manifests still do, and its result says so."""
    from perdure.errors import StoreUnusable
    from perdure.host import spool
    from perdure.snapshots.save import prune, save, unsaved

    try:
        results = save(looked, setup.store)
    except StoreUnusable as error:
        results = unsaved(looked, error)
    if any(each.reason == "store" for each in results):
        _keep_manifests(setup, looked, results, say)
        return results
    spool.prune(spool.spool_dir(setup.state_dir), at)
    try:
        prune(setup.store, setup.config, at)
    except StoreUnusable as error:
        say(f"saved, but older snapshots could not be let go of: {error.message}")
    if exports and setup.config.export.on_save:
        from perdure.cli.export import export_all

        export_all(setup, looked)
    return results


def _keep_manifests(
    setup: Setup, looked: Sequence[Looked | Missed], results: Sequence[SaveResult], say: Callable[[str], None]
) -> None:
    """Write the captures down beside the database, so that one that is broken does not cost them."""
    from perdure.errors import StoreUnusable
    from perdure.snapshots.look import Looked
    from perdure.store.manifest import write_manifest

    for each, result in zip(looked, results, strict=True):
        if isinstance(each, Looked) and result.reason == "store":
            try:
                write_manifest(setup.state_dir, each.capture, each.scrollback)
            except (OSError, StoreUnusable) as error:
                say(f"the manifest could not be written either: {str(error).rstrip('.')}.")
            else:
                say("kept in the manifest; the next save that can takes it into the store.")


def exit_code(results: Sequence[SaveResult], *, one_socket: bool) -> int:
    """Return 0 when every server that runs was saved, else what went wrong."""
    reasons = {each.reason for each in results if each.result == "failed"}
    if "store" in reasons:
        return 5
    if one_socket and "refused" in reasons:
        return 6
    return 4 if reasons else 0


def _sentence(each: SaveResult) -> str:
    from perdure.cli.render import counted, printable

    places = f"{counted(each.windows, 'window')} of {counted(each.sessions, 'session')}"
    counts = f"{counted(each.panes, 'pane')} in {places}, {counted(each.agents, 'agent')}"
    where = printable(f"{each.user} {each.socket}")
    if each.result in ("saved", "unchanged"):
        return f"{where}: {each.result} {each.snapshot} ({counts})"
    last = f"; the last good snapshot {each.snapshot} stands ({counts})" if each.snapshot else ""
    return f"{where}: {each.result}: {printable((each.message or '').rstrip('.'))}{last}"
