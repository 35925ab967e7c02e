"""Units on disk: written whole or not at all, never over somebody else's, and taken away without a trace."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from glob import escape, glob

from msgspec import Struct

from perdure.errors import PerdureError, Refused
from perdure.host.units import FileState, UnitFile, judge

#: Nobody's unit is larger.
_LARGEST = 1 << 20
#: Puts bytes at a path in one step. Raises OSError.
Write = Callable[[str, bytes], None]


class Found(Struct, frozen=True, kw_only=True):
    """A unit of ours and what lies in its place."""

    unit: UnitFile
    path: str
    state: FileState


def look(units: Iterable[UnitFile], directory: str) -> tuple[Found, ...]:
    """Return what lies where these units belong."""
    found = []
    for unit in units:
        path = os.path.join(directory, unit.name)
        found.append(Found(unit=unit, path=path, state=_state(path, unit.text)))
    return tuple(found)


def install(units: Iterable[UnitFile], directory: str, write: Write) -> tuple[Found, ...]:
    """Write the units, and return what was in their places before. Those that are `installed` were not touched.

    Raises Refused, before anything is written, when one of the files is not ours or was edited.
    """
    found = look(units, directory)
    for each in found:
        if each.state is FileState.FOREIGN:
            raise Refused(f"{each.path} was not written by perdure; it was left as it is.", path=each.path)
        if each.state is FileState.EDITED:
            raise Refused(
                f"{each.path} was edited; it was left as it is. Delete it and try again; what is to stay changed"
                " belongs into a drop-in beside it.",
                path=each.path,
            )
    try:
        os.makedirs(directory, exist_ok=True)
        for each in found:
            if each.state is not FileState.INSTALLED:
                write(each.path, each.unit.text.encode())
    except OSError as error:
        raise _failed(error.filename or directory, "written", error) from error
    return found


def remove(found: Sequence[Found]) -> None:
    """Delete the units that are ours and as we wrote them, with the links by which they were enabled."""
    for each in found:
        if each.state not in (FileState.INSTALLED, FileState.OUTDATED):
            continue
        try:
            os.unlink(each.path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _failed(each.path, "removed", error) from error
        _remove_links(each.path)


def _remove_links(path: str) -> None:
    """Delete the links by which systemd would go on looking for a unit that is no more."""
    directory, name = os.path.split(path)
    for link in glob(os.path.join(escape(directory), "*.wants", escape(name))):
        if os.path.islink(link) and os.path.realpath(link) == os.path.realpath(path):
            with suppress(OSError):
                os.unlink(link)
                os.rmdir(os.path.dirname(link))  # unless others are in it


def refuse_other_home(directory: str) -> None:
    """Raise Refused when the units of a user would belong to another: `sudo` often keeps the caller's home."""
    place = directory
    while not os.path.exists(place):
        place = os.path.dirname(place)
    if os.stat(place).st_uid != os.geteuid():
        raise Refused(f"{place} belongs to another user; do this as that user, or with --system for everybody.")


def refuse_what_others_can_change(paths: Iterable[str]) -> None:
    """Raise Refused when somebody besides root could replace one of these files, and so run what they like as root."""
    for path in paths:
        place = os.path.realpath(path)
        while True:
            status = os.stat(place)
            is_open = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
            if status.st_uid != 0 or is_open:
                raise Refused(
                    f"{place} can be changed by others than root, who could then run anything as root;"
                    " install perdure where only root can write.",
                    path=place,
                )
            if place == "/":
                break
            place = os.path.dirname(place)


def _state(path: str, wanted: str) -> FileState:
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            # A link to /dev/null is how a unit is masked: somebody does not want it.
            return FileState.FOREIGN
        with open(path, "rb") as file:
            return judge(file.read(_LARGEST).decode(errors="replace"), wanted)
    except FileNotFoundError:
        return FileState.MISSING
    except OSError as error:
        raise _failed(path, "read", error) from error


def _failed(path: str, verb: str, error: OSError) -> PerdureError:
    return PerdureError(f"{path} could not be {verb}: {error.strerror}.", path=path)
