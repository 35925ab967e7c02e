"""What a browser has to load, and that a wheel has it."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from perdure.api.pages import DIST
from tests.browser.looking import ROOT

#: In bytes, compressed, everything together.
MOST = 300_000
#: The same of what is loaded before anything is shown.
MOST_AT_FIRST = 60_000


is_built = pytest.mark.skipif(not os.path.isdir(DIST), reason="the dashboard is not built; `make web` builds it")


@is_built
def test_the_dashboard_stays_small_and_a_terminal_is_loaded_only_when_one_is_opened() -> None:
    sizes = {}
    for folder, _, names in os.walk(DIST):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                sizes[name] = len(gzip.compress(file.read()))
    with open(os.path.join(DIST, "index.html")) as file:
        page = file.read()
    first = set(re.findall(r'(?:src|href)="/(?:assets/)?([^"]+)"', page))
    assert sum(sizes.values()) <= MOST, sizes
    assert sum(sizes[name] for name in first) <= MOST_AT_FIRST, first
    assert not any("Terminal" in name for name in first)
    # Nothing comes from elsewhere, and nothing stands in the page that its policy would stop.
    assert not re.search(r"https?://|<style|style=|<script(?! )", page)


@is_built
def test_a_wheel_has_the_dashboard_in_it(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True, timeout=600)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    built = {os.path.relpath(os.path.join(folder, name), DIST) for folder, _, files in os.walk(DIST) for name in files}
    assert {f"perdure/web_dist/{name}" for name in built} <= names
    assert not any("node_modules" in name for name in names)
