"""An agent that was found in a pane, as adapters are asked about it."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from perdure.model.process import Process
from perdure.model.server import Server


class Seen(Struct, frozen=True, kw_only=True):
    """`ports.Sighting`: an agent in a pane."""

    server: Server
    pane: str
    title: str
    process: Process
    tree: tuple[Process, ...]
    at: datetime | None = None
