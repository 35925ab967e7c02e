"""`perdure new [NAME]`: a session with an agent in it that is ready, or the reason why it is not."""

from __future__ import annotations

import argparse
import os

import msgspec

from perdure.agents import roster
from perdure.cli._setup import Setup, path_argument, with_setup
from perdure.cli.render import print_json
from perdure.cli.send import print_outcome, seconds
from perdure.errors import UsageError
from perdure.host.clock import now, pause
from perdure.host.directories import is_directory
from perdure.live.launch import Launched, Readiness, agent_called, launch, request
from perdure.model.masked import without_keys
from perdure.model.text import decode
from perdure.tmux.sockets import canonical, socket_dir

#: What comes behind `--` is the command, word for word.
REST = True

EXIT_CODES = {Readiness.READY: 0, Readiness.ATTENTION: 4, Readiness.NOT_READY: 4, Readiness.ENDED: 1}
#: How wide a pane is that nobody looks at, as far as keys on its screen go.
_WIDTH = 80


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "perdure new [NAME] [--cwd DIR] [--agent A] [--prompt TEXT] [--timeout S] [-- ARGV…]"
    parser.add_argument("name", nargs="?", metavar="NAME", help="the session's name; the next number without")
    parser.add_argument("--cwd", metavar="DIR", type=path_argument, help="where it starts; here without")
    parser.add_argument("--agent", metavar="A", help="start this agent, or say which one ARGV is")
    parser.add_argument("--prompt", metavar="TEXT", default="", help="what it is asked for first")
    parser.add_argument("--socket", metavar="PATH", type=path_argument, help="on the server of this socket")
    parser.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="S", help="how long it may take to be ready (60)"
    )


def _run(setup: Setup, args: argparse.Namespace) -> int:
    known = roster(setup.config.agents)
    argv = tuple(decode(os.fsencode(word)) for word in args.rest or ())
    if args.rest is not None and not argv:
        raise UsageError("Nothing stands behind --, where the command goes.")
    cwd = os.path.abspath(args.cwd or os.getcwd())
    if not is_directory(cwd):
        raise UsageError(f"{cwd} is no directory that can be entered.")
    asked = request(
        args.name,
        decode(os.fsencode(cwd)),
        agent=agent_called(args.agent, known),
        argv=argv,
        prompt=decode(os.fsencode(args.prompt)),
    )
    socket = canonical(args.socket or os.path.join(socket_dir(os.environ, setup.me.uid), "default"))
    if args.socket is not None and not is_directory(os.path.dirname(socket)):
        # tmux's own is made where it is missing. Any other that is may be a slip, and nobody would look there again.
        raise UsageError(f"{os.path.dirname(socket)} is no directory that a socket can be made in.")
    launched = launch(
        asked,
        socket=socket,
        owner=setup.me,
        known=known,
        view=setup.surroundings().view_of(setup.me),
        environ=setup.environ_of(setup.me),
        inherits=True,
        now=now,
        pause=pause,
        timeout=args.timeout,
        patience=setup.config.tmux.timeout_seconds,
    )
    _tell(launched, socket, as_json=args.json)
    return EXIT_CODES[launched.result]


run = with_setup(_run)


def _tell(launched: Launched, socket: str, *, as_json: bool) -> None:
    shown = tuple(without_keys(launched.screen, _WIDTH))
    if as_json:
        print_json({**msgspec.to_builtins(msgspec.structs.replace(launched, screen=shown)), "socket": socket})
        return
    # The state says what it wants somebody for.
    result = launched.state if launched.result is Readiness.ATTENTION else launched.result
    after = "; its session was ended again" if launched.gone else ""
    sentence = f"{launched.name} ({launched.pane}): {result}: {launched.why}{after}."
    print_outcome(sentence, shown, is_good=launched.result is Readiness.READY)
