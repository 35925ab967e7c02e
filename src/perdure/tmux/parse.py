"""tmux's answers, read exactly.

`read_survey` raises `Garbled` for anything that does not fit: a reading we are not sure of is no reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache

from msgspec import Struct

from perdure.model.secrets import is_secret_name, is_secret_value
from perdure.model.server import ServerProcess
from perdure.model.text import decode
from perdure.tmux.formats import SESSION, WINDOW, Record


class Garbled(Exception):
    """The answer is not what was asked for: cut short, or from a tmux that speaks another language."""


class Row(Struct, frozen=True):
    """One record: tmux's own words and the free texts, in the order they were asked for."""

    words: tuple[str, ...]
    texts: tuple[str, ...]


class Survey(Struct, frozen=True, kw_only=True):
    """An answer taken apart; `settings` maps an id to the raw lines printed for it."""

    process: ServerProcess
    sessions: tuple[Row, ...]
    windows: tuple[Row, ...]
    panes: tuple[Row, ...]
    settings: Mapping[str, bytes]


def read_survey(answer: bytes, mark: str, *, pane: Record) -> Survey:
    """Take the answer to `formats.survey` apart; the end must have arrived, from the process that began."""
    before, at = read_greeting(answer, mark)
    rows: dict[str, list[Row]] = {"S": [], "W": [], "P": []}
    records = {record.letter: record for record in (SESSION, WINDOW, pane)}
    while (letter := answer[at : at + 1].decode("latin-1")) in rows:
        row, at = read_record(answer, at + 1, records[letter])
        rows[letter].append(row)
    sections = dict(_sections(answer, at, mark))
    if read_process(sections.pop("end", b"")) != before:
        raise Garbled("another server answered in the end")
    panes = {".".join((row.words[0], row.words[2], row.words[3])): row.words[1] for row in rows["P"]}
    settings = {panes.get(name, name): text for name, text in sections.items()}
    return Survey(
        process=before,
        sessions=tuple(rows["S"]),
        windows=tuple(rows["W"]),
        panes=tuple(rows["P"]),
        settings=settings,
    )


def read_revisit(answer: bytes, mark: str) -> tuple[ServerProcess, Mapping[str, bytes], Mapping[str, bytes]]:
    """Take the answer to `formats.revisit` apart: who answered, settings by id, scrollback by pane."""
    before, at = read_greeting(answer, mark)
    settings, scrollback = {}, {}
    for name, text in _sections(answer, at, mark):
        if name.startswith("scroll "):
            scrollback[name.removeprefix("scroll ")] = text
        else:
            settings[name] = text
    if read_process(settings.pop("end", b"")) != before:
        raise Garbled("another server answered in the end")
    return before, settings, scrollback


@lru_cache(maxsize=1024)
def read_options(lines: bytes) -> Mapping[str, str]:
    """Return the options of a `show-options` answer, an array's elements under `name[index]`.

    Cached, since most windows have the same ones set, usually none: do not change what is returned.
    """
    options = {}
    for line in lines.split(b"\n"):
        name, value = _split_option(line)
        if name:
            options[decode(name)] = decode(unescape(value))
    return dict(sorted(options.items()))


# Only a user's own option may have a space in its name. A value with one is always quoted.
_USER_OPTION = re.compile(rb"""(@.*?) ("(?:[^"\\]|\\.)*"|'[^']*'|[^ ]*)""")


def _split_option(line: bytes) -> tuple[bytes, bytes]:
    if found := _USER_OPTION.fullmatch(line):
        return found[1], found[2]
    name, _, value = line.partition(b" ")
    return name, value


class Environment(Struct, frozen=True, kw_only=True):
    """A session's environment: what it sets, what it removes, and the names whose values are not kept."""

    values: Mapping[str, str]
    removed: tuple[str, ...]
    hidden: tuple[str, ...]


# The name twice: options stand before the variables, and a value may look like anything, also like the other.
_SET = re.compile(rb'([^=]+)="((?:[^"\\]|\\.)*)"; export \1;\n', re.DOTALL)
_UNSET = re.compile(rb"unset (.+?);\n", re.DOTALL)


