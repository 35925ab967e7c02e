"""`simulant`: a program that behaves like a coding agent in a terminal and is none, for demonstrations and tests.

    simulant [--session ID | --resume ID] [--model NAME] [--boot S] [--think S] [--lazy-death S] [PROMPT]

It answers prompts after a busy phase, asks before it runs something (`run …`), begins a new conversation with `/new` and
ends with `/quit`. Below `$SIMULANT_HOME` (else `~/.simulant`) it keeps what real agents keep:

* `conversations/ID.jsonl`: what was said, from the first prompt on; `--resume` shows it and goes on;
* `running/PID.json`: this process and the conversation it is in now; there from the end of the start until half a
  second after the terminal is gone, or `--lazy-death` seconds, for which it lives on;
* `starts.jsonl`: a line for every start, ready, switch, refused and end, so that a test can tell how many were starting
  at once and that no conversation was ever open twice: it is locked, and a second process is refused.

One file of the standard library alone: it is run as a script, by the hundred, and must start at once.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import signal
import sys
import termios
import time
from typing import NamedTuple, NoReturn

NAME = "simulant"
VERSION = "1.0"
#: How long the registry outlives the terminal.
LINGER = 0.5

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PROMPT = "you ▸ "
_USAGE = f"usage: {NAME} [--session ID | --resume ID] [--model NAME] [--boot S] [--think S] [--lazy-death S] [PROMPT]"


class Ended(Exception):
    """The program is over, with this exit status and for this reason."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Options(NamedTuple):
    """What the command line asks for."""

    session: str = ""
    resume: str = ""
    model: str = "sim-1"
    boot: float = 0.0
    think: float = 0.5
    lazy_death: float = LINGER
    prompt: str = ""


def parse(words: list[str]) -> Options:
    """Return what the command line asks for; says what is wrong with one that is wrong, and ends."""
    given: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in ("--help", "--version"):
            _say_and_end(0, _USAGE if word == "--help" else f"{NAME} {VERSION}")
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            given["prompt"] = word
        elif name[2:].replace("-", "_") not in Options._fields[:-1] or not (equals or rest):
            _say_and_end(2, f"{NAME}: cannot do anything with {word}\n{_USAGE}")
        else:
            given[name[2:].replace("-", "_")] = value if equals else rest.pop(0)
    for each in ("session", "resume"):
        if each in given and not _UUID.fullmatch(given[each]):
            _say_and_end(2, f"{NAME}: {given[each]} is no conversation's id")
    try:
        return Options(
            session=given.get("session", ""),
            resume=given.get("resume", ""),
            model=given.get("model", Options().model),
            boot=float(given.get("boot", Options().boot)),
            think=float(given.get("think", Options().think)),
            lazy_death=float(given.get("lazy_death", LINGER)),
            prompt=given.get("prompt", ""),
        )
    except ValueError:
        _say_and_end(2, f"{NAME}: that is no number of seconds\n{_USAGE}")


def _say_and_end(status: int, text: str) -> NoReturn:
    print(text, file=sys.stderr if status else sys.stdout)
    raise SystemExit(status)


