"""Opening an address in the browser of whoever sits before this machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping


def opener(environ: Mapping[str, str]) -> str | None:
    """Return the program that opens addresses here; None where no browser could be seen: over ssh, say."""
    if sys.platform == "darwin":
        return None if environ.get("SSH_CONNECTION") else shutil.which("open")
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        return None
    return shutil.which("xdg-open")


def open_in_browser(program: str, address: str) -> bool:
    """Have an address opened; return whether the program says that it was. The browser outlives us."""
    try:
        done = subprocess.run(
            [program, address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            timeout=10,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True  # some stay as long as the browser does
    except OSError:
        return False
    return done.returncode == 0
