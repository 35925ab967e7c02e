"""Reading a configuration as the program does, from a file in the test's home."""

from __future__ import annotations

import os

from perdure.host.config import read_config
from perdure.model.config import Config


def read(text: str | bytes) -> Config:
    """Return what the program reads from a config.toml with that text."""
    path = os.path.join(os.environ["HOME"], "config.toml")
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return read_config(path, home="/home/dev")
