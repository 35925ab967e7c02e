"""What a user may set, with the defaults."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from perdure.model.agent import AgentSpec
from perdure.model.chat import KeyRules, ResetPolicy


class ScrollbackConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether and how much of what panes showed is kept."""

    enabled: bool = True
    #: Lines above the visible ones, per pane.
    lines: int = 2000
    #: Session names and program names whose panes are never read.
    exclude_sessions: tuple[str, ...] = ()
    exclude_programs: tuple[str, ...] = ()


class RetentionConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long snapshots are kept (all of them, then one an hour, then one a day), and what is known of runs."""

    everything_hours: int = 24
    hourly_days: int = 7
    daily_days: int = 90
    #: What has happened.
    events_days: int = 30
    #: Runs whose panes are gone.
    runs_days: int = 90


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


class RestoreConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is started again when panes are brought back, and how many at once."""

    #: Programs that are started again, by name; what else ran in a pane is shown there as text.
    programs: tuple[str, ...] = tuple(
        """
        vi vim nvim nano emacs micro hx helix kak
        less more most bat
        tail top htop btop watch man
        """.split()
    )
    #: How many agents may be starting at once.
    max_parallel: int = 4
    #: Further variables of agents and programs that are kept and given back, even when they look like secrets.
    environment: tuple[str, ...] = ()
    #: Percent of the last ten seconds in which something waited for memory; while it is more, no agent is started.
    memory_pressure: float = 20.0
    #: How long a resumed agent may take to show that it is in the conversation it was in.
    verify_seconds: float = 60.0
    #: Flags for the agents of an imported tmux-persist manifest, which does not tell those they had.
    tmux_persist_flags: tuple[str, ...] = ()


class LiveConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `perdure up` does besides watching."""

    #: Whether a server that died is brought back at once, unless it ended in good order.
    restore: bool = False


class ApiConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where `perdure up` is asked over HTTP, and by what name."""

    enabled: bool = True
    host: str = "127.0.0.1"
    #: 0: any that is free.
    port: int = 7717
    #: A Unix socket in place of host and port.
    unix_socket: str = ""
    #: Whether the daemon goes on without where nobody can listen.
    optional: bool = False
    #: Names besides those of the loopback by which browsers may ask for it.
    hosts: tuple[str, ...] = ()
    #: Files with a certificate and its key.
    tls_cert: str = ""
    tls_key: str = ""
    #: Whether it may be reached from elsewhere without TLS.
    insecure_bind: bool = False
    #: Whether a client is attached to a session one of whose terminals is watched (`always`, `never`, or `auto`: where no
    #: fault of tmux's makes that dangerous); else it is captured again and again.
    attach: str = "auto"


class ThoughtsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether and by whom it is said in a line what each run is doing."""

    enabled: bool = True
    #: `derived` from transcript, tool calls and repository, here and for nothing; or by a `model`, or by a `command`.
    source: str = "derived"
    #: For a model: where it is asked.
    endpoint: str = ""
    #: How it is asked: `openai`, as most endpoints are, or `anthropic`.
    api: str = "openai"
    model: str = ""
    #: The environment variable that holds the key; none is sent when empty.
    key_variable: str = ""
    max_calls_per_hour: int = 60
    #: In whatever the prices are in.
    max_cost_per_day: float = 1.0
    #: Of a million tokens.
    price_in: float = 0.0
    price_out: float = 0.0
    #: For a command: its arguments, the program first.
    command: tuple[str, ...] = ()
    #: Seconds between two questions about the same run: just after it turned to something else, later, and much later.
    cadence: tuple[float, float, float] = (15.0, 45.0, 120.0)


class ChatKeysConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which messages of a gateway belong to the same chat."""

    rules: KeyRules = KeyRules.ISOLATED
    #: Whether everybody in a group has a chat of their own.
    group_sessions_per_user: bool = True
    #: Whether everybody in a thread has.
    thread_sessions_per_user: bool = False
    #: Whether the account or bot a message came in by sets chats apart.
    multiplex_profiles: bool = True
    #: The account or bot of messages that do not tell.
    profile: str = ""


class ChatsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a gateway's chats are told apart, when they begin anew, and how long they are kept."""

    #: The IANA zone of a daily reset; that of everything else when empty.
    zone: str = ""
    #: Platforms besides those that are known.
    platforms: tuple[str, ...] = ()
    keys: ChatKeysConfig = ChatKeysConfig()
    #: For chats neither of the two below is about.
    reset: ResetPolicy = ResetPolicy()
    #: Whole policies, by type of chat; and by platform, which win.
    reset_by_type: Mapping[str, ResetPolicy] = {}
    reset_by_platform: Mapping[str, ResetPolicy] = {}
    #: How long ago a chat was used and closed when pruning lets go of it; 0: it has to be said.
    prune_days: int = 90
    #: How long ago it was used and closed when a chat goes by itself; 0: never, previous chats are kept for good.
    keep_days: int = 0
    #: Whether one that ended by itself stays until what was said in it was handed on, however long ago.
    keep_owed: bool = True
    #: Where sessions.json and its JSONL files are written for older programs; nowhere when empty.
    legacy_dir: str = ""


class BackendConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somewhere else for jobs to run."""

    #: `ssh`, `docker` or `podman`.
    kind: str
    #: ssh: a name or address, or what stands for one in ssh's own configuration.
    host: str = ""
    #: Who one is there: of a host or in a container. As it is there when empty.
    user: str = ""
    port: int | None = None
    #: A file with a private key.
    identity: str = ""
    #: A container that runs, or else an image of which every job gets a container of its own.
    container: str = ""
    image: str = ""
    #: More for the program: `Name=value` for ssh, `--name=value` for the others.
    options: tuple[str, ...] = ()


class JobsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much jobs may do and print, and how long they are known."""

    #: The longest that is waited for a job at once.
    wait_seconds: float = 180.0
    #: How much of what a job printed is given at once, in bytes: the latest of it.
    poll_bytes: int = 200_000
    #: How much of what a job printed is kept on disk.
    log_bytes: int = 64 << 20
    #: How long a job is known after it has ended, and how many such are at most.
    keep_seconds: float = 1800.0
    keep_ended: int = 64
    #: How many may run at once: in all, and of an owner.
    max_running: int = 256
    max_per_owner: int = 64
    #: How long a job may take to end once it was asked to.
    grace_seconds: float = 2.0
    #: Which variables a job is given, of those that whoever starts it has: names, with `*` for anything.
    environment: tuple[str, ...] = ("*",)
    #: Names of variables that are passed on even though they look like secrets.
    secrets: tuple[str, ...] = ()
    #: Where jobs may run besides this machine, by name.
    backends: Mapping[str, BackendConfig] = {}


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
    restore: RestoreConfig = RestoreConfig()
    thoughts: ThoughtsConfig = ThoughtsConfig()
    live: LiveConfig = LiveConfig()
    api: ApiConfig = ApiConfig()
    chats: ChatsConfig = ChatsConfig()
    jobs: JobsConfig = JobsConfig()
    #: Agents besides those that come with the program, by name.
    agents: Mapping[str, AgentSpec] = {}
