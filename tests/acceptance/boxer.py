#!/usr/bin/env python3
"""A program with an input of its own, as most agents have: pastes come whole, Enter sends. It is told how to misbehave.

    boxer [--swallow N] [--trust] [--deaf]

It writes what it was told to `~/boxer.jsonl`. `--swallow`: so many Enters do nothing. `--trust`: it asks before anything.
`danger` makes it ask too, `/quit` ends it. `--deaf`: it never shows an input.
"""

from __future__ import annotations

import json
import os
import sys
import termios
import time
import tty

BEGIN, END = b"\x1b[200~", b"\x1b[201~"


class Boxer:
    """One run."""

    def __init__(self, words: list[str]) -> None:
        self.swallow = int(words[words.index("--swallow") + 1]) if "--swallow" in words else 0
        self.asks = "--trust" in words
        self.deaf = "--deaf" in words
        self.text = b""
        self.work = 0.0
        self.note = "nothing yet"

    def draw(self) -> None:
        """Show everything anew."""
        rows = [f"boxer · {self.note}", ""]
        if self.deaf:
            rows = ["loading"]
        elif self.asks:
            rows += ["Allow this?", "  y yes   n no"]
        else:
            if self.work:
                rows += ["~ working on it"]
            shown = self.text.decode(errors="replace").split("\n")
            if len(self.text) > 2000:
                shown = [f"[Pasted text #1 +{len(shown)} lines]"]
            rows += [
                "╭" + "─" * 40,
                *(f"│ {'> ' if not at else '  '}{line}" for at, line in enumerate(shown)),
                "╰" + "─" * 40,
            ]
            rows += ["  ready"]
        os.write(1, b"\x1b[H\x1b[2J" + "\r\n".join(rows[-22:]).encode())

    def told(self, text: str) -> None:
        """Hear something."""
        with open(os.path.expanduser("~/boxer.jsonl"), "a") as file:
            file.write(json.dumps(text) + "\n")
        if text == "/quit":
            raise SystemExit
        self.asks = text == "danger"
        self.work = 0.0 if self.asks else time.monotonic() + 0.4

    def heard(self, data: bytes) -> None:
        """Take one key, or one paste."""
        if self.asks:
            if data in (b"y", b"n"):
                self.asks, self.note = False, f"answered {data.decode()}"
        elif data in (b"\r", b"\n"):
            if self.swallow:
                self.swallow -= 1
            elif self.text.strip():
                text, self.text = self.text.decode(errors="surrogateescape"), b""
                self.told(text)
        elif data == b"\x15":
            self.text = b""
        else:
            self.text += data


def parts(buffer: bytes) -> tuple[list[bytes], bytes]:
    """Cut what was read into keys and pastes; what is not whole yet is left."""
    found = []
    while buffer:
        if buffer.startswith(BEGIN):
            if END not in buffer:
                break
            paste, _, buffer = buffer[len(BEGIN) :].partition(END)
            found.append(paste)
        elif BEGIN.startswith(buffer[: len(BEGIN)]) and len(buffer) < len(BEGIN) and buffer[:1] == b"\x1b":
            break
        else:
            found.append(buffer[:1])
            buffer = buffer[1:]
    return found, buffer


def main() -> None:
    """Run until told to end."""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    os.write(1, b"\x1b[?2004h")
    boxer, buffer = Boxer(sys.argv[1:]), b""
    import select

    try:
        while True:
            boxer.draw()
            wait = max(0.0, boxer.work - time.monotonic()) if boxer.work else None
            if not select.select([0], [], [], wait)[0]:
                boxer.work, boxer.note = 0.0, "done"
                continue
            data = os.read(0, 1 << 16)
            if not data:
                return
            found, buffer = parts(buffer + data)
            for each in found:
                boxer.heard(each)
    finally:
        os.write(1, b"\x1b[?2004l\x1b[H\x1b[2J")
        termios.tcsetattr(0, termios.TCSADRAIN, before)


if __name__ == "__main__":
    main()
