"""A Python that has read most of the program's modules, and becomes the program as often as it is asked to.

Three quarters of what a short command costs is Python beginning, reading the same modules every time, and taking them
apart again. Whoever asks gets a process all the same, forked off before anything was done: with words, environment,
directory and streams of its own.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import re
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

#: What short commands come to need, and whatever those need. Anything else, one reads itself.
MODULES = (
    *(f"perdure.cli.{name}" for name in "chats_ls chats_setup chats_show check diff explain history hooks".split()),
    *(f"perdure.cli.{name}" for name in "jobs_ls jobs_setup ls missed restore restoring save send show".split()),
    *(f"perdure.cli.{name}" for name in "standing wait".split()),
    *(f"perdure.agents.{name}" for name in "aider amp children claude cline codex copilot cursor".split()),
    *(f"perdure.agents.{name}" for name in "gemini goose hermes opencode qwen simulant".split()),
    *(f"perdure.host.{name}" for name in "config directories files processes spool".split()),
    *(f"perdure.snapshots.{name}" for name in "capture former passing retention save".split()),
    *(f"perdure.store.{name}" for name in "check chats foreign jobs manifest migrations sqlite store".split()),
    "perdure.daemon.call",
    "perdure.live.deliver",
    "perdure.live.lifetimes",
    "perdure.live.weigh",
    "perdure.restore.build",
    "perdure.restore.plan",
    "rich.console",
    "rich.table",
    "sqlite3",
)
#: The variables by which Python itself, or what loads it, becomes another begin with these.
DECISIVE = ("PYTHON", "LC_", "LANG", "LD_")
#: Set to anything, every command is a Python of its own.
FRESH = "PERDURE_TEST_FRESH"


class Warm:
    """Who is asked for processes."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._decisive = _decisive(os.environ)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # Pipes, as those will have who are forked off: Python asks its streams what they are when it begins.
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Nothing of the test that happens to be the first.
                env={"PATH": os.environ["PATH"], **self._decisive},
            )

    def close(self) -> None:
        """End it. In a copy of the process that made it, nothing happens."""
        if os.getpid() == self._owner:
            self._control.close()
            self._process.communicate()

    def can(self, words: Sequence[str], env: Mapping[str, str]) -> bool:
        """Return whether one of its processes does what a Python of its own does."""
        # A daemon reads other modules, and lives for so long that it is seen how it began.
        return "up" not in words and _decisive(env) == self._decisive

    def run(
        self, words: Sequence[str], env: Mapping[str, str], cwd: str, input: bytes, timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Return how `perdure words…` ended and what it wrote; raises what `subprocess.run` does after too long."""
        deadline = time.monotonic() + timeout
        (read_in, write_in), (read_out, write_out), (read_err, write_err) = (os.pipe() for _ in range(3))
        answer, theirs = socket.socketpair()
        given = (read_in, write_out, write_err)
        socket.send_fds(self._control, [b"?"], [*given, theirs.fileno()])
        theirs.close()
        for end in given:
            os.close(end)
        with answer:
            order = {"words": list(words), "env": dict(env), "cwd": cwd, "umask": _umask()}
            answer.sendall(json.dumps(order).encode())
            answer.shutdown(socket.SHUT_WR)
            pid = int(_line(answer))
            try:
                out, err = _talk(write_in, input, (read_out, read_err), deadline)
                answer.settimeout(max(0.01, deadline - time.monotonic()))
                return int(_line(answer)), out, err
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(["perdure", *words], timeout) from None


def warm() -> Warm | None:
    """Return the one of this process, made when it is asked for first; none where there cannot be one, or shall not."""
    return _made() if sys.platform == "linux" and FRESH not in os.environ else None


@functools.cache
def _made() -> Warm:
    made = Warm()
    atexit.register(made.close)
    return made


def _decisive(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(DECISIVE)}


def _umask() -> int:
    """Read, not set and set back: another thread may make a file in between."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        found = re.search(r"^Umask:\s*([0-7]+)$", file.read(), re.MULTILINE)
    assert found is not None
    return int(found[1], 8)


def _line(answer: socket.socket) -> bytes:
    """Return the next line, which is short; nothing is read beyond it."""
    line = b""
    while not line.endswith(b"\n"):
        byte = answer.recv(1)
        assert byte, "nobody is there who could tell how it ended"
        line += byte
    return line


def _talk(stdin: int, input: bytes, outputs: tuple[int, int], deadline: float) -> tuple[bytes, bytes]:
    """Write all there is for a process, return what it writes until it closes its streams, and close our ends."""
    written: dict[int, list[bytes]] = {each: [] for each in outputs}
    os.set_blocking(stdin, False)
    with selectors.DefaultSelector() as waiting:
        for each in outputs:
            waiting.register(each, selectors.EVENT_READ)
        waiting.register(stdin, selectors.EVENT_WRITE)
        try:
            while waiting.get_map():
                ready = waiting.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise TimeoutError
                for key, _ in ready:
                    if key.fd == stdin:
                        input = _write(stdin, input)
                        is_over = not input
                    else:
                        written[key.fd].append(os.read(key.fd, 65536))
                        is_over = not written[key.fd][-1]
                    if is_over:
                        waiting.unregister(key.fd)
                        os.close(key.fd)
        finally:
            for key in list(waiting.get_map().values()):
                os.close(key.fd)
    out, err = (b"".join(pieces) for pieces in written.values())
    return out, err


def _write(stdin: int, input: bytes) -> bytes:
    """Return what is left to be written; nothing when nobody reads it."""
    try:
        return input[os.write(stdin, input) :] if input else b""
    except BrokenPipeError:
        return b""


def serve(control: socket.socket) -> None:
    """Fork off a process for whoever asks, and tell them how it ended. Returns in each of these processes."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([control.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _tell(running)
        if control.fileno() not in ready:
            continue
        asked, fds, _, _ = socket.recv_fds(control, 1, 4)
        if not asked:
            os._exit(0)
        answer = socket.socket(fileno=fds.pop())
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            with answer.makefile("rb") as file:
                order = json.load(file)
            for each in (control, answer, *running.values()):
                each.detach()
            _become(order, fds)
            return
        running[pid] = answer
        _say(answer, pid)
        for fd in fds:
            os.close(fd)


def _tell(running: dict[int, socket.socket]) -> None:
    """Tell of everybody who has ended."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with running.pop(pid) as answer:
            _say(answer, os.waitstatus_to_exitcode(status))


def _say(answer: socket.socket, number: int) -> None:
    try:
        answer.sendall(b"%d\n" % number)
    except OSError:
        pass  # whoever asked has gone


def _become(order: Any, streams: Sequence[int]) -> None:
    """Be what was asked for: nothing is left of who was asked but the modules."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    os.umask(order["umask"])
    os.chdir(order["cwd"])
    package = sys.modules["perdure"].__file__
    assert package is not None
    sys.path[0] = order["cwd"]
    sys.argv[:] = [os.path.join(os.path.dirname(package), "__main__.py"), *order["words"]]


def _end(code: int) -> NoReturn:
    """End as Python does, apart from taking all those modules apart, for which each would get a copy of its own."""
    ending: Any = threading
    ending._shutdown()
    ending = atexit
    ending._run_exitfuncs()
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        code = 120
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    """Read the modules, and serve until nobody can ask any more."""
    program: Any = import_module("perdure.cli.main")
    program._begin_lightly()
    for name in MODULES:
        import_module(name)
    # Whatever is here already is nobody's garbage.
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        code = program.main()
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        code = ended.code
    _end(code)


if __name__ == "__main__":
    main()
