"""Looking into a mirror as the programs do that read it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from perdure.chats.mirror import Mirror


def index(mirror: Mirror) -> Any:
    """What `sessions.json` says."""
    return json.loads(Path(mirror.directory, "sessions.json").read_text())


def lines(mirror: Mirror, id: str) -> list[Any]:
    """The lines of a chat's file."""
    return [json.loads(line) for line in Path(mirror.directory, f"{id}.jsonl").read_text().splitlines()]


def said(mirror: Mirror, id: str) -> list[object]:
    """What was said, by a chat's file."""
    return [line["content"] for line in lines(mirror, id)]


def inode(mirror: Mirror, id: str) -> int:
    """Which file it is, by whatever name."""
    return os.stat(os.path.join(mirror.directory, f"{id}.jsonl")).st_ino
