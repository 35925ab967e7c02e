"""Out of our own service: what a service starts, systemd ends with it."""

from __future__ import annotations

import os
import shutil

from perdure.model.user import User


def outside_service(user: User, *, root: str = "/") -> tuple[str, ...]:
    """Return the words to put before a command of `user`'s so that it outlives the service we are in.

    () where there is nothing to get out of, or no way. The command stays our child, with our pipes and our
    environment. When `user` is not who we are, the words make the command theirs, the user and the group but not
    the other groups; whoever starts it sets those first, and does not change the user as well.
    """
    found = shutil.which("systemd-run")
    if found is None or not os.path.isdir(os.path.join(root, "run/systemd/system")) or not _in_service(root):
        return ()
    scope = ("--scope", "--quiet", "--collect")
    if os.geteuid() == 0:
        # At boot nobody has a manager of their own yet, root never: so it is the system's, in the user's slice.
        become = () if user.uid == 0 else (f"--uid={user.uid}", f"--gid={user.gid}")
        return (os.path.abspath(found), *scope, *become, f"--slice=user-{user.uid}.slice", "--")
    runtime = f"/run/user/{user.uid}"
    if not os.path.exists(os.path.join(root, runtime[1:], "systemd/private")):
        return ()
    return ("/usr/bin/env", f"XDG_RUNTIME_DIR={runtime}", os.path.abspath(found), "--user", *scope, "--")


def _in_service(root: str) -> bool:
    """The innermost unit our control group belongs to is a service, not the scope of a login or a terminal."""
    try:
        with open(os.path.join(root, "proc/self/cgroup"), encoding="utf-8", errors="replace") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return False
    # systemd's own hierarchy: the unified one, or on older machines the one it named.
    paths = [group[2] for group in groups if len(group) == 3 and (group[0] == "0" or group[1] == "name=systemd")]
    units = [part for path in paths for part in path.split("/") if part.endswith((".service", ".scope"))]
    return bool(units) and units[-1].endswith(".service")
