"""What the tests of restoring share: a picture of a server that two servers can be compared by, and people at it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tests.acceptance.kit import only_json, wait_for
from tests.at_rest import rest_of
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import PATIENCE, TmuxFailed, TmuxServer

#: Everything that is compared, as a tree of plain values without a single id of tmux's.
Picture = dict[str, Any]

_SESSIONS = "session_id session_name session_group session_path".split()
_WINDOWS = (
    "session_id window_id window_index window_active window_last_flag window_name window_zoomed_flag"
    " window_width window_height window_layout window_visible_layout"
).split()
_PANES = (
    "window_id pane_id pane_index pane_active pane_last pane_dead pane_dead_status pane_dead_signal"
    " pane_width pane_height pane_title pane_pid pane_synchronized"
).split()
_LEAF = re.compile(r"(\d+x\d+,\d+,\d+),(\d+)")
_MARK = "4b7e and nothing else"


def picture(tmux: TmuxServer) -> Picture:
    """Return everything that has to come back, read by this test's own questions to tmux and the kernel."""
    sessions = _rows(tmux, "list-sessions", _SESSIONS)
    windows = _rows(tmux, "list-windows", _WINDOWS, "-a")
    panes = _rows(tmux, "list-panes", _PANES, "-a")
    ids = [*(each["session_id"] for each in sessions), *(each["window_id"] for each in windows)]
    settings = _settings(tmux, [*ids, *(each["pane_id"] for each in panes)])
    return {
        session["session_name"]: {
            "group": session["session_group"],
            "path": session["session_path"],
            "options and environment": settings[session["session_id"]],
            "windows": {
                int(window["window_index"]): _window(window, panes, settings)
                for window in windows
                if window["session_id"] == session["session_id"]
            },
        }
        for session in sessions
    }


def differences(before: object, after: object, where: str = "") -> list[str]:
    """Return one line for everything that is not as it was."""
    if isinstance(before, dict) and isinstance(after, dict):
        found = []
        for key in [*before, *(key for key in after if key not in before)]:
            found += differences(before.get(key, "(absent)"), after.get(key, "(absent)"), f"{where}/{key}")
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            line
            for number, (one, other) in enumerate(zip(before, after, strict=True))
            for line in differences(one, other, f"{where}/{number}")
        ]
    return [] if before == after else [f"{where}: {before!r:.300} -> {after!r:.300}"]


def await_same(before: Picture, tmux: TmuxServer, leaving: Sequence[str] = ()) -> None:
    """Wait until a server is as it was: programs take their time to start. `leaving` are sessions that do not count."""
    found = ["not looked yet"]

    def is_same() -> bool:
        try:
            now = picture(tmux)
        except TmuxFailed as error:
            # Something has gone between two questions about it.
            found[:] = [str(error)]
            return False
        found[:] = differences(before, {name: each for name, each in now.items() if name not in leaving})
        return not found

    with suppress(AssertionError):
        wait_for(is_same, "the same picture")
    assert not found, "\n".join(["not as it was:", *found])


def await_calm(tmux: TmuxServer) -> Picture:
    """Return the picture once it does not change any more: every program is there and waits for something."""
    last: list[Picture] = [{}]
    is_at_rest = rest_of(tmux)

    def is_calm() -> bool:
        before, last[0] = last[0], picture(tmux)
        running = [pane for pane in _panes_of(last[0]) if not pane["dead"]]
        names = {window["name"] for session in last[0].values() for window in session["windows"].values()}
        # A pane is another tmux for a moment, and a window may be called after that for a little longer.
        is_started = "tmux" not in names and all(pane["argv"] and pane["argv"][0] != "tmux" for pane in running)
        return is_at_rest() and before == last[0] and is_started

    wait_for(is_calm, "a server on which nothing changes")
    return last[0]


def _panes_of(shown: Picture) -> Iterator[dict[str, Any]]:
    for session in shown.values():
        for window in session["windows"].values():
            yield from window["panes"]


def count_panes(shown: Picture) -> int:
    """Return how many panes a person would count: those of a group in each of its sessions."""
    return sum(1 for _ in _panes_of(shown))


def _rows(tmux: TmuxServer, command: str, names: Sequence[str], *flags: str) -> list[dict[str, str]]:
    # Lengths first: a title may hold whatever would part two fields.
    format = "".join(f"#{{n:{name}}}:#{{{name}}}" for name in names)
    answer = tmux.run(command, *flags, "-F", format)
    rows, at = [], 0
    while at < len(answer):
        row = {}
        for name in names:
            length, _, _ = answer[at : at + 12].partition(b":")
            at += len(length) + 1
            row[name] = answer[at : at + int(length)].decode(errors="surrogateescape")
            at += int(length)
        assert answer[at : at + 1] == b"\n", answer[at : at + 40]
        at += 1
        rows.append(row)
    return rows


def _settings(tmux: TmuxServer, ids: Sequence[str]) -> dict[str, list[str]]:
    """Return what is set on each session, window and pane, all asked for at once."""
    kinds = {"$": (), "@": ("-w",), "%": ("-p",)}
    words: list[str] = []
    unique = list(dict.fromkeys(ids))
    for id in unique:
        words += ["show-options", *kinds[id[0]], "-t", id, ";"]
        words += ["show-environment", "-t", id, ";"] if id.startswith("$") else []
        words += ["display-message", "-p", _MARK, ";"]
    parts = tmux.run(*words[:-1]).decode(errors="surrogateescape").split(f"{_MARK}\n")
    assert len(parts) == len(unique) + 1
    return {id: sorted(part.splitlines()) for id, part in zip(unique, parts, strict=False)}


