"""`perdure events`: what has happened, in order, and with `--follow` what happens."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from perdure.cli._setup import Setup, with_setup
from perdure.cli.event_lines import event_line
from perdure.cli.render import print_json
from perdure.daemon.call import stream
from perdure.daemon.protocol import Events
from perdure.errors import NoDaemon
from perdure.host.clock import pause
from perdure.live.event_row import event_row
from perdure.model.event import EventKind, Lagged, StoredEvent
from perdure.model.run import number_of

#: How often the store is looked into where nobody tells.
_EVERY = 1.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--after",
        type=_number,
        metavar="SEQ",
        help="only what came behind this number (0: all that is kept; with --follow, without it: from now on)",
    )
    parser.add_argument(
        "--follow", action="store_true", help="go on with what happens; with --json, one object a line for each event"
    )
    parser.add_argument("--run", type=_run_id, metavar="ID", help="only what is about this run")
    parser.add_argument(
        "--kind",
        action="append",
        default=[],
        metavar="KIND",
        type=_kind,
        help=f"only of this kind, may be given several times: {', '.join(EventKind)}",
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is not the number of an event")
    return int(text)


def _run_id(text: str) -> str:
    if number_of(text) is None:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not the id of a run, such as r7")
    return text


def _kind(text: str) -> EventKind:
    try:
        return EventKind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"there is no kind {text[:40]!r}; there are {', '.join(EventKind)}") from None


def _run(setup: Setup, args: argparse.Namespace) -> int:
    asked = Events(after=args.after or 0, follow=args.follow, run=args.run, kinds=tuple(args.kind))
    if args.follow:
        if args.after is None:
            asked = _behind(asked, setup.readable.last_event())
        for event in _followed(setup, asked):
            _print(event, as_json=args.json)
    elif args.json:
        found = [event_row(event) for event in _stored(setup, asked)]
        print_json({"events": found, "last": setup.readable.last_event()})
    else:
        is_any = False
        for event in _stored(setup, asked):
            is_any = True
            print(event_line(event))
        if not is_any:
            print("Nothing like that has happened yet. `perdure up` watches, and writes down what happens.")
    return 0


run = with_setup(_run)


def _print(event: StoredEvent, *, as_json: bool) -> None:
    if as_json:
        print_json(event_row(event))
    else:
        print(event_line(event), flush=True)


def _stored(setup: Setup, asked: Events) -> Iterator[StoredEvent]:
    """Yield what the store has. It is read without the daemon: it knows no less."""
    while page := setup.readable.read_events(after=asked.after, limit=asked.limit, run=asked.run, kinds=asked.kinds):
        yield from page
        asked = _behind(asked, page[-1].seq)


def _followed(setup: Setup, asked: Events) -> Iterator[StoredEvent]:
    """Yield everything behind a number, for ever: as the daemon tells it, and whenever there is none, as the store has it."""
    is_said = False
    while True:
        try:
            for event in stream(setup.state_dir, asked):
                is_said = False
                if isinstance(event, Lagged):
                    break  # and go on behind what came last
                yield event
                asked = _behind(asked, event.seq)
        except NoDaemon:
            if not is_said:
                sentence = "No daemon is at work; the store is looked into once a second."
                print(f"perdure: {sentence}", file=sys.stderr, flush=True)
                is_said = True
            for event in _stored(setup, asked):
                yield event
                asked = _behind(asked, event.seq)
            pause(_EVERY)


def _behind(asked: Events, seq: int) -> Events:
    # What could not be stored has no number.
    after = max(asked.after, seq)
    return Events(after=after, follow=asked.follow, run=asked.run, kinds=asked.kinds)
