"""Accounts, the roster of a shared machine, and doing something as somebody else."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Callable

from perdure.errors import PerdureError, UsageError, failure_of
from perdure.model.text import decode, encode
from perdure.model.user import User

#: How a child ends whose answer is the sentence that says what went wrong.
_SAID = 3


def current_user() -> User:
    """Return whose process this is, with `$HOME` as the home when it is set."""
    uid = os.geteuid()
    found = user_by_uid(uid)
    home = os.environ.get("HOME") or (found.home if found else "/")
    if found is None:
        return User(name=str(uid), uid=uid, gid=os.getegid(), home=home)
    return User(name=found.name, uid=uid, gid=found.gid, home=home)


def user_by_uid(uid: int) -> User | None:
    """Return the account with this number, None when there is none."""
    return _user(lambda: pwd.getpwuid(uid))


def user_by_name(name: str) -> User | None:
    """Return the account of this name, None when there is none."""
    return _user(lambda: pwd.getpwnam(name))


def _user(find: Callable[[], pwd.struct_passwd]) -> User | None:
    try:
        entry = find()
    except KeyError:
        return None
    return User(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, home=entry.pw_dir)


#: What accounts have for a shell that nobody logs in to. Whoever has a session all the same uses another one.
_NO_SHELLS = frozenset({"nologin", "false", "true", "sync", "halt", "shutdown"})


def shell_of(user: User) -> str:
    """Return the login shell of a user, as the password database has it; `/bin/sh` where that is none to work in."""
    try:
        shell = pwd.getpwuid(user.uid).pw_shell
    except KeyError:
        return "/bin/sh"
    is_shell = os.path.isabs(shell) and os.path.basename(shell) not in _NO_SHELLS and os.access(shell, os.X_OK)
    return shell if is_shell else "/bin/sh"


def read_roster(path: str) -> tuple[str, ...]:
    """Return the account names of a roster file of `name=user` lines; () when there is no such file.

    Several names may map to one account; it is returned once, in the order of the file.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise UsageError(f"The roster {path} cannot be read: {error.strerror}.") from error
    named = (line.partition("#")[0].partition("=")[2].strip() for line in lines)
    return tuple(dict.fromkeys(name for name in named if name))


def run_as(user: User, work: Callable[[], bytes]) -> bytes:
    """Run `work` in a child process that is `user` and nobody else, and return the bytes it gives.

    The answer crosses as bytes for the caller to parse strictly: a pickle written by a less privileged
    process would let it run code as us. Everything `work` needs must be imported before: the user may not be
    able to read our installation. Raises PerdureError when `work` fails: with its sentence where it has one, and
    a trace on standard error where it should not have happened.
    """
    import logging  # noqa: F401 - for whatever complains in the child
    import traceback  # noqa: F401

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os._exit(_work_as(user, work, writer))
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) == _SAID:
        raise PerdureError(decode(answer))
    if status != 0:
        raise PerdureError(f"Looking at {user.name}'s panes failed; see the lines above.")
    return answer


def _work_as(user: User, work: Callable[[], bytes], writer: int) -> int:
    try:
        if os.geteuid() != user.uid:
            os.initgroups(user.name, user.gid)
            os.setgid(user.gid)
            os.setuid(user.uid)
        os.environ["HOME"] = user.home
        with os.fdopen(writer, "wb") as pipe:
            try:
                pipe.write(work())
            except (PerdureError, OSError) as error:
                known = error if isinstance(error, PerdureError) else failure_of(error)
                pipe.write(encode(known.message))
                return _SAID
    except BaseException:
        import traceback

        traceback.print_exc(file=sys.stderr)
        return 1
    return 0
