"""Where `perdure` begins: find the command, run it, turn failures into sentences and exit codes.

Only the module of the command at hand is imported, and nothing heavy before it asks for it: `perdure save` runs
from cron and hooks, and its start-up is most of what it costs.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from perdure import __version__
from perdure.errors import PerdureError, UsageError, failure_of

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

#: Every command: its module and what it is for.
COMMANDS = {
    "save": ("save", "keep the state of every tmux server now"),
    "restore": ("restore", "bring back what was there, and prove it"),
    "up": ("up", "watch every pane, save what changes, tell who needs somebody"),
    "open": ("open", "open the dashboard, logged in"),
    "new": ("new", "start an agent in a session of its own, and say when it is ready"),
    "send": ("send", "tell an agent something, and find out whether it heard"),
    "kill": ("kill", "end a pane or a session, kept first so that it can be brought back"),
    "follow": ("follow", "follow a run again that was let go of"),
    "wait": ("wait", "return once a run is in a state"),
    "seen": ("seen", "say that you have seen how a run stands"),
    "events": ("events", "show what has happened, and follow what happens"),
    "ls": ("ls", "show every pane, the agent in it, its conversation and what it is doing"),
    "history": ("history", "list the snapshots that are kept"),
    "show": ("show", "show one snapshot"),
    "diff": ("diff", "show what differs between two snapshots, or one and now"),
    "explain": ("explain", "show why a pane is taken for what it is"),
    "chats": ("chats", "look at a gateway's chats, name them, go on with them, let go of them"),
    "jobs": ("jobs", "start commands that go on when you are gone, and ask for them later"),
    "hooks": ("hooks", "let agents record which conversation they are in"),
    "service": ("service", "watch from boot on, and bring everything back then"),
    "token": ("token", "let programs ask the daemon over HTTP, and end that"),
    "check": ("check", "read everything back and say what is wrong"),
    "export": ("export", "write the formats of earlier scripts"),
    "import": ("import_", "take over the saves of other tools as snapshots"),
    "demo": ("demo", "watch simulated agents be saved, killed and brought back"),
}

#: Those that go on for long, and import half a library to begin with.
LASTING = {"up"}
#: New objects between two collections of garbage in the others: hardly one gets that far, and there is little to find.
MANY_OBJECTS = 50_000


class Command(Protocol):
    """What a command's module offers.

    One with verbs offers `VERBS` instead: of each its module and what it is for. One that takes words behind `--`
    says so by `REST`, and finds them in `args.rest`.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it and return the exit code; expected failures are raised."""


class Help(argparse.RawDescriptionHelpFormatter):
    """Help of a fixed width: argparse asks for the terminal's with every argument, through slow imports."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=100)


class Parser(argparse.ArgumentParser):
    """argparse with one sentence and exit code 2 for a wrong argument."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=Help, allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and how to find out what is right."""
        raise UsageError(f"{message}. Try '{self.prog} --help'.")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Take `--option=--` for what it says: some versions of argparse would drop the dashes, and leave no value."""
        if not action.option_strings or arg_strings != ["--"]:
            return super()._get_values(action, arg_strings)
        value = self._get_value(action, "--")
        self._check_value(action, value)
        return value if action.nargs in (None, argparse.OPTIONAL) else [value]

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help; argparse itself would keep silent about one that cannot be written."""
        (file or sys.stdout).write(self.format_help())

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End after --help and --version; that they could not be written comes to light here."""
        sys.stdout.flush()
        super().exit(status, message)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    _steady_streams()
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except PerdureError as error:
        return _fail(error, as_json="--json" in words)
    except BrokenPipeError:
        # The reader has gone, as `perdure ls | head` does.
        _drop_output()
        return 0
    except OSError as error:
        return _fail(failure_of(error), as_json="--json" in words)
    except KeyboardInterrupt:
        return 130


def _steady_streams() -> None:
    """Make printing safe: into a stream that is closed, and of characters the terminal does not know."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - to stay open
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Send what is still to be written nowhere, so that Python does not complain about it at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    if words[:1] == ["--json"] and words[1:2] and words[1] in COMMANDS:
        words = [words[1], "--json", *words[2:]]
    name = words[0] if words and words[0] in COMMANDS else None
    if name is None and [word for word in words if word != "--json"]:
        return _general(words)
    if name not in LASTING:
        _begin_lightly()
    module = import_module(f"perdure.cli.{COMMANDS[name][0] if name else 'overview'}")
    summary = COMMANDS[name][1] if name else "show how things stand"
    prog = f"perdure {name}" if name else "perdure"
    given = words[1:] if name else words
    if hasattr(module, "VERBS"):
        verb, given = _verb(given, module.VERBS, prog, summary)
        prog, summary = f"{prog} {verb}", module.VERBS[verb][1]
        module = import_module(f"perdure.cli.{module.VERBS[verb][0]}")
    return _command(module, prog, summary, given)


