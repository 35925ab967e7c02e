"""The one place that starts tmux.

Kept light on purpose: a cold `perdure save` starts its tmux clients first and imports the rest of itself while
tmux answers, so nothing here may import msgspec.
"""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from perdure.errors import TmuxMissing
from perdure.model.text import encode
from perdure.model.user import User

#: Seconds a server may take before it counts as unreachable.
TIMEOUT = 5.0

# What a tmux client needs of our environment. Not TMUX: the socket is always named. Not the rest: a client
# hands its environment to the server, and ours is nobody's business.
_PASSED_ON = ("PATH", "HOME", "TMPDIR", "TMUX_TMPDIR", "TERM")
_MISSING = "tmux is not installed or not on the PATH; perdure needs tmux 3.2 or newer."
_HARMLESS = (*_PASSED_ON, "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "XDG_RUNTIME_DIR")
# With these a client would take itself for a program in a pane, and speak to that pane's server.
_OF_A_PANE = frozenset({"TMUX", "TMUX_PANE"})


class Client:
    """A tmux client at work. `answer` and `complaint` are whole once `gather` has returned it as ended."""

    def __init__(self, process: subprocess.Popen[bytes], script: bytes, deadline: float) -> None:
        self._process = process
        self._script = memoryview(script)
        self._out: list[bytes] = []
        self._err: list[bytes] = []
        self.deadline = deadline
        #: The exit status; None when the client had to be given up.
        self.status: int | None = None
        if process.stdin is not None:
            # A pipe that is ready takes something, not everything: a blocking write would wait for a hung client.
            os.set_blocking(process.stdin.fileno(), False)

    @property
    def answer(self) -> bytes:
        """What tmux printed."""
        return b"".join(self._out)

    @property
    def complaint(self) -> str:
        """What tmux printed on stderr."""
        return b"".join(self._err).decode(errors="replace").strip()

    def streams(self) -> Sequence[tuple[IO[bytes], int]]:
        """The pipes to watch, and for what."""
        pipes = self._process
        watched = [(pipes.stdout, selectors.EVENT_READ), (pipes.stderr, selectors.EVENT_READ)]
        if pipes.stdin is not None:
            watched.append((pipes.stdin, selectors.EVENT_WRITE))
        return [(stream, events) for stream, events in watched if stream is not None]

    def serve(self, stream: IO[bytes]) -> bool:
        """Move the bytes that are ready; False when this pipe is done."""
        if stream is self._process.stdin:
            return self._feed(stream)
        part = os.read(stream.fileno(), 1 << 18)
        (self._out if stream is self._process.stdout else self._err).append(part)
        return bool(part)

    def end(self, *, kill: bool) -> None:
        """Reap the client; with `kill`, end it first and leave `status` None."""
        if kill:
            self._process.kill()
        status = self._process.wait()
        self.status = None if kill else status
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _feed(self, stream: IO[bytes]) -> bool:
        try:
            sent = os.write(stream.fileno(), self._script[:65536])
        except BlockingIOError:
            sent = 0
        except BrokenPipeError:
            sent = len(self._script)
        self._script = self._script[sent:]
        if self._script:
            return True
        stream.close()
        return False


def start(
    socket: str,
    command: Sequence[str],
    *,
    owner: User,
    script: bytes = b"",
    timeout: float = TIMEOUT,
    environ: Mapping[str, str] | None = None,
) -> Client:
    """Start a tmux client for the server on `socket` and return at once.

    `script` goes to the client's standard input. The client runs as `owner`, with what it needs of `environ`, or else of
    our own environment.
    """
    process = spawn(
        ["-S", socket, *command],
        owner=owner,
        environ=passed_on(os.environ if environ is None else environ),
        stdin=subprocess.PIPE if script else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    return Client(process, script, time.monotonic() + timeout)


def spawn(
    words: Sequence[str],
    *,
    owner: User,
    environ: Mapping[str, str],
    stdin: int,
    stderr: int,
    prefix: Sequence[str] = (),
    via: Sequence[str] = (),
    first: Callable[[], None] | None = None,
) -> subprocess.Popen[bytes]:
    """Start `tmux -u words…` as `owner`, in the root directory and in exactly this environment.

    `-u` always: to a client without UTF-8 tmux sends `_` for every tab and every other character beyond ASCII.
    A `prefix` is a command that starts it, and that becomes the owner when we are somebody else. It may run as root,
    and so sees only the variables that cannot harm it: a loader's among the rest would be the owner's code in
    root's hands. `via` is a command that becomes tmux as whoever it is then. `first` is called in the new process before it
    becomes anything, which is dear: all our memory has to be shared with it. Raises TmuxMissing.
    """
    if via and shutil.which("tmux", path=environ.get("PATH")) is None:
        raise TmuxMissing(_MISSING)
    uid, gid, groups = None, None, None
    if owner.uid != os.geteuid():
        # The groups in any case: systemd-run changes the user and the group and leaves root's others.
        groups = os.getgrouplist(owner.name, owner.gid)
        if prefix:
            environ = {name: environ[name] for name in _HARMLESS if name in environ}
        else:
            uid, gid = owner.uid, owner.gid
    try:
        return subprocess.Popen(
            [*map(encode, (*prefix, *via)), b"tmux", b"-u", *map(encode, words)],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={encode(name): encode(value) for name, value in environ.items() if name not in _OF_A_PANE},
            cwd="/",
            user=uid,
            group=gid,
            extra_groups=groups,
            preexec_fn=first,
        )
    except FileNotFoundError:
        raise TmuxMissing(_MISSING) from None


def gather(clients: Sequence[Client]) -> None:
    """Wait until every client has ended or used up its time; a hung one costs only itself."""
    with selectors.DefaultSelector() as selector:
        open_pipes = dict.fromkeys(clients, 0)
        for client in clients:
            for stream, events in client.streams():
                selector.register(stream, events, (client, stream))
                open_pipes[client] += 1
        waiting = set(clients)
        while waiting:
            pause = min(client.deadline for client in waiting) - time.monotonic()
            for key, _ in selector.select(max(0.0, pause)):
                client, pipe = key.data
                # Unregister before serving: serving may close the pipe, and a closed one cannot be unregistered.
                selector.unregister(pipe)
                if client.serve(pipe):
                    selector.register(pipe, key.events, key.data)
                else:
                    open_pipes[client] -= 1
            waiting -= _settle(waiting, open_pipes, selector)


def _settle(waiting: set[Client], open_pipes: Mapping[Client, int], selector: selectors.BaseSelector) -> set[Client]:
    """End the clients that are done or late, and return them."""
    now = time.monotonic()
    settled = {client for client in waiting if open_pipes[client] == 0 or client.deadline <= now}
    for client in settled:
        if open_pipes[client]:
            for key in [key for key in selector.get_map().values() if key.data[0] is client]:
                selector.unregister(key.fileobj)
        client.end(kill=open_pipes[client] > 0)
    return settled


def passed_on(ours: Mapping[str, str]) -> dict[str, str]:
    """Return what a tmux client needs of our environment, and is given."""
    return {name: ours[name] for name in _PASSED_ON if name in ours}
