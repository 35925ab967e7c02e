"""What installing and uninstalling make of a file's text. Pure, and the same for every agent."""

from __future__ import annotations

from enum import StrEnum

from perdure.agents.hooking import Format, HookFile
from perdure.hooks import entries, json_text, marks, own_text, toml_text
from perdure.hooks.entries import Codec
from perdure.hooks.problems import Unreadable


class State(StrEnum):
    """What a file holds of ours."""

    INSTALLED = "installed"
    ABSENT = "not installed"
    #: From another version, or for another state directory.
    OUTDATED = "outdated"
    EDITED = "edited"
    #: What it takes is there, and nothing tells that we put it there.
    THEIRS = "set by its owner"
    UNREADABLE = "unreadable"


def state(file: HookFile, text: str | None) -> State:
    """Return what the text holds of ours; None is a file that is not there."""
    if text is None:
        return State.ABSENT
    try:
        if file.format is Format.OWN:
            return _state([text] if marks.is_marked(text) else [], is_current=marks.unstamped(text) == file.text)
        if file.setting is not None:
            line = toml_text.ours(text)
            if toml_text.owner_has_it(text, file.setting):
                return State.THEIRS
            if toml_text.is_moved(text, file.setting):
                return State.EDITED
            return _state([line] if line else [], is_current=toml_text.is_current(text, file.setting))
        data = _codec(file).load(text)
        found = [each.text for each in entries.find(data, file.entries)]
        return _state(found, is_current=entries.is_current(data, file.entries))
    except Unreadable:
        return State.UNREADABLE


def install(file: HookFile, text: str | None, *, made_directory: bool = False) -> str:
    """Return the text with everything that belongs there, once; None is a file that is not there.

    Everything else in it stays as it is, byte for byte, and `uninstall` restores it; what `edited` returns stays too.
    Raises Unreadable, Unsuitable and Edited, whose texts follow the file's name.
    """
    if text is not None and state(file, text) in (State.INSTALLED, State.THEIRS):
        return text
    if file.format is Format.OWN:
        return own_text.install(text, file.text, made_directory=made_directory)
    if file.setting is not None:
        return toml_text.install(text, file.setting)
    return entries.install(_codec(file), text, file.entries)


def uninstall(file: HookFile, text: str) -> str | None:
    """Return the text without anything of ours, None when nothing of the file is left. Raises as `install` does."""
    if file.format is Format.OWN:
        own_text.uninstall(text)
        return None
    if file.setting is not None:
        return toml_text.uninstall(text, file.setting)
    return entries.uninstall(_codec(file), text, file.entries)


def edited(file: HookFile, text: str | None) -> list[str]:
    """Return the places of what was edited and is left where it is. Raises Unreadable."""
    if file.format is Format.OWN or file.setting is not None:
        return []
    found = entries.find_edited(_codec(file), text, file.entries)
    return [f"{'.'.join(each.path)}[{each.place}]" for each in found]


def _state(ours: list[str], *, is_current: bool) -> State:
    if not ours:
        return State.ABSENT
    if any(map(marks.is_edited, ours)):
        return State.EDITED
    return State.INSTALLED if is_current else State.OUTDATED


def _codec(file: HookFile) -> Codec:
    if file.format is Format.JSON:
        return json_text
    from perdure.hooks import yaml_text  # a package of somebody else's, for one agent

    return yaml_text
