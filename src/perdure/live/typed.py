"""What is typed into a pane, what must not be, and what the screen says became of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from perdure.errors import UsageError
from perdure.model.screen import ScreenReading, State
from perdure.model.text import encode

#: The longest text that is sent, in bytes.
LONGEST = 768 << 10

# The end of a paste is such a character's doing, and what came behind it would be keys.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_KEY = re.compile(
    r"(?:[CMS]-){0,3}(?:[^\s\x00-\x20\x7f-\x9f]|Enter|Escape|Tab|BTab|Space|BSpace|Up|Down|Left|Right|Home|End|"
    r"IC|Insert|DC|Delete|PPage|PageUp|PgUp|NPage|PageDown|PgDn|F[1-9]|F1[0-2])|\^[A-Za-z@\[\]\\_?]"
)

#: How many of the lowest lines may belong to what a program is told.
_NEAR = 16
#: How much of the end of a text is looked for.
_END = 20
#: What stands around a line in a program's frame, its cursor included.
_FRAME = " \t\xa0│┃║╎▏▕|█▌▍"
#: What programs show in place of a long paste: `[Pasted text #1 +20 lines]`.
_SHORTENED = re.compile(r"\[[^\[\]]*\bpaste[^\[\]]*\]", re.IGNORECASE)
#: What turns and counts while nothing happens.
_RESTLESS = re.compile(r"[0-9⠀-⣿·✢✳✶✻✽*|/\\-]+")

#: The keys that stop an agent's work.
_STOPS = ("Escape", "C-c")


class Message(Struct, frozen=True, kw_only=True):
    """What a pane is to be told."""

    #: Pasted as a whole; "" for keys alone.
    text: str = ""
    #: Press Enter behind the text.
    enter: bool = True
    #: Keys by tmux's names, pressed behind the text and in place of Enter.
    keys: tuple[str, ...] = ()
    #: Send it although it might be taken for the answer to something else.
    anyway: bool = False
    #: Send it together with what somebody has begun to type there.
    joined: bool = False


class Held(Struct, frozen=True, kw_only=True):
    """Where the end of a text stands: in which of the lines that are not empty, from the lowest, and how it looks."""

    row: int
    line: str


class Outlook(StrEnum):
    """What a screen says of a text that was typed and sent."""

    #: The agent went to work when it was sent.
    STARTED = "started"
    #: It is no longer where it was typed.
    GONE = "gone"
    #: It is where it was typed.
    STANDS = "stands"
    UNKNOWN = "unknown"


def message(
    text: str, keys: Sequence[str] = (), *, enter: bool = True, anyway: bool = False, joined: bool = False
) -> Message:
    """Return what is to be sent, newlines as tmux and programs know them. Raises UsageError for what cannot be."""
    tidy = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    if not tidy.strip() and not keys:
        raise UsageError("There is nothing to send: give a text, or keys.")
    if len(encode(tidy)) > LONGEST:
        raise UsageError(f"The text has {len(encode(tidy))} bytes; at most {LONGEST} can be sent at once.")
    if found := _CONTROL.search(tidy):
        raise UsageError(f"The text holds the control character {found[0]!r}; keys are pressed by their names.")
    for key in keys:
        if not _KEY.fullmatch(key):
            raise UsageError(f"{key!r} is no key; there are Enter, Escape, Tab, Up, C-c, M-x, F1, y and the like.")
    return Message(text=tidy, enter=enter, keys=tuple(keys), anyway=anyway, joined=joined)


def objection(reading: ScreenReading | None, told: Message) -> str:
    """Return why an agent that shows this must not be told that, "" when it may."""
    if told.anyway or told.keys or reading is None:
        return ""
    if reading.frozen:
        return "something covers its input, and would take the text for commands"
    if reading.state is not State.ATTENTION or reading.reason == "limit":
        return ""
    asks = {"permission": "asks for permission", "question": "asks a question", "login": "wants somebody to log in"}
    return f"it {asks.get(reading.reason or '', 'waits for an answer')}, and the text would be the answer"


def held(text: str, shown: Sequence[str], before: Sequence[str]) -> Held | None:
    """Return where the end of `text` stands near the bottom of a screen that was `before`, None when it does not."""
    last = next((line for line in reversed(text.split("\n")) if line.strip()), "")
    tail = " ".join(last.split())
    was = _rows(before)
    for row, line in enumerate(_rows(shown)):
        if was[row : row + 1] != [line] and _is_end(line, tail):
            return Held(row=row, line=line)
    return None


def outlook(
    was: ScreenReading | None, typed: Held | None, shown: Sequence[str], reading: ScreenReading | None
) -> Outlook:
    """Return what a screen says of a text that stood at `typed`; `was` is what it said before anything was sent."""
    if reading is not None and reading.frozen:
        return Outlook.UNKNOWN
    if reading is not None and reading.state is State.BUSY and (was is None or was.state is not State.BUSY):
        return Outlook.STARTED
    if typed is None:
        return Outlook.UNKNOWN
    rows = _rows(shown)
    # One line of some status may have come or gone below it.
    nearby = rows[max(0, typed.row - 1) : typed.row + 2]
    return Outlook.STANDS if typed.line in nearby else Outlook.GONE


def has_moved(before: Sequence[str], shown: Sequence[str]) -> bool:
    """Say whether a screen shows something else, apart from what turns and counts by itself."""
    return _still(before) != _still(shown)


def sign_of_keys(was: ScreenReading | None, reading: ScreenReading | None, keys: Sequence[str]) -> str:
    """Return what an agent's screen says came of keys, whatever else it prints by itself; "" when it does not tell.

    `was` is what it said before. An agent at work may end that by itself: that says something of keys alone that stop it.
    """
    if was is None or reading is None or reading.frozen or was.state is reading.state:
        return ""
    if was.state is State.ATTENTION and reading.state is not None:
        return "what it asked is gone"
    if was.state is State.IDLE and reading.state is State.BUSY:
        return "it went to work"
    stops = was.state is State.BUSY and reading.state is State.IDLE and any(key in _STOPS for key in keys)
    return "it stopped its work" if stops else ""


def is_said(text: str, turns: Iterable[Any], since: datetime) -> bool:
    """Say whether a person said this since then, by a transcript's turns."""
    wanted = _plain(text)
    return any(_is_it(wanted, said) for said in _said(turns, since))


