"""Putting the simulated agent where a shell finds it."""

from __future__ import annotations

import os
import sys
from shlex import quote

from perdure.demo import agent


def install(folder: str) -> str:
    """Put the simulated agent into `folder`, under the name it is known by, and return its path.

    It runs by the interpreter we run by, isolated: whatever a pane's environment says about Python is not for it.
    """
    path = os.path.join(folder, agent.NAME)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {quote(sys.executable)} -I {quote(os.path.abspath(agent.__file__))} "$@"\n')
    os.chmod(path, 0o755)
    return path