def _begin_lightly() -> None:
    """Spare a short command what takes a fifth of its time and is of no use to it.

    msgspec looks for typing_extensions, which others bring along, only for what every Python we run on has itself.
    """
    if "msgspec" in sys.modules or "typing_extensions" in sys.modules:
        return
    gc.set_threshold(MANY_OBJECTS)
    absent: Any = None
    sys.modules["typing_extensions"] = absent
    try:
        import_module("msgspec")
    finally:
        del sys.modules["typing_extensions"]


def parser_of(command: Command, prog: str, summary: str) -> Parser:
    """Return what reads the words for a command, or for a verb of one."""
    parser = Parser(prog=prog, description=summary)
    command.configure(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return parser


def _command(module: Any, prog: str, summary: str, given: list[str]) -> int:
    command: Command = module
    parser = parser_of(command, prog, summary)
    rest: list[str] | None = None
    if hasattr(module, "REST"):
        given, rest = _without_rest(given)
    # Options may stand between the names of things; but argparse forgets then what `--` is for.
    args = parser.parse_args(given) if "--" in given else parser.parse_intermixed_args(given)
    args.rest = rest
    return command.run(args)


def _verb(words: list[str], verbs: Mapping[str, tuple[str, str]], prog: str, summary: str) -> tuple[str, list[str]]:
    """Return which of a command's verbs is meant, and the words for it."""
    named = next((word for word in words if word != "--json"), None)
    if named is not None and named in verbs:
        words.remove(named)
        return named, words
    usage = f"{prog} [--help] {{{','.join(verbs)}}} ..."
    parser = Parser(prog=prog, usage=usage, description=summary, epilog=_listed(verbs, f"{prog} VERB"))
    parser.add_argument("verb", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    args, _ = parser.parse_known_args(words)
    which = f"one of {', '.join(verbs)} is needed"
    parser.error(f"there is no {prog!r} {args.verb!r}; {which}" if args.verb is not None else which)


def _listed(commands: Mapping[str, tuple[str, str]], how: str) -> str:
    width = max(map(len, commands))
    lines = "\n".join(f"  {name:<{width}}  {summary}" for name, (_, summary) in commands.items())
    return f"commands:\n{lines}\n\n'{how} --help' tells more of each."


def _without_rest(words: list[str]) -> tuple[list[str], list[str] | None]:
    """Return the words before the first `--`, and those behind it, which are nobody's options; None without one."""
    if "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _general(words: list[str]) -> int:
    """Answer --help and --version, and what is no command."""
    parser = Parser(
        prog="perdure",
        usage="perdure [--help] [--version] [COMMAND ...]",
        description="Agent sessions that outlive their processes. Without a command: how things stand.",
        epilog=_listed(COMMANDS, "perdure COMMAND"),
    )
    if "--version" in words and "--json" in words:
        from perdure.cli.render import print_json

        print_json({"version": __version__})
        return 0
    parser.add_argument("--version", action="version", version=f"perdure {__version__}")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    args, _ = parser.parse_known_args(words)
    if args.command is not None:
        parser.error(f"there is no command {args.command!r}")
    parser.error(f"there is no option {next(word for word in words if word != '--json')!r}")


def _fail(error: PerdureError, *, as_json: bool) -> int:
    from perdure.cli.render import print_json, printable

    for sentence in error.message.split("\n"):
        print(f"perdure: {printable(sentence)}", file=sys.stderr)
    try:
        if as_json:
            print_json({"error": {"message": error.message, "code": error.exit_code, **error.data}})
        sys.stdout.flush()
    except OSError:
        _drop_output()
    return error.exit_code
