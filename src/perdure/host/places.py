"""Where our own files lie.

Three lines a platform, so no library: importing one for this costs more than the rest of a save's start-up.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping


def state_dir(environ: Mapping[str, str], home: str) -> str:
    """Return the directory of everything we keep: `$PERDURE_STATE_DIR`, else the platform's place for state."""
    if chosen := environ.get("PERDURE_STATE_DIR"):
        return os.path.abspath(chosen)
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support", "perdure")
    base = environ.get("XDG_STATE_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.join(home, ".local", "state"), "perdure")


def config_path(environ: Mapping[str, str], home: str) -> str:
    """Return the configuration file: `$PERDURE_CONFIG`, else `config.toml` in the platform's place for it."""
    if chosen := environ.get("PERDURE_CONFIG"):
        return os.path.abspath(chosen)
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support", "perdure", "config.toml")
    base = environ.get("XDG_CONFIG_HOME", "")
    base = base if os.path.isabs(base) else os.path.join(home, ".config")
    return os.path.join(base, "perdure", "config.toml")


def store_url(environ: Mapping[str, str], state: str) -> str:
    """Return which store to open: `$PERDURE_STORE`, else SQLite in the state directory."""
    return environ.get("PERDURE_STORE") or f"sqlite:///{os.path.join(state, 'perdure.db').lstrip('/')}"
