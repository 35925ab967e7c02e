"""What a tool was called with, and whether it came to anything: in the words a transcript has for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from shlex import join

from perdure.agents._json import decode_object, mapping
from perdure.ports import HostView, RecentView

#: Longer ones are cut, and end with an ellipsis.
_LONGEST = 200
#: What says best what a call is about, the best first. Contents of files are not among them.
_TELLING = (
    "command cmd commands script file_path filePath absolute_path path notebook_path file_name file filename skill "
    "pattern query url description instructions name title"
).split()
#: What a tool that edits and shows files calls a command, which is none of a shell's.
_VIEW = "view"
_OF_EDITORS = frozenset({_VIEW, "create", "str_replace", "insert", "undo_edit", "write"})
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_INTERPRETER = re.compile(r"-\w*c")
_CONTINUED = re.compile(r"(\\|&&|\|\|?|;|\bdo|\bthen)[ \t]*\r?\n")
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:?) (-?\d+)\s*$", re.IGNORECASE | re.MULTILINE)
#: How far above, or below, what a program printed it may be said how it ended.
_BESIDE = 400

#: Name of a tool, and what it was called with.
Call = tuple[str, str | None]


def detail_of(arguments: object) -> str | None:
    """Return the file or the command among the arguments of a call, on one line; None when nothing there is telling."""
    if isinstance(arguments, str):
        if not arguments.lstrip().startswith("{"):
            return _short(", ".join(_PATCHED.findall(arguments)[:8]) or arguments)
        arguments = decode_object(arguments.encode(errors="replace"))
    given = mapping(arguments)
    patch = next((value for key in ("patch", "input") if isinstance(value := given.get(key), str)), "")
    if files := _PATCHED.findall(patch):
        return _short(", ".join(files[:8]))
    command, path = given.get("command"), given.get("path")
    if isinstance(command, str) and command in _OF_EDITORS and isinstance(path, str):
        return _short(f"{_VIEW} {path}" if command == _VIEW else path)
    return next((said for key in _TELLING if (said := _value(given.get(key)))), None)


def _value(value: object) -> str | None:
    if isinstance(value, str):
        return _short(value)
    words = [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
    if len(words) > 1 and " " not in words[0]:
        return _short(words[2] if len(words) == 3 and _INTERPRETER.fullmatch(words[1]) else join(words))
    return _short("\n".join(words))


def _short(value: str) -> str | None:
    """One line, which a shell would read as it reads these."""
    value = _CONTINUED.sub(lambda end: " " if end[1] == "\\" else f"{end[1]} ", value[: 8 * _LONGEST])
    lines = (" ".join("".join(c if c.isprintable() else " " for c in line).split()) for line in value.splitlines())
    said = "; ".join(line for line in lines if line)
    return (said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…") or None


def names_of(calls: Sequence[Call]) -> str | None:
    """Return the names of several calls as a turn has them."""
    return ", ".join(name for name, _ in calls) or None


def details_of(calls: Sequence[Call]) -> str | None:
    """Return what several tools were called with as a turn has it: a line for each."""
    return "\n".join(detail or "" for _, detail in calls) if any(detail for _, detail in calls) else None


def failed_by(output: str | None, *, above: bool = False) -> bool | None:
    """Return whether a program failed by the exit code that is written below, or `above`, what it printed itself.

    None when none is written there: what the program printed is no evidence of how it ended.
    """
    said = output or ""
    if said.startswith("{"):
        answer = decode_object(said.encode(errors="replace")) or {}
        code = answer.get("exit_code", mapping(answer.get("metadata")).get("exit_code"))
        return code != 0 if isinstance(code, int) else None
    if above:
        found = [*_EXIT.finditer(said[:_BESIDE].partition("\nOutput:")[0])][:1]
    else:
        found = [*_EXIT.finditer(said[-_BESIDE:])][-1:]
    return int(found[0][1]) != 0 if found else None


def all_of(verdicts: Iterable[bool | None]) -> bool | None:
    """Return whether any of several failed; None when that is not said of all of them."""
    known = list(verdicts)
    if any(known):
        return True
    return False if known and None not in known else None


def is_recent(host: HostView) -> bool:
    """Return whether only the end of the main conversation is wanted."""
    return isinstance(host, RecentView)


def rows_wanted(host: HostView) -> int:
    """Return how many of the latest messages are wanted, in the sense of LIMIT: -1 for all of them."""
    return host.rows if isinstance(host, RecentView) else -1
