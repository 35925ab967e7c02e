"""Run as a script, this is `perdure` on a machine with more accounts, and in a service where a test wants it to be.

`$PERDURE_TEST_PASSWD` is a file like /etc/passwd whose accounts there are beside the real ones. With
`$PERDURE_TEST_ROOT`, the `/proc` and `/run` below that directory tell which service the program runs in.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Callable, Mapping
from typing import Any

PASSWD, ROOT = "PERDURE_TEST_PASSWD", "PERDURE_TEST_ROOT"


def _entries(path: str) -> list[pwd.struct_passwd]:
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split(":") for line in file]
    return [
        pwd.struct_passwd((name, password, int(uid), int(gid), gecos, home, shell))
        for name, password, uid, gid, gecos, home, shell in rows
    ]


def _beside(real: Callable[[Any], pwd.struct_passwd], known: Mapping[Any, pwd.struct_passwd]) -> Callable[[Any], Any]:
    return lambda key: known[key] if key in known else real(key)


def add_accounts() -> None:
    """Let this process know the accounts of the test."""
    entries = _entries(os.environ[PASSWD])
    pwd.getpwuid = _beside(pwd.getpwuid, {each.pw_uid: each for each in entries})
    pwd.getpwnam = _beside(pwd.getpwnam, {each.pw_name: each for each in entries})


def _run() -> int:
    add_accounts()
    from perdure.cli.main import main
    from perdure.host import scope

    root = os.environ.get(ROOT)
    if root is not None:
        scope.outside_service.__kwdefaults__ = {"root": root}
    return main()


if __name__ == "__main__":
    sys.exit(_run())
