"""Where tokens are kept: two files of the state directory that nobody else can read.

`api.token` holds the owner's own token as it is, for programs of theirs; `api.json` what is known of all others. Both may be changed by
the daemon and by commands, with or without the other: whoever reads sees what was written last.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

import msgspec

from perdure.api import tokens
from perdure.api.caller import Caller, Scope
from perdure.api.tokens import Grant, Grants, Kind
from perdure.errors import NotFound, UsageError
from perdure.host.lock import held_within
from perdure.model.decoding import decoder_of
from perdure.model.user import User
from perdure.store.files import private_directory, write_atomically

log = logging.getLogger(__name__)

#: What the owner's own token is called.
MAIN = "main"
_PATIENCE = 5.0


class Vault:
    """The tokens of a state directory. Any thread may use it."""

    def __init__(self, state_dir: str, owner: User) -> None:
        self._owner = owner
        self._state_dir = state_dir
        self.main_path = os.path.join(state_dir, "api.token")
        self._path = os.path.join(state_dir, "api.json")
        self._read: tuple[object, Grants] = (None, Grants())
        self._main: tuple[object, str | None] = (None, None)

    def main(self) -> str:
        """Return the owner's own token, made when there is none."""
        with self._alone():
            return self._read_main() or self._make_main()

    def renew_main(self) -> str:
        """Replace the owner's own token; the one there was is worth nothing from here on."""
        with self._alone():
            return self._make_main()

    def grants(self) -> tuple[Grant, ...]:
        """Return all that lets anybody in, besides the owner's own token."""
        return self._known().grants

    def who(self, secret: str, now: datetime) -> tuple[Caller, Kind] | None:
        """Return whom a token or session stands for, None for nobody. Takes the same time for every wrong one."""
        found = tokens.found_by(secret, self.grants(), now)
        main = self._read_main()
        is_main = main is not None and tokens.is_same(secret, tokens.digest_of_secret(main))
        if is_main:
            owner = self._owner
            grant = tokens.id_of(tokens.digest_of_secret(secret))
            return Caller(uid=owner.uid, user=owner.name, scope=Scope.WRITE, token=MAIN, grant=grant), Kind.TOKEN
        return None if found is None else (found.caller, found.kind)

    def holds(self, caller: Caller, now: datetime) -> bool:
        """Return whether what let somebody in still would."""
        main = self._read_main()
        if main is not None and tokens.id_of(tokens.digest_of_secret(main)) == caller.grant:
            return True
        return any(each.id == caller.grant and not each.is_over(now) for each in self.grants())

    def add(self, new: Grant, now: datetime) -> None:
        """Keep one more. Raises `UsageError` for a name that is taken."""
        if new.kind is Kind.TOKEN and new.name == MAIN:
            raise UsageError(f"{MAIN!r} is the name of your own token.")
        with self._alone():
            self._write(tokens.added(self._known(), new, now))

    def revoke(self, which: str) -> Grant:
        """Let go of the one of this id or name, and return it. Raises `NotFound` and `UsageError`."""
        with self._alone():
            rest, gone = tokens.without(self._known(), which)
            self._write(rest)
        return gone

    def forget(self, secret: str, now: datetime) -> None:
        """Let go of the one this secret belongs to, if there is one."""
        found = tokens.found_by(secret, self.grants(), now)
        if found is not None:
            with suppress(NotFound):
                self.revoke(found.id)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        private_directory(self._state_dir)
        with held_within(f"{self._path}.lock", "change of tokens", _PATIENCE):
            yield

    def _write(self, grants: Grants) -> None:
        if os.path.exists(self._path) and _decoded(self._path) is None:
            # Whoever repairs it finds all it told of.
            os.replace(self._path, f"{self._path}.damaged")
            log.warning("%s is set aside as %s.damaged", self._path, self._path)
        write_atomically(self._path, msgspec.json.encode(grants))

    def _known(self) -> Grants:
        stamp = _stamp(self._path)
        if stamp is None:
            return Grants()
        if self._read[0] != stamp:
            self._read = stamp, _decoded(self._path) or Grants()
        return self._read[1]

    def _read_main(self) -> str | None:
        stamp = _stamp(self.main_path)
        if stamp is None:
            return None
        if self._main[0] != stamp:
            with open(self.main_path, encoding="ascii", errors="replace") as file:
                self._main = stamp, file.read(256).strip() or None
        return self._main[1]

    def _make_main(self) -> str:
        secret = fresh_secret()
        write_atomically(self.main_path, secret.encode() + b"\n")
        return secret


def fresh_secret() -> str:
    """Return a secret nobody knows yet."""
    return tokens.secret_from(os.urandom(tokens.SECRET_BYTES))


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _decoded(path: str) -> Grants | None:
    try:
        with open(path, "rb") as file:
            return decoder_of(Grants).decode(file.read())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        log.warning("%s cannot be read, so that nobody it told of is let in: %s", path, error)
        return None
