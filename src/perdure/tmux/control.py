"""One control-mode client: many commands for one server, one reply for each, in order."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import IO, NamedTuple, Self

from perdure.errors import Unanswered
from perdure.model.server import ServerProcess
from perdure.model.text import decode, encode
from perdure.model.user import User
from perdure.tmux import run
from perdure.tmux.formats import WHO
from perdure.tmux.parse import Garbled, read_process
from perdure.tmux.quote import line
from perdure.tmux.sockets import refuse_strangers

# What keeps the temporary session, and ends it when it sees that one of these processes has ended: ourselves, who may
# belong to another user, and the client, which would otherwise stay when it has something to say and nobody listens.
# Several words, so that tmux starts them without a shell of its own.
_WATCH = """export LC_ALL=C
is_there() { case $(kill -0 "$1" 2>&1) in ''|*permitted*) return 0;; esac; return 1; }
while is_there "$1" && is_there "${2:-$1}"; do sleep 1; done
[ $# -lt 2 ] || kill -9 "$2" 2>/dev/null"""
_WATCHING = ("/bin/sh", "-c", _WATCH, "perdure")
_PR_SET_PDEATHSIG = 1
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
        #: Whether anything was answered at all, if only to the words the client was started with.
        self.has_begun = False
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
        self.has_begun = True
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
    the server answers. The session is `name`, holds one program that only waits, and goes when this is closed, or
    within a second or two when we or the client are killed. The client is told no pane's output and has no say in
    any window's size.

    `environ` is all the client, and a server it starts, gets; TMUX and TMUX_PANE never are among it. `prefix` is a
    command that starts the client elsewhere (see host/scope.py), and that then becomes `owner` for us.

    Raises Refused when the socket belongs to somebody else, UsageError when it is none, TmuxMissing, and on entering what `ask` raises.

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
        self._target = f"={name}:"
        self._timeout = timeout
        self._blocks = Blocks()
        #: Whether the client has nothing left to read and nothing left to say.
        self._is_idle = False
        self._is_leaving = False
        #: Which server answers, once this is entered.
        self.server: ServerProcess | None = None
        self._process = _start(socket, owner, name, environ, prefix)
        # A pipe that is ready takes something, not everything: see `_exchange`.
        os.set_blocking(_stdin(self._process).fileno(), False)

    def __enter__(self) -> Self:
        watch = (*_WATCHING, str(os.getpid()), str(self._process.pid))
        try:
            # Not a word before the session is there: tmux may well read our commands before its own arguments.
            self._exchange(b"", 0)
            respawn = ["respawn-pane", "-k", "-t", self._target, *watch]
            watching, server = self.ask([respawn, ["display-message", "-p", WHO]])
            if watching.error:
                raise self._unanswered(f"could not keep its session: {watching.error}")
            self.server = self._who(server)
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
        count = 0
        for script, more in _breaths((*commands, ("display-message", "-p", mark))):
            count += more
            self._exchange(script, count)
        *replies, last = self._blocks.replies
        if len(replies) != len(commands) or last != Reply((mark,), None):
            raise self._unanswered("gave replies that do not fit the commands")
        self._blocks.replies = []
        self._is_idle = True
        return replies

    def leave(self) -> None:
        """Have the client end, and with it its session, without waiting for it; only `close` is of use after that."""
        if self._is_idle and not self._is_leaving:
            self._is_leaving = True
            _write(_stdin(self._process), memoryview(line(["kill-session", "-t", self._target])))

    def close(self) -> None:
        """End the client, and with it its session; the server too when it has nothing else. Never raises."""
        stdin, stdout = _stdin(self._process), _stdout(self._process)
        if stdin.closed:
            return
        self.leave()
        if self._is_leaving:
            if not self._has_ended(stdout):
                self._process.kill()
        else:
            # Half a command may stand in the pipe, and must not become a whole one with ours.
            self._process.kill()
        stdin.close()
        stdout.close()
        self._process.wait()

    def _has_ended(self, stdout: IO[bytes]) -> bool:
        """Read to the end of what the client says; False when it takes too long."""
        deadline = time.monotonic() + self._timeout
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while selector.select(max(0.0, deadline - time.monotonic())):
                if not os.read(stdout.fileno(), 1 << 18):
                    return True
        return False

    def _exchange(self, script: bytes, count: int) -> None:
        """Write the script and read until the server has begun to answer and there are `count` replies.

        Both at once: while we only wrote, the server would fill the other pipe, stop reading ours, and both would
        wait forever.
        """
        left, self._is_idle = memoryview(script), False
        blocks, stdin, stdout = self._blocks, _stdin(self._process), _stdout(self._process)
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if left:
                selector.register(stdin, selectors.EVENT_WRITE)
            while not blocks.has_begun or len(blocks.replies) < count:
                ready = [key.fileobj for key, _ in selector.select(self._timeout)]
                if not ready:
                    raise self._unanswered(f"said nothing for {self._timeout:g} s")
                if stdin in ready:
                    left = left[_write(stdin, left[:65536]) :]
                    if not left:
                        selector.unregister(stdin)
                if stdout in ready:
                    data = os.read(stdout.fileno(), 1 << 18)
                    if not data:
                        raise self._unanswered("ended")
                    blocks.feed(data)
                if blocks.is_confused:
                    raise self._unanswered("gave replies that cannot be told apart")

    def _who(self, reply: Reply) -> ServerProcess:
        try:
            return read_process(encode("".join(reply.lines)))
        except Garbled as error:
            raise self._unanswered("did not say which server it speaks to") from error

    def _unanswered(self, what: str) -> Unanswered:
        replies = len(self._blocks.replies)
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
    refuse_strangers(socket, owner)
    address, environ = _address(socket, owner, environ)
    command = ["-C", "new-session", "-E", "-s", name, "-n", "perdure", "-x", "80", "-y", "24"]
    command += ["-f", "no-output,ignore-size", *_WATCHING, str(os.getpid())]
    # Beware of tmux 3.3a and `destroy-unattached`, which looks made for this: when any other client happens to leave
    # while one is on its way out, tmux ends that one's session under its feet and dies. So the session ends with its
    # program, whatever the user's options say, and its client with it.
    for option in (("destroy-unattached", "off"), ("detach-on-destroy", "on")):
        command += [";", "set-option", "-t", f"={name}:", *option]
    command += [";", "set-option", "-w", "-t", f"={name}:", "remain-on-exit", "off"]
    via, first = ending_with_us()
    return run.spawn(
        [*address, *command],
        owner=owner,
        environ=environ,
        stdin=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        prefix=prefix,
        via=via,
        first=first,
    )


def ending_with_us() -> tuple[Sequence[str], Callable[[], None] | None]:
    """Return what lets a child be told to end when we do: words before its own, or what it has to call first.

    A client that nobody reads from any more would stay for ever, and keep its server from ending: the socket could not
    be used again until somebody finds and kills it. Neither where the kernel offers nothing of the kind.
    """
    if not sys.platform.startswith("linux"):
        return (), None
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin")
    # busybox has one of that name, which cannot.
    if setpriv is not None and os.path.basename(os.path.realpath(setpriv)) == "setpriv":
        return (setpriv, "--pdeathsig", "TERM", "--"), None
    import ctypes  # dear to import, and needed only here

    prctl, us = ctypes.CDLL(None).prctl, os.getpid()

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != us:
            os._exit(1)  # we are gone already

    return (), tie


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