@lru_cache(maxsize=1024)
def read_session(lines: bytes) -> tuple[Mapping[str, str], Environment]:
    """Take a session's section apart: its options, then its environment as `show-environment -s` prints it."""
    values, removed, hidden, options = {}, [], [], []
    at = 0
    while at < len(lines):
        if found := _SET.match(lines, at):
            name, value = decode(found[1]), decode(re.sub(rb"\\(.)", rb"\1", found[2], flags=re.DOTALL))
            if is_secret_name(name) or is_secret_value(value):
                hidden.append(name)
            else:
                values[name] = value
        elif found := _UNSET.match(lines, at):
            removed.append(decode(found[1]))
        else:
            end = lines.find(b"\n", at) + 1 or len(lines)
            options.append(lines[at:end])
        at = found.end() if found else end
    environment = Environment(
        values=dict(sorted(values.items())), removed=tuple(sorted(removed)), hidden=tuple(sorted(hidden))
    )
    return read_options(b"".join(options)), environment


_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_CONTROL = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"v": b"\v", b"f": b"\f", b"s": b" "}


def unescape(value: bytes) -> bytes:
    """Undo what tmux does to an option's value before it prints it."""
    if len(value) >= 2 and value[:1] in (b'"', b"'") and value[-1:] == value[:1]:
        value = value[1:-1]
    return _ESCAPE.sub(_unescape_one, value) if b"\\" in value else value


def _unescape_one(match: re.Match[bytes]) -> bytes:
    body = match[1]
    return bytes([int(body, 8) & 0xFF]) if len(body) == 3 else _CONTROL.get(body, body)


def read_greeting(answer: bytes, mark: str) -> tuple[ServerProcess, int]:
    """Return who began to answer, and where the rest of the answer begins; anything else is `Garbled`."""
    start = f"{mark} begin ".encode()
    end = answer.find(b"\n")
    if not answer.startswith(start) or end < 0:
        raise Garbled("the answer does not begin")
    return read_process(answer[len(start) : end]), end + 1


def read_process(line: bytes) -> ServerProcess:
    """Return which server a line of pid, start time and version is of; anything else is `Garbled`."""
    words = line.split()
    if len(words) != 3 or not words[0].isdigit() or not words[1].isdigit():
        raise Garbled("the answer does not end")
    return ServerProcess(pid=number(words[0]), started_at=moment(words[1]), version=decode(words[2]))


def number(digits: str | bytes) -> int:
    """Return the number tmux printed; anything else is `Garbled`."""
    try:
        return int(digits)
    except ValueError as error:
        raise Garbled(f"{digits[:20]!r} stands where a number should") from error


def moment(seconds: str | bytes) -> datetime:
    """Return the moment tmux means by a number of seconds; anything else is `Garbled`."""
    try:
        return datetime.fromtimestamp(number(seconds), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise Garbled(f"{seconds[:20]!r} stands where a moment should") from error


def read_record(answer: bytes, at: int, record: Record) -> tuple[Row, int]:
    """Return the record that begins there, behind its letter, and where the next one does; else it is `Garbled`."""
    bar = answer.find(b"|", at)
    words = answer[at:bar].decode("latin-1").split(" ")
    if bar < 0 or len(words) != len(record.words):
        raise Garbled(f"a {record.letter} record has {len(words)} words, not {len(record.words)}")
    at = bar + 1
    texts = []
    for _ in record.texts:
        colon = answer.find(b":", at, at + 12)
        if colon < 0 or not answer[at:colon].isdigit():
            raise Garbled(f"a {record.letter} record lacks a length")
        end = colon + 1 + int(answer[at:colon])
        texts.append(decode(answer[colon + 1 : end]))
        at = end
    if answer[at : at + 1] != b"\n":
        raise Garbled(f"a {record.letter} record does not end where it says")
    return Row(tuple(words), tuple(texts)), at + 1


def _sections(answer: bytes, at: int, mark: str) -> Iterator[tuple[str, bytes]]:
    """Yield what stands between the marker lines; the last one, `end`, carries its own line as text."""
    marker = f"{mark} ".encode()
    while at < len(answer):
        if not answer.startswith(marker, at):
            raise Garbled("something stands where a marker should")
        line_end = answer.find(b"\n", at)
        if line_end < 0:
            raise Garbled("the answer is cut short")
        name = answer[at + len(marker) : line_end].decode("latin-1")
        if name.startswith("end "):
            yield "end", name.removeprefix("end ").encode("latin-1")
            return
        following = answer.find(b"\n" + marker, line_end)
        if following < 0:
            raise Garbled("the answer is cut short")
        yield name, answer[line_end + 1 : following + 1]
        at = following + 1
