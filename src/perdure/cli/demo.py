"""`perdure demo`: agents on a tmux server of their own are saved, killed and brought back before your eyes."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType

import msgspec

from perdure.cli.render import counted, print_json, print_table, printable
from perdure.demo.compare import Line, Row, Told, compare
from perdure.demo.machine import Machine
from perdure.demo.scene import put_up, scene
from perdure.errors import PerdureError, UsageError
from perdure.host.run import Ran
from perdure.host.waiting import Pace
from perdure.model.decoding import decoder_of

#: How long it takes on a terminal, for somebody who reads along.
_READING = 20.0
#: What ends it, and must not end it before it has cleaned up.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: As much of an id as tells it from the others here.
_SHORT = 8


class _Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What `perdure restore --json` answers, as far as it matters here."""

    steps: tuple[Told, ...]
    summary: dict[str, int]


class _Saved(msgspec.Struct, frozen=True, kw_only=True):
    """A server as `perdure save --json` tells it."""

    snapshot: str | None


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=float,
        help=f"how long to take over it (default: {_READING:.0f} on a terminal, else no longer than it takes)",
    )
    parser.add_argument("--keep", action="store_true", help="leave the server and its directory, to look around")


def run(args: argparse.Namespace) -> int:
    """Put the scene up, save it, kill it, restore it, compare; 0 when every agent is back, verified."""
    if args.seconds is not None and not 0 <= args.seconds <= 3600:
        raise UsageError("--seconds takes a number from 0 to 3600.")
    # Not before there is somebody to clean up.
    _answer_signals(signal.SIG_IGN)
    machine = Machine()
    show = _Show(machine, args)
    try:
        _answer_signals(_stop)
        wrong = show.play()
    except BaseException:
        _clean_up(machine)
        raise
    if args.keep:
        show.tell_what_stays()
    else:
        _clean_up(machine)
        show.say(f"\nRemoved {machine.root}, and everything in it.")
    show.answer(wrong)
    for sentence in wrong:
        print(f"perdure: {printable(sentence)}", file=sys.stderr)
    return 1 if wrong else 0


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _clean_up(machine: Machine) -> None:
    """Leave nothing behind, however often somebody presses Ctrl-C meanwhile."""
    _answer_signals(signal.SIG_IGN)
    machine.close()


def _answer_signals(answer: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in _SIGNALS:
        signal.signal(number, answer)


class _Show:
    """The demonstration as it is told; with --json it is only played."""

    def __init__(self, machine: Machine, args: argparse.Namespace) -> None:
        self._machine = machine
        self._quiet: bool = args.json
        self._kept: bool = args.keep
        default = _READING if sys.stdout.isatty() and not args.json else 0.0
        self._pace = Pace(default if args.seconds is None else args.seconds)
        self._snapshot: str | None = None
        self._lines: tuple[Line, ...] = ()
        self._summary: dict[str, int] = {}
        self._took = 0.0

    def say(self, text: str) -> None:
        """Tell what happens, as it happens."""
        if not self._quiet:
            print(text, flush=True)

    def play(self) -> list[str]:
        """Do it all, and return what was wrong in the end, a sentence each."""
        machine = self._machine
        self.say(f"A tmux server of its own, in {machine.root}. Yours is not touched.")
        self.say(f"To look on from another terminal: tmux -S {machine.socket} attach")
        machine.set_up()
        put_up(machine, scene())
        before = self._look()
        agents = sum(row.agent is not None for row in before)
        self.say(f"\nBefore: {counted(len(before), 'pane')}, {counted(agents, 'simulated agent')}.\n")
        self._table(("pane", "program", "conversation", "task"), [_before(row) for row in before])
        self._pace.reach(0.4)
        self._save()
        self._pace.reach(0.55)
        pid = machine.crash()
        self.say(f"\n$ kill -9 {pid}\n  The tmux server is dead; nothing in it has a terminal any more.")
        self._pace.reach(0.7)
        self._restore(before)
        self._pace.reach(1.0)
        return [f"{line.pane} ({line.program}): {line.why}." for line in self._lines if line.why]

    def _look(self) -> list[Row]:
        answer = _answer(self._machine.perdure("ls"), "ls")
        return decoder_of(dict[str, list[Row]]).decode(answer)["panes"]

    def _save(self) -> None:
        self.say("\n$ perdure save")
        answer = _answer(self._machine.perdure("save"), "save")
        (saved,) = decoder_of(dict[str, list[_Saved]]).decode(answer)["servers"]
        self._snapshot = saved.snapshot
        self.say(f"  Snapshot {saved.snapshot} is in the store.")

    def _restore(self, before: Sequence[Row]) -> None:
        self.say("\n$ perdure restore")
        began = self._pace.elapsed
        answer = _answer(self._machine.perdure("restore"), "restore", failing=True)
        self._took = self._pace.elapsed - began
        restored = decoder_of(_Restored).decode(answer)
        self._summary = restored.summary
        self._lines = compare(before, self._look(), restored.steps)
        self.say(f"\nAfter {self._took:.1f} s:\n")
        self._table(("pane", "program", "before", "after", "result"), [_after(line) for line in self._lines])
        agents = [line for line in self._lines if line.before is not None]
        verified = sum(line.is_verified for line in agents)
        self.say(f"\n{verified} of {counted(len(agents), 'agent')} back in their own conversation, verified.")

    def _table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        if not self._quiet:
            print_table(columns, rows, whole=columns[:3], spare=("task",))

    def tell_what_stays(self) -> None:
        """Say how to look around, and how to remove it."""
        machine = self._machine
        self.say(f"\nLook around:  tmux -S {machine.socket} attach")
        self.say(f"Remove it:    tmux -S {machine.socket} kill-server; rm -r {machine.root}")

    def answer(self, wrong: Sequence[str]) -> None:
        """Print the one object of --json."""
        if self._quiet:
            print_json(
                {
                    "ok": not wrong,
                    "wrong": list(wrong),
                    "snapshot": self._snapshot,
                    "panes": self._lines,
                    "summary": self._summary,
                    "restore_seconds": round(self._took, 3),
                    "directory": self._machine.root,
                    "kept": self._kept,
                }
            )


def _answer(ran: Ran, command: str, *, failing: bool = False) -> bytes:
    """Return what one of our own commands answered. With `failing` it may have failed, as long as it says at what."""
    told = failing and b'"steps"' in ran.out
    if ran.status != 0 and not told:
        lines = ran.err.strip().splitlines() or ["it said nothing"]
        raise PerdureError(f"perdure {command} ended with status {ran.status}: {lines[-1].removeprefix('perdure: ')}")
    return ran.out


def _before(row: Row) -> tuple[object, ...]:
    if row.agent is None:
        return row.address, row.program, None, None
    return row.address, row.program, _short(row.conversation), row.task or "(nothing was ever asked)"


def _after(line: Line) -> tuple[object, ...]:
    result = f"{line.result}: {line.why}" if line.why else line.result
    return line.pane, line.program, _short(line.before), _short(line.after), result


def _short(conversation: str | None) -> str | None:
    return conversation[:_SHORT] if conversation else None
