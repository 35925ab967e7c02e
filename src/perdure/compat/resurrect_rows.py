"""The lines of a tmux-resurrect save file, each checked and taken apart.

Two shapes are in use. Up to version 3 a pane's line carries the window's name; since version 4 the window's
line does, together with `automatic-rename`, and the pane's line carries the pane's title. Columns that may be
empty begin with a colon, because a shell takes several tabs in a row for one: all but the title.
"""

from __future__ import annotations

import re

from msgspec import Struct

from perdure.compat.imported import broken, rows

_NUMBER = re.compile(r"[0-9]{1,9}")
_LAYOUT = re.compile(r"([0-9a-f]{4}),((\d{1,5})x(\d{1,5}),\d+,\d+.*)", re.DOTALL | re.ASCII)
_LEAF = re.compile(r"(\d{1,5})x(\d{1,5}),\d+,\d+,\d+(?![x\d])", re.ASCII)


class PaneRow(Struct, kw_only=True):
    """A pane's line."""

    line: int
    session: str
    window: int
    index: int
    active: bool
    title: str
    cwd: str
    command: str
    #: What ran in the pane, its arguments joined by spaces; "" for a shell at its prompt.
    full_command: str
    #: Only up to version 3.
    window_name: str | None


class WindowRow(Struct, kw_only=True):
    """A window's line."""

    line: int
    session: str
    index: int
    active: bool
    flags: str
    layout: str
    width: int
    height: int
    #: Width and height of its panes, in order.
    cells: list[tuple[int, int]]
    #: Only since version 4.
    name: str | None
    #: What the window itself says on automatic-rename, None when it says nothing.
    automatic_rename: str | None


class GroupRow(Struct, kw_only=True):
    """The line of a session that shows another one's windows."""

    line: int
    session: str
    original: str
    last: int | None
    active: int | None


class SaveFile(Struct):
    """A save file's lines, in their order."""

    panes: list[PaneRow]
    windows: list[WindowRow]
    groups: list[GroupRow]
    #: The session the saving client was in, "" when there was no client.
    attached: str = ""


def read_rows(raw: bytes) -> SaveFile:
    """Return the lines of a save file; raises `ImportFailed` for the first that does not fit."""
    file = SaveFile([], [], [])
    last: PaneRow | None = None
    for number, columns in rows(raw):
        pane, last = last, None
        match columns:
            case ["pane", session, window, *rest]:
                last = _pane(number, session, window, rest)
                file.panes.append(last)
            case ["window", session, index, *rest]:
                file.windows.append(_window(number, session, index, rest))
            case ["grouped_session", session, original, alternate, active]:
                file.groups.append(_group(number, session, original, alternate, active))
            case ["state", attached, _]:
                file.attached = attached
            case [text] if pane is not None:
                # A pane with several processes gets a line for each: the rest of its last column.
                pane.full_command += "\n" + text
                last = pane
            case _:
                raise broken(number, "this is no line of a tmux-resurrect save")
    return file


def _pane(line: int, session: str, window: str, rest: list[str]) -> PaneRow:
    window_name = _marked(line, rest.pop(0), "the window's name") if rest and rest[0].startswith(":") else None
    if len(rest) not in ((8,) if window_name is None else (7, 8)):
        raise broken(line, "a pane's line has another number of columns")
    window_active, flags, index, *rest = rest
    _flag(line, window_active, "the window's mark for active")
    _marked(line, flags, "the window's flags")
    title, cwd, active, command, full_command = _content(line, rest)
    return PaneRow(
        line=line,
        session=_name(line, session),
        window=_number(line, window, "the window's index"),
        index=_number(line, index, "the pane's index"),
        active=_flag(line, active, "the pane's mark for active"),
        title=title,
        cwd=cwd,
        command=command,
        full_command=full_command,
        window_name=window_name,
    )


def _content(line: int, rest: list[str]) -> tuple[str, str, str, str, str]:
    """Return title, directory, active mark, program and full command.

    An empty title makes the saving shell read every later column one place early. The colon before the
    directory gives it away; the full command is then that of some other process, and is dropped.
    """
    title = rest.pop(0) if len(rest) == 5 else ""
    if title.startswith(":") and rest[0] in ("0", "1"):
        active, command, pid, _ = rest
        _number(line, pid, "the pane's process id")
        return "", title[1:], active, command, ""
    path, active, command, full_command = rest
    # Backslashes of the path's own never reach the file, so each one before a space was put there by the save.
    cwd = _marked(line, path, "the directory").replace("\\ ", " ")
    return title, cwd, active, command, _marked(line, full_command, "the command")


def _window(line: int, session: str, index: str, rest: list[str]) -> WindowRow:
    name = _marked(line, rest.pop(0), "the window's name") if rest and rest[0].startswith(":") else None
    if not 3 <= len(rest) <= (3 if name is None else 4):
        raise broken(line, "a window's line has another number of columns")
    active, flags, layout, *rename = rest
    if rename and rename[0] not in (":", "on", "off"):
        raise broken(line, "automatic-rename is neither on nor off")
    width, height, cells = _cells(line, layout)
    return WindowRow(
        line=line,
        session=_name(line, session),
        index=_number(line, index, "the window's index"),
        active=_flag(line, active, "the window's mark for active"),
        flags=_marked(line, flags, "the window's flags"),
        layout=layout,
        width=width,
        height=height,
        cells=cells,
        name=name,
        automatic_rename=rename[0] if rename and rename[0] != ":" else None,
    )


def _group(line: int, session: str, original: str, alternate: str, active: str) -> GroupRow:
    last = _marked(line, alternate, "the last window")
    now = _marked(line, active, "the active window")
    return GroupRow(
        line=line,
        session=_name(line, session),
        original=_name(line, original),
        last=_number(line, last, "the last window") if last else None,
        active=_number(line, now, "the active window") if now else None,
    )


def _cells(line: int, layout: str) -> tuple[int, int, list[tuple[int, int]]]:
    match = _LAYOUT.fullmatch(layout)
    if not match or int(match[1], 16) != _checksum(match[2]):
        raise broken(line, "this is not a layout of tmux's, or it is damaged")
    return int(match[3]), int(match[4]), [(int(width), int(height)) for width, height in _LEAF.findall(match[2])]


def _checksum(layout: str) -> int:
    """Return tmux's checksum of a layout: turn right by one bit, add the next character, in 16 bits."""
    total = 0
    for character in layout:
        total = ((total >> 1) + ((total & 1) << 15) + ord(character)) & 0xFFFF
    return total


def _name(line: int, text: str) -> str:
    if not text:
        raise broken(line, "the session has no name")
    return text


def _marked(line: int, text: str, what: str) -> str:
    if not text.startswith(":"):
        raise broken(line, f"{what} should begin with a colon")
    return text[1:]


def _number(line: int, text: str, what: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise broken(line, f"{what} is not a number")
    return int(text)


def _flag(line: int, text: str, what: str) -> bool:
    if text not in ("0", "1"):
        raise broken(line, f"{what} is neither 0 nor 1")
    return text == "1"