def new_id() -> str:
    """Return an id nobody has: a random UUID, without the module that is slow to import."""
    raw = bytearray(os.urandom(16))
    raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def started() -> int | None:
    """Return when the kernel started this process, in its ticks; None where it does not tell."""
    try:
        with open("/proc/self/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return None


class Home:
    """The files of all simulants of a user."""

    def __init__(self) -> None:
        self.root = os.environ.get("SIMULANT_HOME") or os.path.expanduser(f"~/.{NAME}")
        for folder in ("conversations", "running", "locks"):
            os.makedirs(os.path.join(self.root, folder), mode=0o700, exist_ok=True)
        self._entry = os.path.join(self.root, "running", f"{os.getpid()}.json")
        self._lock = -1

    def note(self, event: str, conversation: str, **more: object) -> None:
        """Add a line to the record of starts."""
        line = {"event": event, "time": time.time(), "pid": os.getpid(), "started": started(), "id": conversation}
        self._append("starts.jsonl", {**line, **more})

    def lock(self, conversation: str) -> bool:
        """Take a conversation and let go of the one held before; False when another process has it."""
        lock = os.open(os.path.join(self.root, "locks", conversation), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self.unlock()
        self._lock = lock
        return True

    def unlock(self) -> None:
        """Let another have the conversation."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)

    def register(self, conversation: str) -> None:
        """Say in the live registry which conversation this process is in."""
        entry = {"id": conversation, "pid": os.getpid(), "started": started(), "cwd": os.getcwd(), "version": VERSION}
        with open(f"{self._entry}.new", "w", encoding="utf-8") as file:
            json.dump(entry, file)
        os.replace(f"{self._entry}.new", self._entry)

    def unregister(self) -> None:
        """Take this process out of the registry."""
        if os.path.exists(self._entry):
            os.unlink(self._entry)

    def has(self, conversation: str) -> bool:
        """Return whether anything was ever said in it."""
        return os.path.exists(os.path.join(self.root, "conversations", f"{conversation}.jsonl"))

    def turns(self, conversation: str) -> list[dict[str, str]]:
        """Return what was said, as far as whole lines of it are there."""
        found = []
        if self.has(conversation):
            with open(os.path.join(self.root, "conversations", f"{conversation}.jsonl"), encoding="utf-8") as file:
                found = [json.loads(line) for line in file if line.endswith("\n")]
        return [turn for turn in found if "role" in turn]

    def say(self, conversation: str, role: str, text: str, model: str) -> None:
        """Write a turn down; the first one begins the file."""
        name = os.path.join("conversations", f"{conversation}.jsonl")
        if not self.has(conversation):
            self._append(name, {"id": conversation, "cwd": os.getcwd(), "version": VERSION, "time": time.time()})
        self._append(name, {"role": role, "text": text, "model": model, "time": time.time()})

    def _append(self, name: str, record: dict[str, object]) -> None:
        """Add one line in one write, which those of other processes do not get into."""
        file = os.open(os.path.join(self.root, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, json.dumps(record).encode() + b"\n")
        finally:
            os.close(file)


class Terminal:
    """The terminal the program runs in, and the signals that come with it."""

    def __init__(self) -> None:
        self._caught: list[int] = []
        self._woken, waker = os.pipe()
        for end in (self._woken, waker):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda caught, frame: self._caught.append(caught))
        self.echo(False)

    def wait(self, seconds: float | None, *, typed: bool = False) -> bool:
        """Wait that long, or with `typed` until a line is there and return whether one is.

        Ends the program when the terminal is gone or somebody wants it to; a Ctrl-C is a KeyboardInterrupt.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            ready = select.select([self._woken, 0] if typed else [self._woken], [], [], left)[0]
            if self._woken in ready:
                os.read(self._woken, 1024)
            self._heed()
            if 0 in ready:
                return True
            if until is not None and time.monotonic() >= until:
                return False

    def _heed(self) -> None:
        # In this order: one that comes in between is in the list that is looked at.
        caught, self._caught = self._caught, []
        if signal.SIGTERM in caught:
            raise Ended(143, "told to")
        if signal.SIGHUP in caught:
            raise Ended(129, "hangup")
        if signal.SIGINT in caught:
            raise KeyboardInterrupt

    def print(self, text: str, end: str = "\n") -> None:
        """Show something."""
        try:
            os.write(1, (text + end).encode())
        except OSError:
            raise Ended(129, "hangup") from None

    def title(self, text: str) -> None:
        """Set the terminal's title."""
        self.print("\x1b]2;" + "".join(char for char in text if char.isprintable()) + "\x07", end="")

    def echo(self, on: bool) -> None:
        """Show what is typed, or not."""
        try:
            state = termios.tcgetattr(0)
            state[3] = state[3] | termios.ECHO if on else state[3] & ~termios.ECHO
            termios.tcsetattr(0, termios.TCSANOW, state)
        except termios.error:
            raise Ended(129, "hangup") from None

    def line(self, prompt: str) -> str:
        """Return the next line somebody types, which may have been typed while nobody asked for it."""
        self.print(prompt, end="")
        early = self.wait(0, typed=True)
        if not early:
            self.echo(True)
            self.wait(None, typed=True)
        try:
            raw = os.read(0, 65536)
        except OSError:
            raise Ended(129, "hangup") from None
        finally:
            self.echo(False)
        if not raw:
            raise Ended(0, "end of input")
        text = raw.decode(errors="replace").strip()
        if early:
            self.print(text)
        return text


class Agent:
    """One run of the program."""

    def __init__(self, options: Options, home: Home, terminal: Terminal) -> None:
        self._options = options
        self._home = home
        self._terminal = terminal
        self.conversation = options.resume or options.session or new_id()

    def run(self) -> NoReturn:
        """Start, and then answer until the end."""
        self._home.note("start", self.conversation, resumed=bool(self._options.resume))
        if not self._home.lock(self.conversation):
            self._home.note("refused", self.conversation)
            self._terminal.print(f"Conversation {self.conversation} is open in another process")
            raise Ended(1, "refused")
        self._boot()
        self._greet()
        if self._options.prompt:
            self._terminal.print(f"{_PROMPT}{self._options.prompt}")
            self._heard(self._options.prompt)
        while True:
            self._show_idle()
            try:
                self._heard(self._terminal.line(_PROMPT))
            except KeyboardInterrupt:
                raise Ended(0, "quit") from None

    def _boot(self) -> None:
        options = self._options
        if options.boot:
            self._terminal.print("starting…")
            try:
                self._terminal.wait(options.boot)
            except KeyboardInterrupt:
                raise Ended(130, "interrupted") from None
        if options.resume and not self._home.has(options.resume):
            self._terminal.print(f"No conversation found with id {options.resume}")
            raise Ended(1, "unknown")
        if options.session and self._home.has(options.session):
            self._terminal.print(f"There is a conversation with id {options.session} already")
            raise Ended(1, "taken")
        # In this order: whoever finds it in the registry may let the next one start, which then notes that.
        self._home.note("ready", self.conversation)
        self._home.register(self.conversation)

    def _greet(self) -> None:
        self._terminal.print(f"◈ {NAME} {VERSION} · model {self._options.model}")
        self._terminal.print(f"  conversation {self.conversation}")
        self._terminal.print(f"  {os.getcwd()}\n")
        for turn in self._home.turns(self.conversation):
            self._terminal.print(f"{_PROMPT}{turn['text']}" if turn["role"] == "user" else f"◈ {turn['text']}\n")

    def _heard(self, text: str) -> None:
        if text == "/quit":
            raise Ended(0, "quit")
        if text == "/new":
            before, self.conversation = self.conversation, new_id()
            self._home.lock(self.conversation)
            self._home.note("switch", self.conversation, before=before)
            self._home.register(self.conversation)
            self._greet()
        elif text:
            self._home.say(self.conversation, "user", text, self._options.model)
            self._answer(text)

    def _answer(self, text: str) -> None:
        try:
            if text.startswith("run ") and not self._is_allowed(text.removeprefix("run ")):
                answer = "Not run."
            else:
                self._think()
                asked = sum(turn["role"] == "user" for turn in self._home.turns(self.conversation))
                answer = f"Noted as number {asked} of this conversation: {text}"
        except KeyboardInterrupt:
            answer = "Interrupted."
        self._terminal.print(f"\r\x1b[K◈ {answer}\n")
        self._home.say(self.conversation, "assistant", answer, self._options.model)

    def _is_allowed(self, command: str) -> bool:
        self._terminal.title(f"◈ question · {NAME}")
        self._terminal.print(f"◈ May I run this?\n    $ {command}")
        return self._terminal.line("  [y] yes  [n] no ▸ ").startswith("y")

    def _think(self) -> None:
        began = time.monotonic()
        frame = 0
        while (spent := time.monotonic() - began) < self._options.think:
            sign = _SPINNER[frame % len(_SPINNER)]
            self._terminal.title(f"{sign} {self._topic()} · {NAME}")
            self._terminal.print(f"\r{sign} thinking… ({int(spent)} s, Ctrl-C interrupts)\x1b[K", end="")
            self._terminal.wait(min(0.2, self._options.think))
            frame += 1

    def _topic(self) -> str:
        turns = self._home.turns(self.conversation)
        return turns[0]["text"][:40] if turns else "nothing yet"

    def _show_idle(self) -> None:
        self._terminal.title(f"◈ {self._topic()} · {NAME}")

    def end(self, ended: Ended) -> None:
        """Leave no trace in the registry; without a terminal only after a while, as real agents do."""
        if ended.why == "hangup":
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            try:
                self._terminal.wait(max(LINGER, self._options.lazy_death))
            except (Ended, KeyboardInterrupt):
                pass
        self._home.unregister()
        # Before it is noted: whoever reads of the end may go on with the conversation at once.
        self._home.unlock()
        self._home.note("end", self.conversation, why=ended.why)


def main() -> int:
    """Run the program and return its exit status."""
    options = parse(sys.argv[1:])
    if not os.isatty(0) or not os.isatty(1):
        _say_and_end(1, f"{NAME}: needs a terminal")
    terminal = Terminal()
    agent = Agent(options, Home(), terminal)
    try:
        agent.run()
    except Ended as ended:
        agent.end(ended)
        try:
            terminal.echo(True)
        except Ended:
            pass
        return ended.status


if __name__ == "__main__":
    sys.exit(main())
