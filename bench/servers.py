"""Private tmux servers of a given shape and size, full of idle shells."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct

from bench.sandbox import PATIENCE, BenchFailed, Sandbox, run

#: Lines each pane has printed, half of them with colour.
LINES = 200

_WORDS = "a step of some build that nobody watches, with the paths and the timings that builds print; "

# No two panes print the same: equal scrollback would be stored once, and flatter the save.
_FILL = """\
i=0
while [ $i -lt {half} ]; do
    printf '\\033[32mok\\033[0m %s %d {words}\\n' "$TMUX_PANE" $i
    printf '   %s %d {words}\\n' "$TMUX_PANE" $i
    i=$((i + 1))
done
PATH={folder}:$PATH
exec env -- -sh
"""

# Whatever a shell that is still starting may change: when two looks agree, the server has come to rest.
_REST = "#{pane_id} #{history_size} #{pane_height} #{pane_current_command} #{window_name}"
#: tmux renames a window at most twice a second.
_PAUSE = 0.6


class Shape(Struct, frozen=True, kw_only=True):
    """How panes are spread over windows and sessions."""

    name: str
    about: str
    panes_per_window: int
    windows_per_session: int

    def sessions(self, panes: int) -> list[list[int]]:
        """Return the sizes of the windows of each session; the last ones take what is left."""
        step = self.panes_per_window
        windows = [min(step, panes - start) for start in range(0, panes, step)]
        step = self.windows_per_session
        return [windows[start : start + step] for start in range(0, len(windows), step)]


SHAPES = {
    shape.name: shape
    for shape in (
        Shape(name="Nx1", about="sessions of one pane", panes_per_window=1, windows_per_session=1),
        Shape(name="Nx4", about="windows of 4 panes, 5 a session", panes_per_window=4, windows_per_session=5),
    )
}


class Server(Struct, frozen=True, kw_only=True):
    """A running server, and the environment in which its socket is the one tmux and perdure find by themselves."""

    panes: int
    socket: str
    environ: Mapping[str, str]

    def tmux(self, *args: str, script: str = "") -> str:
        """Return what a tmux command printed."""
        return run(["tmux", "-S", self.socket, *args], self.environ, script=script)


@contextmanager
def serve(sandbox: Sandbox, shape: Shape, panes: int, width: int) -> Iterator[Server]:
    """Run a server with that many idle panes that printed lines this wide, and end it, whatever happens meanwhile."""
    base = sandbox.directory("tmux")
    folder = os.path.join(base, f"tmux-{os.getuid()}")
    os.mkdir(folder, 0o700)
    server = Server(
        panes=panes, socket=os.path.join(folder, "default"), environ={**sandbox.environ, "TMUX_TMPDIR": base}
    )
    # -D keeps it our child: there is no moment at which it runs and we do not know its pid.
    process = subprocess.Popen(
        ["tmux", "-D", "-f", "/dev/null", "-S", server.socket],
        env=server.environ,
        cwd="/",
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        pane = f"-c {sandbox.environ['HOME']} sh {_fill(sandbox, width)}"
        await_server(server.socket)
        server.tmux("source-file", "-", script=_script(shape, panes, pane))
        _come_to_rest(server)
        yield server
    finally:
        _end(process)


def _fill(sandbox: Sandbox, width: int) -> str:
    """Return the script every pane runs: it prints, and becomes an idle shell."""
    folder = sandbox.directory("fill")
    path = os.path.join(folder, "fill.sh")
    # A login shell is one whose name begins with a dash, as that of every shell tmux starts by itself.
    os.symlink("/bin/sh", os.path.join(folder, "-sh"))
    # What stands before the words takes about ten columns.
    words = (_WORDS * (width // len(_WORDS) + 1))[: max(0, width - 10)]
    with open(path, "w", encoding="ascii") as file:
        file.write(_FILL.format(half=LINES // 2, words=words, folder=folder))
    return path


def _script(shape: Shape, panes: int, pane: str) -> str:
    """Return the tmux commands that make every session, window and pane."""
    lines = []
    for number, windows in enumerate(shape.sessions(panes)):
        for index, size in enumerate(windows):
            target = f"-t =s{number}:{index}"
            begin = f"new-window -d {target}" if index else f"new-session -d -s s{number} -x 200 -y 50"
            lines.append(f"{begin} {pane}")
            lines += [f"split-window -d {target} {pane}", f"select-layout {target} tiled"] * (size - 1)
    return "\n".join(lines) + "\n"


def _come_to_rest(server: Server) -> None:
    looks = [""]

    def at_rest() -> bool:
        looks.append(server.tmux("list-panes", "-a", "-F", _REST))
        return looks[-1] == looks[-2] and _full(looks[-1], server.panes)

    _wait(at_rest, _PAUSE, f"the {server.panes} panes did not come to rest")


def _full(look: str, panes: int) -> bool:
    """Every pane is there and has printed all its lines: those that scrolled out and those on the screen."""
    rows = [line.split() for line in look.splitlines()]
    return len(rows) == panes and all(int(history) + int(height) > LINES for _, history, height, *_ in rows)


def await_server(path: str) -> None:
    """Wait until a server listens on a socket: its file is there a moment before."""
    _wait(lambda: listens(path), 0.01, "the server did not start")


def listens(path: str) -> bool:
    """Say whether a server listens; as after a crash, the file of one that has ended is still there."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0


def _wait(condition: Callable[[], bool], pause: float, otherwise: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise BenchFailed(otherwise)
        time.sleep(pause)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server as it would be asked to; the panes are hung up by it."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
