"""What a browser has to load."""

from __future__ import annotations

import gzip
import os
import re

import pytest

from perdure.api.pages import DIST

#: In bytes, compressed, everything together.
MOST = 300_000
#: The same of what is loaded before anything is shown.
MOST_AT_FIRST = 60_000


@pytest.mark.skipif(not os.path.isdir(DIST), reason="the dashboard is not built; `make web` builds it")
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
