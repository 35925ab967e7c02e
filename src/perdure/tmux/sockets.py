"""Which tmux servers there may be, and whose they are."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence

from perdure.errors import Refused, UsageError
from perdure.model.text import decode, encode, visible
from perdure.model.user import User


def socket_dir(environ: Mapping[str, str], uid: int) -> str:
    """Return where tmux puts the sockets of a user: `$TMUX_TMPDIR`, else /tmp."""
    base = environ.get("TMUX_TMPDIR") or "/tmp"
    return os.path.join(os.path.realpath(base), f"tmux-{uid}")


def find_sockets(environ: Mapping[str, str], uid: int, configured: Sequence[str] = ()) -> list[str]:
    """Return the sockets of a user, each once: those of the directory, `$TMUX`'s, and the configured ones.

    A configured socket is named even while nothing is there; so is the default one when there is no other, so
    that "no server" is said about something.
    """
    directory = socket_dir(environ, uid)
    inside = (environ.get("TMUX", "").rpartition(",")[0].rpartition(",")[0],) if uid == os.geteuid() else ()
    paths = [*_sockets_in(directory), *(path for path in inside if _is_socket(path)), *configured]
    return list(dict.fromkeys(canonical(path) for path in paths)) or [canonical(os.path.join(directory, "default"))]


def sockets_below(environ: Mapping[str, str], uid: int) -> list[str]:
    """Return the sockets that are in a user's directory, none when there is none."""
    return [canonical(path) for path in _sockets_in(socket_dir(environ, uid))]


def users_with_sockets(environ: Mapping[str, str]) -> list[int]:
    """Return the uids that have a socket directory with a socket in it."""
    found = []
    for base in dict.fromkeys((environ.get("TMUX_TMPDIR") or "/tmp", "/tmp")):
        for name in _listed(base):
            uid = name.removeprefix("tmux-")
            if name.startswith("tmux-") and uid.isdigit() and any(_sockets_in(os.path.join(base, name))):
                found.append(int(uid))
    return sorted(set(found))


def owner_of(path: str) -> int | None:
    """Return the uid that owns a socket, None when there is nothing at this path.

    Raises OSError when we may not even look.
    """
    try:
        return os.lstat(encode(path)).st_uid
    except (FileNotFoundError, NotADirectoryError):
        return None


def refuse_strangers(path: str, owner: User) -> None:
    """Raise Refused when whoever listens on a socket, or could put one there, is neither `owner` nor root.

    Raises UsageError when there is something else at this path (`refuse_other_things`).
    """
    refuse_other_things(path)
    holder = owner_of(path)
    if holder not in (None, owner.uid):
        # Whoever listens there would be handed the environment, and the words of every program.
        raise _refusal(path, holder, owner)
    directory = os.path.dirname(path)
    if holder is None and (keeper := owner_of(directory)) not in (None, 0, owner.uid):
        # Whoever owns the directory could put a socket of their own in the place of the server's.
        raise _refusal(directory, keeper, owner)


def refuse_other_things(path: str) -> None:
    """Raise UsageError where a server that is started would delete something: tmux puts its socket in the place of anything.

    That is whatever is at this path and no socket, and a file with something in it where tmux has its lock meanwhile.
    """
    raw = encode(path)
    if os.path.lexists(raw) and not _is_mode(raw, stat.S_ISSOCK):
        raise UsageError(
            f"{visible(path)} is there already and no socket, so no tmux server is asked for or started there."
        )
    lock = raw + b".lock"
    is_ours = not os.path.lexists(lock) or (_is_mode(lock, stat.S_ISREG) and not os.stat(lock).st_size)
    if not is_ours and (not os.path.lexists(raw) or is_deserted(path)):
        raise UsageError(f"tmux would delete {visible(decode(lock))}, which is there already; name another socket.")


def is_deserted(path: str) -> bool:
    """Return whether certainly nobody listens on a socket, as after a crash. Nothing is said to whoever does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.setblocking(False)
        try:
            client.connect(encode(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False  # too long a path, too many who wait: somebody may be there
    return False


def _refusal(path: str, holder: int | None, owner: User) -> Refused:
    return Refused(f"Refused: {path} belongs to uid {holder}, not to {owner.name} (uid {owner.uid}).")


def _sockets_in(directory: str) -> Iterable[str]:
    return (path for name in sorted(_listed(directory)) if _is_socket(path := os.path.join(directory, name)))


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _is_mode(path: bytes, is_it: Callable[[int], bool]) -> bool:
    """Whether what is at a path, or where it leads, is of a kind; not when nothing is, or nobody may look."""
    try:
        return is_it(os.stat(path).st_mode)
    except OSError:
        return False


def _is_socket(path: str) -> bool:
    try:
        return bool(path) and stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def canonical(path: str) -> str:
    """Return one name for one socket, whatever links lead to its directory, as text that can be stored."""
    path = os.fsdecode(encode(path))
    place = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    return decode(os.fsencode(os.path.join(place, os.path.basename(path))))