def _window(
    window: Mapping[str, str], panes: Sequence[Mapping[str, str]], settings: Mapping[str, list[str]]
) -> dict[str, Any]:
    mine = {pane["pane_id"]: pane for pane in panes if pane["window_id"] == window["window_id"]}
    indexes = {id.removeprefix("%"): pane["pane_index"] for id, pane in mine.items()}
    return {
        "name": window["window_name"],
        "active": window["window_active"],
        "last": window["window_last_flag"],
        "zoomed": window["window_zoomed_flag"],
        "size": f"{window['window_width']}x{window['window_height']}",
        "layout": _without_ids(window["window_layout"], indexes),
        "visible layout": _without_ids(window["window_visible_layout"], indexes),
        "options": settings[window["window_id"]],
        "panes": [_pane(pane, settings) for pane in mine.values()],
    }


def _without_ids(layout: str, indexes: Mapping[str, str]) -> str:
    """A layout begins with a checksum over everything, ids included."""
    return _LEAF.sub(lambda leaf: f"{leaf[1]},#{indexes[leaf[2]]}", layout.partition(",")[2])


def _pane(pane: Mapping[str, str], settings: Mapping[str, list[str]]) -> dict[str, Any]:
    dead = pane["pane_dead"] == "1"
    argv, cwd = ([], "") if dead else foreground(int(pane["pane_pid"]))
    return {
        "index": pane["pane_index"],
        "active": pane["pane_active"],
        "last": pane["pane_last"],
        "title": pane["pane_title"],
        "size": f"{pane['pane_width']}x{pane['pane_height']}",
        "synchronized": pane["pane_synchronized"],
        "dead": dead,
        "status": pane["pane_dead_status"],
        "signal": pane["pane_dead_signal"],
        "options": settings[pane["pane_id"]],
        # How a waiting shell was called is nobody's business but its own.
        "argv": ["a shell"] if argv and os.path.basename(argv[0]).lstrip("-") in ("sh", "dash", "bash") else argv,
        "cwd": cwd,
    }


def foreground(pid: int) -> tuple[list[str], str]:
    """Return the words and the directory of what runs in the foreground of the terminal a process is on."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            leader = int(file.read().rpartition(b")")[2].split()[5])
        with open(f"/proc/{leader}/cmdline", "rb") as file:
            words = file.read().split(b"\0")[:-1]
        return [os.fsdecode(word) for word in words], os.readlink(f"/proc/{leader}/cwd")
    except (OSError, ValueError, IndexError):
        return [], ""


def contents(tmux: TmuxServer, target: str) -> list[str]:
    """Return everything a pane has printed, colours included, without the empty lines below."""
    return _without_empty_end(tmux.run("capture-pane", "-epJ", "-S", "-", "-t", target))


def all_contents(tmux: TmuxServer) -> dict[str, list[str]]:
    """Return what `contents` does of every pane, asked at once: there may be many, and they may be asked for often."""
    format = "#{session_name}:#{window_index}.#{pane_index}"
    targets = tmux.run("list-panes", "-a", "-F", format).decode().split()
    end = f"── the end of a pane, {os.urandom(4).hex()} ──"
    words = [
        word
        for target in targets
        for word in ("capture-pane", "-epJ", "-S", "-", "-t", f"={target}", ";", "display-message", "-p", end, ";")
    ]
    texts = tmux.run(*words[:-1]).split(f"{end}\n".encode())
    return {target: _without_empty_end(text) for target, text in zip(targets, texts, strict=False)}


def _without_empty_end(text: bytes) -> list[str]:
    lines = text.decode(errors="replace").splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def restored(perdure: Perdure, *args: str) -> dict[str, Any]:
    """Restore, which has to go well, and return the answer."""
    ran = perdure("restore", "--json", *args)
    assert ran.code in (0, 4), (ran.code, ran.out, ran.err)
    answer = only_json(ran)
    failed = [step for step in answer["steps"] if step["result"] == "failed"]
    assert not failed, failed
    assert ran.code == 0, (ran.out, ran.err)
    return answer


def by_target(answer: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the steps of an answer by what they are about."""
    return {step["target"]: step for step in answer["steps"]}


def user_configuration(home: PrivateHome, text: str) -> str:
    """Write the tmux.conf a server of this user starts with, and return its path."""
    path = os.path.join(home.home, ".tmux.conf")
    with open(path, "w") as file:
        file.write(text)
    return path


@contextmanager
def attached(tmux: TmuxServer, width: int, height: int, *words: str) -> Iterator[None]:
    """Somebody at a terminal of this size, who runs `tmux words…` and stays for as long as the block."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    before = _clients(tmux)
    client = subprocess.Popen(
        ["tmux", "-u", "-S", tmux.socket, *words],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    os.close(terminal)
    reader = threading.Thread(target=_drain, args=(controller,), daemon=True)
    reader.start()
    try:
        wait_for(lambda: len(_clients(tmux)) > len(before), "somebody at a terminal")
        yield
    finally:
        client.kill()
        client.wait()
        reader.join(PATIENCE)
        os.close(controller)
        if tmux.alive:
            wait_for(lambda: len(_clients(tmux)) <= len(before), "nobody at the terminal")


def _clients(tmux: TmuxServer) -> list[bytes]:
    return tmux.run("list-clients", "-F", "#{client_tty}", check=False).split()


def _drain(controller: int) -> None:
    """Nobody reads what is shown, but a terminal that is full stops its client."""
    with suppress(OSError):
        while os.read(controller, 65536):
            pass
