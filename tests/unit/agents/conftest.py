from __future__ import annotations

import pytest

from tests.unit.agents.hosts import DirectoryHost


@pytest.fixture
def host(tmp_path: object) -> DirectoryHost:
    """A machine of one user with nothing on it."""
    return DirectoryHost(str(tmp_path))
