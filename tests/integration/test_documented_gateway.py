"""The gateway of the documentation, run as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.conftest import PrivateHome

_DOCS = Path(__file__).parents[2] / "docs" / "chats.md"


def test_the_gateway_of_the_documentation_runs(private_home: PrivateHome, tmp_path: Path) -> None:
    text = _DOCS.read_text(encoding="utf-8").partition("## A whole gateway")[2]
    found = re.search(r"(?:^(?:    .*)?\n)+(?=^- )", text, re.MULTILINE)
    assert found is not None
    program = textwrap.dedent(found[0])
    # Whoever takes a notice has to tell it: not before it is certain that this answer is the one that is given.
    assert program.index("chats.append(") < program.index("chats.take_notice(")
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[:3] == ["1: plan the roof -> 99", "2: with tiles -> 99", "with tiles"]
    assert lines[-3] == 'There is no chat "nope" of yours. -> 99'
    assert lines[-2] == "3: and a gutter -> 99"
    assert lines[-1] == "handed on 0 failed 0 given up 0"
    assert (tmp_path / "mirror" / "sessions.json").exists()
