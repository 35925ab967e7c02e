"""A control-mode client in a session of somebody's, for as long as one of its panes is watched.

tmux tells such a client what is printed in the session it is attached to, and in no other. It has no say in any window's size,
and changes neither the session's current window nor its environment. What it still does: the session counts as attached,
and the user's hooks for that run. It is not for a session with `destroy-unattached`: tmux would end that with our leaving,
and tmux 3.3a itself may end with it (see tmux/control.py).
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO, NamedTuple

from perdure.errors import NotFound, Unanswered
from perdure.model.text import decode
from perdure.tmux import run
from perdure.tmux.act import Spot
from perdure.tmux.control import Reply, ending_with_us
from perdure.tmux.heard import Heard, Notice, Output
from perdure.tmux.quote import line
from perdure.tmux.sockets import refuse_strangers

#: How much is read at once: whatever else the loop has to do comes after that.
_PIECE = 1 << 16
#: After how many seconds without our reading a pane's output tmux lets go of it, and says `%pause`.
_PATIENCE = 1
#: The first version of tmux that is taken to survive what happens while a client is attached: the fault was mended in June 2026, when
#: 3.7 was being made. Which release has that was not tried.
_MENDED = (3, 8)
#: How long a client may take to leave, in seconds, before it is made to.
_LEAVING = 3.0

Command = Sequence[str]
#: Called with a reply for each command, in the order of the stream; with None when the client has ended before.
Then = Callable[[Sequence[Reply] | None], None]


class _Asked(NamedTuple):
    """A line of commands that was sent. The reply to a refused one is the last."""

    mark: str
    commands: int
    then: Then


class Whereabouts(NamedTuple):
    """Where a pane is."""

    #: The process of its server.
    server: int
    #: When that began (`start_time`).
    since: int
    #: The id of a session it is in.
    session: str
    #: What tmux calls its version there.
    version: str
    #: Whether the session ends when nobody is attached any more.
    is_fleeting: bool


def locate(spot: Spot) -> Whereabouts:
    """Return where a pane is; blocks. Raises NotFound, Unanswered, Refused and TmuxMissing."""
    refuse_strangers(spot.socket, spot.owner)
    words = [
        "display-message",
        "-p",
        "-t",
        spot.pane,
        "#{pane_id} #{pid} #{start_time} #{session_id} #{version} #{destroy-unattached}",
    ]
    client = run.start(spot.socket, words, owner=spot.owner, timeout=spot.timeout)
    run.gather([client])
    if client.status is None:
        raise Unanswered(f"The tmux server on {spot.socket} did not answer within {spot.timeout:g} s.")
    told = decode(client.answer).split()
    if client.status or len(told) < 5 or told[0] != spot.pane:
        raise NotFound(f"{spot.pane} is not there any more.")
    server, since = int(told[1]), int(told[2])
    if spot.server not in (None, server) or spot.since not in (None, since):
        raise NotFound(f"{spot.pane} is not there any more.")
    return Whereabouts(server, since, told[3], told[4], told[5:] not in ([], ["0"], ["off"]))


def is_safe(version: str) -> bool:
    """Say whether a client may be attached to a tmux of this version without endangering what runs there.

    Before, with any control-mode client attached, the whole server dies when a session's current window changes and the
    session ends in the same moment (tmux's issue 5243): by several `kill-window` in one command line, or when all programs of a session are killed at once.
    """
    numbers = re.search(r"(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= _MENDED


async def attach(
    spot: Spot, session: str, hear: Callable[[Output | Notice], None], ended: Callable[[], None]
) -> Attached:
    """Attach a client to a session, by its id. Raises Unanswered, Refused and TmuxMissing.

    `hear` is called with everything that is said, in its order; `ended` once, when the client has ended without
    having been told to.
    """
    # In a thread that stays: the kernel would end the client with the thread that started it.
    process = await asyncio.get_running_loop().run_in_executor(None, _start, spot, session)
    client = Attached(process, spot.socket, hear, ended)
    try:
        (reply,) = await client.ask([["display-message", "-p", "#{pid} #{session_id}"]])
        if spot.server is not None and reply.lines != (f"{spot.server} {session}",):
            raise Unanswered(f"Another tmux server answers on {spot.socket}.")
    except BaseException:
        client.leave()
        raise
    return client


class Attached:
    """The client. All of it belongs to one event loop; nothing waits but `ask` and `gone`."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        socket: str,
        hear: Callable[[Output | Notice], None],
        ended: Callable[[], None],
    ) -> None:
        self._process = process
        self._socket = socket
        self._hear = hear
        self._ended = ended
        self._heard = Heard()
        self._asked: deque[_Asked] = deque()
        self._replies: list[Reply] = []
        self._unsent = bytearray()
        self._is_leaving = False
        self._is_confused = False
        self._loop = asyncio.get_running_loop()
        self._gone = asyncio.Event()
        for stream in (self._stdin, self._stdout):
            os.set_blocking(stream.fileno(), False)
        self._loop.add_reader(self._stdout.fileno(), self._read)

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def tell(self, commands: Sequence[Command], then: Then) -> None:
        """Have commands done together, as one: nothing is read from any pane in between.

        `then` is called where their replies stand in the stream. A refused command is the last that is done.
        """
        if self._is_leaving or self._gone.is_set():
            then(None)
            return
        mark = os.urandom(8).hex()
        lines = [line(command).rstrip(b"\n") for command in (*commands, ("display-message", "-p", mark))]
        self._asked.append(_Asked(mark, len(commands), then))
        self._unsent += b" ; ".join(lines) + b"\n"
        self._write()

    async def ask(self, commands: Sequence[Command], *, timeout: float = run.TIMEOUT) -> Sequence[Reply]:
        """Have commands done together and return their replies. Raises Unanswered."""
        answered: asyncio.Future[Sequence[Reply] | None] = self._loop.create_future()

        def then(replies: Sequence[Reply] | None) -> None:
            if not answered.done():
                answered.set_result(replies)

        self.tell(commands, then)
        try:
            async with asyncio.timeout(timeout):
                replies = await answered
        except TimeoutError:
            raise Unanswered(f"The tmux server on {self._socket} did not answer within {timeout:g} s.") from None
        if replies is None:
            because = f": {self._heard.aside}" if self._heard.aside else ""
            raise Unanswered(f"The tmux client for {self._socket} has ended{because}.")
        return replies

    def leave(self) -> None:
        """Have the client end; nothing more is heard from it."""
        if self._is_leaving:
            return
        self._is_leaving = True
        if not self._gone.is_set():
            # The end of its input ends it, and whatever was sent is done before.
            self._write()
            self._loop.call_later(_LEAVING, self._give_up)

    async def gone(self) -> None:
        """Wait until the client has left."""
        await self._gone.wait()

    def _give_up(self) -> None:
        if not self._gone.is_set():
            self._process.kill()

    def _write(self) -> None:
        # Not a word before the session is there: tmux may well read our commands before its own arguments.
        if self._gone.is_set() or not (self._heard.has_begun or self._is_leaving):
            return
        try:
            while self._unsent:
                del self._unsent[: os.write(self._stdin.fileno(), self._unsent[:_PIECE])]
        except BlockingIOError:
            self._loop.add_writer(self._stdin.fileno(), self._write)
            return
        except BrokenPipeError:
            # The other pipe will say that the client has ended.
            self._unsent.clear()
        self._loop.remove_writer(self._stdin.fileno())
        if self._is_leaving:
            self._stdin.close()

    def _read(self) -> None:
        try:
            data = os.read(self._stdout.fileno(), _PIECE)
        except BlockingIOError:
            return
        if not data:
            self._is_over()
            return
        had_begun = self._heard.has_begun
        self._heard.feed(data)
        items, self._heard.items = self._heard.items, []
        if self._heard.is_confused:
            # A text has imitated tmux, and none of this can be trusted.
            self._process.kill()
            return
        for item in items:
            if isinstance(item, Reply):
                self._answer(item)
            elif not self._is_leaving:
                self._hear(item)
        if self._is_confused:
            self._process.kill()
        elif not had_begun:
            self._write()

    def _answer(self, reply: Reply) -> None:
        if not self._asked:
            return
        asked = self._asked[0]
        is_last = reply == Reply((asked.mark,), None)
        if not is_last:
            self._replies.append(reply)
        if is_last or reply.error:
            self._asked.popleft()
            replies, self._replies = self._replies, []
            # As by an alias of the user's that is two commands: nothing says which reply is whose.
            self._is_confused = is_last and len(replies) != asked.commands
            asked.then(None if self._is_confused else replies)

    def _is_over(self) -> None:
        """The client has ended, or is just about to."""
        self._loop.remove_reader(self._stdout.fileno())
        if not self._stdin.closed:
            self._loop.remove_writer(self._stdin.fileno())
            self._stdin.close()
        self._stdout.close()
        self._gone.set()
        self._loop.run_in_executor(None, self._process.wait)
        asked, self._asked = self._asked, deque()
        for each in asked:
            each.then(None)
        if not self._is_leaving:
            self._ended()


def _start(spot: Spot, session: str) -> subprocess.Popen[bytes]:
    refuse_strangers(spot.socket, spot.owner)
    via, first = ending_with_us()
    # By the session's id: given a pane's, tmux would make that pane and its window the current ones.
    words = ["-S", spot.socket, "-C", "attach-session", "-E", "-t", session]
    return run.spawn(
        [*words, "-f", f"ignore-size,pause-after={_PATIENCE}"],
        owner=spot.owner,
        environ=run.passed_on(os.environ),
        stdin=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        via=via,
        first=first,
    )
