"""Which panes' scrollback is kept, and under which name. Pure."""

from __future__ import annotations

from perdure.model.config import ScrollbackConfig
from perdure.model.digest import digest_of
from perdure.model.topology import Topology


def wanted_panes(topology: Topology, config: ScrollbackConfig) -> list[str]:
    """Return the ids of the panes whose screen may be read: what is excluded is never even asked for."""
    if not config.enabled:
        return []
    quiet = {session.id for session in topology.sessions if session.name in config.exclude_sessions}
    hidden = {link.window for link in topology.links if link.session in quiet}
    return [
        pane.id for pane in topology.panes if pane.window not in hidden and pane.command not in config.exclude_programs
    ]


def tidy(text: bytes) -> bytes:
    """Return a screen without the empty lines below its last one."""
    return text.rstrip(b"\n") + b"\n" if text.strip(b"\n") else b""


def digest(text: bytes) -> str:
    """Return the name under which this text is kept: the same text is kept once."""
    return digest_of(text)
