"""Exports on disk: whole or not at all, and readable by their owner only."""

from __future__ import annotations

import os

from perdure.compat.tmux_persist import to_tsv
from perdure.compat.tmux_state import to_json, to_manifest
from perdure.errors import PerdureError, Refused
from perdure.model.snapshot import Snapshot
from perdure.model.text import encode
from perdure.store.files import write_atomically

#: User and group id.
Owner = tuple[int, int]


def default_tmux_state_paths(home: str) -> tuple[str, str]:
    """Return where `tmux-state.sh` keeps its manifest, and where it keeps the copy."""
    return os.path.join(home, ".timmy", "tmux-state.json"), os.path.join(home, ".hermes", "tmux-state.json")


def write_tmux_state(snapshot: Snapshot, path: str, *, hostname: str, owner: Owner | None = None) -> None:
    """Write the version-1 manifest of `snapshot` to `path`; see `write_export`."""
    _refuse_empty(snapshot, path)
    write_export(path, to_json(to_manifest(snapshot, hostname=hostname)).encode(), owner=owner)


def write_tmux_persist(snapshot: Snapshot, directory: str, *, owner: Owner | None = None) -> tuple[str, ...]:
    """Write `<user>.tsv` of `snapshot` into `directory`, and return what the format could not say."""
    user = snapshot.server.user
    if user in ("", ".", "..") or "/" in user:
        raise Refused(f"{user!r} cannot be the name of a file.")
    path = os.path.join(directory, f"{user}.tsv")
    _refuse_empty(snapshot, path)
    text, warnings = to_tsv(snapshot)
    if not text:
        raise Refused(f"Not one session can be written in this format; {path} was left as it is.")
    write_export(path, encode(text), owner=owner)
    return warnings


def write_export(path: str, content: bytes, *, owner: Owner | None = None) -> None:
    """Put `content` at `path`, or raise and leave what was there.

    The file is 0600, and directories that were missing are 0700. A link is written through: people keep such
    files elsewhere. With `owner`, the caller has to have become that user already, so that a link of theirs
    leads nowhere they could not go themselves; anything else is refused.
    """
    if owner is not None and owner != (os.geteuid(), os.getegid()):
        raise Refused(f"{path} belongs to another user and is only written as that user.")
    target = os.path.realpath(path)
    if os.path.lexists(target) and not os.path.isfile(target):
        # Renaming over a device would replace it, for root even /dev/null.
        raise PerdureError(f"{path} could not be written: it is not a regular file.", path=path)
    try:
        _make_private(os.path.dirname(target))
        write_atomically(target, content)
    except OSError as error:
        raise PerdureError(f"{path} could not be written: {error.strerror}.", path=path) from error


def _refuse_empty(snapshot: Snapshot, path: str) -> None:
    if not snapshot.topology.sessions:
        raise Refused(f"There is no session to write; {path} was left as it is.")


def _make_private(directory: str) -> None:
    # os.makedirs gives its mode to the last directory only.
    if os.path.isdir(directory):
        return
    _make_private(os.path.dirname(directory))
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        if not os.path.isdir(directory):
            raise
