"""`perdure send TARGET TEXT`: tell an agent something, and find out whether it heard."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import msgspec

from perdure.agents import roster
from perdure.cli._setup import Setup, add_server_arguments, with_setup
from perdure.cli.aim import Aim, aim, look_around, recipient, view_of
from perdure.cli.find import place_of
from perdure.cli.render import print_json, printable
from perdure.daemon import protocol
from perdure.daemon.call import call
from perdure.errors import PerdureError, UsageError
from perdure.host.clock import now, pause
from perdure.live.alone import alone
from perdure.live.deliver import Delivery, Result, deliver
from perdure.live.typed import LONGEST, Message, message
from perdure.model.masked import without_keys
from perdure.model.text import decode

#: What comes behind `--` is text, whatever it looks like.
REST = True

EXIT_CODES = {Result.DELIVERED: 0, Result.UNCONFIRMED: 4, Result.REFUSED: 6}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = (
        "perdure send TARGET [TEXT] [--no-enter] [--key KEY …] [--conversation ID] [--timeout S] [--anyway] [-- TEXT]"
    )
    parser.add_argument("target", metavar="TARGET", help="a pane's id, SESSION[:WINDOW[.PANE]] or a run's id")
    parser.add_argument("text", nargs="?", metavar="TEXT", help="what to say; '-' reads standard input")
    add_server_arguments(parser)
    parser.add_argument("--no-enter", action="store_true", help="leave the text in the input")
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="KEY",
        help="press this key behind the text, in place of Enter (Enter, Escape, Up, C-c, y …)",
    )
    parser.add_argument("--conversation", metavar="ID", help="only if it is in this conversation still")
    parser.add_argument(
        "--timeout", type=seconds, default=10.0, metavar="S", help="how long to wait for a sign that it was heard (10)"
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="send it even where it would answer a question, be a shell's command, or join what is begun there",
    )


def seconds(text: str) -> float:
    """Take an argument for a span of time."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 86400:
        raise argparse.ArgumentTypeError("must be a number of seconds from 0 to 86400")
    return value


def _run(setup: Setup, args: argparse.Namespace) -> int:
    told = _message(args)
    there, missed = look_around(setup, args)
    aimed = aim(setup, args.target, there, missed)
    to = recipient(setup, aimed, args.conversation)
    at = now()
    with alone(setup.state_dir, to.spot, args.timeout):
        delivery = deliver(
            told,
            to,
            known=roster(setup.config.agents),
            view=view_of(setup, aimed.capture.server),
            now=now,
            pause=pause,
            timeout=args.timeout,
        )
    _let_the_daemon_know(setup, aimed, delivery, at, typed=bool(told.text) and told.enter)
    tell(aimed, delivery, as_json=args.json)
    return EXIT_CODES[delivery.result]


run = with_setup(_run)


def _let_the_daemon_know(setup: Setup, aimed: Aim, delivery: Delivery, at: datetime, *, typed: bool) -> None:
    """Say that something was typed: what is typed is also seen, and the run is at work from now on."""
    if delivery.result is Result.REFUSED:
        return
    if not typed:
        return  # a key may do nothing at all
    request = protocol.MarkTold(
        socket=aimed.capture.server.socket, pane=aimed.pane.id, result=delivery.result.value, at=at
    )
    with suppress(PerdureError):  # it is noticed a little later then
        call(setup.state_dir, request, 5.0)


def _message(args: argparse.Namespace) -> Message:
    rest = args.rest or []
    given = [*([args.text] if args.text is not None else []), *rest]
    if len(given) > 1:
        raise UsageError("Several texts were given; put what belongs together into quotes.")
    text = given[0] if given else ""
    if text == "-" and not rest:
        text = decode(sys.stdin.buffer.read(LONGEST + 1))
    if args.no_enter and args.key:
        raise UsageError("--key presses keys in place of Enter: --no-enter says nothing besides.")
    return message(text, args.key, enter=not args.no_enter, anyway=args.anyway)


def tell(aimed: Aim, delivery: Delivery, *, as_json: bool) -> None:
    """Print what came of it."""
    capture, pane = aimed.capture, aimed.pane
    shown = tuple(without_keys(delivery.screen, pane.width))
    if as_json:
        facts = {"socket": capture.server.socket, "pane": pane.id, "target": place_of(capture.topology, pane)}
        run = {"run": aimed.run.id} if aimed.run is not None else {}
        print_json({**msgspec.to_builtins(msgspec.structs.replace(delivery, screen=shown)), **facts, **run})
        return
    sentence = f"{pane.id} ({place_of(capture.topology, pane)}): {delivery.result}: {delivery.why}."
    print_outcome(sentence, shown, is_good=delivery.result is Result.DELIVERED)


def print_outcome(sentence: str, shown: Sequence[str], *, is_good: bool) -> None:
    """Print how something ended; what did not end well goes to stderr, with what the pane showed last."""
    stream = sys.stdout if is_good else sys.stderr
    print(f"{'' if is_good else 'perdure: '}{printable(sentence)}", file=stream)
    for line in shown:
        print(f"  {printable(line)}", file=stream)
