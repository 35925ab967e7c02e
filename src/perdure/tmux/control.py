"""One control-mode client: many commands for one server, one reply for each, in order."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, NamedTuple, Self

from perdure.errors import Refused, Unanswered
from perdure.model.text import decode, encode
from perdure.model.user import User
from perdure.tmux import run
from perdure.tmux.quote import line
from perdure.tmux.sockets import owner_of

# Waits on its terminal and costs no process beside itself. Several words, so that tmux runs it without a shell.
_WAITING = ("/bin/sh", "-c", "read _")
# What can end a session, by the names we use.
_ENDING = frozenset({"kill-session", "kill-window", "kill-pane", "unlink-window", "move-window", "move-pane"})
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


class Reply(NamedTuple):
    """What tmux answered to one command."""

    #: What it printed, line by line; a text with newlines in it is several lines.
    lines: tuple[str, ...]
    #: tmux's own words when it refused, else None.
    error: str | None


class Blocks:
    """The replies in a stream of control mode, however it is cut into pieces.

    A block ends where its own beginning is repeated, time, number and all, so a screen with `%end` on it ends
    nothing. Blocks that do not carry our mark are the replies to somebody else: hooks of the user's configuration.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._tag: bytes | None = None
        self._lines: list[bytes] = []
        #: The replies to our commands that nobody has taken yet.
        self.replies: list[Reply] = []
        #: What was said to nobody in particular, the last of it: why a client failed.
        self.aside = ""
        #: Set when a block ended that had not begun: a text has imitated tmux, and no reply can be trusted.
        self.is_confused = False

    def feed(self, data: bytes) -> None:
        """Take the next piece of the stream."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for each in lines:
            if self._tag is None:
                self._outside(each)
            elif each in (b"%end " + self._tag, b"%error " + self._tag):
                self._end(failed=each.startswith(b"%error"))
            else:
                self._lines.append(each)

    def _outside(self, said: bytes) -> None:
        kind, _, rest = said.partition(b" ")
        if kind == b"%begin":
            self._tag, self._lines = rest, []
        elif kind in (b"%end", b"%error"):
            self.is_confused = True
        elif not said.startswith(b"%"):
            self.aside = decode(said) or self.aside
        elif kind == b"%exit" and rest:
            self.aside = self.aside or decode(rest)

    def _end(self, *, failed: bool) -> None:
        assert self._tag is not None
        is_ours = self._tag.rpartition(b" ")[2] != b"0"
        lines = tuple(decode(each) for each in self._lines)
        self._tag, self._lines = None, []
        error = "\n".join(lines) or "tmux refused without a word" if failed else None
        if is_ours:
            self.replies.append(Reply(() if failed else lines, error))
        elif error:
            self.aside = error


class Control:
    """A client in control mode, in a temporary session of its own; a context manager, used once.

    Entering it starts the server when there is none, with the user's configuration and `environ`, and returns when
    the server answers. The session is `name`, holds one program that only waits, and goes with the client, however
    either of us ends. The client is told no pane's output and has no say in any window's size.

    `environ` is all the client, and a server it starts, gets; TMUX and TMUX_PANE never are among it. `prefix` is a
    command that starts the client elsewhere (see host/scope.py), and that then becomes `owner` for us.

    Raises Refused when the socket belongs to somebody else, TmuxMissing, and on entering what `ask` raises.

    """

    def __init__(
        self,
        socket: str,
        owner: User,
        name: str,
        *,
        environ: Mapping[str, str],
        timeout: float = run.TIMEOUT,
        prefix: Sequence[str] = (),
    ) -> None:
        if not _PLAIN.fullmatch(name):
            raise ValueError(f"{name!r} is no plain word")
        self._socket = socket
        self._timeout = timeout
        self._blocks = Blocks()
        self._process = _start(socket, owner, name, environ, prefix)
        # A pipe that is ready takes something, not everything: see `_exchange`.
        os.set_blocking(_stdin(self._process).fileno(), False)

    def __enter__(self) -> Self:
        try:
            self.ask(())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, commands: Sequence[Sequence[str]]) -> list[Reply]:
        """Send every command at once and return one reply for each, in order. A refused one does not stop the next.

        One command each: a `;` is a word like any other. Not for a command that waits for something
        (`run-shell` without -b): tmux ends its reply before it has one.

        Raises PerdureError, before anything is sent, for a command that is too long; Unanswered when the client
        ends or nothing is heard from it for `timeout` seconds, with the number of replies that had come. Then
        nothing is known about the rest, and the client is of no more use.
        """
        # The books have to balance: were any line answered twice, as by an alias of the user's that is two commands,
        # every later reply would be taken for its neighbour's. Nobody else knows this word.
        mark = os.urandom(8).hex()
        replies: list[Reply] = []
        for script, count in _breaths((*commands, ("display-message", "-p", mark))):
            replies += self._exchange(script, count, before=len(replies))
        if replies.pop() != Reply((mark,), None):
            raise self._unanswered("gave replies that do not fit the commands", 0)
        return replies

    def close(self) -> None:
        """End the client, and with it its session; the server too when it has nothing else. Never raises."""
        stdin, stdout = _stdin(self._process), _stdout(self._process)
        stdin.close()
        # The end of its input ends a client, and tmux has taken the session away before it lets the client go. Not
        # by kill-session: with `detach-on-destroy` off the client would only move on to somebody's session.
        if not stdout.closed:
            with selectors.DefaultSelector() as selector:
                selector.register(stdout, selectors.EVENT_READ)
                deadline = time.monotonic() + self._timeout
                while selector.select(max(0.0, deadline - time.monotonic())):
                    if not os.read(stdout.fileno(), 1 << 18):
                        break
                else:
                    self._process.kill()
            stdout.close()
        self._process.wait()

    def _exchange(self, script: bytes, count: int, *, before: int) -> list[Reply]:
        """Write the script and read until `count` replies have come, after those of `before`.

        Both at once: while we only wrote, the server would fill the other pipe, stop reading ours, and both would
        wait forever.
        """
        left = memoryview(script)
        blocks, stdin, stdout = self._blocks, _stdin(self._process), _stdout(self._process)
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            selector.register(stdin, selectors.EVENT_WRITE)
            while len(blocks.replies) < count and not blocks.is_confused:
                ready = [key.fileobj for key, _ in selector.select(self._timeout)]
                if not ready:
                    raise self._unanswered(f"said nothing for {self._timeout:g} s", before + len(blocks.replies))
                if stdin in ready:
                    left = left[_write(stdin, left[:65536]) :]
                    if not left:
                        selector.unregister(stdin)
                if stdout in ready:
                    data = os.read(stdout.fileno(), 1 << 18)
                    if not data:
                        raise self._unanswered("ended", before + len(blocks.replies))
                    blocks.feed(data)
        if blocks.is_confused:
            raise self._unanswered("gave replies that cannot be told apart", 0)
        replies, blocks.replies = blocks.replies, []
        return replies

    def _unanswered(self, what: str, replies: int) -> Unanswered:
        because = f": {self._blocks.aside}" if self._blocks.aside else ""
        message = f"The tmux client for {self._socket} {what} after {replies} replies{because}."
        return Unanswered(message, replies=replies)


def _breaths(commands: Sequence[Sequence[str]]) -> list[tuple[bytes, int]]:
    """Return scripts to be sent one after another, each when the one before is answered, and their numbers of replies.

    Beware of tmux 3.3a: it dies, with everybody's sessions, when a session ends in the same breath in which its
    current window changed and a control client looks on. So what can end a session waits for its turn.
    """
    breaths: list[list[bytes]] = [[]]
    for command in commands:
        if command and command[0] in _ENDING and breaths[-1]:
            breaths.append([])
        breaths[-1].append(line(command))
    return [(b"".join(lines), len(lines)) for lines in breaths]


def _start(
    socket: str, owner: User, name: str, environ: Mapping[str, str], prefix: Sequence[str]
) -> subprocess.Popen[bytes]:
    holder = owner_of(socket)
    if holder not in (None, owner.uid):
        # Whoever listens there would be handed the environment, and the words of every program.
        raise Refused(f"Refused: {socket} belongs to uid {holder}, not to {owner.name} (uid {owner.uid}).")
    address, environ = _address(socket, owner, environ)
    # In one list, so that there is no moment in which the session would outlive its client.
    command = ["-C", "new-session", "-E", "-s", name, "-n", "perdure", "-x", "80", "-y", "24"]
    command += ["-f", "no-output,ignore-size", *_WAITING, ";"]
    command += ["set-option", "-t", f"={name}:", "destroy-unattached", "on"]
    return run.spawn(
        [*address, *command],
        owner=owner,
        environ=environ,
        stdin=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        prefix=prefix,
    )


def _address(socket: str, owner: User, environ: Mapping[str, str]) -> tuple[tuple[str, str], Mapping[str, str]]:
    """Return the words that name the socket, and the environment in which they do.

    After a boot /tmp is empty, and a server cannot listen in a directory that is not there. tmux makes the one of a
    user, as that user and with its own checks, only when it is told the socket's name instead of its path.
    """
    directory, name = os.path.split(socket)
    base, folder = os.path.split(directory)
    if folder != f"tmux-{owner.uid}" or os.path.lexists(encode(directory)) or not os.path.isdir(encode(base)):
        return ("-S", socket), environ
    return ("-L", name), {**environ, "TMUX_TMPDIR": base}


def _write(stream: IO[bytes], data: memoryview) -> int:
    try:
        return os.write(stream.fileno(), data)
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        # Nobody reads any more; the other pipe will say that the client has ended.
        return len(data)


def _stdin(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin


def _stdout(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout
