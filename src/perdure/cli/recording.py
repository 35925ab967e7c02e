"""Screens kept as files: the lines in a `.txt`, title and verdict in a `.json` beside it.

That is what the tests of the screen rules read: a wrong status somebody saw becomes a test by putting the two files
beside the others and the right state into the `.json`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from perdure.errors import NotFound, PerdureError, UsageError
from perdure.model.decoding import decoder_of
from perdure.model.masked import without_keys
from perdure.model.secrets import redact_text
from perdure.snapshots.explain import Verdict

#: More than any terminal shows.
_MOST = 4 << 20
_ESCAPES = re.compile(r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-9;:?<=>]*[ -/]*[@-~]|[()][A-Z0-9]|[ -/]*[0-~])")
_HOME = "/home/dev"
#: Pipes that whoever started us has opened for us: `<(command)`.
_HANDED_OVER = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")


class Recording(Struct, frozen=True, kw_only=True):
    """A screen from a file, and what the file beside it says of it."""

    lines: tuple[str, ...]
    title: str = ""
    agent: str | None = None


class _Label(Struct, frozen=True, kw_only=True):
    agent: str | None = None
    title: str = ""


def read_recording(path: str) -> Recording:
    """Return the screen in a file, colours taken out, with title and agent from the `.json` beside it if there is one."""
    try:
        raw = _read(path, handed_over=path.startswith(_HANDED_OVER))
    except FileNotFoundError:
        raise NotFound(f"There is no file {path}.") from None
    except (OSError, ValueError) as error:
        raise PerdureError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if len(raw) > _MOST:
        raise UsageError(f"{path} is no screen: it has more than {_MOST >> 20} MiB.")
    text = _ESCAPES.sub("", raw.decode(errors="replace")).replace("\r", "")
    label = _read_label(os.path.splitext(path)[0] + ".json")
    return Recording(lines=tuple(text.removesuffix("\n").split("\n")), title=label.title, agent=label.agent)


def _read(path: str, *, handed_over: bool = False) -> bytes:
    """Return what is in a file, a byte more than fits at most. A pipe by name is not waited for: it may have no writer."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        kind = os.fstat(file.fileno()).st_mode
        if handed_over and stat.S_ISFIFO(kind):
            os.set_blocking(file.fileno(), True)
        elif not stat.S_ISREG(kind):
            raise ValueError("it is no regular file")
        return file.read(_MOST + 1)


def _read_label(path: str) -> _Label:
    try:
        return decoder_of(_Label).decode(_read(path))
    except (OSError, ValueError):
        return _Label()  # a file of that name that is something else is none of ours


def write_recording(
    directory: str, lines: Sequence[str], title: str, verdict: Verdict, *, home: str, width: int
) -> str:
    """Keep a screen with its verdict, without keys and the user's paths; return the path without its ending.

    `width` is the pane's. Nothing that is there already is written over, and what cannot be kept whole is not kept.
    """
    label = {
        "agent": verdict.agent,
        "title": _impersonal(redact_text(title), home),
        "state": verdict.state,
        "reason": verdict.reason,
        "frozen": verdict.frozen,
        "rule": verdict.rule,
        "confidence": verdict.confidence,
    }
    text = "\n".join(_impersonal(line, home) for line in without_keys(lines, width)) + "\n"
    stem = f"{verdict.agent or 'screen'}-{verdict.state or ('viewer' if verdict.frozen else 'unknown')}"
    try:
        os.makedirs(directory, exist_ok=True)
        path = _free(os.path.join(directory, stem))
        encoded = msgspec.json.format(msgspec.json.encode(label), indent=2) + b"\n"
        _write_new({f"{path}.txt": text.encode(errors="replace"), f"{path}.json": encoded})
    except OSError as error:
        raise PerdureError(f"The screen cannot be kept in {directory}: {error.strerror}.") from error
    return path


def _free(stem: str) -> str:
    number = 1
    while any(os.path.lexists(f"{stem}-{number}{ending}") for ending in (".txt", ".json")):
        number += 1
    return f"{stem}-{number}"


def _write_new(files: Mapping[str, bytes]) -> None:
    """Write all of these, or none."""
    written: list[str] = []
    try:
        for path, data in files.items():
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                written.append(path)
                file.write(data)
    except OSError:
        for path in written:
            os.unlink(path)
        raise


def _impersonal(line: str, home: str) -> str:
    """Return the line with the user's home called otherwise, and what stands right of it still where it was."""
    if len(home) < 2:
        return line
    before, found, after = line.partition(home)
    if not found:
        return line
    after = _impersonal(after, home)
    gap = re.search(r" {2,}", after)
    change = len(home) - len(_HOME)
    if gap is not None and change and len(gap[0]) + change >= 1:
        after = after[: gap.start()] + " " * (len(gap[0]) + change) + after[gap.end() :]
    return before + _HOME + after
