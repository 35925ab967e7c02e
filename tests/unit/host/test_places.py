from __future__ import annotations

import sys

import pytest

from perdure.host.clock import now
from perdure.host.places import config_path, state_dir, store_url

HOME = "/home/dev"
elsewhere = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has places of its own")


@elsewhere
@pytest.mark.parametrize(
    ("environ", "state", "config"),
    [
        ({}, "/home/dev/.local/state/perdure", "/home/dev/.config/perdure/config.toml"),
        ({"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"}, "/s/perdure", "/c/perdure/config.toml"),
        (
            {"XDG_STATE_HOME": "s", "XDG_CONFIG_HOME": ""},
            "/home/dev/.local/state/perdure",
            "/home/dev/.config/perdure/config.toml",
        ),
        ({"PERDURE_STATE_DIR": "/x/../y", "PERDURE_CONFIG": "/z"}, "/y", "/z"),
        (
            {"PERDURE_STATE_DIR": "", "PERDURE_CONFIG": ""},
            "/home/dev/.local/state/perdure",
            "/home/dev/.config/perdure/config.toml",
        ),
    ],
)
def test_where_our_files_lie(environ: dict[str, str], state: str, config: str) -> None:
    assert state_dir(environ, HOME) == state
    assert config_path(environ, HOME) == config


def test_which_store_is_opened() -> None:
    assert store_url({}, "/s") == "sqlite:///s/perdure.db"
    assert store_url({"PERDURE_STORE": ""}, "/s") == "sqlite:///s/perdure.db"
    assert store_url({"PERDURE_STORE": "postgresql://db/x"}, "/s") == "postgresql://db/x"


def test_the_clock_knows_its_zone() -> None:
    assert now().utcoffset() is not None
    assert now() <= now()
