"""What a unit runs: the program by its absolute path, and what it has to know of the environment it was installed in."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from perdure.errors import Refused
from perdure.model.secrets import is_secret_name, is_secret_value, redact_text

#: Where services look for programs when nobody says otherwise.
_USUAL_PATH = {
    "linux": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "macos": "/usr/bin:/bin:/usr/sbin:/sbin",
}
_PATHS = ("PERDURE_STATE_DIR", "PERDURE_CONFIG", "TMUX_TMPDIR")
#: What stands for a path above when that one is not set, on Linux.
_STAND_INS = {"PERDURE_STATE_DIR": "XDG_STATE_HOME", "PERDURE_CONFIG": "XDG_CONFIG_HOME"}
# systemd drops a line with any of these, or the unit with it; XML has no way to write them.
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff\ufdd0-\ufdef]")
_BEFORE = "where everybody can read it"
_PASSWORD_FILE = "leave it out and keep it in ~/.pgpass or the file that PGPASSFILE names"


class Program(Struct, frozen=True, kw_only=True):
    """A command without its arguments, and the variables it is started with. Both can be written into any unit."""

    words: tuple[str, ...]
    environment: Mapping[str, str]


def program(argv0: str, executable: str, environ: Mapping[str, str], *, platform: str, tmux: str | None) -> Program:
    """Return the program that runs now, so that a service runs the same one with the same files.

    `argv0` is how it was called; anything but `perdure` itself means that `executable`, the interpreter, was. `tmux`
    is where tmux is. Raises Refused for a secret, and for names that cannot be written down.
    """
    words = _words(argv0, executable)
    environment = {**_path(tmux, platform), **_handed_on(environ, platform)}
    for name, text in (*(("The path", word) for word in words), *environment.items()):
        if _is_unwritable(text):
            raise Refused(f"{name} {text!r} is no text that can be written into a unit.")
    return Program(words=words, environment=environment)


def _words(argv0: str, executable: str) -> tuple[str, ...]:
    path = os.path.abspath(argv0)
    if os.path.basename(path) == "perdure" and os.path.isfile(path) and os.access(path, os.X_OK):
        # Not what a link leads to: the link is what stays when the program is brought up to date.
        return (path,)
    # -P: a service starts in the home, and a file there called json.py is not what anybody means to import.
    return (os.path.abspath(executable), "-P", "-m", "perdure")


def _path(tmux: str | None, platform: str) -> dict[str, str]:
    """Return the PATH to set, none when tmux is where services look anyway."""
    usual = _USUAL_PATH[platform]
    where = os.path.dirname(tmux) if tmux else ""
    return {"PATH": f"{where}:{usual}"} if where and where not in usual.split(":") else {}


def _handed_on(environ: Mapping[str, str], platform: str) -> dict[str, str]:
    found = {}
    for name in _PATHS:
        stand_in = _STAND_INS.get(name, "") if platform == "linux" else ""
        if value := environ.get(name):
            found[name] = os.path.abspath(value)
        elif os.path.isabs(environ.get(stand_in, "")):
            found[stand_in] = environ[stand_in]
    if store := environ.get("PERDURE_STORE"):
        found["PERDURE_STORE"] = store
        found |= _password_file(store, environ)
    for name, value in found.items():
        if _holds_secret(value):
            raise Refused(f"{name} holds a secret, which a unit would show {_BEFORE}; {_PASSWORD_FILE}.")
    return found


def _password_file(store: str, environ: Mapping[str, str]) -> dict[str, str]:
    if not store.startswith(("postgresql:", "postgres:")):
        return {}
    if environ.get("PGPASSWORD"):
        raise Refused(f"PGPASSWORD is a secret, which a unit would show {_BEFORE}; {_PASSWORD_FILE}.")
    value = environ.get("PGPASSFILE")
    return {"PGPASSFILE": os.path.abspath(value)} if value else {}


def _holds_secret(value: str) -> bool:
    if is_secret_value(value) or redact_text(value) != value:
        return True
    try:
        address = urlsplit(value)
        return bool(address.password) or any(is_secret_name(name) for name, _ in parse_qsl(address.query))
    except ValueError:
        return False  # no address at all


def _is_unwritable(text: str) -> bool:
    return bool(_UNWRITABLE.search(text)) or any(ord(char) & 0xFFFE == 0xFFFE for char in text)
