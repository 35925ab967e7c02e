"""Somewhere to start when the directory is gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perdure.host.directories import nearest
from perdure.model.text import decode


def test_the_nearest_parent_is_taken(tmp_path: Path) -> None:
    home, deep = tmp_path / "home", tmp_path / "a" / "b"
    home.mkdir()
    deep.mkdir(parents=True)
    assert nearest(str(deep), str(home)) == str(deep)
    assert nearest(str(deep / "c" / "d"), str(home)) == str(deep)
    assert nearest(str(deep) + "/gone/", str(home)) == str(deep)


def test_home_is_nearer_than_the_root(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert nearest("/no-such-directory/at/all", home) == home
    assert nearest("", home) == home
    assert nearest("relative/one", home) == home
    assert nearest("/", home) == "/"
    assert nearest("/no-such-directory", "/no-such-home") == "/"


def test_a_file_in_the_way_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert nearest(str(tmp_path / "file" / "below"), "/") == str(tmp_path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff\n x"
    os.mkdir(odd)
    assert nearest(decode(odd), "/") == decode(odd)
    assert nearest(decode(odd) + "/gone", "/") == decode(odd)
    assert nearest(f"{tmp_path}/a\0b", "/") == str(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter any directory")
def test_one_that_may_not_be_entered_does_not_count(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o600)
    assert nearest(str(closed / "x"), "/") == str(tmp_path)
