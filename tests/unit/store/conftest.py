"""What the tests of a store's own files share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture
def spoilt(original: str) -> Iterator[str]:
    """A copy of a module's `original` state directory, to be damaged."""
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(original, directory, dirs_exist_ok=True)
        yield directory
