"""Which tmux server is meant, and which process answered there."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class Server(Struct, frozen=True, kw_only=True):
    """A tmux server's address: whose it is and on which socket. Outlives the processes behind it."""

    host: str
    user: str
    uid: int
    socket: str

    @property
    def key(self) -> str:
        """The one string that names this server in the store, whichever process listens there."""
        return f"{self.host}/{self.uid}{self.socket}"


class ServerProcess(Struct, frozen=True, kw_only=True):
    """The tmux process that answered."""

    pid: int
    started_at: datetime
    version: str
