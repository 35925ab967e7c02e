"""One setting in a table of a TOML text, set and unset without touching the rest.

Where the table stands is found by trying: whatever looks like its heading may be part of a text of several lines, and
then the document does not say what it should.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any

from perdure.agents.hooking import MARK, Setting
from perdure.hooks import lines, marks
from perdure.hooks.problems import Edited, Unreadable, Unsuitable

_BY_HAND = "Delete it by hand if you do not want it."


def load(text: str) -> dict[str, Any]:
    """Return what the text says. Raises Unreadable."""
    try:
        # tomllib takes no mark of the encoding, which editors put there and the agent's parser skips.
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(f"is not TOML: {str(error)[:1].lower()}{str(error)[1:]}") from None
    except RecursionError:
        raise Unreadable("is nested too deeply") from None


def ours(text: str) -> str | None:
    """Return the line of ours, None when there is none. Raises Unreadable."""
    load(text)
    found = _ours(text)
    return found[2] if found else None


def is_current(text: str, setting: Setting) -> bool:
    """Say whether the setting is there as we would make it."""
    line = ours(text)
    return line is not None and marks.unstamped(line) == _line(setting)


def is_moved(text: str, setting: Setting) -> bool:
    """Say whether a line of ours sets something else, as in another table, or nothing."""
    said, found = load(text), _ours(text)
    if found is None:
        return False
    start, end, _ = found
    try:
        without = load(text[:start] + text[end:])
    except Unreadable:
        return True
    return _value(without, setting) == _value(said, setting)


def owner_has_it(text: str, setting: Setting) -> bool:
    """Say whether a list is set, not by a line of ours, in which the word that matters is."""
    value = _value(load(text), setting)
    return ours(text) is None and isinstance(value, list) and setting.needed in value


def install(text: str | None, setting: Setting) -> str:
    """Return the text with the setting; None is a file that is not there. Raises Unsuitable, Edited."""
    bare = None if text is None else uninstall(text, setting)
    before = bare or ""
    data = load(before)
    if (theirs := _value(data, setting)) is not None:
        words = (*theirs, setting.needed) if isinstance(theirs, list) else setting.value
        raise Unsuitable(f"has a {setting.key} of its owner's; make it {setting.key} = {_list(words)} yourself")
    expected = deepcopy(data)
    try:
        expected.setdefault(setting.table, {})[setting.key] = list(setting.value)
    except TypeError:
        raise Unsuitable(f"has a {setting.table!r} that is no table") from None
    for after in _ways(before, setting, made_file=bare is None):
        if _says(after, expected) and uninstall(after, setting) == bare:
            return after
    raise Unsuitable(f"has {setting.table!r} written in a way that cannot be edited without touching the rest")


def uninstall(text: str, setting: Setting) -> str | None:
    """Return the text without the setting of ours, None when nothing is left of a file we made.

    Raises Edited, and Unsuitable when something else would go with it.
    """
    expected = load(text)
    found = _ours(text)
    if found is None:
        if _value(expected, setting) == list(setting.value):
            # Programs that write the whole file anew drop comments. Or somebody wants just this.
            raise Edited(f"has a {setting.key} without perdure's mark, which may be yours", _BY_HAND)
        return text
    start, end, line = found
    if is_moved(text, setting):
        raise Edited(f"has a {setting.key} of perdure's outside of [{setting.table}]", _BY_HAND)
    if marks.is_edited(line):
        raise Edited(f"has a {setting.key} of perdure's that was edited", _BY_HAND)
    made = marks.made_around(line)
    text = lines.cut(text, start, end)
    heading = lines.line_start(text, max(0, start - 1))
    if made and text[heading:start].strip() == f"[{setting.table}]" and _is_last_of_table(text, start):
        text = lines.cut(text, heading, min(start, len(text)), appended=True)
    if made > 1 and not text.strip():
        return None
    if not _says_without(text, expected, setting):
        raise Unsuitable(f"has a {setting.key} that cannot be taken out without touching the rest")
    return text


def _is_last_of_table(text: str, place: int) -> bool:
    """Say whether nothing more of a table comes at `place`, comments aside."""
    following = (line.strip() for line in text[place:].splitlines())
    first = next((line for line in following if line and not line.startswith("#")), "[")
    return first.startswith("[")


def _ways(text: str, setting: Setting, *, made_file: bool) -> Iterator[str]:
    """Yield the texts that may come to what is wanted."""
    heading = re.compile(rf"^[ \t]*\[[ \t]*([\"']?){re.escape(setting.table)}\1[ \t]*\][ \t]*(?:#[^\n]*)?\r?$", re.M)
    for found in heading.finditer(text.removeprefix("\ufeff")):
        shift = len(text) - len(text.removeprefix("\ufeff"))
        yield lines.insert(text, lines.line_end(text, found.end() + shift), [marks.stamped(_line(setting), 0)])
    line = marks.stamped(_line(setting), 1 + made_file)
    yield lines.append(text, [f"[{setting.table}]", line])


def _line(setting: Setting) -> str:
    return f"{setting.key} = {_list(setting.value)} # {MARK}"


def _list(words: Iterable[object]) -> str:
    return f"[{', '.join(json.dumps(str(word), ensure_ascii=False) for word in words)}]"


def _says(text: str, expected: dict[str, Any]) -> bool:
    try:
        return load(text) == expected
    except Unreadable:
        return False


def _says_without(text: str, expected: dict[str, Any], setting: Setting) -> bool:
    """Say whether the text says the same apart from the setting, and perhaps the table when nothing else is in it."""
    table = expected.get(setting.table)
    if not isinstance(table, dict) or setting.key not in table:
        return False
    del table[setting.key]
    return _says(text, expected) or (not table and _says(text, {k: v for k, v in expected.items() if v is not table}))


def _value(data: dict[str, Any], setting: Setting) -> object:
    table = data.get(setting.table)
    return table.get(setting.key) if isinstance(table, dict) else None


def _ours(text: str) -> tuple[int, int, str] | None:
    """Return where the line of ours begins and ends, and what it says."""
    for found in re.finditer(r"^[^\n]*# perdure-hook/[^\n]*\n?", text, re.M):
        if marks.is_marked(found[0]):
            return found.start(), found.end(), found[0].strip()
    return None
