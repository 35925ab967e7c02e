"""Two files in the state directory, a line of JSON for each thing: `access.log`, who asked for what, and `audit.log`, who did what.

No query, no header, no body; what looks like a secret is `***`. Lines are written in a thread of their own: no request waits for a
disk. Where they cannot be written, the daemon's own log says so once.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from threading import BoundedSemaphore
from typing import Any

import msgspec

from perdure.api.caller import Caller
from perdure.model.secrets import redact_text
from perdure.model.text import as_text

#: A file is set aside when it is this long, and this many of those are kept.
LARGEST, KEPT = 4 << 20, 3
#: How many lines may wait for a disk; more are not written.
_MOST_WAITING = 10_000
#: No text in a line is longer.
_LONGEST = 500

log = logging.getLogger(__name__)


class LineFile:
    """A file lines are added to, the owner's alone, set aside when it is long."""

    def __init__(self, path: str, largest: int = LARGEST, kept: int = KEPT) -> None:
        self._path = path
        self._largest = largest
        self._kept = kept

    def add(self, line: bytes) -> None:
        """Write a line. Raises OSError."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(self._path, flags, 0o600)
        try:
            if os.fstat(handle).st_size + len(line) > self._largest:
                os.close(handle)
                self._set_aside()
                handle = os.open(self._path, flags, 0o600)
            os.write(handle, line)
        finally:
            os.close(handle)

    def _set_aside(self) -> None:
        names = [self._path, *(f"{self._path}.{number}" for number in range(1, self._kept + 1))]
        for older, newer in reversed(list(zip(names[1:], names, strict=False))):
            with suppress(FileNotFoundError):
                os.replace(newer, older)


class Logs:
    """The access log and the audit log of a state directory. To be closed."""

    def __init__(self, state_dir: str, now: Callable[[], datetime]) -> None:
        self._now = now
        self._access = LineFile(os.path.join(state_dir, "access.log"))
        self._audit = LineFile(os.path.join(state_dir, "audit.log"))
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="api-log")
        self._room = BoundedSemaphore(_MOST_WAITING)
        self._fails = False
        #: How many requests were answered with which status.
        self.answered: Counter[int] = Counter()

    def access(self, *, status: int, **facts: object) -> None:
        """Write down that something was asked for, and how it was answered. Never waits."""
        self.answered[status] += 1
        self._write(self._access, {**facts, "status": status})

    def audit(self, caller: Caller, action: str, target: str, **facts: object) -> None:
        """Write down that somebody did something. Never waits."""
        who = {"user": caller.user, "uid": caller.uid, "token": caller.token}
        self._write(self._audit, {**who, "action": action, "target": target, **facts})

    @contextmanager
    def auditing(self, caller: Caller, action: str, target: str, **facts: object) -> Iterator[dict[str, object]]:
        """Write down what somebody does in the block, however that ends; what came of it is put into what is given."""
        came: dict[str, object] = {"result": "not known"}
        try:
            yield came
        except Exception as error:
            came["result"] = f"failed: {type(error).__name__}"
            raise
        finally:
            self.audit(caller, action, target, **facts, **came)

    def close(self) -> None:
        """Write what is still to be written, and end."""
        self._writer.shutdown(wait=True)

    def _write(self, file: LineFile, facts: dict[str, object]) -> None:
        if not self._room.acquire(blocking=False):
            return
        line = {"at": self._now(), **{name: _shown(value) for name, value in facts.items()}}
        try:
            self._writer.submit(self._written, file, line)
        except RuntimeError:
            self._room.release()  # the daemon ends

    def _written(self, file: LineFile, line: dict[str, Any]) -> None:
        try:
            file.add(msgspec.json.encode(line, enc_hook=str) + b"\n")
            self._fails = False
        except OSError as error:
            if not self._fails:
                log.warning("who does what is not written down: %s", error)
            self._fails = True
        finally:
            self._room.release()


def _shown(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = as_text(redact_text(value))
    assert isinstance(text, str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
