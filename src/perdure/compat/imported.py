"""What every import needs: the sentence for a broken file, and stand-ins for what no file tells."""

from __future__ import annotations

from datetime import datetime

from perdure.errors import ImportFailed
from perdure.model.server import ServerProcess
from perdure.model.text import decode

#: The size tmux gives a window nobody has looked at yet; used where a file says nothing.
UNSEEN_SIZE = (80, 24)


def broken(line: int, what: str) -> ImportFailed:
    """Return the error that names the line; `what` is a sentence without its full stop."""
    return ImportFailed(f"Line {line}: {what}.", line=line)


def imported_process(taken_at: datetime) -> ServerProcess:
    """Return the process of a server that is only known from a file: no pid, no version."""
    return ServerProcess(pid=0, started_at=taken_at, version="imported")


def rows(raw: bytes) -> list[tuple[int, list[str]]]:
    """Return line numbers and tab-separated columns, refusing what no shell script can have written whole."""
    if not raw:
        raise broken(1, "the file is empty")
    lines = raw.split(b"\n")
    if lines.pop():
        # The scripts end every line, so a last one that is open was cut off, and may be cut inside a path.
        raise broken(len(lines) + 1, "the file ends in the middle of this line")
    for number, line in enumerate(lines, 1):
        if b"\0" in line:
            raise broken(number, "there are NUL bytes, as a crash leaves them in a file")
    return [(number, [decode(column) for column in line.split(b"\t")]) for number, line in enumerate(lines, 1)]
