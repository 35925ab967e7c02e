"""What the documentation promises, for tests that hold the program to it."""

from __future__ import annotations

import os
import re

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_ROW = re.compile(r"^\| `(?P<kind>[a-z_]+)` \| [^|]+ \| (?P<data>[^|]+) \|$", re.MULTILINE)


def documented_events() -> dict[str, set[str]]:
    """Return every word in the description of each kind's data: its fields are among them."""
    with open(os.path.join(_ROOT, "docs", "events.md"), encoding="utf-8") as file:
        text = file.read()
    return {row["kind"]: set(re.findall(r"`(\w+)`", row["data"])) for row in _ROW.finditer(text)}