def part_said(text: str, turns: Iterable[Any], since: datetime) -> int:
    """Return of how many characters a beginning or an end of this a person said since then; 0 where none is long enough.

    What a terminal cuts off is lost like that. Something else that was said, or words that stand for a paste, are no part.
    """
    wanted = _plain(text)
    parts = (
        len(said)
        for said in _said(turns, since)
        if _END <= len(said) < len(wanted) and (wanted.startswith(said) or wanted.endswith(said))
    )
    return max(parts, default=0)


def is_recorded(text: str, records: Iterable[tuple[datetime, bytes]], since: datetime) -> bool:
    """Say whether a hook has recorded this as a prompt since then."""
    wanted = _plain(text)
    for at, raw in records:
        if at < since:
            continue
        try:
            record = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            continue
        said = record.get("prompt") if isinstance(record, dict) else None
        if isinstance(said, str) and _is_it(wanted, _plain(said)):
            return True
    return False


def last_lines(lines: Sequence[str], most: int = 12) -> tuple[str, ...]:
    """Return what stands lowest on a screen, without the empty lines."""
    return tuple(line.rstrip() for line in lines if line.strip())[-most:]


def _said(turns: Iterable[Any], since: datetime) -> Iterator[str]:
    """What a person said since then, without how it was spaced."""
    for turn in turns:
        at = turn.get("time")
        if turn.get("role") != "user" or turn.get("agent") is not None or not isinstance(at, datetime):
            continue
        # Some note only whole seconds.
        if at >= (since if at.microsecond else since.replace(microsecond=0)):
            yield _plain(str(turn.get("text") or ""))


def _is_it(wanted: str, said: str) -> bool:
    # Agents may put something of their own around what they were told.
    return wanted == said or (len(wanted) >= _END and wanted in said)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _rows(lines: Sequence[str]) -> list[str]:
    """The lines that are not empty, without their frame, from the lowest up."""
    plain = (_plain(line.strip(_FRAME)) for line in reversed(lines))
    return [line for line in plain if line][:_NEAR]


def _is_end(line: str, tail: str) -> bool:
    """Whether a line ends as a text does, is what is left of it after a break, or stands for it."""
    if _SHORTENED.search(line):
        return True
    return bool(tail) and (line.endswith(tail[-_END:]) or tail.endswith(line))


def _still(lines: Sequence[str]) -> list[str]:
    return [_RESTLESS.sub("", line).strip() for line in lines if line.strip()]
