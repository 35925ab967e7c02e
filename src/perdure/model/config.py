"""What a user may set, with the defaults."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from perdure.model.agent import AgentSpec


class ScrollbackConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether and how much of what panes showed is kept."""

    enabled: bool = True
    #: Lines above the visible ones, per pane.
    lines: int = 2000
    #: Session names and program names whose panes are never read.
    exclude_sessions: tuple[str, ...] = ()
    exclude_programs: tuple[str, ...] = ()


class RetentionConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long snapshots are kept: all of them, then one an hour, then one a day."""

    everything_hours: int = 24
    hourly_days: int = 7
    daily_days: int = 90


class TmuxConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which servers are looked at besides those tmux itself would find, and for how long."""

    sockets: tuple[str, ...] = ()
    timeout_seconds: float = 5.0


class ExportConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files in the formats of earlier scripts, written on every save."""

    on_save: bool = False
    #: Where the tmux-state manifest goes; the original's two places when empty.
    tmux_state: tuple[str, ...] = ()
    tmux_persist_dir: str = "/var/lib/tmux-persist"


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything in config.toml."""

    #: This machine's name in the store; the hostname when empty.
    host: str = ""
    #: The zone in which a day begins, for retention.
    zone: str = "UTC"
    #: `name=user` lines: whose sessions `--all-users` looks at besides those that have a socket.
    roster: str = "/etc/ttyd-user-map"
    tmux: TmuxConfig = TmuxConfig()
    scrollback: ScrollbackConfig = ScrollbackConfig()
    retention: RetentionConfig = RetentionConfig()
    export: ExportConfig = ExportConfig()
    #: Agents besides those that come with the program, by name.
    agents: Mapping[str, AgentSpec] = {}
